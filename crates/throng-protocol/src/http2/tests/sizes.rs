//! What a connection keeps when nothing happens on it.

use super::*;

/// Headers as a server sends them that indexes all it can.
fn indexed(stream: u32, number: u32) -> Vec<u8> {
    let mut block = b"\x88".to_vec();
    let fields = [
        ("server", "envoy"),
        ("content-type", "application/json; charset=utf-8"),
        ("x-request-id", "8f14e45f-ceea-467f-a8d1-0f4c9b7a5e21"),
        ("strict-transport-security", "max-age=31536000; includeSubDomains"),
        ("date", "Sun, 22 Nov 2026 18:00:00 GMT"),
    ];
    for (name, value) in fields {
        let value = format!("{value}{number}");
        block.extend([0x40, name.len() as u8]);
        block.extend_from_slice(name.as_bytes());
        block.push(value.len() as u8);
        block.extend_from_slice(value.as_bytes());
    }
    frame(1, END_HEADERS | END_STREAM, stream, &block)
}

#[test]
fn an_idle_connection_is_small() {
    let limits = Limits::default();
    let mut client = asked(&[], &limits);
    assert_eq!(client.heap_bytes(), 0);
    let mut shown = Shown::default();
    // The size of our table is announced, as by servers that know it.
    receive(&mut client, &limits, &settings(&[(3, 128)]), &mut shown);
    let mut first = indexed(1, 0);
    first.splice(9..9, *b"\x3f\xe1\x0f");
    first[2] += 3;
    let mut out = Vec::new();
    client.ask(&get(SLASH), &mut out).unwrap();
    receive(&mut client, &limits, &first, &mut shown);
    assert!(client.heap_bytes() <= 1_000, "{}", client.heap_bytes());

    // Many concurrent streams, and full tables.
    for round in 0..20 {
        let tokens: Vec<Token> =
            (0..100).map(|_| client.ask(&get(SLASH), &mut out).unwrap()).collect();
        for token in tokens {
            receive(&mut client, &limits, &indexed(token.0, round), &mut shown);
        }
        assert_eq!(client.open_streams(), 0);
        assert!(client.heap_bytes() <= 2_300, "{}", client.heap_bytes());
    }
    assert_eq!(shown.end, "");
}

/// Once it is warm, a connection with the same request again and again allocates nothing: what it
/// keeps stays the same, and the same place of a stream is used.
#[test]
fn a_request_leaves_nothing_behind() {
    let limits = Limits::default();
    let mut client = asked(&[], &limits);
    let mut shown = Shown::default();
    receive(&mut client, &limits, &settings(&[]), &mut shown);
    let mut kept = None;
    for _ in 0..100 {
        let token = client.ask(&get(SLASH), &mut Vec::new()).unwrap();
        let answer = [
            headers(token.0, 0, &[(":status", "200"), ("content-length", "2")]),
            data(token.0, END_STREAM, b"ok"),
        ];
        receive(&mut client, &limits, &answer.concat(), &mut shown);
        assert_eq!(*kept.get_or_insert(client.heap_bytes()), client.heap_bytes());
        assert!(client.heap_bytes() <= 256, "{}", client.heap_bytes());
    }
}
