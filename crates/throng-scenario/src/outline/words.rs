//! Steps, checks and sources as written in scenarios.

use throng_base::units::{format_bytes, write_duration};
use throng_data::{Origin, Source, Take};
use throng_program::{
    Audience, Beat, Begins, CloseMode, Connect, Content, Delivery, Ends, Handler, Heartbeat, Link,
    Mark, Message, MessageKind, Pause, Program, Save, Slow, Statement, Stay, Text, Until, Which,
};
use throng_protocol::framed::{MessageId, Protocol};
use throng_protocol::protobuf::Schema;

use super::{DataOutline, Line};
use crate::builtin::{self, Written};
use crate::native;
use crate::phrases::{
    Words, attempts, check, expression, extractor, limits, limits_but, shorten, shown,
};

impl Words<'_> {
    /// The line of a statement, without nested steps.
    pub(super) fn line(&self, instruction: &Statement) -> Line {
        let mut notes = Vec::new();
        let text = match instruction {
            Statement::Http(one) => {
                let text = format!("http {} {}", one.method, shown(&one.path));
                self.name(one.step, text.strip_prefix("http ").unwrap_or(&text), &mut notes);
                self.headers(&one.headers, &one.cookies, &mut notes);
                self.notes(&one.checks, &one.saves, &mut notes);
                limits(Some(one.timeout), one.failing, &mut notes);
                text
            }
            Statement::Connect(one) => self.connect(one, &mut notes),
            Statement::Secure(one) => {
                self.name(one.step, "secure", &mut notes);
                limits(Some(one.timeout), one.failing, &mut notes);
                "secure".into()
            }
            Statement::Disconnect { how: CloseMode::Fin, .. } => "disconnect".into(),
            Statement::Disconnect { how, .. } => format!("disconnect {}", how.word()),
            Statement::Send(one) => {
                self.name(one.step, &self.usual(one.link, &one.message, "send"), &mut notes);
                let own = builtin::message(&one.message.content, &mut notes);
                limits(Some(one.timeout), one.failing, &mut notes);
                self.spoken("send", one.link, &one.message, own)
            }
            Statement::Expect(one) => {
                self.name(one.step, "expect", &mut notes);
                self.notes(&one.checks, &one.saves, &mut notes);
                limits(Some(one.timeout), one.failing, &mut notes);
                match one.message.is_any() {
                    true => format!("expect {}", until(&one.until)),
                    false => format!("expect {}", self.which(one.link, &one.message)),
                }
            }
            Statement::Request(one) => {
                self.name(one.step, &self.usual(one.link, &one.message, "request"), &mut notes);
                let own = builtin::message(&one.message.content, &mut notes);
                if !one.answer.is_any() {
                    notes.push(format!("match {}", self.which(one.link, &one.answer)));
                }
                if !matches!(one.until, Until::Any) {
                    notes.push(format!("expect {}", until(&one.until)));
                }
                self.notes(&one.checks, &one.saves, &mut notes);
                limits(Some(one.timeout), one.failing, &mut notes);
                self.spoken("request", one.link, &one.message, own)
            }
            Statement::Think(one) => format!("think {}", pause(one)),
            Statement::Stay(one) => self.stay(one, &mut notes),
            other => {
                let own = builtin::ALL.iter().find_map(|one| (one.line)(self, other, &mut notes));
                own.unwrap_or_else(|| self.flow(other, &mut notes))
            }
        };
        notes.splice(0..0, self.where_to(instruction));
        Line { text, notes, steps: Vec::new() }
    }

    /// Which of several connections a step uses.
    fn where_to(&self, instruction: &Statement) -> Option<String> {
        let word = match instruction {
            asks if asks.opens_itself() => "target",
            Statement::Connect(_) => "as",
            // Its handlers and its heartbeat name it.
            Statement::Stay(_) => return None,
            _ => "on",
        };
        self.named(word, instruction.link()?)
    }

    /// A verb followed by the name of its connection, if there are several.
    fn named(&self, word: &str, link: u8) -> Option<String> {
        let link = self.session.links.get(usize::from(link)).filter(|link| !link.name.is_empty());
        link.map(|link| format!("{word} {}", link.name))
    }

    /// The targets of the connections, if there are several.
    pub(super) fn connections(&self) -> Vec<Line> {
        let links = self.session.links.iter().filter(|link| !link.name.is_empty());
        let line = |link: &Link| {
            let first =
                link.targets.first().and_then(|one| self.program.targets.get(usize::from(*one)));
            let url = first.map(|one| format!("{}://{}", one.scheme.word(), one.authority()));
            let notes = match link.targets.len() {
                0 | 1 => Vec::new(),
                count => vec![format!("addresses {count}")],
            };
            let text = format!("{} {}", link.name, url.unwrap_or_default());
            Line { text, notes, steps: Vec::new() }
        };
        links.map(line).collect()
    }

    fn flow(&self, instruction: &Statement, notes: &mut Vec<String>) -> String {
        match instruction {
            Statement::Repeat { low, high, .. } if low == high => format!("repeat {low}"),
            Statement::Repeat { low, high, .. } => format!("repeat {low}..{high}"),
            Statement::Forever(_) => "repeat forever".into(),
            Statement::During { time, .. } => format!("during {}", write_duration(*time)),
            Statement::ForEach { values, item, .. } => {
                let name = self.slot(*item);
                match name {
                    "item" => format!("for_each {}", expression(values)),
                    name => format!("for_each {} as {name}", expression(values)),
                }
            }
            Statement::Choose(_) => "choose".into(),
            Statement::Parallel(_) => "parallel".into(),
            Statement::While { condition, .. } => format!("while {}", expression(condition)),
            Statement::If { condition, .. } => format!("if {}", expression(condition)),
            Statement::Transaction { step, .. } => {
                format!("transaction {}", self.program.step(*step).name)
            }
            Statement::Rendezvous(one) => {
                notes.push(format!("users {}", one.users));
                notes.push(format!("timeout {}", write_duration(one.timeout)));
                format!("rendezvous {}", self.program.step(one.step).name)
            }
            Statement::Set { slot, value } => {
                format!("set {} = {}", self.slot(*slot), shown(value))
            }
            Statement::Tally { step, value, scale } => {
                let name = &self.program.step(*step).name;
                match scale {
                    Some(_) => format!("measure {name} = {}", shown(value)),
                    None => format!("count {name} by {}", shown(value)),
                }
            }
            Statement::Log(text) => format!("log {}", shown(text)),
            Statement::Slow { slow, .. } => speed(*slow),
            Statement::Next => "next".into(),
            Statement::Leave => "leave".into(),
            Statement::Stop(reason) => format!("stop {}", shown(reason)),
            _ => String::new(),
        }
    }

    /// The headers and cookies of a request, and which headers of the session are not sent until
    /// their values are saved.
    fn headers(
        &self,
        headers: &[(String, Text)],
        cookies: &[(String, Text)],
        notes: &mut Vec<String>,
    ) {
        let said = headers.iter().filter(|(name, text)| !follows_from_body(name, text));
        notes.extend(said.map(|(name, text)| format!("header {name}: {}", shown(text))));
        notes.extend(cookies.iter().map(|(name, text)| format!("cookie {name}={}", shown(text))));
        self.late_headers(headers, notes);
    }

    /// Headers of the session that are not sent until their values are saved.
    fn late_headers(&self, headers: &[(String, Text)], notes: &mut Vec<String>) {
        for (name, text) in headers {
            let slots = text.needs().unwrap_or_default().iter();
            let names: Vec<&str> = slots
                .filter_map(|slot| self.session.slots.get(usize::from(*slot)))
                .map(String::as_str)
                .collect();
            if !names.is_empty() {
                notes.push(format!("without {name} until {} is saved", names.join(" and ")));
            }
        }
    }

    fn connect(&self, one: &Connect, notes: &mut Vec<String>) -> String {
        self.name(one.step, "connect", notes);
        self.headers(&one.headers, &one.cookies, notes);
        if !one.protocols.is_empty() {
            let protocols: Vec<String> = one.protocols.iter().map(shown).collect();
            notes.push(format!("protocols {}", protocols.join(", ")));
        }
        limits_but(self.program.connection.connect_timeout, Some(one.timeout), one.failing, notes);
        if let Some(reconnect) = one.reconnect {
            notes.push(attempts("reconnect", reconnect));
        }
        let link = self.session.links.get(usize::from(one.link));
        let target = link.and_then(|link| link.targets.first());
        let target = target.and_then(|target| self.program.targets.get(usize::from(*target)));
        let scheme = target.map(|target| target.scheme);
        let own = builtin::ALL.iter().find_map(|row| (row.connects)(self, one, notes));
        if let Some(line) = own {
            return line;
        }
        match &one.request {
            _ if !native::of_scheme(scheme).paths => "connect".into(),
            Some(request) => format!("connect {} {}", request.method, shown(&one.path)),
            None => format!("connect {}", shown(&one.path)),
        }
    }

    fn stay(&self, one: &Stay, notes: &mut Vec<String>) -> String {
        let ends = one.ends.as_ref().map(ends_in_words);
        if let (true, Some(ends)) = (one.awaits_end, &ends) {
            self.name(one.step, "expect close", notes);
            limits(one.time, one.failing, notes);
            return format!("expect close {ends}");
        }
        self.name(one.step, "stay", notes);
        notes.extend(ends.map(|ends| format!("ends {ends}")));
        limits(None, one.failing, notes);
        if let Some(heartbeat) = &one.heartbeat {
            let line = self.heartbeat(one.link, heartbeat);
            notes.push(line.text);
            notes.extend(line.notes);
        }
        for handler in one.handlers.iter().filter(|handler| handler.body.is_none()) {
            let line = self.handler(one.link, handler);
            notes.push(line.text);
            notes.extend(line.notes);
        }
        format!("stay {}", one.time.map_or("forever".into(), write_duration))
    }

    pub(super) fn heartbeat(&self, link: u8, heartbeat: &Heartbeat) -> Line {
        let beat = match &heartbeat.beat {
            Beat::Ping => "ping".into(),
            Beat::Message(content) => self.message(link, content),
        };
        let name = match self.program.step(heartbeat.step).name.as_str() {
            "heartbeat" => String::new(),
            name => format!(" {name}"),
        };
        let every = write_duration(heartbeat.every);
        let mut notes = vec![match heartbeat.lost_after {
            Some(lost_after) => format!("lost_after {}", write_duration(lost_after)),
            None => "lost_after never".into(),
        }];
        if !heartbeat.answer.messages.is_empty() {
            notes.push(format!("expect {}", self.which(link, &heartbeat.answer)));
        } else {
            notes
                .extend(heartbeat.answer.checks.iter().map(|one| format!("expect {}", check(one))));
        }
        let fault = heartbeat.fault;
        notes.extend(fault.stop_after.map(|most| format!("stop_after {most}")));
        if !fault.late.is_zero() {
            notes.push(format!("late {}", write_duration(fault.late)));
        }
        if fault.times != 1 {
            notes.push(format!("times {}", fault.times));
        }
        notes.extend(self.named("on", link));
        Line { text: format!("heartbeat{name} {beat} every {every}"), notes, steps: Vec::new() }
    }

    pub(super) fn handler(&self, link: u8, handler: &Handler) -> Line {
        let name = &self.program.step(handler.step).name;
        let conditions = self.which(link, &handler.message);
        let text = match conditions == *name {
            true => format!("on {conditions}"),
            false => format!("on {conditions} as {name}"),
        };
        let mut notes = Vec::new();
        let is_written = |save: &&Save| !self.slot(save.slot).starts_with("message.");
        let saves: Vec<Save> = handler.saves.iter().filter(is_written).cloned().collect();
        self.notes(&handler.checks, &saves, &mut notes);
        limits(None, handler.failing, &mut notes);
        notes.extend(self.named("from", link));
        Line { text, notes, steps: Vec::new() }
    }

    /// The default name of a step's row.
    fn usual(&self, link: u8, message: &Message, verb: &str) -> String {
        match (&message.content, self.protocol(link)) {
            (Content::Declared(one), Some(protocol)) => {
                protocol.info(one.template.message).name.clone()
            }
            (content, _) => {
                let own = builtin::message(content, &mut Vec::new());
                own.map_or_else(|| verb.into(), |(_, row)| row)
            }
        }
    }

    /// A message on a long-lived connection.
    fn spoken(&self, verb: &str, link: u8, message: &Message, own: Option<Written>) -> String {
        match own {
            Some((line, _)) => line,
            None => format!("{verb} {}", self.message(link, message)),
        }
    }

    fn protocol(&self, link: u8) -> Option<&Protocol> {
        let number = self.session.links.get(usize::from(link))?.protocol?;
        self.program.protocols.get(usize::from(number)).map(|protocol| &**protocol)
    }

    /// The messages that a pattern selects.
    fn which(&self, link: u8, which: &Which) -> String {
        which_of(self.protocol(link), which)
    }

    fn message(&self, link: u8, message: &Message) -> String {
        let text = match &message.content {
            Content::Declared(declared) => {
                let id = declared.template.message;
                self.protocol(link).map_or(String::new(), |protocol| protocol.info(id).name.clone())
            }
            Content::Proto(message) => {
                let schema = self.program.schema.as_deref();
                let name = |schema: &Schema| schema.message_name(message.template.message()).into();
                schema.map_or(String::new(), name)
            }
            Content::Plain { kind, content } => match (kind, content.as_literal()) {
                (MessageKind::Binary, Some(bytes)) => format_bytes(bytes.len() as f64),
                _ => shown(content),
            },
            content => {
                let own = builtin::message(content, &mut Vec::new());
                own.map_or_else(String::new, |(line, _)| line)
            }
        };
        match message.cut {
            Some(cut) => format!("{text}, cut {}", format_bytes(f64::from(cut))),
            None => text,
        }
    }
}

/// True if the type of a body follows from its key.
fn follows_from_body(name: &str, text: &Text) -> bool {
    let types: [&[u8]; 3] =
        [b"application/json", b"application/x-www-form-urlencoded", b"multipart/form-data"];
    let is_usual = |text: &[u8]| types.iter().any(|kind| text.starts_with(kind));
    name.eq_ignore_ascii_case("content-type") && text.as_literal().is_some_and(is_usual)
}

/// `slow read 1.0 KiB/s`
fn speed(slow: Slow) -> String {
    let part = |name: &str, speed: Option<u64>| {
        speed.map(|speed| format!(" {name} {}/s", format_bytes(speed as f64)))
    };
    let parts = [part("read", slow.read), part("write", slow.write)];
    let parts: String = parts.into_iter().flatten().collect();
    if parts.is_empty() { "slow off".into() } else { format!("slow{parts}") }
}

fn pause(pause: &Pause) -> String {
    match pause {
        Pause::Uniform { low, high } if low == high => write_duration(*low),
        Pause::Uniform { low, high } => {
            format!("{}..{}", write_duration(*low), write_duration(*high))
        }
        Pause::Exponential { mean, max } => {
            format!("exponential {}, max {}", write_duration(*mean), write_duration(*max))
        }
        Pause::Normal { mean, deviation } => {
            format!("normal {}, deviation {}", write_duration(*mean), write_duration(*deviation))
        }
        Pause::Text(text) => shown(text),
    }
}

fn which_of(protocol: Option<&Protocol>, which: &Which) -> String {
    let name = |id: &MessageId| protocol.map(|protocol| protocol.info(*id).name.as_str());
    let names: Vec<&str> = which.messages.iter().filter_map(name).collect();
    let mut parts = vec![names.join(" or ")];
    parts.extend(which.checks.iter().map(check));
    parts.retain(|part| !part.is_empty());
    if parts.is_empty() { "any".into() } else { parts.join(" and ") }
}

fn mark(mark: &Mark) -> String {
    match &mark.prefix {
        None => extractor(&mark.extractor),
        Some(prefix) => {
            let prefix = shorten(&String::from_utf8_lossy(prefix));
            format!("{} prefix {prefix:?}", extractor(&mark.extractor))
        }
    }
}

pub(super) fn of_delivery(program: &Program, delivery: &Delivery) -> Line {
    let begins = match &delivery.begins {
        Begins::Sent { steps, .. } => {
            let names: Vec<&str> =
                steps.iter().map(|step| program.step(*step).name.as_str()).collect();
            names.join(" or ")
        }
        Begins::Disconnect { session, .. } => {
            let session = session.and_then(|one| program.sessions.get(usize::from(one)));
            let of = session.map_or_else(String::new, |session| format!(" of {}", session.name));
            format!("disconnect{of}")
        }
    };
    let protocol = delivery.protocol.and_then(|one| program.protocols.get(usize::from(one)));
    let received = which_of(protocol.map(|protocol| &**protocol), &delivery.received);
    let mut notes = vec![format!("match {}", mark(&delivery.received_id))];
    if let Begins::Disconnect { id, .. } = &delivery.begins {
        notes.push(format!("id {}", expression(id)));
    }
    notes.extend(delivery.stamp.as_ref().map(|stamp| format!("stamp {}", mark(stamp))));
    notes.push(match &delivery.audience {
        Audience::Everyone => "audience everyone".into(),
        Audience::Same(same) => format!("audience same {}", expression(same)),
        Audience::To { to, is } => {
            format!("audience to {} is {}", expression(to), expression(is))
        }
    });
    if delivery.without_sender {
        notes.push("without_sender".into());
    }
    notes.push(format!("late_after {}", write_duration(delivery.late_after)));
    notes.push(format!("lost_after {}", write_duration(delivery.lost_after)));
    let name = &program.step(delivery.step).name;
    Line { text: format!("{name}: {begins} → {received}"), notes, steps: Vec::new() }
}

fn until(until: &Until) -> String {
    match until {
        Until::Any => "any".into(),
        Until::Length(length) => format!("length {length}"),
        Until::Delimiter(bytes) => format!("delimiter {:?}", String::from_utf8_lossy(bytes)),
        Until::Pattern(regex) => format!("pattern {}", shorten(regex.as_str())),
    }
}

/// `any`, or the codes of a WebSocket.
fn ends_in_words(ends: &Ends) -> String {
    match ends {
        Ends::Any => "any".into(),
        Ends::Codes(codes) => codes.iter().map(u16::to_string).collect::<Vec<_>>().join(" or "),
    }
}

/// `70%`, `0.1%`
pub(super) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    let digits = if percent.fract() == 0.0 { 0 } else { 1 };
    format!("{percent:.digits$}%")
}

pub(super) fn of_source(source: &Source) -> DataOutline {
    let origin = match &source.origin {
        Origin::Csv { path, .. } => format!("csv {}", path.display()),
        Origin::JsonLines { path } => format!("json_lines {}", path.display()),
        Origin::List(_) => "list".into(),
        Origin::Generate { .. } => "generate".into(),
    };
    let take = match source.take {
        Take::Unique => "unique",
        Take::Circular => "circular",
        Take::Random => "random",
        Take::Shuffle => "shuffle",
        Take::PerUser => "per user",
    };
    let columns = source.used().map(str::to_string).collect();
    DataOutline { name: source.name.clone(), origin, take, columns }
}
