//! Every series that a probe may have, and the texts that they become.
//! <https://prometheus.io/docs/specs/om/open_metrics_spec/>

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::LazyLock;

/// What is known of all samples of one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Series {
    pub name: &'static str,
    pub kind: Kind,
    /// With its unit.
    pub help: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It only grows, and begins again at 0.
    Counter,
    Gauge,
    /// A counter that node_exporter gives no type, and no name that ends in `_total`.
    Untyped,
}

/// Which text is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Prometheus 0.0.4.
    Text,
    /// OpenMetrics 1.0.
    OpenMetrics,
}

impl Format {
    /// By what a reader accepts.
    pub fn accepted(accept: &str) -> Format {
        match accept.contains("application/openmetrics-text") {
            true => Format::OpenMetrics,
            false => Format::Text,
        }
    }

    pub fn content_type(self) -> &'static str {
        match self {
            Format::Text => "text/plain; version=0.0.4; charset=utf-8",
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// Samples of one reading, by series.
#[derive(Clone, Debug, Default)]
pub struct Figures(Vec<Sample>);

#[derive(Clone, Debug)]
struct Sample {
    /// Its place in [`ALL`].
    series: usize,
    /// As they stand in the text, without brackets.
    labels: String,
    value: f64,
}

impl Figures {
    /// One sample more. A value that is not finite is left out.
    pub fn add(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let series = PLACES.get(name).copied();
        debug_assert!(series.is_some(), "{name} is not in the table");
        let Some(series) = series.filter(|_| value.is_finite()) else { return };
        self.0.push(Sample { series, labels: labels_text(labels), value });
    }

    /// As [`Figures::add`], where there is a value.
    pub fn maybe(&mut self, name: &str, labels: &[(&str, &str)], value: Option<u64>) {
        if let Some(value) = value {
            self.add(name, labels, value as f64);
        }
    }

    /// The value of one series.
    pub fn value(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let (series, labels) = (*PLACES.get(name)?, labels_text(labels));
        let is_it = |sample: &&Sample| sample.series == series && sample.labels == labels;
        self.0.iter().find(is_it).map(|sample| sample.value)
    }

    /// The whole text, one line for each sample, series by series, then the lines of others; it
    /// ends with `# EOF`.
    pub fn text(&self, format: Format, others: &str) -> String {
        let mut samples: Vec<&Sample> = self.0.iter().collect();
        samples.sort_by_key(|sample| sample.series);
        let mut text = String::new();
        let mut before = None;
        for sample in samples {
            let series = &ALL[sample.series];
            if before.replace(sample.series) != Some(sample.series) {
                head(&mut text, series, format);
            }
            text.push_str(series.name);
            if !sample.labels.is_empty() {
                let _ = write!(text, "{{{}}}", sample.labels);
            }
            let _ = writeln!(text, " {}", sample.value);
        }
        text.push_str(others);
        text.push_str("# EOF\n");
        text
    }
}

fn head(text: &mut String, series: &Series, format: Format) {
    let (name, kind) = match (series.kind, format) {
        // OpenMetrics names a counter without the ending of its samples.
        (Kind::Counter, Format::OpenMetrics) => {
            (series.name.strip_suffix("_total").unwrap_or(series.name), "counter")
        }
        (Kind::Counter, Format::Text) => (series.name, "counter"),
        (Kind::Gauge, _) => (series.name, "gauge"),
        (Kind::Untyped, Format::OpenMetrics) => (series.name, "unknown"),
        (Kind::Untyped, Format::Text) => (series.name, "untyped"),
    };
    let _ = writeln!(text, "# HELP {name} {}\n# TYPE {name} {kind}", series.help);
}

/// Whether a series has this name.
pub fn is_known(name: &str) -> bool {
    PLACES.contains_key(name)
}

/// Labels as they stand between the brackets of a sample.
pub fn labels_text(labels: &[(&str, &str)]) -> String {
    let mut text = String::new();
    for (name, value) in labels {
        if !text.is_empty() {
            text.push(',');
        }
        let _ = write!(text, "{name}=\"");
        for letter in value.chars() {
            match letter {
                '\\' => text.push_str("\\\\"),
                '"' => text.push_str("\\\""),
                '\n' => text.push_str("\\n"),
                other => text.push(other),
            }
        }
        text.push('"');
    }
    text
}

static PLACES: LazyLock<HashMap<&'static str, usize>> =
    LazyLock::new(|| ALL.iter().enumerate().map(|(place, series)| (series.name, place)).collect());

const fn counter(name: &'static str, help: &'static str) -> Series {
    Series { name, kind: Kind::Counter, help }
}

const fn gauge(name: &'static str, help: &'static str) -> Series {
    Series { name, kind: Kind::Gauge, help }
}

const fn untyped(name: &'static str, help: &'static str) -> Series {
    Series { name, kind: Kind::Untyped, help }
}

/// In the order of the texts.
pub static ALL: &[Series] = &[
    gauge("node_time_seconds", "Time of this host when it was read, in seconds since 1970."),
    gauge("node_boot_time_seconds", "Start of this host, in seconds since 1970."),
    gauge("throng_host_info", "What this host is, in labels; always 1."),
    gauge("throng_host_cores", "Processors that are online."),
    gauge("throng_host_setting", "A kernel setting, by `name`."),
    counter("node_cpu_seconds_total", "CPU time by `cpu` and `mode`, in seconds."),
    gauge(
        "throng_cpu_busiest_share",
        "CPU share of the busiest processor, 0 to 1: its maximum in the window.",
    ),
    gauge("node_load1", "Load average over 1 minute."),
    gauge("node_procs_running", "Threads that run or could run."),
    gauge("node_procs_blocked", "Threads that wait for a disk."),
    counter("node_context_switches_total", "Context switches."),
    counter("node_forks_total", "Processes and threads that were started."),
    gauge("node_memory_MemTotal_bytes", "All memory, in bytes."),
    gauge("node_memory_MemFree_bytes", "Memory that is not used at all, in bytes."),
    gauge("node_memory_MemAvailable_bytes", "Memory that programs can still take, in bytes."),
    gauge("node_memory_Buffers_bytes", "Memory of file system metadata, in bytes."),
    gauge("node_memory_Cached_bytes", "Memory of the page cache, in bytes."),
    gauge("node_memory_SwapTotal_bytes", "All swap space, in bytes."),
    gauge("node_memory_SwapFree_bytes", "Swap space that is not used, in bytes."),
    gauge("node_memory_Dirty_bytes", "Memory that waits to be written to disk, in bytes."),
    gauge("node_memory_Slab_bytes", "Memory of kernel objects, in bytes."),
    gauge(
        "node_memory_SUnreclaim_bytes",
        "Memory of kernel objects that cannot be given back, in bytes.",
    ),
    untyped("node_vmstat_pgmajfault", "Page faults that had to read a disk."),
    untyped("node_vmstat_pswpin", "Pages that were read from swap."),
    untyped("node_vmstat_pswpout", "Pages that were written to swap."),
    untyped("node_vmstat_oom_kill", "Processes that the kernel killed because memory ran out."),
    counter(
        "node_pressure_cpu_waiting_seconds_total",
        "Time in which some thread waited for a processor, in seconds.",
    ),
    counter(
        "node_pressure_io_waiting_seconds_total",
        "Time in which some thread waited for a disk, in seconds.",
    ),
    counter(
        "node_pressure_io_stalled_seconds_total",
        "Time in which all threads waited for a disk, in seconds.",
    ),
    counter(
        "node_pressure_memory_waiting_seconds_total",
        "Time in which some thread waited for memory, in seconds.",
    ),
    counter(
        "node_pressure_memory_stalled_seconds_total",
        "Time in which all threads waited for memory, in seconds.",
    ),
    gauge("node_filefd_allocated", "Open files of the host."),
    gauge("node_filefd_maximum", "Limit of open files of the host (`fs.file-max`)."),
    counter("node_disk_reads_completed_total", "Reads of `device`."),
    counter("node_disk_read_bytes_total", "Bytes read from `device`."),
    counter("node_disk_writes_completed_total", "Writes to `device`."),
    counter("node_disk_written_bytes_total", "Bytes written to `device`."),
    counter("node_disk_io_time_seconds_total", "Time in which `device` was busy, in seconds."),
    counter(
        "node_disk_io_time_weighted_seconds_total",
        "Time that operations of `device` took, added up, in seconds.",
    ),
    counter("node_network_receive_bytes_total", "Bytes received by `device`."),
    counter("node_network_receive_packets_total", "Packets received by `device`."),
    counter("node_network_receive_errs_total", "Packets that `device` could not receive."),
    counter("node_network_receive_drop_total", "Received packets that `device` dropped."),
    counter("node_network_transmit_bytes_total", "Bytes sent by `device`."),
    counter("node_network_transmit_packets_total", "Packets sent by `device`."),
    counter("node_network_transmit_errs_total", "Packets that `device` could not send."),
    counter("node_network_transmit_drop_total", "Outbound packets that `device` dropped."),
    untyped(
        "node_netstat_TcpExt_ListenOverflows",
        "Connections that a listening socket dropped because its accept queue was full.",
    ),
    untyped(
        "node_netstat_TcpExt_ListenDrops",
        "Connections that a listening socket dropped for any reason, full accept queues included.",
    ),
    untyped(
        "node_netstat_TcpExt_TCPReqQFullDrop",
        "SYNs that were dropped because the SYN queue was full, without SYN cookies.",
    ),
    untyped(
        "node_netstat_TcpExt_TCPReqQFullDoCookies",
        "SYNs that were answered with SYN cookies because the SYN queue was full.",
    ),
    untyped("node_netstat_TcpExt_SyncookiesSent", "SYN cookies sent."),
    untyped("node_netstat_TcpExt_SyncookiesRecv", "SYN cookies that came back."),
    untyped("node_netstat_TcpExt_SyncookiesFailed", "SYN cookies that came back invalid."),
    untyped("node_netstat_TcpExt_TCPTimeouts", "Retransmission timeouts."),
    untyped("node_netstat_TcpExt_TCPSynRetrans", "SYNs and SYN-ACKs that were sent again."),
    untyped(
        "node_netstat_TcpExt_TCPLostRetransmit",
        "Retransmitted segments that were lost again.",
    ),
    untyped("node_netstat_TcpExt_TCPFastRetrans", "Fast retransmissions."),
    untyped(
        "node_netstat_TcpExt_TCPAbortOnData",
        "Connections that were reset with data still to be read.",
    ),
    untyped(
        "node_netstat_TcpExt_TCPAbortOnMemory",
        "Connections that were reset because TCP memory ran out.",
    ),
    untyped(
        "node_netstat_TcpExt_TCPAbortOnTimeout",
        "Connections that ended because the other side did not answer.",
    ),
    untyped(
        "node_netstat_TcpExt_TCPTimeWaitOverflow",
        "Connections that skipped TIME-WAIT because there were too many.",
    ),
    untyped("node_netstat_TcpExt_TCPMemoryPressures", "Times that TCP came under memory pressure."),
    untyped(
        "node_netstat_TcpExt_TCPRcvQDrop",
        "Segments dropped because a receive queue was full.",
    ),
    untyped(
        "node_netstat_TcpExt_TCPBacklogDrop",
        "Segments dropped because the backlog of a socket was full.",
    ),
    untyped("node_netstat_TcpExt_DelayedACKs", "Delayed ACKs sent."),
    untyped("node_netstat_Tcp_ActiveOpens", "Connections that this host opened."),
    untyped("node_netstat_Tcp_PassiveOpens", "Connections that this host accepted."),
    untyped("node_netstat_Tcp_AttemptFails", "Connections that failed while they opened."),
    untyped("node_netstat_Tcp_EstabResets", "Open connections that were reset."),
    gauge("node_netstat_Tcp_CurrEstab", "Open connections."),
    untyped("node_netstat_Tcp_InSegs", "Segments received."),
    untyped("node_netstat_Tcp_OutSegs", "Segments sent, without retransmissions."),
    untyped("node_netstat_Tcp_RetransSegs", "Segments that were sent again."),
    untyped("node_netstat_Tcp_InErrs", "Bad segments received."),
    untyped("node_netstat_Tcp_OutRsts", "RSTs sent."),
    untyped("node_netstat_Udp_InDatagrams", "Datagrams received."),
    untyped("node_netstat_Udp_OutDatagrams", "Datagrams sent."),
    untyped("node_netstat_Udp_NoPorts", "Datagrams to a port without a socket."),
    untyped("node_netstat_Udp_InErrors", "Datagrams that could not be delivered."),
    untyped(
        "node_netstat_Udp_RcvbufErrors",
        "Datagrams dropped because the receive buffer of their socket was full.",
    ),
    untyped(
        "node_netstat_Udp_SndbufErrors",
        "Datagrams that were not sent because the send buffer was full.",
    ),
    gauge("node_sockstat_TCP_inuse", "Open TCP sockets."),
    gauge("node_sockstat_TCP_orphan", "TCP sockets that no longer belong to a process."),
    gauge("node_sockstat_TCP_tw", "TCP connections in TIME-WAIT."),
    gauge("node_sockstat_TCP_alloc", "TCP sockets, whatever their state."),
    gauge("node_sockstat_TCP_mem", "Memory of TCP buffers, in pages."),
    gauge("node_sockstat_UDP_inuse", "UDP sockets."),
    gauge("node_sockstat_UDP_mem", "Memory of UDP buffers, in pages."),
    gauge("node_sockstat_sockets_used", "Sockets of all kinds."),
    counter("node_softnet_processed_total", "Packets that processor `cpu` processed."),
    counter(
        "node_softnet_dropped_total",
        "Packets dropped because the queue of processor `cpu` was full.",
    ),
    counter(
        "node_softnet_times_squeezed_total",
        "Times that processor `cpu` ran out of time with packets left.",
    ),
    gauge("node_nf_conntrack_entries", "Connections that the firewall tracks."),
    gauge("node_nf_conntrack_entries_limit", "Limit of tracked connections."),
    untyped(
        "node_nf_conntrack_stat_drop",
        "Packets dropped because the table of tracked connections was full.",
    ),
    untyped(
        "node_nf_conntrack_stat_early_drop",
        "Tracked connections that were removed early to make room.",
    ),
    untyped("node_nf_conntrack_stat_insert_failed", "Connections that could not be tracked."),
    gauge(
        "throng_listen_queue_max",
        "Connections that wait for accept(2) at `address` and `port`: the maximum in the window.",
    ),
    gauge(
        "throng_listen_queue_limit",
        "Limit of the accept queue (backlog) at `address` and `port`.",
    ),
    counter(
        "throng_listen_full_total",
        "Samples that found the accept queue at `address` and `port` full.",
    ),
    counter(
        "throng_listen_drops_total",
        "Connections that the sockets at `address` and `port` dropped, as the kernel counts them.",
    ),
    counter("throng_listen_looks_total", "Samples of the accept queues, ten per second."),
    gauge(
        "throng_tcp_connections",
        "Connections of the local `port` by `state`, counted about every 30 s.",
    ),
    gauge("throng_processes", "Processes of this `name`."),
    counter(
        "throng_process_cpu_seconds_total",
        "CPU time of all processes of this `name` by `mode`, in seconds.",
    ),
    gauge(
        "throng_process_resident_bytes",
        "Resident memory of all processes of this `name`, in bytes.",
    ),
    gauge("throng_process_threads", "Threads of all processes of this `name`."),
    gauge(
        "throng_process_descriptors",
        "Open descriptors of the process of this `name` that is nearest to its limit.",
    ),
    gauge("throng_process_descriptors_limit", "Descriptor limit of that process."),
    gauge(
        "throng_process_oldest_start_seconds",
        "Start of the oldest process of this `name`, in seconds since 1970.",
    ),
    gauge(
        "throng_process_newest_start_seconds",
        "Start of the newest process of this `name`, in seconds since 1970.",
    ),
    counter(
        "throng_process_started_total",
        "Processes of this `name` that started since the monitor did.",
    ),
    counter(
        "throng_process_ended_total",
        "Processes of this `name` that ended since the monitor started.",
    ),
    counter(
        "throng_cgroup_cpu_seconds_total",
        "CPU time of control group `group` by `mode`, in seconds.",
    ),
    gauge("throng_cgroup_cpu_limit", "CPU quota of control group `group`, in processors."),
    counter("throng_cgroup_cpu_periods_total", "Periods of the CPU quota of `group`."),
    counter(
        "throng_cgroup_cpu_throttled_periods_total",
        "Periods in which the CPU quota stopped `group`.",
    ),
    counter(
        "throng_cgroup_cpu_throttled_seconds_total",
        "Time for which the CPU quota stopped threads of `group`, in seconds.",
    ),
    gauge(
        "throng_cgroup_memory_bytes",
        "Memory of control group `group`, page cache included, in bytes.",
    ),
    gauge("throng_cgroup_memory_limit_bytes", "Memory limit of control group `group`, in bytes."),
    counter(
        "throng_cgroup_oom_kills_total",
        "Processes of `group` that the kernel killed because memory ran out.",
    ),
    gauge("throng_cgroup_processes", "Processes and threads of control group `group`."),
    gauge("throng_cgroup_processes_limit", "Limit of processes and threads of `group`."),
    counter(
        "throng_cgroup_pressure_waiting_seconds_total",
        "Time in which some thread of `group` waited for `resource`, in seconds.",
    ),
    counter(
        "throng_cgroup_pressure_stalled_seconds_total",
        "Time in which all threads of `group` waited for `resource`, in seconds.",
    ),
    gauge("throng_source_up", "1 if service `source` could be read, 0 if not."),
    counter("throng_monitor_cpu_seconds_total", "CPU time of this monitor, in seconds."),
    gauge("throng_monitor_resident_bytes", "Resident memory of this monitor, in bytes."),
    counter("throng_monitor_readings_total", "Readings that this monitor took."),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_each_series_once_and_escapes_labels() {
        let mut figures = Figures::default();
        figures.add("node_load1", &[], 0.5);
        figures.add("node_cpu_seconds_total", &[("cpu", "0"), ("mode", "user")], 2.25);
        figures.add("node_load1", &[], f64::NAN);
        figures.add("node_cpu_seconds_total", &[("cpu", "a\"b\\c\nd"), ("mode", "user")], 1e12);
        figures.add("node_netstat_TcpExt_ListenDrops", &[], 7.0);
        let text = figures.text(Format::OpenMetrics, "");
        let plain: Vec<&str> = text.lines().filter(|line| !line.starts_with("# HELP")).collect();
        assert_eq!(
            plain,
            [
                "# TYPE node_cpu_seconds counter",
                "node_cpu_seconds_total{cpu=\"0\",mode=\"user\"} 2.25",
                "node_cpu_seconds_total{cpu=\"a\\\"b\\\\c\\nd\",mode=\"user\"} 1000000000000",
                "# TYPE node_load1 gauge",
                "node_load1 0.5",
                "# TYPE node_netstat_TcpExt_ListenDrops unknown",
                "node_netstat_TcpExt_ListenDrops 7",
                "# EOF",
            ]
        );
        let text = figures.text(Format::Text, "");
        assert!(text.contains("# TYPE node_cpu_seconds_total counter\n"));
        assert!(text.contains("# TYPE node_netstat_TcpExt_ListenDrops untyped\n"));
    }

    #[test]
    fn names_are_unique_and_say_what_they_are() {
        assert_eq!(PLACES.len(), ALL.len());
        for series in ALL {
            let name = series.name;
            assert_eq!(series.kind == Kind::Counter, name.ends_with("_total"), "{name}");
            assert!(["node_", "throng_"].iter().any(|start| name.starts_with(start)), "{name}");
            assert!(!series.help.is_empty() && !series.help.contains('\n'), "{name}");
        }
    }

    /// The page names each; those that node_exporter does not have are in its table.
    #[test]
    fn the_page_lists_every_series() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/monitor.md");
        let page = std::fs::read_to_string(page).unwrap();
        for Series { name, kind, help } in ALL {
            let kind = if *kind == Kind::Gauge { "gauge" } else { "counter" };
            let row = match name.starts_with("node_") {
                true => format!("`{name}`"),
                false => format!("| `{name}` | {kind} | {help} |"),
            };
            assert!(page.contains(&row), "docs/monitor.md lacks {row}");
        }
    }
}
