//! The networks of users (`network` of a session): a wire in user space that delays, drops and
//! paces the IP packets between two real TCP stacks, so that handshakes, acknowledgements,
//! congestion windows and retransmissions behave as on such a network.
//!
//! The sockets of these users are in a network namespace of throng, whose only way out is a TUN
//! device. The other end is a TUN device in the namespace of the host. A thread carries the
//! packets between both.
//!
//! - [`block`]: which addresses the users have. [`queues`]: what happens to a packet, as a pure
//!   machine. [`wire`]: the devices and the thread. [`netlink`]: how devices and routes are set.
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
