//! The properties of a host: its name, kernel, processors, memory and the limits of a load.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::Root;
use crate::kernel::{OPEN_FILES, limits as limits_of};

/// The properties of a host. A value that could not be read is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostFacts {
    pub hostname: Option<String>,
    /// The release of the kernel, such as `6.18.5`.
    pub kernel: Option<String>,
    /// The distribution's own name, such as `Debian GNU/Linux 13 (trixie)`.
    pub os: Option<String>,
    pub cpu_model: Option<String>,
    /// Online processors.
    pub cores: Option<u64>,
    /// Processors that this process may run on (affinity).
    pub cores_usable: Option<u64>,
    /// The CPU limit of the control group, in processors.
    pub cgroup_cores_max: Option<f64>,
    pub memory_bytes: Option<u64>,
    pub cgroup_memory_bytes_max: Option<u64>,
    pub descriptors_soft_max: Option<u64>,
    pub descriptors_hard_max: Option<u64>,
    /// The largest value that a descriptor limit may be set to (`fs.nr_open`).
    pub nr_open: Option<u64>,
    /// Open files of the whole host (`fs.file-max`).
    pub file_max: Option<u64>,
    /// The range of source ports that the kernel chooses from.
    pub port_range: Option<(u16, u16)>,
    pub tcp_tw_reuse: Option<u64>,
    pub somaxconn: Option<u64>,
    /// Low, pressure and high mark of all TCP memory, in pages.
    pub tcp_mem_pages: Option<[u64; 3]>,
    pub clock_source: Option<String>,
    /// The virtualization of the machine unless it is bare metal: `KVM`, `VMware, docker`.
    pub virtualisation: Option<String>,
    pub throng_version: String,
}

/// The facts of this host, recorded by throng of the given version.
pub fn facts(throng_version: &str) -> HostFacts {
    HostFacts::read(&Root::default(), throng_version)
}

impl HostFacts {
    pub fn read(root: &Root, throng_version: &str) -> HostFacts {
        let cpuinfo = root.read("proc/cpuinfo").unwrap_or_default();
        let status = root.read("proc/self/status").unwrap_or_default();
        let limits = root.read("proc/self/limits").unwrap_or_default();
        let descriptors = limits_of(&limits, OPEN_FILES);
        let descriptors = |which: usize| Some(descriptors?[which]).filter(|it| *it < u64::MAX);
        HostFacts {
            hostname: root.line("proc/sys/kernel/hostname"),
            kernel: root.line("proc/sys/kernel/osrelease"),
            os: os_name(root),
            cpu_model: field(&cpuinfo, "model name").or_else(|| field(&cpuinfo, "Model")),
            cores: cores(root, &cpuinfo),
            cores_usable: field(&status, "Cpus_allowed_list").and_then(|list| listed(&list)),
            cgroup_cores_max: cgroup_cores(root),
            memory_bytes: root.read("proc/meminfo").and_then(|text| kilobytes(&text, "MemTotal")),
            cgroup_memory_bytes_max: cgroup_memory(root),
            descriptors_soft_max: descriptors(0),
            descriptors_hard_max: descriptors(1),
            nr_open: root.number("proc/sys/fs/nr_open"),
            file_max: root.number("proc/sys/fs/file-max"),
            port_range: port_range(root),
            tcp_tw_reuse: root.number("proc/sys/net/ipv4/tcp_tw_reuse"),
            somaxconn: root.number("proc/sys/net/core/somaxconn"),
            tcp_mem_pages: root.numbers("proc/sys/net/ipv4/tcp_mem"),
            clock_source: root
                .line("sys/devices/system/clocksource/clocksource0/current_clocksource"),
            virtualisation: virtualisation(root, &cpuinfo),
            throng_version: throng_version.to_string(),
        }
    }
}

/// The value of `name: value` in a text of such lines.
pub(crate) fn field(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name && !value.trim().is_empty()).then(|| value.trim().to_string())
    })
}

/// The value of `name: 123 kB`, in bytes.
pub(crate) fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let value = field(text, name)?;
    value.strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

fn os_name(root: &Root) -> Option<String> {
    let text = root.read("etc/os-release").or_else(|| root.read("usr/lib/os-release"))?;
    let value = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    let plain = value.trim().trim_matches(['"', '\'']);
    (!plain.is_empty()).then(|| plain.to_string())
}

pub(crate) fn cores(root: &Root, cpuinfo: &str) -> Option<u64> {
    if let Some(count) = root.line("sys/devices/system/cpu/online").and_then(|list| listed(&list)) {
        return Some(count);
    }
    let is_processor =
        |line: &&str| line.split(':').next().is_some_and(|k| k.trim() == "processor");
    let count = cpuinfo.lines().filter(is_processor).count() as u64;
    (count > 0).then_some(count)
}

/// The number of processors in a list such as `0-3,8,10-11`.
fn listed(list: &str) -> Option<u64> {
    list.trim().split(',').try_fold(0u64, |sum, part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
        sum.checked_add(last.checked_sub(first)?.checked_add(1)?)
    })
}

pub(crate) fn port_range(root: &Root) -> Option<(u16, u16)> {
    root.numbers::<u16, 2>("proc/sys/net/ipv4/ip_local_port_range").map(Into::into)
}

/// The directories of a control group from its own up to the root: a limit in any of them applies.
pub(crate) fn cgroup_directories(root: &Root, controller: &str) -> Vec<PathBuf> {
    cgroup_directories_in(&root.read("proc/self/cgroup").unwrap_or_default(), controller)
}

/// From the text of a process's `cgroup`.
pub(crate) fn cgroup_directories_in(text: &str, controller: &str) -> Vec<PathBuf> {
    let mut directories = Vec::new();
    for line in text.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(names), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        // Version 2 has one hierarchy without a name, version 1 one per controller.
        let top = match names {
            "" => PathBuf::from("sys/fs/cgroup"),
            _ if names.split(',').any(|name| name == controller) => {
                Path::new("sys/fs/cgroup").join(controller)
            }
            _ => continue,
        };
        let own = top.join(path.trim_start_matches('/'));
        let up = own.ancestors().take_while(|path| path.starts_with(&top));
        directories.extend(up.map(Path::to_path_buf));
    }
    directories
}

/// Version 1 writes "no limit" as a number near 2^63.
const MEMORY_BYTES_UNLIMITED: u64 = 1 << 60;

fn cgroup_memory(root: &Root) -> Option<u64> {
    memory_limit_of(root, &cgroup_directories(root, "memory"))
}

/// The lowest limit of these control groups.
pub(crate) fn memory_limit_of(root: &Root, directories: &[PathBuf]) -> Option<u64> {
    directories.iter().filter_map(|directory| memory_limit(root, directory)).min()
}

/// The limit of one control group, if it has one.
pub(crate) fn memory_limit(root: &Root, directory: &Path) -> Option<u64> {
    let limits = ["memory.max", "memory.limit_in_bytes"];
    let limits = limits.into_iter().filter_map(|name| root.number(directory.join(name)));
    limits.filter(|bytes| *bytes < MEMORY_BYTES_UNLIMITED).min()
}

fn cgroup_cores(root: &Root) -> Option<f64> {
    cores_limit_of(root, &cgroup_directories(root, "cpu"))
}

/// The lowest quota of these control groups, in processors.
pub(crate) fn cores_limit_of(root: &Root, directories: &[PathBuf]) -> Option<f64> {
    let limits = directories.iter().filter_map(|directory| {
        let (quota, period): (f64, f64) = match root.line(directory.join("cpu.max")) {
            Some(line) => {
                let (quota, period) = line.split_once(' ')?;
                (quota.parse().ok()?, period.trim().parse().ok()?)
            }
            None => (
                root.number(directory.join("cpu.cfs_quota_us"))? as f64,
                root.number(directory.join("cpu.cfs_period_us"))? as f64,
            ),
        };
        (quota > 0.0 && period > 0.0).then_some(quota / period)
    });
    limits.min_by(f64::total_cmp)
}

/// Vendors and products that identify a hypervisor, as the firmware reports them.
const HYPERVISORS: [(&str, &str); 9] = [
    ("KVM", "KVM"),
    ("QEMU", "QEMU"),
    ("Amazon EC2", "Amazon EC2"),
    ("Google Compute Engine", "Google Compute Engine"),
    ("VMware", "VMware"),
    ("VirtualBox", "VirtualBox"),
    ("Microsoft Corporation", "Hyper-V"),
    ("Xen", "Xen"),
    ("Alibaba Cloud", "Alibaba Cloud"),
];

fn virtualisation(root: &Root, cpuinfo: &str) -> Option<String> {
    let has_flag = field(cpuinfo, "flags")
        .is_some_and(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor"));
    // The vendor alone is not sufficient: Microsoft and Amazon sell physical machines, too.
    let firmware = ["sys/class/dmi/id/product_name", "sys/class/dmi/id/sys_vendor"];
    let named = firmware.iter().filter(|_| has_flag).filter_map(|path| root.line(path));
    let machine = named
        .filter_map(|name| HYPERVISORS.iter().find(|(word, _)| name.contains(word)))
        .map(|(_, name)| (*name).to_string())
        .next()
        .or_else(|| has_flag.then(|| "a virtual machine".to_string()));
    let container = root
        .line("run/systemd/container")
        .or_else(|| root.path(".dockerenv").exists().then(|| "docker".to_string()))
        .or_else(|| root.path("run/.containerenv").exists().then(|| "podman".to_string()));
    match (machine, container) {
        (Some(machine), Some(container)) => Some(format!("{machine}, {container}")),
        (machine, container) => machine.or(container),
    }
}
