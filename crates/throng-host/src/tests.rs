//! Hosts described by files, and one smoke test on the real one.

use std::fs;

use crate::facts::HostFacts;
use crate::{HostCpu, ProcessUsage, Root};

pub(crate) fn computer(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
    let directory = tempfile::tempdir().unwrap();
    let root = Root::new(directory.path());
    files.iter().for_each(|(path, text)| write(&root, path, text));
    (directory, root)
}

pub(crate) fn write(root: &Root, path: &str, text: &str) {
    let path = root.path(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

const LIMITS: &str = "\
Limit                     Soft Limit           Hard Limit           Units     
Max cpu time              unlimited            unlimited            seconds   
Max open files            1024                 unlimited            files     
";

#[test]
fn a_virtual_server_with_cgroup_2() {
    let (_directory, root) = computer(&[
        ("proc/sys/kernel/hostname", "box-1\n"),
        ("proc/sys/kernel/osrelease", "6.18.5-arch\n"),
        ("etc/os-release", "NAME=\"Debian\"\nPRETTY_NAME=\"Debian GNU/Linux 13 (trixie)\"\n"),
        (
            "proc/cpuinfo",
            "processor\t: 0\nmodel name\t: AMD EPYC 7B13\nflags\t\t: fpu hypervisor sse\n\n\
             processor\t: 1\nmodel name\t: AMD EPYC 7B13\n",
        ),
        ("sys/devices/system/cpu/online", "0-3,8\n"),
        (
            "proc/self/status",
            "Name:\tthrong\nVmRSS:\t    1620 kB\nThreads:\t9\nCpus_allowed_list:\t0,2-3\n",
        ),
        ("proc/meminfo", "MemTotal:       24682212 kB\nMemFree:         1 kB\n"),
        ("proc/self/limits", LIMITS),
        ("proc/sys/fs/nr_open", "1048576\n"),
        ("proc/sys/fs/file-max", "9223372036854775807\n"),
        ("proc/sys/net/ipv4/ip_local_port_range", "32768\t60999\n"),
        ("proc/sys/net/ipv4/tcp_tw_reuse", "2\n"),
        ("proc/sys/net/core/somaxconn", "4096\n"),
        ("proc/sys/net/ipv4/tcp_mem", "287901\t383869\t575802\n"),
        ("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n"),
        ("sys/class/dmi/id/product_name", "Google Compute Engine\n"),
        (".dockerenv", ""),
        ("proc/self/cgroup", "0::/user.slice/run\n"),
        ("sys/fs/cgroup/user.slice/run/memory.max", "max\n"),
        ("sys/fs/cgroup/user.slice/memory.max", "1073741824\n"),
        ("sys/fs/cgroup/user.slice/run/cpu.max", "150000 100000\n"),
        ("sys/fs/cgroup/cpu.max", "max 100000\n"),
    ]);
    let facts = HostFacts::read(&root, "0.1.0");
    let text = |text: &str| Some(text.to_string());
    let want = HostFacts {
        hostname: text("box-1"),
        kernel: text("6.18.5-arch"),
        os: text("Debian GNU/Linux 13 (trixie)"),
        cpu_model: text("AMD EPYC 7B13"),
        cores: Some(5),
        cores_usable: Some(3),
        cgroup_cores_max: Some(1.5),
        memory_bytes: Some(24_682_212 * 1024),
        cgroup_memory_bytes_max: Some(1 << 30),
        descriptors_soft_max: Some(1024),
        descriptors_hard_max: None,
        nr_open: Some(1_048_576),
        file_max: Some(9_223_372_036_854_775_807),
        port_range: Some((32768, 60999)),
        tcp_tw_reuse: Some(2),
        somaxconn: Some(4096),
        tcp_mem_pages: Some([287_901, 383_869, 575_802]),
        clock_source: text("tsc"),
        virtualisation: text("Google Compute Engine, docker"),
        throng_version: "0.1.0".into(),
    };
    assert_eq!(facts, want);
    let usage = ProcessUsage::read(&root);
    assert_eq!((usage.memory_bytes, usage.threads), (1620 * 1024, 9));
}

#[test]
fn cgroup_1_without_and_with_limits() {
    let (_directory, root) = computer(&[
        ("proc/self/cgroup", "4:memory:/jobs/a\n2:cpu,cpuacct:/jobs\n0::/\n"),
        ("sys/fs/cgroup/memory/jobs/a/memory.limit_in_bytes", "9223372036854771712\n"),
        ("sys/fs/cgroup/cpu/jobs/cpu.cfs_quota_us", "-1\n"),
        ("sys/fs/cgroup/cpu/jobs/cpu.cfs_period_us", "100000\n"),
    ]);
    let facts = HostFacts::read(&root, "");
    assert_eq!((facts.cgroup_memory_bytes_max, facts.cgroup_cores_max), (None, None));
    write(&root, "sys/fs/cgroup/memory/jobs/memory.limit_in_bytes", "536870912\n");
    write(&root, "sys/fs/cgroup/cpu/jobs/cpu.cfs_quota_us", "50000\n");
    let facts = HostFacts::read(&root, "");
    assert_eq!((facts.cgroup_memory_bytes_max, facts.cgroup_cores_max), (Some(1 << 29), Some(0.5)));
}

#[test]
fn unreadable_facts_are_absent() {
    let (_directory, root) = computer(&[]);
    let nothing = HostFacts { throng_version: "1".into(), ..HostFacts::default() };
    assert_eq!(HostFacts::read(&root, "1"), nothing);
    assert_eq!(HostCpu::new(root.clone()).since_last(), None);
    let garbage = "\u{0}:\n::::\nMax open files x\ncpu 1 2\n-\n0-\n9-1\n";
    for path in [
        "proc/cpuinfo",
        "proc/self/status",
        "proc/self/limits",
        "proc/self/cgroup",
        "proc/meminfo",
        "proc/stat",
        "sys/devices/system/cpu/online",
        "proc/sys/net/ipv4/tcp_mem",
        "proc/sys/net/ipv4/ip_local_port_range",
        "etc/os-release",
    ] {
        write(&root, path, garbage);
    }
    assert_eq!(HostFacts::read(&root, "1"), nothing);
    assert_eq!(HostCpu::new(root.clone()).since_last(), None);
    assert_eq!(ProcessUsage::read(&root).threads, 0);
}

#[test]
fn the_busy_share_covers_the_time_between_two_calls() {
    let (_directory, root) = computer(&[("proc/stat", "cpu  100 0 50 800 50 0 0 0 7 7\ncpu0 1\n")]);
    let mut cpu = HostCpu::new(root.clone());
    assert_eq!(cpu.since_last(), None, "no tick has passed");
    write(&root, "proc/stat", "cpu  150 0 60 820 70 0 0 10 9 9\n");
    let share = cpu.since_last().unwrap();
    assert!((share.busy - 70.0 / 110.0).abs() < 1e-9, "{share:?}");
    assert!((share.steal - 10.0 / 110.0).abs() < 1e-9, "{share:?}");
    write(&root, "proc/stat", "cpu  150 0 60 819 71 0 0 110 9 9\n");
    let share = cpu.since_last().unwrap();
    assert_eq!((share.busy, share.steal), (1.0, 1.0));
}

#[test]
fn this_host_has_facts() {
    let facts = crate::facts("0.1.0");
    assert!(facts.kernel.is_some() && facts.cores_usable >= Some(1));
    assert!(facts.memory_bytes > Some(16 << 20));
    let before = ProcessUsage::now();
    let mut sum = 0u64;
    let used = |usage: ProcessUsage| usage.cpu_user_ns + usage.cpu_system_ns;
    while used(ProcessUsage::now()) < used(before) + 1_000_000 {
        sum = sum.wrapping_mul(31).wrapping_add(1);
    }
    assert!(before.memory_bytes > 100_000 && before.threads >= 1, "{before:?} {sum}");
    let mut cpu = HostCpu::default();
    if let Some(share) = cpu.since_last() {
        assert!((0.0..=1.0).contains(&share.busy) && share.steal <= share.busy);
    }
}

#[test]
fn the_room_of_this_process_is_its_lowest_limit() {
    let room = |space: &str, group: &str| {
        let limits = format!("Max address space         {space}   unlimited   bytes\n");
        let (_directory, root) = computer(&[
            ("proc/meminfo", "MemTotal: 8000000 kB\nMemAvailable: 4000000 kB\n"),
            ("proc/self/limits", &limits),
            ("proc/self/status", "VmSize:\t  100 kB\n"),
            ("proc/self/cgroup", "0::/run\n"),
            ("sys/fs/cgroup/run/memory.max", group),
            ("sys/fs/cgroup/run/memory.current", "1000000\n"),
        ]);
        crate::room(&root)
    };
    assert_eq!(room("unlimited", "max"), Some(4_096_000_000));
    assert_eq!(room("2102400", "max"), Some(2_000_000));
    assert_eq!(room("unlimited", "3000000"), Some(2_000_000));
    let (_directory, nothing) = computer(&[]);
    assert_eq!(crate::room(&nothing), None);
}
