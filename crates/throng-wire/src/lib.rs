//! The networks of users (`network` of a session): a wire in user space that delays, drops and
//! paces the IP packets between two real TCP stacks, so that handshakes, acknowledgements,
//! congestion windows and retransmissions behave as on such a network.
//!
//! The sockets of these users are in a separate network namespace, whose only exit is a TUN device.
//! A second TUN device is in the namespace of the host, and a thread carries packets between the
//! two.
//!
//! - [`block`]: the addresses of the users. [`queues`]: the simulated links, without I/O. [`wire`]:
//!   the devices and the thread. [`netlink`]: configures devices and routes.
//! - [`system`]: system calls without a safe wrapper. All unsafe code of this crate is there.

#[macro_use]
extern crate throng_base;

mod block;
#[cfg(not(target_os = "linux"))]
mod elsewhere;
mod netlink;
mod queues;
#[cfg(target_os = "linux")]
mod system;
#[cfg(not(target_os = "linux"))]
use elsewhere as system;
mod wire;

pub use queues::Counts;
pub use wire::{Wire, check_reachable};
