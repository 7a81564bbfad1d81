//! The examples of RFC 7541, appendix C; what is refused; both halves against each other.

use throng_base::Random;
use throng_fuzz::mutations;

use super::*;
use crate::http2::section::Section;

const LIST_BYTES_MAX: usize = 64 * 1024;

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let digit = |byte: u8| (byte as char).to_digit(16).unwrap() as u8;
    digits.chunks(2).map(|two| digit(two[0]) * 16 + digit(two[1])).collect()
}

/// The regular fields as lines, or why the block was given up.
fn decoded(decoder: &mut Decoder, block: &[u8]) -> Result<(Option<u16>, String), Refusal> {
    let mut lines = b"left behind".to_vec();
    let mut section = Section::new(&mut lines, false, LIST_BYTES_MAX);
    decoder.decode(block, &mut section)?;
    let status = section.noted.status;
    Ok((status, lines.escape_ascii().to_string().replace("\\r\\n", "|")))
}

fn table(decoder: &Decoder) -> Vec<String> {
    let show = |(name, value): (&[u8], &[u8])| {
        format!("{}: {}", name.escape_ascii(), value.escape_ascii())
    };
    (0..).map_while(|index| decoder.table().get(index).map(show)).collect()
}

/// C.5 and C.6: the same three responses without and with Huffman codes, in a table of 256 bytes.
#[test]
fn responses_of_the_rfc() {
    let plain = [
        "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133
         2032 303a 3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70
         6c65 2e63 6f6d",
        "4803 3330 37c1 c0bf",
        "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d
         54c0 5a04 677a 6970 7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049
         5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33 3630 303b 2076 6572 7369 6f6e
         3d31",
    ];
    let coded = [
        "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6
         2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
        "4883 640e ffc1 c0bf",
        "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab
         77ad 94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f
         9587 3160 65c0 03ed 4ee5 b106 3d50 07",
    ];
    for blocks in [plain, coded] {
        let mut decoder = Decoder::new(256);
        assert_eq!(decoded(&mut decoder, &bytes("3fe1 01")), Ok((None, String::new())));
        let date = "date: Mon, 21 Oct 2013 20:13:21 GMT";
        let rest = format!("cache-control: private|{date}|location: https://www.example.com|");
        let first = decoded(&mut decoder, &bytes(blocks[0]));
        assert_eq!(first, Ok((Some(302), rest.clone())));
        assert_eq!(
            table(&decoder),
            ["location: https://www.example.com", date, "cache-control: private", ":status: 302"]
        );
        assert_eq!(decoded(&mut decoder, &bytes(blocks[1])), Ok((Some(307), rest)));
        assert_eq!(table(&decoder)[0], ":status: 307");
        let cookie = "set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1";
        let date = "date: Mon, 21 Oct 2013 20:13:22 GMT";
        assert_eq!(
            decoded(&mut decoder, &bytes(blocks[2])),
            Ok((
                Some(200),
                format!(
                    "cache-control: private|{date}|location: https://www.example.com|\
                     content-encoding: gzip|{cookie}|"
                )
            ))
        );
        assert_eq!(table(&decoder), [cookie, "content-encoding: gzip", date]);
    }
}

/// C.4: what our encoder writes is what the RFC does, on one connection one after the other.
#[test]
fn requests_of_the_rfc() {
    let requests: [&[(&str, &str)]; 3] = [
        &[(":authority", "www.example.com")],
        &[(":authority", "www.example.com"), ("cache-control", "no-cache")],
        &[(":authority", "www.example.com"), ("custom-key", "custom-value")],
    ];
    let wanted = [
        "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
        "8286 84be 5886 a8eb 1064 9cbf",
        "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
    ];
    let mut encoder = Encoder::new();
    for (index, (fields, wanted)) in requests.iter().zip(wanted).enumerate() {
        let mut out = Vec::new();
        // The size of our table is the peer's initial one, so there is nothing to announce.
        encoder.begin(false, &mut out);
        write_field(&mut out, ":method", b"GET");
        write_field(&mut out, ":scheme", if index < 2 { b"http" } else { b"https" });
        write_field(&mut out, ":path", if index < 2 { b"/" } else { b"/index.html" });
        for (name, value) in *fields {
            encoder.write(&mut out, name.as_bytes(), value.as_bytes());
        }
        assert_eq!(out, bytes(wanted), "request {index}");
    }
}

/// C.2: the four forms of a field.
#[test]
fn single_fields_of_the_rfc() {
    for (block, line, indexed) in [
        (
            "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572",
            "custom-key: custom-header|",
            true,
        ),
        ("1008 7061 7373 776f 7264 0673 6563 7265 74", "password: secret|", false),
        ("040c 2f73 616d 706c 652f 7061 7468", "", false),
        ("90", "accept-encoding: gzip, deflate|", false),
    ] {
        let mut decoder = Decoder::new(4096);
        assert_eq!(decoded(&mut decoder, &bytes(block)), Ok((None, line.to_owned())));
        assert_eq!(table(&decoder).len(), usize::from(indexed));
    }
    let mut out = Vec::new();
    write_secret(&mut out, "Password", b"secret");
    assert_eq!(out[0], 0x10);
    assert_eq!(decoded(&mut Decoder::new(0), &out).unwrap().1, "password: secret|");
}

#[test]
fn invalid_blocks_are_rejected() {
    let broken = |block: &str| match decoded(&mut Decoder::new(256), &bytes(block)) {
        Err(Refusal::Broken(error)) => error,
        other => panic!("{other:?}"),
    };
    assert_eq!(broken("80"), HpackError::NoSuchIndex(0));
    assert_eq!(broken("be"), HpackError::NoSuchIndex(62));
    assert_eq!(broken("7e 01 61"), HpackError::NoSuchIndex(62));
    assert_eq!(broken("40"), HpackError::Cut);
    assert_eq!(broken("40 05 61"), HpackError::Cut);
    assert_eq!(broken("ff ff ff ff ff ff 0f"), HpackError::NumberTooLarge);
    assert_eq!(broken("00 81 00 00"), HpackError::NotHuffman);
    assert_eq!(broken("00 84 ff ff ff ff 00"), HpackError::NotHuffman);
    assert_eq!(broken("88 20"), HpackError::SizeBehindField);
    let too_large = HpackError::TableTooLarge { size: 257, size_max: 256 };
    assert_eq!(broken("3f e2 01"), too_large);
}

/// One byte for each 4 KiB: the sum is what counts (a header bomb).
#[test]
fn a_header_bomb_is_rejected_early() {
    let mut decoder = Decoder::new(4096);
    let mut block = bytes("40 01 61 7f 81 1e");
    block.extend([b'x'; 4000]);
    block.extend([0xbe; 20_000]);
    assert_eq!(decoded(&mut decoder, &block), Err(Refusal::TooLarge));
}

#[test]
fn every_size_change_is_announced_to_the_peer() {
    let sizes = |encoder: &mut Encoder, indexes| {
        let mut out = Vec::new();
        encoder.begin(indexes, &mut out);
        out
    };
    let mut encoder = Encoder::new();
    assert_eq!(sizes(&mut encoder, false), b"");
    encoder.limit(65_536);
    assert_eq!(sizes(&mut encoder, false), b"");
    // Ours is 2,048.
    assert_eq!(sizes(&mut encoder, true), bytes("3f e1 0f"));
    encoder.write(&mut Vec::new(), b"x-token", b"abc");
    encoder.limit(0);
    encoder.limit(100);
    assert_eq!(sizes(&mut encoder, true), bytes("20 3f 45"));
    assert_eq!(sizes(&mut encoder, true), b"");
}

/// Whatever is written by way of the table is read as it was, also when the table changes.
#[test]
fn both_halves_agree() {
    let (mut encoder, mut decoder) = (Encoder::new(), Decoder::new(4096));
    let mut random = Random::for_owner(3, 3);
    let names = ["x-token", "accept", "x-trace-id", "content-type", "cookie"];
    for _ in 0..5_000 {
        if random.below(40) == 0 {
            encoder.limit(random.below(5_000) as u32);
        }
        let mut block = Vec::new();
        encoder.begin(true, &mut block);
        let mut want = String::new();
        for _ in 0..random.below(5) {
            let name = names[random.below(5) as usize];
            let length = 1 + random.below(60) as usize;
            let value = (b'a' + random.below(3) as u8) as char;
            let value = value.to_string().repeat(length);
            encoder.write(&mut block, name.as_bytes(), value.as_bytes());
            want += &format!("{name}: {value}|");
        }
        assert_eq!(decoded(&mut decoder, &block), Ok((None, want)));
        assert!(encoder.heap_bytes() <= 2048 + 64 * 8, "{}", encoder.heap_bytes());
    }
}

#[test]
fn fuzz_blocks() {
    let mut corpus = vec![bytes("4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005")];
    corpus.push(bytes("3fe1 01 88c1 c0bf 5a83 9bd9 ab"));
    let mut plain = Vec::new();
    write_field(&mut plain, ":status", b"200");
    write_field(&mut plain, "server", b"nginx/1.29");
    write_field(&mut plain, "X-Long", &[b'~'; 300]);
    corpus.push(plain);
    let corpus: Vec<&[u8]> = corpus.iter().map(|block| &block[..]).collect();
    mutations(&corpus, |input, random| {
        let mut decoder = Decoder::new(random.below(400) as u16);
        let (first, second) = input.split_at(random.below(input.len() as u64 + 1) as usize);
        for block in [first, second, input] {
            let mut lines = Vec::new();
            let mut section = Section::new(&mut lines, random.below(2) == 0, 2_000);
            let _ = decoder.decode(block, &mut section);
            assert!(lines.len() <= 2_000 + input.len() * 2, "{} lines", lines.len());
            assert!(decoder.heap_bytes() <= 4096 + 256 * 8);
        }
    });
}
