//! Messages of the Model Context Protocol: JSON-RPC 2.0, one message per line. Parsing is a pure
//! function.
//!
//! Two eras of the protocol are supported. Since revision 2026-07-28 each request contains its
//! version in `_meta`; before, `initialize` opened a session. Each request shows its era:
//! <https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning>.

use serde_json::{Map, Value, json};
use throng_base::{Said, clean};

/// The first revision in which requests contain their version.
pub(super) const MODERN: &str = "2026-07-28";
/// Revisions with `initialize`, the newest first.
pub(super) const LEGACY: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const META_SERVER: &str = "io.modelcontextprotocol/serverInfo";
/// How long a client may cache a list or a page: it only changes with the version of throng.
const KEPT_MS: u64 = 3_600_000;

/// A mistake in a message, with its code (JSON-RPC 2.0, 5.1; MCP, Error Codes).
#[derive(Debug, PartialEq)]
pub(super) struct Mistake {
    code: i64,
    message: Said,
    data: Option<Value>,
}

impl Mistake {
    fn new(code: i64, message: Said) -> Mistake {
        Mistake { code, message, data: None }
    }

    pub(super) fn too_long(bytes_max: usize) -> Mistake {
        Mistake::new(-32700, say!("the message has more than {bytes_max} bytes"))
    }

    fn invalid(message: Said) -> Mistake {
        Mistake::new(-32600, message)
    }

    pub(super) fn unknown_method(method: &str) -> Mistake {
        Mistake::new(-32601, say!("there is no method `{}`", clean(method)))
    }

    pub(super) fn parameters(message: Said) -> Mistake {
        Mistake::new(-32602, message)
    }
}

/// A parsed line.
#[derive(Debug, PartialEq)]
pub(super) enum Message {
    Request(Request),
    Cancelled {
        id: Value,
    },
    /// A notification or response that needs no action.
    Nothing,
}

#[derive(Debug, PartialEq)]
pub(super) struct Request {
    /// A string or an integer.
    pub(super) id: Value,
    pub(super) method: String,
    pub(super) parameters: Map<String, Value>,
    is_modern: bool,
}

/// Parses a line. An error has the ID of its request, as far as it could be parsed.
pub(super) fn read(line: &[u8]) -> Result<Message, (Value, Mistake)> {
    let value: Value = serde_json::from_slice(line).map_err(|error| {
        let error = Said::of_others(error.to_string());
        (Value::Null, Mistake::new(-32700, say!("the message is not valid JSON: {error}")))
    })?;
    let Value::Object(mut fields) = value else {
        let message = say!("a message must be a JSON object; batches are not supported");
        return Err((Value::Null, Mistake::invalid(message)));
    };
    let id = fields.remove("id");
    let known = id.clone().filter(is_id).unwrap_or_default();
    if fields.get("jsonrpc") != Some(&json!("2.0")) {
        return Err((known, Mistake::invalid(say!("`jsonrpc` must be the string 2.0"))));
    }
    let Some(Value::String(method)) = fields.remove("method") else {
        // The server sends no requests, so responses are ignored.
        return match fields.contains_key("result") || fields.contains_key("error") {
            true => Ok(Message::Nothing),
            false => Err((known, Mistake::invalid(say!("`method` must be a string")))),
        };
    };
    let parameters = match fields.remove("params") {
        None => Map::new(),
        Some(Value::Object(parameters)) => parameters,
        Some(_) if id.is_none() => return Ok(Message::Nothing),
        Some(_) => {
            return Err((known, Mistake::parameters(say!("`params` must be an object"))));
        }
    };
    match id {
        None => Ok(notification(&method, parameters)),
        Some(id) if is_id(&id) => request(id, method, parameters).map(Message::Request),
        Some(_) => {
            Err((Value::Null, Mistake::invalid(say!("`id` must be a string or an integer"))))
        }
    }
}

fn is_id(id: &Value) -> bool {
    id.is_string() || id.is_i64() || id.is_u64()
}

fn notification(method: &str, mut parameters: Map<String, Value>) -> Message {
    let id = parameters.remove("requestId").filter(is_id);
    match (method, id) {
        ("notifications/cancelled", Some(id)) => Message::Cancelled { id },
        _ => Message::Nothing,
    }
}

fn request(
    id: Value,
    method: String,
    parameters: Map<String, Value>,
) -> Result<Request, (Value, Mistake)> {
    match era(&method, parameters.get("_meta")) {
        Ok(is_modern) => Ok(Request { id, method, parameters, is_modern }),
        Err(mistake) => Err((id, mistake)),
    }
}

/// True for a request of the modern era; an error if such a request is invalid.
fn era(method: &str, meta: Option<&Value>) -> Result<bool, Mistake> {
    let field = |name| meta.and_then(|meta| meta.get(name));
    let Some(version) = field(META_VERSION) else {
        return match method {
            "server/discover" => {
                Err(Mistake::parameters(say!("`_meta` must contain `{META_VERSION}`")))
            }
            _ => Ok(false),
        };
    };
    if version != MODERN {
        let mut mistake =
            Mistake::new(-32022, say!("protocol version {} is not supported", shown(version)));
        mistake.data = Some(json!({"supported": [MODERN], "requested": version}));
        return Err(mistake);
    }
    match field(META_CAPABILITIES) {
        Some(Value::Object(_)) => Ok(true),
        _ => Err(Mistake::parameters(say!("`_meta` must contain `{META_CAPABILITIES}`"))),
    }
}

fn shown(value: &Value) -> String {
    clean(&value.to_string())
}

impl Request {
    /// A string parameter.
    pub(super) fn text(&self, name: &str) -> Result<&str, Mistake> {
        let text = self.parameters.get(name).and_then(Value::as_str);
        text.ok_or_else(|| Mistake::parameters(say!("`params.{name}` must be a string")))
    }

    /// The token for progress notifications of this request, if it wants any.
    pub(super) fn progress_token(&self) -> Option<Value> {
        self.parameters.get("_meta")?.get("progressToken").cloned().filter(is_id)
    }

    /// The response to this request.
    pub(super) fn answer(&self, result: Result<Value, Mistake>) -> Value {
        match result {
            Ok(mut result) => {
                if self.is_modern {
                    result["resultType"] = json!("complete");
                    result["_meta"] = json!({ META_SERVER: server() });
                    if self.is_kept() {
                        result["ttlMs"] = json!(KEPT_MS);
                        result["cacheScope"] = json!("public");
                    }
                }
                json!({"jsonrpc": "2.0", "id": self.id, "result": result})
            }
            Err(mistake) => refusal(&self.id, &mistake),
        }
    }

    /// True if clients may cache the result.
    fn is_kept(&self) -> bool {
        let method = self.method.as_str();
        method == "server/discover" || method.ends_with("/list") || method == "resources/read"
    }
}

/// The response to an invalid message.
pub(super) fn refusal(id: &Value, mistake: &Mistake) -> Value {
    let mut error = json!({"code": mistake.code, "message": mistake.message.spoken()});
    if let Some(data) = &mistake.data {
        error["data"] = data.clone();
    }
    json!({"jsonrpc": "2.0", "id": id, "error": error})
}

pub(super) fn progress(token: &Value, seconds: f64, text: &str) -> Value {
    let parameters = json!({"progressToken": token, "progress": seconds, "message": text});
    json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": parameters})
}

/// The name and version of this server.
pub(super) fn server() -> Value {
    json!({"name": "throng", "title": "throng", "version": env!("CARGO_PKG_VERSION")})
}

/// The revision of a session: the one that its client requests, or the newest.
pub(super) fn negotiated(asked: Option<&str>) -> &'static str {
    LEGACY.into_iter().find(|it| Some(*it) == asked).unwrap_or(LEGACY[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(line: &str) -> (Value, i64) {
        let (id, mistake) = read(line.as_bytes()).expect_err(line);
        (id, mistake.code)
    }

    fn asked(line: &Value) -> Request {
        match read(line.to_string().as_bytes()) {
            Ok(Message::Request(request)) => request,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn invalid_messages_are_refused_with_their_id() {
        for (line, id, code) in [
            ("{", Value::Null, -32700),
            ("", Value::Null, -32700),
            ("[]", Value::Null, -32600),
            (r#"{"id":1,"method":"ping"}"#, json!(1), -32600),
            (r#"{"jsonrpc":"2.0","id":"a"}"#, json!("a"), -32600),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, Value::Null, -32600),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, Value::Null, -32600),
            (r#"{"jsonrpc":"2.0","id":2,"method":"ping","params":[1]}"#, json!(2), -32602),
            (r#"{"jsonrpc":"2.0","id":3,"method":"server/discover"}"#, json!(3), -32602),
        ] {
            assert_eq!(wrong(line), (id, code), "{line}");
        }
    }

    #[test]
    fn notifications_and_responses_need_no_answer() {
        let id = json!("x");
        let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
            "params": {"requestId": id, "reason": "enough"}});
        let read_one = |value: &Value| read(value.to_string().as_bytes()).expect("a message");
        assert_eq!(read_one(&cancelled), Message::Cancelled { id });
        for nothing in [
            json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {}}),
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": []}),
            json!({"jsonrpc": "2.0", "id": 7, "result": {}}),
        ] {
            assert_eq!(read_one(&nothing), Message::Nothing, "{nothing}");
        }
    }

    #[test]
    fn each_request_shows_its_era() {
        let meta = |version: &str| json!({META_VERSION: version, META_CAPABILITIES: {}});
        let line = |meta: &Value| json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}});
        let modern = asked(&line(&meta(MODERN))).answer(Ok(json!({})));
        assert_eq!(modern["result"]["resultType"], "complete");
        assert_eq!(modern["result"]["_meta"][META_SERVER]["name"], "throng");
        assert_eq!(modern["result"]["cacheScope"], "public");
        let legacy = asked(&line(&json!({"progressToken": 5})));
        assert_eq!(legacy.progress_token(), Some(json!(5)));
        assert_eq!(legacy.answer(Ok(json!({})))["result"], json!({}));
        let unknown = line(&meta("1900-01-01")).to_string();
        let (id, mistake) = read(unknown.as_bytes()).expect_err("an old version");
        let error = &refusal(&id, &mistake)["error"];
        assert_eq!((id, &error["code"]), (json!(1), &json!(-32022)));
        assert_eq!(error["data"], json!({"supported": [MODERN], "requested": "1900-01-01"}));
        let bare = line(&json!({META_VERSION: MODERN})).to_string();
        assert_eq!(wrong(&bare), (json!(1), -32602));
    }

    #[test]
    fn a_session_uses_the_revision_of_its_client_or_the_newest() {
        assert_eq!(negotiated(Some("2025-03-26")), "2025-03-26");
        for other in [None, Some("2026-07-28"), Some("1.0")] {
            assert_eq!(negotiated(other), "2025-11-25");
        }
    }
}
