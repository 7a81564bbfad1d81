//! The content and the permissions of a recording.

use std::os::unix::fs::PermissionsExt as _;

use hyper::header::HeaderValue;

use super::*;

fn map(lines: &[(&'static str, &'static str)]) -> HeaderMap {
    let pair = |(name, value): &(&'static str, &'static str)| {
        (HeaderName::from_static(name), HeaderValue::from_static(value))
    };
    lines.iter().map(pair).collect()
}

fn captured(bytes: &[u8]) -> Captured {
    let mut captured = Captured::default();
    captured.push(bytes);
    captured
}

fn entry(url: &str) -> Entry {
    Entry {
        begin: Duration::from_millis(1_700_000_000_250),
        method: "POST".into(),
        url: url.into(),
        version: "HTTP/1.1",
        headers: map(&[("content-type", "application/json"), ("sec-fetch-dest", "empty")]),
        sent: captured(b"{\"a\": 1}"),
        response: None,
        error: None,
        messages: None,
    }
}

fn response(headers: &[(&'static str, &'static str)], body: &[u8]) -> Option<Response> {
    let (headers, received) = (map(headers), captured(body));
    let waited = Duration::from_millis(3);
    Some(Response { status: 200, version: "HTTP/2", headers, received, waited })
}

fn read(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn the_file_is_complete_after_each_entry_and_private() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.har");
    let har = Har::create(&path, false).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    for number in 0..3 {
        assert_eq!(read(&path)["log"]["entries"].as_array().unwrap().len(), number);
        har.write(&entry("http://a.example/"), Duration::from_millis(5));
    }
    assert_eq!(har.written().requests, 3);
    assert!(Har::create(&path, false).is_err());
    Har::create(&path, true).unwrap();
    assert_eq!(read(&path)["log"]["entries"], json!([]));
}

#[test]
fn an_entry_has_the_format_of_browsers() {
    let mut entry = entry("https://a.example/x?q=a+b%21&y");
    entry.response = response(&[("content-type", "text/html"), ("location", "/y")], b"<p>");
    let json = entry_json(&entry, Duration::from_millis(5));
    assert_eq!(json["startedDateTime"], "2023-11-14T22:13:20.250Z");
    assert_eq!(json["timings"], json!({"send": 0, "wait": 3.0, "receive": 2.0}));
    assert_eq!(json["_resourceType"], "fetch");
    let request = &json["request"];
    assert_eq!(request["headers"][0]["name"], "Content-Type");
    assert_eq!(request["postData"]["text"], "{\"a\": 1}");
    let pairs = json!([{"name": "q", "value": "a b!"}, {"name": "y", "value": ""}]);
    assert_eq!(request["queryString"], pairs);
    let response = &json["response"];
    assert_eq!((&response["status"], &response["redirectURL"]), (&json!(200), &json!("/y")));
    assert_eq!(response["content"], json!({"size": 3, "mimeType": "text/html", "text": "<p>"}));
}

#[test]
fn bodies_are_decoded_truncated_or_base64() {
    let content = |headers: &[(&'static str, &'static str)], body: &[u8]| {
        let mut entry = entry("http://a.example/");
        entry.response = response(headers, body);
        entry_json(&entry, Duration::ZERO)["response"]["content"].clone()
    };
    // "hello\n", compressed by `gzip -n`.
    let gzip =
        b"\x1f\x8b\x08\0\0\0\0\0\0\x03\xcb\x48\xcd\xc9\xc9\xe7\x02\0\x20\x30\x3a\x36\x06\0\0\0";
    let found = content(&[("content-encoding", "gzip"), ("content-type", "text/plain")], gzip);
    assert_eq!(found["text"], "hello\n");
    let found = content(&[("content-type", "image/png")], b"\x89PNG\xff");
    assert_eq!((&found["text"], &found["encoding"]), (&json!("iVBOR/8="), &json!("base64")));
    let found = content(&[("content-type", "text/html; charset=latin1")], b"caf\xe9");
    assert_eq!(found["text"], "caf\u{fffd}");
    let found = content(&[], &vec![b'x'; BODY_BYTES_MAX + 5]);
    assert_eq!(found["comment"], "the first 4 MiB of 4194309 bytes");
}

#[test]
fn requests_without_a_response_say_why_and_sockets_have_their_messages() {
    let mut entry = entry("ws://a.example/");
    entry.error = Some("connection refused".into());
    let time = Duration::from_millis(1_500);
    entry.messages = Some(vec![
        SocketMessage { is_sent: true, time, content: SocketContent::Text("hi".into()) },
        SocketMessage { is_sent: false, time, content: SocketContent::Binary(vec![1, 2]) },
    ]);
    let json = entry_json(&entry, Duration::ZERO);
    assert_eq!(json["response"]["status"], 0);
    assert_eq!(json["response"]["_error"], "connection refused");
    assert_eq!(json["_resourceType"], "websocket");
    let messages = json!([
        {"type": "send", "time": 1.5, "opcode": 1, "data": "hi"},
        {"type": "receive", "time": 1.5, "opcode": 2, "data": "AQI="},
    ]);
    assert_eq!(json["_webSocketMessages"], messages);
}
