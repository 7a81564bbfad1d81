//! The messages of the messenger: JSON with `seq`, `cmd` and `data`.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// A message from a client. `seq` is any JSON value and is returned unchanged.
#[derive(Deserialize)]
struct Fields<'a> {
    #[serde(borrow, default)]
    seq: Option<&'a RawValue>,
    #[serde(borrow)]
    cmd: Cow<'a, str>,
    #[serde(borrow, default)]
    data: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Login<'a> {
    #[serde(borrow, rename = "userId")]
    user_id: Cow<'a, str>,
}

#[derive(Serialize)]
struct Answer<'a> {
    seq: Option<&'a RawValue>,
    cmd: &'a str,
    response: Response,
}

#[derive(Serialize)]
struct Response {
    code: u16,
    #[serde(rename = "codeMsg")]
    message: &'static str,
    /// Always null; clients expect the field.
    data: (),
}

#[derive(Serialize)]
struct Broadcast<'a> {
    cmd: &'static str,
    data: BroadcastData<'a>,
}

#[derive(Serialize)]
struct BroadcastData<'a> {
    /// Counts from 1 for each `from`; equal on all connections.
    id: u64,
    /// `clock` or `admin`.
    from: &'a str,
    /// Wall-clock time in nanoseconds since the Unix epoch.
    sent_ns: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<&'a RawValue>,
}

/// A parsed request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Command<'a> {
    Login(Cow<'a, str>),
    Heartbeat,
    Ping,
    Unknown,
    /// Invalid JSON, or a required field is missing.
    Malformed,
}

/// The result of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Success,
    NotLoggedIn,
    Unknown,
    Malformed,
    /// A deliberate error.
    Error,
}

impl Outcome {
    fn response(self) -> Response {
        let (code, message) = match self {
            Outcome::Success => (200, "Success"),
            Outcome::NotLoggedIn => (1003, "NotLoggedIn"),
            Outcome::Unknown => (404, "UnknownCommand"),
            Outcome::Malformed => (1001, "MalformedMessage"),
            Outcome::Error => (500, "ServerError"),
        };
        Response { code, message, data: () }
    }
}

/// A parsed message. Text is copied only if it contains escapes.
pub(crate) struct Message<'a>(Option<Fields<'a>>);

impl<'a> Message<'a> {
    pub(crate) fn read(text: &'a [u8]) -> Message<'a> {
        Message(serde_json::from_slice(text).ok())
    }

    pub(crate) fn command(&self) -> Command<'a> {
        self.0.as_ref().map_or(Command::Malformed, command)
    }

    /// Writes the reply as JSON.
    pub(crate) fn answer(&self, outcome: Outcome, out: &mut Vec<u8>) {
        let answer = Answer {
            seq: self.0.as_ref().and_then(|fields| fields.seq),
            cmd: self.0.as_ref().map_or("", |fields| &fields.cmd),
            response: outcome.response(),
        };
        write_json(&answer, out);
    }
}

fn command<'a>(fields: &Fields<'a>) -> Command<'a> {
    match &*fields.cmd {
        "login" => {
            let data = fields.data.map_or("", RawValue::get);
            match serde_json::from_str::<Login<'a>>(data) {
                Ok(login) if !login.user_id.is_empty() => Command::Login(login.user_id),
                _ => Command::Malformed,
            }
        }
        "heartbeat" => Command::Heartbeat,
        "ping" => Command::Ping,
        _ => Command::Unknown,
    }
}

/// The text of a broadcast. A `body` that is not JSON is sent as a JSON string.
pub(crate) fn broadcast(from: &str, id: u64, sent_ns: u64, body: Option<&[u8]>) -> Vec<u8> {
    let body = body.and_then(|bytes| {
        let text = String::from_utf8_lossy(bytes);
        serde_json::from_str::<Box<RawValue>>(&text)
            .or_else(|_| serde_json::value::to_raw_value(&text))
            .ok()
    });
    let data = BroadcastData { id, from, sent_ns, body: body.as_deref() };
    let mut text = Vec::new();
    write_json(&Broadcast { cmd: "msg", data }, &mut text);
    text
}

fn write_json(value: &impl Serialize, out: &mut Vec<u8>) {
    // Serializing these types to memory cannot fail.
    let _ = serde_json::to_writer(out, value);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, command: &Command<'_>, answered: &str) {
        let message = Message::read(text.as_bytes());
        assert_eq!(message.command(), *command, "{text}");
        let outcome = match command {
            Command::Unknown => Outcome::Unknown,
            Command::Malformed => Outcome::Malformed,
            _ => Outcome::Success,
        };
        let mut answer = Vec::new();
        message.answer(outcome, &mut answer);
        assert_eq!(String::from_utf8(answer).unwrap(), answered);
    }

    #[test]
    fn commands_are_parsed_and_get_replies() {
        check(
            r#"{"seq":"1-1","cmd":"login","data":{"userId":"u1","appId":101}}"#,
            &Command::Login("u1".into()),
            r#"{"seq":"1-1","cmd":"login","response":{"code":200,"codeMsg":"Success","data":null}}"#,
        );
        check(
            r#"{"cmd":"heartbeat","data":{},"seq":17}"#,
            &Command::Heartbeat,
            r#"{"seq":17,"cmd":"heartbeat","response":{"code":200,"codeMsg":"Success","data":null}}"#,
        );
        check(
            r#"{"cmd":"ping"}"#,
            &Command::Ping,
            r#"{"seq":null,"cmd":"ping","response":{"code":200,"codeMsg":"Success","data":null}}"#,
        );
        check(
            r#"{"seq":"a","cmd":"d\u0061nce"}"#,
            &Command::Unknown,
            r#"{"seq":"a","cmd":"dance","response":{"code":404,"codeMsg":"UnknownCommand","data":null}}"#,
        );
        let malformed = r#"{"seq":null,"cmd":"","response":{"code":1001,"codeMsg":"MalformedMessage","data":null}}"#;
        for text in ["", "{}", "[1]", "{\"cmd\":", "null", "{\"cmd\":7}"] {
            check(text, &Command::Malformed, malformed);
        }
        check(
            r#"{"cmd":"login","data":{"userId":""}}"#,
            &Command::Malformed,
            &malformed.replace(r#""cmd":"""#, r#""cmd":"login""#),
        );
    }

    #[test]
    fn broadcasts_contain_number_time_and_body() {
        let text = |body| String::from_utf8(broadcast("admin", 3, 99, body)).unwrap();
        let start = r#"{"cmd":"msg","data":{"id":3,"from":"admin","sent_ns":99"#;
        assert_eq!(text(None), format!("{start}}}}}"));
        assert_eq!(text(Some(b"{\"a\": 1}")), format!("{start},\"body\":{{\"a\": 1}}}}}}"));
        assert_eq!(text(Some(b"hi \"all\"")), format!(r#"{start},"body":"hi \"all\""}}}}"#));
    }

    #[test]
    fn fuzz_messages() {
        let corpus: [&[u8]; 3] = [
            br#"{"seq":"1-1","cmd":"login","data":{"userId":"u1"}}"#,
            br#"{"cmd":"heartbeat","data":{},"seq":17}"#,
            br#"{"cmd":"\u0070ing","seq":[[[{}]]]}"#,
        ];
        throng_fuzz::mutations(&corpus, |input, _| {
            let mut answer = Vec::new();
            Message::read(input).answer(Outcome::Success, &mut answer);
            assert!(serde_json::from_slice::<serde_json::Value>(&answer).is_ok());
            let sent = broadcast("admin", 1, 2, Some(input));
            assert!(serde_json::from_slice::<serde_json::Value>(&sent).is_ok());
        });
    }
}
