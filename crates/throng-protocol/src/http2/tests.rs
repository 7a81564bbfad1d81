//! One connection with written frames: its events and answers, however bytes are split.

mod call;
mod fuzz;
mod lasting;
mod model;
mod sizes;
mod violations;

use throng_base::Time;
use throng_fuzz::splits;

use super::frame::{ACK, END_HEADERS, END_STREAM, PADDED, PRIORITY};
use super::*;
use crate::http1::tests::name_of;
use crate::http1::{Head, Headers};

/// All that a connection showed, in a form that does not depend on how the bytes were cut.
#[derive(Debug, PartialEq, Eq, Default, Clone)]
pub(super) struct Shown {
    /// One line an event; the data of one stream that follows itself is one event.
    pub(super) events: Vec<String>,
    /// What was answered.
    pub(super) out: Vec<u8>,
    /// Empty, or the code of the violation.
    pub(super) end: String,
}

impl Shown {
    pub(super) fn add(&mut self, event: Event<'_>) {
        let line = match event {
            Event::Reply { token, part } => match part {
                Part::Informational(head) => format!("{} 1xx {}", token.0, head_text(&head)),
                Part::Head(head) => format!("{} {}", token.0, head_text(&head)),
                Part::Body(bytes) => {
                    assert!(!bytes.is_empty());
                    let data = bytes.escape_ascii().to_string();
                    let begin = format!("{} data ", token.0);
                    let last = self.events.last_mut().filter(|last| last.starts_with(&begin));
                    if let Some(last) = last {
                        last.push_str(&data);
                        return;
                    }
                    begin + &data
                }
                Part::Trailers(headers) => {
                    format!("{} trailers {}", token.0, headers_text(headers))
                }
                Part::End => format!("{} end", token.0),
            },
            Event::Reset { token, code, unprocessed } => {
                format!("{} reset {code}{}", token.0, if unprocessed { " unprocessed" } else { "" })
            }
            Event::Failed { token, violation } => {
                format!("{} failed {}", token.0, name_of(&violation))
            }
            Event::GoAway { last, code, debug } => format!("goaway {} {code} {debug}", last.0),
            Event::Settings { streams_max, .. } => format!("settings {streams_max}"),
            Event::Pong { data } => format!("pong {}", data.escape_ascii()),
        };
        self.events.push(line);
    }
}

fn head_text(head: &Head<'_>) -> String {
    assert_eq!((head.version_major, head.version_minor), (2, 0));
    assert!(head.keep_alive && !head.upgrade);
    let encoding = head.content_encoding.map(|value| format!(" in {}", value.escape_ascii()));
    let cookie = if head.has_set_cookie { " cookie" } else { "" };
    format!(
        "{} {:?}{}{cookie} {}",
        head.status,
        head.framing,
        encoding.unwrap_or_default(),
        headers_text(head.headers)
    )
}

fn headers_text(headers: Headers<'_>) -> String {
    let pair =
        |(name, value): (&[u8], &[u8])| format!("{}={}", name.escape_ascii(), value.escape_ascii());
    headers.iter().map(pair).collect::<Vec<_>>().join("|")
}

/// A frame of the peer.
pub(super) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let size = (payload.len() as u32).to_be_bytes();
    let mut bytes = vec![size[1], size[2], size[3], kind, flags];
    bytes.extend_from_slice(&stream.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

pub(super) fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in fields {
        write_field(&mut out, name, value.as_bytes());
    }
    out
}

pub(super) fn headers(stream: u32, flags: u8, fields: &[(&str, &str)]) -> Vec<u8> {
    frame(1, flags | END_HEADERS, stream, &block(fields))
}

pub(super) fn data(stream: u32, flags: u8, bytes: &[u8]) -> Vec<u8> {
    frame(0, flags, stream, bytes)
}

pub(super) fn settings(values: &[(u16, u32)]) -> Vec<u8> {
    let pair = |(id, value): &(u16, u32)| [&id.to_be_bytes()[..], &value.to_be_bytes()].concat();
    frame(4, 0, 0, &values.iter().flat_map(pair).collect::<Vec<u8>>())
}

pub(super) fn window_update(stream: u32, increment: u32) -> Vec<u8> {
    frame(8, 0, stream, &increment.to_be_bytes())
}

pub(super) fn reset(stream: u32, code: ErrorCode) -> Vec<u8> {
    frame(3, 0, stream, &code.0.to_be_bytes())
}

pub(super) fn goaway(last: u32, code: ErrorCode, debug: &[u8]) -> Vec<u8> {
    frame(7, 0, 0, &[&last.to_be_bytes()[..], &code.0.to_be_bytes(), debug].concat())
}

/// A GET without a body.
pub(super) fn get(block: &[u8]) -> Ask<'_> {
    Ask {
        kind: RequestKind::Normal,
        block,
        indexed: &[],
        body: Body::None,
        body_bytes_max: u64::MAX,
    }
}

pub(super) const SLASH: &[u8] = b"\x82\x86\x84";

/// A connection with as many requests on it as there are kinds.
pub(super) fn asked(kinds: &[RequestKind], limits: &Limits) -> Client {
    let mut client = Client::new(limits);
    let mut out = Vec::new();
    client.open(limits, &mut out);
    for (index, kind) in kinds.iter().enumerate() {
        let token = client.ask(&Ask { kind: *kind, ..get(SLASH) }, &mut out).unwrap();
        assert_eq!(token, Token(index as u32 * 2 + 1));
    }
    client
}

pub(super) fn receive(client: &mut Client, limits: &Limits, bytes: &[u8], shown: &mut Shown) {
    let (mut out, mut rest) = (std::mem::take(&mut shown.out), bytes);
    loop {
        match client.next(Time::ZERO, &mut rest, limits, &mut Vec::new(), &mut out) {
            Ok(Some(event)) => {
                if let Event::Reply { part: Part::Body(body), .. } = event {
                    let read = &bytes[..bytes.len() - rest.len()];
                    assert!(read.as_ptr_range().end == body.as_ptr_range().end, "where it lies");
                }
                shown.add(event);
            }
            Ok(None) => break,
            Err(violation) => {
                shown.end = name_of(&violation);
                break;
            }
        }
    }
    shown.out = out;
}

/// What three requests (GET, HEAD, GET) see of these bytes. They are tried in every cut.
pub(super) fn shown(bytes: &[u8]) -> Shown {
    shown_within(bytes, &Limits::default())
}

pub(super) fn shown_within(bytes: &[u8], limits: &Limits) -> Shown {
    let kinds = [RequestKind::Normal, RequestKind::Head, RequestKind::Normal];
    let mut first = None;
    splits(bytes, |parts| {
        let mut client = asked(&kinds, limits);
        let mut shown = Shown::default();
        for part in parts {
            receive(&mut client, limits, part, &mut shown);
        }
        assert_eq!(first.get_or_insert_with(|| shown.clone()), &shown);
    });
    first.unwrap_or_default()
}

pub(super) fn after_settings(frames: &[Vec<u8>]) -> Shown {
    shown(&[settings(&[]), frames.concat()].concat())
}

#[test]
fn responses_are_read_however_they_are_split() {
    let mut shown = after_settings(&[
        headers(5, 0, &[(":status", "103"), ("link", "</a>")]),
        headers(1, 0, &[(":status", "200"), ("content-length", "5"), ("content-encoding", "br")]),
        data(1, PADDED, b"\x03he\0\0\0"),
        headers(3, END_STREAM, &[(":status", "200"), ("content-length", "77")]),
        frame(0x42, 0xff, 3, b"an extension"),
        frame(2, 0, 9, &[0, 0, 0, 3, 16]),
        data(1, END_STREAM, b"llo"),
        frame(1, PADDED | PRIORITY | END_HEADERS, 5, &{
            let mut padded = vec![2, 0, 0, 0, 1, 200];
            padded.extend(block(&[(":status", "404"), ("set-cookie", "a=b"), ("x", "")]));
            [padded, vec![0, 0]].concat()
        }),
        data(5, 0, b""),
        data(5, 0, b"x"),
        headers(5, END_STREAM, &[("grpc-status", "0")]),
        frame(6, 0, 0, b"12345678"),
        frame(6, ACK, 0, b"8 bytes."),
        frame(4, ACK, 0, b""),
    ]);
    assert_eq!(std::mem::take(&mut shown.end), "");
    assert_eq!(
        shown.events,
        [
            "settings 4294967295",
            "5 1xx 103 None link=</a>",
            "1 200 Length(5) in br content-length=5|content-encoding=br",
            "1 data he",
            "3 200 None content-length=77",
            "3 end",
            "1 data llo",
            "1 end",
            "5 404 UntilClose cookie set-cookie=a=b|x=",
            "5 data x",
            "5 trailers grpc-status=0",
            "5 end",
            "pong 8 bytes.",
        ]
    );
    assert_eq!(shown.out, [frame(4, ACK, 0, b""), frame(6, ACK, 0, b"12345678")].concat());
}

#[test]
fn a_head_may_have_many_frames() {
    let whole = block(&[(":status", "200"), ("server", "nginx"), ("x-long", &"y".repeat(99))]);
    let (first, rest) = whole.split_at(1);
    let (second, third) = rest.split_at(20);
    let shown = after_settings(&[
        frame(1, END_STREAM, 1, first),
        frame(9, 0, 1, second),
        frame(9, 0, 1, b""),
        frame(9, END_HEADERS, 1, third),
    ]);
    assert_eq!(shown.end, "");
    assert!(shown.events[1].starts_with("1 200 Length(0) server=nginx|x-long=yyy"), "{shown:?}");
    assert_eq!(shown.events[2], "1 end");
}

#[test]
fn the_preface_announces_our_limits() {
    let limits = Limits::default();
    let mut client = Client::new(&limits);
    let mut out = Vec::new();
    client.open(&limits, &mut out);
    let head_bytes_max = limits.head_bytes_max as u32;
    let wanted =
        settings(&[(1, 2048), (2, 0), (4, limits.stream_window_bytes), (6, head_bytes_max)]);
    let window = limits.connection_window_bytes - 65_535;
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    assert_eq!(out, [preface, wanted, window_update(0, window)].concat());
    assert!(!client.is_ready());
}

#[test]
fn a_prepared_request_is_written_unchanged() {
    let mut block = Vec::new();
    write_request(&mut block, "GET", "http", "a.example", "?q");
    write_field(&mut block, "Accept", b"*/*");
    let mut client = asked(&[], &Limits::default());
    for id in [1, 3] {
        let mut out = Vec::new();
        assert_eq!(client.ask(&get(&block), &mut out), Ok(Token(id)));
        assert_eq!(out, frame(1, END_STREAM | END_HEADERS, id, &block));
    }
    // A block that is larger than a frame.
    let long = [block.clone(), b"\x00\x01x\x7f\x81\xff\x01".to_vec(), vec![b'y'; 32_766]].concat();
    let mut out = Vec::new();
    client.ask(&get(&long), &mut out).unwrap();
    let (first, rest) = long.split_at(16_384);
    let (second, third) = rest.split_at(16_384);
    let frames =
        [frame(1, END_STREAM, 5, first), frame(9, 0, 5, second), frame(9, END_HEADERS, 5, third)];
    assert_eq!(out, frames.concat());
}

#[test]
fn the_limit_of_streams_is_respected() {
    let limits = Limits::default();
    let mut client = asked(&[RequestKind::Normal; 2], &limits);
    let mut shown = Shown::default();
    receive(&mut client, &limits, &settings(&[(3, 2)]), &mut shown);
    assert_eq!(client.ask(&get(SLASH), &mut Vec::new()), Err(Refused::Streams { max: 2 }));
    let end = headers(1, END_STREAM, &[(":status", "204")]);
    receive(&mut client, &limits, &end, &mut shown);
    assert_eq!(client.open_streams(), 1);
    assert_eq!(client.ask(&get(SLASH), &mut Vec::new()), Ok(Token(5)));
    // Fewer than are open now.
    receive(&mut client, &limits, &settings(&[(3, 0)]), &mut shown);
    assert_eq!(client.room(), Err(Refused::Streams { max: 0 }));
    assert_eq!(shown.end, "");
}

/// Before the peer's settings arrive, it gets no more streams than every server allows.
#[test]
fn a_peer_without_a_limit_has_none() {
    let limits = Limits::default();
    let mut client = asked(&[RequestKind::Normal; 100], &limits);
    assert_eq!(client.room(), Err(Refused::Streams { max: 100 }));
    receive(&mut client, &limits, &settings(&[]), &mut Shown::default());
    for _ in 0..10_000 {
        client.ask(&get(SLASH), &mut Vec::new()).unwrap();
    }
}

#[test]
fn goaway_identifies_unprocessed_requests() {
    let limits = Limits::default();
    let mut client = asked(&[RequestKind::Normal; 3], &limits);
    let mut shown = Shown::default();
    let answer = headers(1, END_STREAM, &[(":status", "200")]);
    let bytes = [
        settings(&[]),
        reset(5, ErrorCode::REFUSED_STREAM),
        goaway(1, ErrorCode::NO_ERROR, b"restart"),
        goaway(1, ErrorCode(99), b""),
        answer,
    ];
    receive(&mut client, &limits, &bytes.concat(), &mut shown);
    assert_eq!(
        shown.events,
        [
            "settings 4294967295",
            "5 reset REFUSED_STREAM unprocessed",
            "goaway 1 NO_ERROR `restart`",
            "3 reset NO_ERROR unprocessed",
            "goaway 1 error code 0x63 ``",
            "1 200 Length(0) ",
            "1 end"
        ]
    );
    assert_eq!(client.ask(&get(SLASH), &mut Vec::new()), Err(Refused::GoingAway));
    assert_eq!((client.open_streams(), shown.end.as_str()), (0, ""));
}

/// A peer that has started to respond has processed the request, whatever it reports afterwards:
/// resent, the request would be processed twice.
#[test]
fn a_request_with_a_response_counts_as_processed() {
    let limits = Limits::default();
    let begun = [(1, "200"), (3, "103")].map(|(id, status)| headers(id, 0, &[(":status", status)]));
    for (last, told) in [
        (
            [reset(1, ErrorCode::REFUSED_STREAM), reset(3, ErrorCode::REFUSED_STREAM)].concat(),
            "REFUSED_STREAM",
        ),
        (goaway(0, ErrorCode::NO_ERROR, b""), "NO_ERROR"),
    ] {
        let mut client = asked(&[RequestKind::Normal; 2], &limits);
        let mut shown = Shown::default();
        let bytes = [settings(&[]), begun.concat(), last].concat();
        receive(&mut client, &limits, &bytes, &mut shown);
        let ends = shown.events.len() - 2..;
        assert_eq!(shown.events[ends], [format!("1 reset {told}"), format!("3 reset {told}")]);
    }
}

#[test]
fn a_cancelled_exchange_causes_no_more_events() {
    let limits = Limits::default();
    let mut client = asked(&[RequestKind::Normal; 2], &limits);
    let mut shown = Shown::default();
    let begin =
        [settings(&[]), headers(1, 0, &[(":status", "200")]), data(1, 0, b"abc")[..10].to_vec()];
    receive(&mut client, &limits, &begin.concat(), &mut shown);
    let mut out = Vec::new();
    client.cancel(Token(1), ErrorCode::CANCEL, &mut out).unwrap();
    assert_eq!(out, reset(1, ErrorCode::CANCEL));
    assert_eq!(client.cancel(Token(1), ErrorCode::CANCEL, &mut out), Err(NotOpen));
    // Frames in flight are skipped; the header table is still updated.
    let mut kept = block(&[(":status", "200")]);
    kept.extend(b"\x40\x01a\x01b");
    let late = [
        b"bc".to_vec(),
        data(1, 0, b"more"),
        frame(1, END_HEADERS | END_STREAM, 1, b"\x40\x03x-y\x01z"),
        frame(1, END_HEADERS | END_STREAM, 3, b"\x88\xbe"),
    ];
    receive(&mut client, &limits, &late.concat(), &mut shown);
    assert_eq!(
        shown.events[1..],
        ["1 200 UntilClose ", "1 data a", "3 200 Length(0) x-y=z", "3 end"]
    );
    assert_eq!(shown.end, "");
}

#[test]
fn an_early_close_fails_all_open_exchanges() {
    let limits = Limits::default();
    let closed = |bytes: &[u8]| {
        let is_http2 = bytes != b"HTTP/";
        let mut client = asked(&[RequestKind::Normal; 2], &limits);
        let mut shown = Shown::default();
        receive(&mut client, &limits, bytes, &mut shown);
        let mut violations = Vec::new();
        client.close(&mut |event: Event<'_>| {
            let Event::Failed { violation, .. } = event else { panic!("{event:?}") };
            assert_eq!((violation.is_cut_off(), violation.is_too_large()), (is_http2, false));
            violations.push(violation.to_string());
        });
        assert_eq!(client.ask(&get(SLASH), &mut Vec::new()), Err(Refused::Closed));
        violations
    };
    let nothing = "closed before the response started";
    assert_eq!(closed(b""), [nothing, nothing]);
    let head = headers(1, 0, &[(":status", "200"), ("content-length", "5")]);
    assert_eq!(
        closed(&[settings(&[]), head, data(1, 0, b"abc")[..11].to_vec()].concat()),
        ["closed in the middle of the body: 2 of 5 bytes received", nothing]
    );
    let http1 = "response is not HTTP/2, it starts with `HTTP/` (RFC 9113, 3.4)";
    assert_eq!(closed(b"HTTP/"), [http1, http1]);
}

#[test]
fn windows_are_opened_in_large_steps() {
    let limits = Limits {
        stream_window_bytes: 40_000,
        connection_window_bytes: 100_000,
        ..Limits::default()
    };
    let piece = data(1, 0, &[b'x'; 10_000]);
    let mut client = asked(&[RequestKind::Normal], &limits);
    let mut shown = Shown::default();
    let begin = [settings(&[]), headers(1, 0, &[(":status", "200")])].concat();
    receive(&mut client, &limits, &begin, &mut shown);
    shown.out.clear();
    for count in 1..=6 {
        receive(&mut client, &limits, &piece, &mut shown);
        let wanted = match count {
            3 => window_update(1, 30_000),
            6 => [window_update(0, 60_000), window_update(1, 30_000)].concat(),
            _ => Vec::new(),
        };
        assert_eq!(std::mem::take(&mut shown.out), wanted, "after {count}");
    }
    // The last frame of a stream needs no window after it.
    receive(&mut client, &limits, &piece, &mut shown);
    receive(&mut client, &limits, &piece, &mut shown);
    receive(&mut client, &limits, &data(1, END_STREAM, &[b'x'; 10_000]), &mut shown);
    assert_eq!((shown.out, shown.end.as_str()), (Vec::new(), ""));
}

/// The payloads of all DATA frames in `out`, with a `.` at the end of each stream.
fn sent(out: &[u8]) -> Vec<String> {
    let mut rest = out;
    let mut frames = Vec::new();
    while let [s0, s1, s2, kind, flags, _, _, _, id, after @ ..] = rest {
        let size = u32::from_be_bytes([0, *s0, *s1, *s2]) as usize;
        let (payload, after) = after.split_at(size);
        if *kind == 0 {
            let end = if flags & END_STREAM != 0 { "." } else { "" };
            frames.push(format!("{id} {}{end}", payload.escape_ascii()));
        }
        rest = after;
    }
    frames
}

#[test]
fn a_body_is_sent_as_far_as_its_windows_allow() {
    let limits = Limits::default();
    let mut client = asked(&[], &limits);
    let mut shown = Shown::default();
    receive(&mut client, &limits, &settings(&[(4, 5)]), &mut shown);
    let shared: Arc<[u8]> = b"0123456789abc".as_slice().into();
    let mut out = Vec::new();
    let post = |body| Ask { body, ..get(SLASH) };
    client.ask(&post(Body::Shared(&shared)), &mut out).unwrap();
    client.ask(&post(Body::Bytes(b"ABCDEFGH")), &mut out).unwrap();
    client.ask(&post(Body::Bytes(b"")), &mut out).unwrap();
    let open = client.ask(&post(Body::Open), &mut out).unwrap();
    assert_eq!(sent(&out), ["1 01234", "3 ABCDE"]);
    assert_eq!((Arc::strong_count(&shared), client.backlog(Token(1))), (2, 8));
    assert_eq!((client.backlog(Token(3)), client.backlog(Token(5))), (3, 0));

    let mut out = Vec::new();
    client.send(open, Body::Bytes(b"uvw"), false, &mut out).unwrap();
    client.send(open, Body::Bytes(b"xyz"), false, &mut out).unwrap();
    client.send(open, Body::None, true, &mut out).unwrap();
    assert_eq!(client.send(open, Body::None, true, &mut out), Err(NotOpen));
    assert_eq!(sent(&out), ["7 uvw", "7 xy"]);

    let more = |client: &mut Client, bytes: &[u8]| {
        let mut shown = Shown::default();
        receive(client, &limits, bytes, &mut shown);
        assert_eq!(shown.end, "");
        sent(&shown.out)
    };
    assert_eq!(more(&mut client, &window_update(1, 2)), ["1 56"]);
    assert_eq!(more(&mut client, &window_update(7, 9)), ["7 z."]);
    // Below zero, then up again: both go on, the end with the last byte.
    assert_eq!(more(&mut client, &settings(&[(4, 0)])), [""; 0]);
    assert_eq!(more(&mut client, &window_update(3, 5)), [""; 0]);
    let mut both = more(&mut client, &settings(&[(4, 100)]));
    both.sort();
    assert_eq!(both, ["1 789abc.", "3 FGH."]);
    assert_eq!((Arc::strong_count(&shared), client.backlog(Token(1))), (1, 0));
}

#[test]
fn bodies_take_turns_with_the_connection_window() {
    let limits = Limits::default();
    let mut client = asked(&[], &limits);
    let mut shown = Shown::default();
    receive(&mut client, &limits, &settings(&[(4, 1_000_000)]), &mut shown);
    let body: Arc<[u8]> = vec![b'x'; 100_000].into();
    let mut out = Vec::new();
    for _ in 0..2 {
        client.ask(&Ask { body: Body::Shared(&body), ..get(SLASH) }, &mut out).unwrap();
    }
    // 65,535 in all, which the first took.
    assert_eq!(sent(&out).len(), 4);
    let mut shown = Shown::default();
    receive(&mut client, &limits, &window_update(0, 65_536), &mut shown);
    let turns: Vec<char> = sent(&shown.out).iter().filter_map(|one| one.chars().next()).collect();
    assert!(turns == ['1', '3', '1', '3'] || turns == ['3', '1', '3', '1'], "{turns:?}");
}

#[test]
fn a_large_body_waits_for_the_socket() {
    let limits = Limits::default();
    let mut client = asked(&[], &limits);
    let mut shown = Shown::default();
    let wide = [settings(&[(4, 1 << 30)]), window_update(0, 1 << 30)].concat();
    receive(&mut client, &limits, &wide, &mut shown);
    let body: Arc<[u8]> = vec![b'x'; 1_000_000].into();
    let mut out = Vec::new();
    client.ask(&Ask { body: Body::Shared(&body), ..get(SLASH) }, &mut out).unwrap();
    let (mut all, mut writes) = (0, 0);
    loop {
        assert!(out.len() < 280_000, "{} bytes at once", out.len());
        all += out.len();
        writes += 1;
        out.clear();
        if !client.drained(&mut out) {
            break;
        }
    }
    assert!(all > 1_000_000 && writes >= 4, "{all} bytes in {writes} writes");
    assert_eq!((client.backlog(Token(1)), Arc::strong_count(&body)), (0, 1));
}

/// gRPC servers answer a call before all of its requests have arrived.
#[test]
fn a_response_ends_an_upload() {
    let limits = Limits::default();
    let mut client = asked(&[], &limits);
    let token = client.ask(&Ask { body: Body::Open, ..get(SLASH) }, &mut Vec::new()).unwrap();
    let mut shown = Shown::default();
    let answer = headers(1, END_STREAM, &[(":status", "200"), ("grpc-status", "8")]);
    receive(&mut client, &limits, &[settings(&[]), answer].concat(), &mut shown);
    assert_eq!(shown.events[2], "1 end");
    assert!(shown.out.ends_with(&reset(1, ErrorCode::CANCEL)));
    assert_eq!(client.send(token, Body::None, true, &mut Vec::new()), Err(NotOpen));
}

#[test]
fn a_tunnel_has_data_without_a_length() {
    let limits = Limits::default();
    let mut client = asked(&[RequestKind::Connect], &limits);
    let mut shown = Shown::default();
    let bytes = [
        settings(&[]),
        headers(1, 0, &[(":status", "200"), ("content-length", "3")]),
        data(1, 0, b"12345"),
    ];
    receive(&mut client, &limits, &bytes.concat(), &mut shown);
    assert_eq!(shown.events[1..], ["1 200 None content-length=3", "1 data 12345"]);
}
