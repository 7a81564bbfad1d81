//! Hosts described by files, and the findings of the rules.

use std::net::IpAddr;

use super::*;
use crate::Root;
use crate::tests::{computer, write};

const LIMITS: &str = "\
Limit                     Soft Limit           Hard Limit           Units     
Max processes             96365                96365                processes 
Max open files            20000                20000                files     
";
const TRIE: &str = "Main:
  +-- 0.0.0.0/0 3 0 5
     |-- 0.0.0.0
        /0 universe UNICAST
     +-- 127.0.0.0/8 2 0 2
        |-- 127.0.0.0
           /8 host LOCAL
        |-- 127.0.0.1
           /32 host LOCAL
        |-- 127.255.255.255
           /32 link BROADCAST
        |-- 192.0.2.0
           /24 link UNICAST
        |-- 192.0.2.2
           /32 host LOCAL
Local:
        |-- 192.0.2.2
           /32 host LOCAL
";
/// A line of ipv6_route: destination, its length, source, next hop, metric, counts, flags.
fn route_v6(destination: &str, length: &str, flags: &str, interface: &str) -> String {
    let none = "0".repeat(32);
    let rest = "00000000 00000002 00000000";
    format!("{destination} {length} {none} 00 {none} {rest} {flags} {interface:>8}\n")
}

/// Two processors, 24 GiB, 20,000 descriptors: a host that once held both ends of two million
/// connections.
fn workshop() -> Vec<(&'static str, &'static str)> {
    vec![
        ("proc/meminfo", "MemTotal: 24684096 kB\nMemAvailable: 23047040 kB\nSwapFree: 0 kB\n"),
        ("proc/self/limits", LIMITS),
        ("proc/self/status", "CapEff:\t000001fffeffffff\n"),
        ("proc/self/cgroup", "8:pids:/\n4:memory:/a\n0::/\n"),
        ("proc/net/fib_trie", TRIE),
        ("proc/net/softnet_stat", "0eb00d48 00001599 00000042\n0967abaa 00000408 00000044\n"),
        ("proc/loadavg", "1.0 1.0 1.0 2/120 4711\n"),
        ("proc/stat", "cpu  2275230 145011 346225 1772190 11245 0 94884 9936 0 0\n"),
        ("proc/sys/fs/nr_open", "1048576\n"),
        ("proc/sys/fs/file-max", "2466183\n"),
        ("proc/sys/fs/file-nr", "953\t0\t2466183\n"),
        ("proc/sys/fs/epoll/max_user_watches", "5491533\n"),
        ("proc/sys/kernel/pid_max", "32768\n"),
        ("proc/sys/kernel/threads-max", "192731\n"),
        ("proc/net/snmp", "Udp: InDatagrams RcvbufErrors\nUdp: 557 0\n"),
        ("proc/sys/net/core/netdev_max_backlog", "1000\n"),
        ("proc/sys/net/core/rmem_default", "212992\n"),
        ("proc/sys/net/core/rmem_max", "4194304\n"),
        ("proc/sys/net/core/somaxconn", "4096\n"),
        ("proc/sys/net/ipv4/conf/all/rp_filter", "0\n"),
        ("proc/sys/net/ipv4/conf/eth0/rp_filter", "1\n"),
        ("proc/sys/net/ipv4/conf/eth1.7/rp_filter", "1\n"),
        ("proc/sys/net/ipv4/ip_local_port_range", "32768\t60999\n"),
        ("proc/sys/net/ipv4/ip_local_reserved_ports", "\n"),
        ("proc/sys/net/ipv4/tcp_max_syn_backlog", "2048\n"),
        ("proc/sys/net/ipv4/tcp_max_tw_buckets", "131072\n"),
        ("proc/sys/net/ipv4/tcp_mem", "287901\t383869\t575802\n"),
        ("proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t33554432\n"),
        ("proc/sys/net/ipv4/tcp_syncookies", "1\n"),
        ("proc/sys/net/ipv4/tcp_tw_reuse", "2\n"),
        ("proc/sys/net/ipv4/tcp_wmem", "4096\t16384\t4194304\n"),
        ("proc/sys/net/ipv4/udp_mem", "575802\t767738\t1151604\n"),
        ("proc/sys/net/netfilter/nf_conntrack_count", "0\n"),
        ("proc/sys/net/netfilter/nf_conntrack_max", "262144\n"),
        ("sys/class/net/eth0/operstate", "up\n"),
        ("sys/class/net/eth0/queues/rx-0/rps_cpus", "0\n"),
        ("sys/class/net/lo/operstate", "unknown\n"),
        ("sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc hpet \n"),
        ("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n"),
        ("sys/devices/system/cpu/online", "0-1\n"),
    ]
}

struct Bench {
    _directory: tempfile::TempDir,
    root: Root,
    host: Host,
}

impl Bench {
    fn new() -> Bench {
        let (directory, root) = computer(&workshop());
        let routes = [
            route_v6("00000000000000000000000000000001", "80", "80200001", "lo"),
            route_v6("20010db8000100000000000000000000", "40", "80200001", "lo"),
            route_v6("20010db8000000000000000000000000", "40", "00000001", "eth0"),
        ];
        write(&root, "proc/net/ipv6_route", &routes.concat());
        let host = Host::new(root.clone());
        Bench { _directory: directory, root, host }
    }

    fn set(self, path: &str, text: &str) -> Bench {
        write(&self.root, path, text);
        self
    }

    fn without(self, path: &str) -> Bench {
        std::fs::remove_file(self.root.path(path)).unwrap();
        self
    }

    fn find(&self, rule: &str, needs: &Needs) -> Finding {
        let examination = examine(&self.host, needs);
        let found = examination.findings.into_iter().find(|finding| finding.rule == rule);
        found.unwrap_or_else(|| panic!("no finding of {rule}"))
    }

    #[track_caller]
    fn says(&self, rule: &str, needs: &Needs, severity: Severity, ceiling: Option<u64>) -> Finding {
        let finding = self.find(rule, needs);
        assert_eq!((finding.severity, finding.ceiling), (severity, ceiling), "{finding:?}");
        finding
    }
}

fn to(address: &str, users: u64) -> Needs {
    let address: IpAddr = address.parse().unwrap();
    Needs {
        routes: vec![Route { address: Some(address), share: 1.0, is_datagram: false }],
        ..Needs::of(users, Role::Generator)
    }
}

fn datagrams_to(address: &str, users: u64) -> Needs {
    let mut needs = Needs { datagrams: 1.0, ..to(address, users) };
    needs.routes[0].is_datagram = true;
    needs
}

fn range(first: &str, last: &str) -> Block {
    Block::Range { first: first.parse().unwrap(), last: last.parse().unwrap() }
}

fn now(finding: &Finding) -> Vec<String> {
    finding.fixes.iter().filter_map(Fix::now).collect()
}

use Severity::{Fit, Unfit, Unknown, Warn};

#[test]
fn two_million_connections_with_both_ends_fit_on_the_known_host() {
    let bench = Bench::new();
    let needs = to("127.0.0.1", 2_000_800);
    let examination = examine(&bench.host, &needs);
    assert!(examination.is_fit(), "{:#?}", examination.findings);
    let next = examination.next_limit().unwrap();
    assert_eq!(next.rule, "memory", "{next:?}");
    assert!((2_000_800..2_600_000).contains(&next.ceiling.unwrap()), "{next:?}");
    // Root may exceed the host's limit of open files, and gets a warning.
    bench.says("file-max", &needs, Warn, None);
    assert!(bench.find("descriptors", &needs).needed.english().contains("101 shards"));
    // Other accounts may not.
    let bench = bench.set("proc/self/status", "CapEff:\t0000000000000000\n");
    let finding = bench.says("file-max", &to("192.0.2.9", 3_000_000), Unfit, Some(2_465_230));
    assert!(finding.stops_a_run());
    assert_eq!(now(&finding), ["sysctl -w fs.file-max=3800000"]);
}

#[test]
fn a_hundred_million_users_fit_on_no_host() {
    let bench = Bench::new();
    for needs in [to("127.0.0.1", 100_000_000), to("192.0.2.9", 100_000_000)] {
        let examination = examine(&bench.host, &needs);
        let stops = |finding: &Finding| finding.stops_a_run() && finding.rule == "memory";
        assert!(examination.findings.iter().any(stops));
        assert_eq!(examination.findings[0].severity, Unfit, "the worst comes first");
    }
    // The number of concurrent connections is unknown.
    let needs = Needs { holds: false, ..to("127.0.0.1", 50_000_000) };
    let examination = examine(&bench.host, &needs);
    assert!(!examination.findings.iter().any(Finding::stops_a_run));
}

#[test]
fn ports_are_the_range_without_the_reserved_ones() {
    let bench = Bench::new();
    let ports = |needs: &Needs, severity, ceiling| {
        bench.says("source-ports", needs, severity, Some(ceiling))
    };
    let finding = ports(&to("192.0.2.9", 28_232), Fit, 28_232);
    assert!(finding.fixes.is_empty());
    let finding = ports(&to("192.0.2.9", 28_233), Unfit, 28_232);
    assert!(finding.stops_a_run());
    assert_eq!(now(&finding), ["sysctl -w net.ipv4.ip_local_port_range='1024 65535'"]);
    let for_good: Vec<String> = finding.fixes.iter().flat_map(Fix::for_good).collect();
    let line = "/etc/sysctl.d/90-throng.conf: net.ipv4.ip_local_port_range = 1024 65535";
    assert_eq!(for_good, [line]);
    // Three addresses of the target allow three times as many; a third is never exact.
    let third = |address: &str| Route { share: 1.0 / 3.0, ..to(address, 1).routes.remove(0) };
    let routes = vec![third("192.0.2.7"), third("192.0.2.8"), third("192.0.2.9")];
    ports(&Needs { routes: routes.clone(), ..to("192.0.2.9", 84_696) }, Fit, 84_696);
    // Each user has two connections, and each route has its share of all.
    let several = Needs { routes, connections_per_user: 2.0, ..to("192.0.2.9", 42_348) };
    ports(&several, Fit, 42_348);
    // The route of most users is the limit.
    let [most, few] = [("192.0.2.7", 0.9), ("192.0.2.8", 0.1)]
        .map(|(address, share)| Route { share, ..to(address, 1).routes.remove(0) });
    ports(&Needs { routes: vec![most, few], ..to("192.0.2.9", 40_000) }, Unfit, 31_368);
    let own = Needs { ports: Some((20_000, 20_999)), ..to("192.0.2.9", 2_000) };
    let finding = ports(&own, Unfit, 1_000);
    assert!(now(&finding).is_empty() && finding.fixes[0].advice().is_some());
    let bench = bench.set("proc/sys/net/ipv4/ip_local_reserved_ports", "40000-40009,80\n");
    let finding = bench.says("source-ports", &to("192.0.2.9", 1), Fit, Some(28_222));
    assert!(finding.value.english().contains("10 of them reserved"), "{finding:?}");
}

#[test]
fn addresses_are_those_of_this_host() {
    let bench = Bench::new();
    let addresses = |needs: &Needs, severity, ceiling| {
        bench.says("source-addresses", needs, severity, Some(ceiling))
    };
    addresses(&to("192.0.2.9", 64_512), Fit, 64_512);
    let finding = addresses(&to("192.0.2.9", 1_000_000), Unfit, 64_512);
    assert_eq!(finding.needed, "16 with 64,512 ports each");
    assert_eq!(now(&finding)[0], "ip addr add 198.51.100.10/24 dev eth0");
    // Users may use the loopback interface without named addresses.
    addresses(&to("127.0.0.1", 10_000_000), Fit, 64_512 * 65_534);
    addresses(&to("::1", 100_000), Unfit, 64_512);
    let from = |blocks: &[Block], address: &str, users| Needs {
        sources: blocks.to_vec(),
        ..to(address, users)
    };
    let loopback = [range("127.1.0.0", "127.1.0.15")];
    addresses(&from(&loopback, "127.0.0.1", 1_000_000), Fit, 64_512 * 16);
    // The host has one of the eleven named addresses.
    let mostly_others = [range("192.0.2.0", "192.0.2.10")];
    let finding = addresses(&from(&mostly_others, "192.0.2.9", 100_000), Unfit, 64_512);
    assert!(finding.value.english().starts_with("1 of 11 listed addresses"), "{finding:?}");
    let borrowed = Needs { transparent: true, ..from(&mostly_others, "192.0.2.9", 100_000) };
    addresses(&borrowed, Fit, 64_512 * 11);
    let v6 = [range("2001:db8:1::", "2001:db8:1::ff"), range("10.0.0.1", "10.0.0.9")];
    addresses(&from(&v6, "2001:db8::9", 1_000), Fit, 64_512 * 256);
    // Without a target: the host's addresses, without the loopback interface.
    addresses(&Needs::of(10, Role::Generator), Fit, 64_512);
}

#[test]
fn addresses_of_an_interface() {
    let routes = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\n\
                  eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\n\
                  eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\n";
    let bench = Bench::new().set("proc/net/route", routes);
    let from = |name: &str| Needs {
        sources: vec![Block::Interface(name.into())],
        ..to("192.0.2.9", 1_000)
    };
    bench.says("source-addresses", &from("eth0"), Fit, Some(64_512));
    let finding = bench.says("source-addresses", &from("eth9"), Unknown, None);
    assert!(!finding.stops_a_run());
    let v6 = "fe8000000000000000fc00fffe000001 04 40 20 80     eth0\n\
              20010db8000000000000000000000002 04 40 00 82     eth0\n";
    let bench = bench.set("proc/net/if_inet6", v6);
    let needs = Needs { routes: to("2001:db8::9", 1).routes, ..from("eth0") };
    bench.says("source-addresses", &needs, Fit, Some(64_512));
}

#[test]
fn descriptors_bind_a_service_and_spread_for_throng() {
    let bench = Bench::new();
    let finding = bench.says("descriptors", &to("192.0.2.9", 60_000), Fit, Some(19_900 * 4_096));
    assert_eq!(
        (finding.value.english().as_str(), finding.needed.english().as_str()),
        ("20,000 (hard limit 20,000)", "4 shards")
    );
    let service = Needs::of(60_000, Role::Target);
    let finding = bench.says("descriptors", &service, Unfit, Some(19_900));
    assert_eq!(now(&finding), ["ulimit -n 60100"]);
    bench.says("nr-open", &service, Fit, Some(1_048_476));
    let finding =
        bench.says("nr-open", &Needs::of(2_000_000, Role::Target), Unfit, Some(1_048_476));
    assert_eq!(now(&finding), ["sysctl -w fs.nr_open=2100000"]);
    let limits = |soft: &str, hard: &str| format!("Max open files  {soft}  {hard}  files\n");
    let bench = bench.set("proc/self/limits", &limits("1024", "unlimited"));
    let finding = bench.says("descriptors", &service, Warn, Some(u64::MAX - 100));
    assert_eq!(finding.value, "1,024 (hard limit unlimited)");
    let bench = bench.set("proc/self/limits", &limits("40", "40"));
    let finding = bench.says("descriptors", &to("192.0.2.9", 10), Unfit, Some(0));
    assert!(finding.stops_a_run());
}

#[test]
fn watches_threads_and_groups() {
    let bench = Bench::new().set("proc/sys/fs/epoll/max_user_watches", "100000\n");
    bench.says("epoll-watches", &to("127.0.0.1", 60_000), Warn, Some(50_000));
    let finding = bench.says("epoll-watches", &to("127.0.0.1", 110_000), Unfit, Some(50_000));
    assert_eq!(now(&finding), ["sysctl -w fs.epoll.max_user_watches=280000"]);
    let needs = to("192.0.2.9", 1_000_000);
    bench.says("threads", &needs, Fit, Some((32_768 - 120 - 16) * 19_900));
    let bench = bench.set("proc/sys/kernel/pid_max", "150\n");
    let finding = bench.says("threads", &needs, Unfit, Some(14 * 19_900));
    assert_eq!(now(&finding), ["sysctl -w kernel.pid_max=240"]);
    // Without the right to exceed it, an account's own limit applies.
    let bench = bench
        .set("proc/sys/kernel/pid_max", "32768\n")
        .set("proc/self/status", "CapEff:\t0\n")
        .set("proc/self/limits", &LIMITS.replace("96365", "   40"));
    let finding = bench.says("threads", &needs, Unfit, Some(24 * 19_900));
    assert_eq!(now(&finding), ["ulimit -u 240"]);
    let bench = bench.set("sys/fs/cgroup/pids/pids.max", "64\n");
    bench.says("cgroup-pids", &needs, Unfit, Some(48 * 19_900));
    let bench = bench.set("sys/fs/cgroup/pids/pids.max", "max\n");
    let examination = examine(&bench.host, &needs);
    assert!(!examination.findings.iter().any(|finding| finding.rule == "cgroup-pids"));
}

#[test]
fn memory_of_the_host_and_of_the_group() {
    let bench = Bench::new().set("proc/meminfo", "MemAvailable: 1000000 kB\nSwapFree: 0 kB\n");
    // 1,024,000,000 bytes, 3,901 + 1,200 per user at most and 2,926 + 700 at least.
    bench.says("memory", &to("192.0.2.9", 200_000), Fit, Some(200_744));
    bench.says("memory", &to("192.0.2.9", 250_000), Warn, Some(200_744));
    bench.says("memory", &to("192.0.2.9", 300_000), Unfit, Some(200_744));
    bench.says("memory", &to("127.0.0.1", 200_000), Unfit, Some(102_379));
    let tls = Needs { tls: true, ..to("192.0.2.9", 100_000) };
    bench.says("memory", &tls, Warn, Some(48_528));
    bench.says("memory", &Needs::of(300_000, Role::Target), Warn, Some(208_936));
    // Swap space counts.
    let bench = bench.set("proc/meminfo", "MemAvailable: 1000000 kB\nSwapFree: 1000000 kB\n");
    bench.says("memory", &to("192.0.2.9", 300_000), Warn, Some(200_744));
    let bench = bench.set("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "104857600\n");
    bench.says("cgroup-memory", &to("192.0.2.9", 20_000), Fit, Some(20_556));
    bench.says("cgroup-memory", &to("192.0.2.9", 100_000), Warn, Some(20_556));
    let finding = bench.says("cgroup-memory", &to("192.0.2.9", 150_000), Unfit, Some(20_556));
    assert!(finding.stops_a_run());
    let bench = bench.without("proc/meminfo");
    bench.says("memory", &to("192.0.2.9", u64::MAX), Unknown, None);
}

#[test]
fn address_space_of_this_process() {
    let limits = |space: &str| {
        format!("Max address space         {space}            unlimited            bytes\n{LIMITS}")
    };
    let bench = Bench::new().set("proc/self/limits", &limits("unlimited"));
    let examination = examine(&bench.host, &to("192.0.2.9", 1_000_000));
    assert!(!examination.findings.iter().any(|finding| finding.rule == "address-space"));
    let bench = bench.set("proc/self/limits", &limits("2000000000"));
    assert_eq!(bench.find("address-space", &to("192.0.2.9", 100_000)).severity, Fit);
    assert_eq!(bench.find("address-space", &to("192.0.2.9", 2_000_000)).severity, Warn);
    let finding = bench.find("address-space", &to("192.0.2.9", 4_000_000));
    assert_eq!(finding.severity, Unfit);
    assert!(finding.stops_a_run());
}

const REPORTING_ORDER: &str = "sys/module/page_reporting/parameters/page_reporting_order";
const FEATURES: &str = "sys/bus/virtio/drivers/virtio_balloon/virtio0/features";

#[test]
fn free_page_reporting_is_found() {
    let rule = "page-reporting";
    let bench = Bench::new();
    let (few, many) = (to("127.0.0.1", 10_000), to("127.0.0.1", 1_000_000));
    let is_silent = |bench: &Bench, needs: &Needs| {
        !examine(&bench.host, needs).findings.iter().any(|finding| finding.rule == rule)
    };
    // A kernel without it, or a balloon that is unknown.
    assert!(is_silent(&bench, &many));
    let bench = bench.set(REPORTING_ORDER, "9\n");
    assert!(is_silent(&bench, &few));
    bench.says(rule, &many, Unknown, None);
    bench.says(rule, &Needs::of(1_000_000, Role::Target), Unknown, None);
    let bench = bench.set(FEATURES, "0110010100000000\n");
    bench.says(rule, &few, Fit, None);
    let finding = bench.says(rule, &many, Warn, None);
    assert_eq!(finding.value, "on (in blocks of 2^9 pages or more)");
    let path = format!("/{REPORTING_ORDER}");
    assert_eq!(now(&finding), [format!("echo 11 > {path} || echo 10 > {path}")]);
    assert!(apply(&bench.host, &[finding]).is_empty(), "that is for the person to decide");
    // Pages of 64 KB have blocks of other orders.
    let bench = bench.set("proc/buddyinfo", "Node 0, zone   Normal  1 2 3 4 5 6 7 8 9 0 1 2 3 4\n");
    let finding = bench.says(rule, &many, Warn, None);
    assert!(now(&finding)[0].starts_with("echo 14 >"), "{finding:?}");
    let bench = bench.set(REPORTING_ORDER, "14\n");
    bench.says(rule, &many, Fit, None);
    let bench = bench.set(REPORTING_ORDER, "-1\n");
    bench.says(rule, &many, Fit, None);
    let bench = bench.set(REPORTING_ORDER, "0\n").set(FEATURES, "0110000000000000\n");
    bench.says(rule, &many, Fit, None);
    for broken in ["", "01", "\u{0}"] {
        let bench = Bench::new().set(REPORTING_ORDER, "9\n").set(FEATURES, broken);
        bench.says(rule, &many, Unknown, None);
    }
}

/// Silently dropped connections are kept for two minutes, in tables with separate room for them.
#[test]
fn dropped_connections_need_the_same_resources() {
    let left =
        |users: u64, vanished: u64, to: Needs| Needs { users, vanished, leaves_behind: true, ..to };
    let bench = Bench::new();
    // An eighth of 19,900 in each of two tables.
    let finding = bench.says(
        "descriptors",
        &left(20_000, 60_000, to("192.0.2.9", 1)),
        Fit,
        Some((19_900 - 2_487) * 4_096),
    );
    assert!(
        finding
            .value
            .english()
            .contains("2,487 per table reserved for silently dropped connections"),
        "{finding:?}"
    );
    assert_eq!(finding.needed, "2 shards");
    let ports = |users: u64, vanished: u64, severity, ceiling| {
        let needs = left(users, vanished, to("192.0.2.9", 1));
        bench.says("source-ports", &needs, severity, Some(ceiling))
    };
    ports(20_000, 0, Fit, 28_232);
    ports(20_000, 3_000, Fit, 25_232);
    ports(20_000, 60_000, Fit, 28_232 - 2 * 2_487);
    let finding = ports(24_000, 60_000, Unfit, 28_232 - 2 * 2_487);
    assert_eq!(finding.needed, "28,974 ports");
    let finding = bench.find("source-addresses", &left(62_000, 60_000, to("192.0.2.9", 1)));
    assert_eq!((finding.severity, finding.ceiling), (Unfit, Some(64_512 - 4 * 2_487)));
    let bench = bench.set("proc/sys/net/netfilter/nf_conntrack_count", "144\n");
    let needs = left(200_000, 2_000, to("192.0.2.9", 1));
    bench.says("conntrack", &needs, Fit, Some(260_000));
    let bench = bench.set("proc/self/status", "CapEff:\t0\n");
    bench.says("file-max", &needs, Fit, Some(2_465_230 - 2_000));
    let bench = bench.set("proc/meminfo", "MemAvailable: 1000000 kB\nSwapFree: 0 kB\n");
    let finding = bench.says("memory", &needs, Warn, Some((1_024_000_000 - 2_000 * 3_901) / 5_101));
    assert!(
        finding.needed.english().ends_with("plus 2,000 silently dropped connections)"),
        "{finding:?}"
    );
    // How soon a service notices it is unknown.
    let target = left(200_000, 2_000, Needs::of(1, Role::Target));
    bench.says("memory", &target, Fit, Some(208_936));
    // Nothing is guessed if the tables cannot be read.
    let bench = bench.set("proc/self/limits", "");
    bench.says("memory", &needs, Fit, Some(200_744));
}

#[test]
fn dropped_connections_scale_with_the_users() {
    let needs = Needs { vanished: 30, reopened_per_second: 2.0, ..to("192.0.2.9", 100) };
    let more = needs.clone().with_users(1_000);
    assert_eq!((more.users, more.vanished, more.reopened_per_second), (1_000, 300, 20.0));
    assert_eq!(Needs { users: 0, ..needs }.with_users(5).users, 5);
}

#[test]
fn tracked_connections() {
    let needs = to("192.0.2.9", 300_000);
    let finding = Bench::new().says("conntrack", &needs, Fit, None);
    assert!(finding.value.english().starts_with("no connections tracked (limit"), "{finding:?}");
    let bench = Bench::new().set("proc/sys/net/netfilter/nf_conntrack_count", "144\n");
    let finding = bench.says("conntrack", &needs, Unfit, Some(262_000));
    assert!(!finding.stops_a_run(), "nobody knows which packets the firewall tracks");
    assert_eq!(now(&finding), ["sysctl -w net.netfilter.nf_conntrack_max=380000"]);
    let bench = bench.without("proc/sys/net/netfilter/nf_conntrack_max");
    assert_eq!(bench.says("conntrack", &needs, Fit, None).value, "not loaded");
}

#[test]
fn ended_connections_keep_their_ports() {
    let bench = Bench::new();
    let closing = |address: &str, rate| Needs { reopened_per_second: rate, ..to(address, 10_000) };
    bench.says("time-wait", &closing("192.0.2.9", 0.0), Fit, None);
    bench.says("time-wait", &closing("192.0.2.9", 300.0), Fit, None);
    let finding = bench.says("time-wait", &closing("192.0.2.9", 400.0), Warn, None);
    assert_eq!(now(&finding), ["sysctl -w net.ipv4.tcp_tw_reuse=1"]);
    bench.says("time-wait", &closing("127.0.0.1", 10_000.0), Fit, None);
    // The kernel limits their number.
    let bench = bench.set("proc/sys/net/ipv4/tcp_max_tw_buckets", "18000\n");
    bench.says("time-wait", &closing("192.0.2.9", 400.0), Fit, None);
    let bench = bench.set("proc/sys/net/ipv4/tcp_tw_reuse", "1\n");
    bench.says("time-wait", &closing("192.0.2.9", 400.0), Fit, None);
}

#[test]
fn queues_of_a_listener() {
    let target = |rate| Needs { opened_per_second: rate, ..Needs::of(1_000_000, Role::Target) };
    let bench = Bench::new();
    bench.says("accept-queue", &target(Some(20_000.0)), Fit, None);
    let finding = bench.says("accept-queue", &target(Some(100_000.0)), Warn, None);
    assert_eq!(now(&finding), ["sysctl -w net.core.somaxconn=10000"]);
    let none = examine(&bench.host, &to("192.0.2.9", 1));
    assert!(!none.findings.iter().any(|finding| finding.rule == "accept-queue"));
    bench.says("syn-backlog", &target(Some(100_000.0)), Fit, None);
    let bench = bench.set("proc/sys/net/ipv4/tcp_syncookies", "0\n");
    let finding = bench.says("syn-backlog", &target(Some(100_000.0)), Warn, None);
    assert_eq!(now(&finding)[0], "sysctl -w net.ipv4.tcp_syncookies=1");
}

#[test]
fn queues_and_their_memory() {
    let bench = Bench::new();
    bench.says("tcp-memory", &to("192.0.2.9", 500_000), Fit, None);
    let finding = bench.says("tcp-memory", &to("127.0.0.1", 500_000), Warn, None);
    assert_eq!(now(&finding), ["sysctl -w net.ipv4.tcp_mem='625000 833332 1250000'"]);
    let bench = bench.set("proc/meminfo", "MemTotal: 4000000 kB\n");
    let finding = bench.says("tcp-memory", &to("127.0.0.1", 500_000), Warn, None);
    assert!(now(&finding).is_empty() && finding.fixes[0].advice().is_some());
    bench.says("socket-buffers", &to("192.0.2.9", 1), Fit, None);
    let bench = bench.set("proc/sys/net/ipv4/tcp_rmem", "4096 16777216 16777216\n");
    let finding = bench.says("socket-buffers", &to("192.0.2.9", 1), Warn, None);
    assert_eq!(now(&finding), ["sysctl -w net.ipv4.tcp_rmem='4096 131072 6291456'"]);
    let finding = bench.says("packet-backlog", &to("127.0.0.1", 1), Warn, None);
    assert!(finding.value.english().contains("6,561 dropped"), "{finding:?}");
    let bench = bench.set("proc/net/softnet_stat", "0eb00d48 00000000\n");
    bench.says("packet-backlog", &to("127.0.0.1", 1), Fit, None);
}

#[test]
fn datagrams_have_separate_rules() {
    let bench = Bench::new();
    let needs = datagrams_to("192.0.2.9", 28_232);
    let rules: Vec<&str> =
        examine(&bench.host, &needs).findings.into_iter().map(|finding| finding.rule).collect();
    for rule in ["time-wait", "tcp-memory", "socket-buffers", "accept-queue", "syn-backlog"] {
        assert!(!rules.contains(&rule), "{rule}");
    }
    let local = datagrams_to("127.0.0.1", 100_000);
    let is_of_listeners =
        |finding: &Finding| ["accept-queue", "syn-backlog"].contains(&finding.rule);
    assert!(!examine(&bench.host, &local).findings.iter().any(is_of_listeners));
    let tcp = examine(&bench.host, &to("192.0.2.9", 1)).findings;
    assert!(!tcp.iter().any(|finding| finding.rule.starts_with("udp")));
    // A port is used once, for any number of target addresses.
    bench.says("source-ports", &needs, Fit, Some(28_232));
    let mut spread = needs.clone();
    spread.routes = [("192.0.2.8", 0.5), ("192.0.2.9", 0.5)]
        .map(|(address, share)| Route { share, ..datagrams_to(address, 1).routes.remove(0) })
        .to_vec();
    bench.says("source-ports", &spread, Fit, Some(28_232));
    // In addition to TCP users, which do not share ports with them.
    let mut mixed = Needs { datagrams: 0.5, ..spread };
    mixed.routes[0].is_datagram = false;
    bench.says("source-ports", &mixed, Fit, Some(56_464));
    let half = bench.find("tcp-memory", &mixed).needed;
    assert_eq!(half, "none while idle; 14,116 pages if all sockets have data at the same time");
}

#[test]
fn queues_of_datagrams() {
    let bench = Bench::new();
    bench.says("udp-memory", &datagrams_to("192.0.2.9", 1_000_000), Fit, None);
    let finding = bench.says("udp-memory", &datagrams_to("192.0.2.9", 1_200_000), Warn, None);
    assert_eq!(now(&finding), ["sysctl -w net.ipv4.udp_mem='750000 1000000 1500000'"]);
    let rate = |needs: Needs, rate| Needs { opened_per_second: Some(rate), ..needs };
    // Each user has its own queue; those of a service share one.
    let far = rate(datagrams_to("192.0.2.9", 1_000_000), 200_000.0);
    bench.says("udp-queues", &far, Fit, None);
    let near = rate(datagrams_to("127.0.0.1", 1_000_000), 200_000.0);
    let finding = bench.says("udp-queues", &near, Warn, None);
    assert_eq!(now(&finding), ["sysctl -w net.core.rmem_max=7700000"]);
    bench.says("udp-queues", &Needs { role: Role::Target, ..near }, Warn, None);
    let bench = bench
        .set("proc/sys/net/core/rmem_default", "65536\n")
        .set("proc/net/snmp", "Udp: InDatagrams RcvbufErrors\nUdp: 557 1200\n");
    let finding = bench.says("udp-queues", &far, Warn, None);
    assert_eq!(now(&finding), ["sysctl -w net.core.rmem_default=131072"]);
    assert!(finding.value.english().contains("1,200 datagrams dropped"), "{finding:?}");
}

#[test]
fn interfaces_clock_and_steal() {
    let bench = Bench::new();
    let needs = to("192.0.2.9", 1);
    bench.says("nic-queues", &needs, Fit, None);
    bench.says("clock-source", &needs, Fit, None);
    bench.says("cpu-steal", &needs, Fit, None);
    let target = Needs::of(1, Role::Target);
    bench.says("rp-filter", &target, Fit, None);
    let bench = bench
        .set("sys/devices/system/cpu/online", "0-15\n")
        .set("sys/class/net/eth1.7/operstate", "up\n")
        .set("proc/stat", "cpu  50 0 20 900 20 0 0 30 0 0\n")
        .set("sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n");
    let finding = bench.says("nic-queues", &needs, Warn, None);
    assert!(now(&finding)[1].contains("echo ffff >"), "{finding:?}");
    let finding = bench.says("rp-filter", &target, Warn, None);
    assert_eq!(
        now(&finding),
        ["sysctl -w net.ipv4.conf.eth0.rp_filter=2", "sysctl -w net/ipv4/conf/eth1.7/rp_filter=2"]
    );
    bench.says("cpu-steal", &needs, Warn, None);
    let finding = bench.says("clock-source", &needs, Warn, None);
    assert!(now(&finding)[0].starts_with("echo tsc >"));
    let bench = bench
        .set("sys/class/net/eth0/queues/rx-0/rps_cpus", "0000000f\n")
        .set("sys/devices/system/clocksource/clocksource0/current_clocksource", "sundial\n");
    bench.says("nic-queues", &needs, Fit, None);
    bench.says("clock-source", &needs, Unknown, None);
}

#[test]
fn only_settings_are_written() {
    let bench = Bench::new().set("proc/sys/net/netfilter/nf_conntrack_count", "1\n");
    let needs = to("192.0.2.9", 300_000);
    let before = examine(&bench.host, &needs);
    std::fs::remove_file(bench.root.path("proc/sys/net/core/netdev_max_backlog")).unwrap();
    let applied = apply(&bench.host, &before.findings);
    let keys: Vec<&str> = applied.iter().map(|one| one.key.as_str()).collect();
    let want = [
        "net.ipv4.ip_local_port_range",
        "net.netfilter.nf_conntrack_max",
        "net.core.netdev_max_backlog",
    ];
    assert_eq!(keys, want);
    assert_eq!(applied[0].before.as_deref(), Some("32768\t60999"));
    assert_eq!(applied[0].error, None);
    assert!(applied[2].error.is_some(), "a setting that is not there is not made");
    assert!(!bench.root.path("proc/sys/net/core/netdev_max_backlog").exists());
    bench.says("conntrack", &needs, Fit, Some(379_999));
    // Missing addresses are not fixed by settings.
    bench.says("source-ports", &needs, Unfit, Some(64_512));
    bench.says("source-ports", &to("192.0.2.9", 64_512), Fit, Some(64_512));
}

#[test]
fn unreadable_values_are_unknown_and_stop_nothing() {
    let garbage = "\u{0}:\n::: 18446744073709551616\n|-- 1.2.3\n/99 host LOCAL\n|-- 1.2.3.4\n\
                   /33 host LOCAL\nMemAvailable: x kB\ncpu 1 2\nMax open files -1 x\n- 9-1\n";
    for text in ["", garbage] {
        let files: Vec<(&str, &str)> =
            workshop().into_iter().map(|(path, _)| (path, text)).collect();
        let (_directory, root) = computer(&files);
        for role in [Role::Generator, Role::Target] {
            let users = 1_000_000_000;
            let v6 = Needs { sources: vec![range("::1", "::2")], ..Needs::of(users, role) };
            let datagrams = datagrams_to("127.0.0.1", users);
            for needs in [Needs::of(users, role), to("127.0.0.1", users), v6, datagrams] {
                let findings = examine(&Host::new(root.clone()), &needs).findings;
                let stops: Vec<&Finding> =
                    findings.iter().filter(|finding| finding.stops_a_run()).collect();
                assert!(stops.is_empty(), "{stops:?}");
            }
        }
    }
    let (_directory, root) = computer(&[]);
    let findings = examine(&Host::new(root), &Needs::of(1, Role::Generator)).findings;
    assert!(findings.len() > 10);
    assert!(findings.iter().all(|finding| finding.severity == Unknown), "{findings:#?}");
}

#[test]
fn this_host_is_examined() {
    let examination = examine(&Host::new(Root::default()), &to("127.0.0.1", 10));
    assert!(examination.findings.len() > 10);
    assert!(!examination.findings.iter().any(Finding::stops_a_run), "{examination:?}");
}

#[test]
fn requirements_of_user_networks_are_reported() {
    let bench = Bench::new();
    let wired = |address: &str| Needs { wired: 1.0, ..to(address, 100_000) };
    let (near, own, far) = (wired("127.0.0.1"), wired("192.0.2.2"), wired("192.0.2.9"));
    let without = examine(&bench.host, &to("192.0.2.9", 1));
    assert!(without.findings.iter().all(|it| it.rule != "user-network"));
    let finding = bench.says("user-network", &near, Unfit, None);
    assert_eq!(now(&finding), ["modprobe tun"]);
    let bench = bench.set("dev/net/tun", "").set("proc/sys/net/ipv4/ip_forward", "0\n");
    bench.says("user-network", &near, Fit, None);
    bench.says("user-network", &own, Fit, None);
    let finding = bench.says("user-network", &far, Unfit, None);
    assert_eq!(now(&finding)[0], "sysctl -w net.ipv4.ip_forward=1");
    let bench = bench.set("proc/sys/net/ipv4/ip_forward", "1\n");
    bench.says("user-network", &far, Fit, None);
    // Each user has its own ports.
    let ports = examine(&bench.host, &far);
    assert!(ports.findings.iter().all(|it| it.rule != "source-ports" || it.severity == Fit));
    let bench = bench.set("proc/self/status", "CapEff:\t0000000000000000\n");
    bench.says("user-network", &near, Unfit, None);
}

#[test]
fn a_cpu_quota_is_reported() {
    let needs = to("192.0.2.9", 1);
    let bench = Bench::new();
    assert!(examine(&bench.host, &needs).findings.iter().all(|it| it.rule != "cpu-quota"));
    let bench = bench
        .set("proc/self/cgroup", "0::/box\n")
        .set("sys/fs/cgroup/box/cpu.max", "50000 100000\n");
    let finding = bench.says("cpu-quota", &needs, Warn, None);
    assert!(finding.value.english().starts_with("0.50 of "), "{finding:?}");
    let bench = bench.set("sys/fs/cgroup/box/cpu.max", "12800000 100000\n");
    bench.says("cpu-quota", &needs, Fit, None);
}
