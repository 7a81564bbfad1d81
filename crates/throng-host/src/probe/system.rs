//! Processors, memory, pressure and disks of the host, and its identity.

use throng_base::Clock;

use super::series::Figures;
use crate::facts::HostFacts;
use crate::kernel::{MODES, disks, named, pressures, processor_times, value};
use crate::system::ticks_per_second;
use crate::{ProcessUsage, Root};

/// A sector of `/proc/diskstats`, for any disk.
const SECTOR_BYTES: f64 = 512.0;
const MEMORY: [&str; 10] = [
    "MemTotal",
    "MemFree",
    "MemAvailable",
    "Buffers",
    "Cached",
    "SwapTotal",
    "SwapFree",
    "Dirty",
    "Slab",
    "SUnreclaim",
];
const VMSTAT: [&str; 4] = ["pgmajfault", "pswpin", "pswpout", "oom_kill"];
/// The kernel counts no `full` pressure of processors for the whole system.
const PRESSURES: [(&str, &str, &str); 5] = [
    ("cpu", "some", "node_pressure_cpu_waiting_seconds_total"),
    ("io", "some", "node_pressure_io_waiting_seconds_total"),
    ("io", "full", "node_pressure_io_stalled_seconds_total"),
    ("memory", "some", "node_pressure_memory_waiting_seconds_total"),
    ("memory", "full", "node_pressure_memory_stalled_seconds_total"),
];
/// The settings that limit the number of connections of a service.
const SETTINGS: [&str; 8] = [
    "fs.nr_open",
    "kernel.pid_max",
    "kernel.threads-max",
    "net.core.netdev_max_backlog",
    "net.core.somaxconn",
    "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_max_tw_buckets",
    "net.ipv4.tcp_syncookies",
];

pub(super) fn read(root: &Root, throng_version: &str, figures: &mut Figures) {
    figures.add("node_time_seconds", &[], (Clock::start().unix_nanos() / 1_000_000) as f64 / 1e3);
    host(&HostFacts::read(root, throng_version), figures);
    for name in SETTINGS {
        let value = root.number(format!("proc/sys/{}", name.replace('.', "/")));
        figures.maybe("throng_host_setting", &[("name", name)], value);
    }
    processors(&root.read("proc/stat").unwrap_or_default(), figures);
    let load = root.line("proc/loadavg").unwrap_or_default();
    if let Some(load) = load.split(' ').next().and_then(|word| word.parse().ok()) {
        figures.add("node_load1", &[], load);
    }
    memory(root, figures);
    for (resource, kind, name) in PRESSURES {
        let text = root.read(format!("proc/pressure/{resource}")).unwrap_or_default();
        if let Some(row) = pressures(&text).find(|row| row.kind == kind) {
            figures.add(name, &[], row.total_us as f64 / 1e6);
        }
    }
    let files = root.numbers::<u64, 3>("proc/sys/fs/file-nr");
    figures.maybe("node_filefd_allocated", &[], files.map(|files| files[0]));
    figures.maybe("node_filefd_maximum", &[], files.map(|files| files[2]));
    disk(&root.read("proc/diskstats").unwrap_or_default(), figures);
    own(root, figures);
}

fn host(facts: &HostFacts, figures: &mut Figures) {
    let text = |fact: &Option<String>| fact.clone().unwrap_or_default();
    let (hostname, kernel, os) = (text(&facts.hostname), text(&facts.kernel), text(&facts.os));
    let (model, machine) = (text(&facts.cpu_model), text(&facts.virtualisation));
    let labels = [
        ("hostname", hostname.as_str()),
        ("os", &os),
        ("kernel", &kernel),
        ("cpu", &model),
        ("machine", &machine),
        ("throng", &facts.throng_version),
    ];
    figures.add("throng_host_info", &labels, 1.0);
    figures.maybe("throng_host_cores", &[], facts.cores);
}

fn processors(text: &str, figures: &mut Figures) {
    let a_second = ticks_per_second();
    for (name, ticks) in processor_times(text) {
        let cpu = &name[3..];
        for (mode, ticks) in MODES.iter().zip(ticks).filter(|_| !cpu.is_empty()) {
            let labels = [("cpu", cpu), ("mode", *mode)];
            figures.add("node_cpu_seconds_total", &labels, ticks as f64 / a_second);
        }
    }
    let rows = [
        ("btime", "node_boot_time_seconds"),
        ("procs_running", "node_procs_running"),
        ("procs_blocked", "node_procs_blocked"),
        ("ctxt", "node_context_switches_total"),
        ("processes", "node_forks_total"),
    ];
    for (word, name) in rows {
        figures.maybe(name, &[], value(text, word));
    }
}

fn memory(root: &Root, figures: &mut Figures) {
    let text = root.read("proc/meminfo").unwrap_or_default();
    for name in MEMORY {
        let bytes = crate::facts::kilobytes(&text, name);
        figures.maybe(&format!("node_memory_{name}_bytes"), &[], bytes);
    }
    let text = root.read("proc/vmstat").unwrap_or_default();
    for (name, value) in named(&text).filter(|(name, _)| VMSTAT.contains(name)) {
        figures.add(&format!("node_vmstat_{name}"), &[], value as f64);
    }
}

fn disk(text: &str, figures: &mut Figures) {
    for disk in disks(text).filter(|disk| is_whole_disk(disk.name)) {
        let device = [("device", disk.name)];
        let rows = [
            ("node_disk_reads_completed_total", disk.reads as f64),
            ("node_disk_read_bytes_total", disk.read_sectors as f64 * SECTOR_BYTES),
            ("node_disk_writes_completed_total", disk.writes as f64),
            ("node_disk_written_bytes_total", disk.written_sectors as f64 * SECTOR_BYTES),
            ("node_disk_io_time_seconds_total", disk.busy_ms as f64 / 1e3),
            ("node_disk_io_time_weighted_seconds_total", disk.weighted_ms as f64 / 1e3),
        ];
        rows.into_iter().for_each(|(name, value)| figures.add(name, &device, value));
    }
}

/// The disks that node_exporter shows: without partitions and virtual devices.
fn is_whole_disk(name: &str) -> bool {
    let base = name.trim_end_matches(|c: char| c.is_ascii_digit());
    if base == name {
        return true;
    }
    let is_lettered = |start: &str| {
        base.strip_prefix(start).is_some_and(|rest| rest.len() == 1 && rest.is_ascii())
    };
    let is_numbered =
        base.ends_with('p') && ["nvme", "mmcblk"].iter().any(|start| base.starts_with(start));
    !(["ram", "zram", "loop", "fd"].contains(&base)
        || ["hd", "sd", "vd", "xvd"].into_iter().any(is_lettered)
        || is_numbered)
}

/// The cost of this process.
fn own(root: &Root, figures: &mut Figures) {
    let usage = ProcessUsage::read(root);
    let cpu_ns = usage.cpu_user_ns + usage.cpu_system_ns;
    figures.add("throng_monitor_cpu_seconds_total", &[], cpu_ns as f64 / 1e9);
    figures.add("throng_monitor_resident_bytes", &[], usage.memory_bytes as f64);
}

#[cfg(test)]
mod tests {
    use super::is_whole_disk;

    #[test]
    fn partitions_and_loop_devices_are_not_disks() {
        for disk in ["sda", "vdb", "xvda", "nvme0n1", "mmcblk0", "dm-3", "md0", "sr0"] {
            assert!(is_whole_disk(disk), "{disk}");
        }
        for other in ["sda1", "vdb12", "xvda1", "nvme0n1p2", "mmcblk0p1", "loop7", "ram0", "zram0"]
        {
            assert!(!is_whole_disk(other), "{other}");
        }
    }
}
