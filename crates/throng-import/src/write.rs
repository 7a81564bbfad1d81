//! The scenario as YAML. Long contents are written to files beside it; an omission is a comment at
//! its place, and is repeated in the list at the top.

mod steps;

use std::time::Duration;

use throng_base::Said;
use throng_base::units::write_duration;

use crate::model::{Item, LeftOut, Phase, Recording, Session, Variable, file_name, unique};
use crate::shape::{ACCOUNTS_FILE, Shaped};
use crate::text::Text;
use crate::yaml::{Node, document, scalar};
use crate::{Format, Imported, Options};

/// Remarks at the top of a scenario; the rest is counted.
const REMARKS_MAX: usize = 40;
/// The value of a secret until the environment sets one, so that `check` works.
const PLACEHOLDER: &str = "replace-me";

/// Headers of more than this share of the requests are written once.
const SHARED_SHARE: f64 = 0.5;
const SHARED_HEADERS: [&str; 5] =
    ["user-agent", "accept-language", "accept", "origin", "authorization"];

pub(crate) fn write(
    mut recording: Recording,
    format: Format,
    name: &str,
    shaped: &Shaped,
    options: &Options,
) -> Imported {
    let mut imported =
        Imported { targets: shaped.targets.list.len(), saved: shaped.saved, ..Imported::default() };
    let shared = share_headers(&mut recording);
    let mut writer = steps::Writer::new(options.stem.clone(), options.folder.clone());
    let sessions = sessions(&recording, &mut writer);
    let (setup, teardown) = (writer.steps(&recording.setup), writer.steps(&recording.teardown));
    let mut entries = vec![("name".to_string(), Node::text(&recording.name))];
    targets(&mut entries, shaped);
    if recording.is_insecure {
        entries.push(("tls".into(), Node::one("verify", Node::scalar("false"))));
    } else if let Some(file) = &recording.authorities {
        entries.push(("tls".into(), Node::one("ca", Node::text(&file.to_string_lossy()))));
    }
    let at = entries.len();
    if !shared.is_empty() {
        let headers = Node::one("headers", Node::block(pairs(&shared)));
        entries.push(("defaults".into(), Node::block(headers)));
    }
    for (key, steps) in [("setup", setup), ("teardown", teardown)] {
        if has_steps(&steps) {
            entries.push((key.into(), Node::block(Node::List(steps))));
        }
    }
    entries.push(("sessions".into(), Node::block(Node::Map(sessions))));
    entries.push(("load".into(), Node::block(load(&recording.load))));
    let thresholds = match recording.thresholds.is_empty() {
        true => vec!["errors < 1%".to_string()],
        false => recording.thresholds.clone(),
    };
    let lines = thresholds.iter().map(|line| Node::text(line)).collect();
    entries.push(("thresholds".into(), Node::block(Node::List(lines))));
    let used = document(&entries);
    let mut named = Vec::new();
    vars(&mut named, &used_variables(&recording.variables, &used), &mut imported);
    tables(&mut named, &recording, &used, &mut imported);
    entries.splice(at..at, named);
    imported.requests = writer.requests;
    imported.files.extend(std::mem::take(&mut writer.files));
    imported.left_out = std::mem::take(&mut recording.left_out);
    imported.left_out.append(&mut writer.left_out);
    imported.left_out = together(&imported.left_out);
    imported.scenario = head(&imported, format, name, options) + &document(&entries);
    imported
}

/// Repeated omissions for one reason become one remark with their number.
fn together(left_out: &[LeftOut]) -> Vec<LeftOut> {
    let mut out: Vec<LeftOut> = Vec::new();
    for one in left_out {
        match out.iter_mut().find(|known| known.what == one.what) {
            Some(known) => {
                known.count += one.count;
                known.place = Said::default();
            }
            None => out.push(one.clone()),
        }
    }
    out
}

/// True if a text contains `vars.name`, not as a prefix of a longer name.
fn names(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        !text[at + name.len()..].starts_with(is_word)
    })
}

/// The variables that the scenario uses, and those that they depend on.
fn used_variables(variables: &[Variable], text: &str) -> Vec<Variable> {
    let mut used: Vec<bool> =
        variables.iter().map(|one| names(text, &format!("vars.{}", one.name))).collect();
    // Variables may depend on others, transitively.
    for _ in 0..variables.len().min(100) {
        let values = variables.iter().zip(&used).filter(|(_, used)| **used);
        let values: String = values
            .filter_map(|(one, _)| one.value.as_ref())
            .map(|value| value.template() + "\n")
            .collect();
        let named = |one: &Variable| names(&values, &format!("vars.{}", one.name));
        let next: Vec<bool> =
            variables.iter().zip(&used).map(|(one, used)| *used || named(one)).collect();
        if next == used {
            break;
        }
        used = next;
    }
    let used = variables.iter().zip(used).filter(|(_, used)| *used);
    used.map(|(variable, _)| variable.clone()).collect()
}

/// The comments at the top.
fn head(imported: &Imported, format: Format, name: &str, options: &Options) -> String {
    let stem = &options.stem;
    let file = file_name(name);
    let mut lines = vec![
        match options.is_recorded {
            true => "Recorded with `throng record`.".to_string(),
            false => format!("Imported from {file} with `throng import {}`.", format.word()),
        },
        format!(
            "Check it with `throng check {stem}.yaml`, then run it once with `throng try {stem}.yaml`."
        ),
    ];
    if !imported.secrets.is_empty() {
        let list = imported.secrets.join(", ");
        lines.push(format!("Secrets come from the environment. Set {list}."));
    }
    let accounts = format!("{stem}-{ACCOUNTS_FILE}");
    let is_written = imported.files.iter().any(|(name, _)| *name == accounts);
    if is_written && matches!(format, Format::Har) {
        lines.push(format!(
            "Users log in with the names in {accounts}. Add a row for each account. If"
        ));
        lines
            .push("their passwords differ, add a column and use ${data.accounts.password}.".into());
    }
    if !imported.unknown.is_empty() {
        let list = imported.unknown.join(", ");
        lines.push(format!("The file does not define {list}: set the values in `vars`."));
    }
    let count = imported.left_out.len();
    if count > 0 {
        lines.push("Left out:".into());
        for one in imported.left_out.iter().take(REMARKS_MAX) {
            let times = if one.count > 1 { format!("{} × ", one.count) } else { String::new() };
            lines.push(format!("- {times}{}", one.said().english()));
        }
        if count > REMARKS_MAX {
            lines.push(format!("- and {} more, each at its place below", count - REMARKS_MAX));
        }
    }
    let clean =
        |line: &String| line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    lines.iter().map(clean).map(|line: String| format!("# {line}\n")).collect()
}

fn targets(entries: &mut Vec<(String, Node)>, shaped: &Shaped) {
    let list = &shaped.targets.list;
    match list.as_slice() {
        [] => {}
        [(_, origin)] => entries.push(("target".into(), origin.node())),
        [(main, _), ..] => {
            let map = list.iter().map(|(name, origin)| (name.clone(), origin.node()));
            entries.push(("targets".into(), Node::block(Node::Map(map.collect()))));
            entries.push(("target".into(), Node::text(main)));
        }
    }
}

fn vars(entries: &mut Vec<(String, Node)>, variables: &[Variable], imported: &mut Imported) {
    let mut map = Vec::new();
    for variable in variables {
        let value = match (&variable.value, &variable.env) {
            (Some(value), None) => value.node(),
            (value, Some(env)) => {
                let default = value.as_ref().map_or(PLACEHOLDER.to_string(), Text::scalar);
                let mut inner = vec![
                    ("env".to_string(), Node::text(env)),
                    ("default".to_string(), Node::scalar(default)),
                ];
                if variable.is_secret {
                    imported.secrets.push(env.clone());
                    if !throng_base::secret::is_secret_name(&variable.name) {
                        inner.push(("secret".to_string(), Node::scalar("true")));
                    }
                }
                Node::Map(inner)
            }
            (None, None) => {
                imported.unknown.push(variable.name.clone());
                Node::scalar(PLACEHOLDER)
            }
        };
        map.push((variable.name.clone(), value));
    }
    if !map.is_empty() {
        entries.push(("vars".into(), Node::block(Node::Map(map))));
    }
}

fn tables(
    entries: &mut Vec<(String, Node)>,
    recording: &Recording,
    used: &str,
    imported: &mut Imported,
) {
    let mut map = Vec::new();
    let is_used = |name: &str| names(used, &format!("data.{name}"));
    for table in recording.tables.iter().filter(|table| is_used(&table.name)) {
        map.push((table.name.clone(), Node::one("csv", Node::text(&table.file))));
        let csv = csv(&table.columns) + &csv(&table.row);
        imported.files.push((table.file.clone(), csv.into_bytes()));
    }
    if !map.is_empty() {
        entries.push(("data".into(), Node::block(Node::Map(map))));
    }
}

/// A line of RFC 4180.
fn csv(fields: &[String]) -> String {
    let field = |text: &String| match text.contains(['"', ',', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.clone(),
    };
    fields.iter().map(field).collect::<Vec<_>>().join(",") + "\n"
}

fn sessions(recording: &Recording, writer: &mut steps::Writer) -> Vec<(String, Node)> {
    let mut sessions = Vec::new();
    let mut names: Vec<String> = Vec::new();
    let is_one = recording.sessions.len() == 1;
    for session in &recording.sessions {
        let base = match session.name.trim() {
            "" => "user".to_string(),
            name => name.chars().map(|c| if c.is_control() { ' ' } else { c }).take(60).collect(),
        };
        let name = unique(&base, " ", |name| names.iter().any(|known| known == name));
        names.push(name.clone());
        let entries = session_entries(session, is_one, writer);
        sessions.push((scalar(&name), Node::block(Node::Map(entries))));
    }
    sessions
}

fn session_entries(
    session: &Session,
    is_one: bool,
    writer: &mut steps::Writer,
) -> Vec<(String, Node)> {
    let mut entries = Vec::new();
    match (session.users, session.weight) {
        (Some(users), _) => entries.push(("users".into(), Node::scalar(users.max(1).to_string()))),
        (None, Some(weight)) if !is_one => {
            entries.push(("weight".into(), Node::scalar(weight.max(1).to_string())));
        }
        _ => {}
    }
    let before = writer.steps(&session.before);
    if has_steps(&before) {
        entries.push(("before".into(), Node::block(Node::List(before))));
    }
    let mut steps = writer.steps(&session.steps);
    if !session.steps.iter().any(always_takes_time) {
        steps.push(Node::block(Node::one("think", Node::scalar("1s"))));
    }
    entries.push(("steps".into(), Node::block(Node::List(steps))));
    let after = writer.steps(&session.after);
    if has_steps(&after) {
        entries.push(("after".into(), Node::block(Node::List(after))));
    }
    entries
}

/// True if an item prevents users from looping at full speed.
fn always_takes_time(item: &Item) -> bool {
    let any = |items: &[Item]| items.iter().any(always_takes_time);
    match item {
        Item::Http(_) | Item::Socket(_) | Item::Think(_) => true,
        Item::Group(_, inner) | Item::Repeat(_, inner) | Item::ForEach(_, _, inner) => any(inner),
        Item::Choose(branches) => branches.iter().all(|(_, inner)| any(inner)),
        Item::Parallel(branches) => branches.iter().any(|inner| any(inner)),
        Item::If(..) | Item::LeftOut(_) | Item::Note(_) => false,
    }
}

pub(super) fn has_steps(nodes: &[Node]) -> bool {
    nodes.iter().any(|node| !is_remark(node))
}

fn is_remark(node: &Node) -> bool {
    match node {
        Node::Commented(_, inner) => is_remark(inner),
        Node::Scalar(text) => text.is_empty(),
        _ => false,
    }
}

/// Names and values; a repeated name has a list.
pub(super) fn pairs(pairs: &[(String, Text)]) -> Node {
    let mut map: Vec<(String, Vec<Node>)> = Vec::new();
    for (name, value) in pairs {
        let (key, value) = (Text::literal(name.as_str()).scalar(), value.node());
        match map.iter_mut().find(|(known, _)| *known == key) {
            Some((_, values)) => values.push(value),
            None => map.push((key, vec![value])),
        }
    }
    let one = |(key, mut values): (String, Vec<Node>)| match values.len() {
        1 => (key, values.remove(0)),
        _ => (key, Node::List(values)),
    };
    Node::Map(map.into_iter().map(one).collect())
}

/// Removes from the requests the headers that most of them share, and returns these.
fn share_headers(recording: &mut Recording) -> Vec<(String, Text)> {
    let mut total = 0;
    let mut counted: Vec<(String, Text, usize)> = Vec::new();
    recording.each_exchange(|exchange| {
        total += 1;
        for (name, value) in &exchange.headers {
            let is_shared = SHARED_HEADERS.iter().any(|one| name.eq_ignore_ascii_case(one));
            let is_constant = value.pieces().iter().all(|piece| match piece {
                crate::text::Piece::Literal(_) => true,
                crate::text::Piece::Value(value) => value.starts_with("vars."),
            });
            if !is_shared || !is_constant {
                continue;
            }
            let same = |one: &&mut (String, Text, usize)| {
                one.0.eq_ignore_ascii_case(name) && one.1 == *value
            };
            let is_full = counted.len() >= 1000;
            match counted.iter_mut().find(same) {
                Some(known) => known.2 += 1,
                None if !is_full => counted.push((name.clone(), value.clone(), 1)),
                None => {}
            }
        }
    });
    if total < 3 {
        return Vec::new();
    }
    // Credentials apply to all requests, or to some.
    let is_common = |one: &&(String, Text, usize)| match one.0.eq_ignore_ascii_case("authorization")
    {
        true => one.2 == total,
        false => one.2 as f64 > total as f64 * SHARED_SHARE,
    };
    let common = counted.iter().filter(is_common);
    let shared: Vec<_> = common.map(|(name, value, _)| (name.clone(), value.clone())).collect();
    recording.each_exchange(|exchange| {
        exchange.headers.retain(|(name, value)| {
            !shared.iter().any(|(own, shared)| own.eq_ignore_ascii_case(name) && shared == value)
        });
    });
    shared
}

/// The default load is small.
fn load(phases: &[Phase]) -> Node {
    let default = [Phase::Users { users: 10, time: Duration::from_secs(60) }];
    let phases = if phases.is_empty() { &default[..] } else { phases };
    let mut before = 0;
    Node::List(phases.iter().map(|phase| one_phase(phase, &mut before)).collect())
}

fn one_phase(phase: &Phase, before: &mut u64) -> Node {
    let entry = |key: &str, value: String| (key.to_string(), Node::scalar(value));
    let time = |time: &Duration| write_duration((*time).max(Duration::from_secs(1)));
    let entries = match phase {
        Phase::Users { users, time: length } => {
            let same = *before == (*users).max(1) && *before > 0;
            *before = (*users).max(1);
            match same {
                true => vec![entry("for", time(length))],
                false => vec![entry("users", before.to_string()), entry("for", time(length))],
            }
        }
        Phase::Ramp { to, time: length } => {
            let difference = before.abs_diff(*to);
            let seconds = length.as_secs_f64().max(1.0);
            let from = *before;
            *before = *to;
            if difference == 0 {
                return Node::Map(match from {
                    0 => vec![entry("users", "1".into()), entry("for", time(length))],
                    _ => vec![entry("for", time(length))],
                });
            }
            let inner =
                vec![entry("to", to.to_string()), entry("rate", rate(difference as f64 / seconds))];
            vec![("users".to_string(), Node::Map(inner))]
        }
        Phase::Arrivals { from, to, time: length } => {
            let rates = match (from - to).abs() < 1e-9 {
                true => Node::scalar(rate(*to)),
                false => Node::Map(vec![entry("from", rate(*from)), entry("to", rate(*to))]),
            };
            vec![("arrivals".to_string(), rates), entry("for", time(length))]
        }
        Phase::Iterations { total, users } => {
            *before = *users;
            vec![
                entry("iterations", total.max(&1).to_string()),
                entry("users", users.max(&1).to_string()),
            ]
        }
        Phase::Rate { rate: per_second, users, time: length } => {
            *before = *users;
            vec![
                entry("iterations", rate(*per_second)),
                entry("users", users.max(&1).to_string()),
                entry("for", time(length)),
            ]
        }
    };
    Node::Map(entries)
}

/// `2/s`, and `1/5s` below one per second.
fn rate(per_second: f64) -> String {
    if per_second >= 1.0 || per_second <= 0.0 {
        let rounded = (per_second * 100.0).round() / 100.0;
        return format!("{rounded}/s");
    }
    let per_minute = per_second * 60.0;
    match per_minute >= 1.0 {
        true => format!("{}/m", (per_minute * 100.0).round() / 100.0),
        false => format!("{}/h", (per_second * 3600.0).max(0.01)),
    }
}
