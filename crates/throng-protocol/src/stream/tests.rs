//! A reply ends where `Until` says, however its bytes are split.

use regex::bytes::Regex;

use super::*;

fn delimiter(bytes: &[u8]) -> Until {
    Until::delimiter(bytes).expect("a delimiter has bytes")
}

fn pattern(text: &str) -> Until {
    Until::Pattern(Regex::new(text).expect("the pattern is valid"))
}

/// Reads as many replies as the parts contain: the replies, and why reading ended.
fn read_all(
    parts: &[&[u8]],
    until: &Until,
    limit: usize,
    keep: bool,
) -> (Vec<Vec<u8>>, Result<u64, StreamError>) {
    let mut reader = StreamReader::new();
    let mut answers = Vec::new();
    for part in parts {
        let mut rest = *part;
        while !rest.is_empty() {
            let answer = AwaitedReply { until, bytes_max: limit, is_kept: keep };
            match reader.next(&mut rest, answer, &mut Vec::new()) {
                Err(error) => return (answers, Err(error)),
                Ok(Some(answer)) => {
                    assert_eq!(reader.seen, 0);
                    answers.push(answer.to_vec());
                }
                Ok(None) => assert!(rest.is_empty() && reader.seen > 0),
            }
        }
    }
    (answers, Ok(reader.seen))
}

fn check(stream: &[u8], until: &Until, limit: usize, answers: &[&[u8]], end: Result<u64, u64>) {
    let end = end.map_err(|limit| StreamError::TooLarge { limit });
    throng_fuzz::splits(stream, |parts| {
        let (found, found_end) = read_all(parts, until, limit, true);
        assert_eq!(found, answers, "{until:?} {parts:?}");
        assert_eq!(found_end, end, "{until:?} {parts:?}");
    });
}

#[test]
fn replies_end_as_declared() {
    let lines = b"one\r\ntwo\r\r\n\r\nrest";
    check(lines, &delimiter(b"\r\n"), 100, &[b"one\r\n", b"two\r\r\n", b"\r\n"], Ok(4));
    check(lines, &delimiter(b"\n"), 100, &[b"one\r\n", b"two\r\r\n", b"\r\n"], Ok(4));
    check(b"aabaaabaab", &delimiter(b"aab"), 9, &[b"aab", b"aaab", b"aab"], Ok(0));
    check(b"abcdefgh", &Until::Length(3), 3, &[b"abc", b"def"], Ok(2));
    check(
        b"+OK\r\n-ERR no\r\n+",
        &pattern(r"OK|ERR[^\n]*\n"),
        20,
        &[b"+OK", b"\r\n-ERR no\r\n"],
        Ok(1),
    );
    check(b"id=7;id=42;", &pattern(r"id=\d+;"), 6, &[b"id=7;", b"id=42;"], Ok(0));
    check(b"\xff\x00END\xfe", &pattern(r"(?s-u).*?END"), 5, &[b"\xff\0END"], Ok(1));
}

#[test]
fn limits_are_exact_to_the_byte() {
    check(b"1234\n", &delimiter(b"\n"), 5, &[b"1234\n"], Ok(0));
    check(b"1234\n", &delimiter(b"\n"), 4, &[], Err(4));
    check(b"1234\r\n", &delimiter(b"\r\n"), 5, &[], Err(5));
    check(b"12345", &delimiter(b"\n"), 5, &[], Ok(5));
    check(b"123456", &delimiter(b"\n"), 5, &[], Err(5));
    check(b"1\n234567", &delimiter(b"\n"), 5, &[b"1\n"], Err(5));
    check(b"abc;", &pattern("c;"), 4, &[b"abc;"], Ok(0));
    check(b"abc;", &pattern("c;"), 3, &[], Err(3));
    check(b"abcd", &Until::Length(4), 4, &[b"abcd"], Ok(0));
    check(b"a", &Until::Length(5), 4, &[], Err(4));
    assert!(StreamError::TooLarge { limit: u64::MAX }.to_string().len() <= 120);
}

/// The next reply, and the rest after it.
fn next<'a>(
    reader: &mut StreamReader,
    bytes: &'a [u8],
    until: &Until,
    bytes_max: usize,
) -> (Option<Vec<u8>>, &'a [u8]) {
    let (mut rest, mut room) = (bytes, Vec::new());
    let answer = AwaitedReply { until, bytes_max, is_kept: true };
    let read = reader.next(&mut rest, answer, &mut room).expect("within the limit");
    (read.map(<[u8]>::to_vec), rest)
}

#[test]
fn any_takes_whatever_arrives() {
    let mut reader = StreamReader::new();
    assert_eq!(next(&mut reader, b"", &Until::Any, 1), (None, &b""[..]));
    assert_eq!(next(&mut reader, b"abc", &Until::Any, 1), (Some(b"abc".to_vec()), &b""[..]));
}

#[test]
fn a_length_of_zero_is_complete_immediately() {
    let mut reader = StreamReader::new();
    for bytes in [&b""[..], b"abc"] {
        assert_eq!(next(&mut reader, bytes, &Until::Length(0), 10), (Some(Vec::new()), bytes));
    }
}

#[test]
fn a_pattern_that_may_match_nothing_still_takes_a_byte() {
    check(b"baa", &pattern("(?-u)a*?"), 10, &[b"b", b"a", b"a"], Ok(0));
    // The end of the word shows only when the next byte is there, and that byte is not taken.
    let mut reader = StreamReader::new();
    let until = pattern(r"(?-u)foo\B");
    assert_eq!(next(&mut reader, b"a foo", &until, 10), (None, &b""[..]));
    assert_eq!(next(&mut reader, b"d", &until, 10), (Some(b"a foo".to_vec()), &b"d"[..]));
}

#[test]
fn unneeded_replies_are_counted_and_not_kept() {
    let mut reader = StreamReader::new();
    let huge = Until::Length(1 << 40);
    let next = |reader: &mut StreamReader, mut bytes: &[u8], until| {
        let answer = AwaitedReply { until, bytes_max: 700, is_kept: false };
        let complete = reader.next(&mut bytes, answer, &mut Vec::new()).unwrap().is_some();
        (complete, bytes.len())
    };
    for round in 1..=100 {
        assert_eq!(next(&mut reader, &[b'x'; 10_000], &huge), (false, 0));
        assert_eq!((reader.seen, reader.buffer.len()), (round * 10_000, 0));
    }
    reader = StreamReader::new();
    let until = delimiter(b"\r\n.\r\n");
    for _ in 0..100 {
        assert_eq!(next(&mut reader, b"line\r\n", &until), (false, 0));
        assert_eq!(reader.buffer, b"ne\r\n");
    }
    assert_eq!(next(&mut reader, b".\r\nnext", &until), (true, 4));
    assert_eq!(reader.heap_bytes(), 0);
}

#[test]
fn a_complete_reply_is_not_copied() {
    let bytes = b"PONG\r\nmore";
    for until in [delimiter(b"\r\n"), Until::Length(6), pattern("\r\n")] {
        let (mut rest, mut room) = (&bytes[..], Vec::new());
        let answer = AwaitedReply { until: &until, bytes_max: 100, is_kept: true };
        let read = StreamReader::new().next(&mut rest, answer, &mut room).unwrap().unwrap();
        assert_eq!((read.as_ptr(), read.len(), rest.len()), (bytes.as_ptr(), 6, 4));
    }
}

#[test]
fn memory_is_held_only_for_an_incomplete_reply() {
    let mut reader = StreamReader::new();
    let until = delimiter(b"\n");
    assert_eq!(next(&mut reader, b"abc", &until, 100).0, None);
    assert_eq!(reader.buffer, b"abc");
    assert!(reader.heap_bytes() > 0);
    assert!(next(&mut reader, b"d\n", &until, 100).0.is_some());
    assert_eq!((&reader.buffer[..], reader.heap_bytes()), (&b""[..], 0));
}

#[test]
fn an_empty_delimiter_is_rejected() {
    assert!(Until::delimiter(b"").is_none());
    assert_eq!(Delimiter::new(b"\r\n").expect("has bytes").as_bytes(), b"\r\n");
}

#[test]
fn fuzz_replies_do_not_depend_on_the_split() {
    let untils = [
        delimiter(b"\n"),
        delimiter(b"\r\n"),
        delimiter(b"\r\n\r\n"),
        delimiter(b"aabaa"),
        Until::Length(7),
        pattern("(?-u)[a-f]{3}|\r\n"),
        pattern(r"(?s-u)<[^>]*>"),
    ];
    let corpus: &[&[u8]] =
        &[b"one\r\ntwo\r\n\r\nthree", b"aabaabaaaabaabaa", b"<a>text</a><b x=1>", b"\r\r\n\n\r\n"];
    throng_fuzz::mutations(corpus, |input, random| {
        let until = &untils[random.below(untils.len() as u64) as usize];
        let limit = 4 + random.below(60) as usize;
        let whole = read_all(&[input], until, limit, true);
        let mut parts = Vec::new();
        let mut rest = input;
        while !rest.is_empty() {
            let (part, later) = rest.split_at(1 + random.below(rest.len() as u64) as usize);
            parts.push(part);
            rest = later;
        }
        assert_eq!(read_all(&parts, until, limit, true), whole, "{until:?} {parts:?}");
        let unkept = read_all(&parts, until, limit, false);
        if !matches!(until, Until::Length(_)) {
            assert_eq!(unkept.1, whole.1);
        }
        let joined: Vec<u8> = whole.0.concat();
        assert!(input.starts_with(&joined));
        assert!(whole.0.iter().all(|answer| answer.len() <= limit));
    });
}
