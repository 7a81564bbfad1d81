//! The resources that the run uses on its host, as intervals contain them: the readings of the
//! host's monitor, and estimates from the number of users and connections.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use throng_base::Time;
use throng_engine::{Run, SizeKind};
use throng_host::{Monitor, Reading, Root, source_ports};
use throng_metrics::{Cpu, Gauges, Resources};
use throng_program::Program;

use crate::post::limits::Seen;
use crate::post::polite::Others;

/// Bytes of this process per user and per connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PartSizes {
    user_bytes: u64,
    connection_bytes: u64,
    /// Size of the recorders and the merged results, which does not depend on users.
    recorder_bytes: u64,
}

impl PartSizes {
    fn of(program: &Program, shards: usize) -> PartSizes {
        let sizes = throng_engine::sizes(program);
        // A user owns the slot for its connection even without one. What a socket adds belongs to
        // the connection.
        let is_connection = |kind| matches!(kind, SizeKind::Socket | SizeKind::Tls);
        let parts = sizes.parts.iter().filter(|part| is_connection(part.kind));
        let connection_bytes = parts.map(|part| part.bytes).sum();
        PartSizes {
            user_bytes: sizes.user_bytes().saturating_sub(connection_bytes),
            connection_bytes,
            recorder_bytes: sizes.recorder.run_bytes(shards as u64),
        }
    }
}

/// Reads the resources of this process and its host once a second.
pub(crate) struct Watcher {
    monitor: Monitor,
    sizes: PartSizes,
    /// Maximum number of open connections by source ports; `None` if unknown.
    ports: Option<u64>,
}

impl Watcher {
    pub(crate) fn new(program: &Program, run: &Run) -> Watcher {
        let root = Root::default();
        Watcher {
            monitor: Monitor::new(&root, since_start(run.clock.now())),
            sizes: PartSizes::of(program, run.shards),
            ports: ports(program, &run.addresses, &root),
        }
    }

    /// Resources used since the previous call; `gauges` are the most recent ones.
    pub(crate) fn look(&mut self, gauges: &Gauges, now: Time) -> (Resources, Seen) {
        let reading = self.monitor.read(since_start(now));
        let connections = gauges.connections_open + gauges.connections_opening;
        let kernel = connections.saturating_mul(self.monitor.socket_cost().open_bytes);
        let seen = Seen {
            cpu_share: (!reading.shares_are_old).then_some(reading.cpu_share),
            host_cpu: reading.host.map(|host| host.busy),
            memory_bytes: reading.memory_bytes.saturating_add(kernel),
            memory_left: reading.memory_left,
            throughput: reading.throughput,
            is_growing: false,
            others: Others {
                cpu: reading.others_cpu.filter(|_| !reading.shares_are_old),
                memory_stall: reading.memory_stall,
            },
        };
        (self.resources(&reading, gauges, connections), seen)
    }

    /// Reads only memory, between full readings.
    pub(crate) fn look_at_memory(&mut self, gauges: &Gauges) -> Seen {
        let connections = gauges.connections_open + gauges.connections_opening;
        let kernel = connections.saturating_mul(self.monitor.socket_cost().open_bytes);
        let (memory_bytes, memory_left) = self.monitor.memory();
        let memory_bytes = memory_bytes.saturating_add(kernel);
        Seen { memory_bytes, memory_left, is_growing: true, ..Seen::default() }
    }

    fn resources(&self, reading: &Reading, gauges: &Gauges, connections: u64) -> Resources {
        let host = reading.host.unwrap_or_default();
        let taken = connections.saturating_add(reading.time_wait);
        Resources {
            cpu: Cpu {
                cpu_user_ns: reading.cpu_user_ns,
                cpu_system_ns: reading.cpu_system_ns,
                shard_cpu_max: reading.shard_cpu_max,
                run_queue_ns: reading.run_queue_ns,
                quota_periods: reading.quota_periods,
                throttled_periods: reading.throttled_periods,
                throttled_ns: reading.throttled_ns,
            },
            memory_bytes: reading.memory_bytes,
            users_bytes: gauges.users_present.saturating_mul(self.sizes.user_bytes),
            connections_bytes: connections.saturating_mul(self.sizes.connection_bytes),
            recorder_bytes: self.sizes.recorder_bytes,
            kernel_socket_bytes: reading.kernel_socket_bytes,
            memory_available_bytes: reading.memory_left.map_or(0, |left| left.available_bytes),
            host_cpu: host.busy,
            host_steal: host.steal,
            host_softirq: host.softirq,
            packets_dropped: reading.packets_dropped,
            listen_dropped: reading.listen_dropped,
            conntrack: reading.conntrack,
            conntrack_max: reading.conntrack_max,
            ports_left: self.ports.map(|ports| ports.saturating_sub(taken)),
            held: false,
        }
    }
}

fn since_start(now: Time) -> Duration {
    now - Time::ZERO
}

/// Both ends identify a connection: each source address can use each of its ports once per target
/// address. If some targets are unix sockets, the number of connections with ports is unknown.
fn ports(program: &Program, addresses: &[Vec<SocketAddr>], root: &Root) -> Option<u64> {
    if addresses.iter().any(Vec::is_empty) {
        return None;
    }
    let ports = source_ports(root, program.connection.sources.ports)?;
    let targets: BTreeSet<SocketAddr> = addresses.iter().flatten().copied().collect();
    targets.iter().try_fold(0u64, |sum, target| {
        let sources = throng_engine::source_count(program, target.ip()).ok()?;
        Some(sum.saturating_add(sources.saturating_mul(ports)))
    })
}
