//! Calls from their headers to their status, in every cut.

mod reflecting;

use std::convert::Infallible;
use std::time::Duration;

use super::metadata::{check_name, write_value};
use super::*;
use crate::http1::ContentError;

fn message(encoding: Encoding, content: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let written = write_message(encoding, &mut out, |out| {
        out.extend_from_slice(content);
        Ok::<(), Infallible>(())
    });
    let Ok(()) = written;
    out
}

/// Received headers.
fn fields<'f>(pairs: &'f [(&'f str, &'f str)]) -> impl Iterator<Item = (&'f [u8], &'f [u8])> {
    pairs.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()))
}

const HEAD: &[(&str, &str)] = &[("Content-Type", "application/grpc+proto")];

/// The messages of a response, and how it ended.
fn responded(
    head: &[(&str, &str)],
    parts: &[&[u8]],
    trailers: &[(&str, &str)],
) -> (Vec<Vec<u8>>, Result<Status, Violation>) {
    let mut response = Response::new();
    let mut messages = Vec::new();
    let ended = (|| {
        response.head(200, fields(head))?;
        for part in parts {
            let mut rest = *part;
            while let Some(message) = response.next(&mut rest, 1024)? {
                messages.push(message.unpack(1024, &mut Vec::new())?.to_vec());
            }
        }
        response.trailers(fields(trailers))?;
        response.end(false)
    })();
    assert_eq!(response.replies() as usize, messages.len() + usize::from(is_broken(&ended)));
    (messages, ended)
}

/// Whether a message was counted that could not be given out.
fn is_broken(ended: &Result<Status, Violation>) -> bool {
    matches!(ended, Err(Violation::Compressed | Violation::Content(_)))
}

#[test]
fn messages_are_read_however_they_are_split() {
    let large = vec![7; 1000];
    let bytes = [
        message(Encoding::Identity, b"one"),
        message(Encoding::Gzip, &large),
        message(Encoding::Identity, b""),
        message(Encoding::Gzip, b""),
        message(Encoding::Identity, b"five"),
    ]
    .concat();
    assert_eq!(bytes[..8], *b"\0\0\0\0\x03one");
    let head = [HEAD[0], ("grpc-encoding", "GZIP")];
    let trailers = [("grpc-status", "0")];
    throng_fuzz::splits(&bytes, |parts| {
        let (messages, ended) = responded(&head, parts, &trailers);
        assert_eq!(messages, [&b"one"[..], &large, b"", b"", b"five"]);
        assert!(ended.unwrap().is_ok());
    });
}

#[test]
fn a_failed_message_appends_nothing() {
    let mut out = b"before".to_vec();
    let failed = write_message(Encoding::Gzip, &mut out, |out| {
        out.push(1);
        Err("no")
    });
    assert_eq!((failed, &out[..]), (Err("no"), &b"before"[..]));
}

#[test]
fn a_reader_owns_memory_only_while_a_message_is_open() {
    let bytes = message(Encoding::Identity, &[1; 100]);
    let mut reader = MessageReader::new();
    let mut count = 0;
    let mut read = |reader: &mut MessageReader, mut bytes: &[u8]| {
        while let Some(message) = reader.next(&mut bytes, 100).unwrap() {
            assert_eq!(message.unpack(100, &mut Vec::new()), Ok(&[1; 100][..]));
            count += 1;
        }
    };
    read(&mut reader, &bytes);
    assert_eq!(reader.heap_bytes(), 0);
    read(&mut reader, &bytes[..50]);
    assert!(reader.heap_bytes() >= 50 && !reader.is_empty());
    read(&mut reader, &bytes[50..]);
    assert_eq!((reader.heap_bytes(), reader.is_empty()), (0, true));
    assert_eq!(count, 2);
    // Refused before any of it is kept.
    let refused = reader.next(&mut &b"\0\0\0\0\x65"[..], 100);
    assert_eq!(refused, Err(Violation::TooLarge { bytes: 101, bytes_max: 100 }));
}

#[test]
fn malformed_messages_are_reported() {
    let zipped = message(Encoding::Gzip, &[7; 5000]);
    let mut corrupt = message(Encoding::Gzip, b"some text");
    corrupt[20] ^= 0xff;
    let gzip = [HEAD[0], ("grpc-encoding", "gzip")];
    let short = message(Encoding::Identity, b"cut")[..7].to_vec();
    let cut_gzip = [&[1, 0, 0, 0, 10][..], &message(Encoding::Gzip, b"text")[5..15]].concat();
    let too_large = ContentError::TooLarge { bytes_max: 1024 };
    for (head, bytes, violation, code) in [
        (HEAD, b"\x02\0\0\0\0".to_vec(), Violation::Flag(2), Code::Internal),
        (
            HEAD,
            b"\0\xff\xff\xff\xff".to_vec(),
            Violation::TooLarge { bytes: 0xffff_ffff, bytes_max: 1024 },
            Code::ResourceExhausted,
        ),
        (HEAD, zipped.clone(), Violation::Compressed, Code::Internal),
        (&gzip, zipped, Violation::Content(too_large), Code::ResourceExhausted),
        (
            &gzip,
            corrupt,
            Violation::Content(ContentError::Corrupt { coding: "gzip" }),
            Code::Internal,
        ),
        (
            &gzip,
            cut_gzip,
            Violation::Content(ContentError::CutOff { coding: "gzip" }),
            Code::Internal,
        ),
        (HEAD, short, Violation::CutOff, Code::Internal),
    ] {
        throng_fuzz::splits(&bytes, |parts| {
            let (_, ended) = responded(head, parts, &[("grpc-status", "0")]);
            assert_eq!(ended, Err(violation));
        });
        assert_eq!(violation.code(), code, "{violation:?}");
    }
}

#[test]
fn a_call_with_one_reply_gets_one() {
    let reply = message(Encoding::Identity, b"x");
    for (count, ended) in
        [(0, Err(Violation::NoReply)), (1, Ok(Code::Ok)), (2, Err(Violation::SecondReply))]
    {
        let mut response = Response::new();
        response.head(200, fields(HEAD)).unwrap();
        for _ in 0..count {
            assert!(response.next(&mut &reply[..], 10).unwrap().is_some());
        }
        response.trailers(fields(&[("grpc-status", "0")])).unwrap();
        assert_eq!(response.end(true).map(|status| status.code), ended);
    }
}

#[test]
fn the_status_is_in_the_trailers_or_in_the_head() {
    let (_, ended) =
        responded(HEAD, &[], &[("grpc-status", "5"), ("grpc-message", "no%20%E4%BD%A0")]);
    let status = ended.unwrap();
    assert_eq!((status.code, status.number, status.origin), (Code::NotFound, 5, Origin::Server));
    assert_eq!(
        (status.message.english().as_str(), status.said().english()),
        ("no 你", "NOT_FOUND: no 你".to_owned())
    );
    // A head that is all there is.
    let head = [HEAD[0], ("Grpc-Status", "12"), ("grpc-message", "50%, 100%2")];
    let mut response = Response::new();
    response.head(200, fields(&head)).unwrap();
    let status = response.end(true).unwrap();
    assert_eq!(
        (status.code, status.message.english().as_str()),
        (Code::Unimplemented, "50%, 100%2")
    );
    // An unknown number is an unknown code.
    let (_, ended) = responded(HEAD, &[], &[("grpc-status", "99")]);
    assert_eq!(ended.map(|status| (status.code, status.number)), Ok((Code::Unknown, 99)));
    for wrong in ["", "x", "-1", "99999999999"] {
        let (_, ended) = responded(HEAD, &[], &[("grpc-status", wrong)]);
        assert!(matches!(ended, Err(Violation::Status(_))), "{wrong}: {ended:?}");
    }
    // Messages are limited, and invalid escapes are harmless.
    let long = "%ff".repeat(5000);
    let (_, ended) = responded(HEAD, &[], &[("grpc-status", "2"), ("grpc-message", &long)]);
    assert_eq!(ended.unwrap().message.english().chars().count(), 1024);
}

#[test]
fn a_response_that_is_not_grpc_gets_its_status_from_http() {
    for (http, content_type, code) in [
        (400, "text/html", Code::Internal),
        (401, "text/html", Code::Unauthenticated),
        (403, "application/grpc", Code::PermissionDenied),
        (404, "text/html", Code::Unimplemented),
        (429, "text/html", Code::Unavailable),
        (502, "text/html", Code::Unavailable),
        (503, "text/html", Code::Unavailable),
        (504, "text/html", Code::Unavailable),
        (500, "text/html", Code::Unknown),
        (200, "application/json", Code::Unknown),
        (200, "application/grpc-web", Code::Unknown),
        (200, "application/grpc", Code::Unknown),
    ] {
        let mut response = Response::new();
        response.head(http, fields(&[("content-type", content_type)])).unwrap();
        if content_type != "application/grpc" {
            assert_eq!(response.next(&mut &b"<html>"[..], 10), Ok(None));
        }
        let status = response.end(true).unwrap();
        assert_eq!((status.code, status.origin), (code, Origin::Http(http)), "{content_type}");
        assert!(status.message.english().contains("gRPC status"), "{status:?}");
    }
    // A response with a status is believed nevertheless.
    let mut response = Response::new();
    response.head(503, fields(&[("grpc-status", "8")])).unwrap();
    assert_eq!(response.end(true).map(|status| status.code), Ok(Code::ResourceExhausted));
    let head = [HEAD[0], ("grpc-encoding", "snappy")];
    let (_, ended) = responded(&head, &[], &[]);
    assert!(matches!(ended, Err(Violation::Encoding(_))), "{ended:?}");
    assert_eq!(ended.unwrap_err().code(), Code::Unimplemented);
}

#[test]
fn codes_have_names_and_numbers() {
    for (number, code) in Code::ALL.into_iter().enumerate() {
        assert_eq!(usize::from(code.number()), number);
        assert_eq!(Code::of_number(code.number()), Some(code));
        assert_eq!(Code::named(code.name()), Some(code));
        assert_eq!(Code::named(&code.name().to_lowercase()), Some(code));
        assert_eq!(Code::named(&number.to_string()), Some(code));
    }
    assert_eq!((Code::named("17"), Code::named("FINE")), (None, None));
}

#[test]
fn deadlines_have_at_most_eight_digits() {
    for (time, text) in [
        (Duration::ZERO, "0n"),
        (Duration::from_nanos(99_999_999), "99999999n"),
        (Duration::from_millis(100), "100000u"),
        (Duration::from_nanos(100_000_001), "100001u"),
        (Duration::from_secs(100), "100000m"),
        (Duration::from_secs(3600), "3600000m"),
        (Duration::from_secs(100_000), "100000S"),
        (Duration::from_secs(100_000_000), "1666667M"),
        (Duration::MAX, "99999999H"),
    ] {
        assert_eq!(Timeout::new(time).to_string(), text);
    }
}

#[test]
fn a_call_has_the_headers_of_the_specification() {
    let told = |encoding, timeout| {
        let mut lines = String::new();
        request_fields(encoding, timeout, &mut |name, value| {
            lines.push_str(&format!("{name}: {}\n", String::from_utf8_lossy(value)));
        });
        lines
    };
    assert_eq!(
        told(Encoding::Identity, None),
        "te: trailers\ncontent-type: application/grpc\ngrpc-accept-encoding: identity,gzip\n"
    );
    assert_eq!(
        told(Encoding::Gzip, Some(Duration::from_secs(1))),
        "grpc-timeout: 1000000u\nte: trailers\ncontent-type: application/grpc\n\
         grpc-encoding: gzip\ngrpc-accept-encoding: identity,gzip\n"
    );
}

#[test]
fn metadata_is_ascii_or_bytes() {
    for good in ["x-request-id", "trace_1.a", "Token", "key-bin"] {
        assert_eq!(check_name(good), Ok(()), "{good}");
    }
    for wrong in ["", "a b", "größe", ":path", "grpc-status", "TE", "Content-Type"] {
        assert!(check_name(wrong).is_err(), "{wrong}");
    }
    let written = |name: &str, value: &[u8]| {
        let mut out = Vec::new();
        let result = write_value(name, value, &mut out);
        result.map(|()| String::from_utf8(out).unwrap())
    };
    assert_eq!(written("a", b"some text"), Ok("some text".to_owned()));
    assert_eq!(written("a-bin", &[0, 255, 1, 2]), Ok("AP8BAg".to_owned()));
    let wrong = written("a", b"new\nline").unwrap_err();
    assert_eq!(wrong.message, "the value of the metadata `a` contains the byte 0x0a");
    assert!(wrong.help.english().contains("`a-bin`"));
}

#[test]
fn fuzz_responses() {
    let bytes = [
        message(Encoding::Identity, b"one"),
        message(Encoding::Gzip, b"two two two two"),
        message(Encoding::Identity, b""),
    ]
    .concat();
    let head = [HEAD[0], ("grpc-encoding", "gzip")];
    throng_fuzz::mutations(&[&bytes], |input, random| {
        let whole = responded(&head, &[input], &[("grpc-status", "0")]);
        let cut = random.below(input.len() as u64 + 1) as usize;
        let (one, two) = input.split_at(cut);
        let halves = responded(&head, &[one, two], &[("grpc-status", "0")]);
        // However it is cut, it is the same.
        assert_eq!(whole, halves);
        let text = String::from_utf8_lossy(input);
        let (_, ended) = responded(HEAD, &[], &[("grpc-status", "3"), ("grpc-message", &text)]);
        assert_eq!(ended.unwrap().code, Code::InvalidArgument);
    });
}
