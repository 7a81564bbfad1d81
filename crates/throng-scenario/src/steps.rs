//! Sessions and their steps: verbs, modifiers, loops; compiled into a flat list of instructions.

use std::collections::HashMap;
use std::time::Duration;

use throng_base::StepId;
use throng_base::diagnostic::did_you_mean;
use throng_program::flow::REGISTERS_MAX;
use throng_program::{Http, Instruction, Scheme, Segment, Session, Step, StepKind, Text};

use crate::body::read_body;
use crate::checks::{Answer, empty_check, read_checks};
use crate::headers::{check_method, check_path, read_step_headers};
use crate::keys::{self, VERBS, VERBS_LATER};
use crate::message;
use crate::read::{Context, Fields, shorten};
use crate::syntax::{Key, Kind, Node, Place};
use crate::target::read_redirects;

/// How long a step may take when neither it nor `defaults` says so.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The longest name of a row; longer ones are shortened.
const NAME_CHARS_MAX: usize = 80;

/// The rows of the report: steps of one name and kind share one.
#[derive(Default)]
pub(crate) struct Rows {
    pub(crate) steps: Vec<Step>,
    ids: HashMap<(StepKind, String), StepId>,
    full: bool,
}

impl Rows {
    /// The row of a step: its `name`, or else what the person wrote.
    pub(crate) fn row(
        &mut self,
        cx: &mut Context<'_>,
        fields: &Fields<'_>,
        kind: StepKind,
        written: Option<&str>,
    ) -> Option<StepId> {
        let name = match fields.get("name") {
            Some(node) => cx.text(node, "the name of a step")?,
            None => written.unwrap_or(kind.word()).to_string(),
        };
        let id = self.id(kind, &name);
        if id.is_none() && !std::mem::replace(&mut self.full, true) {
            let message = "the scenario has more than 65,535 different steps".to_string();
            let error = cx.error("too-many", message, fields.place).label("this one is too much");
            cx.note(error.help("give steps that belong together one `name`"));
        }
        id
    }

    fn id(&mut self, kind: StepKind, name: &str) -> Option<StepId> {
        let words: Vec<&str> = name.split_whitespace().collect();
        let mut name = words.join(" ");
        if name.chars().count() > NAME_CHARS_MAX {
            name = name.chars().take(NAME_CHARS_MAX - 1).chain(['…']).collect();
        }
        if let Some(id) = self.ids.get(&(kind, name.clone())) {
            return Some(*id);
        }
        let id = StepId(u16::try_from(self.steps.len()).ok().filter(|id| *id < u16::MAX)?);
        self.steps.push(Step { name: name.clone(), kind });
        self.ids.insert((kind, name), id);
        Some(id)
    }
}

/// What sessions gave, besides the sessions.
pub(crate) struct Compiled {
    pub(crate) sessions: Vec<Session>,
    pub(crate) rows: Rows,
    /// Every pause with its shortest time.
    pub(crate) thinks: Vec<(Duration, Place)>,
}

const SESSIONS_HELP: &str =
    "write `sessions: {reader: {steps: [{http: GET /}]}}`, with a name for each session";

pub(crate) fn read_sessions(cx: &mut Context<'_>, node: &Node, scheme: Option<Scheme>) -> Compiled {
    let rows = Rows::default();
    let mut out = Compiled { sessions: Vec::new(), rows, thinks: Vec::new() };
    let entries = cx.entries(node, "a map of sessions", SESSIONS_HELP).unwrap_or_default();
    if entries.is_empty() && matches!(node.kind, Kind::Map(_)) {
        let error = cx.error("empty", "there is no session".into(), node.place);
        cx.note(error.label("empty").help(SESSIONS_HELP));
    }
    if entries.len() >= usize::from(u16::MAX) {
        let error = cx.error("too-many", "more than 65,534 sessions".into(), node.place);
        cx.note(error.label("too many").help("sessions are kinds of users, not users"));
        return out;
    }
    for (key, value) in &entries {
        let session = read_session(cx, key, value, scheme, &mut out);
        out.sessions.extend(session);
    }
    if out.sessions.len() == entries.len() && !entries.is_empty() {
        check_weights(cx, &entries, &out.sessions, node);
    }
    out
}

fn check_weights(
    cx: &mut Context<'_>,
    entries: &[(&Key, &Node)],
    sessions: &[Session],
    node: &Node,
) {
    if sessions.iter().all(|session| session.weight == 0) {
        let error = cx.error("never-runs", "all sessions have weight 0".into(), node.place);
        cx.note(error.label("nobody does anything").help("give one a weight of 1 or more"));
        return;
    }
    for ((key, _), _) in entries.iter().zip(sessions).filter(|(_, session)| session.weight == 0) {
        let message = format!("the session `{}` has weight 0", shorten(&key.text));
        let warning = cx.warning("never-runs", message, key.place).label("no user ever does it");
        cx.note(warning.help("give it a weight of 1 or more, or remove it"));
    }
}

fn read_session(
    cx: &mut Context<'_>,
    key: &Key,
    node: &Node,
    scheme: Option<Scheme>,
    out: &mut Compiled,
) -> Option<Session> {
    let fields = Fields::read(cx, node, &keys::SESSION)?;
    let weight = match fields.get("weight") {
        Some(node) => cx.small_count(node),
        None => Some(1),
    };
    let mut coder = Coder {
        scheme,
        rows: &mut out.rows,
        thinks: &mut out.thinks,
        code: Vec::new(),
        loops: 0,
        connected: false,
    };
    if let Some(node) = fields.get("before") {
        coder.steps(cx, node);
    }
    let begin = coder.code.len() as u32;
    match fields.need(cx, "steps", "write `steps: [{http: GET /}]`") {
        Some(node) => coder.steps(cx, node),
        None => return None,
    }
    let end = coder.code.len() as u32;
    coder.check_restless(cx, &fields, begin as usize);
    if let Some(node) = fields.get("after") {
        coder.steps(cx, node);
    }
    let code = coder.code.into_boxed_slice();
    Some(Session { name: key.text.clone(), weight: weight?, code, begin, end })
}

/// Writes the instructions of one session.
struct Coder<'c> {
    scheme: Option<Scheme>,
    rows: &'c mut Rows,
    thinks: &'c mut Vec<(Duration, Place)>,
    code: Vec<Instruction>,
    loops: usize,
    /// A step before has opened the connection, or its absence has been said.
    connected: bool,
}

impl Coder<'_> {
    fn steps(&mut self, cx: &mut Context<'_>, node: &Node) {
        let help = "write a list: `steps: [{http: GET /}, {think: 2s}]`";
        let items = cx.items(node, "a list of steps", help);
        if let Some([]) = items {
            let error = cx.error("empty", "there is no step".into(), node.place);
            cx.note(error.label("empty").help(help));
        }
        let mut endless: Option<Place> = None;
        for item in items.unwrap_or_default() {
            if let Some(endless) = endless.take().filter(|_| !cx.is_full()) {
                let (after, _) = cx.source.line_column(endless.start);
                let warning = cx
                    .warning("unreachable-step", "this step is never reached".into(), item.place)
                    .label(format!("line {after} repeats forever"))
                    .help("write how often it repeats, or remove what follows");
                cx.note(warning);
            }
            if self.step(cx, item) == Ends::Never {
                endless = Some(item.place);
            }
        }
    }

    fn step(&mut self, cx: &mut Context<'_>, node: &Node) -> Ends {
        match &node.kind {
            Kind::Scalar { text, .. } => self.bare_step(cx, node, text),
            Kind::Map(entries) => {
                if let Some(verb) = find_verb(cx, node, entries)
                    && let Some((_, kind)) = VERBS.iter().find(|(name, _)| *name == verb)
                    && let Some(fields) = Fields::read(cx, node, kind)
                {
                    return self.verb(cx, verb, &fields);
                }
            }
            Kind::List(_) => {
                let help = "a step is a map with one verb: `- http: GET /`";
                let _: Option<()> = cx.wrong_type(node, "a step", help);
            }
        }
        Ends::Yes
    }

    /// A step that is only a word.
    fn bare_step(&mut self, cx: &mut Context<'_>, node: &Node, word: &str) {
        let place = node.place;
        let kind = match word {
            "connect" => &keys::CONNECT,
            "disconnect" => &keys::DISCONNECT,
            _ if VERBS_LATER.contains(&word) => {
                return cx.not_yet(&format!("the step `{word}`"), place, &verb_list());
            }
            _ => {
                let verb = VERBS.iter().any(|(verb, _)| *verb == word);
                let message = match verb {
                    true => format!("`{word}` lacks its value"),
                    false => format!("`{}` is not a step", shorten(word)),
                };
                let mut error = cx.error("unknown-step", message, place).help(verb_list());
                if verb {
                    error = error.label("what shall it do?");
                } else if let Some(near) = did_you_mean(word, VERBS.iter().map(|(verb, _)| *verb)) {
                    error = error.label(format!("did you mean `{near}`?"));
                }
                return cx.note(error);
            }
        };
        let key = Key { text: word.to_string(), place };
        let null = Node { place, kind: Kind::Scalar { text: String::new(), plain: true } };
        let map = Node { place, kind: Kind::Map(vec![(key, null)]) };
        if let Some(fields) = Fields::read(cx, &map, kind) {
            self.verb(cx, word, &fields);
        }
    }

    fn verb(&mut self, cx: &mut Context<'_>, verb: &str, fields: &Fields<'_>) -> Ends {
        if !self.fits(cx, verb, fields) {
            return Ends::Yes;
        }
        let instruction = match verb {
            "http" => read_http(cx, fields, self.rows),
            "connect" => {
                self.connected = true;
                message::read_connect(cx, fields, self.scheme, self.rows)
            }
            "disconnect" => self.disconnect(cx, fields),
            "send" => message::read_send(cx, fields, self.rows),
            "expect" => message::read_expect(cx, fields, self.rows),
            "request" => message::read_request(cx, fields, self.rows),
            "think" => self.think(cx, fields),
            "stay" => self.stay(cx, fields),
            _ => return self.repeat(cx, fields),
        };
        self.code.extend(instruction);
        Ends::Yes
    }

    /// Whether the verb goes with the scheme of the target, and the connection is open.
    fn fits(&mut self, cx: &mut Context<'_>, verb: &str, fields: &Fields<'_>) -> bool {
        let Some(scheme) = self.scheme else { return true };
        let http = matches!(scheme, Scheme::Http | Scheme::Https);
        let long_lived = matches!(verb, "connect" | "disconnect" | "send" | "expect" | "request");
        let place = fields.key(verb).map_or(fields.place, |key| key.place);
        if (verb == "http" && !http) || (long_lived && http) {
            let message = format!("`{verb}` does not go with a `{}` target", scheme.word());
            let help = match verb {
                "http" => "an `http` step needs a target with `http://` or `https://`",
                "connect" | "disconnect" => {
                    "leave it out: HTTP connections are opened when they are needed; \
                     a WebSocket target begins with `ws://`"
                }
                _ => "it needs a target with `ws://`, `wss://`, `tcp://` or `tls://`",
            };
            let error = cx.error("step-scheme", message, place);
            cx.note(error.label(format!("the target is `{}://`", scheme.word())).help(help));
            return false;
        }
        let needs = matches!(verb, "send" | "expect" | "request" | "stay") && !http;
        if needs && !std::mem::replace(&mut self.connected, true) {
            let message = format!("`{verb}` needs an open connection");
            let error = cx.error("no-connect", message, place).label("no `connect` before it");
            cx.note(error.help(match scheme {
                Scheme::Ws | Scheme::Wss => "write `- connect: /path` before it, or in `before`",
                _ => "write `- connect` before it, or in `before`",
            }));
        }
        true
    }

    fn disconnect(&mut self, cx: &mut Context<'_>, fields: &Fields<'_>) -> Option<Instruction> {
        match fields.get("disconnect") {
            Some(node) if !node.is_null() => {
                let how = cx.text(node, "nothing")?;
                match how.as_str() {
                    "reset" | "vanish" => {
                        let what = format!("`disconnect: {how}`");
                        cx.not_yet(&what, node.place, "write `disconnect` alone");
                        None
                    }
                    _ => cx.bad_value(
                        node,
                        "`disconnect` has no such value",
                        "write `disconnect` alone",
                    ),
                }
            }
            _ => Some(Instruction::Disconnect),
        }
    }

    fn think(&mut self, cx: &mut Context<'_>, fields: &Fields<'_>) -> Option<Instruction> {
        let node = fields.get("think")?;
        if matches!(node.kind, Kind::Map(_)) {
            let help = "write `think: 2s` or `think: 1s..5s`";
            cx.not_yet("a distribution of think times", node.place, help);
            return None;
        }
        let (low, high) = cx.duration_range(node)?;
        self.thinks.push((low, node.place));
        Some(Instruction::Think { low, high })
    }

    fn stay(&mut self, cx: &mut Context<'_>, fields: &Fields<'_>) -> Option<Instruction> {
        let node = fields.get("stay")?;
        let forever = matches!(&node.kind, Kind::Scalar { text, .. } if text == "forever");
        let time = match forever {
            true => None,
            false => Some(cx.duration(node)?),
        };
        let step = self.rows.row(cx, fields, StepKind::Stay, None)?;
        Some(Instruction::Stay { step, time })
    }

    fn repeat(&mut self, cx: &mut Context<'_>, fields: &Fields<'_>) -> Ends {
        let node = fields.get("repeat");
        let steps = fields.need(cx, "steps", "write `- {repeat: 3, steps: [{http: GET /}]}`");
        let times = node.and_then(|node| read_times(cx, node));
        let begin = self.code.len() as u32;
        let register = self.loops;
        if let Some(Times::Between(low, high)) = times {
            if register >= REGISTERS_MAX {
                let message = format!("more than {REGISTERS_MAX} repeats stand in each other");
                let error = cx.error("too-deep", message, fields.place).label("one too many");
                cx.note(error.help("make the steps inside a part of the repeat around them"));
                return Ends::Yes;
            }
            let register = register as u8;
            self.code.push(Instruction::RepeatBegin { register, low, high, end: 0 });
            self.loops += 1;
        }
        if let Some(steps) = steps {
            self.steps(cx, steps);
        }
        self.loops = register;
        let at = self.code.len() as u32;
        match times {
            Some(Times::Between(..)) => {
                if let Some(Instruction::RepeatBegin { end, .. }) =
                    self.code.get_mut(begin as usize)
                {
                    *end = at;
                }
                self.code.push(Instruction::RepeatEnd { register: register as u8, begin });
                Ends::Yes
            }
            Some(Times::Forever) => {
                self.check_endless(cx, fields, begin as usize);
                self.code.push(Instruction::Jump(begin));
                Ends::Never
            }
            None => Ends::Yes,
        }
    }

    /// A loop without end in which no step takes time would take a whole core for one user.
    fn check_endless(&self, cx: &mut Context<'_>, fields: &Fields<'_>, begin: usize) {
        let waits = |one: &Instruction| takes_time(one) && !matches!(one, Instruction::Send(_));
        if !self.code[begin..].iter().any(waits) {
            let message = "no step of this endless repeat waits for anything".to_string();
            let error = cx.error("endless-loop", message, fields.place);
            cx.note(error.label("it would turn at full speed").help("add `- think: 1s`"));
        }
    }

    /// Iterations follow each other: one of nothing but pauses of no time is an endless loop too.
    fn check_restless(&self, cx: &mut Context<'_>, fields: &Fields<'_>, begin: usize) {
        let code = &self.code[begin..];
        if !code.is_empty() && !code.iter().any(takes_time) {
            let message = "no step of an iteration does anything".to_string();
            let place = fields.get("steps").map_or(fields.place, |node| node.place);
            let error = cx.error("endless-loop", message, place);
            cx.note(error.label("it would turn at full speed").help("add `- think: 1s`"));
        }
    }
}

fn takes_time(instruction: &Instruction) -> bool {
    match instruction {
        Instruction::Think { high, .. } => !high.is_zero(),
        Instruction::Stay { time, .. } => time.is_none_or(|time| !time.is_zero()),
        Instruction::Disconnect
        | Instruction::RepeatBegin { .. }
        | Instruction::RepeatEnd { .. }
        | Instruction::Jump(_) => false,
        _ => true,
    }
}

#[derive(PartialEq, Eq)]
enum Ends {
    Yes,
    Never,
}

#[derive(Clone, Copy)]
enum Times {
    Between(u32, u32),
    Forever,
}

fn read_times(cx: &mut Context<'_>, node: &Node) -> Option<Times> {
    const HELP: &str = "write `repeat: 3`, `repeat: 3..10` or `repeat: forever`";
    let text = cx.text(node, "how often")?;
    if text == "forever" {
        return Some(Times::Forever);
    }
    let (low, high) = text.split_once("..").unwrap_or((&text, &text));
    let count = |text| throng_base::units::parse_count(text).ok().map(u32::try_from);
    match (count(low), count(high)) {
        (Some(Ok(_)), Some(Ok(0))) => cx.bad_value(node, "this repeat never runs", HELP),
        (Some(Ok(low)), Some(Ok(high))) if low <= high => Some(Times::Between(low, high)),
        (Some(Ok(_)), Some(Ok(_))) => {
            cx.bad_value(node, "the range starts after its end", "write `repeat: 3..10`")
        }
        _ => {
            let message = format!("`{}` is not how often something repeats", shorten(&text));
            let error = cx.error("bad-value", message, node.place).label("not a number or range");
            cx.fail(error.help(HELP))
        }
    }
}

fn verb_list() -> String {
    let verbs: Vec<String> = VERBS.iter().map(|(verb, _)| format!("`{verb}`")).collect();
    format!("a step has one of {}", verbs.join(", "))
}

/// The one verb of a step.
fn find_verb<'n>(cx: &mut Context<'_>, node: &Node, entries: &'n [(Key, Node)]) -> Option<&'n str> {
    let known = |word: &str| VERBS.iter().any(|(verb, _)| *verb == word);
    let has = |word: &str| entries.iter().any(|(key, _)| key.text == word);
    if let Some((key, _)) = entries.iter().find(|(key, _)| VERBS_LATER.contains(&key.text.as_str()))
    {
        cx.not_yet(&format!("the step `{}`", key.text), key.place, &verb_list());
        return None;
    }
    // `expect` is a verb of its own and a modifier of `request`.
    let is_verb = |word: &str| known(word) && !(word == "expect" && has("request"));
    let mut verbs = entries.iter().map(|(key, _)| key).filter(|key| is_verb(&key.text));
    let first = verbs.next();
    if let (Some(first), Some(second)) =
        (first, verbs.find(|key| Some(&key.text) != first.map(|f| &f.text)))
    {
        let message = format!("a step has one verb, not `{}` and `{}`", first.text, second.text);
        let error = cx.error("several-verbs", message, second.place).label("the second verb");
        return cx.fail(error.help(format!("make it a step of its own: `- {}: …`", second.text)));
    }
    if let Some(verb) = first {
        return Some(&verb.text);
    }
    match entries.first() {
        Some((key, _)) => {
            let message = format!("`{}` is not a key of a step", shorten(&key.text));
            let mut error = cx.error("unknown-key", message, key.place).help(verb_list());
            if let Some(near) = did_you_mean(&key.text, VERBS.iter().map(|(verb, _)| *verb)) {
                error = error.label(format!("did you mean `{near}`?"));
            }
            cx.fail(error)
        }
        None => {
            let error = cx.error("empty", "this step does nothing".into(), node.place);
            cx.fail(error.label("empty").help(verb_list()))
        }
    }
}

/// The time limit of a step: its own, that of `defaults`, or 30 s.
pub(crate) fn read_timeout(cx: &mut Context<'_>, fields: &Fields<'_>) -> Option<Duration> {
    match fields.get("timeout") {
        Some(node) => cx.time_limit(node),
        None => Some(cx.defaults.timeout.unwrap_or(TIMEOUT)),
    }
}

fn read_http(cx: &mut Context<'_>, fields: &Fields<'_>, rows: &mut Rows) -> Option<Instruction> {
    let node = fields.get("http")?;
    let line = read_request_line(cx, node);
    let mut headers = read_step_headers(cx, fields);
    let body = read_body(cx, fields, &mut headers);
    let timeout = read_timeout(cx, fields);
    let follow_redirects = fields.get("redirects").map(|node| read_follow(cx, node));
    let mut checks = Vec::new();
    if let Some(node) = fields.get("check") {
        if matches!(&node.kind, Kind::Map(entries) if entries.is_empty()) {
            empty_check(cx, node.place);
        }
        checks = read_checks(cx, node, Answer::Http);
    }
    let written = match &node.kind {
        Kind::Scalar { text, .. } => Some(text.as_str()),
        _ => None,
    };
    let step = rows.row(cx, fields, StepKind::Http, written);
    let (method, path) = line?;
    Some(Instruction::Http(Box::new(Http {
        step: step?,
        method,
        path,
        headers,
        body,
        timeout: timeout?,
        follow_redirects: follow_redirects.unwrap_or(false),
        checks,
    })))
}

/// `GET /path`
fn read_request_line(cx: &mut Context<'_>, node: &Node) -> Option<(String, Text)> {
    let mut text = cx.template(node, "a method and a path")?;
    let first = match text.segments.first() {
        Some(Segment::Literal(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
        _ => String::new(),
    };
    let Some((method, rest)) = first.split_once(char::is_whitespace) else {
        let looks_like_path = first.is_empty() || first.contains('/');
        let (message, help) = match looks_like_path {
            true => ("the method is missing", format!("write `http: GET {}`", shorten(&first))),
            false => ("the path is missing", format!("write `http: {} /`", shorten(&first))),
        };
        let error = cx.error("bad-path", message.into(), node.place).label("not `METHOD /path`");
        return cx.fail(error.help(help));
    };
    let rest = rest.trim_start();
    match rest.is_empty() {
        true => drop(text.segments.remove(0)),
        false => text.segments[0] = Segment::Literal(rest.as_bytes().into()),
    }
    let method = method.to_string();
    let method_good = check_method(cx, node, &method);
    if method == "OPTIONS" && text.as_literal() == Some(b"*") {
        return Some((method, text));
    }
    check_path(cx, node, &text)?;
    method_good.map(|()| (method, text))
}

fn read_follow(cx: &mut Context<'_>, node: &Node) -> bool {
    if matches!(&node.kind, Kind::Scalar { text, .. } if text == "follow") {
        return true;
    }
    let Some(number) = read_redirects(cx, node) else { return false };
    if number == 0 {
        return false;
    }
    match cx.redirects.limit {
        Some(limit) if limit != number => {
            let message = "the number of redirects is the same for all steps".to_string();
            let error = cx.error("conflicting-keys", message, node.place);
            cx.note(
                error
                    .label(format!("another place says {limit}"))
                    .help("write `redirects: follow` here and `limits: {redirects: 10}` once"),
            );
        }
        _ => cx.redirects.limit = Some(number),
    }
    true
}
