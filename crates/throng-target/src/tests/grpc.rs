//! gRPC calls with the client of the `h2` crate.

use std::future::poll_fn;
use std::time::Duration;

use bytes::Bytes;
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderMap, Request};
use prost::Message;
use throng_base::Clock;
use tokio::task::spawn_local;

use super::http2::{Client, block_on, until_async};
use super::{http, options, until};
use crate::grpc::{CountRequest, Encoding, Messages, SayReply, SayRequest, write_message};
use crate::{GrpcStats, Options};

/// An open call.
struct Call {
    send: SendStream<Bytes>,
    /// The response, until its head has arrived.
    response: Option<h2::client::ResponseFuture>,
    body: Option<RecvStream>,
    head: HeaderMap,
    messages: Messages,
}

/// How a call ended: the status code, its message, and whether it was a trailers-only response.
#[derive(Debug, PartialEq, Eq)]
struct Ended {
    status: u32,
    message: String,
    trailers_only: bool,
}

fn ended(status: u32, message: &str, trailers_only: bool) -> Ended {
    Ended { status, message: message.to_owned(), trailers_only }
}

fn say(text: &str) -> SayRequest {
    SayRequest { text: text.to_owned(), ..SayRequest::default() }
}

fn reply(text: &str, number: i64) -> SayReply {
    SayReply { text: text.to_owned(), number }
}

impl Call {
    async fn open(client: &mut Client, path: &str, headers: &[(&str, &str)]) -> Call {
        let request = Request::post(format!("http://x{path}"));
        let mut request =
            request.header("content-type", "application/grpc").header("te", "trailers");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        client.send = client.send.clone().ready().await.unwrap();
        let (response, send) = client.send.send_request(request.body(()).unwrap(), false).unwrap();
        let encoding = match headers.contains(&("grpc-encoding", "gzip")) {
            true => Encoding::Gzip,
            false => Encoding::Identity,
        };
        let messages = Messages::new(encoding);
        Call { send, response: Some(response), body: None, head: HeaderMap::new(), messages }
    }

    fn say(&mut self, message: &impl Message, last: bool) {
        let bytes = write_message(Encoding::Identity, message);
        self.send.send_data(bytes.into(), last).unwrap();
    }

    fn say_bytes(&mut self, bytes: &[u8], last: bool) {
        self.send.send_data(Bytes::copy_from_slice(bytes), last).unwrap();
    }

    /// The next message; `None` after the last one.
    async fn message(&mut self) -> Result<Option<SayReply>, h2::Error> {
        if let Some(response) = self.response.take() {
            let (head, body) = response.await?.into_parts();
            assert_eq!(head.status, 200);
            assert_eq!(head.headers["content-type"], "application/grpc");
            (self.head, self.body) = (head.headers, Some(body));
        }
        let body = self.body.as_mut().unwrap();
        loop {
            if let Some(message) = self.messages.take().unwrap() {
                return Ok(Some(SayReply::decode(&message[..]).unwrap()));
            }
            let Some(bytes) = body.data().await else { return Ok(None) };
            let bytes = bytes?;
            body.flow_control().release_capacity(bytes.len())?;
            self.messages.receive(&bytes);
        }
    }

    async fn finish(mut self) -> Result<(Vec<SayReply>, Ended), h2::Error> {
        let mut replies = Vec::new();
        while let Some(message) = self.message().await? {
            replies.push(message);
        }
        assert!(self.messages.is_empty());
        let trailers = self.body.as_mut().unwrap().trailers().await?;
        let trailers_only = trailers.is_none();
        let said = trailers.unwrap_or(self.head);
        let text = |name| said.get(name).map_or("", |value| value.to_str().unwrap());
        let status = text("grpc-status").parse().unwrap();
        Ok((replies, ended(status, text("grpc-message"), trailers_only)))
    }
}

/// A complete call with these messages.
async fn call(
    client: &mut Client,
    path: &str,
    messages: &[impl Message],
) -> Result<(Vec<SayReply>, Ended), h2::Error> {
    let mut call = Call::open(client, path, &[]).await;
    for (at, message) in messages.iter().enumerate() {
        call.say(message, at + 1 == messages.len());
    }
    call.finish().await
}

fn statuses(stats: &[(&'static str, u64)], counts: [u64; 3]) -> GrpcStats {
    let [calls, messages_in, messages_out] = counts;
    let statuses = stats.iter().copied().collect();
    GrpcStats { calls, messages_in, messages_out, statuses }
}

#[test]
fn each_method_works_as_declared() {
    let running = http(options());
    let address = running.listen;
    block_on(async {
        let mut client = Client::new(address).await;
        let thrice = SayRequest { repeat: 3, ..say("a") };
        let (replies, end) = call(&mut client, "/echo.v1.Echo/Say", &[thrice]).await.unwrap();
        assert_eq!((replies, end), (vec![reply("a a a", 1)], ended(0, "", false)));
        let not_found = SayRequest { code: 5, ..say("50 %") };
        let asked = [not_found.clone()];
        let (replies, end) = call(&mut client, "/echo.v1.Echo/Say", &asked).await.unwrap();
        assert_eq!((replies, end), (vec![], ended(5, "50 %25", true)));
        let count = [CountRequest { to: 3, pause_ms: 10 }];
        let clock = Clock::start();
        let (replies, end) = call(&mut client, "/echo.v1.Echo/Count", &count).await.unwrap();
        assert_eq!(replies, [reply("", 1), reply("", 2), reply("", 3)]);
        assert_eq!(end, ended(0, "", false));
        assert!(clock.now().as_secs_f64() >= 0.02);
        let all = [say("a"), say("b"), say("c")];
        let (replies, end) = call(&mut client, "/echo.v1.Echo/Collect", &all).await.unwrap();
        assert_eq!((replies, end), (vec![reply("a b c", 3)], ended(0, "", false)));
        let some = [say("a"), not_found, say("c")];
        let (replies, end) = call(&mut client, "/echo.v1.Echo/Collect", &some).await.unwrap();
        assert_eq!((replies, end), (vec![], ended(5, "50 %25", true)));
    });
    let stats = until(&running, |stats| stats.connections.open == 0);
    let expected = statuses(&[("OK", 3), ("NOT_FOUND", 2)], [5, 8, 5]);
    assert_eq!(stats.grpc, expected);
    assert_eq!((stats.requests, stats.http2.requests, stats.unanswered), (5, 5, 0));
    assert_eq!(stats.service_time.count, 4);
}

#[test]
fn a_chat_echoes_each_message_as_it_arrives() {
    let running = http(options());
    let address = running.listen;
    block_on(async {
        let mut client = Client::new(address).await;
        let mut chat = Call::open(&mut client, "/echo.v1.Echo/Chat", &[]).await;
        for number in 1..=3 {
            let text = format!("text {number}");
            chat.say(&say(&text), false);
            assert_eq!(chat.message().await.unwrap(), Some(reply(&text, number)));
        }
        chat.say(&SayRequest { code: 8, ..say("enough") }, false);
        assert_eq!(chat.finish().await.unwrap(), (vec![], ended(8, "enough", false)));
        let mut empty = Call::open(&mut client, "/echo.v1.Echo/Chat", &[]).await;
        empty.say_bytes(b"", true);
        assert_eq!(empty.finish().await.unwrap(), (vec![], ended(0, "", true)));
    });
    let stats = until(&running, |stats| stats.connections.open == 0);
    assert_eq!(stats.grpc, statuses(&[("OK", 1), ("RESOURCE_EXHAUSTED", 1)], [2, 4, 3]));
    assert_eq!((stats.service_time.count, stats.http2.cancelled), (4, 0));
}

#[test]
fn messages_may_be_split_anywhere() {
    let running = http(options());
    let address = running.listen;
    block_on(async {
        let mut client = Client::new(address).await;
        let both: Vec<u8> = [say("a"), say("bc")]
            .iter()
            .flat_map(|message| write_message(Encoding::Identity, message))
            .collect();
        for cut in 0..=both.len() {
            let mut call = Call::open(&mut client, "/echo.v1.Echo/Collect", &[]).await;
            call.say_bytes(&both[..cut], false);
            tokio::task::yield_now().await;
            call.say_bytes(&both[cut..], true);
            let (replies, end) = call.finish().await.unwrap();
            assert_eq!((replies, end), (vec![reply("a bc", 2)], ended(0, "", false)), "{cut}");
        }
    });
}

#[test]
fn replies_use_the_compression_of_the_requests() {
    let running = http(options());
    let address = running.listen;
    block_on(async {
        let mut client = Client::new(address).await;
        let gzip = [("grpc-encoding", "gzip")];
        let mut call = Call::open(&mut client, "/echo.v1.Echo/Chat", &gzip).await;
        let long = "x".repeat(100_000);
        call.say_bytes(&write_message(Encoding::Gzip, &say(&long)), false);
        // An uncompressed message is accepted, too.
        call.say_bytes(&write_message(Encoding::Identity, &say("y")), true);
        assert_eq!(call.message().await.unwrap(), Some(reply(&long, 1)));
        assert_eq!(call.head["grpc-encoding"], "gzip");
        assert_eq!(call.finish().await.unwrap(), (vec![reply("y", 2)], ended(0, "", false)));
        let other = [("grpc-encoding", "snappy")];
        let call = Call::open(&mut client, "/echo.v1.Echo/Say", &other).await;
        let (_, end) = call.finish().await.unwrap();
        assert_eq!((end.status, end.trailers_only), (12, true));
    });
    let stats = until(&running, |stats| stats.connections.open == 0);
    // Both long texts were sent as gzip.
    assert!(stats.bytes_in < 10_000 && stats.bytes_out < 10_000, "{stats:?}");
}

#[test]
fn errors_have_their_status() {
    let running = http(options());
    let address = running.listen;
    block_on(async {
        let mut client = Client::new(address).await;
        let one = write_message(Encoding::Identity, &say("a"));
        let two = [&one[..], &one].concat();
        let negative = SayRequest { repeat: -1, ..say("a") };
        let negative = write_message(Encoding::Identity, &negative);
        let huge = SayRequest { repeat: i32::MAX, ..say("a") };
        let huge = write_message(Encoding::Identity, &huge);
        for (path, headers, bytes, status) in [
            ("/echo.v1.Echo/Shout", &[][..], &one[..], 12),
            ("/other.Service/Say", &[], &one, 12),
            ("/echo.v1.Echo/Say", &[], b"", 12),
            ("/echo.v1.Echo/Say", &[], &two, 12),
            ("/echo.v1.Echo/Say", &[], &one[..7], 13),
            ("/echo.v1.Echo/Say", &[], &[0, 0, 0, 0, 1, 0xff], 13),
            ("/echo.v1.Echo/Say", &[], &[7, 0, 0, 0, 0], 13),
            ("/echo.v1.Echo/Say", &[], &[0, 1, 0, 0, 0], 8),
            ("/echo.v1.Echo/Say", &[], &negative, 3),
            ("/echo.v1.Echo/Say", &[], &huge, 8),
            ("/echo.v1.Echo/Say", &[("grpc-timeout", "soon")], &one, 13),
        ] {
            let mut call = Call::open(&mut client, path, headers).await;
            call.say_bytes(bytes, true);
            let (replies, end) = call.finish().await.unwrap();
            assert_eq!((replies, end.status), (vec![], status), "{path} {bytes:?}");
            assert!(end.trailers_only);
        }
        // Other content types are plain HTTP requests.
        for (kind, status) in [("application/grpc-web", 200), ("application/json", 200)] {
            let request = Request::post("http://x/echo.v1.Echo/Say").header("content-type", kind);
            let asked = client.send.send_request(request.body(()).unwrap(), true).unwrap();
            let head = asked.0.await.unwrap();
            assert_eq!(
                (head.status(), head.headers().get("grpc-status")),
                (status.try_into().unwrap(), None)
            );
        }
    });
}

#[test]
fn latency_and_deadlines_apply() {
    let running = http(Options { latency: "30ms".parse().unwrap(), ..options() });
    let address = running.listen;
    block_on(async {
        let mut client = Client::new(address).await;
        let clock = Clock::start();
        let begun = clock.now();
        let (replies, _) = call(&mut client, "/echo.v1.Echo/Say", &[say("a")]).await.unwrap();
        assert_eq!(replies, [reply("a", 1)]);
        assert!(clock.now() - begun >= Duration::from_millis(30));
        for (path, timeout, status) in [
            ("/echo.v1.Echo/Say", "5m", 4),
            ("/echo.v1.Echo/Say", "20S", 0),
            ("/echo.v1.Echo/Count", "29999u", 4),
            ("/echo.v1.Echo/Shout", "1n", 4),
        ] {
            let begun = clock.now();
            let headers = [("grpc-timeout", timeout)];
            let mut call = Call::open(&mut client, path, &headers).await;
            call.say(&CountRequest { to: 0, pause_ms: 0 }, true);
            let (_, end) = call.finish().await.unwrap();
            assert_eq!(end.status, status, "{path} {timeout}");
            assert!(timeout != "5m" || clock.now() - begun >= Duration::from_millis(5));
        }
        // The client sends nothing more, and its deadline passes.
        for path in ["/echo.v1.Echo/Collect", "/echo.v1.Echo/Chat"] {
            let mut call = Call::open(&mut client, path, &[("grpc-timeout", "60m")]).await;
            call.say(&say("a"), false);
            let (_, end) = call.finish().await.unwrap();
            assert_eq!(end.status, 4, "{path}");
        }
    });
    let stats = until(&running, |stats| stats.connections.open == 0);
    let deadlines = ("DEADLINE_EXCEEDED", 5);
    assert_eq!(stats.grpc.statuses.into_iter().collect::<Vec<_>>(), [deadlines, ("OK", 2)]);
    assert_eq!((stats.unanswered, stats.http2.cancelled), (0, 0));
}

#[test]
fn faults_apply_to_calls() {
    let running = http(Options { errors: 0.3, resets: 0.2, ..options() });
    let address = running.listen;
    let (mut internal, mut unavailable, mut resets, mut fine) = (0, 0, 0, 0);
    block_on(async {
        let mut client = Client::new(address).await;
        for at in 0..400 {
            let path = ["/echo.v1.Echo/Say", "/echo.v1.Echo/Chat"][at % 2];
            match call(&mut client, path, &[say("a")]).await {
                Ok((replies, end)) => match end.status {
                    0 => fine += replies.len() as u64,
                    13 => internal += 1,
                    14 => unavailable += 1,
                    _ => panic!("{end:?}"),
                },
                Err(error) => {
                    assert_eq!(error.reason(), Some(Reason::INTERNAL_ERROR));
                    resets += 1;
                }
            }
        }
    });
    let stats = until(&running, |stats| stats.connections.open == 0);
    assert_eq!((stats.errors_sent, stats.resets_sent), (internal + unavailable, resets));
    let named = [("INTERNAL", internal), ("UNAVAILABLE", unavailable), ("OK", fine)];
    assert_eq!(stats.grpc, statuses(&named, [400, 400, fine]));
    assert!((30..100).contains(&internal) && (30..100).contains(&unavailable), "{stats:?}");
    assert!((45..120).contains(&resets), "{resets}");
    assert_eq!((stats.http2.cancelled, stats.connections.accepted), (0, 1));
}

#[test]
fn abandoned_calls_are_counted() {
    let running = http(options());
    let address = running.listen;
    block_on(async {
        let mut client = Client::new(address).await;
        let hour = CountRequest { to: 1_000, pause_ms: 3_600_000 };
        for (gone, (path, message, last)) in [
            ("/echo.v1.Echo/Chat", say("a").encode_to_vec(), false),
            ("/echo.v1.Echo/Count", hour.encode_to_vec(), true),
        ]
        .into_iter()
        .enumerate()
        {
            let gone = gone as u64 + 1;
            let mut call = Call::open(&mut client, path, &[]).await;
            call.say_bytes(&[&[0, 0, 0, 0, message.len() as u8][..], &message].concat(), last);
            until_async(&running, |stats| stats.grpc.messages_out == gone).await;
            call.send.send_reset(Reason::CANCEL);
            until_async(&running, |stats| stats.http2.cancelled == gone).await;
        }
    });
    let stats = until(&running, |stats| stats.connections.open == 0);
    assert_eq!((stats.grpc.calls, stats.unanswered), (2, 2));
    assert!(stats.grpc.statuses.is_empty());
}

#[test]
fn a_client_that_does_not_read_is_waited_for() {
    let running = http(options());
    let address = running.listen;
    block_on(async {
        let socket = tokio::net::TcpStream::connect(address).await.unwrap();
        let mut builder = h2::client::Builder::new();
        builder.initial_window_size(1_000).data_frame_budget(1 << 30);
        let handshake = builder.handshake(socket).await;
        let (send, connection) = handshake.unwrap();
        let mut client = Client { send, driver: spawn_local(connection) };
        let mut count = Call::open(&mut client, "/echo.v1.Echo/Count", &[]).await;
        count.say(&CountRequest { to: 10_000, pause_ms: 0 }, true);
        until_async(&running, |stats| stats.grpc.messages_out > 100).await;
        // Other calls continue meanwhile.
        let (replies, _) = call(&mut client, "/echo.v1.Echo/Say", &[say("a")]).await.unwrap();
        assert_eq!(replies.len(), 1);
        assert!(running.stats().grpc.messages_out < 1_000);
        let (replies, end) = count.finish().await.unwrap();
        assert_eq!((replies.len(), replies.last()), (10_000, Some(&reply("", 10_000))));
        assert_eq!(end, ended(0, "", false));
    });
}

#[test]
fn reflection_is_served_and_not_counted() {
    let running = http(Options { errors: 1.0, latency: "1h".parse().unwrap(), ..options() });
    let address = running.listen;
    block_on(async {
        let mut client = Client::new(address).await;
        for version in ["v1", "v1alpha"] {
            let path = format!("/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo");
            let mut call = Call::open(&mut client, &path, &[]).await;
            // `list_services: "*"`, and then the file of the service, on the same open stream.
            call.say_bytes(b"\0\0\0\0\x03\x3a\x01*", false);
            let response = call.response.take().unwrap().await.unwrap();
            let mut body = response.into_body();
            let read = async |body: &mut RecvStream, needle: &str| {
                let bytes = body.data().await.unwrap().unwrap();
                assert!(String::from_utf8_lossy(&bytes).contains(needle), "{bytes:?}");
            };
            read(&mut body, "echo.v1.Echo").await;
            call.say_bytes(b"\0\0\0\0\x0e\x22\x0cecho.v1.Echo", true);
            read(&mut body, ".echo.v1.SayRequest").await;
            assert!(poll_fn(|cx| body.poll_data(cx)).await.is_none());
            assert_eq!(body.trailers().await.unwrap().unwrap()["grpc-status"], "0");
        }
    });
    let stats = until(&running, |stats| stats.connections.open == 0);
    assert_eq!((stats.requests, stats.errors_sent, stats.grpc), (0, 0, GrpcStats::default()));
}
