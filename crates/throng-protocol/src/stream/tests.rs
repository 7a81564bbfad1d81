//! An answer ends where `Until` says, however its bytes were cut.

use std::cell::Cell;

use regex::bytes::Regex;

use super::*;

fn delimiter(bytes: &[u8]) -> Until {
    Until::delimiter(bytes).expect("a delimiter has bytes")
}

fn pattern(text: &str) -> Until {
    Until::Pattern(Regex::new(text).expect("the pattern is valid"))
}

/// Reads as many answers as the parts hold: the answers, and what ended the reading.
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
            let sink = &mut |answer: &[u8]| answers.push(answer.to_vec());
            match reader.receive(rest, until, limit, keep, sink) {
                Err(error) => return (answers, Err(error)),
                Ok(progress) => {
                    assert!(progress.complete || progress.consumed == rest.len());
                    assert_eq!(progress.complete, reader.seen_bytes() == 0);
                    rest = &rest[progress.consumed..];
                }
            }
        }
    }
    (answers, Ok(reader.seen_bytes()))
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
fn answers_end_where_until_says() {
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
fn limits_hold_to_the_byte() {
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

#[test]
fn any_takes_whatever_comes() {
    let mut reader = StreamReader::new();
    let mut answers = Vec::new();
    let mut sink = |answer: &[u8]| answers.push(answer.to_vec());
    let none = reader.receive(b"", &Until::Any, 1, true, &mut sink);
    assert_eq!(none, Ok(Progress { consumed: 0, complete: false }));
    let some = reader.receive(b"abc", &Until::Any, 1, true, &mut sink);
    assert_eq!(some, Ok(Progress { consumed: 3, complete: true }));
    assert_eq!(answers, [b"abc"]);
}

#[test]
fn a_length_of_zero_is_complete_at_once() {
    let called = Cell::new(0);
    let mut sink = |answer: &[u8]| called.set(called.get() + 1 + answer.len());
    let mut reader = StreamReader::new();
    for bytes in [&b""[..], b"abc"] {
        let progress = reader.receive(bytes, &Until::Length(0), 10, true, &mut sink);
        assert_eq!(progress, Ok(Progress { consumed: 0, complete: true }));
    }
    assert_eq!(called.get(), 2);
}

#[test]
fn a_pattern_that_may_match_nothing_still_takes_a_byte() {
    check(b"baa", &pattern("(?-u)a*?"), 10, &[b"b", b"a", b"a"], Ok(0));
    // The end of the word shows only when the next byte is there, and that byte is not taken.
    let mut reader = StreamReader::new();
    let until = pattern(r"(?-u)foo\B");
    let mut answers = Vec::new();
    let mut sink = |answer: &[u8]| answers.push(answer.to_vec());
    let first = reader.receive(b"a foo", &until, 10, true, &mut sink);
    assert_eq!(first, Ok(Progress { consumed: 5, complete: false }));
    let second = reader.receive(b"d", &until, 10, true, &mut sink);
    assert_eq!(second, Ok(Progress { consumed: 0, complete: true }));
    assert_eq!(answers, [b"a foo"]);
}

#[test]
fn what_nobody_looks_at_is_counted_and_not_kept() {
    let mut reader = StreamReader::new();
    let mut sink = |_: &[u8]| panic!("nobody looks");
    let huge = Until::Length(1 << 40);
    for round in 1..=100 {
        let progress = reader.receive(&[b'x'; 10_000], &huge, 10, false, &mut sink);
        assert_eq!(progress, Ok(Progress { consumed: 10_000, complete: false }));
        assert_eq!((reader.seen_bytes(), reader.buffered().len()), (round * 10_000, 0));
    }
    reader.discard();
    let until = delimiter(b"\r\n.\r\n");
    for _ in 0..100 {
        let read = reader.receive(b"line\r\n", &until, 700, false, &mut sink);
        assert_eq!(read, Ok(Progress { consumed: 6, complete: false }));
        assert_eq!(reader.buffered(), b"ne\r\n");
    }
    let read = reader.receive(b".\r\nnext", &until, 700, false, &mut sink);
    assert_eq!(read, Ok(Progress { consumed: 3, complete: true }));
    assert_eq!(reader.heap_bytes(), 0);
}

#[test]
fn a_whole_answer_is_handed_out_where_it_lies() {
    let bytes = b"PONG\r\nmore";
    for until in [delimiter(b"\r\n"), Until::Length(6), pattern("\r\n")] {
        let mut reader = StreamReader::new();
        let mut seen = None;
        let mut sink = |answer: &[u8]| seen = Some((answer.as_ptr(), answer.len()));
        let progress = reader.receive(bytes, &until, 100, true, &mut sink);
        assert_eq!(progress, Ok(Progress { consumed: 6, complete: true }));
        assert_eq!(seen, Some((bytes.as_ptr(), 6)));
    }
}

#[test]
fn memory_is_held_only_while_an_answer_is_incomplete() {
    let mut reader = StreamReader::new();
    let until = delimiter(b"\n");
    let mut sink = |_: &[u8]| {};
    reader.receive(b"abc", &until, 100, true, &mut sink).expect("within the limit");
    assert_eq!(reader.buffered(), b"abc");
    assert!(reader.heap_bytes() > 0);
    reader.receive(b"d\n", &until, 100, true, &mut sink).expect("within the limit");
    assert_eq!((reader.buffered(), reader.heap_bytes()), (&b""[..], 0));
    reader.receive(b"abc", &until, 100, true, &mut sink).expect("within the limit");
    reader.discard();
    assert_eq!((reader.heap_bytes(), reader.seen_bytes()), (0, 0));
}

#[test]
fn an_empty_delimiter_is_none() {
    assert!(Until::delimiter(b"").is_none());
    assert_eq!(Delimiter::new(b"\r\n").expect("has bytes").as_bytes(), b"\r\n");
}

#[test]
fn fuzz_answers_do_not_depend_on_the_cuts() {
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
