//! The messages of a WebSocket, as Chrome records them (`_webSocketMessages`), as steps.

use std::time::Duration;

use throng_scenario::bytes_of_base64;

use super::number;
use crate::json::Json;
use crate::model::{LeftOut, Message, Socket, Talk};
use crate::text::Text;

/// The maximum number of sent messages per connection.
const SENT_MAX: usize = 500;
/// How long a connection without sent messages stays open.
const STAY: Duration = Duration::from_secs(10);

/// An item per sent message, with its reply and at its time: other steps may be in between, and the
/// connection is opened at the first sent message. A page opens it early, but its messages depend
/// on later responses. `began_ms` and `took_ms` are those of the connection.
pub(super) fn sockets(
    url: &str,
    headers: Vec<(String, Text)>,
    messages: &[Json],
    (began_ms, took_ms): (Option<f64>, f64),
) -> Vec<Socket> {
    let url = match url.split_once("://") {
        Some(("https", rest)) => format!("wss://{rest}"),
        Some(("http", rest)) => format!("ws://{rest}"),
        _ => url.to_string(),
    };
    let url = Text::literal(url);
    let messages = messages.iter().filter(|message| matches!(message, Json::Map(_)));
    let is_sent = |message: &Json| message.word("type") == "send";
    let first = messages.clone().find(|it| is_sent(it)).and_then(|it| number(it, "time"));
    // A time before the connection comes from another clock.
    let first_ms = first.map(|first| first * 1e3).filter(|at| began_ms.is_some_and(|it| it <= *at));
    let begin_ms = first_ms.or(began_ms);
    let passed_ms = |time: Option<f64>| time.zip(first).map(|(time, first)| (time - first) * 1e3);
    let (mut sockets, mut sent, mut pushed) = (Vec::<Socket>::new(), 0, 0);
    for message in messages {
        let passed_ms = passed_ms(number(message, "time"));
        let now_ms = passed_ms.zip(begin_ms).map(|(passed, begin)| begin + passed);
        let last = sockets.last_mut();
        if is_sent(message) {
            sent += 1;
            let (continues, before_ms) = (last.is_some(), last.map_or(begin_ms, |it| it.begin_ms));
            let talk = vec![Talk::Send(content(message))];
            let now_ms = now_ms.zip(before_ms).map(|(now, before)| now.max(before));
            let (url, begin_ms) = (url.clone(), now_ms.or(before_ms));
            let one =
                Socket { url, continues, stays_open: true, talk, begin_ms, ..Socket::default() };
            sockets.extend((sent <= SENT_MAX).then_some(one));
            continue;
        }
        match last {
            // The first message after a sent one is taken as its reply.
            Some(Socket { talk, took_ms, begin_ms, .. })
                if matches!(talk[..], [Talk::Send(_)]) && sent <= SENT_MAX =>
            {
                if let Some(Talk::Send(sent)) = talk.pop() {
                    talk.push(Talk::Request(sent));
                }
                *took_ms = now_ms.zip(*begin_ms).map_or(0.0, |(now, begin)| (now - begin).max(0.0));
            }
            _ => pushed += 1,
        }
    }
    if sockets.is_empty() {
        let took_ms = took_ms.min(STAY.as_secs_f64() * 1e3);
        let talk = vec![Talk::Stay(STAY)];
        sockets.push(Socket { url: url.clone(), talk, begin_ms, took_ms, ..Socket::default() });
    }
    if let Some(last) = sockets.last_mut() {
        last.stays_open = false;
    }
    let opening = &mut sockets[0];
    (opening.protocols, opening.headers) = (protocols(&headers), headers);
    let place = say!("WebSocket {}", &url);
    if pushed > 0 {
        let what = say!("messages that the server pushed; they are received and counted");
        opening.left_out.push(LeftOut { count: pushed, ..LeftOut::new(place.clone(), what) });
    }
    if sent > SENT_MAX {
        let what = say!("sent messages after the first {SENT_MAX}");
        opening.left_out.push(LeftOut { count: sent - SENT_MAX, ..LeftOut::new(place, what) });
    }
    sockets
}

/// The offered subprotocols.
fn protocols(headers: &[(String, Text)]) -> Vec<String> {
    let of_it =
        headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("sec-websocket-protocol"));
    let lists = of_it.map(|(_, names)| names.as_literal().unwrap_or_default());
    lists.flat_map(|names| names.split(',')).map(|name| name.trim().to_string()).collect()
}

fn content(message: &Json) -> Message {
    let text = message.word("data");
    if number(message, "opcode") == Some(2.0)
        && let Some(bytes) = bytes_of_base64(text)
    {
        return Message::Bytes(bytes);
    }
    match Json::of_body(&text.into()) {
        Some(json) => Message::Json(json),
        None => Message::Text(Text::literal(text)),
    }
}
