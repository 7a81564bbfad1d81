//! Tests programs that embed throng: the example, and a run stopped by its program.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use throng_base::{Exit, Source};
use throng_run::{Line, Settings, run};
use throng_scenario::{CompileOptions, RunOptions, compile_recorded};

#[allow(dead_code)] // Only the example executes `main`.
#[path = "../examples/embedded.rs"]
mod embedded;

/// An HTTP server: its URL, and its number of requests.
fn server() -> (String, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let count = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&count);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let counted = Arc::clone(&counted);
            std::thread::spawn(move || answer(&stream, &counted));
        }
    });
    (url, count)
}

fn answer(stream: &TcpStream, counted: &AtomicU64) {
    let mut writer = stream;
    for line in BufReader::new(stream).lines().map_while(Result::ok) {
        if line.is_empty() {
            counted.fetch_add(1, Ordering::SeqCst);
            let response = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
            if writer.write_all(response).is_err() {
                return;
            }
        }
    }
}

#[test]
fn the_embedding_example_runs() {
    let (url, count) = server();
    let mut lines = Vec::new();
    let exit = embedded::load(&url, |line| lines.push(line));
    // On a slow machine, the result can be invalid, but the counts are correct.
    assert!(matches!(exit, Exit::Success | Exit::ResultInvalid), "{exit:?}: {lines:#?}");
    let of = |line: &String| line.split_whitespace().nth(2)?.parse::<u64>().ok();
    let ok: u64 = lines.iter().filter_map(of).sum();
    let sent = count.load(Ordering::SeqCst);
    assert!(ok > 0 && ok <= sent && sent <= ok + 5, "{ok} of {sent}: {lines:#?}");
}

#[test]
fn a_run_ends_when_its_program_stops_it() {
    let (url, _) = server();
    let text = format!(
        "name: long\ntarget: {url}\nload: [{{users: 2, for: 1h}}]\n\
         sessions: {{reader: {{steps: [{{http: GET /}}, {{think: 50ms}}]}}}}\n"
    );
    let options = CompileOptions::of_process(Vec::new(), ".".into());
    let options = CompileOptions { run: RunOptions::fresh(None), ..options };
    let compiled = compile_recorded(&Source::new("long.yaml", text), &options);
    let (program, _, recorded) = compiled.unwrap_or_else(|told| panic!("{told:#?}"));
    let settings = Settings { no_record: true, ..Settings::default() };
    let mut lines = run(program, recorded, settings);
    let (mut seconds, mut summaries) = (0, 0);
    while let Some(line) = lines.next() {
        match line {
            Line::Second(_) => {
                seconds += 1;
                lines.stop();
            }
            Line::Summary { summary, .. } => {
                summaries += 1;
                assert!(summary.info.interrupted);
            }
            _ => {}
        }
    }
    assert!(seconds > 0 && summaries == 1, "{seconds} {summaries}");
    assert_eq!(lines.exit(), Exit::Interrupted);
}
