//! Steps as YAML.

use std::path::PathBuf;
use std::time::Duration;

use throng_base::units::write_duration;

use super::has_steps;
use crate::json::{Json, json_key};
use crate::model::{
    Auth, Body, BodyPart, Check, Exchange, Item, LeftOut, Message, PartContent, Save, Socket, Talk,
    Think, file_beside, file_name,
};
use crate::text::{Piece, Text};
use crate::yaml::{Node, scalar};

/// A longer body is a file beside the scenario.
const BODY_BYTES_MAX: usize = 8 << 10;

pub(crate) struct Writer {
    stem: String,
    folder: PathBuf,
    pub(crate) files: Vec<(String, Vec<u8>)>,
    pub(crate) requests: usize,
    pub(crate) left_out: Vec<LeftOut>,
}

type Entries = Vec<(String, Node)>;

impl Writer {
    pub(crate) fn new(stem: String, folder: PathBuf) -> Writer {
        Writer { stem, folder, files: Vec::new(), requests: 0, left_out: Vec::new() }
    }

    pub(crate) fn steps(&mut self, items: &[Item]) -> Vec<Node> {
        let mut nodes = Vec::new();
        items.iter().for_each(|item| self.step(item, &mut nodes));
        nodes
    }

    fn step(&mut self, item: &Item, nodes: &mut Vec<Node>) {
        match item {
            Item::Http(exchange) => nodes.push(self.http(exchange)),
            Item::Socket(socket) => self.socket(socket, nodes),
            Item::Think(think) => nodes.push(Node::block(Node::one("think", think_node(think)))),
            Item::Group(name, inner) => {
                let steps = self.steps(inner);
                nodes.push(match has_steps(&steps) {
                    true => with_steps("transaction", Node::text(&named(name)), steps),
                    false => comment(format!("{name}: nothing to do")),
                });
            }
            Item::Repeat(times, inner) => {
                let steps = self.steps(inner);
                match has_steps(&steps) {
                    true => nodes.push(with_steps("repeat", Node::scalar(times), steps)),
                    false => nodes.extend(steps),
                }
            }
            Item::ForEach(name, list, inner) => {
                let steps = self.steps(inner);
                if has_steps(&steps) {
                    let list = list.iter().map(|one| Node::scalar(one.clone())).collect();
                    let entries = vec![
                        ("for_each".to_string(), Node::List(list)),
                        ("as".to_string(), Node::text(name)),
                        ("steps".to_string(), Node::block(Node::List(steps))),
                    ];
                    nodes.push(Node::block(Node::Map(entries)));
                } else {
                    nodes.extend(steps);
                }
            }
            Item::If(condition, then) => {
                let then = ("then".to_string(), list(self.steps(then)));
                let entries = vec![("if".to_string(), Node::text(condition)), then];
                nodes.push(Node::block(Node::Map(entries)));
            }
            Item::Choose(branches) => {
                let branches = branches.iter().map(|(weight, inner)| {
                    let steps = list(self.steps(inner));
                    Node::block(Node::Map(vec![
                        ("weight".into(), Node::scalar(weight.max(&1).to_string())),
                        ("steps".into(), steps),
                    ]))
                });
                let branches = Node::block(Node::List(branches.collect()));
                nodes.push(Node::block(Node::one("choose", branches)));
            }
            Item::Parallel(branches) => self.parallel(branches, nodes),
            Item::LeftOut(left_out) => nodes.push(comment(self.left_out(left_out))),
            Item::Note(text) => nodes.push(comment(text.clone())),
        }
    }

    fn left_out(&mut self, left_out: &LeftOut) -> String {
        self.left_out.push(left_out.clone());
        format!("Left out: {}", left_out.said().english())
    }

    /// A step, with its omissions before it.
    fn remarked(&mut self, step: Node, left_out: &[LeftOut]) -> Node {
        let remarks: Vec<String> = left_out.iter().map(|one| self.left_out(one)).collect();
        match remarks.is_empty() {
            true => step,
            false => Node::Commented(remarks, Box::new(step)),
        }
    }

    fn parallel(&mut self, branches: &[Vec<Item>], nodes: &mut Vec<Node>) {
        let branches: Vec<Node> = branches
            .iter()
            .map(|inner| self.steps(inner))
            .filter(|steps| has_steps(steps))
            .map(list)
            .collect();
        if !branches.is_empty() {
            let branches = Node::block(Node::List(branches));
            nodes.push(Node::block(Node::one("parallel", branches)));
        }
    }

    fn http(&mut self, exchange: &Exchange) -> Node {
        self.requests += 1;
        let line = format!("{} {}", exchange.method, exchange.url.template());
        let mut entries = vec![("http".to_string(), Node::text(&line))];
        let mut push = |key: &str, node: Node| entries.push((key.to_string(), node));
        if let Some(target) = &exchange.target {
            push("target", Node::text(target));
        }
        if let Some(name) = &exchange.name {
            push("name", Text::literal(name.as_str()).node());
        }
        for (key, pairs) in [
            ("query", &exchange.query),
            ("headers", &exchange.headers),
            ("cookies", &exchange.cookies),
        ] {
            if !pairs.is_empty() {
                push(key, super::pairs(pairs));
            }
        }
        if let Some(auth) = &exchange.auth {
            push("auth", auth_node(auth));
        }
        if let Some((key, node)) = self.body(&exchange.body) {
            push(key, node);
        }
        if exchange.follow_redirects {
            push("redirects", Node::scalar("follow"));
        }
        if let Some(timeout) = exchange.timeout {
            push("timeout", Node::scalar(write_duration(timeout)));
        }
        let checks = checks(exchange);
        if !checks.is_empty() {
            push("check", Node::Map(checks));
        }
        if !exchange.saves.is_empty() {
            let saves = exchange.saves.iter().map(|(name, save)| (name.clone(), save_node(save)));
            push("save", Node::Map(saves.collect()));
        }
        let step = Node::block(Node::Map(entries));
        self.remarked(step, &exchange.left_out)
    }

    fn body(&mut self, body: &Body) -> Option<(&'static str, Node)> {
        match body {
            Body::None => None,
            Body::Json(json) => Some(self.json(json)),
            Body::Form(pairs) if pairs.is_empty() => None,
            Body::Form(pairs) => Some(("form", super::pairs(pairs))),
            Body::Multipart(parts) => Some(("multipart", self.multipart(parts))),
            Body::Text(text) if text.is_empty() => None,
            Body::Text(text) => Some(("body", self.text(text))),
            Body::Bytes(bytes) => Some(("body", self.bytes(bytes))),
            Body::File(path) => {
                let path = self.beside(path);
                Some(("body", Node::one("file", Node::text(&path))))
            }
        }
    }

    fn json(&mut self, json: &Json) -> (&'static str, Node) {
        let text = json.compact();
        match text.as_literal() {
            Some(literal) if literal.len() > BODY_BYTES_MAX => {
                let file = self.file("json", literal.as_bytes());
                ("body", Node::one("file", Node::text(&file)))
            }
            _ => ("json", json.node()),
        }
    }

    fn text(&mut self, text: &Text) -> Node {
        let is_control = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t');
        match text.as_literal() {
            Some(literal) if literal.len() > BODY_BYTES_MAX => {
                let file = self.file("txt", literal.as_bytes());
                Node::one("file", Node::text(&file))
            }
            Some(literal) if literal.chars().any(is_control) => self.bytes(literal.as_bytes()),
            _ => text.node(),
        }
    }

    fn bytes(&mut self, bytes: &[u8]) -> Node {
        if bytes.len() > BODY_BYTES_MAX / 16 {
            let file = self.file("bin", bytes);
            return Node::one("file", Node::text(&file));
        }
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Node::one("hex", Node::scalar(format!("\"{hex}\"")))
    }

    /// A file with a body.
    fn file(&mut self, ending: &str, bytes: &[u8]) -> String {
        let same = self.files.iter().find(|(_, known)| known == bytes);
        if let Some((name, _)) = same {
            return name.clone();
        }
        let name = format!("{}-body-{}.{ending}", self.stem, self.files.len() + 1);
        self.files.push((name.clone(), bytes.to_vec()));
        name
    }

    fn multipart(&mut self, parts: &[BodyPart]) -> Node {
        let mut nodes = Vec::new();
        for part in parts {
            // It is sent in a header.
            let name: String = part.name.chars().filter(|c| !c.is_control()).collect();
            let mut entries = vec![("name".to_string(), Text::literal(name).node())];
            match &part.content {
                PartContent::Text(text) => {
                    entries.push(("value".into(), text.node()));
                }
                PartContent::File(path) => {
                    let own = file_name(path);
                    let path = self.beside(path);
                    entries.push(("file".into(), Node::text(&path)));
                    if !path.ends_with(own) {
                        entries.push(("filename".into(), Node::text(own)));
                    }
                }
            }
            let kind = part.content_type.as_deref();
            entries.extend(kind.map(|kind| ("type".into(), Node::text(kind))));
            nodes.push(Node::Map(entries));
        }
        Node::block(Node::List(nodes))
    }

    /// A file of the other tool of which only the name is known. A small placeholder makes the
    /// scenario complete.
    fn beside(&mut self, path: &str) -> String {
        let there = self.folder.join(path);
        if !path.is_empty() && there.is_file() {
            return there.to_string_lossy().into_owned();
        }
        let name = file_beside(&self.stem, path);
        if !self.files.iter().any(|(known, _)| *known == name) {
            let content = b"the content of this file was not imported\n";
            self.files.push((name.clone(), content.to_vec()));
            let what = say!("the content of the file `{path}`; replaced by a small file");
            self.left_out.push(LeftOut::of_all(1, what));
        }
        name
    }

    fn socket(&mut self, socket: &Socket, nodes: &mut Vec<Node>) {
        if !socket.continues {
            let connect = self.connect(socket);
            nodes.push(connect);
        }
        let name = || socket.name.as_ref().map(|name| ("on".to_string(), Node::text(name)));
        for talk in &socket.talk {
            let (key, value) = match talk {
                Talk::Send(message) => ("send", self.message(message)),
                Talk::Request(message) => ("request", self.message(message)),
                Talk::Stay(time) => ("stay", Node::scalar(write_duration(*time))),
            };
            let entries = [(key.to_string(), value)].into_iter().chain(name());
            nodes.push(Node::block(Node::Map(entries.collect())));
        }
        if !socket.stays_open {
            nodes.push(match name() {
                None => Node::scalar("disconnect"),
                Some(name) => {
                    Node::Map(vec![("disconnect".to_string(), Node::scalar("fin")), name])
                }
            });
        }
    }

    fn connect(&mut self, socket: &Socket) -> Node {
        self.requests += 1;
        let path = Node::text(&socket.url.template());
        let mut entries = vec![("connect".to_string(), path)];
        for (key, name) in [("target", &socket.target), ("as", &socket.name)] {
            let name = name.as_ref().map(|name| Node::text(name));
            entries.extend(name.map(|node| (key.to_string(), node)));
        }
        if !socket.headers.is_empty() {
            entries.push(("headers".into(), super::pairs(&socket.headers)));
        }
        let protocols: Vec<Node> = socket.protocols.iter().map(|name| Node::text(name)).collect();
        if !protocols.is_empty() {
            entries.push(("protocols".into(), Node::List(protocols)));
        }
        self.remarked(Node::block(Node::Map(entries)), &socket.left_out)
    }

    fn message(&mut self, message: &Message) -> Node {
        match message {
            Message::Json(json) => Node::one("json", json.node()),
            Message::Text(text) => Node::one("text", text.node()),
            Message::Bytes(bytes) => self.bytes(bytes),
        }
    }
}

fn comment(line: String) -> Node {
    Node::Commented(vec![line], Box::new(Node::scalar("")))
}

fn named(name: &str) -> String {
    let words: Vec<&str> = name.split_whitespace().collect();
    match words.is_empty() {
        true => "steps".into(),
        false => words.join(" ").chars().take(80).collect(),
    }
}

/// A list of steps; with remarks only, it is empty and follows its remarks.
fn list(mut nodes: Vec<Node>) -> Node {
    if !has_steps(&nodes) {
        return Node::List(Vec::new());
    }
    let node = match nodes.as_mut_slice() {
        [Node::Block(inner)] if matches!(&**inner, Node::Map(entries) if entries.len() <= 2) => {
            let flat = (**inner).clone();
            return Node::List(vec![flat]);
        }
        _ => Node::List(nodes),
    };
    Node::block(node)
}

fn with_steps(key: &str, value: Node, steps: Vec<Node>) -> Node {
    let steps = Node::block(Node::List(steps));
    Node::block(Node::Map(vec![(key.to_string(), value), ("steps".into(), steps)]))
}

fn think_node(think: &Think) -> Node {
    let time = |time: &Duration| write_duration((*time).max(Duration::from_millis(1)));
    match think {
        Think::Fixed(fixed) => Node::scalar(time(fixed)),
        Think::Range(low, high) if low >= high => Node::scalar(time(low)),
        Think::Range(low, high) => Node::scalar(format!("{}..{}", time(low), time(high))),
        Think::Normal(mean, deviation) => Node::Map(vec![
            ("normal".into(), Node::scalar(time(mean))),
            ("deviation".into(), Node::scalar(time(deviation))),
        ]),
        Think::Exponential(mean) => Node::one("exponential", Node::scalar(time(mean))),
        Think::Value(expression) => Text::value(expression.as_str()).node(),
    }
}

fn auth_node(auth: &Auth) -> Node {
    let mut entries = vec![
        ("user".to_string(), auth.user.node()),
        ("password".to_string(), auth.password.node()),
    ];
    if auth.is_digest {
        entries.push(("scheme".into(), Node::scalar("digest")));
    }
    Node::Map(entries)
}

/// The checks of a request, or else its recorded status.
fn checks(exchange: &Exchange) -> Entries {
    let mut entries: Entries = Vec::new();
    let mut statuses: Vec<String> = Vec::new();
    let (mut fields, mut headers, mut conditions) = (Entries::new(), Entries::new(), Vec::new());
    for check in &exchange.checks {
        match check {
            Check::Status(list) => {
                statuses.extend(list.iter().filter(|status| is_status(status)).cloned());
            }
            Check::Contains(text) if !entries.iter().any(|(key, _)| key == "text") => {
                let inner = Node::one("contains", text.node());
                entries.push(("text".into(), inner));
            }
            Check::Contains(text) => conditions.push(body_condition("", text)),
            Check::Lacks(text) => conditions.push(body_condition("!", text)),
            Check::Matches(pattern) if !entries.iter().any(|(key, _)| key == "regex") => {
                entries.push(("regex".into(), Node::text(pattern)));
            }
            Check::Matches(_) => {}
            Check::Header(name, value) => {
                let value = value.as_ref().map_or("present".into(), Text::scalar);
                headers.push((Text::literal(name.as_str()).scalar(), Node::scalar(value)));
            }
            Check::Json(path, want) => {
                let want = want.as_ref().map_or(Node::scalar("present"), Json::node);
                fields.push((scalar(&field_of(path)), want));
            }
            Check::TimeBelow(time) => {
                let text = format!("< {}", write_duration(*time));
                entries.push(("time".into(), Node::scalar(text)));
            }
            Check::Size(text) => {
                entries.push(("size".into(), Node::scalar(text.clone())));
            }
        }
    }
    if exchange.checks.is_empty()
        && let Some(status) = exchange.response.as_ref().and_then(|response| response.status)
        && status != 304
    {
        statuses.push(status.to_string());
    }
    statuses.dedup();
    let status = match statuses.as_slice() {
        [] => None,
        [one] => Some(Node::scalar(one.clone())),
        more => Some(Node::List(more.iter().map(|one| Node::scalar(one.clone())).collect())),
    };
    let status = status.map(|node| ("status".to_string(), node));
    entries.splice(0..0, status);
    if !headers.is_empty() {
        entries.push(("header".into(), Node::Map(headers)));
    }
    for (key, node) in fields {
        if !entries.iter().any(|(known, _)| *known == key) {
            entries.push((key, node));
        }
    }
    match conditions.len() {
        0 => {}
        1 => entries.push(("that".into(), conditions.remove(0))),
        _ => entries.push(("that".into(), Node::List(conditions))),
    }
    entries
}

/// `200`, `2xx` and `200..299`.
fn is_status(text: &str) -> bool {
    let is_one = |text: &str| {
        let class = text.as_bytes().first().is_some_and(|first| (b'1'..=b'5').contains(first));
        let rest = text.get(1..).unwrap_or_default();
        let is_rest = rest == "xx" || rest.len() == 2 && rest.bytes().all(|b| b.is_ascii_digit());
        class && is_rest
    };
    match text.split_once("..") {
        Some((low, high)) => is_one(low) && is_one(high) && low <= high,
        None => is_one(text),
    }
}

/// A condition on the body, if the map of checks already contains one.
fn body_condition(not: &str, text: &Text) -> Node {
    let parts = text.pieces().iter().map(|piece| match piece {
        Piece::Literal(text) => {
            let text = text.replace('\\', "\\\\").replace('\'', "\\'");
            format!("'{}'", text.replace('\n', "\\n").replace('\r', "\\r"))
        }
        Piece::Value(value) => format!("string({value})"),
    });
    let wanted = parts.collect::<Vec<_>>().join(" + ");
    let condition = Text::value(format!("{not}response.body.contains({wanted})"));
    condition.node()
}

/// `json.data.items[0].id`; keys that are not plain words need a query.
fn field_of(path: &str) -> String {
    let is_plain = |key: &str| {
        let word = key.split('[').next().unwrap_or_default();
        let is_word = word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        is_word && !word.is_empty() && !word.starts_with(|c: char| c.is_ascii_digit())
    };
    match path {
        "" => "json".into(),
        path if path.starts_with('[') => format!("json{path}"),
        path if path.split('.').all(is_plain) => format!("json.{path}"),
        path => {
            let keys = path.split('.').map(|key| {
                let (word, rest) = key.split_at(key.find('[').unwrap_or(key.len()));
                format!("['{}']{rest}", json_key(word))
            });
            format!("json.${}", keys.collect::<String>())
        }
    }
}

fn save_node(save: &Save) -> Node {
    match save {
        Save::Json(path) => Node::text(&field_of(path)),
        Save::JsonPath(path) => Node::one("json", Node::text(path)),
        Save::Header(name) => Node::text(&format!("header.{}", name.to_ascii_lowercase())),
        Save::Cookie { name, .. } => Node::text(&format!("cookie.{name}")),
        Save::Css(css) => Node::one("css", Node::text(css)),
        Save::XPath(path) => Node::one("xpath", Node::text(path)),
        Save::Regex(pattern) => Node::one("regex", Node::text(pattern)),
        Save::Body => Node::scalar("body"),
        Save::Status => Node::scalar("status"),
    }
}
