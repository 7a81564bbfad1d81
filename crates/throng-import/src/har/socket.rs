//! The messages of a WebSocket, as Chrome records them (`_webSocketMessages`), as steps.

use std::time::Duration;

use throng_scenario::bytes_of_base64;

use super::entries::{Field, SocketMessage};
use crate::json::Json;
use crate::model::{LeftOut, Message, Socket, Talk};
use crate::text::Text;

/// Sent messages of one connection.
const SENT_MAX: usize = 500;
/// A shorter pause between two messages is not one of a user.
const PAUSE_MIN: f64 = 1.0;
const PAUSE_MAX: f64 = 60.0;
/// How long a connection stays on which nothing was sent.
const STAY: Duration = Duration::from_secs(10);

/// Its place among the requests is where its first message was sent: a page opens it early, and
/// says on it what later responses have told. `began_ms` and `took_ms` are of the connection.
pub(super) fn socket(
    url: &str,
    headers: &[Field],
    messages: Vec<SocketMessage>,
    (began_ms, took_ms): (Option<f64>, f64),
) -> Socket {
    let url = match url.split_once("://") {
        Some(("https", rest)) => format!("wss://{rest}"),
        Some(("http", rest)) => format!("ws://{rest}"),
        _ => url.to_string(),
    };
    let is_sent = |message: &SocketMessage| message.direction.text() == "send";
    let first = messages.iter().find(|message| is_sent(message)).and_then(|message| message.time);
    let mut socket = Socket { url: Text::literal(url), ..Socket::default() };
    socket.headers = super::fields(headers);
    for field in headers {
        if field.name.text().eq_ignore_ascii_case("sec-websocket-protocol") {
            let names = field.value.text();
            socket.protocols = names.split(',').map(|name| name.trim().to_string()).collect();
        }
    }
    let (mut sent, mut pushed, mut last) = (0, 0, None::<f64>);
    for message in messages {
        match socket.talk.last_mut() {
            _ if is_sent(&message) => {
                sent += 1;
                if sent > SENT_MAX {
                    continue;
                }
                pause(&mut socket.talk, last, message.time);
                socket.talk.push(Talk::Send(content(&message)));
                last = message.time;
            }
            // The first message behind a sent one is taken as its reply.
            Some(step @ Talk::Send(_)) => {
                if let Talk::Send(sent) = step {
                    *step = Talk::Request(sent.clone());
                }
                last = message.time.or(last);
            }
            _ => pushed += 1,
        }
    }
    // Of another clock, where it is before the connection.
    let first_ms = first.map(|first| first * 1e3).filter(|at| began_ms.is_some_and(|it| it <= *at));
    socket.begin_ms = first_ms.or(began_ms);
    socket.took_ms = match last.zip(first) {
        Some((last, first)) => (last - first).max(0.0) * 1e3,
        None => took_ms.min(STAY.as_secs_f64() * 1e3),
    };
    if sent == 0 {
        socket.talk.push(Talk::Stay(STAY));
    }
    let place = say!("WebSocket {}", &socket.url);
    if pushed > 0 {
        let what = say!("messages that the server pushed; they are received and counted");
        socket.left_out.push(LeftOut { count: pushed, ..LeftOut::new(place.clone(), what) });
    }
    if sent > SENT_MAX {
        let what = say!("sent messages after the first {SENT_MAX}");
        socket.left_out.push(LeftOut { count: sent - SENT_MAX, ..LeftOut::new(place, what) });
    }
    socket
}

fn pause(talk: &mut Vec<Talk>, last: Option<f64>, now: Option<f64>) {
    if let Some(gap) = last.zip(now).map(|(last, now)| now - last).filter(|gap| *gap >= PAUSE_MIN) {
        let tenths = (gap.min(PAUSE_MAX) * 10.0).round();
        talk.push(Talk::Pause(Duration::from_millis(tenths as u64 * 100)));
    }
}

fn content(message: &SocketMessage) -> Message {
    let text = message.data.text();
    if message.opcode == Some(2.0)
        && let Some(bytes) = bytes_of_base64(&text)
    {
        return Message::Bytes(bytes);
    }
    match Json::of_body(&text.as_str().into()) {
        Some(json) => Message::Json(json),
        None => Message::Text(Text::literal(text)),
    }
}
