//! Compressed fields, and packets within packets.

use std::io::Read as _;

use flate2::read::{DeflateDecoder, GzDecoder, ZlibDecoder};
use throng_fuzz::mutations;

use super::*;

/// u8 kind, u16 length, body: one message with a compressed field, one that holds packets.
fn packed(layer: Layer, ty: Type) -> Protocol {
    let field = Field { layer: Some(layer), ..field("data", ty) };
    let held = Field { layer: Some(layer), ..super::field("packets", Type::Bytes(Extent::Rest)) };
    compiled(Declaration {
        packet: vec![
            role("kind", Type::Unsigned(8), Role::Selects),
            length(32, Counts::Body, 1 << 20),
            body(),
        ],
        messages: vec![
            message("one", 1, vec![uint("id", 8), field]),
            Message { holds_packets: true, ..push("all", 2, vec![held]) },
        ],
        ..Declaration::default()
    })
}

fn head(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind][..], &(body.len() as u32).to_be_bytes(), body].concat()
}

#[test]
fn fields_are_packed_and_unpacked() {
    let text = "a text that says the same again and again, ".repeat(40);
    for layer in [Layer::Zlib, Layer::Gzip, Layer::Deflate] {
        let extent = Extent::Prefixed { prefix: Prefix::Unsigned(16), bytes_max: None };
        for ty in [Type::Text(Extent::Rest), Type::Bytes(Extent::Rest), Type::Text(extent)] {
            let has_prefix = !matches!(ty, Type::Text(Extent::Rest) | Type::Bytes(_));
            let protocol = packed(layer, ty);
            let given = [("id", Value::Int(7)), ("data", Value::from(text.as_str()))];
            let packet = write(&protocol, "one", &given, 0);
            assert!(packet.len() < 150, "{layer:?} {}", packet.len());
            // Another implementation reads it.
            let content = &packet[if has_prefix { 8 } else { 6 }..];
            let mut out = String::new();
            match layer {
                Layer::Zlib => ZlibDecoder::new(content).read_to_string(&mut out),
                Layer::Gzip => GzDecoder::new(content).read_to_string(&mut out),
                _ => DeflateDecoder::new(content).read_to_string(&mut out),
            }
            .unwrap();
            assert_eq!(out, text);
            let data = get(&protocol, &packet, "data").unwrap();
            assert_eq!(&*data.to_text(), text, "{layer:?}");
            assert_eq!(get(&protocol, &packet, "id"), Some(Value::Int(7)));
            let mut decoded = Decoded::default();
            protocol.decode(&packet, &mut decoded).unwrap();
            let parts = protocol.describe(&packet, &decoded);
            let last = parts.last().unwrap();
            assert_eq!((last.path.as_str(), last.end), ("data", packet.len()));
            // The whole stream is needed, and nothing else.
            for end in 6..packet.len() {
                let cut = head(1, &packet[5..end]);
                assert!(
                    protocol.decode(&cut, &mut decoded).is_err() || end == 6,
                    "{layer:?} {end}"
                );
            }
            let more = head(1, &[&packet[5..], b"x"].concat());
            assert!(protocol.decode(&more, &mut decoded).is_err(), "{layer:?}");
        }
    }
}

#[test]
fn json_in_a_layer_is_checked() {
    let protocol = packed(Layer::Zlib, Type::Json(Extent::Rest));
    let given = [("id", Value::Int(1)), ("data", Value::parse_json(b"{\"a\":[1,2]}").unwrap())];
    let packet = write(&protocol, "one", &given, 0);
    assert_eq!(get(&protocol, &packet, "data.a[1]"), Some(Value::Int(2)));
    let text = packed(Layer::Zlib, Type::Text(Extent::Rest));
    let broken = write(&text, "one", &[("id", Value::Int(1)), ("data", Value::from("{]"))], 0);
    assert_eq!(
        wrong(&protocol, &broken),
        "byte 6, `data`: byte 1 of the unpacked data: the text is not valid JSON from here: ]"
    );
    assert_eq!(
        wrong(&protocol, &head(1, b"\x01no zlib")),
        "byte 6, `data`: this is not valid zlib data"
    );
}

/// A kilobyte per received byte: no more is unpacked than a packet may have.
#[test]
fn layers_that_unpack_to_too_much_are_rejected() {
    let zeros = vec![0; 17 << 20];
    for layer in [Layer::Zlib, Layer::Gzip, Layer::Deflate] {
        let protocol = packed(layer, Type::Bytes(Extent::Rest));
        let given = [("id", Value::Int(1)), ("data", Value::from(zeros.as_slice()))];
        let packet = write(&protocol, "one", &given, 0);
        assert!(packet.len() < 20_000);
        assert_eq!(
            wrong(&protocol, &packet),
            "byte 6, `data`: it unpacks to more than 16777216 bytes"
        );
    }
    // What was unpacked before is not kept for long.
    let protocol = packed(Layer::Zlib, Type::Bytes(Extent::Rest));
    let given = |bytes: &[u8]| [("id", Value::Int(1)), ("data", Value::from(bytes))];
    let mut decoded = Decoded::default();
    let large = write(&protocol, "one", &given(&zeros[..16 << 20]), 0);
    protocol.decode(&large, &mut decoded).unwrap();
    let small = write(&protocol, "one", &given(b"small"), 0);
    protocol.decode(&small, &mut decoded).unwrap();
    assert!(decoded.unpacked.capacity() <= 1 << 20, "{}", decoded.unpacked.capacity());
}

#[test]
fn brotli_is_only_read() {
    let protocol = packed(Layer::Brotli, Type::Text(Extent::Rest));
    // An uncompressed block, as RFC 7932 has them: `hello` and the end.
    let brotli = [0x0b, 0x02, 0x80, b'h', b'e', b'l', b'l', b'o', 0x03];
    let packet = head(1, &[&[9][..], &brotli].concat());
    assert_eq!(get(&protocol, &packet, "data"), Some(Value::from("hello")));
    let given = [("id", Value::Int(1)), ("data", Value::from("hello"))];
    let refused = try_write(&protocol, "one", &given, 0).unwrap_err();
    assert!(refused.contains("throng does not compress with brotli"), "{refused}");
}

#[test]
fn a_packet_may_contain_packets() {
    let protocol = packed(Layer::Zlib, Type::Bytes(Extent::Rest));
    let inner = [head(2, b"ab"), head(2, b"c"), head(2, b"")].concat();
    let given = [("packets", Value::from(inner.as_slice()))];
    let packet = write(&protocol, "all", &given, 0);
    let mut decoded = Decoded::default();
    protocol.decode(&packet, &mut decoded).unwrap();
    let packets = protocol.packets(&packet, &decoded).unwrap();
    assert_eq!(packets, inner);
    let mut lengths = Vec::new();
    Records::Declared(&protocol).split(packets, &mut |packet| {
        lengths.push(packet.len());
        true
    });
    assert_eq!(lengths, [7, 6, 5]);
    let one =
        write(&protocol, "one", &[("id", Value::Int(1)), ("data", Value::from(&b"x"[..]))], 0);
    protocol.decode_sent(&one, &mut decoded).unwrap();
    assert_eq!(protocol.packets(&one, &decoded), None);
}

/// Whatever is inside, unpacking ends and does not panic.
#[test]
fn fuzz_corrupt_layers_are_reported() {
    let mut decoded = Decoded::default();
    for layer in [Layer::Zlib, Layer::Gzip, Layer::Deflate] {
        let protocol = packed(layer, Type::Json(Extent::Rest));
        let json = Value::parse_json(b"{\"a\":[1,2,3],\"b\":\"text text text\"}").unwrap();
        let packet = write(&protocol, "one", &[("id", Value::Int(1)), ("data", json)], 0);
        let body = &packet[5..];
        mutations(&[body], |body, _| {
            let _ = protocol.decode(&head(1, body), &mut decoded);
        });
    }
}
