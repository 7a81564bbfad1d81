//! Mutated responses: nothing panics, no cut makes a difference, and httparse agrees.

use throng_base::Random;
use throng_fuzz::mutations;

use super::tests::{NGINX, Shown, name_of, read};
use super::*;

const CORPUS: &[&[u8]] = &[
    NGINX.as_bytes(),
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\nSet-Cookie: a=b; Path=/\r\n\r\n\
      5;x=y\r\nhello\r\na\r\n0123456789\r\n0\r\nTrailer: x\r\nOther: y\r\n\r\n",
    b"HTTP/1.0 404 Not Found\nContent-Length: 5, 5\nConnection: keep-alive\n\nhelloHTTP/1.0",
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 \r\nLink: </x>\r\n\r\nHTTP/1.1 204 No\r\n\r\n",
    b"\r\nHTTP/1.1 101 Switch\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n\x81",
    b"HTTP/1.1 500\r\nContent-Length: 18446744073709551615\r\nContent-Encoding: br\r\n\r\nabc",
    b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
    b"HTTP/1.1 200 OK\r\nX-Long: a,\r\n b\r\n\tc\nContent-Length:\r\n 3\r\n\r\nabc",
];

fn some_limits(random: &mut Random) -> Limits {
    match random.below(4) {
        0 => Limits {
            head_bytes_max: random.below(300) as usize,
            body_bytes_max: random.below(20),
            chunk_line_bytes_max: random.below(8) as usize,
            informational_max: random.below(3) as u16,
        },
        _ => Limits::default(),
    }
}

fn random_cuts<'a>(mut bytes: &'a [u8], random: &mut Random) -> Vec<&'a [u8]> {
    let longest = 1 + random.below(40);
    let mut parts = Vec::new();
    while !bytes.is_empty() {
        let length = random.below(longest + 1).min(bytes.len() as u64) as usize;
        let (part, rest) = bytes.split_at(length);
        parts.push(part);
        bytes = rest;
    }
    parts
}

#[test]
fn fuzz_responses_do_not_depend_on_the_split() {
    let kinds = [RequestKind::Normal, RequestKind::Head, RequestKind::Connect];
    mutations(CORPUS, |input, random| {
        let limits = some_limits(random);
        let kind = kinds[random.below(3) as usize];
        let whole = read(&[input], kind, &limits);
        let cut = read(&random_cuts(input, random), kind, &limits);
        assert_eq!(whole, cut);
        let single: Vec<&[u8]> = input.chunks(1).collect();
        assert_eq!(whole, read(&single, kind, &limits));
        let length = whole.events.last().and_then(|event| {
            event.split_once("Length(")?.1.split_once(')')?.0.parse::<u64>().ok()
        });
        if let (Some(length), "complete") = (length, whole.end.as_str()) {
            assert_eq!(whole.body.len() as u64, length);
        }
    });
}

#[test]
fn fuzz_a_reader_survives_being_used_after_an_error() {
    mutations(CORPUS, |input, random| {
        let mut reader = ResponseReader::new();
        let limits = some_limits(random);
        for part in random_cuts(input, random) {
            let (mut rest, mut room) = (part, Vec::new());
            while matches!(reader.next(&mut rest, &limits, &mut room), Ok(Some(_))) {}
        }
        let _ = reader.close();
        assert!(reader.is_idle());
    });
}

/// What httparse takes for a response is one for us too, with the same status and headers.
#[test]
fn fuzz_httparse_agrees() {
    let mut agreed = 0;
    mutations(CORPUS, |input, _| {
        let mut storage = [httparse::EMPTY_HEADER; 64];
        let mut theirs = httparse::Response::new(&mut storage);
        let Ok(httparse::Status::Complete(bytes)) = theirs.parse(input) else { return };
        let status = theirs.code.unwrap_or_default();
        let many_blanks = input.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count() > 8;
        if status < 100 || many_blanks {
            return;
        }
        let ours = read_first_head(input);
        // The framing is nothing that httparse looks at.
        if matches!(ours.end.as_str(), "bad-content-length" | "conflicting-length") {
            return;
        }
        let mut expected = vec![status.to_string(), theirs.version.unwrap_or(9).to_string()];
        for header in theirs.headers.iter() {
            let value = header.value.trim_ascii();
            expected.push(format!("{}={}", header.name, value.escape_ascii()));
        }
        assert_eq!(ours.events, expected);
        assert_eq!(ours.consumed, bytes);
        agreed += 1;
    });
    assert!(agreed > throng_fuzz::rounds() / 20, "only {agreed} inputs were responses");
}

fn read_first_head(input: &[u8]) -> Shown {
    let mut shown = Shown::default();
    let leading = input.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
    let mut reader = ResponseReader::new();
    // To httparse a 101 is a head as any other.
    reader.expect(RequestKind::Upgrade);
    let (mut rest, mut room) = (input, Vec::new());
    let head = match reader.next(&mut rest, &Limits::default(), &mut room) {
        Ok(Some(Event::Head(head) | Event::Informational(head))) => head,
        Ok(_) => return shown,
        Err(error) => {
            shown.end = name_of(&error);
            return shown;
        }
    };
    shown.consumed = leading + head.bytes;
    shown.events = vec![head.status.to_string(), head.version_minor.to_string()];
    for (name, value) in head.headers.iter() {
        let value = value.trim_ascii().escape_ascii();
        shown.events.push(format!("{}={value}", String::from_utf8_lossy(name)));
    }
    shown
}
