//! The request as sent, and every way in which a response can be invalid.

use super::*;

const NOTHING: DeflateOffer = DeflateOffer::Nothing;
const BROWSERS: DeflateOffer = DeflateOffer::AsBrowsers;
const SINGLE: DeflateOffer = DeflateOffer::NoContextTakeover;

/// The key and the accept value of RFC 6455, 1.3.
const ACCEPT: &[u8; 28] = b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

fn sample_key() -> Key {
    Key::new(*b"the sample nonce")
}

#[test]
fn the_key_and_the_accept_value_match_rfc_6455() {
    assert_eq!(sample_key().as_bytes(), b"dGhlIHNhbXBsZSBub25jZQ==");
    assert_eq!(&sample_key().expected_accept(), ACCEPT);
    let mut random = Random::new(1);
    let (first, second) = (Key::random(&mut random), Key::random(&mut random));
    assert_ne!(first, second);
    assert!(first.as_bytes().ends_with(b"=="));
}

fn request(
    host: &str,
    path: &str,
    headers: &[(&str, &str)],
    protocols: &[&str],
    offer: DeflateOffer,
) -> Result<String, RequestError> {
    let mut out = b"before".to_vec();
    let key = sample_key();
    let headers = headers.iter().map(|(name, value)| (*name, value.as_bytes()));
    let written = write_upgrade(&mut out, host, path, &key, headers, protocols, offer);
    let text = String::from_utf8(out).expect("requests are text here");
    let text = text.strip_prefix("before").expect("what was there stays").to_string();
    assert!(written.is_ok() || text.is_empty());
    written.map(|()| text)
}

#[test]
fn the_request_is_complete() {
    let plain = request("im.example:8080", "/im?room=1", &[], &[], NOTHING);
    let expected = "GET /im?room=1 HTTP/1.1\r\nHost: im.example:8080\r\nUpgrade: websocket\r\n\
        Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
        Sec-WebSocket-Version: 13\r\n\r\n";
    assert_eq!(plain.as_deref(), Ok(expected));
    let browser = [
        ("Origin", "https://im.example"),
        ("host", "other"),
        ("CONNECTION", "Upgrade"),
        ("Sec-WebSocket-Key", "abc"),
        ("Cookie", "a=1; b=\"ä\""),
    ];
    let full = request("[::1]", "/", &browser, &["chat.v2", "chat"], BROWSERS);
    let expected = "GET / HTTP/1.1\r\nHost: [::1]\r\nUpgrade: websocket\r\n\
        Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
        Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: chat.v2, chat\r\n\
        Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\nOrigin: https://im.example\r\nCookie: a=1; b=\"ä\"\r\n\r\n";
    assert_eq!(full.as_deref(), Ok(expected));
}

#[test]
fn parts_that_would_break_the_request_are_rejected() {
    use RequestError as E;
    let header = |name, value| request("h", "/", &[("A", "b"), (name, value)], &[], NOTHING);
    let long = "x\n".repeat(200);
    for (found, error) in [
        (request("", "/", &[], &[], NOTHING), E::Host("".into())),
        (request("a b", "/", &[], &[], NOTHING), E::Host("a b".into())),
        (request("h\r\nX: y", "/", &[], &[], NOTHING), E::Host(r"h\r\nX: y".into())),
        (request("h", "", &[], &[], NOTHING), E::Path("".into())),
        (request("h", "im", &[], &[], NOTHING), E::Path("im".into())),
        (request("h", "/a b", &[], &[], NOTHING), E::Path("/a b".into())),
        (request("h", "/é", &[], &[], NOTHING), E::Path(r"/\xc3\xa9".into())),
        (header("", "v"), E::HeaderName("".into())),
        (header("X Y", "v"), E::HeaderName("X Y".into())),
        (header("X", "v\r\nY: z"), E::HeaderValue("X".into())),
        (header("X", "v\0"), E::HeaderValue("X".into())),
        (request("h", "/", &[], &["a", "b c"], NOTHING), E::Protocol("b c".into())),
        (request("h", "/", &[], &[""], NOTHING), E::Protocol("".into())),
    ] {
        assert_eq!(found, Err(error));
    }
    let error = request(&long, "/", &[], &[], NOTHING).expect_err("line breaks are no host");
    assert!(error.to_string().len() <= 120, "{error}");
    assert!(header("X", "tab\tis fine").is_ok());
}

/// A valid response with additional headers.
fn answer(more: &[(&str, &str)]) -> Result<Accepted, UpgradeError> {
    let good = [
        ("Upgrade", "WebSocket"),
        ("connection", "keep-alive, upgrade"),
        ("Sec-WebSocket-Accept", " s3pPLMBiTxaQ9kYGzzhZRbK+xOo= "),
        ("Server", "some"),
    ];
    check_answer(101, &[&good, more].concat(), SINGLE)
}

fn check_answer(
    status: u16,
    headers: &[(&str, &str)],
    offer: DeflateOffer,
) -> Result<Accepted, UpgradeError> {
    let headers = headers.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
    check_upgrade(status, headers, ACCEPT, &["chat.v2", "chat"], offer)
}

#[test]
fn valid_responses_are_accepted() {
    let plain = Accepted { protocol: None, deflate: None };
    assert_eq!(answer(&[]), Ok(plain));
    let chosen = answer(&[("SEC-WEBSOCKET-PROTOCOL", "chat")]);
    assert_eq!(chosen, Ok(Accepted { protocol: Some(1), deflate: None }));
    for extensions in ["", " , "] {
        assert_eq!(answer(&[("Sec-WebSocket-Extensions", extensions)]), Ok(plain));
    }
    for extensions in [
        "permessage-deflate; server_no_context_takeover",
        "permessage-deflate;server_no_context_takeover;client_no_context_takeover",
        ", permessage-deflate ; server_max_window_bits = 8 ; server_no_context_takeover ,",
        "permessage-deflate; server_no_context_takeover; server_max_window_bits=\"15\"",
    ] {
        let accepted = answer(&[("Sec-WebSocket-Extensions", extensions)]);
        let deflate = Some(Deflate::NO_CONTEXT_TAKEOVER);
        assert_eq!(accepted, Ok(Accepted { protocol: None, deflate }), "{extensions}");
    }
}

#[test]
fn a_server_may_answer_a_browsers_offer_freely() {
    let agreed =
        |own_window_bits, peer_takeover_bits| Some(Deflate { own_window_bits, peer_takeover_bits });
    for (parameters, expected) in [
        ("", agreed(15, Some(15))),
        ("; server_no_context_takeover", agreed(15, None)),
        ("; client_no_context_takeover", agreed(15, Some(15))),
        ("; server_max_window_bits=10", agreed(15, Some(10))),
        ("; server_max_window_bits=10; server_no_context_takeover", agreed(15, None)),
        ("; client_max_window_bits=9", agreed(9, Some(15))),
        ("; client_max_window_bits=\"8\"; server_max_window_bits=8", agreed(8, Some(8))),
    ] {
        let headers = [
            ("Upgrade", "websocket"),
            ("Connection", "Upgrade"),
            ("Sec-WebSocket-Accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="),
            ("Sec-WebSocket-Extensions", &format!("permessage-deflate{parameters}")),
        ];
        let accepted = check_answer(101, &headers, BROWSERS).map(|accepted| accepted.deflate);
        assert_eq!(accepted, Ok(expected), "{parameters}");
    }
    let single = request("h", "/", &[], &[], SINGLE).expect("a request");
    assert!(single.contains("; server_no_context_takeover; client_max_window_bits\r\n"));
}

#[test]
fn invalid_responses_are_refused() {
    use UpgradeError as E;
    let upgrade = ("Upgrade", "websocket");
    let connection = ("Connection", "Upgrade");
    let accept = ("Sec-WebSocket-Accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    let check = |headers: &[(&str, &str)]| check_answer(101, headers, SINGLE);
    for (found, error) in [
        (check_answer(200, &[upgrade, connection, accept], SINGLE), E::Status(200)),
        (check_answer(403, &[], SINGLE), E::Status(403)),
        (check(&[connection, accept]), E::UpgradeMissing),
        (check(&[("Upgrade", "h2c"), connection, accept]), E::UpgradeOther("h2c".into())),
        (check(&[upgrade, accept]), E::ConnectionMissing),
        (check(&[upgrade, ("Connection", "close, xupgrade"), accept]), E::ConnectionMissing),
        (check(&[upgrade, connection]), E::AcceptMissing),
        (check(&[upgrade, connection, (accept.0, "")]), E::AcceptWrong),
        (check(&[upgrade, connection, (accept.0, &accept.1.to_lowercase())]), E::AcceptWrong),
        (check(&[upgrade, connection, accept, (accept.0, "other")]), E::AcceptWrong),
    ] {
        assert_eq!(found, Err(error));
    }
    let protocol = "Sec-WebSocket-Protocol";
    for wrong in ["Chat", "mqtt", "", "chat, chat.v2"] {
        assert_eq!(answer(&[(protocol, wrong)]), Err(E::ProtocolNotOffered(wrong.into())));
    }
    assert_eq!(answer(&[(protocol, "chat"), (protocol, "chat")]), Err(E::ProtocolTwice));
}

#[test]
fn extensions_that_were_not_offered_are_refused() {
    use UpgradeError as E;
    let wrong = |text: &str, section| E::DeflateParameter(text.into(), section);
    let twice = |name: &str, section| E::DeflateParameterTwice(name.into(), section);
    let unknown = |name: &str| E::DeflateParameterUnknown(name.into());
    let syntax = |text: &str| E::ExtensionSyntax(text.into());
    let long = "x".repeat(300);
    let good = "permessage-deflate; server_no_context_takeover";
    for (extensions, error) in [
        ("permessage-deflate", E::DeflateKeepsContext),
        ("permessage-deflate; client_no_context_takeover", E::DeflateKeepsContext),
        ("x-webkit-deflate-frame", E::ExtensionNotOffered("x-webkit-deflate-frame".into())),
        (&long, E::ExtensionNotOffered(format!("{}…", &long[..40]).into())),
        (&format!("{good}, {good}"), E::DeflateTwice),
        (&format!("{good}, bbf-usp-protocol"), E::ExtensionNotOffered("bbf-usp-protocol".into())),
        (
            &format!("{good}; server_no_context_takeover"),
            twice("server_no_context_takeover", "7.1.1.1"),
        ),
        (&format!("{good}=1"), wrong("server_no_context_takeover=1", "7.1.1.1")),
        (
            &format!("{good}; client_no_context_takeover=0"),
            wrong("client_no_context_takeover=0", "7.1.1.2"),
        ),
        (&format!("{good}; server_max_window_bits"), wrong("server_max_window_bits", "7.1.2.1")),
        (
            &format!("{good}; server_max_window_bits=7"),
            wrong("server_max_window_bits=7", "7.1.2.1"),
        ),
        (
            &format!("{good}; server_max_window_bits=16"),
            wrong("server_max_window_bits=16", "7.1.2.1"),
        ),
        (
            &format!("{good}; server_max_window_bits=08"),
            wrong("server_max_window_bits=08", "7.1.2.1"),
        ),
        (&format!("{good}; client_max_window_bits"), wrong("client_max_window_bits", "7.1.2.2")),
        (
            &format!("{good}; client_max_window_bits=7"),
            wrong("client_max_window_bits=7", "7.1.2.2"),
        ),
        (
            &format!("{good}; client_max_window_bits=9; client_max_window_bits=9"),
            twice("client_max_window_bits", "7.1.2.2"),
        ),
        (&format!("{good}; level=9"), unknown("level")),
        ("; a", syntax("; a")),
        ("permessage-deflate;", syntax("permessage-deflate;")),
        ("permessage-deflate a", syntax("permessage-deflate a")),
        ("permessage-deflate; a=", syntax("permessage-deflate; a=")),
        ("permessage-deflate; a=\"1", syntax("permessage-deflate; a=\"1")),
        ("permessage-deflate/1", syntax("permessage-deflate/1")),
    ] {
        let found = answer(&[("Sec-WebSocket-Extensions", extensions)]);
        assert_eq!(found, Err(error), "{extensions}");
    }
    let headers = [
        ("Upgrade", "websocket"),
        ("Connection", "Upgrade"),
        ("Sec-WebSocket-Accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="),
        ("Sec-WebSocket-Extensions", good),
    ];
    let not_offered = E::ExtensionNotOffered("permessage-deflate".into());
    assert_eq!(check_answer(101, &headers, NOTHING), Err(not_offered));
}

#[test]
fn errors_are_short() {
    let text: Box<str> = shown(&[0xff; 1000]);
    for error in [
        UpgradeError::Status(u16::MAX),
        UpgradeError::UpgradeMissing,
        UpgradeError::UpgradeOther(text.clone()),
        UpgradeError::ConnectionMissing,
        UpgradeError::AcceptMissing,
        UpgradeError::AcceptWrong,
        UpgradeError::ProtocolNotOffered(text.clone()),
        UpgradeError::ProtocolTwice,
        UpgradeError::ExtensionNotOffered(text.clone()),
        UpgradeError::ExtensionSyntax(text.clone()),
        UpgradeError::DeflateTwice,
        UpgradeError::DeflateKeepsContext,
        UpgradeError::DeflateParameterUnknown(text.clone()),
        UpgradeError::DeflateParameterTwice(text.clone(), "7.1.2.1"),
        UpgradeError::DeflateParameter(text, "7.1.2.1"),
    ] {
        assert!(error.to_string().len() <= 120, "{error}");
    }
}

#[test]
fn fuzz_responses_never_panic_or_pass_by_accident() {
    let corpus: &[&[u8]] = &[
        b"permessage-deflate; server_no_context_takeover; server_max_window_bits=\"10\"",
        b"permessage-deflate;client_no_context_takeover , permessage-deflate",
        b"websocket",
        b"keep-alive, Upgrade",
        b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=",
        b"chat.v2",
    ];
    let names: [&[u8]; 5] = [
        b"upgrade",
        b"connection",
        b"sec-websocket-accept",
        b"sec-websocket-protocol",
        b"sec-websocket-extensions",
    ];
    throng_fuzz::mutations(corpus, |input, _| {
        for name in names {
            let good: [(&[u8], &[u8]); 3] =
                [(names[0], b"websocket"), (names[1], b"upgrade"), (names[2], ACCEPT)];
            let headers = good.into_iter().chain([(name, input)]);
            let accepted = check_upgrade(101, headers, ACCEPT, &["chat"], SINGLE);
            if let Ok(Accepted { deflate: Some(_), .. }) = accepted {
                let text = String::from_utf8_lossy(input);
                assert!(text.contains("server_no_context_takeover"), "{text}");
            }
        }
    });
}
