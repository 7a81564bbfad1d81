//! Checks of a response: the map under `check:`.

use std::time::Duration;

use throng_base::units;
use throng_extract::Digest;
use throng_metrics::Comparison;
use throng_program::{Check, Escape, Extractor, Matcher, StatusSet, Text};

use crate::ast::{self, Field};
use crate::keys;
use crate::message::answer::Answer;
use crate::message::fields;
use crate::message::json;
use crate::message::matchers::{
    Meaning, parse_comparison, read_extractor, read_found, read_operator,
};
use crate::message::packets;
use crate::native::{self, Headers};
use crate::read::Context;
use crate::read::foreign::{check_sign, warn_word};
use crate::read::template::read_condition;
use crate::scope::Spoken;
use crate::synonyms::{did_you_mean, near_label};
use crate::syntax::{Key, Kind, Node, Place};
use crate::words::shorten;

/// Reads a `check:`, whose expressions can use the response.
pub(crate) fn read_checks(
    cx: &mut Context<'_>,
    field: Field<'_>,
    answer: Answer<'_>,
) -> Vec<Check> {
    let Some(node) = field.node() else { return Vec::new() };
    if matches!(&node.kind, Kind::Map(entries) if entries.is_empty()) {
        let help = say!("write `check: {{status: 200}}`, or remove it");
        cx.warn("empty-check", node.place, say!("this check is empty"), say!("empty"), help);
    }
    answer.read(cx, |cx| read_all(cx, node, answer))
}

fn read_all(cx: &mut Context<'_>, node: &Node, answer: Answer<'_>) -> Vec<Check> {
    let mut checks = Vec::new();
    let is_path = |key: &str| key.starts_with("json.") || key.starts_with("json[");
    let accepts: fn(&str) -> bool = match answer.kinds() {
        Some(_) => |_: &str| true,
        None => is_path,
    };
    let Some(entries) = ast::read_open(cx, node, &keys::CHECK, accepts) else { return checks };
    for (key, value) in entries {
        let out = &mut checks;
        if let Some(kinds) = answer.kinds() {
            match key.text.as_str() {
                "field" => {
                    fields::read_field_map(cx, value, kinds, out);
                    continue;
                }
                // The name of a status is a complete check.
                "status" if answer.names_statuses(value) => {}
                _ if packets::read_packets(cx, (key, value), kinds, out) => continue,
                word if answer.is_word(word) => {
                    fields::warn_hidden(cx, kinds, word, key.place);
                }
                path => {
                    fields::read_field(cx, value, path, key.place, kinds, out);
                    continue;
                }
            }
        }
        match key.text.as_str() {
            // For an event: its name and ID.
            "header" if cx.scope.spoken.has_headers() => read_header_checks(cx, value, out),
            "status" | "header" | "cookie" if matches!(answer, Answer::Message) => {
                only_http(cx, key);
            }
            "field" => no_fields(cx, key.place),
            "packets" => packets::no_packets(cx, key.place),
            word if native::of_header(word).is_some() => {
                let has_it = need_header(cx, key);
                let matcher = has_it.and_then(|()| read_found(cx, value, Meaning::Json));
                let extractor = Extractor::Header(word.into());
                out.extend(matcher.map(|matcher| Check { extractor, matcher }));
            }
            "status" => {
                let set = match answer {
                    Answer::Call(_, names) => (names.read)(cx, value),
                    _ => read_status(cx, value),
                };
                let set = set.map(Matcher::Statuses);
                out.extend(set.map(|matcher| Check { extractor: Extractor::Status, matcher }));
            }
            "header" => read_header_checks(cx, value, out),
            "cookie" => read_cookie_checks(cx, value, out),
            "text" | "body" => {
                let matcher = read_text_check(cx, value, Plain::Contains);
                out.extend(matcher.map(|matcher| Check { extractor: Extractor::Body, matcher }));
            }
            "json" => json::read_json_checks(cx, value, out),
            "regex" | "xpath" | "css" => read_found_checks(cx, &key.text, value, out),
            "size" => read_size(cx, value, out),
            "time" => {
                let limit = read_time(cx, value).map(|(comparison, limit)| {
                    Matcher::Number(comparison, (limit.as_nanos() as u64).into())
                });
                out.extend(limit.map(|matcher| Check { extractor: Extractor::Time, matcher }));
            }
            "digest" => read_digests(cx, value, out),
            "that" => read_conditions(cx, value, out),
            _ => read_json_key(cx, key, value, out),
        }
    }
    checks
}

/// Refuses checks of status and headers for messages, which have neither.
pub(crate) fn only_http(cx: &mut Context<'_>, key: &Key) {
    let message = say!("a message has no `{}`", shorten(&key.text));
    let help = say!("check `text`, `json` or `time`");
    cx.report("wrong-check", key.place, message, say!("only available for HTTP responses"), help);
}

/// Refuses a header that only another protocol has.
pub(crate) fn need_header(cx: &mut Context<'_>, key: &Key) -> Option<()> {
    let word = key.text.as_str();
    let own = cx.scope.spoken.native().and_then(|native| native.only_here(word));
    if own.is_some() || matches!(cx.scope.spoken, Spoken::Unknown) {
        return Some(());
    }
    let native = native::of_header(word)?;
    let help = say!("remove `{word}`");
    cx.refuse("step-scheme", key.place, native.only_here(word)?.clone(), native.not_spoken(), help)
}

/// Only declared protocols have fields. A protocol with a mistake may have any.
pub(crate) fn no_fields(cx: &mut Context<'_>, place: Place) {
    if matches!(cx.scope.spoken, Spoken::Unknown) {
        return;
    }
    let message = say!("only messages of a declared protocol have fields");
    let help = say!("check `json`, `text` or `time`, or declare the protocol");
    cx.report("wrong-check", place, message, say!("no `protocol` is declared here"), help);
}

/// `json.data.token: present`
fn read_json_key(cx: &mut Context<'_>, key: &Key, value: &Node, checks: &mut Vec<Check>) {
    let text = json_path_of(&key.text);
    if let Some(path) = json::read_path(cx, text, key.place) {
        json::read_path_check(cx, value, path, checks);
    }
}

/// The path in `json.data.token`, `json[0].id` or `json.$..id`.
pub(crate) fn json_path_of(text: &str) -> &str {
    let text = text.strip_prefix("json").unwrap_or(text);
    text.strip_prefix('.').unwrap_or(text)
}

fn read_status(cx: &mut Context<'_>, node: &Node) -> Option<StatusSet> {
    let nodes = match &node.kind {
        Kind::List(items) if items.is_empty() => {
            return cx.bad_value(
                node,
                say!("the list of statuses is empty"),
                say!("write `status: 200`"),
            );
        }
        Kind::List(items) => items.as_slice(),
        _ => std::slice::from_ref(node),
    };
    let mut ranges = Vec::new();
    for node in nodes {
        let text = cx.text(node, say!("a status"))?;
        match parse_status(&text) {
            Some(range) => ranges.push(range),
            None => {
                let message = say!("`{}` is not an HTTP status", shorten(&text));
                let ranged = text.replacen('-', "..", 1);
                let label = match parse_status(&ranged) {
                    Some(_) => say!("did you mean `{ranged}`?"),
                    None => say!("valid statuses are 100 to 599"),
                };
                let help = say!("write `200`, `2xx`, `200..299`, or a list: `[200, 304]`");
                return cx.refuse("bad-value", node.place, message, label, help);
            }
        }
    }
    Some(StatusSet { ranges })
}

/// `200`, `2xx` or `200..299`.
pub(crate) fn parse_status(text: &str) -> Option<(u16, u16)> {
    let text = text.trim();
    let single = |text: &str| {
        let text = text.trim();
        let good = text.len() == 3 && text.bytes().all(|b| b.is_ascii_digit());
        text.parse().ok().filter(|status| good && (100..=599).contains(status))
    };
    if let Some((low, high)) = text.split_once("..") {
        let (low, high) = (single(low)?, single(high)?);
        return (low <= high).then_some((low, high));
    }
    if let [class @ b'1'..=b'5', b'x' | b'X', b'x' | b'X'] = text.as_bytes() {
        let low = u16::from(class - b'0') * 100;
        return Some((low, low + 99));
    }
    single(text).map(|status| (status, status))
}

fn read_header_checks(cx: &mut Context<'_>, node: &Node, checks: &mut Vec<Check>) {
    let help = say!("write `header: {{content-type: text/plain}}`");
    for (key, value) in cx.entries(node, say!("a map of headers"), help.clone()).unwrap_or_default()
    {
        let has_values = matches!(cx.scope.spoken.headers(), Headers::Values(_));
        if !has_values && !crate::message::headers::is_token(&key.text) {
            let message = say!("`{}` is not a valid header name", shorten(&key.text));
            cx.report("bad-header", key.place, message, say!("not a header name"), help.clone());
            continue;
        }
        let (name, matcher) = match has_values {
            true => (key.text.clone(), read_found(cx, value, Meaning::Json)),
            false => (key.text.to_ascii_lowercase(), read_text_check(cx, value, Plain::Equals)),
        };
        let extractor = Extractor::Header(name);
        checks.extend(matcher.map(|matcher| Check { extractor, matcher }));
    }
}

fn read_cookie_checks(cx: &mut Context<'_>, node: &Node, checks: &mut Vec<Check>) {
    let help = say!("write `cookie: {{sid: present}}`");
    for (key, value) in cx.entries(node, say!("a map of cookies"), help.clone()).unwrap_or_default()
    {
        let name =
            crate::message::headers::check_cookie_name(cx, &key.text, key.place, help.clone());
        let matcher = name.and_then(|()| read_text_check(cx, value, Plain::Equals));
        checks.extend(
            matcher
                .map(|matcher| Check { extractor: Extractor::Cookie(key.text.clone()), matcher }),
        );
    }
}

/// The meaning of a text without a key.
#[derive(Clone, Copy)]
enum Plain {
    Contains,
    Equals,
}

fn read_text_check(cx: &mut Context<'_>, node: &Node, meaning: Plain) -> Option<Matcher> {
    if let Kind::Scalar { text, plain } = &node.kind {
        match (text.as_str(), plain, meaning) {
            ("present", true, _) => return Some(Matcher::Present),
            ("absent", true, _) => return Some(Matcher::Absent),
            ("", false, Plain::Equals) => return Some(Matcher::Equals(Text::default())),
            (_, _, Plain::Contains) => check_sign(cx, node)?,
            _ => {
                check_sign(cx, node)?;
                warn_word(cx, node);
            }
        }
        let text = cx.template(node, say!("text"), Escape::None)?;
        return Some(match meaning {
            Plain::Contains => Matcher::Contains(text),
            Plain::Equals => Matcher::Equals(text),
        });
    }
    let fields = ast::TextCheck::read(cx, node)?;
    match ast::one_of(cx, &[fields.contains, fields.equals, fields.matches]) {
        Some((key, value)) => read_operator(cx, key, value),
        None if node.is_empty() => {
            cx.wrong_type(node, say!("text"), say!("write `{{contains: text}}`"))
        }
        None => None,
    }
}

/// `xpath: //title`, or `xpath: {//title: Hello}`.
fn read_found_checks(cx: &mut Context<'_>, kind: &str, node: &Node, checks: &mut Vec<Check>) {
    if matches!(node.kind, Kind::Scalar { .. }) {
        let text = cx.text(node, say!("a pattern to search for"));
        if let Some(text) = text
            && let Some(extractor) = read_extractor(cx, kind, &text, node.place)
        {
            checks.push(Check { extractor, matcher: Matcher::Present });
        }
        return;
    }
    let help = match kind {
        "regex" => say!("write `regex: 'id=\\d+'` or `regex: {{'id=(\\d+)': 7}}`"),
        "xpath" => say!("write `xpath: //title` or `xpath: {{//title: Hello}}`"),
        _ => say!("write `css: form.login` or `css: {{li.item: {{count: 3}}}}`"),
    };
    let entries = cx.filled_map(
        node,
        say!("a pattern to search for"),
        say!("there is nothing to search for"),
        help,
    );
    for (key, value) in entries {
        let extractor = read_extractor(cx, kind, &key.text, key.place);
        let matcher = read_found(cx, value, Meaning::Text);
        checks.extend(
            extractor.zip(matcher).map(|(extractor, matcher)| Check { extractor, matcher }),
        );
    }
}

/// `200`, `< 10KiB` or `1KiB..2KiB`.
fn read_size(cx: &mut Context<'_>, node: &Node, checks: &mut Vec<Check>) {
    let Some(text) = cx.text(node, say!("a size")) else { return };
    let matchers = match (parse_comparison(&text), text.split_once("..")) {
        (Some((comparison, size)), _) => {
            units::parse_size(size).map(|size| vec![(comparison, size)])
        }
        (None, Some((low, high))) => units::parse_size(low)
            .and_then(|low| Ok((low, units::parse_size(high)?)))
            .map(|(low, high)| {
                vec![(Comparison::GreaterOrEqual, low), (Comparison::LessOrEqual, high)]
            }),
        (None, None) => units::parse_size(&text).map(|size| vec![(Comparison::Equal, size)]),
    };
    match matchers {
        Ok(matchers) => {
            if let [(_, low), (_, high)] = matchers[..]
                && low > high
            {
                let help = say!("write `1KiB..2KiB`");
                let _: Option<()> = cx.bad_value(
                    node,
                    say!("the start of the range is greater than its end"),
                    help,
                );
            }
            if matchers == [(Comparison::Less, 0)] {
                let help = say!("write `size: < 10KiB` or `size: 0`");
                let _: Option<()> = cx.bad_value(node, say!("a size cannot be less than 0"), help);
            }
            checks.extend(matchers.into_iter().map(|(comparison, size)| Check {
                extractor: Extractor::Size,
                matcher: Matcher::Number(comparison, size.into()),
            }));
        }
        Err(reason) => {
            let message = say!("`{}` is not a size", shorten(&text));
            let help = say!("write `size: 200`, `size: < 10KiB` or `size: 1KiB..2KiB`");
            cx.report("bad-value", node.place, message, reason.message, help);
        }
    }
}

/// `digest: {sha256: …}`
fn read_digests(cx: &mut Context<'_>, node: &Node, checks: &mut Vec<Check>) {
    let help = say!("write `digest: {{sha256: …}}` with the hexadecimal digest of the body");
    for (key, value) in cx.entries(node, say!("a map of digests"), help.clone()).unwrap_or_default()
    {
        let Some(digest) = Digest::parse(&key.text) else {
            let message = say!("`{}` is not a digest", shorten(&key.text));
            let names = Digest::ALL.map(Digest::name);
            let label = near_label(did_you_mean(&key.text, names), say!("unknown"));
            let names = names.map(|name| format!("`{name}`")).join(", ");
            cx.report("unknown-key", key.place, message, label, say!("available: {names}"));
            continue;
        };
        let Some(text) = cx.template(value, say!("a digest"), Escape::None) else { continue };
        let matcher = match text.as_literal() {
            Some(digits) => {
                let digits = digits.trim_ascii().to_ascii_lowercase();
                if digits.len() != digest.digits() || !digits.iter().all(u8::is_ascii_hexdigit) {
                    let message = say!("the digest is not valid");
                    let label = say!(
                        "a `{}` digest has {} hexadecimal digits",
                        digest.name(),
                        digest.digits()
                    );
                    cx.report("bad-value", value.place, message, label, help.clone());
                    continue;
                }
                Text::literal(digits)
            }
            None => text,
        };
        checks.push(Check {
            extractor: Extractor::Digest(digest),
            matcher: Matcher::Equals(matcher),
        });
    }
}

/// `that: "${response.json.total == 3}"`, or several.
fn read_conditions(cx: &mut Context<'_>, node: &Node, checks: &mut Vec<Check>) {
    let nodes = node.one_or_more();
    for node in nodes {
        let extractor = read_condition(cx, node).map(Extractor::Expression);
        checks.extend(extractor.map(|extractor| Check { extractor, matcher: Matcher::True }));
    }
}

/// `< 500ms`
pub(crate) fn read_time(cx: &mut Context<'_>, node: &Node) -> Option<(Comparison, Duration)> {
    let text = cx.text(node, say!("a time limit"))?;
    let (comparison, limit) = match parse_comparison(&text) {
        Some((comparison @ (Comparison::Less | Comparison::LessOrEqual), limit)) => {
            (comparison, limit)
        }
        _ => (Comparison::Less, text.trim()),
    };
    match units::parse_duration(limit) {
        Ok(limit) if !limit.is_zero() => Some((comparison, limit)),
        Ok(_) => cx.bad_value(
            node,
            say!("a check with a time limit of zero always fails"),
            say!("write `time: < 500ms`"),
        ),
        Err(reason) => {
            let message = say!("`{}` is not a time limit", shorten(&text));
            let help = say!("write `time: < 500ms`");
            cx.refuse("bad-value", node.place, message, reason.message, help)
        }
    }
}
