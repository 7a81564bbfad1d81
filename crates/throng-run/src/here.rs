//! Detects targets on this host, which compete with the generator for its processors.

use std::net::{IpAddr, SocketAddr, UdpSocket};

use throng_program::Program;

/// The addresses of the targets whose names can be resolved.
pub(crate) fn resolved(program: &Program) -> Vec<Vec<SocketAddr>> {
    let look = |target| throng_engine::addresses(program, target).unwrap_or_default();
    program.targets.iter().map(look).collect()
}

pub(crate) fn is_same_host(program: &Program, addresses: &[Vec<SocketAddr>]) -> bool {
    program.targets.iter().any(|target| target.unix_socket.is_some())
        || addresses.iter().flatten().any(|address| is_own(address.ip()))
}

/// Whether this host has the address: the kernel lets a socket bind to it.
pub(crate) fn is_own(address: IpAddr) -> bool {
    address.is_loopback() || UdpSocket::bind((address, 0)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_this_host_are_own() {
        for own in ["127.0.0.1", "127.8.9.10", "::1"] {
            assert!(is_own(own.parse().unwrap()), "{own}");
        }
        // Addresses reserved for documentation.
        for other in ["192.0.2.7", "2001:db8::7"] {
            assert!(!is_own(other.parse().unwrap()), "{other}");
        }
    }
}
