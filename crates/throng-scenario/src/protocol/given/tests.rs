//! Messages of the chat example, written by a user.

use super::*;
use crate::protocol::tests::chat;

fn hex_text(bytes: &[u8]) -> String {
    let pairs: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    pairs.join(" ")
}

#[test]
fn messages_are_encoded_like_those_of_scenarios() {
    let protocol = chat();
    let hex = |text: &str, seq| encode(&protocol, text, seq).map(|it| hex_text(&it.bytes));
    let join = "c4 a7 00 00 00 15 01 00 00 00 09 00 00 00 00 00 00 00 2a 00 00 00 00 00 00 00 07 \
                00 03 74 2d 37";
    assert_eq!(hex("join: {room: 42, user: 7, token: t-7}", 9).as_deref(), Ok(join));
    assert_eq!(hex(r#"{"join": {"token": "t-7", "user": 7, "room": 42}}"#, 9).as_deref(), Ok(join));
    assert_eq!(hex("ping", 0).as_deref(), Ok("c4 a7 00 00 00 00 09 00 00 00 00"));
    assert_eq!(hex("ping:", 0).as_deref(), Ok("c4 a7 00 00 00 00 09 00 00 00 00"));
}

#[test]
fn mistakes_have_a_place_and_a_fix() {
    let protocol = chat();
    for (text, code, place) in [
        ("jion: {room: 1}", "unknown-message", "jion"),
        ("join: {room: 42, usr: 7, token: t}", "bad-field", "usr"),
        ("join: {room: 42, user: many, token: t}", "bad-field", "many"),
        ("join: {room: 42, user: -1, token: t}", "bad-field", "-1"),
        ("join: {room: 42, user: '${user.id}', token: t}", "bad-field", "'${user.id}'"),
        ("join: 5", "bad-field", "5"),
        ("{ping: , pong: }", "bad-field", "{ping: , pong: }"),
        ("", "bad-field", ""),
        ("join: {room", "yaml-syntax", ""),
        ("join: &a {room: 1}", "yaml-feature", ""),
    ] {
        let error = encode(&protocol, text, 0).expect_err(text);
        assert_eq!(error.code, code, "{text}: {error:?}");
        assert!(error.help.is_some(), "{text}: {error:?}");
        let found =
            error.span.as_ref().map_or("", |span| &text[span.start..span.end.min(text.len())]);
        assert!(place.is_empty() || found == place, "{text}: {found}");
    }
    let deep = "join: ".to_string() + &"[".repeat(100);
    assert!(encode(&protocol, &deep, 0).is_err());
    assert!(encode(&protocol, "ping", 1 << 40).is_err());
}

#[test]
fn fuzz_any_text_is_encoded_or_refused() {
    let protocol = chat();
    let corpus: [&[u8]; 3] = [
        b"join: {room: 42, user: 7, token: \"t-7\"}",
        b"said: {from: 1, text: [1, {a: b}]}",
        b"ping",
    ];
    throng_fuzz::mutations(&corpus, |input, _| {
        let text = String::from_utf8_lossy(input);
        if let Err(error) = encode(&protocol, &text, 1) {
            assert!(!error.render(false).is_empty());
        }
    });
}
