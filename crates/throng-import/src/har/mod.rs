//! HAR 1.2: recordings of browsers and proxies. It is read as a stream, so that memory does not
//! grow with the file; bodies are truncated at a limit.

mod entries;
mod socket;
mod time;

use std::cell::RefCell;
use std::io::{BufRead as _, Read};

use serde::de::DeserializeSeed as _;
use throng_base::clean::bytes_without_mark;
use throng_base::{Diagnostic, Said};
use throng_scenario::{Url, bytes_of_base64};

use crate::json::Json;
use crate::model::{
    Body, Exchange, Item, LeftOut, Part, PartContent, Recording, Resource, Response, Session,
    Socket,
};
use crate::text::Text;
use crate::{Options, Refusal};
use entries::{Content, Entries, Entry, Field, PostData};

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
    let reader = RefCell::new(HarReader::default());
    let mut input = std::io::BufReader::new(input);
    // Windows tools start files with a byte order mark.
    if input.fill_buf().is_ok_and(|begin| begin.len() > bytes_without_mark(begin).len()) {
        input.consume("\u{feff}".len());
    }
    let mut json = serde_json::Deserializer::from_reader(input);
    let each = |entry: Entry| reader.borrow_mut().entry(entry);
    let found = Entries { each: &each }.deserialize(&mut json);
    let seen = match found.and_then(|seen| json.end().map(|()| seen)) {
        Ok(seen) => seen,
        Err(error) => return Err(Refusal::of_json(name, &error).of_format("har")),
    };
    let mut reader = reader.into_inner();
    if !seen {
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
    if options.takes_insecure {
        recording.verifies_certificates = Some(false);
    }
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
    fn entry(&mut self, entry: Entry) {
        if self.items.len() >= ENTRIES_MAX {
            self.beyond += 1;
            return;
        }
        let Some(request) = entry.request else {
            let what = say!("an entry without a request");
            return self.left_out.push(LeftOut::new(say!("entry {}", entry.number), what));
        };
        let method = request.method.text().to_ascii_uppercase();
        // Some recorders omit it for requests that they could not see.
        let method = if method.is_empty() { "GET".to_string() } else { method };
        let url = request.url.text();
        let place = say!("entry {}", entry.number);
        let is_socket = url.starts_with("ws://") || url.starts_with("wss://");
        let has_messages = is_socket || entry.messages.is_some();
        let what = entry.response.as_ref().and_then(|it| unanswered(it, has_messages));
        if let Some(what) = what {
            let place = say!("{} {}", &method, url.split('?').next().unwrap_or_default());
            return self.left_out.push(LeftOut::new(place, what));
        }
        let status = entry.response.as_ref().and_then(|response| response.status);
        if let (true, Some(status)) = (is_socket, status.filter(|status| *status >= 200.0)) {
            let what = say!("a WebSocket that the server refused with status {}", status);
            return self.left_out.push(LeftOut::new(place, what));
        }
        if has_messages {
            let time = (time::millis(&entry.started), entry.time.unwrap_or(0.0));
            let messages = entry.messages.unwrap_or_default();
            let sockets = socket::sockets(&url, &request.headers, messages, time);
            let item = |socket| Item::Socket(Box::new(Socket { number: entry.number, ..socket }));
            return self.items.extend(sockets.into_iter().map(item));
        }
        if !(url.starts_with("http://") || url.starts_with("https://")) {
            let scheme = url.split(':').next().unwrap_or_default().chars().take(20);
            let scheme: String = scheme.collect();
            let what = say!("a request with the scheme `{scheme}`");
            return self.left_out.push(LeftOut::new(place, what));
        }
        if method == "CONNECT" || Url::parse(&url).is_err() {
            let what = say!("a request that is not valid");
            return self.left_out.push(LeftOut::new(place, what));
        }
        let mut exchange = Exchange { method, ..Exchange::default() };
        exchange.url = Text::literal(url.split('#').next().unwrap_or_default());
        exchange.headers = fields(&request.headers);
        exchange.begin_ms = time::millis(&entry.started);
        exchange.took_ms = entry.time.unwrap_or(0.0).max(0.0);
        if let Some(post) = request.post {
            self.body(&mut exchange, post);
        }
        if let Some(response) = entry.response {
            self.response(&mut exchange, response);
        }
        exchange.kind = resource(&exchange, &entry.resource_type.text());
        if exchange.kind == Resource::Asset {
            exchange.response.iter_mut().for_each(|response| response.body.clear());
        }
        self.items.push(Item::Http(Box::new(exchange)));
    }

    fn body(&mut self, exchange: &mut Exchange, post: PostData) {
        let mime = post.mime.text().to_ascii_lowercase();
        if post.text.cut || post.text.text.as_deref().is_some_and(|it| it.len() > SENT_BYTES_MAX) {
            let what = say!("a request body larger than 4 MiB");
            exchange
                .left_out
                .push(LeftOut::new(say!("{} {}", exchange.method, exchange.url), what));
            return;
        }
        let text = post.text.text();
        let params = post.params.unwrap_or_default();
        exchange.body = if mime.starts_with("multipart/form-data") {
            remove_header(exchange, "content-type");
            let parts = match params.is_empty() {
                false => params.iter().map(part_of).collect(),
                true => multipart_of(&mime, &text),
            };
            if parts.is_empty() { Body::Text(Text::literal(text)) } else { Body::Multipart(parts) }
        } else if mime.starts_with("application/x-www-form-urlencoded") {
            let pairs = match text.is_empty() && !params.is_empty() {
                true => params.iter().map(|one| (one.name.text(), one.value.text())).collect(),
                false => crate::form::pairs(&text),
            };
            Body::Form(
                pairs.into_iter().map(|(name, value)| (name, value.as_str().into())).collect(),
            )
        } else if post.encoding.text() == "base64" {
            bytes_of_base64(&text).map_or(Body::None, Body::Bytes)
        } else if text.is_empty() {
            Body::None
        } else {
            match mime.contains("json").then(|| Json::of_body(&text.as_str().into())).flatten() {
                Some(json) => Body::Json(json),
                None => Body::Text(Text::literal(text)),
            }
        };
    }

    fn response(&mut self, exchange: &mut Exchange, response: entries::Response) {
        let status = response.status.filter(|status| (100.0..600.0).contains(status));
        let mut content = response.content.unwrap_or_default();
        let headers: Vec<(String, String)> =
            response.headers.iter().map(|one| (one.name.text(), one.value.text())).collect();
        let mime = content.mime.text().to_ascii_lowercase();
        let body = readable(&mut content, &mime);
        let body = match self.kept_bytes + body.len() > RESPONSES_BYTES_MAX {
            true => {
                self.forgotten += 1;
                String::new()
            }
            false => body,
        };
        self.kept_bytes += body.len();
        exchange.response = Some(Response {
            status: status.map(|status| status as u16),
            headers,
            content_type: mime,
            body,
        });
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

/// Why a request without a response is left out.
fn unanswered(response: &entries::Response, is_socket: bool) -> Option<Said> {
    let error = response.error.text();
    match response.status {
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

fn remove_header(exchange: &mut Exchange, name: &str) {
    exchange.headers.retain(|(own, _)| !own.eq_ignore_ascii_case(name));
}

fn fields(fields: &[Field]) -> Vec<(String, Text)> {
    fields.iter().map(|one| (one.name.text(), Text::literal(one.value.text()))).collect()
}

/// The text of a response that is searched for values.
fn readable(content: &mut Content, mime: &str) -> String {
    let is_readable = ["json", "html", "xml", "text/plain", "urlencoded"];
    if !is_readable.iter().any(|kind| mime.contains(kind)) || mime.contains("svg") {
        return String::new();
    }
    let text = content.text.text.take().unwrap_or_default();
    match content.encoding.text() == "base64" {
        true => bytes_of_base64(&text)
            .and_then(|bytes| String::from_utf8(bytes).ok())
            .unwrap_or_default(),
        false => text,
    }
}

fn part_of(param: &entries::Param) -> Part {
    let content = match &param.file_name.text {
        Some(name) if !name.is_empty() => PartContent::File(name.clone()),
        _ => PartContent::Text(Text::literal(param.value.text())),
    };
    let content_type = param.content_type.text.clone().filter(|kind| !kind.is_empty());
    Part { name: param.name.text(), content, content_type }
}

/// The parts of a submitted form (RFC 7578).
fn multipart_of(mime: &str, text: &str) -> Vec<Part> {
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
        let content = match attribute("filename") {
            Some(name) if !name.is_empty() => PartContent::File(name),
            _ => PartContent::Text(Text::literal(body)),
        };
        let name = attribute("name").unwrap_or_default();
        parts.push(Part { name, content, content_type: kind });
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
