//! The result of every reader: the actions of recorded users, or the operations of a service. It is
//! independent of the input format and of YAML.

use std::path::PathBuf;
use std::time::Duration;

use throng_base::Said;

use crate::form::text_pairs;
use crate::json::Json;
use crate::text::Text;

#[derive(Clone, Debug, Default)]
pub(crate) struct Recording {
    pub(crate) name: String,
    /// The base URL of paths without a host.
    pub(crate) base: Option<Text>,
    pub(crate) variables: Vec<Variable>,
    pub(crate) tables: Vec<Table>,
    pub(crate) setup: Vec<Item>,
    pub(crate) teardown: Vec<Item>,
    pub(crate) sessions: Vec<Session>,
    pub(crate) load: Vec<Phase>,
    /// In the scenario language.
    pub(crate) thresholds: Vec<String>,
    pub(crate) is_insecure: bool,
    /// A file with the certificates to trust instead of the system's.
    pub(crate) authorities: Option<PathBuf>,
    /// Omissions outside sessions.
    pub(crate) left_out: Vec<LeftOut>,
}

/// An omission of the scenario, and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// `line 12`, a name, or nothing.
    pub place: Said,
    pub what: Said,
    /// The number of omissions of this kind.
    pub count: usize,
}

impl LeftOut {
    pub(crate) fn new(place: Said, what: Said) -> LeftOut {
        LeftOut { place, what, count: 1 }
    }

    pub(crate) fn at_line(line: usize, what: Said) -> LeftOut {
        LeftOut::new(say!("line {line}"), what)
    }

    pub(crate) fn of_all(count: usize, what: Said) -> LeftOut {
        LeftOut { place: Said::default(), what, count }
    }

    /// `WHAT (PLACE)`
    pub fn said(&self) -> Said {
        match self.place.is_empty() {
            true => self.what.clone(),
            false => say!("{} ({})", &self.what, &self.place),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Variable {
    pub(crate) name: String,
    /// `None`: it is a secret, or the file does not set it.
    pub(crate) value: Option<Text>,
    /// The environment variable.
    pub(crate) env: Option<String>,
    pub(crate) is_secret: bool,
}

impl Variable {
    /// A secret is read from the environment and is never written to the file.
    pub(crate) fn secret(name: &str) -> Variable {
        let env = Some(name.to_ascii_uppercase());
        Variable { name: name.into(), value: None, env, is_secret: true }
    }

    /// Whoever runs the scenario gives its value.
    pub(crate) fn unknown(name: impl Into<String>) -> Variable {
        Variable { name: name.into(), value: None, env: None, is_secret: false }
    }

    pub(crate) fn plain(name: &str, value: Text) -> Variable {
        Variable { name: name.into(), value: Some(value), env: None, is_secret: false }
    }
}

/// Values for users: a CSV file that is written beside the scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Table {
    pub(crate) name: String,
    /// Relative to the scenario.
    pub(crate) file: String,
    pub(crate) columns: Vec<String>,
    pub(crate) row: Vec<String>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Session {
    pub(crate) name: String,
    pub(crate) weight: Option<u64>,
    pub(crate) users: Option<u64>,
    pub(crate) before: Vec<Item>,
    pub(crate) steps: Vec<Item>,
    pub(crate) after: Vec<Item>,
}

#[derive(Clone, Debug)]
pub(crate) enum Item {
    Http(Box<Exchange>),
    Socket(Box<Socket>),
    Think(Think),
    /// Steps under one name.
    Group(String, Vec<Item>),
    Repeat(String, Vec<Item>),
    /// A name for the item, the items, and the steps for each.
    ForEach(String, Vec<String>, Vec<Item>),
    If(String, Vec<Item>),
    Choose(Vec<(u64, Vec<Item>)>),
    Parallel(Vec<Vec<Item>>),
    LeftOut(LeftOut),
    Note(String),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Think {
    Fixed(Duration),
    Range(Duration, Duration),
    Normal(Duration, Duration),
    Exponential(Duration),
    Value(String),
}

/// A request, and the known part of its response.
#[derive(Clone, Debug, Default)]
pub(crate) struct Exchange {
    /// Set by a reader that adds to a request later.
    pub(crate) id: usize,
    pub(crate) method: String,
    /// With a scheme and a host, or only a path.
    pub(crate) url: Text,
    pub(crate) name: Option<String>,
    pub(crate) headers: Vec<(String, Text)>,
    pub(crate) cookies: Vec<(String, Text)>,
    pub(crate) query: Vec<(String, Text)>,
    pub(crate) body: Body,
    pub(crate) auth: Option<Auth>,
    pub(crate) checks: Vec<Check>,
    pub(crate) saves: Vec<(String, Save)>,
    pub(crate) follow_redirects: bool,
    pub(crate) timeout: Option<Duration>,
    pub(crate) response: Option<Response>,
    pub(crate) kind: Resource,
    /// Milliseconds since 1970, and the duration.
    pub(crate) begin_ms: Option<f64>,
    pub(crate) took_ms: f64,
    pub(crate) left_out: Vec<LeftOut>,
    /// The name of the target, after hosts became targets; `None` is the scenario's.
    pub(crate) target: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Body {
    #[default]
    None,
    Json(Json),
    Form(Vec<(String, Text)>),
    Text(Text),
    Multipart(Vec<BodyPart>),
    Bytes(Vec<u8>),
    /// An existing file.
    File(String),
}

impl Body {
    /// Each text of a structured body, with the name of its field.
    pub(crate) fn each_field(&mut self, visit: &mut dyn FnMut(&str, &mut Text)) {
        match self {
            Body::Json(json) => json.each_text(visit),
            Body::Form(pairs) => pairs.iter_mut().for_each(|(name, value)| visit(name, value)),
            Body::Multipart(parts) => parts.iter_mut().for_each(|part| {
                if let PartContent::Text(text) = &mut part.content {
                    visit(&part.name, text);
                }
            }),
            Body::None | Body::Text(_) | Body::Bytes(_) | Body::File(_) => {}
        }
    }

    /// A text with this content type, or a part of its name.
    pub(crate) fn of_text(mime: &str, text: Text) -> Body {
        if text.is_empty() {
            return Body::None;
        }
        if mime.contains("urlencoded") && text.split_once('=').is_some() {
            return Body::Form(text_pairs(&text));
        }
        let json = mime.contains("json").then(|| Json::of_body(&text)).flatten();
        json.map_or(Body::Text(text), Body::Json)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BodyPart {
    pub(crate) name: String,
    pub(crate) content: PartContent,
    pub(crate) content_type: Option<String>,
}

impl BodyPart {
    pub(crate) fn text(name: impl Into<String>, text: Text) -> BodyPart {
        BodyPart { name: name.into(), content: PartContent::Text(text), content_type: None }
    }

    pub(crate) fn file(name: impl Into<String>, path: impl Into<String>) -> BodyPart {
        BodyPart { name: name.into(), content: PartContent::File(path.into()), content_type: None }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PartContent {
    Text(Text),
    /// The content is unknown: a small file is written beside the scenario.
    File(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Auth {
    pub(crate) user: Text,
    pub(crate) password: Text,
    pub(crate) is_digest: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Check {
    Status(Vec<String>),
    Contains(Text),
    Lacks(Text),
    Matches(String),
    /// A header and its value; None: present.
    Header(String, Option<Text>),
    /// A path as in `json.`, and its value; `None`: present.
    Json(String, Option<Json>),
    TimeBelow(Duration),
    Size(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Save {
    Json(String),
    JsonPath(String),
    Header(String),
    Cookie {
        name: String,
        /// Requests send the value percent-decoded.
        is_encoded: bool,
    },
    Css(String),
    XPath(String),
    Regex(String),
    Body,
    Status,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Response {
    /// `None`: not recorded.
    pub(crate) status: Option<u16>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) content_type: String,
    /// Only for texts that are searched for values.
    pub(crate) body: String,
}

/// The kind of resource that a request loads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Resource {
    Document,
    #[default]
    Call,
    /// Images, scripts, style sheets, fonts, media.
    Asset,
}

/// A WebSocket with all its messages, or with some of them: other steps may be in between.
#[derive(Clone, Debug, Default)]
pub(crate) struct Socket {
    /// The number of the connection in the recording.
    pub(crate) number: usize,
    /// An earlier item opens the connection, and a later one closes it.
    pub(crate) continues: bool,
    pub(crate) stays_open: bool,
    /// The name of the connection, if there are several.
    pub(crate) name: Option<String>,
    /// With a scheme and a host.
    pub(crate) url: Text,
    pub(crate) headers: Vec<(String, Text)>,
    pub(crate) protocols: Vec<String>,
    pub(crate) talk: Vec<Talk>,
    pub(crate) left_out: Vec<LeftOut>,
    pub(crate) begin_ms: Option<f64>,
    pub(crate) took_ms: f64,
    pub(crate) target: Option<String>,
}

#[derive(Clone, Debug)]
pub(crate) enum Talk {
    Send(Message),
    /// Sent, and the next message is taken as its reply.
    Request(Message),
    Stay(Duration),
}

#[derive(Clone, Debug)]
pub(crate) enum Message {
    Text(Text),
    Json(Json),
    Bytes(Vec<u8>),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Phase {
    /// A constant number of users for a time.
    Users {
        users: u64,
        time: Duration,
    },
    /// From the users of the previous phase to this number within a time.
    Ramp {
        to: u64,
        time: Duration,
    },
    Arrivals {
        from: f64,
        to: f64,
        time: Duration,
    },
    Iterations {
        total: u64,
        users: u64,
    },
    Rate {
        rate: f64,
        users: u64,
        time: Duration,
    },
}

/// Calls `visit` with each exchange, in the order of the steps.
pub(crate) fn exchanges_mut(items: &mut [Item], visit: &mut dyn FnMut(&mut Exchange)) {
    for item in items {
        match item {
            Item::Http(exchange) => visit(exchange),
            other => other.inner_mut().into_iter().for_each(|inner| exchanges_mut(inner, visit)),
        }
    }
}

/// The same for WebSockets.
pub(crate) fn sockets_mut(items: &mut [Item], visit: &mut dyn FnMut(&mut Socket)) {
    for item in items {
        match item {
            Item::Socket(socket) => visit(socket),
            other => other.inner_mut().into_iter().for_each(|inner| sockets_mut(inner, visit)),
        }
    }
}

impl Item {
    /// An omission, at its place.
    pub(crate) fn left_out(line: usize, what: Said) -> Item {
        Item::LeftOut(LeftOut::at_line(line, what))
    }

    /// The lists of items inside this one.
    fn inner_mut(&mut self) -> Vec<&mut Vec<Item>> {
        match self {
            Item::Group(_, inner)
            | Item::Repeat(_, inner)
            | Item::ForEach(_, _, inner)
            | Item::If(_, inner) => vec![inner],
            Item::Choose(branches) => branches.iter_mut().map(|(_, inner)| inner).collect(),
            Item::Parallel(branches) => branches.iter_mut().collect(),
            _ => Vec::new(),
        }
    }
}

impl Recording {
    /// All lists of items: of `setup`, of each session, of `teardown`.
    pub(crate) fn lists_mut(&mut self) -> impl Iterator<Item = &mut Vec<Item>> {
        let sessions = self
            .sessions
            .iter_mut()
            .flat_map(|session| [&mut session.before, &mut session.steps, &mut session.after]);
        std::iter::once(&mut self.setup).chain(sessions).chain(std::iter::once(&mut self.teardown))
    }

    pub(crate) fn each_exchange(&mut self, mut visit: impl FnMut(&mut Exchange)) {
        self.lists_mut().for_each(|items| exchanges_mut(items, &mut visit));
    }

    pub(crate) fn each_socket(&mut self, mut visit: impl FnMut(&mut Socket)) {
        self.lists_mut().for_each(|items| sockets_mut(items, &mut visit));
    }

    /// Declares a variable once; the first value counts.
    pub(crate) fn declare(&mut self, variable: Variable) {
        if !self.variables.iter().any(|known| known.name == variable.name) {
            self.variables.push(variable);
        }
    }
}

impl Response {
    /// The text of a page.
    pub(crate) fn html(&self) -> Option<&str> {
        let is_html = self.content_type.contains("html") || self.body.trim_start().starts_with('<');
        Some(&*self.body).filter(|body| is_html && !body.is_empty())
    }
}

impl Socket {
    /// Calls `visit` with each sent text.
    pub(crate) fn each_text(&mut self, visit: &mut dyn FnMut(&mut Text)) {
        visit(&mut self.url);
        self.headers.iter_mut().for_each(|(_, value)| visit(value));
        for talk in &mut self.talk {
            if let Talk::Send(Message::Text(text)) | Talk::Request(Message::Text(text)) = talk {
                visit(text);
            }
        }
        self.each_json(&mut |json| json.each_text(&mut |_, text| visit(text)));
    }

    pub(crate) fn each_json(&mut self, visit: &mut dyn FnMut(&mut Json)) {
        for talk in &mut self.talk {
            if let Talk::Send(Message::Json(json)) | Talk::Request(Message::Json(json)) = talk {
                visit(json);
            }
        }
    }
}

impl Exchange {
    /// Calls `visit` with each text of the request.
    pub(crate) fn each_text(&mut self, visit: &mut dyn FnMut(&mut Text)) {
        visit(&mut self.url);
        let pairs = self.headers.iter_mut().chain(&mut self.query).chain(&mut self.cookies);
        pairs.for_each(|(_, value)| visit(value));
        if let Some(auth) = &mut self.auth {
            visit(&mut auth.user);
            visit(&mut auth.password);
        }
        for check in &mut self.checks {
            match check {
                Check::Contains(text) | Check::Lacks(text) | Check::Header(_, Some(text)) => {
                    visit(text);
                }
                Check::Json(_, Some(Json::Text(text))) => visit(text),
                _ => {}
            }
        }
        match &mut self.body {
            Body::Text(text) => visit(text),
            body => body.each_field(&mut |_, text| visit(text)),
        }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&Text> {
        let mut headers = self.headers.iter();
        headers.find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

/// A name for a variable, a saved value or a data source: `userId` becomes `user_id`.
pub(crate) fn name_of(text: &str) -> String {
    let mut name = String::new();
    let mut before_is_small = false;
    for c in text.chars() {
        if c.is_ascii_alphanumeric() {
            if c.is_ascii_uppercase() && before_is_small {
                name.push('_');
            }
            name.push(c.to_ascii_lowercase());
        } else if !name.is_empty() && !name.ends_with('_') {
            name.push('_');
        }
        before_is_small = c.is_ascii_lowercase() || c.is_ascii_digit();
    }
    let name = name.trim_end_matches('_').chars().take(40).collect::<String>();
    match name.chars().next() {
        None => "value".into(),
        Some(first) if first.is_ascii_digit() => format!("v{name}"),
        Some(_) if RESERVED.split(' ').any(|word| word == name) => format!("{name}_value"),
        Some(_) => name,
    }
}

/// Without the folders of any system.
pub(crate) fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

/// The name of a file beside the scenario.
pub(crate) fn file_beside(stem: &str, path: &str) -> String {
    let good = |c: char| if c.is_alphanumeric() || "._-".contains(c) { c } else { '_' };
    let own: String = file_name(path).chars().map(good).take(60).collect();
    format!("{stem}-{}", own.trim_start_matches('.'))
}

/// The name, with a number behind it if it is taken.
pub(crate) fn unique(base: &str, mark: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let mut name = base.to_string();
    for more in 2.. {
        if !is_taken(&name) {
            break;
        }
        name = format!("{base}{mark}{more}");
    }
    name
}

/// Words that are not valid names in expressions (CEL, "Syntax").
const RESERVED: &str = "as break const continue else false for function if import in let loop \
     namespace null package return true var void while";

#[cfg(test)]
mod tests {
    use super::name_of;

    #[test]
    fn names_are_valid_in_the_language() {
        let cases = [
            ("userId", "user_id"),
            ("X-Api-Key", "x_api_key"),
            ("API_KEY", "api_key"),
            ("2fa code", "v2fa_code"),
            ("名", "value"),
            ("__token__", "token"),
        ];
        for (text, want) in cases {
            assert_eq!(name_of(text), want);
        }
    }
}
