//! The settings of a `bench` command line, and the parts of its scenario that all protocols share.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use throng_base::units::write_duration;
use throng_extract::JsonPath;
use throng_program::{Family, HttpVersion, Scheme};

use crate::message::matchers::JsonMatcher;
use crate::native::{self, Native, UrlSays};
use crate::read::{foreign, template};
use crate::url::{Url, encode_path};

mod flags;
pub(crate) mod requests;
mod route;
mod shape;
mod urls;

use crate::native::schemes_with;
use crate::quote::{quoted, scalar, text};
pub use flags::{unescape, without_effect};
pub use requests::write_requests;
pub use route::BenchRoute;
pub use shape::{BenchShape, BenchStage, parse_rates};
pub use urls::{BenchUrl, URLS_MAX, parse_urls, read_urls};

/// The settings of a command line.
#[derive(Clone, Debug, Default)]
pub struct Bench {
    /// Including the path: `http://127.0.0.1:8080/`.
    pub url: String,
    /// None selects GET without a body, POST with one.
    pub method: Option<String>,
    pub headers: Vec<(String, String)>,
    pub body: BenchBody,
    /// Number of concurrent users; 0 counts as 1.
    pub users: u64,
    pub iterations: Option<u64>,
    pub time: Option<Duration>,
    /// Iterations per second.
    pub rate: Option<f64>,
    pub shape: BenchShape,
    /// Replaces the path of the URL.
    pub urls: Vec<BenchUrl>,
    /// None is the default: keep-alive.
    pub keep_alive: Option<bool>,
    /// False fails a request that the target did not process, instead of resending it.
    pub resend: Option<bool>,
    pub timeout: Option<Duration>,
    pub connect_timeout: Option<Duration>,
    pub basic_auth: Option<(String, String)>,
    /// Use digest authentication.
    pub digest: bool,
    /// As in a check: `200`, `2xx`, `200..299`, or a comma-separated list.
    pub expect_status: Option<String>,
    pub expect_json: Vec<(JsonPath, JsonMatcher)>,
    pub expect_text: Option<String>,
    /// Some(false) accepts any certificate.
    pub verify_tls: Option<bool>,
    pub ca: Option<PathBuf>,
    pub certificate: Option<PathBuf>,
    pub key: Option<PathBuf>,
    pub server_name: Option<String>,
    pub resumption: Option<bool>,
    pub follow_redirects: bool,
    pub redirects_max: Option<u8>,
    pub deflate: bool,
    pub http_version: HttpVersion,
    /// Concurrent iterations on each HTTP/2 connection.
    pub streams: Option<u16>,
    /// WebSocket sub-protocols.
    pub protocols: Vec<String>,
    /// Flags of a single protocol, with their values; flags without a value are `true`.
    pub flags: Vec<(&'static str, String)>,
    /// A binary message instead of a body.
    pub hex_message: Option<Vec<u8>>,
    /// Where a response on TCP ends.
    pub until: BenchUntil,
    pub think: Option<Duration>,
    /// The maximum delay of due work; None is the default.
    pub precision: Option<Duration>,
    /// The duration of an initial phase that is not measured.
    pub warm_up: Option<Duration>,
    pub cookies: Option<bool>,
    pub family: Option<Family>,
    /// As in `source`: addresses, ranges, networks, interfaces.
    pub sources: Vec<String>,
    pub route: BenchRoute,
    /// All users connect, stay this long together, and leave.
    pub hold: Option<Duration>,
    /// The interval at which users that stay send a heartbeat.
    pub heartbeat: Option<Duration>,
    /// The heartbeat message; None is a ping, which only WebSocket has.
    pub heartbeat_message: Option<String>,
    pub seed: Option<u64>,
    pub thresholds: Vec<String>,
    /// Conditions that end the run early.
    pub abort_when: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum BenchBody {
    #[default]
    None,
    Text(String),
    Bytes(Vec<u8>),
    /// Read when the scenario is compiled.
    File(PathBuf),
    Form(Vec<FormPart>),
}

/// A part of a form with files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormPart {
    pub name: String,
    pub content: FormContent,
    pub filename: Option<String>,
    pub content_type: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FormContent {
    Text(String),
    File(PathBuf),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum BenchUntil {
    #[default]
    Any,
    Delimiter(String),
    Length(u64),
    /// A regular expression.
    Pattern(String),
}

impl Bench {
    /// The scheme of its URL, if throng knows it.
    pub fn scheme(&self) -> Option<Scheme> {
        Scheme::named(self.url.split_once("://")?.0)
    }

    /// Whether its protocol has a verb.
    pub(crate) fn has_verb(&self, verb: &str) -> bool {
        native::of_scheme(self.scheme()).verbs.contains(&verb)
    }

    /// Whether requests are calls of methods.
    pub fn calls(&self) -> bool {
        native::of_scheme(self.scheme()).methods
    }

    /// The values of a flag that only one protocol has.
    pub fn given(&self, flag: &str) -> impl Iterator<Item = &str> {
        let values = self.flags.iter().filter(move |(name, _)| *name == flag);
        values.map(|(_, value)| value.as_str())
    }

    /// True if its messages are raw bytes: text can contain escapes, and there are no pings.
    pub fn is_raw(&self) -> bool {
        let is_raw = |row: &Native| !row.paths && !row.pings;
        self.scheme().is_some_and(|scheme| is_raw(native::of_scheme(Some(scheme))))
    }
}

/// The default duration of a run.
pub const TIME: Duration = Duration::from_secs(10);

/// The default number of users that connect per second with `hold`.
pub const FILL_RATE: f64 = 10_000.0;

/// How much faster users leave than they connected, since leaving puts little load on the target.
const DRAIN_FACTOR: f64 = 2.0;

/// The scenario as YAML; `own` writes the session of a protocol with its own verbs.
pub(crate) fn write(bench: &Bench, own: impl FnOnce(&[&str]) -> Option<Writes>) -> String {
    let mut writer = Writer::new(bench);
    let origin = writer.origin.clone();
    writer.line(&format!("name: {}", scalar(&format!("bench {origin}"))));
    // Credentials and a database belong to the target.
    let target = match writer.native().url {
        UrlSays::Place => &origin,
        UrlSays::Login | UrlSays::Database => &bench.url,
    };
    writer.line(&format!("target: {}", bench.route.target(target)));
    writer.files("proto", "--proto");
    writer.files("proto_path", "--proto-path");
    writer.tls();
    writer.connection();
    writer.line("sessions:\n  bench:");
    match own(writer.native().verbs) {
        Some(write) => write(&mut writer),
        None => writer.session(),
    }
    writer.load();
    writer.thresholds();
    writer.out
}

/// Bytes as the value of `text`, or of `hex` if they are not a text that YAML can contain.
fn text_or_hex(bytes: &[u8]) -> (&'static str, String) {
    match std::str::from_utf8(bytes) {
        Ok(value) if is_writable(value) => ("text", text(value)),
        _ => ("hex", hex(bytes)),
    }
}

fn one_or_list(values: &[String]) -> String {
    match values {
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    }
}

/// Writes the session of a protocol.
pub(crate) type Writes = fn(&mut Writer<'_>);

pub(crate) struct Writer<'b> {
    pub(crate) bench: &'b Bench,
    scheme: Scheme,
    /// The URL without its path.
    origin: String,
    pub(crate) path: String,
    pub(crate) auth: Option<(String, String)>,
    out: String,
}

impl<'b> Writer<'b> {
    fn new(bench: &'b Bench) -> Writer<'b> {
        let url = Url::parse(&bench.url).ok();
        let scheme = url.as_ref().map_or(Scheme::Http, |url| url.scheme);
        let origin = url.as_ref().map_or_else(|| bench.url.clone(), Url::origin);
        let path = match url.as_ref().map(|url| encode_path(&url.path)) {
            Some(path) if !path.is_empty() => path,
            _ => "/".to_string(),
        };
        let auth = bench.basic_auth.clone().or(url.and_then(|url| url.user));
        Writer { bench, scheme, origin, path, auth, out: String::new() }
    }
}

impl Writer<'_> {
    pub(crate) fn line(&mut self, line: &str) {
        self.out.push_str(line);
        self.out.push('\n');
    }

    fn section(&mut self, name: &str, entries: &[String]) {
        if !entries.is_empty() {
            self.line(&format!("{name}: {{{}}}", entries.join(", ")));
        }
    }

    /// Files from a flag.
    fn files(&mut self, key: &str, flag: &str) {
        let paths: Vec<String> = self.bench.given(flag).map(text).collect();
        if !paths.is_empty() {
            self.line(&format!("{key}: {}", one_or_list(&paths)));
        }
    }

    fn tls(&mut self) {
        let bench = self.bench;
        let mut entries = Vec::new();
        let mut add = |key: &str, value: String| entries.push(format!("{key}: {value}"));
        if let Some(verify) = bench.verify_tls.filter(|verify| !verify) {
            add("verify", verify.to_string());
        }
        for (key, path) in
            [("ca", &bench.ca), ("certificate", &bench.certificate), ("key", &bench.key)]
        {
            if let Some(path) = path {
                add(key, text(&path.to_string_lossy()));
            }
        }
        if let Some(name) = &bench.server_name {
            add("server_name", text(name));
        }
        if let Some(resumption) = bench.resumption {
            add("resumption", resumption.to_string());
        }
        // The URL of a database says whether to use TLS.
        if self.scheme.may_be_secure() {
            self.section("tls", &entries);
        }
    }

    fn connection(&mut self) {
        let bench = self.bench;
        let mut entries = Vec::new();
        let mut add = |key: &str, value: String| entries.push(format!("{key}: {value}"));
        let http = matches!(self.scheme, Scheme::Http | Scheme::Https);
        if bench.keep_alive == Some(false) && http {
            add("keep_alive", "false".into());
        }
        if bench.resend == Some(false) && http {
            add("resend", "never".into());
        }
        if let Some(timeout) = bench.connect_timeout {
            add("timeout", write_duration(timeout));
        }
        if let Some(cookies) = bench.cookies {
            add("cookies", cookies.to_string());
        }
        if bench.deflate {
            add("deflate", "true".into());
        }
        if bench.http_version != HttpVersion::default() && http {
            add("http_version", quoted(bench.http_version.word()));
        }
        if let Some(streams) =
            bench.streams.filter(|_| schemes_with("--streams").contains(&self.scheme))
        {
            add("streams", streams.to_string());
        }
        match bench.family {
            Some(Family::V4) => add("family", "v4".into()),
            Some(Family::V6) => add("family", "v6".into()),
            Some(Family::Any) | None => {}
        }
        entries.extend(bench.route.entries());
        self.section("connection", &entries);
        let sources: Vec<String> = bench.sources.iter().map(|source| quoted(source)).collect();
        if !sources.is_empty() {
            self.line(&format!("source: {{addresses: {}}}", one_or_list(&sources)));
        }
        if let Some(redirects) = bench.redirects_max {
            self.line(&format!("limits: {{redirects: {redirects}}}"));
        }
        if let Some(precision) = bench.precision {
            self.line(&format!("precision: {}", write_duration(precision)));
        }
        if let Some(seed) = bench.seed {
            self.line(&format!("seed: {seed}"));
        }
    }

    fn native(&self) -> &'static Native {
        native::of_scheme(Some(self.scheme))
    }

    fn session(&mut self) {
        if self.native().verbs.contains(&"http") {
            return self.http_session();
        }
        if self.stays() || self.message().is_some() {
            return self.keep(Self::connect, Self::request);
        }
        let bench = self.bench;
        if bench.keep_alive == Some(false) || bench.iterations.is_some() || bench.rate.is_some() {
            self.line("    steps:                 # nothing to send: connect and disconnect");
            self.connect();
            self.line("      - disconnect");
            return self.think();
        }
        self.line("    before:                # once, when the user starts");
        self.connect();
        self.line("    steps:                 # nothing to send: the user listens");
        self.line("      - stay: forever");
    }

    /// The session of users with their own connection: the step that opens it, and the steps that
    /// they repeat on it.
    pub(crate) fn keep(&mut self, connect: fn(&mut Self), step: fn(&mut Self)) {
        if self.stays() {
            self.line("    steps:");
            connect(self);
            step(self);
            self.line("      - stay: forever");
            return self.heartbeat();
        }
        if self.bench.keep_alive == Some(false) {
            self.line("    steps:                 # each iteration opens a connection");
            connect(self);
            step(self);
            self.line("      - disconnect");
        } else {
            self.line("    before:                # once, when the user starts");
            connect(self);
            self.line("    steps:                 # repeatedly");
            step(self);
        }
        self.think();
    }

    /// True if users only stay: their message is sent once, like a login.
    pub(crate) fn stays(&self) -> bool {
        self.bench.hold.is_some() || self.bench.heartbeat.is_some()
    }

    fn heartbeat(&mut self) {
        if let Some(every) = self.bench.heartbeat {
            let message = match &self.bench.heartbeat_message {
                None => "ping: true".to_string(),
                Some(value) => {
                    let (key, value) = text_or_hex(value.as_bytes());
                    format!("{key}: {value}")
                }
            };
            let every = write_duration(every);
            self.line(&format!("        heartbeat: {{{message}, every: {every}}}"));
        }
    }

    pub(crate) fn think(&mut self) {
        if let Some(think) = self.bench.think.filter(|think| !think.is_zero()) {
            self.line(&format!("      - think: {}", write_duration(think)));
        }
    }

    fn http_session(&mut self) {
        self.line("    steps:");
        if !self.listed() {
            self.http_step();
        }
        self.think();
    }

    fn http_step(&mut self) {
        let bench = self.bench;
        let method = self.method();
        self.line(&format!("      - http: {}", text(&format!("{method} {}", self.path))));
        self.modifiers();
        match (self.message(), &bench.body) {
            (Some(("text", value)), _) => self.line(&format!("        body: {value}")),
            (Some((key, value)), _) => self.line(&format!("        body: {{{key}: {value}}}")),
            (None, BenchBody::Form(parts)) => {
                self.line("        multipart:");
                parts.iter().for_each(|part| self.part(part));
            }
            (None, _) => {}
        }
        if bench.follow_redirects {
            self.line("        redirects: follow");
        }
        self.timeout();
        self.checks();
    }

    fn method(&self) -> String {
        let bench = self.bench;
        let has_body = bench.body != BenchBody::None || bench.hex_message.is_some();
        bench.method.clone().unwrap_or(if has_body { "POST" } else { "GET" }.into())
    }

    /// Headers and authentication.
    fn modifiers(&mut self) {
        self.pairs("headers");
        if let Some((user, password)) = &self.auth {
            let scheme = if self.bench.digest { ", scheme: digest" } else { "" };
            let (user, password) = (text(user), text(password));
            self.line(&format!("        auth: {{user: {user}, password: {password}{scheme}}}"));
        }
    }

    /// Headers, as headers or as metadata.
    pub(crate) fn pairs(&mut self, key: &str) {
        let mut names: Vec<&str> = Vec::new();
        for (name, _) in &self.bench.headers {
            if !names.iter().any(|other| other.eq_ignore_ascii_case(name)) {
                names.push(name);
            }
        }
        if !names.is_empty() {
            self.line(&format!("        {key}:"));
        }
        for name in names {
            let is_bytes = key == "metadata" && name.to_ascii_lowercase().ends_with("-bin");
            let written = |value: &str| if is_bytes { escaped(value) } else { text(value) };
            let values = self.bench.headers.iter();
            let values = values.filter(|(other, _)| other.eq_ignore_ascii_case(name));
            let mut values: Vec<&str> = values.map(|(_, value)| value.as_str()).collect();
            let joined = values.join("; ");
            if values.len() > 1 && stands_once(name) {
                // The last header wins; cookies are joined (RFC 6265, 5.4).
                let is_cookie = name.eq_ignore_ascii_case("cookie");
                values = if is_cookie { vec![&joined] } else { values.split_off(values.len() - 1) };
            }
            let values: Vec<String> = values.into_iter().map(written).collect();
            self.line(&format!("          {}: {}", scalar(name), one_or_list(&values)));
        }
    }

    pub(crate) fn timeout(&mut self) {
        if let Some(timeout) = self.bench.timeout {
            self.line(&format!("        timeout: {}", write_duration(timeout)));
        }
    }

    fn part(&mut self, part: &FormPart) {
        let mut line = format!("          - {{name: {}", text(&part.name));
        let _ = match &part.content {
            FormContent::Text(value) => write!(line, ", value: {}", text(value)),
            FormContent::File(path) => write!(line, ", file: {}", text(&path.to_string_lossy())),
        };
        if let Some(filename) = &part.filename {
            let _ = write!(line, ", filename: {}", text(filename));
        }
        if let Some(content_type) = &part.content_type {
            let _ = write!(line, ", type: {}", text(content_type));
        }
        self.line(&(line + "}"));
    }

    fn has_status(&self) -> bool {
        schemes_with("--expect-status").contains(&self.scheme)
    }

    pub(crate) fn checks(&mut self) {
        let bench = self.bench;
        let mut entries = Vec::new();
        if let Some(status) = bench.expect_status.as_ref().filter(|_| self.has_status()) {
            let list: Vec<String> = status.split(',').map(|one| scalar(one.trim())).collect();
            entries.push(format!("status: {}", one_or_list(&list)));
        }
        if let Some(matcher) = &bench.expect_text {
            entries.push(format!("text: {}", scalar(&wanted(matcher))));
        }
        if !bench.expect_json.is_empty() {
            // Of two expectations for one field, the last one wins, because a map has each key
            // once.
            let mut fields: Vec<(String, String)> = Vec::new();
            for (path, matcher) in &bench.expect_json {
                let path = path.to_string();
                fields.retain(|(other, _)| *other != path);
                fields.push((path, json_want(matcher)));
            }
            let fields: Vec<String> = fields
                .iter()
                .map(|(path, matcher)| format!("{}: {matcher}", quoted(path)))
                .collect();
            entries.push(format!("json: {{{}}}", fields.join(", ")));
        }
        if !entries.is_empty() {
            self.line(&format!("        check: {{{}}}", entries.join(", ")));
        }
    }

    fn connect(&mut self) {
        if !matches!(self.scheme, Scheme::Ws | Scheme::Wss) {
            return self.line("      - connect");
        }
        self.line(&format!("      - connect: {}", text(&self.path)));
        self.modifiers();
        if !self.bench.protocols.is_empty() {
            let list: Vec<String> = self.bench.protocols.iter().map(|name| text(name)).collect();
            self.line(&format!("        protocols: [{}]", list.join(", ")));
        }
    }

    /// The message or body, if any: the key and its value.
    pub(crate) fn message(&self) -> Option<(&'static str, String)> {
        if let Some(bytes) = &self.bench.hex_message {
            return Some(("hex", hex(bytes)));
        }
        match &self.bench.body {
            BenchBody::Text(value) => Some(text_or_hex(value.as_bytes())),
            BenchBody::Bytes(bytes) => Some(text_or_hex(bytes)),
            BenchBody::File(path) => Some(("file", text(&path.to_string_lossy()))),
            BenchBody::None | BenchBody::Form(_) => None,
        }
    }

    fn request(&mut self) {
        let Some((key, value)) = self.message() else { return };
        self.line(&format!("      - request: {{{key}: {value}}}"));
        let until = match &self.bench.until {
            BenchUntil::Any => None,
            BenchUntil::Delimiter(delimiter) => {
                Some(format!("{{delimiter: {}}}", quoted(delimiter)))
            }
            BenchUntil::Length(length) => Some(format!("{{length: {length}}}")),
            BenchUntil::Pattern(pattern) => Some(format!("{{pattern: {}}}", text(pattern))),
        };
        if let Some(until) = until {
            self.line(&format!("        expect: {until}"));
        }
        self.timeout();
        self.checks();
    }

    fn load(&mut self) {
        let bench = self.bench;
        let users = bench.users.max(1);
        if let Some(hold) = bench.hold {
            return self.fill_and_drain(users, hold);
        }
        if self.shaped(users) {
            return;
        }
        let rate = bench.rate.map(|rate| format!("{rate}/s"));
        let steady = match &rate {
            Some(rate) => format!("iterations: {rate}, users: {users}"),
            None => format!("users: {users}"),
        };
        self.line("load:");
        if let Some(time) = bench.warm_up.filter(|time| !time.is_zero()) {
            let time = write_duration(time);
            self.line(&format!("  - {{name: warm-up, {steady}, for: {time}, measured: false}}"));
        }
        let time = bench.time.map(|time| format!(", for: {}", write_duration(time)));
        let line = match (bench.iterations, rate) {
            (Some(total), Some(rate)) => format!(
                "iterations: {{total: {total}, rate: {rate}}}, users: {users}{}",
                time.unwrap_or_default()
            ),
            (Some(total), None) => {
                format!("iterations: {total}, users: {users}{}", time.unwrap_or_default())
            }
            (None, _) => format!(
                "{steady}{}",
                time.unwrap_or_else(|| format!(", for: {}", write_duration(TIME)))
            ),
        };
        self.line(&format!("  - {{name: bench, {line}}}"));
    }

    fn fill_and_drain(&mut self, users: u64, hold: Duration) {
        let rate = self.bench.rate.unwrap_or(FILL_RATE);
        let (drain, hold) = (rate * DRAIN_FACTOR, write_duration(hold));
        self.line("load:");
        self.line(&format!("  - {{name: fill, users: {{to: {users}, rate: {rate}/s}}}}"));
        self.line(&format!("  - {{name: hold, for: {hold}}}"));
        self.line(&format!("  - {{name: drain, users: {{to: 0, rate: {drain}/s}}}}"));
    }

    fn thresholds(&mut self) {
        let bench = self.bench;
        let lists = [("thresholds:", &bench.thresholds), ("abort_when:", &bench.abort_when)];
        for (key, conditions) in lists.into_iter().filter(|(_, all)| !all.is_empty()) {
            self.line(key);
            for condition in conditions {
                self.line(&format!("  - {}", text(condition)));
            }
        }
    }
}

/// YAML can express NUL and other controls, but hexadecimal shows better what is sent.
fn is_writable(body: &str) -> bool {
    !body.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t'))
}

fn hex(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() * 2 + 2);
    out.push('"');
    for byte in bytes {
        let _ = write!(out, "{byte:02x}");
    }
    out.push('"');
    out
}

/// A text that a response must contain, even if it looks like an operator.
fn wanted(text: &str) -> String {
    let compares =
        crate::message::matchers::parse_comparison(text).is_some() || foreign::sign(text).is_some();
    // A leading expression makes it a text.
    let begin = if compares { "${''}" } else { "" };
    format!("{begin}{}", template::escape(text))
}

fn json_want(matcher: &JsonMatcher) -> String {
    match matcher {
        JsonMatcher::Text(value) => quoted(&wanted(value)),
        JsonMatcher::Number(value) => value.to_text().to_string(),
        JsonMatcher::Bool(value) => format!("{value}"),
        JsonMatcher::Null => "null".into(),
        JsonMatcher::Present => "present".into(),
        JsonMatcher::Absent => "absent".into(),
    }
}

/// Headers that a request has at most once (RFC 9110, 5.3, and their definitions).
fn stands_once(name: &str) -> bool {
    const ONCE: [&str; 17] = [
        "authorization",
        "content-type",
        "cookie",
        "date",
        "from",
        "host",
        "if-modified-since",
        "if-range",
        "if-unmodified-since",
        "last-event-id",
        "max-forwards",
        "origin",
        "proxy-authorization",
        "range",
        "referer",
        "retry-after",
        "user-agent",
    ];
    ONCE.iter().any(|once| name.eq_ignore_ascii_case(once))
}

/// Characters that are bytes, as escapes.
fn escaped(value: &str) -> String {
    let escapes: String = value.chars().map(|c| format!("\\x{:02x}", u32::from(c))).collect();
    format!("\"{escapes}\"")
}
