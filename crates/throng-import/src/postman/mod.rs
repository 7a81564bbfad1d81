//! Postman collections (v2.0 and v2.1): folders become groups, variables become variables, and
//! supported test lines of a request become checks and saved values.

mod tests_of;

use std::collections::HashSet;
use std::sync::Arc;

use throng_base::{Diagnostic, Source};

use crate::form::{path_encoded, text_pairs};
use crate::json::Json;
use crate::model::{
    Auth, Body, BodyPart, Exchange, Item, LeftOut, Recording, Session, Variable, name_of,
};
use crate::text::Text;
use crate::{Options, Refusal};

const REQUESTS_MAX: usize = 10_000;
const DEPTH_MAX: usize = 30;

pub(crate) fn read(source: &Arc<Source>, options: &Options) -> Result<Recording, Vec<Diagnostic>> {
    let refuse = |refusal: Refusal| vec![*refusal.of_format("postman")];
    let root = Json::parse(&source.text)
        .map_err(|error| refuse(Refusal::of_json(&source.name, &error)))?;
    // Postman's own API wraps the collection in a map.
    let root = root.get("collection").unwrap_or(&root);
    if root.get("requests").is_some() && root.get("item").is_none() {
        let reason = say!("it is a collection in the format v1");
        return Err(refuse(Refusal::new(&source.name, reason)));
    }
    if root.get("item").is_none() {
        let reason = match root.get("values").is_some() {
            true => say!("it is an environment, not a collection"),
            false => say!("it has no `item`"),
        };
        return Err(refuse(Refusal::new(&source.name, reason)));
    }
    let name = root.get("info").and_then(|info| info.str("name")).unwrap_or(&options.stem);
    let name: String = name.chars().filter(|c| !c.is_control()).take(100).collect();
    let mut reader = PostmanReader {
        recording: Recording { name, ..Recording::default() },
        saved: HashSet::new(),
        used: Vec::new(),
        count: 0,
    };
    tests_of::collect_saved(root, &mut reader.saved, 0);
    reader.variables(root);
    reader.scripts(root, &say!("the collection"), None);
    let steps = reader.items(root.list("item"), root.get("auth"), 0);
    if reader.count == 0 {
        let reason = say!("it has no requests");
        return Err(refuse(Refusal::new(&source.name, reason)));
    }
    reader.declare_used();
    let session = Session { name: "user".into(), steps, ..Session::default() };
    reader.recording.sessions.push(session);
    Ok(reader.recording)
}

struct PostmanReader {
    recording: Recording,
    /// Variables that a script sets from a response.
    saved: HashSet<String>,
    used: Vec<String>,
    count: usize,
}

impl PostmanReader {
    fn variables(&mut self, root: &Json) {
        for variable in root.list("variable").iter().take(1000) {
            let Some(key) = variable.str("key").or_else(|| variable.str("id")) else { continue };
            let value = variable.word("value").to_string();
            if self.saved.contains(key) || variable.is_true("disabled") {
                continue;
            }
            let value = self.text(&value);
            let name = name_of(key);
            self.recording.declare(match value.is_empty() {
                true => Variable::unknown(name),
                false => Variable::plain(&name, value),
            });
        }
    }

    /// Variables of an environment that is not in the file.
    fn declare_used(&mut self) {
        for name in std::mem::take(&mut self.used) {
            self.recording.declare(Variable::unknown(name));
        }
    }

    fn items(&mut self, items: &[Json], auth: Option<&Json>, depth: usize) -> Vec<Item> {
        let mut out = Vec::new();
        if depth > DEPTH_MAX {
            let what = say!("folders nested more than {DEPTH_MAX} levels deep");
            return vec![Item::LeftOut(LeftOut::of_all(items.len(), what))];
        }
        for item in items {
            let name = item.str("name").unwrap_or("request");
            let name: String = name.chars().filter(|c| !c.is_control()).take(80).collect();
            let auth = item.get("auth").filter(|auth| **auth != Json::Null).or(auth);
            if let Some(inner) = item.get("item") {
                self.scripts(item, &say!("folder {name}"), None);
                let steps = self.items(inner.items(), auth, depth + 1);
                out.push(Item::Group(name, steps));
            } else if let Some(request) = item.get("request") {
                self.count += 1;
                if self.count > REQUESTS_MAX {
                    continue;
                }
                let mut exchange = self.request(request, auth, &name);
                exchange.name = Some(name.clone()).filter(|name| !name.is_empty());
                let place = say!("request {name}");
                self.scripts(item, &place, Some(&mut exchange));
                self.response(item, &mut exchange);
                out.push(Item::Http(Box::new(exchange)));
            }
        }
        if depth == 0 && self.count > REQUESTS_MAX {
            let what = say!("requests after the first {REQUESTS_MAX}");
            out.push(Item::LeftOut(LeftOut::of_all(self.count - REQUESTS_MAX, what)));
        }
        out
    }

    /// The status of a saved response, if no test checks it.
    fn response(&mut self, item: &Json, exchange: &mut Exchange) {
        let is_good = |code: &u16| (200..400).contains(code);
        let mut codes =
            item.list("response").iter().filter_map(|one| one.str("code")?.parse().ok());
        let status = codes.find(is_good);
        if exchange.checks.is_empty() && status.is_some() {
            let response = crate::model::Response { status, ..Default::default() };
            exchange.response = Some(response);
        }
    }

    fn request(&mut self, request: &Json, auth: Option<&Json>, name: &str) -> Exchange {
        let mut exchange = Exchange { method: "GET".into(), ..Exchange::default() };
        if let Some(url) = request.as_str() {
            exchange.url = self.url_text(url);
            return exchange;
        }
        let method = request.str("method").unwrap_or("GET").trim().to_ascii_uppercase();
        if !method.is_empty() && method.bytes().all(|b| b.is_ascii_alphabetic() || b == b'-') {
            exchange.method = method;
        }
        exchange.url = request.get("url").map_or_else(Text::default, |url| self.url(url));
        let headers = match request.get("header") {
            Some(Json::Text(text)) => header_lines(text.as_literal().unwrap_or_default()),
            Some(list) => fields(list.items()),
            None => Vec::new(),
        };
        for (key, value) in headers {
            exchange.headers.push((key, self.text(&value)));
        }
        if let Some(body) = request.get("body") {
            self.body(body, &mut exchange, name);
        }
        let auth = request.get("auth").filter(|auth| **auth != Json::Null).or(auth);
        if let Some(auth) = auth {
            self.auth(auth, &mut exchange, name);
        }
        exchange
    }

    fn url(&mut self, url: &Json) -> Text {
        if let Some(text) = url.as_str() {
            return self.url_text(text);
        }
        let mut raw = url.word("raw").to_string();
        if raw.is_empty() {
            raw = put_together(url);
        }
        let disabled: Vec<&str> = url
            .list("query")
            .iter()
            .filter(|one| one.is_true("disabled"))
            .filter_map(|one| one.str("key"))
            .collect();
        if !disabled.is_empty() {
            raw = without(&raw, &disabled);
        }
        // Parts of the path such as `:id`.
        for variable in url.list("variable").iter().take(100) {
            let Some(key) = variable.str("key").or_else(|| variable.str("id")) else { continue };
            let value = variable.word("value");
            let value = match value.is_empty() {
                true => format!("{{{{{key}}}}}"),
                false => value.to_string(),
            };
            raw = with_parameter(&raw, key, &value);
        }
        self.url_text(&raw)
    }

    fn url_text(&mut self, raw: &str) -> Text {
        let raw = raw.trim();
        let host = raw.split('/').next().unwrap_or_default();
        let is_host = host.contains('.') || host.starts_with("localhost");
        match is_host && !raw.contains("://") && !raw.starts_with("{{") {
            true => self.text(&format!("http://{raw}")),
            false => self.text(raw),
        }
    }

    fn body(&mut self, body: &Json, exchange: &mut Exchange, name: &str) {
        if body.is_true("disabled") {
            return;
        }
        match body.word("mode") {
            "raw" => {
                let text = self.text(body.word("raw"));
                let language = body.get("options").and_then(|one| one.get("raw")?.str("language"));
                let is_json = language == Some("json")
                    || exchange
                        .header("content-type")
                        .is_none_or(|one| one.to_string().contains("json"));
                let json = Json::of_body(&text).filter(|_| is_json);
                let is_without_type = exchange.header("content-type").is_none();
                if json.is_none() && !text.is_empty() && is_without_type {
                    let kind = match language {
                        Some("json") => "application/json",
                        Some("xml") => "application/xml",
                        Some("html") => "text/html",
                        _ => "text/plain",
                    };
                    exchange.headers.push(("Content-Type".into(), kind.into()));
                }
                exchange.body = json.map_or(Body::Text(text), Body::Json);
            }
            "urlencoded" => {
                let fields = fields(body.list("urlencoded")).into_iter();
                exchange.body = Body::Form(match body.str("urlencoded") {
                    Some(text) => text_pairs(&self.text(text)),
                    None => fields.map(|(key, value)| (key, self.text(&value))).collect(),
                });
            }
            "formdata" => {
                let parts = body.list("formdata").iter().filter(|one| !one.is_true("disabled"));
                exchange.body = Body::Multipart(parts.filter_map(|one| self.part(one)).collect());
            }
            "file" => {
                let path = body.get("file").and_then(|file| file.str("src")).unwrap_or("file.bin");
                exchange.body = Body::File(path.into());
            }
            "graphql" => self.graphql(body, exchange),
            "" => {}
            other => {
                let what = say!("the body mode `{other}`");
                exchange.left_out.push(LeftOut::new(say!("request {name}"), what));
            }
        }
    }

    fn part(&mut self, part: &Json) -> Option<BodyPart> {
        let name = part.str("key")?.to_string();
        let made = match part.word("type") {
            "file" => {
                let first = part.list("src").first().and_then(Json::as_str);
                BodyPart::file(name, part.str("src").or(first).unwrap_or("file.bin"))
            }
            _ => BodyPart::text(name, self.text(part.word("value"))),
        };
        let content_type = part.str("contentType").filter(|one| !one.is_empty()).map(String::from);
        Some(BodyPart { content_type, ..made })
    }

    fn graphql(&mut self, body: &Json, exchange: &mut Exchange) {
        let Some(graphql) = body.get("graphql") else { return };
        let query = self.text(graphql.word("query"));
        let mut entries = vec![("query".to_string(), Json::Text(query))];
        let variables = self.text(graphql.word("variables"));
        if let Some(json) = Json::of_body(&variables) {
            entries.push(("variables".into(), json));
        }
        exchange.body = Body::Json(Json::Map(entries));
    }

    fn auth(&mut self, auth: &Json, exchange: &mut Exchange, name: &str) {
        let kind = auth.str("type").unwrap_or("noauth").to_string();
        let mut of = |key: &str| {
            // v2.1 has a list of keys and values, v2.0 a map.
            let details = auth.get(&kind);
            let listed = details.map_or(&[][..], Json::items).iter();
            let mut listed = listed.filter(|one| one.str("key") == Some(key));
            let value = listed.next().and_then(|one| one.str("value"));
            let value = value.or_else(|| details.and_then(|map| map.str(key)));
            value.filter(|value| !value.is_empty()).map(|value| self.text(value))
        };
        if exchange.header("authorization").is_some() {
            return;
        }
        match kind.as_str() {
            "noauth" => {}
            "bearer" | "oauth2" => {
                let token = of("token").or_else(|| of("accessToken"));
                let mut value = Text::literal("Bearer ");
                value.append(&token.unwrap_or_else(|| self.secret("token")));
                exchange.headers.push(("Authorization".into(), value));
            }
            "basic" | "digest" => {
                let user = of("username").unwrap_or_else(|| Text::literal("user"));
                let password = of("password").unwrap_or_else(|| self.secret("password"));
                exchange.auth = Some(Auth { user, password, is_digest: kind == "digest" });
            }
            "apikey" => {
                let key = of("key").map_or("X-API-Key".into(), |key| key.to_string());
                let value = of("value");
                let is_query = of("in").is_some_and(|place| place.as_literal() == Some("query"));
                let value = value.unwrap_or_else(|| self.secret("api_key"));
                match is_query {
                    true => exchange.query.push((key, value)),
                    false => exchange.headers.push((key, value)),
                }
            }
            other => {
                let what = say!("the authentication `{other}`");
                exchange.left_out.push(LeftOut::new(say!("request {name}"), what));
            }
        }
    }

    fn secret(&mut self, name: &str) -> Text {
        self.recording.declare(Variable::secret(name));
        Text::value(format!("vars.{name}"))
    }

    /// The scripts of a request become checks and saved values; all other scripts are left out.
    fn scripts(&mut self, item: &Json, place: &throng_base::Said, exchange: Option<&mut Exchange>) {
        let mut exchange = exchange;
        for event in item.list("event").iter().take(20) {
            let script = event.get("script").map(script_text).unwrap_or_default();
            let is_test = event.str("listen") == Some("test");
            let rest = match (&mut exchange, is_test) {
                (Some(exchange), true) => tests_of::read(&script, exchange),
                _ => tests_of::lines(&script),
            };
            if rest.is_empty() {
                continue;
            }
            let listen = event.str("listen").unwrap_or("script");
            let first: String = rest[0].chars().take(60).collect();
            let what = match rest.len() {
                1 => say!("a line of the script `{listen}`: {first}"),
                more => say!("{more} lines of the script `{listen}`: {first} …"),
            };
            let left_out = LeftOut::new(place.clone(), what);
            match &mut exchange {
                Some(exchange) => exchange.left_out.push(left_out),
                None => self.recording.left_out.push(left_out),
            }
        }
    }

    /// A text with `{{name}}`.
    fn text(&mut self, raw: &str) -> Text {
        let mut out = Text::default();
        let mut rest = raw;
        while let Some((before, behind)) = rest.split_once("{{") {
            let Some((name, after)) = behind.split_once("}}") else { break };
            let is_name = name.len() <= 100 && !name.contains(['{', '\n', '"']);
            if !is_name || name.trim().is_empty() {
                out.push(before);
                out.push("{{");
                rest = behind;
                continue;
            }
            out.push(before);
            let value = self.value(name.trim());
            out.push_value(value);
            rest = after;
        }
        out.push(rest);
        out
    }

    fn value(&mut self, name: &str) -> String {
        if let Some(dynamic) = name.strip_prefix('$') {
            if let Some(expression) = dynamic_value(dynamic) {
                return expression.into();
            }
            let place = say!("`{}`", format!("{{{{{name}}}}}"));
            let what = say!("an unsupported random value; replaced by a random word");
            let left_out = LeftOut::new(place, what);
            if !self.recording.left_out.contains(&left_out) {
                self.recording.left_out.push(left_out);
            }
            return "random.string(8)".into();
        }
        let plain = name_of(name);
        if self.saved.contains(name) {
            return format!("saved.{plain}");
        }
        if !self.used.contains(&plain) {
            self.used.push(plain.clone());
        }
        format!("vars.{plain}")
    }
}

/// Postman's dynamic variables that have an equivalent function.
fn dynamic_value(name: &str) -> Option<&'static str> {
    Some(match name {
        "guid" | "randomUUID" => "random.uuid()",
        "timestamp" => "now.s()",
        "isoTimestamp" => "now.iso()",
        "randomInt" => "random.int(0, 1000)",
        "randomBoolean" => "random.bool()",
        "randomEmail" | "randomExampleEmail" => "random.string(8) + '@example.com'",
        "randomAlphaNumeric" => "random.string(1)",
        "randomFirstName" | "randomLastName" | "randomFullName" | "randomUserName"
        | "randomWord" | "randomPassword" => "random.string(8)",
        "randomPrice" => "random.float(1, 1000)",
        _ => return None,
    })
}

fn script_text(script: &Json) -> String {
    match script.get("exec") {
        Some(Json::List(lines)) => {
            lines.iter().filter_map(Json::as_str).collect::<Vec<_>>().join("\n")
        }
        Some(other) => other.as_str().unwrap_or_default().to_string(),
        None => String::new(),
    }
}

/// Keys and values that are not disabled.
fn fields(list: &[Json]) -> Vec<(String, String)> {
    let on = list.iter().filter(|one| !one.is_true("disabled"));
    on.filter_map(|one| {
        let key = one.str("key").filter(|key| !key.trim().is_empty())?;
        Some((key.trim().to_string(), one.word("value").to_string()))
    })
    .collect()
}

fn header_lines(text: &str) -> Vec<(String, String)> {
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    lines.map(|(name, value)| (name.trim().to_string(), value.trim().to_string())).collect()
}

fn put_together(url: &Json) -> String {
    let joined = |key: &str, separator: &str| match url.get(key) {
        Some(Json::List(items)) => {
            let words = items.iter().filter_map(|one| one.as_str().or_else(|| one.str("value")));
            words.collect::<Vec<_>>().join(separator)
        }
        Some(other) => other.as_str().unwrap_or_default().to_string(),
        None => String::new(),
    };
    let mut out = String::new();
    let host = joined("host", ".");
    if let Some(protocol) = url.str("protocol") {
        out.push_str(&format!("{}://", protocol.trim_end_matches("://")));
    } else if !host.starts_with("{{") {
        out.push_str("http://");
    }
    out.push_str(&host);
    if let Some(port) = url.str("port") {
        out.push_str(&format!(":{port}"));
    }
    let path = joined("path", "/");
    out.push_str(&format!("/{}", path.trim_start_matches('/')));
    let query = fields(url.list("query"));
    for (number, (key, value)) in query.iter().enumerate() {
        let mark = if number == 0 { '?' } else { '&' };
        out.push_str(&format!("{mark}{}={}", path_encoded(key), value));
    }
    out
}

/// The URL without these query parameters.
fn without(raw: &str, keys: &[&str]) -> String {
    let Some((path, query)) = raw.split_once('?') else { return raw.to_string() };
    let kept: Vec<&str> = query
        .split('&')
        .filter(|pair| !keys.contains(&pair.split('=').next().unwrap_or_default()))
        .collect();
    match kept.is_empty() {
        true => path.to_string(),
        false => format!("{path}?{}", kept.join("&")),
    }
}

/// The URL with a value instead of `/:key`.
fn with_parameter(raw: &str, key: &str, value: &str) -> String {
    let (scheme, rest) = match raw.split_once("://") {
        Some((scheme, rest)) => (format!("{scheme}://"), rest),
        None => (String::new(), raw),
    };
    let (path, query) = match rest.split_once('?') {
        Some((path, query)) => (path, format!("?{query}")),
        None => (rest, String::new()),
    };
    let name = format!(":{key}");
    let segments = path.split('/').map(|segment| if segment == name { value } else { segment });
    format!("{scheme}{}{query}", segments.collect::<Vec<_>>().join("/"))
}
