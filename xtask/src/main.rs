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
  bench http2 [options]   streams of HTTP/2 beside h2load, gRPC calls beside ghz
  bench rate [options]    open load at 1,000 to 100,000 requests a second: throng at several
                          precisions beside wrk2, vegeta and h2load; what each costs, how well it
                          keeps the rate, and its times beside those that the target knows
  bench truth [options]   the p50 and p99 that throng reports beside those that the target knows
  bench language [opts]   what a checked transaction, an expression and compiling cost
  bench million [options] a million WebSocket users and their server on this machine, and what
                          10,000 of them cost Tsung, k6, Locust and Artillery
  bench heartbeat [opts]  33,333 heartbeats a second over 50,000 and over 1,000,000 users: what each
                          costs both ends, beside another throng if there is one
  bench protocol [opts]   a declared request and reply beside the same bytes by hand
  bench chat [options]    users in chat rooms who talk at a rate: the ledger of deliveries beside
                          what the target lost, and the rate that is carried
  bench push [options]    bound devices with a push to each, every one accounted for; and a Redis
                          that dies in the middle

options of bench million
  --users N               how many (1000000; with --tls 100000)
  --hold TIME             how long all are held (10m; of other numbers 2m)
  --tls                   over TLS
  --rate N                users a second (as the processors carry them, slower with more users)
  --heartbeat TIME        how often a user beats (30s; of more than a million users 2m)
  --scenario FILE         instead of examples/im-websocket.yaml
  --force                 goes on on a host that the doctor does not find fit
  --only run,peers        the users, or the other tools
  --peer-users N          how many users the other tools get (10000)
  --tools A,B             of throng, tsung, k6, locust, artillery
  The runs of a million, of two millions and of 100000 with --tls, with nothing else chosen, go
  to docs/benchmarks.md; all others to a file below target/.

options of bench heartbeat
  --against FILE          another throng, an older one for example, takes turns with this one
  --users A,B             how many; each beats the more rarely (50000,1000000)
  --rounds N              how often each is measured; the median counts (5; of 500000 users and
                          more 1)
  --hold TIME             how long all are held: three heartbeats of every user at least (20s)
  --precision TIME        of this throng; its default if left out
  --quick                 50000 users once for 10 seconds
  With nothing but --against chosen, it goes to docs/benchmarks.md; else below target/.

options of bench chat
  --users N               how many (100000)
  --rate N                messages a second, of all together; lower ones follow (2000)
  --room N                users in a room (1000)
  --talk TIME             how long they talk (30s)
  --fill N                users a second (5000)
  --lose-every N          which deliveries the target loses (10000)
  --batch TIME            how long the target gathers deliveries (400ms), or `none`

options of bench push
  --users N               how many devices (1000000)
  --redis-users N         how many while Redis dies (20000)
  --fill N                devices a second (8000; half of it from 60 % of them on)
  --push-rate N           pushes a second (10000)
  --hold TIME             heartbeats alone before the push (1m)
  --only devices,redis    one of both parts
  Whoever changes users, rate or room of bench chat, or users, parts or a hold below a minute of
  bench push, finds the section below target/; all others go to docs/benchmarks.md.

options of the other benches
  --seconds N             length of one measurement (5)
  --rounds N              how often each is measured; the median counts (3; of rate 5)
  --quick                 1 second each; written below target/, not to docs/
  --only A,B              of http: keep-alive, short, websocket, memory; of truth: law names;
                          of language: transaction, expressions, compile;
                          of protocol: 64, 1000 (users); of rate: cost, served
  --tools A,B             only these tools; written below target/, not to docs/
  --rates A,B             of rate, only these: 1000, 5000, 20000, 30000, 100000; written below
                          target/, not to docs/
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
