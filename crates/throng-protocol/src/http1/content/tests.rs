//! Bodies in every coding, cut at every byte, cut off, damaged and too large.

use std::io::Write;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use throng_fuzz::{mutations, splits};

use super::*;

/// "throng " twelve times, by another encoder.
const BROTLI: &[u8] = &[
    27, 83, 0, 248, 141, 84, 181, 191, 68, 115, 163, 107, 144, 179, 55, 57, 1, 91, 36, 240, 236, 18,
];
const BROTLI_OF_NOTHING: &[u8] = &[59];
/// A million times `a`.
const BROTLI_BOMB: &[u8] = &[91, 63, 66, 143, 95, 34, 44, 30, 11, 4, 242, 115, 30, 0];

fn text() -> Vec<u8> {
    b"throng ".repeat(12)
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn raw_deflate(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A member whose header has all the parts a header can have.
fn gzip_with_everything(bytes: &[u8]) -> Vec<u8> {
    let plain = gzip(bytes);
    let mut full = plain[..10].to_vec();
    full[3] = 0x1f;
    full.extend_from_slice(b"\x03\x00abcname\0comment\0\x12\x34");
    full.extend_from_slice(&plain[10..]);
    full
}

fn write(
    decoder: &mut ContentDecoder,
    bytes: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), ContentError> {
    decoder.write(bytes, &mut |piece| {
        out.extend_from_slice(piece);
        Ok(())
    })
}

fn decode_with(
    decoder: &mut ContentDecoder,
    parts: &[&[u8]],
) -> (Vec<u8>, Result<(), ContentError>) {
    let mut out = Vec::new();
    for part in parts {
        if let Err(error) = write(decoder, part, &mut out) {
            return (out, Err(error));
        }
    }
    (out, decoder.finish())
}

fn decode(encoding: &str, parts: &[&[u8]], bytes_max: u64) -> (Vec<u8>, Result<(), ContentError>) {
    let mut decoder = ContentDecoder::new(encoding.as_bytes(), bytes_max).unwrap().unwrap();
    decode_with(&mut decoder, parts)
}

/// However the body is split, the output is the same.
fn check(encoding: &str, body: &[u8], expected: &[u8]) {
    let mut decoder = ContentDecoder::new(encoding.as_bytes(), u64::MAX).unwrap().unwrap();
    splits(body, |parts| {
        decoder.reset();
        let (out, end) = decode_with(&mut decoder, parts);
        assert_eq!((out.as_slice(), end), (expected, Ok(())), "{encoding}");
    });
}

#[test]
fn every_coding_is_decoded_however_it_is_split() {
    let text = text();
    check("gzip", &gzip(&text), &text);
    check("X-GZIP", &gzip(b""), b"");
    check("gzip", &gzip_with_everything(&text), &text);
    check("gzip", &[gzip(b"one "), gzip_with_everything(b"two"), vec![0; 9]].concat(), b"one two");
    check("deflate", &zlib(&text), &text);
    check("deflate", &raw_deflate(&text), &text);
    check("Deflate", &[raw_deflate(b""), vec![0; 3]].concat(), b"");
    check("br", BROTLI, &text);
    check("br", BROTLI_OF_NOTHING, b"");
    check("gzip, deflate", &zlib(&gzip(&text)), &text);
    check("deflate,gzip", &gzip(&raw_deflate(&text)), &text);
    check("br, identity, gzip", &gzip(BROTLI), &text);
    for encoding in ["gzip", "deflate", "br", "gzip, br"] {
        check(encoding, b"", b"");
    }
}

#[test]
fn large_bodies_are_decoded_completely() {
    let mut random = throng_base::Random::new(1);
    let large: Vec<u8> = (0..300_000).map(|_| random.below(7) as u8).collect();
    for (encoding, body) in [
        ("gzip", gzip(&large)),
        ("deflate", zlib(&large)),
        ("deflate", raw_deflate(&large)),
        ("deflate, gzip", gzip(&zlib(&large))),
    ] {
        for length in [1, 1000, 16 * 1024, 1 << 20] {
            let parts: Vec<&[u8]> = body.chunks(length).collect();
            let (out, end) = decode(encoding, &parts, u64::MAX);
            assert!(out == large && end == Ok(()), "{encoding} in parts of {length}: {end:?}");
        }
    }
}

#[test]
fn unencoded_bodies_and_unknown_codings_have_no_decoder() {
    let new = |encoding: &str| ContentDecoder::new(encoding.as_bytes(), 1).map(|d| d.is_some());
    assert_eq!(new(""), Ok(false));
    assert_eq!(new("identity"), Ok(false));
    assert_eq!(new("None, identity"), Ok(false));
    assert_eq!(new(", Identity ,"), Ok(false));
    assert_eq!(new("zstd"), Err(ContentError::UnknownCoding(Excerpt::of(b"zstd"))));
    assert_eq!(new("gzip, zstd").unwrap_err().to_string(), "unknown Content-Encoding `zstd`");
    assert_eq!(new("gzip, br, gzip"), Err(ContentError::TooManyCodings { count_max: 2 }));
}

#[test]
fn a_body_cut_off_anywhere_is_incomplete() {
    let text = text();
    for (encoding, coding, body) in [
        ("gzip", "gzip", gzip_with_everything(&text)),
        ("deflate", "deflate", zlib(&text)),
        ("deflate", "deflate", raw_deflate(&text)),
        ("br", "br", BROTLI.to_vec()),
    ] {
        for length in 1..body.len() {
            let (out, end) = decode(encoding, &[&body[..length]], u64::MAX);
            assert_eq!(end, Err(ContentError::CutOff { coding }), "{encoding} at {length}");
            assert!(text.starts_with(&out));
        }
    }
}

#[test]
fn corruption_is_reported() {
    let corrupt = |encoding: &str, coding: &'static str, body: &[u8]| {
        let (_, end) = decode(encoding, &[body], u64::MAX);
        assert_eq!(end, Err(ContentError::Corrupt { coding }), "{}", body.escape_ascii());
    };
    let good = gzip(&text());
    for at in [0, 1, 2, 3, good.len() - 1, good.len() - 5] {
        let mut bad = good.clone();
        bad[at] ^= 0xf0;
        corrupt("gzip", "gzip", &bad);
    }
    corrupt("gzip", "gzip", b"<html>");
    corrupt("gzip", "gzip", &[&good[..], b"more"].concat());
    corrupt("deflate", "deflate", b"\xff\xff");
    corrupt("deflate", "deflate", &[&zlib(b"x")[..], b"more"].concat());
    corrupt("br", "br", &[BROTLI, b"more"].concat());
    corrupt("br", "br", &[0xff; 8]);
    corrupt("br, gzip", "br", &gzip(&[0xff; 8]));
}

#[test]
fn the_limit_is_exact_to_the_byte_and_stops_bombs() {
    let text = text();
    let too_large = |bytes_max| Err(ContentError::TooLarge { bytes_max });
    for (encoding, body) in [
        ("gzip", gzip(&text)),
        ("deflate", raw_deflate(&text)),
        ("br", BROTLI.to_vec()),
        ("gzip, br", gzip(&text)),
    ] {
        if encoding != "gzip, br" {
            assert_eq!(decode(encoding, &[&body], 84), (text.clone(), Ok(())));
            assert_eq!(decode(encoding, &[&body], 83), (text[..83].to_vec(), too_large(83)));
        }
    }
    let (out, end) = decode("br", &[BROTLI_BOMB], 1_000_000);
    assert_eq!((out.len(), end), (1_000_000, Ok(())));
    let (out, end) = decode("br", &[BROTLI_BOMB], 999_999);
    assert_eq!((out.len(), end), (999_999, too_large(999_999)));
    let bomb = gzip(&gzip(&vec![0; 10_000_000]));
    let (out, end) = decode("gzip, gzip", &[&bomb], 100_000);
    assert_eq!((out.len(), end), (100_000, too_large(100_000)));
}

#[test]
fn a_decoder_covers_all_lines_of_a_head() {
    use crate::http1::{Event, Limits, ResponseReader};
    let body = gzip(&zlib(b"twice"));
    let mut message = b"HTTP/1.1 200 OK\r\nContent-Encoding: deflate\r\n".to_vec();
    message.extend_from_slice(b"Content-Encoding: gzip\r\nContent-Length: ");
    message.extend_from_slice(format!("{}\r\n\r\n", body.len()).as_bytes());
    message.extend_from_slice(&body);
    let (mut decoder, mut out) = (None, Vec::new());
    let mut reader = ResponseReader::new();
    let (mut rest, limits, mut room) = (&message[..], Limits::default(), Vec::new());
    loop {
        match reader.next(&mut rest, &limits, &mut room).unwrap() {
            Some(Event::Head(head)) => decoder = ContentDecoder::for_head(&head, 100).unwrap(),
            Some(Event::Body(bytes)) => {
                write(decoder.as_mut().unwrap(), bytes, &mut out).unwrap();
            }
            Some(Event::End) => break,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(out, b"twice");
}

#[test]
fn fuzz_decoders_never_panic_and_never_pass_their_limit() {
    let text = text();
    let bodies = [gzip_with_everything(&text), zlib(&text), raw_deflate(&text), BROTLI.to_vec()];
    let mut corpus: Vec<&[u8]> = bodies.iter().map(Vec::as_slice).collect();
    corpus.push(BROTLI_BOMB);
    let encodings = ["gzip", "deflate", "br", "br, gzip", "gzip, deflate"];
    mutations(&corpus, |input, random| {
        let encoding = encodings[random.below(5) as usize];
        let whole = decode(encoding, &[input], 1000);
        assert!(whole.0.len() <= 1000);
        let single: Vec<&[u8]> = input.chunks(1).collect();
        let cut = decode(encoding, &single, 1000);
        assert_eq!(whole.1.is_ok(), cut.1.is_ok());
        if whole.1.is_ok() {
            assert_eq!(whole.0, cut.0);
        }
    });
}
