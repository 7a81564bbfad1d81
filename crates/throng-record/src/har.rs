//! The recording as a HAR 1.2 file. Each entry overwrites the end of the file, together with a new
//! end, in one write: the file is complete at any time, even if the process is killed.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::header::{self, HeaderMap, HeaderName};
use serde_json::{Value, json};
use throng_base::private::Private as _;
use throng_base::system::write_all_at;
use throng_base::{Clock, Time, form_decoded};
use throng_protocol::http1::content::{ContentDecoder, ContentError};

use crate::entry::{BODY_BYTES_MAX, Captured, Entry, Response, SocketContent, SocketMessage};
use crate::headers::title;

const HEAD: &str = concat!(
    r#"{"log":{"version":"1.2","creator":{"name":"throng","version":""#,
    env!("CARGO_PKG_VERSION"),
    r#""},"entries":["#
);
const END: &str = "\n]}}\n";
/// What recorders write for a body of unknown type.
const NO_TYPE: &str = "x-unknown";

/// See the module's description.
pub struct Har {
    file: File,
    clock: Clock,
    written: Mutex<Written>,
}

/// The state of the file.
#[derive(Debug, Default)]
pub struct Written {
    /// Without the end of the file.
    bytes: u64,
    pub requests: usize,
    /// The number of truncated bodies.
    pub cut: usize,
    /// Why writing stopped.
    pub failed: Option<io::Error>,
}

impl Har {
    /// A new file that only its owner can read, because it contains passwords and cookies.
    ///
    /// # Errors The file exists and must not be overwritten, or it cannot be written.
    pub fn create(path: &Path, overwrite: bool) -> io::Result<Har> {
        if overwrite && path.exists() {
            std::fs::remove_file(path)?;
        }
        let file = OpenOptions::new().write(true).create_new(true).private().open(path)?;
        write_all_at(&file, [HEAD, END].concat().as_bytes(), 0)?;
        let written = Written { bytes: HEAD.len() as u64, ..Written::default() };
        Ok(Har { file, clock: Clock::start(), written: Mutex::new(written) })
    }

    /// Since the recording began.
    pub(crate) fn now(&self) -> Time {
        self.clock.now()
    }

    pub(crate) fn write(&self, entry: &Entry, took: Duration) {
        let json = entry_json(entry, took);
        let mut written = self.written();
        let comma = if written.requests > 0 { "," } else { "" };
        let text = format!("{comma}\n{json}{END}");
        let bodies = [Some(&entry.sent), entry.response.as_ref().map(|it| &it.received)];
        match write_all_at(&self.file, text.as_bytes(), written.bytes) {
            Ok(()) => {
                written.bytes += (text.len() - END.len()) as u64;
                written.requests += 1;
                written.cut += bodies.into_iter().flatten().filter(|it| it.is_cut()).count();
            }
            Err(error) => written.failed = Some(error),
        }
    }

    /// The current state of the file.
    pub fn written(&self) -> MutexGuard<'_, Written> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn entry_json(entry: &Entry, took: Duration) -> Value {
    let waited = entry.response.as_ref().map_or(took, |response| response.waited);
    let mut json = json!({
        "startedDateTime": date(entry.begin),
        "time": millis(took),
        "request": request(entry),
        "response": response(entry.response.as_ref(), entry.error.as_deref()),
        "cache": {},
        "timings": {
            "send": 0,
            "wait": millis(waited),
            "receive": millis(took.saturating_sub(waited)),
        },
    });
    if let Some(kind) = resource_type(entry) {
        json["_resourceType"] = kind.into();
    }
    if let Some(messages) = &entry.messages {
        json["_webSocketMessages"] = messages.iter().map(message).collect();
    }
    json
}

fn request(entry: &Entry) -> Value {
    let mut json = json!({
        "method": entry.method,
        "url": entry.url,
        "httpVersion": entry.version,
        "cookies": [],
        "headers": headers(&entry.headers),
        "queryString": query(&entry.url),
        "headersSize": -1,
        "bodySize": entry.sent.whole,
    });
    if entry.sent.whole > 0 {
        let mime = text_of(&entry.headers, &header::CONTENT_TYPE);
        let (text, is_base64) = text(&mime, &entry.sent.bytes);
        json["postData"] = json!({"mimeType": mime, "text": text});
        if is_base64 {
            json["postData"]["_encoding"] = "base64".into();
        }
        note_cut(&mut json["postData"], &entry.sent);
    }
    json
}

fn response(response: Option<&Response>, error: Option<&str>) -> Value {
    let mut json = match response {
        Some(response) => received(response),
        None => json!({
            "status": 0, "statusText": "", "httpVersion": "", "cookies": [], "headers": [],
            "content": {"size": 0, "mimeType": NO_TYPE},
            "redirectURL": "", "headersSize": -1, "bodySize": -1,
        }),
    };
    if let Some(error) = error {
        json["_error"] = error.into();
    }
    json
}

fn received(response: &Response) -> Value {
    let mime = text_of(&response.headers, &header::CONTENT_TYPE);
    let mime = if mime.is_empty() { NO_TYPE.to_string() } else { mime };
    let decoded = decoded(&response.headers, &response.received);
    let (text, is_base64) = text(&mime, &decoded);
    let mut content = json!({"size": decoded.len(), "mimeType": mime, "text": text});
    if is_base64 {
        content["encoding"] = "base64".into();
    }
    note_cut(&mut content, &response.received);
    let reason = hyper::StatusCode::from_u16(response.status).ok();
    json!({
        "status": response.status,
        "statusText": reason.and_then(|it| it.canonical_reason()).unwrap_or_default(),
        "httpVersion": response.version,
        "cookies": [],
        "headers": headers(&response.headers),
        "content": content,
        "redirectURL": text_of(&response.headers, &header::LOCATION),
        "headersSize": -1,
        "bodySize": response.received.whole,
    })
}

fn note_cut(json: &mut Value, captured: &Captured) {
    if captured.is_cut() {
        let (kept, whole) = (BODY_BYTES_MAX >> 20, captured.whole);
        json["comment"] = format!("the first {kept} MiB of {whole} bytes").into();
    }
}

/// As in Chrome.
fn message(message: &SocketMessage) -> Value {
    let (opcode, data) = match &message.content {
        SocketContent::Text(text) => (1, text.clone()),
        SocketContent::Binary(bytes) => (2, STANDARD.encode(bytes)),
    };
    let kind = if message.is_sent { "send" } else { "receive" };
    json!({"type": kind, "time": message.time.as_secs_f64(), "opcode": opcode, "data": data})
}

/// The kind of resource, from browser headers (Fetch Metadata, 2.1).
fn resource_type(entry: &Entry) -> Option<&'static str> {
    if entry.messages.is_some() {
        return Some("websocket");
    }
    Some(match entry.headers.get("sec-fetch-dest")?.to_str().ok()? {
        "document" | "iframe" | "frame" => "document",
        "image" => "image",
        "style" => "stylesheet",
        "script" | "worker" | "sharedworker" | "serviceworker" => "script",
        "font" => "font",
        "audio" | "video" => "media",
        "track" => "texttrack",
        "manifest" => "manifest",
        "empty" => "fetch",
        _ => return None,
    })
}

fn date(since_epoch: Duration) -> String {
    let millis = i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX);
    let moment = jiff::Timestamp::from_millisecond(millis).unwrap_or(jiff::Timestamp::MAX);
    format!("{moment:.3}")
}

fn millis(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

fn headers(headers: &HeaderMap) -> Value {
    let pair = |(name, value): (&HeaderName, &header::HeaderValue)| {
        let value = String::from_utf8_lossy(value.as_bytes());
        json!({"name": title(name.as_str()), "value": value})
    };
    headers.iter().map(pair).collect()
}

fn text_of(headers: &HeaderMap, name: &HeaderName) -> String {
    let value = headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()));
    value.unwrap_or_default().into_owned()
}

fn query(url: &str) -> Value {
    let query = url.split_once('?').map_or("", |(_, query)| query);
    let pairs = query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        json!({"name": form_decoded(name), "value": form_decoded(value)})
    });
    pairs.collect()
}

/// A body without its content codings, as far as they are supported.
fn decoded(headers: &HeaderMap, captured: &Captured) -> Vec<u8> {
    let codings: Vec<&[u8]> =
        headers.get_all(header::CONTENT_ENCODING).iter().map(|it| it.as_bytes()).collect();
    let decoder = ContentDecoder::new(&codings.join(&b", "[..]), BODY_BYTES_MAX as u64);
    match decoder {
        Ok(Some(mut decoder)) => {
            let mut out = Vec::new();
            // A truncated or damaged body is readable up to there.
            let _ = decoder.write(&captured.bytes, &mut |piece| {
                out.extend_from_slice(piece);
                Ok::<(), ContentError>(())
            });
            out
        }
        _ => captured.bytes.clone(),
    }
}

/// A body as text, or as base64 if it is not text; true for base64.
fn text(mime: &str, bytes: &[u8]) -> (String, bool) {
    const TEXTS: [&str; 6] = ["text/", "json", "xml", "javascript", "urlencoded", "multipart/"];
    let mime = mime.to_ascii_lowercase();
    match std::str::from_utf8(bytes) {
        Ok(text) => (text.to_string(), false),
        Err(_) if TEXTS.iter().any(|kind| mime.contains(kind)) => {
            (String::from_utf8_lossy(bytes).into_owned(), false)
        }
        Err(_) => (STANDARD.encode(bytes), true),
    }
}

#[cfg(test)]
mod tests;
