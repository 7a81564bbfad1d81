//! What the tools are told, and what they print, read.

use super::*;
use crate::bench::contest::Starts;

fn load(kind: ToolKind, rate: Option<u32>, pinned: bool) -> Load {
    Load { rate, pinned, ..Load::new("http://127.0.0.1:1/".to_string(), kind, 100, 5) }
}

#[test]
fn every_tool_is_read() {
    let load = load(ToolKind::KeepAlive, None, true);
    let cases = [
        (
            Tool::Wrk,
            "  204766 requests in 2.00s, 166.57MB read\n  Socket errors: connect 1, read 2, write \
             0, timeout 3\n  Non-2xx or 3xx responses: 66\n",
            (204_700, 72),
        ),
        (Tool::Ab, "Complete requests:      179671\nFailed requests:        1\n", (179_670, 1)),
        (
            Tool::H2load,
            "requests: 206760 total, 206824 started, 206760 done, 206760 succeeded, 2 failed, 1 \
             errored, 0 timeout\nstatus codes: 206757 2xx, 0 3xx, 0 4xx, 0 5xx\n",
            (206_757, 3),
        ),
        (
            Tool::Hey,
            "  0.000 [1]\t|\nStatus code distribution:\n  [200]\t64894 responses\n  [503]\t2 \
             responses\n\nError distribution:\n  [7]\tGet \"x\": EOF\n",
            (64_894, 9),
        ),
        (
            Tool::K6,
            r#"{"metrics":{"http_reqs":{"values":{"count":26226}},
                "http_req_failed":{"values":{"passes":6,"fails":26220}}}}"#,
            (26_220, 6),
        ),
        (Tool::K6, r#"{"metrics":{"ws_msgs_received":{"values":{"count":7}}}}"#, (7, 0)),
        (
            Tool::Ghz,
            r#"{"count":120,"statusCodeDistribution":{"OK":118,"Unavailable":2}}"#,
            (118, 2),
        ),
    ];
    for (tool, output, want) in cases {
        let told = tool.told(output, &load).unwrap();
        assert_eq!(((told.ok, told.failed), told.seconds), (want, 5.0), "{tool:?}");
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
    let told = Tool::Wrk2.told(output, &load(ToolKind::KeepAlive, Some(5_000), true)).unwrap();
    assert_eq!((told.ok, told.failed), (23_790, 6));
    assert_eq!(told.times_us, [Some(724.0), Some(7_120.0)]);
    // 100 connections, each 5 ms after the one before; with two threads in half the time.
    assert!((told.seconds - 4.7525).abs() < 1e-9, "{}", told.seconds);
    let both = Tool::Wrk2.told(output, &load(ToolKind::KeepAlive, Some(100_000), false)).unwrap();
    assert!((both.seconds - 4.8775).abs() < 1e-9, "{}", both.seconds);
}

#[test]
fn vegeta_output_is_parsed() {
    let output = r#"{"latencies":{"total":4921931254,"mean":492193,"50th":314915,"90th":833796,
        "95th":1314829,"99th":4075026,"max":16267673,"min":47030},"duration":2000104332,
        "wait":155241,"requests":10000,"rate":4999.739183605749,"throughput":4999.351151711748,
        "success":1,"status_codes":{"0":3,"200":9990,"204":2,"503":5},"errors":[]}"#;
    let told = Tool::Vegeta.told(output, &load(ToolKind::KeepAlive, Some(1), true)).unwrap();
    assert_eq!((told.ok, told.failed, told.seconds), (9_992, 8, 2.000_104_332));
    assert_eq!(told.times_us, [Some(314.915), Some(4_075.026)]);
}

#[test]
fn throng_output_is_parsed() {
    let output = r#"{"total":{"ok":14998,"failed":1,"latency":{"p50_ns":790528,"p99_ns":null}},
        "generator":{"lateness":{"p50_ns":1500,"p99_ns":6717440,"max_ns":14646313},
        "precision_ns":250000,"together_mean":5.25,"together_max":11},"outcome":{"valid":false}}"#;
    let load = load(ToolKind::KeepAlive, Some(3_000), true);
    let told = Tool::Throng.told(output, &load).unwrap();
    assert_eq!((told.ok, told.failed, told.seconds, told.valid), (14_998, 1, 5.0, false));
    assert_eq!(told.times_us, [Some(790.528), None]);
    let starts = told.starts;
    assert_eq!((starts.precision, starts.late_p99), (Some(250.0), Some(6_717.44)));
    assert_eq!((starts.together_mean, starts.together_max), (Some(5.25), Some(11.0)));
    // Before there was a precision.
    let older = r#"{"total":{"ok":1,"failed":0},"generator":{"lateness":{"p50_ns":1500}},
        "outcome":{"valid":true}}"#;
    let starts = Tool::Throng.told(older, &load).unwrap().starts;
    assert_eq!(starts, Starts { late_p50: Some(1.5), ..Starts::default() });
}

#[test]
fn malformed_output_is_not_parsed() {
    let load = load(ToolKind::KeepAlive, Some(1), true);
    for tool in [Tool::Throng, Tool::Wrk, Tool::Ab, Tool::H2load, Tool::K6, Tool::Ghz] {
        assert_eq!(tool.told("command not found", &load), None);
    }
    assert_eq!(Tool::Vegeta.told("command not found", &load), None);
    assert_eq!(Tool::Wrk2.told("command not found", &load), None);
}

#[test]
fn each_is_told_the_same_load() {
    let folder = std::env::temp_dir().join(format!("xtask-tool-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let throng = folder.join("throng");
    fs::write(&throng, "").unwrap();
    let places = Places { folder: folder.clone(), throng, root: "/w".into(), target: "/t".into() };
    // Programs that are not there are told nothing; where they are, they are told this.
    let told = |tool: Tool, load: &Load| {
        let command = tool.command(load, &places).ok()?;
        let words = command.get_args().map(|word| word.to_string_lossy().into_owned());
        Some(words.collect::<Vec<_>>().join(" "))
    };
    let open = load(ToolKind::KeepAlive, Some(5_000), true);
    let warm = Load { served: Some(1), ..open.clone() };
    let bench = "bench http://127.0.0.1:1/ -c 100 -d 5s";
    let quiet = "--quiet --json --no-record";
    let cases = [
        (Tool::Precise("250us"), &open, format!("{bench} --rate 5000 --precision 250us {quiet}")),
        (Tool::Throng, &warm, format!("{bench} --rate 5000 --warm-up 1s {quiet}")),
        (
            Tool::Throng,
            &load(ToolKind::Streams(32), None, true),
            format!("{bench} --http2 --streams 32 {quiet}"),
        ),
        (
            Tool::Scenario("", "x.yaml"),
            &load(ToolKind::KeepAlive, None, true),
            "run /w/benches/x.yaml --set target=http://127.0.0.1:1 --set users=100 --set time=5s "
                .to_string()
                + quiet,
        ),
        (
            Tool::Wrk2,
            &load(ToolKind::KeepAlive, Some(100_000), false),
            "-t 2 -c 100 -d 5s -R 100000 --latency http://127.0.0.1:1/".to_string(),
        ),
        (Tool::H2load, &open, "--h1 -t 1 -c 100 -D 5 --rps 50 http://127.0.0.1:1/".to_string()),
    ];
    for (tool, load, want) in cases {
        assert!(told(tool, load).is_none_or(|words| words == want), "{:?}", told(tool, load));
    }
    assert!(told(Tool::Throng, &open).is_some());
    fs::remove_dir_all(&folder).unwrap();
}
