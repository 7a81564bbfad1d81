//! What the tools print, read.

use super::*;

fn read(name: &str, output: &str) -> Option<Sample> {
    let tool = TOOLS.iter().find(|tool| tool.name == name).unwrap();
    (tool.read)(output)
}

#[test]
fn every_tool_is_read() {
    let cases = [
        (
            "wrk",
            "  204766 requests in 2.00s, 166.57MB read\n  Socket errors: connect 1, read 2, write \
             0, timeout 3\n  Non-2xx or 3xx responses: 66\n",
            (204_700, 72),
        ),
        ("ab", "Complete requests:      179671\nFailed requests:        1\n", (179_670, 1)),
        (
            "h2load",
            "requests: 206760 total, 206824 started, 206760 done, 206760 succeeded, 2 failed, 1 \
             errored, 0 timeout\nstatus codes: 206757 2xx, 0 3xx, 0 4xx, 0 5xx\n",
            (206_757, 3),
        ),
        (
            "hey",
            "  0.000 [1]\t|\nStatus code distribution:\n  [200]\t64894 responses\n  [503]\t2 \
             responses\n\nError distribution:\n  [7]\tGet \"x\": EOF\n",
            (64_894, 9),
        ),
        (
            "k6",
            r#"{"metrics":{"http_reqs":{"values":{"count":26226}},
                "http_req_failed":{"values":{"passes":6,"fails":26220}}}}"#,
            (26_220, 6),
        ),
        ("k6", r#"{"metrics":{"ws_msgs_received":{"values":{"count":7}}}}"#, (7, 0)),
        ("ghz", r#"{"count":120,"statusCodeDistribution":{"OK":118,"Unavailable":2}}"#, (118, 2)),
    ];
    for (tool, output, want) in cases {
        let told = read(tool, output).unwrap();
        assert_eq!((told.ok, told.failed), want, "{tool}");
    }
}

#[test]
fn wrk2_output_is_parsed() {
    let output = "\
  1 threads and 100 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     1.62ms    1.39ms  18.26ms   88.06%
  Latency Distribution (HdrHistogram - Recorded Latency)
 50.000%  724.00us
 75.000%    1.85ms
 99.000%    7.12ms
  Detailed Percentile spectrum:
       0.724     0.500000        11894         2.00
----------------------------------------------------------
  23796 requests in 5.00s, 1.77MB read
  Non-2xx or 3xx responses: 6
";
    let told = read("wrk2", output).unwrap();
    assert_eq!((told.ok, told.failed), (23_790, 6));
    assert_eq!(told.times_us, [Some(724.0), Some(7_120.0)]);
}

#[test]
fn vegeta_output_is_parsed() {
    let output = r#"{"latencies":{"total":4921931254,"mean":492193,"50th":314915,"90th":833796,
        "95th":1314829,"99th":4075026,"max":16267673,"min":47030},"duration":2000104332,
        "wait":155241,"requests":10000,"rate":4999.739183605749,"throughput":4999.351151711748,
        "success":1,"status_codes":{"0":3,"200":9990,"204":2,"503":5},"errors":[]}"#;
    let told = read("vegeta", output).unwrap();
    assert_eq!((told.ok, told.failed, told.seconds), (9_992, 8, 2.000_104_332));
    assert_eq!(told.times_us, [Some(314.915), Some(4_075.026)]);
}

#[test]
fn throng_output_is_parsed() {
    let output = r#"{"total":{"ok":14998,"failed":1,"latency":{"p50_ns":790528,"p99_ns":null}},
        "generator":{"lateness":{"p50_ns":1500,"p99_ns":6717440,"max_ns":14646313},
        "precision_ns":250000,"together_mean":5.25,"together_max":11},"outcome":{"valid":false}}"#;
    let told = read("throng", output).unwrap();
    assert_eq!((told.ok, told.failed, told.is_valid()), (14_998, 1, false));
    assert_eq!(told.times_us, [Some(790.528), None]);
    assert_eq!(at(&told.summary, "/generator/together_mean"), Some(5.25));
}

#[test]
fn malformed_output_is_not_parsed() {
    for tool in ["throng", "wrk", "ab", "h2load", "k6", "ghz", "vegeta", "wrk2"] {
        assert_eq!(read(tool, "command not found"), None, "{tool}");
    }
}

#[test]
fn a_command_line_is_filled() {
    let folder = std::env::temp_dir().join(format!("xtask-tool-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let throng = folder.join("throng");
    fs::write(&throng, "").unwrap();
    let places = Places { folder: folder.clone(), throng, root: "/w".into(), target: "/t".into() };
    let values = vec![("URL", "http://127.0.0.1:1/".to_string()), ("USERS", "7".to_string())];
    let (_, command) = command("throng bench @URL@x -c @USERS@", &values, &places).unwrap();
    let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy()).collect();
    let words = words.join(" ");
    assert_eq!(words, "bench http://127.0.0.1:1/x -c 7 --quiet --json --no-record");
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn versions_are_found_in_what_programs_say() {
    let cases = [
        ("This is ApacheBench, Version 2.3 <$Revision$>", "ab", "2.3"),
        ("wrk debian/4.1.0-3+b2 [epoll] Copyright (C)", "wrk", "debian/4.1.0-3+b2"),
        ("h2load nghttp2/1.52.0", "h2load", "nghttp2/1.52.0"),
        ("Tsung version 1.7.0", "tsung", "1.7.0"),
        ("Version: v12.12.0", "vegeta", "v12.12.0"),
        ("Version: ", "vegeta", "unknown"),
        ("k6 v1.8.1 (go1.26.8, linux/amd64)", "k6", "v1.8.1"),
        ("nginx version: nginx/1.22.1", "nginx", "nginx/1.22.1"),
        ("rustc 1.95.0 (59807616e 2026-04-14)", "rustc", "1.95.0"),
        ("f7b9326-dirty", "commit", "f7b9326-dirty"),
        ("", "x", "unknown"),
    ];
    for (line, label, version) in cases {
        assert_eq!(version_in(line, label), version);
    }
}
