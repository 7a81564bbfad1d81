//! Readings of hosts described by files, and of this one.

use super::*;
use crate::memory::MemoryBound;
use crate::network::source_ports;
use crate::system::page_bytes;
use crate::tests::{computer, write};

const SECOND: Duration = Duration::from_secs(1);

fn status(threads: u64) -> String {
    format!("VmRSS:\t 2000 kB\nThreads:\t{threads}\nCpus_allowed_list:\t0-3\n")
}

fn thread(root: &Root, id: u64, name: &str, schedstat: &str) {
    write(root, &format!("proc/self/task/{id}/comm"), name);
    write(root, &format!("proc/self/task/{id}/schedstat"), schedstat);
}

#[test]
fn the_busiest_shard_and_waiting_threads_are_found() {
    let (_directory, root) = computer(&[("proc/self/status", &status(3))]);
    thread(&root, 10, "throng\n", "9000000000 5 1\n");
    thread(&root, 11, "shard-0\n", "1000000000 100 1\n");
    thread(&root, 12, "shard-1\n", "2000000000 200 1\n");
    let mut monitor = Monitor::new(&root, Duration::ZERO);
    thread(&root, 10, "throng\n", "19000000000 10 1\n");
    thread(&root, 11, "shard-0\n", "1250000000 1100 1\n");
    thread(&root, 12, "shard-1\n", "2500000000 2200 1\n");
    let reading = monitor.read(SECOND);
    assert_eq!((reading.shard_cpu_max, reading.run_queue_ns), (0.5, 3005));
    assert_eq!((reading.memory_bytes, reading.shares_are_old), (2000 * 1024, false));
    // Soon after, counters continue; shares wait until they are meaningful.
    thread(&root, 12, "shard-1\n", "2900000000 2300 1\n");
    let reading = monitor.read(SECOND + Duration::from_millis(400));
    assert_eq!((reading.shard_cpu_max, reading.run_queue_ns), (0.5, 100));
    assert!(reading.shares_are_old);
    // One ends and another starts: the list is refreshed when the number changes.
    write(&root, "proc/self/status", &status(4));
    thread(&root, 13, "shard-2\n", "100000000 7 1\n");
    let reading = monitor.read(2 * SECOND);
    assert_eq!((reading.shard_cpu_max, reading.run_queue_ns), (0.4, 7));
    std::fs::remove_dir_all(root.path("proc/self/task/12")).unwrap();
    write(&root, "proc/self/status", &status(3));
    thread(&root, 11, "shard-0\n", "1350000000 1100 1\n");
    let reading = monitor.read(3 * SECOND);
    assert_eq!((reading.shard_cpu_max, reading.run_queue_ns), (0.1, 0));
}

#[test]
fn kernels_without_schedstat_use_ticks() {
    let (_directory, root) = computer(&[("proc/self/status", &status(1))]);
    let stat = |user: u64| {
        format!("7 (shard-0 (a) 1) S 1 1 1 0 -1 4 1 0 0 0 {user} 5 0 0 20 0 1 0 9 0 0\n")
    };
    write(&root, "proc/self/task/7/comm", "shard-0\n");
    write(&root, "proc/self/task/7/stat", &stat(100));
    let mut monitor = Monitor::new(&root, Duration::ZERO);
    write(&root, "proc/self/task/7/stat", &stat(175));
    let reading = monitor.read(SECOND);
    assert_eq!((reading.shard_cpu_max, reading.run_queue_ns), (0.75, 0));
}

const NETSTAT: &str = "TcpExt: SyncookiesSent ListenOverflows ListenDrops Other\nTcpExt: 1 70 90 3\n\
                       IpExt: InNoRoutes\nIpExt: 1\n";

#[test]
fn drops_since_the_reading_before() {
    let (_directory, root) = computer(&[
        ("proc/net/softnet_stat", "00000010 0000000a 00\n00000010 00000001\n"),
        ("proc/net/netstat", NETSTAT),
    ]);
    let mut monitor = Monitor::new(&root, Duration::ZERO);
    let dropped = |reading: Reading| (reading.packets_dropped, reading.listen_dropped);
    assert_eq!(dropped(monitor.read(SECOND)), (0, 0));
    write(&root, "proc/net/softnet_stat", "00000010 0000001a 00\n00000010 00000002\n");
    write(&root, "proc/net/netstat", &NETSTAT.replace("90", "95"));
    assert_eq!(dropped(monitor.read(2 * SECOND)), (17, 5));
    write(&root, "proc/net/softnet_stat", "");
    write(&root, "proc/net/netstat", "TcpExt: ListenDrops\n");
    assert_eq!(dropped(monitor.read(3 * SECOND)), (0, 0));
}

#[test]
fn the_busiest_direction_of_an_interface_is_reported() {
    let devices = |own: &str, other: &str| {
        let head = "Inter-|   Receive  |  Transmit\n face |bytes    packets errs\n";
        format!("{head}    lo: {other}\n  eth0: {own}\n")
    };
    let idle = "0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0";
    let one = "1000 10 0 0 0 0 0 0 5000 7 0 0 0 0 0 0";
    let two = "3000 90 0 0 0 0 0 0 505000 27 0 0 0 0 0 0";
    let (_directory, root) = computer(&[("proc/net/dev", &devices(one, idle))]);
    let mut monitor = Monitor::new(&root, Duration::ZERO);
    write(&root, "proc/net/dev", &devices(two, idle));
    let throughput = monitor.read(2 * SECOND).throughput;
    let told = throughput.map(|it| (it.bits_per_s, it.packets_per_s));
    assert_eq!(told, Some((2_000_000.0, 40.0)));
    write(&root, "proc/net/dev", "");
    assert_eq!(monitor.read(3 * SECOND).throughput, None);
}

const SOCKSTAT: &str = "sockets: used 39\nTCP: inuse 16 orphan 0 tw 3 alloc 1000 mem 7\n\
                        UDP: inuse 2 mem 1\n";
const SLABINFO: &str = "\
slabinfo - version: 2.1
# name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab> : tunables
TCPv6                 26     26   2496   13    8 : tunables    0    0    0
tw_sock_TCP          256    320    256   16    1 : tunables    0    0    0
TCP                   93    143   2368   13    8 : tunables    0    0    0
sock_inode_cache     246    304    832   19    4 : tunables    0    0    0
filp                1223   1281    192   21    1 : tunables    0    0    0
dentry            499589 540561    192   21    1 : tunables    0    0    0
";

#[test]
fn the_kernel_memory_of_sockets_is_reported() {
    let (_directory, root) = computer(&[("proc/net/sockstat", SOCKSTAT)]);
    let reckoned = SocketCost::read(&root);
    assert!(!reckoned.is_measured && (3000..4100).contains(&reckoned.open_bytes));
    let reading = Monitor::new(&root, Duration::ZERO).read(SECOND);
    let want = 1000 * reckoned.open_bytes + 3 * reckoned.time_wait_bytes;
    let want = want + 2 * reckoned.datagram_bytes + 8 * page_bytes();
    assert_eq!((reading.kernel_socket_bytes, reading.time_wait), (want, 3));
    if page_bytes() == 4096 {
        write(&root, "proc/slabinfo", SLABINFO);
        let open_bytes = 2520 + 862 + 195 + 195 + 128;
        let datagram_bytes = open_bytes - 2520 + 1365;
        let want =
            SocketCost { open_bytes, datagram_bytes, time_wait_bytes: 256, is_measured: true };
        assert_eq!(SocketCost::read(&root), want);
    }
    for broken in
        ["TCP 1 2 0 0 0\n", "TCP 1 2 9 1\n", "TCP a b c d e f\n", "TCP 1 1 1 1 99999999\n"]
    {
        write(&root, "proc/slabinfo", &format!("{broken}sock_inode_cache 1 1 832 19 4\n"));
        assert_eq!(SocketCost::read(&root), reckoned, "{broken}");
    }
}

#[test]
fn ports_without_the_reserved_ones() {
    let (_directory, root) = computer(&[]);
    assert_eq!(source_ports(&root, None), None);
    assert_eq!(source_ports(&root, Some((10, 19))), Some(10));
    write(&root, "proc/sys/net/ipv4/ip_local_port_range", "32768\t60999\n");
    assert_eq!(source_ports(&root, None), Some(28_232));
    write(&root, "proc/sys/net/ipv4/ip_local_reserved_ports", "80,32760-32769,x,9-3,40000\n");
    assert_eq!(source_ports(&root, None), Some(28_229));
    assert_eq!(source_ports(&root, Some((9, 3))), None);
}

#[test]
fn memory_left_of_the_host_and_of_its_groups() {
    let meminfo =
        |available: u64| format!("MemTotal: {} kB\nMemAvailable: {available} kB\n", 24u64 << 20);
    let (_directory, root) = computer(&[("proc/meminfo", &meminfo(2 << 20))]);
    let left = |root: &Root| Memory::new(root.clone()).left();
    let host = MemoryLeft {
        available_bytes: 2 << 30,
        floor_bytes: ((24u64 << 30) as f64 * 0.03) as u64,
        bound: MemoryBound::Host,
    };
    assert_eq!(left(&root), Some(host));
    // A group without a limit is ignored, as is one whose limit is far away.
    write(&root, "proc/self/cgroup", "0::/a/b\n");
    write(&root, "sys/fs/cgroup/a/memory.max", "max\n");
    write(&root, "sys/fs/cgroup/a/b/memory.max", "17179869184\n");
    write(&root, "sys/fs/cgroup/a/b/memory.current", "1073741824\n");
    assert_eq!(left(&root), Some(host));
    // 1 GiB, of which 1000 MiB are used, 100 of them by files that can be dropped.
    write(&root, "sys/fs/cgroup/a/memory.max", "1073741824\n");
    write(&root, "sys/fs/cgroup/a/memory.current", "1048576000\n");
    write(&root, "sys/fs/cgroup/a/memory.stat", "anon 1\ninactive_file 104857600\n");
    let bound = MemoryBound::Group;
    let group = MemoryLeft { available_bytes: 124 << 20, floor_bytes: 128 << 20, bound };
    assert_eq!(left(&root), Some(group));
    write(&root, "proc/meminfo", &meminfo(1024));
    let host = MemoryLeft { available_bytes: 1 << 20, ..host };
    assert_eq!(left(&root), Some(host));
    write(&root, "proc/meminfo", "MemTotal: x\n");
    write(&root, "sys/fs/cgroup/a/memory.current", "-\n");
    write(&root, "sys/fs/cgroup/a/b/memory.current", "\n");
    assert_eq!(left(&root), None);
}

#[test]
fn shares_of_the_host() {
    let (_directory, root) = computer(&[("proc/stat", "cpu  100 0 50 800 50 0 10 0 7 7\n")]);
    let mut monitor = Monitor::new(&root, Duration::ZERO);
    write(&root, "proc/stat", "cpu  150 0 50 840 50 0 20 0 7 7\n");
    let host = monitor.read(SECOND).host.unwrap();
    assert_eq!((host.busy, host.softirq, host.steal), (0.6, 0.1, 0.0));
}

#[test]
fn missing_and_malformed_files_give_nothing() {
    let (_directory, root) = computer(&[]);
    let quiet = |reading: Reading| Reading {
        // The time of this process is always the real one.
        cpu_user_ns: 0,
        cpu_system_ns: 0,
        cpu_share: 0.0,
        ..reading
    };
    let nothing = Reading::default();
    assert_eq!(quiet(Monitor::new(&root, Duration::ZERO).read(SECOND)), nothing);
    for path in [
        "proc/self/status",
        "proc/self/cgroup",
        "proc/self/task/1/comm",
        "proc/self/task/1/schedstat",
        "proc/self/task/1/stat",
        "proc/self/task/x/stat",
        "proc/net/sockstat",
        "proc/net/netstat",
        "proc/net/softnet_stat",
        "proc/slabinfo",
        "proc/meminfo",
        "proc/stat",
    ] {
        write(&root, path, "TCP:\nTCP: alloc\nTcpExt: \u{0}\n)))\ncpu x\nTCP x\n\u{ff} 99 -1\n");
    }
    assert_eq!(quiet(Monitor::new(&root, Duration::ZERO).read(SECOND)), nothing);
}

#[test]
fn this_process_is_read() {
    let root = Root::default();
    let mut monitor = Monitor::new(&root, Duration::ZERO);
    let mut used = 0;
    let mut sum = 0u64;
    while used < 20_000_000 {
        sum = (0..10_000).fold(sum, |sum, n| sum.wrapping_mul(31).wrapping_add(n));
        let reading = monitor.read(Duration::ZERO);
        used += reading.cpu_user_ns + reading.cpu_system_ns;
    }
    let reading = monitor.read(SECOND);
    assert!(reading.cpu_share > 0.0 && reading.memory_bytes > 100_000, "{reading:?} {sum}");
    assert!(reading.memory_left.is_some_and(|left| left.floor_bytes > 0), "{reading:?}");
}

#[test]
fn any_process_may_raise_its_nice_value() {
    // On its own thread, because the value cannot be lowered again.
    let set = std::thread::spawn(|| crate::set_nice(1).is_ok()).join().unwrap();
    assert!(set);
}

#[test]
fn a_quota_of_cgroup_2_stops_the_process() {
    let stat = |periods: u64, throttled: u64, micros: u64| {
        format!(
            "usage_usec 900\nuser_usec 500\nsystem_usec 400\nnr_periods {periods}\nnr_throttled \
             {throttled}\nthrottled_usec {micros}\nnr_bursts 0\nburst_usec 0\n"
        )
    };
    let (_directory, root) = computer(&[
        ("proc/self/cgroup", "0::/pod/box\n"),
        // The root group has no quota, and counts none.
        ("sys/fs/cgroup/cpu.stat", "usage_usec 5\nuser_usec 3\nsystem_usec 2\n"),
        ("sys/fs/cgroup/pod/cpu.stat", &stat(100, 1, 1_000)),
        ("sys/fs/cgroup/pod/box/cpu.stat", &stat(200, 40, 1_000_000)),
    ]);
    let mut monitor = Monitor::new(&root, Duration::ZERO);
    let quota =
        |reading: Reading| (reading.quota_periods, reading.throttled_periods, reading.throttled_ns);
    assert_eq!(quota(monitor.read(SECOND)), (0, 0, 0));
    write(&root, "sys/fs/cgroup/pod/cpu.stat", &stat(110, 2, 9_000));
    write(&root, "sys/fs/cgroup/pod/box/cpu.stat", &stat(210, 49, 1_420_000));
    assert_eq!(quota(monitor.read(2 * SECOND)), (10, 9, 420_000_000));
}

#[test]
fn a_quota_of_cgroup_1_stops_the_process() {
    let stat = |periods: u64, throttled: u64, nanos: u64| {
        format!("nr_periods {periods}\nnr_throttled {throttled}\nthrottled_time {nanos}\n")
    };
    let file = "sys/fs/cgroup/cpu/docker/box/cpu.stat";
    let (_directory, root) = computer(&[
        ("proc/self/cgroup", "4:memory:/docker/box\n3:cpu,cpuacct:/docker/box\n"),
        (file, &stat(51, 50, 2_100_000_000)),
    ]);
    let mut monitor = Monitor::new(&root, Duration::ZERO);
    write(&root, file, &stat(61, 60, 2_500_000_000));
    let reading = monitor.read(SECOND);
    assert_eq!((reading.quota_periods, reading.throttled_periods), (10, 10));
    assert_eq!(reading.throttled_ns, 400_000_000);
    // A host without quotas reports nothing.
    let (_directory, root) = computer(&[]);
    assert_eq!(Monitor::new(&root, Duration::ZERO).read(SECOND).quota_periods, 0);
}

#[test]
fn usage_of_others_is_computed() {
    let pressure = |some: &str| {
        format!("some avg10={some} avg60=0.00 avg300=0.00 total=9\nfull avg10=0.00 total=1\n")
    };
    let stat = |user: u64, idle: u64, softirq: u64| {
        format!("cpu  {user} 0 0 {idle} 0 0 {softirq} 0 0 0\ncpu0 1 0 0 1 0 0 0 0 0 0\n")
    };
    let (_directory, root) = computer(&[("proc/stat", &stat(0, 0, 0))]);
    // An idle thread uses almost nothing of a minute.
    let minute = Duration::from_secs(60);
    let mut monitor = Monitor::new(&root, Duration::ZERO);
    write(&root, "proc/stat", &stat(600, 400, 0));
    write(&root, "proc/pressure/memory", &pressure("12.50"));
    let reading = monitor.read(minute);
    assert!((reading.others_cpu.unwrap() - 0.6).abs() < 0.05, "{reading:?}");
    assert_eq!(reading.memory_stall, Some(0.125));
    // Too soon for new shares.
    write(&root, "proc/stat", &stat(9000, 400, 0));
    let soon = monitor.read(minute + Duration::from_millis(100));
    assert_eq!(soon.others_cpu, reading.others_cpu);
    let share = |busy, softirq| HostShare { busy, softirq, steal: 0.0 };
    for (host, own, wanted) in [
        (share(0.5, 0.0), 0.5, 0.0),
        (share(0.5, 0.0), 0.2, 0.3),
        (share(0.9, 0.3), 0.3, 0.45),
        (share(0.1, 0.0), 0.2, 0.0),
        (share(0.0, 0.0), 0.0, 0.0),
    ] {
        assert!((others(host, own) - wanted).abs() < 1e-9, "{host:?} {own}");
    }
}
