//! The project's own chores, started as `cargo xtask …`. Nothing here is shipped.

mod bench;
mod ci;
mod packages;
mod tidy;
mod workspace;

use std::process::ExitCode;

const USAGE: &str = "\
cargo xtask <chore>

  ci [--quick]            every check and every test; --quick leaves out the release build and
                          the long fuzz
  tidy                    the rules of the house that no compiler checks
  bench http [options]    throng beside wrk, ab, h2load, hey and k6; writes docs/benchmarks.md
  bench truth [options]   the p99 that throng reports beside the one that the target knows
  bench language [opts]   what a checked transaction, an expression and compiling cost
  bench million [options] a million WebSocket users and their server on this machine, and what
                          10,000 of them cost Tsung, k6, Locust and Artillery

options of bench million
  --users N               how many (1000000; with --tls 100000)
  --hold TIME             how long all are held (10m; of other numbers 2m)
  --tls                   over TLS
  --rate N                users a second (as in the example)
  --scenario FILE         instead of examples/im-websocket.yaml
  --force                 goes on on a host that the doctor does not find fit
  --only run,peers        the users, or the other tools
  --peer-users N          how many users the other tools get (10000)
  --tools A,B             of throng, tsung, k6, locust, artillery
  The runs of a million, of two millions and of 100000 with --tls, with nothing else chosen, go
  to docs/benchmarks.md; all others to a file below target/.

options of the other benches
  --seconds N             length of one measurement (5)
  --rounds N              how often each is measured; the median counts (3)
  --quick                 1 second each; written below target/, not to docs/
  --only A,B              of http: keep-alive, short, websocket, memory; of truth: law names;
                          of language: transaction, expressions, compile
  --tools A,B             only these tools; written below target/, not to docs/
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["ci", rest @ ..] => ci::run(rest),
        ["tidy"] => tidy::run(),
        ["bench", rest @ ..] => bench::run(rest),
        _ => Err(USAGE.to_string()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            // Without a message, everything has been said already.
            if !message.is_empty() {
                say_error(&message);
            }
            ExitCode::FAILURE
        }
    }
}

#[allow(clippy::print_stderr)]
fn say_error(message: &str) {
    eprintln!("{}", message.trim_end());
}

/// Prints one line of progress.
#[allow(clippy::print_stdout)]
fn say(message: &str) {
    println!("{message}");
}
