//! Actions at set times of a run: `events: [{at: 10m, run: systemctl restart redis}]`.

use std::time::Duration;

use throng_base::Said;
use throng_base::units;
use throng_load::plan;
use throng_program::{Action, Change, HttpCall, Scheme, Steering, TimedEvent, Trigger};

use crate::ast::{self, Field};
use crate::message::headers::read_plain_headers;
use crate::read::Context;
use crate::run::monitor::authorize;
use crate::run::thresholds::{self, Names};
use crate::syntax::{Key, Kind, Node};
use crate::url::Url;
use crate::words::shorten;

/// Each has a paragraph in the report.
const EVENTS_MAX: usize = 100;
const NAME_CHARS_MAX: usize = 80;
const RUN_TIMEOUT: Duration = Duration::from_secs(60);
const HTTP_TIMEOUT: Duration = Duration::from_secs(10);
/// The default share of `more` and `less`, as in `throng control`.
const SHARE: f64 = 0.1;
/// The shell for commands that are texts.
const SHELL: [&str; 2] = ["/bin/sh", "-c"];
const HELP: Said = say!("write `events: [{{name: restart, at: 10m, run: ./restart.sh}}]`");
const AT_HELP: Said = say!(
    "write `at: 10m` or `at: PHASE + 60s`, `after: EVENT + 10s`, or `when: errors > 10% over 5s`"
);
const ACTION_HELP: Said = say!(
    "write `run: ./restart.sh`, `http: POST http://127.0.0.1:9000/failover`, `mark: failover`, \
     `amend: users 500` or `audit: presence`"
);
const AMEND_HELP: Said = say!(
    "write `users 500`, `rate 200/s`, `more 20%`, `less 20%`, `pause`, `go-on` or `end-phase`"
);

pub(crate) fn read_events(
    cx: &mut Context<'_>,
    fields: &ast::Scenario<'_>,
    names: &Names<'_>,
) -> Vec<TimedEvent> {
    let Some(node) = fields.events.node() else { return Vec::new() };
    let items =
        cx.filled_list(node, say!("a list of events"), say!("the list of events is empty"), HELP);
    if let Some(one) = items.get(EVENTS_MAX) {
        let help = say!("combine several commands into one");
        cx.too_many(one.place, say!("more than 100 events"), help);
    }
    let mut events: Vec<TimedEvent> = Vec::new();
    for item in items.iter().take(EVENTS_MAX) {
        let Some(event) = (EventsReader { cx, names, before: &events }).read(item) else {
            continue;
        };
        if events.iter().any(|other| other.name == event.name) {
            let message = say!("two events are named `{}`", shorten(&event.name));
            let help = say!("give it another `name`");
            cx.report("duplicate-name", item.place, message, say!("the second one"), help);
        }
        events.push(event);
    }
    events
}

struct EventsReader<'r, 'a, 'p> {
    cx: &'r mut Context<'a>,
    names: &'r Names<'p>,
    /// The events before this one.
    before: &'r [TimedEvent],
}

impl EventsReader<'_, '_, '_> {
    fn read(&mut self, node: &Node) -> Option<TimedEvent> {
        let fields = ast::Event::read(self.cx, node)?;
        let action = self.action(&fields);
        let trigger = self.trigger(&fields);
        let name = match fields.name.node() {
            Some(node) => self.name(node),
            None => action.as_ref().map(|(_, text)| text.clone()),
        };
        Some(TimedEvent { name: name?, trigger: trigger?, action: action?.0 })
    }

    fn name(&mut self, node: &Node) -> Option<String> {
        let name = self.cx.text(node, say!("a name"))?;
        if name.trim().is_empty() || name.contains(char::is_control) {
            let help = say!("write the name on one line: `name: restart Redis`");
            return self.cx.bad_value(node, say!("this is not a valid name"), help);
        }
        Some(cut(name.trim()))
    }

    fn trigger(&mut self, fields: &ast::Event<'_>) -> Option<Trigger> {
        let Some((key, node)) = ast::one_of(self.cx, &[fields.at, fields.after, fields.when])
        else {
            return fields.need(self.cx, fields.at, AT_HELP).and(None);
        };
        match key.text.as_str() {
            "at" => self.at(node),
            "after" => self.after(node),
            _ => thresholds::read_condition(self.cx, node, self.names)
                .map(|rule| Trigger::When(Box::new(rule))),
        }
    }

    /// `10m`, `steady`, `steady + 60s`.
    fn at(&mut self, node: &Node) -> Option<Trigger> {
        let text = self.cx.text(node, say!("a time"))?;
        if let Ok(time) = units::parse_duration(text.trim()) {
            self.warn_late(node, time);
            return Some(Trigger::At(time));
        }
        let (name, offset) = offset(&text);
        let phase = thresholds::phase_called(self.cx, node, self.names, name)?;
        let planned = plan(self.names.loads);
        let begin = planned.get(usize::from(phase)).filter(|it| it.begin_is_known);
        if let Some(planned) = begin {
            self.warn_late(node, planned.begin.saturating_add(offset));
        }
        Some(Trigger::Phase { phase, offset })
    }

    /// Warns if the run ends before this time, as far as known.
    fn warn_late(&mut self, node: &Node, at: Duration) {
        let ends = plan(self.names.loads).into_iter();
        let ends = ends.map(|it| it.length.filter(|_| it.begin_is_known).map(|n| it.begin + n));
        let Some(end) = ends.collect::<Option<Vec<_>>>().and_then(|all| all.into_iter().max())
        else {
            return;
        };
        if at >= end && !self.cx.mistakes.has_errors() {
            let (at, end) = (units::write_duration(at), units::write_duration(end));
            let message = say!("this event never happens: it is set for {at}");
            let help = say!("set an earlier time, or make the load longer");
            self.cx.warn("event-never", node.place, message, say!("the load ends at {end}"), help);
        }
    }

    /// `EVENT`, `EVENT + 10s`.
    fn after(&mut self, node: &Node) -> Option<Trigger> {
        let text = self.cx.text(node, say!("the name of an event"))?;
        let is = |name: &str| self.before.iter().position(|event| event.name == name);
        let (name, offset) = match is(text.trim()) {
            Some(_) => (text.trim(), Duration::ZERO),
            None => offset(&text),
        };
        if let Some(event) = is(name) {
            return Some(Trigger::After { event: event as u16, offset });
        }
        let message = say!("there is no event `{}` above this one", shorten(name));
        let none = say!("move that event above this one");
        let names = (name, self.before.iter().map(|event| event.name.as_str()));
        self.cx.unknown("unknown-name", node.place, message, names, say!("here"), none)
    }

    /// The action, and its default name.
    fn action(&mut self, fields: &ast::Event<'_>) -> Option<(Action, String)> {
        let all = [fields.run, fields.http, fields.mark, fields.amend, fields.audit];
        let Some((key, node)) = ast::one_of(self.cx, &all) else {
            return fields.need(self.cx, fields.run, ACTION_HELP).and(None);
        };
        self.without_effect(fields, key);
        let timeout = fields.timeout.node().and_then(|node| self.cx.time_limit(node));
        match key.text.as_str() {
            "run" => self.run(node, timeout.unwrap_or(RUN_TIMEOUT)),
            "http" => self.http(node, fields, timeout.unwrap_or(HTTP_TIMEOUT)),
            "mark" => self.name(node).map(|text| (Action::Mark, text)),
            "amend" => self.amend(node, fields.load.node()),
            _ => self.audit(node),
        }
    }

    /// Warns of keys that belong to another action.
    fn without_effect(&mut self, fields: &ast::Event<'_>, action: &Key) {
        let http: &[&str] = &["http"];
        let keys: [(Field<'_>, &[&str]); 5] = [
            (fields.headers, http),
            (fields.body, http),
            (fields.status, http),
            (fields.timeout, &["run", "http"]),
            (fields.load, &["amend"]),
        ];
        for (field, of) in keys {
            let Some(key) = field.key().filter(|_| !of.contains(&action.text.as_str())) else {
                continue;
            };
            let message = say!("`{}` has no effect on `{}`", key.text, action.text);
            let label = say!("only for `{}`", of.join("`, `"));
            let help = say!("keep the one you need");
            self.cx.report("conflicting-keys", key.place, message, label, help);
        }
    }

    fn run(&mut self, node: &Node, timeout: Duration) -> Option<(Action, String)> {
        let command = read_command(self.cx, node)?;
        let name = match command.strip_prefix(&SHELL.map(str::to_string)) {
            Some([text]) => text.clone(),
            _ => command.join(" "),
        };
        Some((Action::Run { command, timeout }, cut(&name)))
    }

    fn audit(&mut self, node: &Node) -> Option<(Action, String)> {
        let name = self.cx.text(node, say!("the name of an audit"))?;
        let audits = self.names.audits;
        match audits.iter().position(|audit| audit.name == name) {
            Some(number) => Some((Action::Audit(number as u16), cut(&format!("audit {name}")))),
            None if !self.names.complete => None,
            None if audits.is_empty() => {
                let message = say!("the scenario has no audits");
                let help = say!("add an audit named `{}`, or remove this event", shorten(&name));
                self.cx.bad_value(node, message, help)
            }
            None => {
                let names: Vec<(&str, u16)> =
                    (0..).zip(audits).map(|(at, audit)| (audit.name.as_str(), at)).collect();
                self.cx.word(node, &names).map(|number| (Action::Audit(number), name))
            }
        }
    }

    fn http(
        &mut self,
        node: &Node,
        fields: &ast::Event<'_>,
        timeout: Duration,
    ) -> Option<(Action, String)> {
        let text = self.cx.text(node, say!("a method and a URL"))?;
        let help = say!("write `http: POST http://127.0.0.1:9000/failover`");
        let (method, target) = text.trim().split_once(' ').unwrap_or(("", text.trim()));
        let is_method = !method.is_empty() && method.bytes().all(|it| it.is_ascii_uppercase());
        let parsed = Url::parse(target.trim());
        let is_http = |url: &Url| matches!(url.scheme, Scheme::Http | Scheme::Https);
        let url = match parsed {
            Ok(url) if is_method && is_http(&url) => url,
            Err(reason) if is_method => {
                let message = say!("`{}` is not a valid URL", shorten(target));
                return self.cx.refuse("bad-url", node.place, message, reason.message, reason.help);
            }
            _ => {
                let message = say!("`{}` is not a method and a URL", shorten(&text));
                return self.cx.bad_value(node, message, help);
            }
        };
        let headers = fields.headers.node().map(|node| read_plain_headers(self.cx, node));
        let mut headers = headers.unwrap_or_default();
        authorize(self.cx, &url, &mut headers);
        let body = fields.body.node().and_then(|node| self.cx.text(node, say!("a body")));
        let call = HttpCall {
            method: method.to_string(),
            url: format!("{}{}", url.origin(), url.path),
            headers,
            body: body.unwrap_or_default(),
            statuses: self.statuses(fields.status.node()),
            timeout,
        };
        let name = format!("{method} {}", call.url);
        Some((Action::Http(Box::new(call)), cut(&name)))
    }

    fn statuses(&mut self, node: Option<&Node>) -> Vec<u16> {
        let Some(node) = node else { return Vec::new() };
        let items = node.one_or_more();
        let mut statuses = Vec::new();
        for item in items {
            let Some(status) = self.cx.whole(item) else { continue };
            match u16::try_from(status).ok().filter(|it| (100..600).contains(it)) {
                Some(status) => statuses.push(status),
                None => {
                    let message = say!("`{status}` is not an HTTP status");
                    self.cx.bad_value::<()>(item, message, say!("write `status: 200`"));
                }
            }
        }
        statuses
    }

    fn amend(&mut self, node: &Node, load: Option<&Node>) -> Option<(Action, String)> {
        let text = self.cx.text(node, say!("a change of the load"))?;
        let words: Vec<&str> = text.split_whitespace().collect();
        let share = |text: &str| units::parse_share(text).ok().filter(|share| *share > 0.0);
        let change = match words.as_slice() {
            ["users", users] => units::parse_count(users).ok().map(Change::Users),
            ["rate", rate] => units::parse_rate(rate).ok().map(Change::Rate),
            ["more"] => Some(Change::Times(1.0 + SHARE)),
            ["less"] => Some(Change::Times(1.0 / (1.0 + SHARE))),
            ["more", by] => share(by).map(|share| Change::Times(1.0 + share)),
            ["less", by] => share(by).map(|share| Change::Times(1.0 / (1.0 + share))),
            ["end-phase"] => Some(Change::EndPhase),
            _ => None,
        };
        let change = match words.as_slice() {
            ["pause"] => Some(Steering::Pause),
            ["go-on"] => Some(Steering::GoOn),
            _ => change.map(Steering::Change),
        };
        let Some(change) = change else {
            let message = say!("`{}` is not a change of the load", shorten(&text));
            return self.cx.bad_value(node, message, AMEND_HELP);
        };
        let load = match load {
            Some(node) => self.load(node)?,
            None => {
                let is_of_one = matches!(change, Steering::Change(_));
                if is_of_one && self.names.loads.len() > 1 {
                    let names = self.names.loads.iter().map(|it| it.name.clone());
                    let names = names.collect::<Vec<_>>().join(", ");
                    let message = say!("the scenario has several loads");
                    let label = say!("the name of the load is missing");
                    let help = say!("add `load: NAME`: {names}");
                    return self.cx.refuse("missing-key", node.place, message, label, help);
                }
                0
            }
        };
        Some((Action::Amend { load, change }, cut(&words.join(" "))))
    }

    fn load(&mut self, node: &Node) -> Option<u16> {
        let name = self.cx.text(node, say!("the name of a load"))?;
        let loads = self.names.loads;
        let words: Vec<(&str, u16)> =
            (0..).zip(loads).map(|(number, load)| (load.name.as_str(), number)).collect();
        match words.iter().find(|(word, _)| *word == name && !word.is_empty()) {
            Some((_, number)) => Some(*number),
            None if loads.is_empty() => None,
            None => self.cx.word(node, &words),
        }
    }
}

/// A shell command, or a program with arguments.
pub(crate) fn read_command(cx: &mut Context<'_>, node: &Node) -> Option<Vec<String>> {
    let command: Vec<String> = match &node.kind {
        Kind::List(items) => {
            let texts = items.iter().map(|item| cx.text(item, say!("an argument")));
            texts.collect::<Option<Vec<_>>>()?
        }
        _ => {
            let text = cx.text(node, say!("a command"))?;
            SHELL.iter().map(|it| (*it).to_string()).chain([text]).collect()
        }
    };
    let is_empty = command.last().is_none_or(|last| last.trim().is_empty());
    if is_empty || command.iter().any(|it| it.contains('\0')) {
        let help = say!("write a command: `run: systemctl restart redis`");
        return cx.bad_value(node, say!("there is no command"), help);
    }
    Some(command)
}

/// Splits `NAME + 10s` into the name and the offset.
fn offset(text: &str) -> (&str, Duration) {
    let split = text.rsplit_once('+').and_then(|(name, time)| {
        let time = units::parse_duration(time.trim()).ok()?;
        Some((name.trim(), time))
    });
    split.unwrap_or((text.trim(), Duration::ZERO))
}

/// Shortens a text to one line with the maximum length of a name.
fn cut(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(NAME_CHARS_MAX - 1) {
        Some((at, _)) if line.chars().count() > NAME_CHARS_MAX => format!("{}…", &line[..at]),
        _ => line,
    }
}
