//! Violations by a peer: each kind ends the connection or stream, within limits, and is named.

use super::*;

/// The code of the violation, after requests on the streams 1 (GET), 3 (HEAD), 5 (GET), and the
/// error code that is sent to the peer.
fn cut_off(frames: &[Vec<u8>]) -> (String, ErrorCode) {
    let shown = after_settings(frames);
    let goodbye = shown.out.len().checked_sub(17).map(|at| &shown.out[at..]);
    let goodbye = goodbye.unwrap_or_else(|| panic!("{shown:?}"));
    assert_eq!(goodbye[..13], frame(7, 0, 0, &[0; 8])[..13], "{shown:?}");
    (shown.end, ErrorCode(u32::from(goodbye[16])))
}

const OK: &[(&str, &str)] = &[(":status", "200")];

#[test]
fn malformed_frames_end_the_connection() {
    let protocol = ErrorCode::PROTOCOL_ERROR;
    let size = ErrorCode::FRAME_SIZE_ERROR;
    let flow = ErrorCode::FLOW_CONTROL_ERROR;
    for (wrong, code, told) in [
        (data(0, 0, b"x"), "stream-id", protocol),
        (data(7, 0, b"x"), "stream-id", protocol),
        (headers(2, END_STREAM, OK), "stream-id", protocol),
        (headers(0, END_STREAM, OK), "stream-id", protocol),
        (reset(0, ErrorCode::CANCEL), "stream-id", protocol),
        (reset(99, ErrorCode::CANCEL), "stream-id", protocol),
        (window_update(9, 1), "stream-id", protocol),
        (frame(2, 0, 0, &[0; 5]), "stream-id", protocol),
        (frame(4, 0, 1, &[0; 6]), "stream-id", protocol),
        (frame(6, 0, 1, &[0; 8]), "stream-id", protocol),
        (frame(7, 0, 1, &[0; 8]), "stream-id", protocol),
        (frame(2, 0, 1, &[0; 4]), "frame-size", size),
        (frame(3, 0, 1, &[0; 5]), "frame-size", size),
        (frame(4, 0, 0, &[0; 5]), "frame-size", size),
        (frame(4, ACK, 0, &[0; 6]), "frame-size", size),
        (frame(6, 0, 0, &[0; 7]), "frame-size", size),
        (frame(7, 0, 0, &[0; 7]), "frame-size", size),
        (frame(8, 0, 0, &[0; 3]), "frame-size", size),
        (data(1, 0, &[0; 16_385]), "frame-too-large", size),
        (frame(0x77, 0, 0, &[0; 16_385]), "frame-too-large", size),
        (data(1, PADDED, b""), "padding", protocol),
        (data(1, PADDED, b"\x01"), "padding", protocol),
        (frame(1, PADDED | END_HEADERS, 1, b"\x02\x88"), "padding", protocol),
        (frame(1, PADDED | END_HEADERS, 1, b""), "padding", protocol),
        (frame(1, PRIORITY | END_HEADERS, 1, b"1234"), "padding", protocol),
        (frame(5, END_HEADERS, 1, b"\0\0\0\x02\x82"), "push", protocol),
        (frame(9, END_HEADERS, 1, b"\x88"), "continuation-without-headers", protocol),
        (settings(&[(2, 1)]), "setting", protocol),
        (settings(&[(4, 1 << 31)]), "setting", flow),
        (settings(&[(5, 16_383)]), "setting", protocol),
        (settings(&[(5, 1 << 24)]), "setting", protocol),
        (window_update(0, 0), "zero-increment", protocol),
        (window_update(0, i32::MAX as u32), "window-overflow", flow),
        (frame(1, END_HEADERS, 1, b"\xbe"), "compression", ErrorCode::COMPRESSION_ERROR),
    ] {
        let shown = format!("{:?}", &wrong[..wrong.len().min(20)]);
        assert_eq!(cut_off(&[wrong]), (code.to_owned(), told), "{shown}");
    }
}

#[test]
fn frames_in_a_wrong_order_end_the_connection() {
    let protocol = ErrorCode::PROTOCOL_ERROR;
    let begun = frame(1, 0, 1, b"\x88");
    let answered = headers(1, END_STREAM, OK);
    let acked = frame(4, ACK, 0, b"");
    let away = |last| goaway(last, ErrorCode::NO_ERROR, b"");
    for (wrong, code, told) in [
        ([begun.clone(), data(1, 0, b"x")], "header-block-cut", protocol),
        ([begun.clone(), frame(9, END_HEADERS, 3, b"")], "header-block-cut", protocol),
        ([begun, frame(0x99, 0, 1, b"")], "header-block-cut", protocol),
        ([answered.clone(), data(1, 0, b"x")], "stream-closed", ErrorCode::STREAM_CLOSED),
        ([answered.clone(), answered], "stream-closed", ErrorCode::STREAM_CLOSED),
        ([acked.clone(), acked], "ack-without-settings", protocol),
        ([away(1), away(3)], "go-away-raised", protocol),
    ] {
        assert_eq!(cut_off(&wrong), (code.to_owned(), told), "{wrong:?}");
    }
}

#[test]
fn a_peer_that_does_not_speak_http2_is_recognized() {
    let told = |bytes: &[u8]| {
        let limits = Limits::default();
        let mut client = asked(&[RequestKind::Normal], &limits);
        let (mut rest, mut room, mut out) = (bytes, Vec::new(), Vec::new());
        client.next(Time::ZERO, &mut rest, &limits, &mut room, &mut out).unwrap_err()
    };
    assert_eq!(
        told(b"HTTP/1.1 400 Bad Request\r\n\r\n").to_string(),
        "the target responds with HTTP/1, not HTTP/2: `HTTP/1.1 400 Bad\u{2026}` (RFC 9113, 3.4)"
    );
    assert_eq!(
        told(b"SSH-2.0-OpenSSH_9\r\n").to_string(),
        "response is not HTTP/2, it starts with `SSH-2.0-OpenSSH_\u{2026}` (RFC 9113, 3.4)"
    );
    assert_eq!(name_of(&told(&frame(6, 0, 0, &[0; 8]))), "not-http2");
    assert_eq!(name_of(&told(&frame(4, ACK, 0, b""))), "not-http2");
    for bytes in [&b"HTTP/1.1 505 \r\n\r\n"[..], &frame(6, 0, 0, &[0; 8])] {
        let shown = shown(bytes);
        assert_eq!((shown.end.as_str(), shown.out.len()), ("not-http2", 0));
    }
}

/// A response that is wrong in itself fails; the other streams go on.
#[test]
fn malformed_responses_fail_alone() {
    let after = |head: &[(&str, &str)], flags, then: Vec<u8>| {
        let other = headers(5, END_STREAM, &[(":status", "204")]);
        let shown = after_settings(&[headers(1, flags, head), then, other]);
        assert_eq!((shown.end.as_str(), shown.events.last().unwrap().as_str()), ("", "5 end"));
        let failed: Vec<_> =
            shown.events.iter().filter_map(|line| line.strip_prefix("1 failed ")).collect();
        assert_eq!(failed.len(), 1, "{shown:?}");
        assert!(!shown.events.iter().any(|line| line.starts_with("1 end")));
        failed[0].to_owned()
    };
    let head = |fields: &[(&str, &str)]| after(fields, 0, Vec::new());
    let ok = (":status", "200");
    assert_eq!(head(&[]), "no-status");
    assert_eq!(head(&[("server", "x")]), "no-status");
    for status in ["20", "2000", "abc", "099", "20x", ""] {
        assert_eq!(head(&[(":status", status)]), "bad-status", "{status}");
    }
    assert_eq!(head(&[ok, ok]), "two-statuses");
    assert_eq!(head(&[ok, (":path", "/")]), "unknown-pseudo");
    assert_eq!(head(&[("server", "x"), ok]), "pseudo-behind-field");
    assert_eq!(head(&[ok, ("a b", "c")]), "bad-name");
    assert_eq!(head(&[ok, ("", "c")]), "bad-name");
    for value in ["a\r\nb: c", "a\0", "\n", " a", "a\t"] {
        assert_eq!(head(&[ok, ("x", value)]), "bad-value", "{value:?}");
    }
    for name in ["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"] {
        assert_eq!(head(&[ok, (name, "close")]), "connection-header");
    }
    assert_eq!(head(&[(":status", "101")]), "switching-protocols");
    assert_eq!(after(&[(":status", "100")], END_STREAM, Vec::new()), "informational-end");
    assert_eq!(head(&[ok, ("content-length", "x")]), "bad-content-length");
    let lengths = [ok, ("content-length", "3"), ("content-length", "4")];
    assert_eq!(head(&lengths), "conflicting-length");
    let three = [ok, ("content-length", "3")];
    assert_eq!(after(&three, END_STREAM, Vec::new()), "length-mismatch");
    assert_eq!(after(&three, 0, data(1, END_STREAM, b"ab")), "length-mismatch");
    assert_eq!(after(&three, 0, data(1, 0, b"abcd")), "length-mismatch");
    assert_eq!(after(&three, 0, headers(1, END_STREAM, &[("x", "y")])), "length-mismatch");
    assert_eq!(after(&[(":status", "204")], 0, data(1, 0, b"x")), "data-without-body");
    assert_eq!(after(&[ok], 0, headers(1, 0, &[("x", "y")])), "trailers-without-end");
    assert_eq!(after(&[ok], 0, headers(1, END_STREAM, &[ok])), "pseudo-in-trailers");
    assert_eq!(after(&[ok], 0, window_update(1, 0)), "zero-increment");
    let overflow = window_update(1, i32::MAX as u32);
    assert_eq!(after(&[ok], 0, overflow), "window-overflow");
    assert_eq!(after(&[(":status", "100")], 0, data(1, 0, b"x")), "data-before-head");
}

#[test]
fn upper_case_names_fail() {
    let shown = after_settings(&[frame(1, END_HEADERS, 1, b"\x88\x00\x03X-y\x01z")]);
    assert_eq!(shown.events[1..], ["1 failed upper-case-name"]);
    assert!(shown.out.ends_with(&reset(1, ErrorCode::PROTOCOL_ERROR)));
    let violation = Violation::from(Malformed::UpperCaseName(Excerpt::of(b"X-y")));
    assert_eq!(violation.to_string(), "header name `X-y` has upper-case letters (RFC 9113, 8.2.1)");
}

#[test]
fn heads_and_bodies_have_limits() {
    let limits = Limits { head_bytes_max: 500, informational_max: 2, ..Limits::default() };
    let end = |frames: &[Vec<u8>]| {
        let shown = shown_within(&[settings(&[]), frames.concat()].concat(), &limits);
        (shown.end, shown.events.last().cloned().unwrap_or_default())
    };
    let long = "z".repeat(500);
    let (code, _) = end(&[headers(1, 0, &[(":status", "200"), ("x", &long)])]);
    assert_eq!(code, "head-too-large");
    let (code, _) = end(&[headers(1, 0, OK), headers(1, END_STREAM, &[("x", &long)])]);
    assert_eq!(code, "trailers-too-large");
    let early = headers(1, 0, &[(":status", "103")]);
    let (code, last) = end(&[early.clone(), early.clone(), early]);
    assert_eq!((code.as_str(), last.as_str()), ("", "1 failed too-many-informational"));

    let body = |length: &str| {
        let limits = Limits::default();
        let mut client = asked(&[], &limits);
        let small = Ask { body_bytes_max: 4, ..get(SLASH) };
        client.ask(&small, &mut Vec::new()).unwrap();
        let mut shown = Shown::default();
        let head = match length {
            "" => headers(1, 0, OK),
            length => headers(1, 0, &[(":status", "200"), ("content-length", length)]),
        };
        let bytes = [settings(&[]), head, data(1, 0, b"abc"), data(1, END_STREAM, b"de")].concat();
        receive(&mut client, &limits, &bytes, &mut shown);
        assert!(shown.out.ends_with(&reset(1, ErrorCode::CANCEL)));
        shown.events[2..].join(", ")
    };
    assert_eq!(body(""), "1 data abc, 1 failed body-too-large");
    assert_eq!(body("5"), "1 failed body-too-large");
}

/// CVE-2024-27316: a head that never ends.
#[test]
fn endless_heads_are_cut_off() {
    let begin = [settings(&[]), frame(1, 0, 1, b"\x88")].concat();
    let count = |payload: &[u8]| {
        let limits = Limits::default();
        let mut client = asked(&[RequestKind::Normal], &limits);
        let mut shown = Shown::default();
        receive(&mut client, &limits, &begin, &mut shown);
        for count in 0..100_000 {
            if !shown.end.is_empty() {
                return (shown.end, count);
            }
            receive(&mut client, &limits, &frame(9, 0, 1, payload), &mut shown);
            assert!(client.heap_bytes() <= 140_000, "{}", client.heap_bytes());
        }
        panic!("never cut off")
    };
    assert_eq!(count(b""), ("many-continuations".to_owned(), 17));
    assert_eq!(count(&[0; 16_384]), ("head-too-large".to_owned(), 4));
}

/// Frames that bring nothing: how many are taken between two that do.
#[test]
fn floods_are_cut_off() {
    let limits = Limits { unread_bytes_max: u32::MAX, ..Limits::default() };
    let end = frame(0, 0, 1, b"");
    for (flood, least) in [
        (settings(&[]), 900),
        (frame(6, 0, 0, b"12345678"), 900),
        (frame(6, ACK, 0, b"12345678"), 900),
        (reset(1, ErrorCode::CANCEL), 900),
        (window_update(0, 1), 900),
        (window_update(1, 1), 900),
        (frame(2, 0, 1, &[0; 5]), 900),
        (frame(0x99, 0, 0, b""), 900),
        (goaway(0, ErrorCode::NO_ERROR, b""), 900),
        (data(1, PADDED, b"\x00"), 900),
        (end, 900),
    ] {
        let mut client = asked(&[RequestKind::Normal; 3], &limits);
        let mut shown = Shown::default();
        let begin = [settings(&[]), headers(1, 0, OK)].concat();
        receive(&mut client, &limits, &begin, &mut shown);
        let mut count = 0;
        while shown.end.is_empty() {
            receive(&mut client, &limits, &flood, &mut shown);
            count += 1;
            assert!(count < 1_100, "{flood:?}");
        }
        assert_eq!(shown.end, "flood");
        assert!(count > least, "{count} of {flood:?}");
    }
}

/// Hours of keep-alive, and a window update for each piece of a long upload, are not a flood.
#[test]
fn requested_frames_do_not_count_as_a_flood() {
    let limits = Limits::default();
    let mut client = asked(&[], &limits);
    let token = client.ask(&Ask { body: Body::Open, ..get(SLASH) }, &mut Vec::new()).unwrap();
    let take = |client: &mut Client, second, mut bytes: &[u8]| {
        let (mut room, mut out, now) = (Vec::new(), Vec::new(), Time::from_secs(second));
        while client.next(now, &mut bytes, &limits, &mut room, &mut out).unwrap().is_some() {}
        client.drained(&mut out);
    };
    take(&mut client, 0, &settings(&[]));
    for second in 0..20_000 {
        take(&mut client, second, &frame(6, 0, 0, b"12345678"));
    }
    for _ in 0..20_000 {
        client.send(token, Body::Bytes(&[0; 100]), false, &mut Vec::new()).unwrap();
        take(&mut client, 20_000, &[window_update(0, 100), window_update(1, 100)].concat());
    }
}

/// What was on its way when downloads were given up is read over, in however small frames.
#[test]
fn the_rest_of_cancelled_downloads_does_not_count_as_a_flood() {
    let limits = Limits::default();
    let mut client = asked(&[RequestKind::Normal; 2], &limits);
    let mut shown = Shown::default();
    let begin = [settings(&[]), headers(1, 0, OK), headers(3, 0, OK)].concat();
    receive(&mut client, &limits, &begin, &mut shown);
    client.cancel(Token(1), ErrorCode::CANCEL, &mut shown.out).unwrap();
    for _ in 0..20_000 {
        receive(&mut client, &limits, &data(1, 0, &[b'x'; 100]), &mut shown);
    }
    let last = [data(1, END_STREAM, b"x"), data(3, END_STREAM, b"y")].concat();
    receive(&mut client, &limits, &last, &mut shown);
    assert_eq!((shown.end.as_str(), shown.events.last().unwrap().as_str()), ("", "3 end"));
}

/// It asks, and never reads the answers: their total size is limited.
#[test]
fn unread_answers_are_limited() {
    let limits =
        Limits { control_frames_max: u16::MAX, unread_bytes_max: 1_000, ..Limits::default() };
    let mut client = asked(&[], &limits);
    let mut shown = Shown::default();
    receive(&mut client, &limits, &settings(&[]), &mut shown);
    let ping = frame(6, 0, 0, b"12345678");
    for _ in 0..200 {
        receive(&mut client, &limits, &ping, &mut shown);
        client.drained(&mut shown.out);
    }
    assert_eq!(shown.end, "");
    shown.out.clear();
    while shown.end.is_empty() {
        receive(&mut client, &limits, &ping, &mut shown);
    }
    assert_eq!(shown.end, "answers-unread");
    assert!(shown.out.len() < 1_100, "{}", shown.out.len());
}

#[test]
fn more_data_than_the_window_ends_the_connection() {
    let limits =
        Limits { stream_window_bytes: 100, connection_window_bytes: 70_000, ..Limits::default() };
    let end = |frames: &[Vec<u8>]| {
        let mut client = asked(&[RequestKind::Normal], &limits);
        let mut shown = Shown::default();
        let begin = [settings(&[]), headers(1, 0, OK)].concat();
        receive(&mut client, &limits, &[begin, frames.concat()].concat(), &mut shown);
        shown.end
    };
    assert_eq!(end(&[data(1, 0, &[0; 100]), data(1, 0, &[0; 100])]), "");
    assert_eq!(end(&[data(1, 0, &[0; 101])]), "window-ignored");
    assert_eq!(end(&[data(1, 0, &[0; 50]), data(1, 0, &[0; 51])]), "window-ignored");
}

#[test]
fn nothing_is_read_after_a_violation() {
    let limits = Limits::default();
    let mut client = asked(&[RequestKind::Normal], &limits);
    let mut shown = Shown::default();
    let bytes = [settings(&[]), data(0, 0, b"x"), headers(1, END_STREAM, OK)].concat();
    receive(&mut client, &limits, &bytes, &mut shown);
    receive(&mut client, &limits, &headers(1, END_STREAM, OK), &mut shown);
    assert_eq!((shown.events.len(), shown.end.as_str()), (1, "stream-id"));
    assert_eq!(client.ask(&get(SLASH), &mut Vec::new()), Err(Refused::Closed));
    assert_eq!(client.cancel(Token(1), ErrorCode::CANCEL, &mut Vec::new()), Err(NotOpen));
    assert_eq!(client.open_streams(), 0);
}
