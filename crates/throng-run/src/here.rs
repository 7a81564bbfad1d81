//! Whether a target is on the machine that generates the load and so competes for its processors.

use std::net::{IpAddr, SocketAddr, UdpSocket};

use throng_program::Program;

/// The addresses that the targets have, where their names can be looked up.
pub(crate) fn resolved(program: &Program) -> Vec<Vec<SocketAddr>> {
    let look = |target| throng_engine::addresses(program, target).unwrap_or_default();
    program.targets.iter().map(look).collect()
}

pub(crate) fn is_same_host(program: &Program, addresses: &[Vec<SocketAddr>]) -> bool {
    program.targets.iter().any(|target| target.unix_socket.is_some())
        || addresses.iter().flatten().any(|address| is_own(address.ip()))
}

/// An address of this host: the kernel lets a socket have it as its own.
pub(crate) fn is_own(address: IpAddr) -> bool {
    address.is_loopback() || UdpSocket::bind((address, 0)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_addresses_are_told_from_those_of_others() {
        for own in ["127.0.0.1", "127.8.9.10", "::1"] {
            assert!(is_own(own.parse().unwrap()), "{own}");
        }
        // Of the networks for documentation.
        for other in ["192.0.2.7", "2001:db8::7"] {
            assert!(!is_own(other.parse().unwrap()), "{other}");
        }
    }
}
