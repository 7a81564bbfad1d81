//! Rules about limits of a host: its processors, ports, descriptors, tables, queues, memory, disks.

pub(super) mod accept_queue_full;
pub(super) mod conntrack_full;
pub(super) mod descriptor_limit;
pub(super) mod disk_bound;
pub(super) mod generator_bound;
pub(super) mod memory_short;
pub(super) mod ports_exhausted;
mod stalled;
pub(super) mod syn_lost;
