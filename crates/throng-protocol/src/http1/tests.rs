//! Responses good and bad, each cut at every byte, and what must be seen of them.

use throng_fuzz::splits;

use super::*;

/// All that a response showed, in a form that does not depend on how it was cut.
#[derive(Debug, PartialEq, Eq, Default)]
pub(super) struct Shown {
    /// One line an event; body events are added up.
    pub(super) events: Vec<String>,
    pub(super) body: Vec<u8>,
    pub(super) consumed: usize,
    /// How it ended: `complete`, `more`, or the code of the error.
    pub(super) end: String,
}

impl Shown {
    fn add(&mut self, event: Event<'_>) {
        match event {
            Event::Informational(head) => self.events.push(format!("1xx {}", head_text(&head))),
            Event::Head(head) => self.events.push(head_text(&head)),
            Event::Body(bytes) => {
                assert!(!bytes.is_empty());
                self.body.extend_from_slice(bytes);
            }
            Event::Trailers(trailers) => {
                let names: Vec<String> = trailers.iter().map(pair_text).collect();
                self.events.push(format!("trailers {}", names.join("|")));
            }
            Event::End => self.end = "complete".to_owned(),
        }
    }
}

fn head_text(head: &Head<'_>) -> String {
    let headers: Vec<String> = head.headers.iter().map(pair_text).collect();
    format!(
        "{} 1.{} {:?} keep={} reason={} bytes={} cookie={} encoding={} {}",
        head.status,
        head.version_minor,
        head.framing,
        head.keep_alive,
        head.reason.escape_ascii(),
        head.bytes,
        head.has_set_cookie,
        head.content_encoding.unwrap_or(b"-").escape_ascii(),
        headers.join("|"),
    )
}

fn pair_text((name, value): (&[u8], &[u8])) -> String {
    format!("{}={}", name.escape_ascii(), value.escape_ascii())
}

/// The name of an error: `bad-header` for `Http(BadHeader(..))`.
pub(crate) fn name_of(error: &impl std::fmt::Debug) -> String {
    let text = format!("{error:?}");
    let outer = ["Http(", "Malformed("].into_iter().find_map(|outer| text.strip_prefix(outer));
    let name = outer.unwrap_or(&text).split(['(', ')', ' ']).next().unwrap_or_default();
    let dashed = name.chars().map(|c| if c.is_uppercase() { format!("-{c}") } else { c.into() });
    dashed.collect::<String>().trim_start_matches('-').to_lowercase()
}

/// Reads one response from a stream in these parts.
pub(super) fn read(parts: &[&[u8]], method: RequestKind, limits: &Limits) -> Shown {
    let mut reader = ResponseReader::new();
    reader.expect(method);
    let mut shown = Shown::default();
    for part in parts {
        let (mut rest, mut room) = (*part, Vec::new());
        loop {
            match reader.next(&mut rest, limits, &mut room) {
                Ok(Some(event)) => shown.add(event),
                Ok(None) => break,
                Err(error) => {
                    // How many bytes are consumed before an error depends on the split and does not
                    // matter.
                    shown.consumed = 0;
                    shown.end = name_of(&error);
                    return shown;
                }
            }
            if shown.end == "complete" {
                assert!(reader.is_idle());
                shown.consumed += part.len() - rest.len();
                return shown;
            }
        }
        assert!(rest.is_empty());
        shown.consumed += part.len();
    }
    shown.end = match reader.close() {
        Ok(true) => "closed".to_owned(),
        Ok(false) => "idle".to_owned(),
        Err(error) => name_of(&error),
    };
    shown
}

/// Reads `bytes` in every cut and returns what every cut showed.
fn read_split(bytes: &[u8], method: RequestKind, limits: &Limits) -> Shown {
    let whole = read(&[bytes], method, limits);
    splits(bytes, |parts| {
        let shown = read(parts, method, limits);
        assert_eq!(
            shown,
            whole,
            "cut into {:?}",
            parts.iter().map(|p| p.len()).collect::<Vec<_>>()
        );
    });
    whole
}

/// The status, framing, keep-alive, body and end that a message must show.
fn check(message: &str, expected: &str) {
    check_kind(message, RequestKind::Normal, expected);
}

fn check_kind(message: &str, method: RequestKind, expected: &str) {
    let shown = read_split(message.as_bytes(), method, &Limits::default());
    let mut text = String::new();
    for event in &shown.events {
        let short = match event.split_once(" reason=") {
            Some((start, _)) => start,
            None => event,
        };
        text += short;
        text += "; ";
    }
    let surplus = match shown.end.as_str() {
        "complete" if shown.consumed < message.len() => {
            format!(" +{}", message.len() - shown.consumed)
        }
        _ => String::new(),
    };
    text += &format!("{}; {}{surplus}", shown.body.escape_ascii(), shown.end);
    assert_eq!(text, expected, "{message:?}");
}

pub(super) const NGINX: &str = "HTTP/1.1 200 OK\r\nServer: nginx/1.26.0\r\n\
    Date: Sat, 21 Nov 2026 11:57:10 GMT\r\nContent-Type: text/html\r\nContent-Length: 13\r\n\
    Last-Modified: Sat, 21 Nov 2026 11:00:00 GMT\r\nConnection: keep-alive\r\n\
    ETag: \"6740a1b2-d\"\r\nAccept-Ranges: bytes\r\n\r\nhello, world\n";

#[test]
fn bodies_end_as_their_framing_says() {
    check(NGINX, "200 1.1 Length(13) keep=true; hello, world\\n; complete");
    check(
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabHTTP/1.1",
        "200 1.1 Length(2) keep=true; ab; complete +8",
    );
    check("HTTP/1.1 200\nContent-Length:0\n\n", "200 1.1 Length(0) keep=true; ; complete");
    check("HTTP/1.1 200 OK\r\n\r\nall", "200 1.1 UntilClose keep=false; all; closed");
    check("HTTP/1.1 204 \r\nContent-Length: x\r\n\r\na", "204 1.1 None keep=true; ; complete +1");
    check("HTTP/1.1 304 \r\nContent-Length: 9\r\n\r\n", "304 1.1 None keep=true; ; complete");
    check(
        "\r\n\nHTTP/1.1 200 OK\r\ncontent-LENGTH: \t 1 \t\r\n\r\na",
        "200 1.1 Length(1) keep=true; a; complete",
    );
    check(
        "HTTP/1.1 200 OK\r\nContent-Length: 3, 3\r\nContent-Length: 3\r\n\r\nabc",
        "200 1.1 Length(3) keep=true; abc; complete",
    );
    check(
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "200 1.1 Chunked keep=true; ; complete",
    );
    check(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: , Chunked\r\n\r\n0\n\n",
        "200 1.1 Chunked keep=true; ; complete",
    );
    check(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, gzip\r\n\r\nab",
        "200 1.1 UntilClose keep=false; ab; closed",
    );
    check(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\nContent-Length: 1\r\n\r\na",
        "200 1.1 Length(1) keep=true; a; complete",
    );
}

#[test]
fn chunks_are_joined_and_trailers_returned() {
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let good = |body: &str, expected: &str| {
        check(&format!("{head}{body}"), &format!("200 1.1 Chunked keep=true; {expected}"));
    };
    good("5\r\nhello\r\n1\r\n \r\n0\r\n\r\n", "hello ; complete");
    good("00A;x=\"y\";z \r\n0123456789\r\n000 ; last\r\n\r\nHTTP", "0123456789; complete +4");
    good("1 \t\r\na\n0\nDigest: x\nB:\n\n", "trailers Digest=x|B=; a; complete");
    good("0\r\nA: b\r\n\r\n", "trailers A=b; ; complete");
    good("0\r\nA b\r\n\r\n", "; bad-header");
    good("0\r\nA: b\r\n c\r\n\r\n", "trailers A=b   c; ; complete");
    good("0\r\n c: d\r\n\r\n", "; bad-header");
    good("\r\n", "; bad-chunk-size");
    good("g\r\n", "; bad-chunk-size");
    good(" 1\r\na", "; bad-chunk-size");
    good("-1\r\na", "; bad-chunk-size");
    good("0x1\r\na", "; bad-chunk-size");
    good("1 1\r\na", "; bad-chunk-size");
    good("1\ra\n", "; bad-chunk-size");
    good("1\r\nab", "a; bad-chunk-end");
    good("1\r\na\r\r\n", "a; bad-chunk-end");
    good("10000000000000000\r\n", "; bad-chunk-size");
    good("ffffffffffffffff\r\na", "a; cut-off-in-body");
    good("5\r\nhell", "hell; cut-off-in-body");
    good("1\r\na\r\n0\r\nA: ", "a; cut-off-in-body");
}

#[test]
fn the_kind_of_request_determines_the_end_of_its_response() {
    let ok = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    check_kind(ok, RequestKind::Head, "200 1.1 None keep=true; ; complete +5");
    check_kind(ok, RequestKind::Connect, "200 1.1 None keep=true; ; complete +5");
    let refused = "HTTP/1.1 407 No\r\nContent-Length: 2\r\n\r\nno";
    check_kind(refused, RequestKind::Connect, "407 1.1 Length(2) keep=true; no; complete");
}

#[test]
fn informational_responses_precede_the_final_one() {
    check(
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nLink: x\r\n\r\n\
         HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab",
        "1xx 100 1.1 None keep=true; 1xx 103 1.1 None keep=true; 200 1.1 Length(1) keep=true; \
         a; complete +1",
    );
    let switching =
        "HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nContent-Length: 5\r\n\r\n\x01\x02";
    check_kind(switching, RequestKind::Upgrade, "101 1.1 None keep=true; ; complete +2");
    // No other protocol was requested.
    check(switching, "; unasked-upgrade");
    check("HTTP/1.1 100 \r\n\r\n", "1xx 100 1.1 None keep=true; ; cut-off-in-head");
    // A server may say how far it is as long as it works.
    let many = "HTTP/1.1 102 \r\n\r\n".repeat(1_000);
    let done = format!("{many}HTTP/1.1 204 \r\n\r\n");
    // All cuts of so long a text would take a minute; byte by byte is one way of them.
    let each_byte = |text: &str| {
        let parts: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        let shown = read(&parts, RequestKind::Normal, &Limits::default());
        (shown.events.len(), shown.end)
    };
    assert_eq!(each_byte(&done), (1_001, "complete".to_owned()));
    assert_eq!(each_byte(&format!("{many}{done}")), (1_000, "too-many-informational".to_owned()));
}

#[test]
fn the_connection_stays_open_as_its_headers_say() {
    let keep = |version: &str, headers: &str, expected: bool| {
        let message = format!("HTTP/1.{version} 200 OK\r\nContent-Length: 0\r\n{headers}\r\n");
        check(&message, &format!("200 1.{version} Length(0) keep={expected}; ; complete"));
    };
    keep("1", "", true);
    keep("1", "Connection: Close\r\n", false);
    keep("1", "Connection: foo, close\r\nConnection: keep-alive\r\n", false);
    keep("0", "", false);
    keep("0", "Connection: x,Keep-Alive\r\n", true);
    keep("0", "Connection: keep-alive, close\r\n", false);
    check(
        "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "200 1.0 Chunked keep=false; ; complete",
    );
}

#[test]
fn errors_have_one_variant_per_cause() {
    check("", "; idle");
    check("\r\n\r\n", "; idle");
    check("\r\n\r\n\r\n\r\n\r\n", "; not-http");
    check("SSH-2.0-OpenSSH_9.9\r\n", "; not-http");
    check("\x15\x03\x01", "; not-http");
    check("HTTP", "; cut-off-in-head");
    check("HTTP/1.1 200 OK\r\nA: b\r\n", "; cut-off-in-head");
    check("HTTP/1.1 200 OK\r\nA: b\r\n\r", "; cut-off-in-head");
    for line in [
        "HTTP/2.0 200 OK",
        "HTTP/1 200 OK",
        "HTTP/1.1",
        "HTTP/1.1 20",
        "HTTP/1.1 2000",
        "HTTP/1.1 099 no",
        "HTTP/1.1  200 OK",
        "HTTP/1.x 200 OK",
        "HTTP/1.1 200OK",
    ] {
        check(&format!("{line}\r\nContent-Length: 0\r\n\r\n"), "; bad-status-line");
    }
    for line in ["no colon", ": no name", "A : b", "A\u{e5}: b", "A", "\rA: b"] {
        check(&format!("HTTP/1.1 200 OK\r\nX: y\r\n{line}\r\n\r\n"), "; bad-header");
    }
    check("HTTP/1.1 200 OK\r\n folded: y\r\n\r\n", "; bad-header");
    check("HTTP/1.1 200 OK\r\nX: y\r\n folded\r\nno colon\r\n\r\n", "; bad-header");
    check("HTTP/1.1 200 OK\r\nX: y\r\n folded\r\n", "; cut-off-in-head");
    // An error is reported even if its head never ends.
    check("HTTP/1.1 bad\r\n", "; bad-status-line");
    for length in ["", "-1", "+1", "1,", "1 1", "0x1", "18446744073709551616", "a"] {
        let message = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
        check(&message, "; bad-content-length");
    }
    check("HTTP/1.1 200 OK\r\nContent-Length: 1, 2\r\n\r\n", "; conflicting-length");
    check(
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "; conflicting-length",
    );
    check(
        "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc",
        "200 1.1 Length(9) keep=true; abc; cut-off-in-body",
    );
}

/// RFC 9112 section 5.2.
#[test]
fn headers_over_several_lines_are_read_as_one() {
    let message = "HTTP/1.1 200 OK\r\nX-Long: one,\r\n  two,\n\tthree\r\n \r\n\
                   Content-Length:\r\n 3\r\nX-Last: y\r\n z\r\n\r\nabcrest";
    for cut in 0..=message.len() {
        let (mut found, mut body, mut consumed) = (Vec::new(), Vec::new(), 0);
        let mut reader = ResponseReader::new();
        let (first, second) = message.as_bytes().split_at(cut);
        'pieces: for piece in [first, second] {
            let (mut rest, limits, mut room) = (piece, Limits::default(), Vec::new());
            while let Some(event) = reader.next(&mut rest, &limits, &mut room).expect("it is good")
            {
                match event {
                    Event::Head(head) => {
                        let words = |value: &[u8]| -> Vec<String> {
                            let text = String::from_utf8_lossy(value);
                            text.split_whitespace().map(String::from).collect()
                        };
                        found = head.headers.iter().map(|(_, value)| words(value)).collect();
                    }
                    Event::Body(piece) => body.extend_from_slice(piece),
                    Event::End => {
                        consumed += piece.len() - rest.len();
                        break 'pieces;
                    }
                    _ => panic!("{event:?}"),
                }
            }
            consumed += piece.len();
        }
        let want = [vec!["one,", "two,", "three"], vec!["3"], vec!["y", "z"]];
        assert_eq!(found, want, "cut at {cut}");
        assert_eq!((body.as_slice(), consumed), (&b"abc"[..], message.len() - 4), "cut at {cut}");
    }
}

#[test]
fn limits_are_exact_to_the_byte() {
    let body = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabcd";
    let chunks = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
        2;ext\r\nab\r\n2\r\ncd\r\n0\r\nTrailer-Of-This: is longer than its response head\r\n\r\n";
    let until_close = "HTTP/1.1 200 OK\r\n\r\nabcd";
    let end = |message: &str, limits: Limits| {
        let shown = read_split(message.as_bytes(), RequestKind::Normal, &limits);
        format!("{} {}", shown.body.escape_ascii(), shown.end)
    };
    let all = Limits::default();
    let head = |head_bytes_max| Limits { head_bytes_max, ..all };
    assert_eq!(end(body, head(38)), "abcd complete");
    assert_eq!(end(body, head(37)), " head-too-large");
    assert_eq!(end(body, head(0)), " head-too-large");
    assert_eq!(end(chunks, head(53)), "abcd complete");
    assert_eq!(end(chunks, head(52)), "abcd trailers-too-large");
    let of_body = |body_bytes_max| Limits { body_bytes_max, ..all };
    for message in [body, chunks] {
        assert_eq!(end(message, of_body(4)), "abcd complete");
    }
    assert_eq!(end(until_close, of_body(4)), "abcd closed");
    assert_eq!(end(body, of_body(3)), " body-too-large");
    assert_eq!(end(chunks, of_body(3)), "ab body-too-large");
    assert_eq!(end(until_close, of_body(3)), "abc body-too-large");
    let line = |chunk_line_bytes_max| Limits { chunk_line_bytes_max, ..all };
    assert_eq!(end(chunks, line(7)), "abcd complete");
    assert_eq!(end(chunks, line(6)), " chunk-line-too-long");
    let informational = |informational_max| Limits { informational_max, ..all };
    let early = format!("HTTP/1.1 100 \r\n\r\n{body}");
    assert_eq!(end(&early, informational(1)), "abcd complete");
    assert_eq!(end(&early, informational(0)), " too-many-informational");
}

#[test]
fn headers_are_found_in_any_case_and_in_order() {
    let message =
        b"HTTP/1.1 301 Moved Permanently\r\nSet-Cookie: a=b\r\nX:\r\nLOCATION: \t/x y \r\n\
        set-cookie:c=d\r\nContent-Encoding: gzip\r\nContent-Length: 0\r\n\r\n";
    let (mut reader, limits) = (ResponseReader::new(), Limits::default());
    let (mut rest, mut room) = (&message[..], Vec::new());
    let head = match reader.next(&mut rest, &limits, &mut room) {
        Ok(Some(Event::Head(head))) => head,
        other => panic!("{other:?}"),
    };
    assert_eq!(head.reason, b"Moved Permanently");
    assert_eq!(head.headers.get("location"), Some(&b"/x y"[..]));
    assert_eq!(head.headers.get("x"), Some(&b""[..]));
    assert_eq!(head.headers.get("locatio"), None);
    assert_eq!(head.headers.get(""), None);
    let cookies: Vec<_> = head.headers.get_all("Set-Cookie").collect();
    assert_eq!(cookies, [&b"a=b"[..], b"c=d"]);
    assert_eq!(head.headers.iter().count(), 6);
    assert_eq!(head.headers.iter().next(), Some((&b"Set-Cookie"[..], &b"a=b"[..])));
    assert!(head.has_set_cookie && !head.upgrade && head.bytes == message.len());
    assert_eq!(head.content_encoding, Some(&b"gzip"[..]));
    assert!(!head.headers.is_empty() && head.headers.as_bytes().ends_with(b"0\r\n"));
    assert!(matches!(reader.next(&mut rest, &limits, &mut room), Ok(Some(Event::End))));
    assert!(rest.is_empty() && room.is_empty(), "it lies where it was read");
}

#[test]
fn a_reader_is_small_and_reads_responses_one_after_another() {
    assert!(size_of::<ResponseReader>() <= 64);
    assert!(size_of::<HttpError>() <= 32);
    assert!(size_of::<Head<'_>>() <= 96);
    let mut reader = ResponseReader::new();
    let mut next = |kind: Option<RequestKind>| {
        if let Some(kind) = kind {
            reader.expect(kind);
        }
        let stream = NGINX.repeat(2);
        let (mut rest, limits) = (stream.as_bytes(), Limits::default());
        let mut room = Vec::new();
        while !matches!(reader.next(&mut rest, &limits, &mut room), Ok(Some(Event::End))) {}
        assert!(reader.is_idle());
        stream.len() - rest.len()
    };
    assert_eq!(next(Some(RequestKind::Head)), NGINX.len() - 13);
    // The kind of a request is forgotten with its response.
    assert_eq!(next(None), NGINX.len());
}

#[test]
fn errors_are_short_and_in_plain_words() {
    let bytes = Excerpt::of(&[0xff; 100]);
    let all = [
        HttpError::NotHttp(bytes),
        HttpError::BadStatusLine(bytes),
        HttpError::BadHeader(bytes),
        HttpError::BadContentLength(bytes),
        HttpError::ConflictingLength { first: u64::MAX, other: u64::MAX },
        HttpError::HeadTooLarge { bytes_max: usize::MAX },
        HttpError::TrailersTooLarge { bytes_max: usize::MAX },
        HttpError::BodyTooLarge { bytes_max: u64::MAX },
        HttpError::BadChunkSize { byte: 0 },
        HttpError::BadChunkEnd { byte: 0 },
        HttpError::ChunkLineTooLong { bytes_max: usize::MAX },
        HttpError::TooManyInformational { count_max: u16::MAX },
        HttpError::CutOffInHead { bytes: u64::MAX },
        HttpError::CutOffInBody { received: u64::MAX, expected: Some(u64::MAX) },
        HttpError::CutOffInBody { received: u64::MAX, expected: None },
    ];
    for error in all {
        let text = error.to_string();
        assert!(text.chars().count() <= 120, "{text}");
    }
    let tls = HttpError::NotHttp(Excerpt::of(b"\x15\x03\x01\x00\x02\x02F"));
    assert_eq!(
        tls.to_string(),
        r"response is not HTTP, it starts with `\x15\x03\x01\x00\x02\x02F`"
    );
}
