//! Event streams in pieces of any size, compared with the text of the standard.

use std::io::Write as _;
use std::time::Duration;

use throng_base::{Random, Time};
use throng_fuzz::{mutations, splits};

use super::*;
use crate::field::Field;
use crate::http1::{HttpError, RequestKind};
use crate::http2::{self, Lasting, write_field};
use crate::input::{Ends, Event, Input, Limits};
use crate::websocket;

const BYTES_MAX: usize = 1 << 20;

/// The events of a body in these parts: name, ID and data; then why it ended.
fn parsed(parts: &[&[u8]], bytes_max: usize) -> (Vec<[String; 3]>, Option<EventError>) {
    let mut parser = EventParser::default();
    let mut events = Vec::new();
    for part in parts {
        let (mut rest, mut room) = (*part, Vec::new());
        loop {
            match parser.next(&mut rest, bytes_max, &mut room) {
                Ok(true) => {
                    let event = EventMessage::of(&room);
                    events.push([event.name, event.id, event.data].map(text));
                }
                Ok(false) => break,
                Err(error) => return (events, Some(error)),
            }
        }
    }
    (events, None)
}

fn text(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}

fn since(last_id: &[u8]) -> Resume {
    Resume { last_id: last_id.to_vec(), after: None }
}

fn check_body(body: &str, want: &[[&str; 3]]) {
    splits(body.as_bytes(), |parts| {
        let (events, error) = parsed(parts, BYTES_MAX);
        assert_eq!((&events[..], error), (&want.map_all()[..], None), "{body:?} {parts:?}");
    });
}

trait MapAll {
    fn map_all(&self) -> Vec<[String; 3]>;
}

impl MapAll for [[&str; 3]] {
    fn map_all(&self) -> Vec<[String; 3]> {
        self.iter().map(|event| event.map(|part| text(part.as_bytes()))).collect()
    }
}

/// The examples of the standard's section "Interpreting an event stream" among them.
#[test]
fn events_are_read_as_in_the_standard() {
    let message = |data| ["message", "", data];
    check_body("data: YHOO\ndata: +2\ndata: 10\n\n", &[message("YHOO\n+2\n10")]);
    check_body(
        ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event",
        &[["message", "1", "first event"], message("second event")],
    );
    check_body("data\n\ndata\ndata\n\ndata:", &[message(""), message("\n")]);
    check_body("data:test\n\ndata: test\n\n", &[message("test"), message("test")]);
    // Line ends of all kinds, also mixed.
    check_body("data: a\r\ndata: b\rdata: c\n\r\n", &[message("a\nb\nc")]);
    check_body("data: a\r\rdata: b\n\n\r\ndata: c\r\n\r\n", &["a", "b", "c"].map(message));
    // A byte order mark is skipped once; a field name is used unchanged.
    check_body("\u{feff}data: a\n\n\u{feff}data: b\n\n", &[message("a")]);
    check_body("Data: a\ndata : b\n data: c\ndata: d\n\n", &[message("d")]);
    // A name is that of one event, an id stays; events without data are none, their id counts.
    check_body(
        "event: add\nid: 7\ndata: 1\n\ndata: 2\n\nid: 8\nevent: gone\n\ndata: 3\n\n",
        &[["add", "7", "1"], ["message", "7", "2"], ["message", "8", "3"]],
    );
    // An ID with a NUL is ignored, `retry` is not an event, an empty event name means none.
    check_body("id: 1\0\nretry: 10\nevent\ndata: 1\n\nretry: 5\n\n", &[message("1")]);
    check_body("data: ends in the middle\n", &[]);
}

/// What an event is made of survives being one message.
#[test]
fn an_event_is_a_message() {
    let mut out = Vec::new();
    EventMessage { name: b"", id: b"", data: b"\n\nid: 5\n\n" }.write(&mut out);
    let event = EventMessage::of(&out);
    let fields = [("event", Field::Bytes(b"message")), ("id", Field::Bytes(b""))];
    assert_eq!((event.fields(), event.data), (fields, &b"\n\nid: 5\n\n"[..]));
    out.clear();
    EventMessage { name: b"id: x", id: b"event: 5", data: b"" }.write(&mut out);
    assert_eq!(text(&out), "event: id: x\\nid: event: 5\\n\\n");
    let event = EventMessage::of(&out);
    assert_eq!((event.name, event.id, event.data), (&b"id: x"[..], &b"event: 5"[..], &b""[..]));
}

#[test]
fn events_over_the_limit_are_rejected() {
    for body in ["data: 0123456789\n\n", ": 012345678901234", "data: 01234\ndata: 56789\n\n"] {
        let error = parsed(&[body.as_bytes()], 10).1;
        assert_eq!(error, Some(EventError::TooLarge { bytes_max: 10 }), "{body:?}");
        splits(body.as_bytes(), |parts| assert_eq!(parsed(parts, 10).1, error));
        assert_eq!(parsed(&[body.as_bytes()], 100).1, None);
    }
}

/// What is known when a stream is lost: the id of what was complete, and the last time that was
/// given.
#[test]
fn a_client_resumes_after_its_last_event() {
    let resume = |body: &str| {
        let mut first = None;
        splits(body.as_bytes(), |parts| {
            let mut parser = EventParser::default();
            for part in parts {
                let (mut rest, mut room) = (*part, Vec::new());
                while parser.next(&mut rest, BYTES_MAX, &mut room).unwrap() {}
            }
            assert_eq!(first.get_or_insert_with(|| parser.resume()), &parser.resume());
        });
        first.flatten().map(|resume| (text(&resume.last_id), resume.after))
    };
    let millis = |time| Some(Duration::from_millis(time));
    assert_eq!(resume("data: 1\n\n"), None);
    assert_eq!(resume("id: 1\ndata: 1\n\nid: 2\ndata: 2\n"), Some(("1".into(), None)));
    assert_eq!(resume("id: 1\n\nid\n\n"), None);
    assert_eq!(resume("retry: 20\nretry: x\nretry\nretry: -1\n"), Some(("".into(), millis(20))));
    let long = resume("retry: 99999999999\nid: 7\n\n");
    assert_eq!(long, Some(("7".into(), millis(u64::from(u32::MAX)))));
    assert_eq!(resume(&format!("id: {}\n\n", "7".repeat(5000))), None);
}

#[test]
fn a_parser_releases_the_memory_of_a_long_event() {
    let mut parser = EventParser::since(since(b"41"));
    assert_eq!(parser.resume(), Some(since(b"41")));
    let body = format!("data: {}\n\n", "x".repeat(100_000));
    let mut lengths = Vec::new();
    for mut part in body.as_bytes().chunks(999) {
        let mut room = Vec::new();
        while parser.next(&mut part, BYTES_MAX, &mut room).unwrap() {
            let event = EventMessage::of(&room);
            lengths.push((text(event.id), event.data.len()));
        }
    }
    assert_eq!(lengths, [("41".to_string(), 100_000)]);
    assert!(parser.heap_bytes() < 4096, "{}", parser.heap_bytes());
}

/// The events of a response in these parts: each as its message, then whether the response was
/// complete, or why it cannot be read.
fn read(
    reader: &mut EventReader,
    parts: &[&[u8]],
    bytes_max: usize,
) -> (Vec<String>, Result<bool, EventError>) {
    let websocket = websocket::Limits { message_bytes_max: bytes_max, ..Default::default() };
    let limits = Limits { websocket, ..Limits::default() };
    let (mut events, mut room, mut out) = (Vec::new(), Vec::new(), Vec::new());
    for part in parts {
        let mut input = Input::new(part, Time::ZERO, Ends::Whole);
        loop {
            match reader.next(&mut input, &limits, &mut room, &mut out) {
                Ok(Some(Event::Message(message))) => events.push(text(message)),
                Ok(Some(Event::Closed { .. })) => return (events, Ok(true)),
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(error) => return (events, Err(error)),
            }
        }
    }
    (events, Ok(false))
}

fn answered(parts: &[&[u8]], bytes_max: usize) -> (Vec<String>, Result<bool, EventError>) {
    read(&mut EventReader::since(Resume::default()), parts, bytes_max)
}

fn answer(headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream;charset=utf-8\r\n{headers}\r\n"
    );
    [head.as_bytes(), body].concat()
}

const CHUNKED: &str = "Transfer-Encoding: chunked\r\n";

#[test]
fn a_response_is_read_whatever_its_coding() {
    let body = b"data: one\n\nevent: x\ndata: two\n\n";
    let chunks = b"7\r\ndata: o\r\n4\r\nne\n\n\r\n14\r\nevent: x\ndata: two\n\n\r\n";
    let ended = [&chunks[..], b"0\r\n\r\n"].concat();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&body[..11]).unwrap();
    gzip.flush().unwrap();
    gzip.write_all(&body[11..]).unwrap();
    gzip.flush().unwrap();
    let want = ["\\ndata: one".replace("data: ", ""), "event: x\\n\\ntwo".to_string()];
    let length = format!("Content-Length: {}\r\n", body.len());
    for (answer, complete) in [
        (answer("", body), false),
        (answer(&length, body), true),
        (answer(CHUNKED, chunks), false),
        (answer(CHUNKED, &ended), true),
        (answer("Content-Encoding: gzip\r\n", gzip.get_ref()), false),
    ] {
        splits(&answer, |parts| {
            let (events, end) = answered(parts, BYTES_MAX);
            assert_eq!((&events[..], end), (&want[..], Ok(complete)), "{parts:?}");
        });
    }
}

fn json_lines(body: &[u8]) -> Vec<u8> {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\n";
    [format!("{head}Content-Length: {}\r\n\r\n", body.len()).as_bytes(), body].concat()
}

/// <https://github.com/ndjson/ndjson-spec>: lines end with LF, CRs are white space, empty lines may
/// be skipped. The last one may have no end.
#[test]
fn each_json_line_is_an_event() {
    let body = b"{\"a\": 1}\n\r\n \n{\"data\": \"id: 1\"}\r\ndata: x\n{\"a\": 2}";
    let want = ["{\\\"a\\\": 1}", "{\\\"data\\\": \\\"id: 1\\\"}", "data: x", "{\\\"a\\\": 2}"];
    splits(&json_lines(body), |parts| {
        let (events, end) = answered(parts, BYTES_MAX);
        let events: Vec<&str> = events.iter().filter_map(|it| it.strip_prefix("\\n")).collect();
        assert_eq!((&events[..], end), (&want[..], Ok(true)), "{parts:?}");
    });
    let long = answered(&[&json_lines(b"0123456789\n")], 9).1;
    assert_eq!(long, Err(EventError::TooLarge { bytes_max: 9 }));
}

#[test]
fn a_response_that_is_not_an_event_stream_is_refused() {
    for (head, want) in [
        ("HTTP/1.1 204 No Content\r\n", "request got status 204 instead of 200"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n", "has no `Content-Type` header"),
        ("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n", "is `text/html`, not `text/event-st"),
    ] {
        let end = answered(&[format!("{head}\r\n").as_bytes()], BYTES_MAX).1;
        let error = end.unwrap_err().to_string();
        assert!(error.contains(want), "{error}");
    }
    let error = answered(&[b"SSH-2.0-x\r\n\r\n"], BYTES_MAX).1.unwrap_err();
    assert!(matches!(error, EventError::Http(_)), "{error}");
    let error = answered(&[&answer("Content-Encoding: gzip\r\n", b"data: x\n\n")], BYTES_MAX).1;
    assert!(matches!(error, Err(EventError::Content(_))), "{error:?}");
}

#[test]
fn nothing_is_read_before_it_is_pulled() {
    let mut reader = EventReader::since(since(b"5"));
    let bytes = answer("", b"id: 6\ndata: 1\n\nid: 7\ndata: 2\n\n");
    let (mut input, limits) = (Input::new(&bytes, Time::ZERO, Ends::Whole), Limits::default());
    let (mut room, mut out) = (Vec::new(), Vec::new());
    while !matches!(
        reader.next(&mut input, &limits, &mut room, &mut out),
        Ok(Some(Event::Message(_)))
    ) {}
    assert_eq!(reader.resume(), Some(since(b"6")));
}

const CORPUS: &[&[u8]] = &[
    b"\xef\xbb\xbfevent: add\r\nid: 7\r\ndata: {\"a\": 1}\r\ndata: b\r\n\r\n: beat\n\ndata\n\n",
    b"id: 1\nretry: 3000\ndata: one\n\nid\ndata: two\r\rid: \0\ndata:three\n\r\nevent: x\n\n",
    b"data: ends in the middle\ndata",
];

/// The same by the text of the standard: lines first, then their fields.
fn by_the_standard(body: &[u8]) -> Vec<[String; 3]> {
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    let (mut lines, mut line, mut bytes) = (Vec::new(), Vec::new(), body.iter().peekable());
    while let Some(byte) = bytes.next() {
        match byte {
            b'\r' | b'\n' => {
                if *byte == b'\r' && bytes.peek() == Some(&&b'\n') {
                    bytes.next();
                }
                lines.push(std::mem::take(&mut line));
            }
            byte => line.push(*byte),
        }
    }
    let (mut events, mut id) = (Vec::new(), Vec::new());
    let (mut data, mut name) = (Vec::new(), Vec::new());
    for line in lines {
        if line.is_empty() {
            if data.pop().is_some() {
                let name = if name.is_empty() { b"message".to_vec() } else { name.clone() };
                events.push([&name[..], &id, &data].map(text));
            }
            data.clear();
            name.clear();
            continue;
        }
        let colon = line.iter().position(|byte| *byte == b':');
        let value = colon.map_or(&[][..], |colon| &line[colon + 1..]);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match &line[..colon.unwrap_or(line.len())] {
            b"event" => name = value.to_vec(),
            b"data" => data.extend(value.iter().chain(b"\n")),
            b"id" if !value.contains(&0) => id = value.to_vec(),
            _ => {}
        }
    }
    events
}

fn cut<'a>(mut bytes: &'a [u8], random: &mut Random) -> Vec<&'a [u8]> {
    let mut parts = Vec::new();
    while !bytes.is_empty() {
        let (part, rest) = bytes.split_at(1 + random.below(bytes.len() as u64) as usize);
        parts.push(part);
        bytes = rest;
    }
    parts
}

#[test]
fn fuzz_bodies_are_read_as_in_the_standard() {
    mutations(CORPUS, |body, random| {
        assert_eq!(parsed(&cut(body, random), usize::MAX), (by_the_standard(body), None));
        let bytes_max = random.below(40) as usize;
        assert_eq!(parsed(&[body], bytes_max), parsed(&cut(body, random), bytes_max));
    });
}

#[test]
fn fuzz_responses_do_not_depend_on_the_split() {
    let chunked =
        answer(CHUNKED, b"9\r\ndata: on\n\r\n1\r\n\n\r\nb;x\r\ndata: two\n\n\r\n0\r\n\r\n");
    let plain = answer("Content-Length: 30\r\n", CORPUS[1]);
    let lines = json_lines(b"{\"a\": 1}\n{\"b\": [2]}\r\n\n3");
    mutations(&[&chunked, &plain, &lines, &answer("", CORPUS[0])], |input, random| {
        let bytes_max = random.below(200) as usize;
        // How much of a non-HTTP response is shown depends on the split.
        let told = |(events, end): (Vec<String>, Result<bool, EventError>)| match end {
            Err(EventError::Http(HttpError::NotHttp(_))) => (events, None),
            end => (events, Some(end)),
        };
        let whole = told(answered(&[input], bytes_max));
        assert_eq!(whole, told(answered(&cut(input, random), bytes_max)));
    });
}

/// A frame of HTTP/2 on stream 1; SETTINGS are those of the connection.
fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
    let size = (payload.len() as u32).to_be_bytes();
    let stream = u8::from(kind != 4);
    [&[size[1], size[2], size[3], kind, flags, 0, 0, 0, stream], payload].concat()
}

/// What a server of HTTP/2 sends before the first event.
fn head(status: &str, fields: &[(&str, &str)], flags: u8) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in [(":status", status)].iter().chain(fields) {
        write_field(&mut block, name, value.as_bytes());
    }
    [frame(4, 0, b""), frame(1, 4 | flags, &block)].concat()
}

const KIND: (&str, &str) = ("content-type", "text/event-stream");

/// The same of a stream over HTTP/2.
fn streamed(parts: &[&[u8]], bytes_max: usize) -> (Vec<String>, Result<bool, EventError>) {
    let (kind, block) = (RequestKind::Normal, &b"\x82\x86\x84"[..]);
    let body_bytes_max = u64::MAX;
    let ask = http2::Ask { kind, block, indexed: &[], body: http2::Body::None, body_bytes_max };
    let stream = Lasting::open(&ask, &http2::Limits::default(), &mut Vec::new()).unwrap();
    read(&mut EventReader::over_http2(stream, since(b"41")), parts, bytes_max)
}

#[test]
fn an_http2_stream_is_read_whatever_its_coding() {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(b"data: one\n\nid: 42\nevent: x\ndata: two\n\n").unwrap();
    gzip.flush().unwrap();
    let plain = [head("200", &[KIND], 0), frame(0, 0, b"data: o"), frame(0, 0, b"ne\n\nid: 42\n")];
    let packed = head("200", &[KIND, ("content-encoding", "gzip")], 0);
    let last = b"event: x\ndata: two\n\n";
    for (bytes, complete) in [
        ([plain.concat(), frame(0, 0, last)].concat(), Ok(false)),
        ([plain.concat(), frame(0, 1, last)].concat(), Ok(true)),
        ([packed, frame(0, 0, gzip.get_ref())].concat(), Ok(false)),
    ] {
        splits(&bytes, |parts| {
            let (events, end) = streamed(parts, BYTES_MAX);
            assert_eq!(events, ["id: 41\\n\\none", "event: x\\nid: 42\\n\\ntwo"], "{parts:?}");
            assert_eq!(end, complete);
        });
    }
}

#[test]
fn an_http2_response_that_is_not_an_event_stream_is_refused() {
    let reset = frame(3, 0, &8u32.to_be_bytes());
    let events = head("200", &[KIND], 0);
    for (bytes, want) in [
        (head("503", &[], 0), "request got status 503 instead of 200"),
        (head("200", &[("content-type", "text/html")], 0), "the response is `text/html`"),
        ([events.clone(), reset].concat(), "the target reset the stream: CANCEL"),
        ([events, frame(0, 0, b"data: 0123456789")].concat(), "over the limit of 10 bytes"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(), "the target responds with HTTP/1, not"),
    ] {
        let error = streamed(&[&bytes], 10).1.unwrap_err().to_string();
        assert!(error.contains(want), "{error}");
    }
}

#[test]
fn fuzz_http2_streams_do_not_depend_on_the_split() {
    let begin = head("200", &[KIND], 0);
    let corpus: Vec<Vec<u8>> = CORPUS
        .iter()
        .map(|body| [&begin[..], &frame(0, 0, &body[..9]), &frame(0, 1, &body[9..])].concat())
        .collect();
    let corpus: Vec<&[u8]> = corpus.iter().map(|bytes| &bytes[..]).collect();
    mutations(&corpus, |input, random| {
        let bytes_max = random.below(200) as usize;
        // How much of a non-HTTP/2 response is shown depends on the split.
        let told = |(events, end): (Vec<String>, Result<bool, EventError>)| match end {
            Err(EventError::Http2(http2::Violation::NotHttp2(_))) => (events, None),
            end => (events, Some(end)),
        };
        let whole = told(streamed(&[input], bytes_max));
        assert_eq!(whole, told(streamed(&cut(input, random), bytes_max)));
    });
}
