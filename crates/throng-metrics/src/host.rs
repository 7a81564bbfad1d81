//! The table of a host's metrics, for the monitor that reports them, the reader that stores them,
//! and the findings that use them. Names are those of node_exporter where it has them.

use std::collections::HashMap;
use std::sync::LazyLock;

/// Properties of all samples with the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Series {
    pub name: &'static str,
    pub kind: SeriesKind,
    /// Includes its unit.
    pub help: &'static str,
    /// What a run stores if the scenario does not name metrics.
    pub kept: Kept,
    /// The series that contains its limit, if any.
    pub limit: &'static [&'static str],
    /// Findings that use it over time, or [`STABILITY`] or [`CAPACITY`].
    pub used_by: &'static [&'static str],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeriesKind {
    /// It only increases, or restarts at 0.
    Counter,
    Gauge,
    /// A counter to which node_exporter gives neither a type nor a name ending in `_total`.
    Untyped,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    Nothing,
    Each,
    /// One series: the sum over all processors or disks.
    Sum,
    /// The sum over all interfaces to other hosts.
    SumOutside,
    /// The sum over all processors for each of their [`MODES`].
    SumByMode,
}

/// Metrics that do not grow during a stable load.
pub const STABILITY: &str = "stability";
/// Metrics that show what limits the service at the border of a capacity search.
pub const CAPACITY: &str = "capacity";

/// CPU seconds of a host by processor and mode, and those of a program's processes.
pub const PROCESSORS: &str = "node_cpu_seconds_total";
pub const PROCESS: &str = "throng_process_cpu_seconds_total";
/// Memory of a program's processes, and total and available memory of a host.
pub const RESIDENT: &str = "throng_process_resident_bytes";
pub const MEMORY: &str = "node_memory_MemTotal_bytes";
pub const AVAILABLE: &str = "node_memory_MemAvailable_bytes";
/// The modes of a processor, and whether it is busy in them.
pub const MODES: [(&str, bool); 8] = [
    ("user", true),
    ("nice", true),
    ("system", true),
    ("idle", false),
    ("iowait", false),
    ("irq", true),
    ("softirq", true),
    ("steal", true),
];

impl Series {
    /// The properties of a series, by its name with or without labels.
    pub fn find(name: &str) -> Option<&'static Series> {
        let base = base(name);
        let of_host = place(base).map(|place| &ALL[place]);
        of_host.or_else(|| OF_SERVICES.iter().find(|series| series.name == base))
    }
}

/// The index in [`ALL`] of a name without labels.
pub fn place(name: &str) -> Option<usize> {
    PLACES.get(name).copied()
}

/// The name of a series without its labels.
pub fn base(name: &str) -> &str {
    name.split('{').next().unwrap_or_default()
}

/// The value of a label of a series: `shop` of `name` in `up{name="shop"}`.
pub fn label<'a>(series: &'a str, name: &str) -> Option<&'a str> {
    let labels = series.split_once('{')?.1;
    let start = format!("{name}=\"");
    let mut places = labels.match_indices(&start).map(|(at, _)| at);
    let at = places.find(|at| *at == 0 || labels.as_bytes()[at - 1] == b',')?;
    labels[at + start.len()..].split('"').next()
}

/// Whether a series counts bytes.
pub fn is_bytes(name: &str) -> bool {
    ["_bytes", "_bytes_total"].iter().any(|ending| base(name).ends_with(ending))
}

static PLACES: LazyLock<HashMap<&'static str, usize>> =
    LazyLock::new(|| ALL.iter().enumerate().map(|(place, series)| (series.name, place)).collect());

macro_rules! table {
    ($($kind:ident $kept:ident $name:literal: $help:literal
        $(, of $limit:literal)? $(, for $($used:expr),+)?;)+) => {
        &[$(Series {
            name: $name,
            kind: SeriesKind::$kind,
            help: $help,
            kept: Kept::$kept,
            limit: &[$($limit)?],
            used_by: &[$($($used),+)?],
        },)+]
    };
}

/// Series of services that findings also use. A run stores all metrics of a monitor's services.
pub static OF_SERVICES: &[Series] = table! {
    Gauge Nothing "process_open_fds": "Open descriptors.", for STABILITY;
    Gauge Nothing "process_resident_memory_bytes": "Resident memory, in bytes.", for STABILITY;
    Counter Nothing "haproxy_backend_retry_warnings_total":
        "Requests that HAProxy sent again.", for "amplified";
};

/// The metrics that `throng monitor` reads from its host, in the order of its output. Those of
/// listening sockets come last: a host may have more of them than a run stores series per source.
pub static ALL: &[Series] = table! {
    Gauge Nothing "node_time_seconds": "Time of this host when it was read, in seconds since 1970.";
    Gauge Each "node_boot_time_seconds": "Start of this host, in seconds since 1970.";
    Gauge Each "throng_host_info": "Information about this host, in labels; always 1.";
    Gauge Nothing "throng_host_cores": "Processors that are online.";
    Gauge Nothing "throng_host_setting": "A kernel setting, by `name`.";
    Counter SumByMode "node_cpu_seconds_total":
        "CPU time by `cpu` and `mode`, in seconds.", for "saturated", CAPACITY;
    Gauge Each "throng_cpu_busiest_share":
        "Maximum CPU share of the busiest processor in the window, 0 to 1.", for CAPACITY;
    Gauge Each "node_load1": "Load average over 1 minute.";
    Gauge Nothing "node_procs_running": "Threads that run or could run.";
    Gauge Nothing "node_procs_blocked": "Threads that wait for a disk.";
    Counter Nothing "node_context_switches_total": "Context switches.";
    Counter Nothing "node_forks_total": "Processes and threads that were started.";
    Gauge Each "node_memory_MemTotal_bytes": "All memory, in bytes.";
    Gauge Nothing "node_memory_MemFree_bytes": "Memory that is not used at all, in bytes.";
    Gauge Each "node_memory_MemAvailable_bytes": "Memory that programs can still take, in bytes.";
    Gauge Nothing "node_memory_Buffers_bytes": "Memory of file system metadata, in bytes.";
    Gauge Nothing "node_memory_Cached_bytes": "Memory of the page cache, in bytes.";
    Gauge Nothing "node_memory_SwapTotal_bytes": "All swap space, in bytes.";
    Gauge Nothing "node_memory_SwapFree_bytes": "Swap space that is not used, in bytes.";
    Gauge Nothing "node_memory_Dirty_bytes": "Memory that waits to be written to disk, in bytes.";
    Gauge Nothing "node_memory_Slab_bytes": "Memory of kernel objects, in bytes.";
    Gauge Nothing "node_memory_SUnreclaim_bytes":
        "Memory of kernel objects that cannot be given back, in bytes.";
    Untyped Each "node_vmstat_pgmajfault": "Page faults that had to read a disk.";
    Untyped Nothing "node_vmstat_pswpin": "Pages that were read from swap.";
    Untyped Nothing "node_vmstat_pswpout": "Pages that were written to swap.";
    Untyped Each "node_vmstat_oom_kill":
        "Processes that the kernel killed because memory ran out.", for "memory-short";
    Counter Each "node_pressure_cpu_waiting_seconds_total":
        "Time in which some thread waited for a processor, in seconds.";
    Counter Each "node_pressure_io_waiting_seconds_total":
        "Time in which some thread waited for a disk, in seconds.";
    Counter Each "node_pressure_io_stalled_seconds_total":
        "Time in which all threads waited for a disk, in seconds.", for "disk-bound";
    Counter Each "node_pressure_memory_waiting_seconds_total":
        "Time in which some thread waited for memory, in seconds.";
    Counter Each "node_pressure_memory_stalled_seconds_total":
        "Time in which all threads waited for memory, in seconds.", for "memory-short";
    Gauge Each "node_filefd_allocated": "Open files of the host.";
    Gauge Each "node_filefd_maximum": "Limit of open files of the host (`fs.file-max`).";
    Counter Nothing "node_disk_reads_completed_total": "Reads of `device`.";
    Counter Sum "node_disk_read_bytes_total": "Bytes read from `device`.";
    Counter Nothing "node_disk_writes_completed_total": "Writes to `device`.";
    Counter Sum "node_disk_written_bytes_total": "Bytes written to `device`.";
    Counter Sum "node_disk_io_time_seconds_total": "Time in which `device` was busy, in seconds.";
    Counter Sum "node_disk_io_time_weighted_seconds_total":
        "Time that operations of `device` took, added up, in seconds.";
    Counter SumOutside "node_network_receive_bytes_total": "Bytes received by `device`.";
    Counter Nothing "node_network_receive_packets_total": "Packets received by `device`.";
    Counter Nothing "node_network_receive_errs_total": "Packets that `device` could not receive.";
    Counter SumOutside "node_network_receive_drop_total": "Received packets that `device` dropped.";
    Counter SumOutside "node_network_transmit_bytes_total": "Bytes sent by `device`.";
    Counter Nothing "node_network_transmit_packets_total": "Packets sent by `device`.";
    Counter Nothing "node_network_transmit_errs_total": "Packets that `device` could not send.";
    Counter SumOutside "node_network_transmit_drop_total":
        "Outbound packets that `device` dropped.";
    Untyped Each "node_netstat_TcpExt_ListenOverflows":
        "Connections that a listening socket dropped because its accept queue was full.";
    Untyped Each "node_netstat_TcpExt_ListenDrops":
        "Connections that a listening socket dropped for any reason, full accept queues included.";
    Untyped Each "node_netstat_TcpExt_TCPReqQFullDrop":
        "SYNs that were dropped because the SYN queue was full, without SYN cookies.";
    Untyped Each "node_netstat_TcpExt_TCPReqQFullDoCookies":
        "SYNs that were answered with SYN cookies because the SYN queue was full.";
    Untyped Each "node_netstat_TcpExt_SyncookiesSent": "SYN cookies sent.";
    Untyped Nothing "node_netstat_TcpExt_SyncookiesRecv": "SYN cookies that came back.";
    Untyped Nothing "node_netstat_TcpExt_SyncookiesFailed": "SYN cookies that came back invalid.";
    Untyped Each "node_netstat_TcpExt_TCPTimeouts": "Retransmission timeouts.";
    Untyped Each "node_netstat_TcpExt_TCPSynRetrans": "SYNs and SYN-ACKs that were sent again.";
    Untyped Nothing "node_netstat_TcpExt_TCPLostRetransmit":
        "Retransmitted segments that were lost again.";
    Untyped Nothing "node_netstat_TcpExt_TCPFastRetrans": "Fast retransmissions.";
    Untyped Nothing "node_netstat_TcpExt_TCPAbortOnData":
        "Connections that were reset with data still to be read.";
    Untyped Each "node_netstat_TcpExt_TCPAbortOnMemory":
        "Connections that were reset because TCP memory ran out.";
    Untyped Nothing "node_netstat_TcpExt_TCPAbortOnTimeout":
        "Connections that ended because the other side did not answer.";
    Untyped Nothing "node_netstat_TcpExt_TCPTimeWaitOverflow":
        "Connections that skipped TIME-WAIT because there were too many.";
    Untyped Nothing "node_netstat_TcpExt_TCPMemoryPressures":
        "Times that TCP came under memory pressure.";
    Untyped Nothing "node_netstat_TcpExt_TCPRcvQDrop":
        "Segments dropped because a receive queue was full.";
    Untyped Nothing "node_netstat_TcpExt_TCPBacklogDrop":
        "Segments dropped because the backlog of a socket was full.";
    Untyped Nothing "node_netstat_TcpExt_DelayedACKs": "Delayed ACKs sent.";
    Untyped Nothing "node_netstat_Tcp_ActiveOpens": "Connections that this host opened.";
    Untyped Each "node_netstat_Tcp_PassiveOpens": "Connections that this host accepted.";
    Untyped Nothing "node_netstat_Tcp_AttemptFails": "Connections that failed while they opened.";
    Untyped Each "node_netstat_Tcp_EstabResets": "Open connections that were reset.";
    Gauge Each "node_netstat_Tcp_CurrEstab": "Open connections.";
    Untyped Nothing "node_netstat_Tcp_InSegs": "Segments received.";
    Untyped Each "node_netstat_Tcp_OutSegs": "Segments sent, without retransmissions.";
    Untyped Each "node_netstat_Tcp_RetransSegs": "Segments that were sent again.",
        for "two-peaks";
    Untyped Nothing "node_netstat_Tcp_InErrs": "Bad segments received.";
    Untyped Each "node_netstat_Tcp_OutRsts": "RSTs sent.";
    Untyped Nothing "node_netstat_Udp_InDatagrams": "Datagrams received.";
    Untyped Nothing "node_netstat_Udp_OutDatagrams": "Datagrams sent.";
    Untyped Nothing "node_netstat_Udp_NoPorts": "Datagrams to a port without a socket.";
    Untyped Nothing "node_netstat_Udp_InErrors": "Datagrams that could not be delivered.";
    Untyped Each "node_netstat_Udp_RcvbufErrors":
        "Datagrams dropped because the receive buffer of their socket was full.";
    Untyped Nothing "node_netstat_Udp_SndbufErrors":
        "Datagrams that were not sent because the send buffer was full.";
    Gauge Each "node_sockstat_TCP_inuse": "Open TCP sockets.";
    Gauge Each "node_sockstat_TCP_orphan": "TCP sockets that no longer belong to a process.";
    Gauge Each "node_sockstat_TCP_tw": "TCP connections in TIME-WAIT.";
    Gauge Nothing "node_sockstat_TCP_alloc": "TCP sockets, whatever their state.";
    Gauge Each "node_sockstat_TCP_mem": "Memory of TCP buffers, in pages.";
    Gauge Nothing "node_sockstat_UDP_inuse": "UDP sockets.";
    Gauge Nothing "node_sockstat_UDP_mem": "Memory of UDP buffers, in pages.";
    Gauge Nothing "node_sockstat_sockets_used": "Sockets of all kinds.";
    Counter Nothing "node_softnet_processed_total": "Packets that processor `cpu` processed.";
    Counter Sum "node_softnet_dropped_total":
        "Packets dropped because the queue of processor `cpu` was full.";
    Counter Sum "node_softnet_times_squeezed_total":
        "Times that processor `cpu` ran out of time with packets left.";
    Gauge Each "node_nf_conntrack_entries":
        "Connections that the firewall tracks.",
        of "node_nf_conntrack_entries_limit", for "conntrack-full";
    Gauge Each "node_nf_conntrack_entries_limit":
        "Limit of tracked connections.", for "conntrack-full";
    Untyped Each "node_nf_conntrack_stat_drop":
        "Packets dropped because the table of tracked connections was full.", for "conntrack-full";
    Untyped Nothing "node_nf_conntrack_stat_early_drop":
        "Tracked connections that were removed early to make room.";
    Untyped Nothing "node_nf_conntrack_stat_insert_failed":
        "Connections that could not be tracked.";
    Gauge Each "throng_processes": "Processes with this `name`.";
    Counter Each "throng_process_cpu_seconds_total":
        "CPU time of all processes with this `name`, by `mode`, in seconds.";
    Gauge Each "throng_process_resident_bytes":
        "Resident memory of all processes with this `name`, in bytes.", for STABILITY;
    Gauge Each "throng_process_threads": "Threads of all processes with this `name`.";
    Gauge Each "throng_process_descriptors":
        "Open descriptors of the process with this `name` that is closest to its limit.",
        of "throng_process_descriptors_limit", for "descriptor-limit", STABILITY;
    Gauge Each "throng_process_descriptors_limit":
        "Descriptor limit of that process.", for "descriptor-limit";
    Gauge Each "throng_process_oldest_start_seconds":
        "Start of the oldest process with this `name`, in seconds since 1970.";
    Gauge Each "throng_process_newest_start_seconds":
        "Start of the newest process with this `name`, in seconds since 1970.";
    Counter Each "throng_process_started_total":
        "Processes with this `name` that started since the monitor started.",
        for "target-restarted";
    Counter Each "throng_process_ended_total":
        "Processes with this `name` that ended since the monitor started.", for "target-restarted";
    Counter Each "throng_cgroup_cpu_seconds_total":
        "CPU time of control group `group`, by `mode`, in seconds.";
    Gauge Each "throng_cgroup_cpu_limit": "CPU quota of control group `group`, in processors.";
    Counter Each "throng_cgroup_cpu_periods_total": "Periods of the CPU quota of `group`.";
    Counter Each "throng_cgroup_cpu_throttled_periods_total":
        "Periods in which the CPU quota stopped `group`.";
    Counter Each "throng_cgroup_cpu_throttled_seconds_total":
        "Time in which the CPU quota stopped threads of `group`, in seconds.";
    Gauge Each "throng_cgroup_memory_bytes":
        "Memory of control group `group`, page cache included, in bytes.", for STABILITY;
    Gauge Each "throng_cgroup_memory_limit_bytes":
        "Memory limit of control group `group`, in bytes.";
    Counter Each "throng_cgroup_oom_kills_total":
        "Processes of `group` that the kernel killed because memory ran out.", for "memory-short";
    Gauge Each "throng_cgroup_processes": "Processes and threads of control group `group`.";
    Gauge Each "throng_cgroup_processes_limit": "Limit on processes and threads of `group`.";
    Counter Each "throng_cgroup_pressure_waiting_seconds_total":
        "Time in which at least one thread of `group` waited for `resource`, in seconds.";
    Counter Each "throng_cgroup_pressure_stalled_seconds_total":
        "Time in which all threads of `group` waited for `resource`, in seconds.";
    Gauge Nothing "throng_source_up": "1 if service `source` could be read, 0 if not.";
    Counter Each "throng_monitor_cpu_seconds_total": "CPU time of this monitor, in seconds.";
    Gauge Each "throng_monitor_resident_bytes": "Resident memory of this monitor, in bytes.";
    Counter Each "throng_monitor_readings_total": "Readings that this monitor took.";
    Gauge Each "throng_listen_queue_max":
        "Connections that wait for accept(2) at `address` and `port`: the maximum in the window.";
    Gauge Each "throng_listen_queue_limit":
        "Limit of the accept queue (backlog) at `address` and `port`.";
    Counter Each "throng_listen_full_total":
        "Samples in which the accept queue at `address` and `port` was full.";
    Counter Each "throng_listen_drops_total":
        "Connections dropped by the sockets at `address` and `port`, as counted by the kernel.",
        for "accept-queue-full";
    Counter Nothing "throng_listen_looks_total": "Samples of the accept queues, ten per second.";
    Gauge Each "throng_tcp_connections":
        "Connections on the local `port`, by `state`; counted about every 30 s.";
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_follow_the_conventions() {
        assert_eq!(PLACES.len(), ALL.len());
        for series in ALL.iter().chain(OF_SERVICES) {
            let name = series.name;
            assert_eq!(series.kind == SeriesKind::Counter, name.ends_with("_total"), "{name}");
            assert!(series.help.ends_with('.') && !series.help.contains('\n'), "{name}");
            assert!(series.limit.iter().all(|limit| place(limit).is_some()), "{name}");
        }
    }

    #[test]
    fn labels_are_found_by_their_full_name() {
        let series = "throng_process_threads{group_name=\"a\",name=\"shop\"}";
        assert_eq!((base(series), label(series, "name")), ("throng_process_threads", Some("shop")));
        assert_eq!((label(series, "me"), label("up", "name")), (None, None));
        assert!(Series::find(series).is_some_and(|known| known.kept == Kept::Each));
    }
}
