//! Rules for kernel queues, buffers and tables that all connections of a host share.

pub(super) mod accept_queue;
pub(super) mod buffers;
pub(super) mod conntrack;
pub(super) mod datagram_memory;
pub(super) mod datagram_queues;
pub(super) mod nic_queues;
pub(super) mod packet_backlog;
pub(super) mod reverse_path;
pub(super) mod syn_backlog;
pub(super) mod tcp_memory;
pub(super) mod time_wait;
