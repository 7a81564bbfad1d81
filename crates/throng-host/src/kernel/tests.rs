//! Texts of Linux 6.18, each also truncated at every byte.

use super::*;

const STAT: &str = "cpu  5686654 1395031 696133 2399210 15497 0 78422 19747 0 0\n\
                    cpu0 2844770 693847 344944 1205168 8483 0 38875 9586 0 0\n\
                    cpu1 2841883 701184 351189 1194041 7014 0 39547 10161 0 0\n\
                    intr 87840349 0 0\nctxt 300605397\nbtime 1795695071\nprocs_running 7\n";
const NETSTAT: &str = "TcpExt: SyncookiesSent ListenOverflows ListenDrops\nTcpExt: 0 104 107\n\
                       IpExt: InNoRoutes\nIpExt: 2\n";
const SNMP: &str = "Tcp: RtoAlgorithm MaxConn RetransSegs\nTcp: 1 -1 24314\n\
                    Udp: InDatagrams RcvbufErrors\nUdp: 7 3\n";
const SOCKSTAT: &str = "sockets: used 16\nTCP: inuse 1 orphan 0 tw 5 alloc 1 mem 180\n\
                        FRAG: inuse 0 memory 0\n";
const SOFTNET: &str = "0b216e0c 00000002 00000023 0 0 0 0 0 0 0 0 00000000 00000000 0 0\n\
                       0aa1f2cc 00000000 0000001a 0 0 0 0 0 0 0 0 00000000 00000003 0 0\n";
const PRESSURE: &str = "some avg10=82.51 avg60=58.26 avg300=35.79 total=19889024824\n\
                        full avg10=0.04 avg60=0.00 avg300=0.00 total=12\n";
const DEVICES: &str = "Inter-|   Receive              |  Transmit\n face |bytes packets|bytes\n    \
                       lo: 279 365 1 2 0 0 0 0 280 366 3 4 0 0 0 0\n  eth0:9 1 0 0 0 0 0 0 6 7 0 0 0 0 0 0\n";
const DISKSTATS: &str = " 254       0 vda 10 1 80 4 20 2 160 8 0 12 13 0 0 0 0 0 0\n";
const CONNTRACK: &str =
    "entries  clashres drop early_drop\n0000000a 0 00000010 1\n0000000a 0 1 f\n";
const PROCESS: &str = "2233 (a) b (c) R 2217 2217 26197 0 -1 4194304 99 0 0 0 11 12 0 0 20 0 \
                       4 0 5153940 3133440 416 18446744073709551615 94 9 1\n";

#[test]
fn each_text_is_parsed() {
    let of_cpu1 = processor_times(STAT).nth(2);
    assert_eq!(of_cpu1, Some(("cpu1", [2841883, 701184, 351189, 1194041, 7014, 0, 39547, 10161])));
    assert_eq!(processor_times(STAT).count(), 3);
    let listen: Vec<_> = counters(NETSTAT, "TcpExt").collect();
    assert_eq!(listen, [("SyncookiesSent", 0), ("ListenOverflows", 104), ("ListenDrops", 107)]);
    let tcp: Vec<_> = counters(SNMP, "Tcp").collect();
    assert_eq!(tcp, [("RtoAlgorithm", 1), ("RetransSegs", 24314)]);
    assert_eq!(counters(SNMP, "Ud").count(), 0, "a whole name");
    assert!(sockets(SOCKSTAT).any(|row| row == ("TCP", "tw", 5)));
    let rows: Vec<_> = softnet(SOFTNET).collect();
    assert_eq!((rows[0].processed, rows[0].dropped, rows[0].squeezed), (0x0b21_6e0c, 2, 0x23));
    assert_eq!((rows[0].processor, rows[1].processor), (0, 3));
    let some = pressures(PRESSURE).next();
    let expected = Pressure { kind: "some", percent_10s: 82.51, total_us: 19_889_024_824 };
    assert_eq!(some, Some(expected));
    let names: Vec<_> = interfaces(DEVICES).map(|it| (it.name, it.received, it.sent)).collect();
    assert_eq!(names[0], ("lo", [279, 365, 1, 2], [280, 366, 3, 4]));
    assert_eq!(names[1].0, "eth0");
    let disk = disks(DISKSTATS).next().expect("a disk");
    assert_eq!((disk.name, disk.reads, disk.read_sectors, disk.writes), ("vda", 10, 80, 20));
    assert_eq!((disk.written_sectors, disk.busy_ms, disk.weighted_ms), (160, 12, 13));
    assert_eq!(column_sum(CONNTRACK, "drop"), Some(0x11));
    assert_eq!(column_sum(CONNTRACK, "none"), None);
    assert_eq!(named("oom 1\noom_kill 2\nbad\n").nth(1), Some(("oom_kill", 2)));
    let stat = process(PROCESS).expect("a process");
    assert_eq!((stat.name, stat.is_zombie, stat.user_ticks), ("a) b (c", false, 11));
    assert_eq!((stat.system_ticks, stat.threads, stat.started_ticks), (12, 4, 5_153_940));
    assert_eq!(stat.resident_pages, 416);
}

/// All parsers on a text; none may panic.
fn read_all(text: &str) {
    processor_times(text).for_each(drop);
    ["TcpExt", "Tcp", ""].iter().for_each(|it| counters(text, it).for_each(drop));
    sockets(text).for_each(drop);
    softnet(text).for_each(drop);
    pressures(text).for_each(drop);
    interfaces(text).for_each(drop);
    disks(text).for_each(drop);
    named(text).for_each(drop);
    let _ = (column_sum(text, "drop"), process(text));
}

const ALL: [&str; 9] =
    [STAT, NETSTAT, SNMP, SOCKSTAT, SOFTNET, PRESSURE, DEVICES, DISKSTATS, CONNTRACK];

#[test]
fn a_truncated_text_gives_no_more_than_the_whole_one() {
    for whole in ALL.into_iter().chain([PROCESS]) {
        (0..whole.len()).for_each(|end| read_all(&whole[..end]));
    }
    for end in 0..STAT.len() {
        let cut: Vec<_> = processor_times(&STAT[..end]).map(|row| row.0).collect();
        assert!(["cpu", "cpu0", "cpu1"].starts_with(&cut), "{end}: {cut:?}");
    }
}

#[test]
fn fuzz_texts_of_the_kernel() {
    let corpus: Vec<&[u8]> = ALL.iter().chain([&PROCESS]).map(|text| text.as_bytes()).collect();
    throng_fuzz::mutations(&corpus, |bytes, _| read_all(&String::from_utf8_lossy(bytes)));
}
