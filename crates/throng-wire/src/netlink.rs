//! Configures devices and routes over rtnetlink(7). Only [`Control`] has a socket; requests are
//! plain bytes.

use std::io::{self, Read as _, Write as _};
use std::net::Ipv4Addr;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

/// From linux/netlink.h. `libc` has these constants only on Linux.
const NETLINK: i32 = 16;
const NETLINK_ROUTE: i32 = 0;
const NLMSG_ERROR: u16 = 2;
/// `NLM_F_REQUEST` and `NLM_F_ACK`.
const REQUEST: u16 = 0x5;
/// `NLM_F_CREATE` and `NLM_F_EXCL`.
const CREATE: u16 = 0x600;
const HEADER_BYTES: usize = 16;
const TIME_MAX: Duration = Duration::from_secs(2);

/// From linux/rtnetlink.h and linux/if_link.h.
const RTM_NEWLINK: u16 = 16;
const RTM_NEWROUTE: u16 = 24;
const IFLA_TXQLEN: u16 = 13;
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const IFF_UP: u32 = 1;
const AF_INET: u8 = 2;
const RTPROT_STATIC: u8 = 4;

/// The kind of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// The addresses are reached through the device.
    Link,
    /// The addresses belong to this namespace.
    Local,
}

/// Brings a device up, with a queue of this many packets.
pub(crate) fn device_up(device: u32, queue: u32) -> Vec<u8> {
    let mut body = vec![0; 4];
    body.extend(device.to_ne_bytes());
    body.extend(IFF_UP.to_ne_bytes());
    body.extend(IFF_UP.to_ne_bytes());
    request(RTM_NEWLINK, 0, &body, &[(IFLA_TXQLEN, &queue.to_ne_bytes())])
}

/// A route to all addresses with this prefix.
pub(crate) fn route(device: u32, prefix: (Ipv4Addr, u8), scope: Scope) -> Vec<u8> {
    // The table, scope and type as ip-route(8) sets them.
    let (table, number, kind) = match scope {
        Scope::Link => (254, 253, 1),
        Scope::Local => (255, 254, 2),
    };
    let body = [AF_INET, prefix.1, 0, 0, table, RTPROT_STATIC, number, kind, 0, 0, 0, 0];
    let (to, device) = (prefix.0.octets(), device.to_ne_bytes());
    request(RTM_NEWROUTE, CREATE, &body, &[(RTA_DST, &to), (RTA_OIF, &device)])
}

/// Attributes of four bytes each.
fn request(kind: u16, flags: u16, body: &[u8], attributes: &[(u16, &[u8; 4])]) -> Vec<u8> {
    const ATTRIBUTE_BYTES: u16 = 8;
    let length = HEADER_BYTES + body.len() + attributes.len() * usize::from(ATTRIBUTE_BYTES);
    let mut bytes = Vec::with_capacity(length);
    bytes.extend((length as u32).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend((REQUEST | flags).to_ne_bytes());
    bytes.resize(HEADER_BYTES, 0);
    bytes.extend(body);
    for (name, value) in attributes {
        bytes.extend(ATTRIBUTE_BYTES.to_ne_bytes());
        bytes.extend(name.to_ne_bytes());
        bytes.extend(*value);
    }
    bytes
}

/// The result in the kernel's reply to a request.
fn outcome(reply: &[u8]) -> io::Result<()> {
    let kind = reply.get(4..6).and_then(|bytes| bytes.first_chunk());
    let code = reply.get(HEADER_BYTES..).and_then(|bytes| bytes.first_chunk());
    match (kind, code) {
        (Some(kind), Some(code)) if u16::from_ne_bytes(*kind) == NLMSG_ERROR => {
            match i32::from_ne_bytes(*code).wrapping_neg() {
                0 => Ok(()),
                code => Err(io::Error::from_raw_os_error(code)),
            }
        }
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// A socket to the kernel, for the network namespace of the thread that opens it.
pub(crate) struct Control(Socket);

impl Control {
    pub(crate) fn open() -> io::Result<Control> {
        let protocol = Protocol::from(NETLINK_ROUTE);
        let socket = Socket::new(Domain::from(NETLINK), Type::RAW, Some(protocol))?;
        socket.set_read_timeout(Some(TIME_MAX))?;
        Ok(Control(socket))
    }

    pub(crate) fn ask(&mut self, request: &[u8]) -> io::Result<()> {
        self.0.write_all(request)?;
        let mut reply = [0; 1024];
        let bytes = self.0.read(&mut reply)?;
        outcome(&reply[..bytes])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_as_the_kernel_reads_them() {
        let route = route(7, (Ipv4Addr::new(198, 18, 0, 0), 18), Scope::Local);
        assert_eq!(route.len(), 44);
        assert_eq!(route[16..28], [2, 18, 0, 0, 255, 4, 254, 2, 0, 0, 0, 0]);
        assert_eq!(route[32..36], [198, 18, 0, 0]);
        assert_eq!(device_up(7, 100).len(), 40);
    }

    #[test]
    fn replies_are_read_whatever_they_are() {
        let reply = |code: i32| {
            let mut bytes = request(NLMSG_ERROR, 0, &[], &[]);
            bytes.extend(code.to_ne_bytes());
            bytes
        };
        assert!(outcome(&reply(0)).is_ok());
        assert_eq!(outcome(&reply(-1)).unwrap_err().raw_os_error(), Some(1));
        throng_fuzz::mutations(&[&reply(0), &reply(i32::MIN)], |bytes, _| drop(outcome(bytes)));
    }
}
