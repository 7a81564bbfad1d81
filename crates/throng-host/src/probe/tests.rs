//! A host described by files, and the real one.

use super::*;
use crate::tests::{computer, write};

const STAT: &str = "btime 1000\nctxt 5\nprocesses 9\nprocs_running 2\nprocs_blocked 1\n";

/// The `stat` of a process: its name, ticks of user and system, threads, start, pages.
fn stat(name: &str, ticks: [u64; 2], started: u64) -> String {
    let [user, system] = ticks;
    format!("1 ({name}) S 1 1 1 0 -1 0 0 0 0 0 {user} {system} 0 0 20 0 3 0 {started} 0 10 0\n")
}

#[test]
fn process_starts_and_ends_are_counted_and_cpu_time_is_kept() {
    let (_directory, root) = computer(&[
        ("proc/stat", STAT),
        ("proc/7/stat", &stat("nginx", [200, 100], 500)),
        ("proc/8/stat", &stat("nginx", [50, 0], 900)),
        ("proc/9/stat", &stat("nginy", [9, 9], 900)),
        (
            "proc/7/limits",
            "Max open files            1024                 4096                 files\n",
        ),
        ("proc/7/fd/0", ""),
        ("proc/7/fd/1", ""),
    ]);
    let mut probe = Probe::new(root.clone(), "0.1.0", vec!["nginx".parse().expect("a name")]);
    let labels = [("name", "nginx")];
    let user = [("name", "nginx"), ("mode", "user")];
    let figures = probe.read();
    let value = |figures: &Figures, name: &str| figures.value(name, &labels).expect(name);
    assert_eq!(value(&figures, "throng_processes"), 2.0);
    assert_eq!(value(&figures, "throng_process_threads"), 6.0);
    assert_eq!(figures.value("throng_process_cpu_seconds_total", &user), Some(2.5));
    assert_eq!(value(&figures, "throng_process_oldest_start_seconds"), 1005.0);
    assert_eq!(value(&figures, "throng_process_newest_start_seconds"), 1009.0);
    assert_eq!(value(&figures, "throng_process_descriptors_limit"), 1024.0);
    assert!(value(&figures, "throng_process_descriptors") >= 2.0);
    assert_eq!(value(&figures, "throng_process_started_total"), 0.0);
    // One ends, and another one with the same name reuses its number.
    write(&root, "proc/8/stat", &stat("nginx", [10, 0], 2000));
    let figures = probe.read();
    assert_eq!(value(&figures, "throng_processes"), 2.0);
    assert_eq!(value(&figures, "throng_process_started_total"), 1.0);
    assert_eq!(value(&figures, "throng_process_ended_total"), 1.0);
    assert_eq!(figures.value("throng_process_cpu_seconds_total", &user), Some(2.6));
}

#[test]
fn groups_of_both_versions_report_their_usage() {
    let version_2 = [
        ("proc/self/cgroup", "0::/system.slice/shop.service\n"),
        (
            "sys/fs/cgroup/system.slice/shop.service/cpu.stat",
            "usage_usec 5\nuser_usec 2500000\nsystem_usec 500000\nnr_periods 9\n\
             nr_throttled 4\nthrottled_usec 1500000\n",
        ),
        ("sys/fs/cgroup/system.slice/shop.service/memory.current", "1000\n"),
        ("sys/fs/cgroup/system.slice/memory.max", "5000\n"),
        ("sys/fs/cgroup/system.slice/shop.service/memory.events", "low 0\noom 2\noom_kill 1\n"),
        (
            "sys/fs/cgroup/system.slice/shop.service/memory.pressure",
            "some avg10=0.00 avg60=0.00 avg300=0.00 total=2000000\n",
        ),
    ];
    let (_directory, root) = computer(&version_2);
    let figures = Probe::new(root, "0.1.0", Vec::new()).read();
    let group = ("group", "/system.slice/shop.service");
    let value = |name: &str| figures.value(name, &[group]);
    assert_eq!(value("throng_cgroup_memory_bytes"), Some(1000.0));
    assert_eq!(value("throng_cgroup_memory_limit_bytes"), Some(5000.0));
    assert_eq!(value("throng_cgroup_oom_kills_total"), Some(1.0));
    assert_eq!(value("throng_cgroup_cpu_throttled_seconds_total"), Some(1.5));
    let user = figures.value("throng_cgroup_cpu_seconds_total", &[group, ("mode", "user")]);
    assert_eq!(user, Some(2.5));
    let waiting = "throng_cgroup_pressure_waiting_seconds_total";
    assert_eq!(figures.value(waiting, &[group, ("resource", "memory")]), Some(2.0));

    let (_directory, root) = computer(&[
        ("proc/self/cgroup", "5:cpuacct:/shop\n4:memory:/shop\n1:cpu:/\n0::/\n"),
        ("sys/fs/cgroup/cpuacct/shop/cpuacct.usage_user", "1500000000\n"),
        ("sys/fs/cgroup/memory/shop/memory.usage_in_bytes", "77\n"),
        ("sys/fs/cgroup/memory/shop/memory.oom_control", "oom_kill_disable 0\noom_kill 3\n"),
    ]);
    let figures = Probe::new(root, "0.1.0", Vec::new()).read();
    let group = ("group", "/shop");
    assert_eq!(figures.value("throng_cgroup_memory_bytes", &[group]), Some(77.0));
    assert_eq!(figures.value("throng_cgroup_oom_kills_total", &[group]), Some(3.0));
    let user = figures.value("throng_cgroup_cpu_seconds_total", &[group, ("mode", "user")]);
    assert_eq!(user, Some(1.5));
}

#[test]
fn a_host_without_files_has_no_figures_and_no_errors() {
    let (_directory, root) = computer(&[]);
    let figures = Probe::new(root, "0.1.0", vec![Wanted::Number(1)]).read();
    assert_eq!(figures.value("throng_processes", &[("name", "1")]), Some(0.0));
    assert!(figures.value("node_load1", &[]).is_none());
}

#[test]
fn this_host_has_figures() {
    let own = std::process::id();
    let mut probe = Probe::new(Root::default(), "0.1.0", vec![Wanted::Number(own)]);
    let figures = probe.read();
    let name = own.to_string();
    let labels = [("name", name.as_str())];
    for name in ["node_load1", "node_memory_MemTotal_bytes", "node_netstat_TcpExt_ListenOverflows"]
    {
        assert!(figures.value(name, &[]).is_some(), "{name}");
    }
    assert_eq!(figures.value("throng_processes", &labels), Some(1.0));
    let open = figures.value("throng_process_descriptors", &labels).expect("descriptors");
    assert!(open >= 3.0, "{open}");
    let resident = figures.value("throng_process_resident_bytes", &labels).expect("memory");
    assert!(resident > 1e6, "{resident}");
}
