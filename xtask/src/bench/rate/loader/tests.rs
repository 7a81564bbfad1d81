//! What the tools print, read.

use super::*;

fn load(rate: u32, pinned: bool) -> Load {
    let url = "http://127.0.0.1:1/".to_string();
    Load { url, connections: 100, rate, seconds: 5, pinned, warm: None }
}

#[test]
fn wrk2_is_read() {
    let output = "\
Running 5s test @ http://127.0.0.1:18999/
  1 threads and 100 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     1.62ms    1.39ms  18.26ms   88.06%
    Req/Sec       -nan      -nan   0.00      0.00%
  Latency Distribution (HdrHistogram - Recorded Latency)
 50.000%  724.00us
 75.000%    1.85ms
 90.000%    3.10ms
 99.000%    7.12ms
 99.900%   11.45ms

  Detailed Percentile spectrum:
       Value   Percentile   TotalCount 1/(1-Percentile)

       0.724     0.500000        11894         2.00
#[Mean    =        1.625, StdDeviation   =        1.391]
----------------------------------------------------------
  23796 requests in 5.00s, 1.77MB read
  Non-2xx or 3xx responses: 6
Requests/sec:   4758.63
";
    let told = wrk2_told(output, &load(5_000, true)).unwrap();
    assert_eq!((told.ok, told.failed), (23_790, 6));
    assert_eq!((told.p50, told.p99), (Some(724.0), Some(7_120.0)));
    // 100 connections, each 5 ms after the one before; with two threads in half the time.
    assert!((told.seconds - 4.7525).abs() < 1e-9, "{}", told.seconds);
    let both = wrk2_told(output, &load(100_000, false)).unwrap();
    assert!((both.seconds - 4.8775).abs() < 1e-9, "{}", both.seconds);
}

#[test]
fn vegeta_is_read() {
    let output = r#"{"latencies":{"total":4921931254,"mean":492193,"50th":314915,"90th":833796,
        "95th":1314829,"99th":4075026,"max":16267673,"min":47030},"duration":2000104332,
        "wait":155241,"requests":10000,"rate":4999.739183605749,"throughput":4999.351151711748,
        "success":1,"status_codes":{"0":3,"200":9990,"204":2,"503":5},"errors":[]}"#;
    let told = vegeta_told(output).unwrap();
    assert_eq!((told.ok, told.failed, told.seconds), (9_992, 8, 2.000_104_332));
    assert_eq!((told.p50, told.p99), (Some(314.915), Some(4_075.026)));
}

#[test]
fn h2load_is_read() {
    let output = "\
finished in 2.01s, 5000.00 req/s, 380.86KB/s
requests: 10000 total, 10000 started, 10000 done, 10000 succeeded, 0 failed, 0 errored, 0 timeout
status codes: 10000 2xx, 0 3xx, 0 4xx, 0 5xx
";
    let told = h2load_told(output, &load(5_000, true)).unwrap();
    assert_eq!((told.ok, told.failed, told.seconds, told.p50), (10_000, 0, 5.0, None));
}

#[test]
fn throng_is_read() {
    let output = r#"{"total":{"ok":14998,"failed":1,"latency":{"p50_ns":790528,"p99_ns":null}},
        "generator":{"lateness":{"p50_ns":1500,"p99_ns":6717440,"max_ns":14646313},
        "precision_ns":250000,"together_mean":5.25,"together_max":11},"outcome":{"valid":false}}"#;
    let told = throng_told(output, &load(3_000, true)).unwrap();
    assert_eq!((told.ok, told.failed, told.seconds, told.valid), (14_998, 1, 5.0, false));
    assert_eq!((told.p50, told.p99), (Some(790.528), None));
    let starts = told.starts.unwrap();
    assert_eq!((starts.precision, starts.late_p99), (Some(250.0), Some(6_717.44)));
    assert_eq!((starts.together_mean, starts.together_max), (Some(5.25), Some(11.0)));
    // Before there was a precision.
    let older = r#"{"total":{"ok":1,"failed":0},"generator":{"lateness":{"p50_ns":1500}},
        "outcome":{"valid":true}}"#;
    let starts = throng_told(older, &load(3_000, true)).unwrap().starts.unwrap();
    assert_eq!(starts, Starts { late_p50: Some(1.5), ..Starts::default() });
}

#[test]
fn nonsense_is_not_read() {
    let load = load(1, true);
    let said = "command not found";
    assert_eq!((vegeta_told(said), throng_told(said, &load)), (None, None));
    assert_eq!((wrk2_told(said, &load), h2load_told(said, &load)), (None, None));
}

#[test]
fn each_is_told_the_same_load() {
    let folder = std::env::temp_dir().join(format!("xtask-loader-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let throng = folder.join("throng");
    std::fs::write(&throng, "").unwrap();
    let places = Places { folder: folder.clone(), throng };
    let told = |loader: Loader, load: &Load| {
        let command = loader.command(load, &places).ok()?;
        let words = command.get_args().map(|word| word.to_string_lossy().into_owned());
        Some(words.collect::<Vec<_>>().join(" "))
    };
    let exact = told(Loader::Throng(Some("250us")), &load(5_000, true)).unwrap();
    let default = told(Loader::Throng(None), &Load { warm: Some(1), ..load(5_000, true) }).unwrap();
    let bench = "bench http://127.0.0.1:1/ -c 100 -d 5s --rate 5000";
    // Programs that are not there are told nothing; where they are, they are told this.
    let wrk2 = told(Loader::Wrk2, &load(100_000, false));
    let h2load = told(Loader::H2load, &load(5_000, true));
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(exact, format!("{bench} --precision 250us --quiet --json --no-record"));
    assert_eq!(default, format!("{bench} --warm-up 1s --quiet --json --no-record"));
    let of_wrk2 = "-t 2 -c 100 -d 5s -R 100000 --latency http://127.0.0.1:1/";
    assert!(wrk2.is_none_or(|words| words == of_wrk2));
    let of_h2load = "--h1 -t 1 -c 100 -D 5 --rps 50 http://127.0.0.1:1/";
    assert!(h2load.is_none_or(|words| words == of_h2load));
}
