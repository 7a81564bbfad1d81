//! HAR 1.2: recordings of browsers and proxies. It is read as a stream, so that memory does not
//! grow with the file; bodies are truncated at a limit.

mod entries;
mod socket;

use std::io::{BufRead as _, Read};

use serde::de::DeserializeSeed as _;
use throng_base::clean::bytes_without_mark;
use throng_base::{Diagnostic, Said};
use throng_data::access_log::seconds;
use throng_scenario::{Url, bytes_of_base64};

use crate::json::Json;
use crate::model::{
    Body, BodyPart, Exchange, Item, LeftOut, Recording, Resource, Response, Session, Socket,
};
use crate::text::Text;
use crate::{Options, Refusal};
use entries::Entries;

/// The maximum number of requests per recording; the rest is left out.
const ENTRIES_MAX: usize = 20_000;
/// The maximum size of all response texts that are kept to search for values.
const RESPONSES_BYTES_MAX: usize = 128 << 20;
/// A longer request body is left out.
const SENT_BYTES_MAX: usize = 4 << 20;
/// The searched prefix of a response.
const RECEIVED_BYTES_MAX: usize = 1 << 20;

#[derive(Default)]
struct HarReader {
    /// Of all entries.
    count: usize,
    items: Vec<Item>,
    kept_bytes: usize,
    forgotten: usize,
    beyond: usize,
    left_out: Vec<LeftOut>,
}

/// Reads the requests of a recording in the order of their start.
pub(crate) fn read(
    input: impl Read,
    name: &str,
    options: &Options,
) -> Result<Recording, Box<Diagnostic>> {
    let mut reader = HarReader::default();
    let mut input = std::io::BufReader::new(input);
    // Windows tools start files with a byte order mark.
    if input.fill_buf().is_ok_and(|begin| begin.len() > bytes_without_mark(begin).len()) {
        input.consume("\u{feff}".len());
    }
    let mut json = serde_json::Deserializer::from_reader(input);
    let entries = Entries { path: &["log", "entries"], each: &mut |entry| reader.entry(entry) };
    let found = entries.deserialize(&mut json).and_then(|found| json.end().map(|()| found));
    let is_found = found.map_err(|error| Refusal::of_json(name, &error).of_format("har"))?;
    if !is_found {
        return Err(Refusal::new(name, say!("it has no `log.entries`")).of_format("har"));
    }
    reader.finish();
    if reader.items.is_empty() {
        let refusal = Refusal::new(name, say!("it has no requests to HTTP services"));
        let kind = if options.is_recorded { "record" } else { "har" };
        return Err(refusal.of_format(kind));
    }
    reader.items.sort_by(|one, other| begin(one).total_cmp(&begin(other)));
    let session = Session { name: "user".into(), steps: reader.items, ..Session::default() };
    let mut recording = Recording {
        name: options.stem.clone(),
        sessions: vec![session],
        left_out: reader.left_out,
        ..Recording::default()
    };
    recording.is_insecure = options.takes_insecure;
    recording.authorities.clone_from(&options.authorities);
    Ok(recording)
}

fn begin(item: &Item) -> f64 {
    match item {
        Item::Http(exchange) => exchange.begin_ms.unwrap_or(f64::MAX),
        Item::Socket(socket) => socket.begin_ms.unwrap_or(f64::MAX),
        _ => f64::MAX,
    }
}

impl HarReader {
    fn entry(&mut self, entry: &Json) {
        self.count += 1;
        if self.items.len() >= ENTRIES_MAX {
            self.beyond += 1;
            return;
        }
        let place = say!("entry {}", self.count);
        let Some(request) = entry.map("request") else {
            return self.left_out.push(LeftOut::new(place, say!("an entry without a request")));
        };
        // Some recorders omit it for requests that they could not see.
        let method = Some(request.word("method")).filter(|method| !method.is_empty());
        let method = method.unwrap_or("GET").to_ascii_uppercase();
        let url = request.word("url");
        let is_socket = url.starts_with("ws://") || url.starts_with("wss://");
        let messages = match entry.get("_webSocketMessages") {
            Some(Json::List(messages)) => Some(&messages[..]),
            _ => is_socket.then_some(&[][..]),
        };
        let response = entry.map("response");
        let what = response.and_then(|it| unanswered(it, messages.is_some()));
        if let Some(what) = what {
            let place = say!("{} {}", &method, url.split('?').next().unwrap_or_default());
            return self.left_out.push(LeftOut::new(place, what));
        }
        let status = response.and_then(|response| number(response, "status"));
        if let (true, Some(status)) = (is_socket, status.filter(|status| *status >= 200.0)) {
            let what = say!("a WebSocket that the server refused with status {}", status);
            return self.left_out.push(LeftOut::new(place, what));
        }
        // Parts of a microsecond would be noise of the conversion.
        let begin_ms = seconds(entry.word("startedDateTime")).map(|it| (it * 1e6).round() / 1e3);
        let took_ms = number(entry, "time").unwrap_or(0.0);
        let headers = fields(request);
        if let Some(messages) = messages {
            let sockets = socket::sockets(url, headers, messages, (begin_ms, took_ms));
            let item = |socket| Item::Socket(Box::new(Socket { number: self.count, ..socket }));
            return self.items.extend(sockets.into_iter().map(item));
        }
        if !(url.starts_with("http://") || url.starts_with("https://")) {
            let scheme = url.split(':').next().unwrap_or_default().chars().take(20);
            let scheme: String = scheme.collect();
            let what = say!("a request with the scheme `{scheme}`");
            return self.left_out.push(LeftOut::new(place, what));
        }
        if method == "CONNECT" || Url::parse(url).is_err() {
            let what = say!("a request that is not valid");
            return self.left_out.push(LeftOut::new(place, what));
        }
        let url = Text::literal(url.split('#').next().unwrap_or_default());
        let took_ms = took_ms.max(0.0);
        let mut exchange =
            Exchange { method, url, headers, begin_ms, took_ms, ..Exchange::default() };
        if let Some(post) = request.map("postData") {
            body(&mut exchange, post);
        }
        exchange.response = response.map(|response| self.response(response));
        exchange.kind = resource(&exchange, entry.word("_resourceType"));
        if exchange.kind == Resource::Asset {
            exchange.response.iter_mut().for_each(|response| response.body.clear());
        }
        self.items.push(Item::Http(Box::new(exchange)));
    }

    fn response(&mut self, response: &Json) -> Response {
        let status = number(response, "status").filter(|status| (100.0..600.0).contains(status));
        let headers = maps(response, "headers");
        let headers = headers.map(|one| (one.word("name").into(), one.word("value").into()));
        let content = response.map("content").unwrap_or(&Json::Null);
        let content_type = content.word("mimeType").to_ascii_lowercase();
        let mut body = readable(content, &content_type);
        if self.kept_bytes + body.len() > RESPONSES_BYTES_MAX {
            self.forgotten += 1;
            body.clear();
        }
        self.kept_bytes += body.len();
        let status = status.map(|status| status as u16);
        Response { status, headers: headers.collect(), content_type, body }
    }

    fn finish(&mut self) {
        if self.beyond > 0 {
            let what = say!("requests after the first {ENTRIES_MAX}");
            self.left_out.push(LeftOut::of_all(self.beyond, what));
        }
        if self.forgotten > 0 {
            let what = say!("responses after the first 128 MiB, not searched for values");
            self.left_out.push(LeftOut::of_all(self.forgotten, what));
        }
    }
}

fn body(exchange: &mut Exchange, post: &Json) {
    let mime = post.word("mimeType").to_ascii_lowercase();
    let text = post.word("text");
    let params: Vec<&Json> = maps(post, "params").collect();
    let mut texts = params.iter().map(|one| one.word("value")).chain([text]);
    if texts.any(|text| text.len() > SENT_BYTES_MAX) {
        let place = say!("{} {}", exchange.method, exchange.url);
        exchange.left_out.push(LeftOut::new(place, say!("a request body larger than 4 MiB")));
        return;
    }
    let is_base64 = ["encoding", "_encoding"].iter().any(|key| post.word(key) == "base64");
    let pair = |one: &&Json| (one.word("name").to_string(), Text::literal(one.word("value")));
    exchange.body = if mime.starts_with("multipart/form-data") {
        exchange.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("content-type"));
        let parts = match params.is_empty() {
            false => params.into_iter().map(part_of).collect(),
            true => multipart_of(&mime, text),
        };
        if parts.is_empty() { Body::Text(Text::literal(text)) } else { Body::Multipart(parts) }
    } else if mime.starts_with("application/x-www-form-urlencoded") && text.is_empty() {
        Body::Form(params.iter().map(pair).collect())
    } else if is_base64 {
        bytes_of_base64(text).map_or(Body::None, Body::Bytes)
    } else {
        Body::of_text(&mime, Text::literal(text))
    };
}

/// Why a request without a response is left out.
fn unanswered(response: &Json, is_socket: bool) -> Option<Said> {
    let error = response.word("_error");
    match number(response, "status") {
        Some(status) if status != 0.0 => None,
        _ if !error.is_empty() => {
            Some(say!("a request without a response: {}", Said::of_others(error)))
        }
        // The browser left the page before the response. Some recorders have no status for a
        // WebSocket.
        Some(_) if !is_socket => Some(say!("a request that the browser canceled")),
        _ => None,
    }
}

/// The number of a field, which some recorders write as a text.
fn number(json: &Json, key: &str) -> Option<f64> {
    json.str(key)?.parse().ok().filter(|number: &f64| number.is_finite())
}

/// The maps of a list.
fn maps<'j>(json: &'j Json, key: &str) -> impl Iterator<Item = &'j Json> {
    json.list(key).iter().filter(|one| matches!(one, Json::Map(_)))
}

fn fields(request: &Json) -> Vec<(String, Text)> {
    let headers = maps(request, "headers");
    headers.map(|one| (one.word("name").into(), Text::literal(one.word("value")))).collect()
}

/// The text of a response that is searched for values.
fn readable(content: &Json, mime: &str) -> String {
    let is_readable = ["json", "html", "xml", "text/plain", "urlencoded"];
    if !is_readable.iter().any(|kind| mime.contains(kind)) || mime.contains("svg") {
        return String::new();
    }
    let text = content.word("text");
    let text = &text[..text.floor_char_boundary(RECEIVED_BYTES_MAX)];
    match content.word("encoding") {
        "base64" => bytes_of_base64(text)
            .and_then(|bytes| String::from_utf8(bytes).ok())
            .unwrap_or_default(),
        _ => text.to_string(),
    }
}

fn part_of(param: &Json) -> BodyPart {
    let content_type = Some(param.word("contentType")).filter(|kind| !kind.is_empty());
    let part = match param.word("fileName") {
        "" => BodyPart::text(param.word("name"), Text::literal(param.word("value"))),
        file => BodyPart::file(param.word("name"), file),
    };
    BodyPart { content_type: content_type.map(String::from), ..part }
}

/// The parts of a submitted form (RFC 7578).
fn multipart_of(mime: &str, text: &str) -> Vec<BodyPart> {
    let Some(boundary) = mime.split("boundary=").nth(1) else { return Vec::new() };
    let boundary = format!("--{}", boundary.trim_matches('"'));
    // The type is lowercased; the boundary in the body may be in any case.
    let lower = text.to_ascii_lowercase();
    let starts: Vec<usize> = lower.match_indices(&boundary).map(|(at, _)| at).collect();
    let mut parts = Vec::new();
    for pair in starts.windows(2).take(200) {
        let part = &text[pair[0] + boundary.len()..pair[1]];
        let Some((head, body)) = part.split_once("\r\n\r\n") else { continue };
        let attribute = |name: &str| {
            let (_, behind) = head.split_once(&format!(" {name}=\""))?;
            behind.split_once('"').map(|(value, _)| value.to_string())
        };
        let kind = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-type").then(|| value.trim().to_string())
        });
        let body = body.strip_suffix("\r\n").unwrap_or(body);
        let name = attribute("name").unwrap_or_default();
        let part = match attribute("filename").filter(|name| !name.is_empty()) {
            Some(file) => BodyPart::file(name, file),
            None => BodyPart::text(name, Text::literal(body)),
        };
        parts.push(BodyPart { content_type: kind, ..part });
    }
    parts
}

/// The resource type that the browser recorded, or else a guess from response and path.
fn resource(exchange: &Exchange, said: &str) -> Resource {
    match said {
        "document" => return Resource::Document,
        "xhr" | "fetch" | "eventsource" | "websocket" | "preflight" => return Resource::Call,
        "image" | "stylesheet" | "script" | "font" | "media" | "manifest" | "texttrack"
        | "imageset" => return Resource::Asset,
        _ => {}
    }
    if exchange.method != "GET" {
        return Resource::Call;
    }
    let mime = exchange.response.as_ref().map_or("", |response| response.content_type.as_str());
    const MIMES: [&str; 8] =
        ["image/", "font/", "audio/", "video/", "css", "javascript", "wasm", "x-font"];
    let url = exchange.url.to_string();
    let path = url.split(['?', '#']).next().unwrap_or_default();
    const ENDS: [&str; 19] = [
        ".css", ".js", ".mjs", ".map", ".png", ".jpg", ".jpeg", ".gif", ".svg", ".ico", ".webp",
        ".avif", ".woff", ".woff2", ".ttf", ".otf", ".mp4", ".webm", ".mp3",
    ];
    let lower = path.to_ascii_lowercase();
    if MIMES.iter().any(|kind| mime.contains(kind)) || ENDS.iter().any(|end| lower.ends_with(end)) {
        return Resource::Asset;
    }
    match mime.contains("html") {
        true => Resource::Document,
        false => Resource::Call,
    }
}
