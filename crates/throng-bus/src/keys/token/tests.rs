//! Tokens are read back, and truncated or foreign ones are detected.

use std::net::SocketAddr;

use super::*;

fn token() -> Token {
    let tls = Certificates { authority: vec![1; 500], own: vec![2; 480], key: vec![3; 138] };
    let identity = Identity {
        name: "agent7".to_string(),
        address: SocketAddr::from(([203, 0, 113, 5], 4222)),
        tls: Some(tls),
        seed: Some("SUAB".to_string()),
    };
    Token { identity, operator: "OABC".to_string(), until_s: 1_800_000_000 }
}

#[test]
fn a_token_is_read_back_and_spaces_are_ignored() {
    let text = token().to_string();
    assert!(text.starts_with(BEGIN) && !text.contains(char::is_whitespace));
    assert_eq!(Token::parse(&text), Ok(token()));
    let (left, right) = text.split_at(80);
    assert_eq!(Token::parse(&format!("  {left}\r\n  {right}\n")), Ok(token()));
    assert_eq!(Token::parse(&format!("\u{feff}{text}\n")), Ok(token()));
    let told = format!("{:?}", token());
    assert!(!told.contains("SUAB"), "{told}");
}

#[test]
fn a_truncated_token_is_detected() {
    let text = token().to_string();
    for at in 0..text.len() {
        let wanted = if at < BEGIN.len() { none_such() } else { torn() };
        assert_eq!(Token::parse(&text[..at]), Err(wanted), "{at}");
    }
    for at in 1..text.len() {
        assert!(Token::parse(&text[at..]).is_err(), "{at}");
    }
    for at in BEGIN.len()..text.len() {
        let other = if &text[at..=at] == "A" { "B" } else { "A" };
        let changed = format!("{}{other}{}", &text[..at], &text[at + 1..]);
        assert_eq!(Token::parse(&changed), Err(torn()), "{at}");
    }
}

#[test]
fn another_version_is_not_reported_as_truncated() {
    let mut bytes = vec![FORM + 1, 9, 9];
    bytes.extend(digest(&bytes));
    let text = format!("{BEGIN}{}", URL_SAFE_NO_PAD.encode(bytes));
    assert_eq!(Token::parse(&text), Err(say!("the token is from a different version of throng")));
}

#[test]
fn fuzz_any_text_is_parsed_safely() {
    let good = token().to_string();
    throng_fuzz::mutations(&[good.as_bytes(), BEGIN.as_bytes(), b"hello"], |bytes, _| {
        let text = String::from_utf8_lossy(bytes);
        if let Ok(read) = Token::parse(&text) {
            assert_eq!(read, token(), "only the same is taken");
        }
    });
    // Also with a valid digest, which only a creator of tokens can make.
    let whole = URL_SAFE_NO_PAD.decode(&good[BEGIN.len()..]).unwrap();
    let fields = &whole[1..whole.len() - DIGEST_BYTES];
    throng_fuzz::mutations(&[fields], |bytes, _| {
        if let Some(read) = Token::read(bytes) {
            let again = Token::parse(&read.to_string());
            assert!(again == Ok(read) || bytes.len() > CHARS_MAX / 2);
        }
    });
}

#[test]
fn a_token_is_valid_until_it_expires() {
    assert_eq!(token().check(Duration::from_secs(1_799_999_999)), Ok(()));
    assert!(token().check(Duration::from_secs(1_800_000_000)).is_err());
}
