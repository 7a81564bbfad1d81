//! gRPC calls that stay open: messages to and fro over the one stream of their connection.

use throng_base::grpc::Code;
use throng_fuzz::mutations;

use super::*;
use crate::grpc::{CallError, CallStream, Encoding};
use crate::input::{self, Ends, Input};
use crate::websocket;

const HEAD: &[(&str, &str)] = &[(":status", "200"), ("content-type", "application/grpc")];
const TOO_LARGE: usize = 1_000;

#[derive(Debug, Default, PartialEq, Eq)]
struct Told {
    messages: Vec<Vec<u8>>,
    out: Vec<u8>,
    end: Option<Result<(), CallError>>,
}

impl Told {
    fn receive(&mut self, call: &mut CallStream, bytes: &[u8]) {
        let websocket = websocket::Limits { message_bytes_max: TOO_LARGE, ..Default::default() };
        let limits = input::Limits { websocket, ..Default::default() };
        let (mut input, mut room) = (Input::new(bytes, Time::ZERO, Ends::Whole), Vec::new());
        loop {
            match call.next(&mut input, &limits, &mut room, &mut self.out) {
                Ok(Some(input::Event::Message(message))) => self.messages.push(message.into()),
                Ok(Some(input::Event::Closed { .. })) => self.end = Some(Ok(())),
                Ok(Some(_)) => {}
                Ok(None) => return,
                Err(error) => {
                    self.end = self.end.take().or(Some(Err(error)));
                    return;
                }
            }
        }
    }
}

fn opened(encoding: Encoding) -> CallStream {
    let ask = Ask { body: Body::Open, ..get(SLASH) };
    CallStream::open(&ask, encoding, &Limits::default(), &mut Vec::new()).unwrap()
}

fn message(content: &[u8]) -> Vec<u8> {
    [&[0, 0, 0, 0, content.len() as u8][..], content].concat()
}

/// However it is cut, it is the same.
fn told(frames: &[Vec<u8>]) -> Told {
    let bytes = [settings(&[]), frames.concat()].concat();
    let mut first: Option<Told> = None;
    splits(&bytes, |parts| {
        let (mut call, mut told) = (opened(Encoding::Identity), Told::default());
        for part in parts {
            if told.end.is_none() {
                told.receive(&mut call, part);
            }
        }
        match &first {
            Some(first) => assert_eq!(first, &told),
            None => first = Some(told),
        }
    });
    first.unwrap_or_default()
}

fn status(code: &str, words: &str) -> Vec<u8> {
    headers(1, END_STREAM, &[("grpc-status", code), ("grpc-message", words)])
}

#[test]
fn messages_arrive_until_the_status() {
    let both = [message(b"one"), message(b"two")].concat();
    let (first, second) = both.split_at(6);
    let told = told(&[headers(1, 0, HEAD), data(1, 0, first), data(1, 0, second), status("0", "")]);
    assert_eq!(told.messages, [b"one", b"two"]);
    assert_eq!(told.end, Some(Ok(())));
}

#[test]
fn a_status_other_than_ok_is_reported() {
    let end = |frames: &[Vec<u8>]| told(frames).end.unwrap().unwrap_err();
    let head = || headers(1, 0, HEAD);
    match end(&[head(), status("14", "away")]) {
        CallError::Status(status) => {
            assert_eq!(
                (status.code, status.message.english().as_str()),
                (Code::Unavailable, "away")
            );
        }
        other => panic!("{other:?}"),
    }
    let refused = [HEAD, &[("grpc-status", "12")]].concat();
    let told_at_once = end(&[headers(1, END_STREAM, &refused)]);
    assert_eq!(told_at_once.said().english(), "UNIMPLEMENTED");
    let not_grpc = headers(1, END_STREAM, &[(":status", "502")]);
    assert_eq!(
        end(&[not_grpc]).said().english(),
        "UNAVAILABLE: HTTP status 502 without a gRPC status"
    );
    assert!(matches!(end(&[head(), reset(1, ErrorCode::CANCEL)]), CallError::Reset(_)));
    assert!(matches!(end(&[head(), data(1, 0, b"\x07")]), CallError::Grpc(_)));
    let huge = data(1, 0, b"\0\0\x01\0\0");
    let CallError::Grpc(violation) = end(&[head(), huge]) else { panic!("it is too large") };
    assert!(violation.is_too_large());
    assert!(matches!(end(&[data(3, 0, b"x")]), CallError::Http2(_)));
}

#[test]
fn messages_are_sent_until_the_call_is_half_closed() {
    let (mut call, mut out) = (opened(Encoding::Identity), Vec::new());
    assert!(call.message(b"one", &mut out));
    assert_eq!(out, data(1, 0, &message(b"one")));
    out.clear();
    call.half_close(&mut out);
    assert_eq!(out, data(1, END_STREAM, b""));
    out.clear();
    call.half_close(&mut out);
    assert!(!call.message(b"two", &mut out) && out.is_empty());
}

#[test]
fn messages_are_sent_until_the_last() {
    let (mut call, mut out) = (opened(Encoding::Identity), Vec::new());
    assert!(call.message(b"one", &mut out));
    call.half_close(&mut out);
    let sent = [data(1, 0, &message(b"one")), data(1, END_STREAM, b"")].concat();
    let at_once = data(1, END_STREAM, &message(b"one"));
    assert!(out == sent || out == at_once, "{out:?}");
    assert!(!call.message(b"two", &mut out));
}

#[test]
fn messages_without_room_at_the_peer_wait() {
    let (mut call, mut told) = (opened(Encoding::Identity), Told::default());
    // Room for three bytes of each stream.
    told.receive(&mut call, &settings(&[(4, 3)]));
    let mut out = Vec::new();
    assert!(call.message(b"one", &mut out));
    assert_eq!((out.len(), call.backlog()), (9 + 3, 5));
    told.out.clear();
    told.receive(&mut call, &window_update(1, 100));
    out.clear();
    call.drained(&mut out);
    assert_eq!(call.backlog(), 0);
    let rest = data(1, 0, &message(b"one")[3..]);
    assert!(told.out == rest || out == rest, "{:?} {out:?}", told.out);
}

#[test]
fn compressed_messages_have_their_flag() {
    let (mut call, mut out) = (opened(Encoding::Gzip), Vec::new());
    assert!(call.message(&[b'x'; 100], &mut out));
    assert_eq!((out[9], out.len() < 100), (1, true));
}

#[test]
fn fuzz_damaged_calls_end_or_continue() {
    let good = [
        settings(&[]),
        headers(1, 0, HEAD),
        data(1, 0, &message(b"one")),
        data(1, 0, &message(b"two")),
        status("0", ""),
    ];
    mutations(&[&good.concat()], |input, random| {
        let (mut call, mut told) = (opened(Encoding::Identity), Told::default());
        let cut = random.below(input.len() as u64 + 1) as usize;
        told.receive(&mut call, &input[..cut]);
        if told.end.is_none() {
            told.receive(&mut call, &input[cut..]);
        }
        assert!(told.messages.iter().all(|message| message.len() <= TOO_LARGE));
        assert!(call.heap_bytes() < 64 * 1024);
    });
}
