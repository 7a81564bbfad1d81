//! The arguments of `throng target`. Only this module and the command itself depend on the
//! reference servers; no other code of the binary links to them.

use clap::Args;
use throng_target::{Options, TargetKind};

use super::choice::Choice;

#[derive(Args, Debug)]
#[command(
    after_help = "Latencies: `20ms`, `10ms..50ms` (uniform), `exponential 20ms` (mean), `lognormal 5ms 10ms` \
     (mean, standard deviation), `stall 500ms every 5s` (the whole server does not respond during \
     the first 500 ms of every 5 s).\n\
     \n\
     http: HTTP/1.1 and HTTP/2 on one port; with --tls the client chooses (ALPN), otherwise its \
     first bytes decide (h2c with prior knowledge). The request headers `sleep` (ms) and `times` \
     make slow and chunked responses; /bytes/N, /chunked/N, /status/CODE, /echo, /anything, \
     /json, /redirect/N, /cookies, /events?every=10ms&count=100, \
     /digest?user=user&password=pass. gRPC over HTTP/2: the service of echo.proto, with \
     reflection. Statistics: /throng/stats, also on --admin for every kind; POST /throng/reset \
     resets them. /throng/law?p=99&within=50ms reports the highest rate at which the queue and \
     the rate limit meet this threshold. Example:\n\
     \x20 throng target http --listen 127.0.0.1:8080 --servers 8 --service 'exponential 1ms' \
     --queue-max 100\n\
     \n\
     chat: the chat room of chat-room.yaml over its private TCP protocol; --admin also shows a \
     single room: /room/ID. Example:\n\
     \x20 throng target chat --listen 127.0.0.1:9000 --admin 127.0.0.1:9001 --lose-every 10k\n\
     \n\
     push: the push service of push-service.yaml over its private TCP protocol. --admin also \
     takes POST /push {\"to\": \"d17\" or [\"d1\", \"d2\"] or \"all\", \"id\": 17, \"data\": …, \
     \"rate\": 50000}, GET /online?from=0&to=999, /device/d17, /stats, /faults, POST /faults \
     {\"lose_every\": 1000}. Example:\n\
     \x20 throng target push --listen 127.0.0.1:9100 --admin 127.0.0.1:9101 --redis \
     redis://127.0.0.1:6390"
)]
pub(crate) struct TargetArguments {
    /// Server to run
    #[arg(value_parser = Choice::<TargetKind>::new())]
    pub(crate) kind: TargetKind,
    #[command(flatten)]
    pub(crate) options: Options,
}
