//! The project's own chores, started as `cargo xtask …`. Nothing here is shipped.

mod bench;
mod ci;
mod dist;
mod elsewhere;
mod files;
mod packages;
mod programs;
mod suite;
mod tidy;
mod voice;
mod web;
mod workspace;

use std::process::ExitCode;

const USAGE: &str = "\
cargo xtask <chore>

  ci [--quick]            every check and every test; --quick skips the slow tests and lists them
  test [--runs N] [--busy] [NAME]…
                          tests, compiled with clippy's lints; of those names only, N times, beside
                          a busy core
  fuzz [--minutes N] [NAME]…
                          fuzz tests with new seeds (10 minutes); a case that fails is stored in
                          crates/throng-fuzz/corpus
  elsewhere               whether throng compiles for macOS and Windows
  tidy                    the rules of this project that no compiler checks
  instructions [--write] [--binary FILE]
                          instructions for one request in five scenes, beside those in
                          benches/instructions.txt; of target/release/throng or another binary
  sentences [COUNT] [--seed N]
                          sentences of pages, help and messages, drawn at random (100), to be read
  dist [--target TRIPLE]…
                          the release files, in target/dist: static binary, .deb, archive and
                          image, each installed and tried
  web                     builds the page of a run: web/dist/report.html
  bench http [options]    throng beside wrk, ab, h2load, hey and k6; writes docs/benchmarks.md
  bench http2 [options]   streams of HTTP/2 beside h2load, gRPC calls beside ghz
  bench protocol [opts]   a declared request and reply beside the same bytes by hand
  bench language [opts]   what checks, extractors and templates cost in a transaction
  bench rate [options]    open load at 1,000 to 100,000 requests a second: throng at several
                          precisions beside wrk2, vegeta and h2load; what each costs, how well it
                          keeps the rate, and its times beside those that the target knows
  bench truth [options]   the p50 and p99 that throng reports beside those that the target knows
  bench million [options] a million WebSocket users and their server on this machine, and what
                          10,000 of them cost Tsung, k6, Locust and Artillery
  bench chat [options]    users in chat rooms who talk at a rate: the ledger of deliveries beside
                          what the target lost
  bench push [options]    bound devices with a push to each, every one accounted for
  bench fleet [options]   many machines: what 1,000 agents cost bus and controller, how far apart
                          20 start, and whether 1 to 20 count the same
  bench capacity [SEEDS FIRST RATES [TARGETS]]
                          searches for the capacity of simulated services whose capacity is known,
                          such as `10 1 200,1000 M/M/1,USL`; without arguments, the published ones,
                          into docs/decisions/capacity.md

options of benches; with --seconds, --rounds and --tls alone, the results go to docs/benchmarks.md,
otherwise below target/
  --only A,B              of http: keep-alive, short, websocket; of http2: requests, calls; of
                          protocol: 64, 1000 (users); of rate: cost, served; of truth: names of
                          laws; of fleet: thousand, starts, counts; of million: run, peers
  --tools A,B             only these tools
  --seconds N             length of one measurement (5); not of million, chat and push, nor are:
  --quick                 1 second each
  --rounds N              how often each is measured; the median counts (3; of rate 5)
  --against FILE          of http, http2, protocol and language: another throng, an older one for
                          example, takes turns with this one
  --users A,B             of million, chat and push, which are scenarios below benches/: how many
  --set NAME=VALUE        of these: sets a variable of the scenario, such as `hold=1m`
  --tls                   of million: over TLS (100000 users)
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["ci", rest @ ..] => ci::run(rest),
        ["test", rest @ ..] => suite::run(rest),
        ["fuzz", rest @ ..] => suite::fuzz(rest),
        ["elsewhere"] => elsewhere::run(),
        ["tidy"] => tidy::run(),
        ["instructions", rest @ ..] => bench::instructions::run(rest),
        ["sentences", rest @ ..] => voice::run(rest),
        ["dist", rest @ ..] => dist::run(rest),
        ["web"] => workspace::load().and_then(|workspace| web::make(&workspace)),
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
