//! What an answer has to be: the map behind `check:`.

use regex::bytes::Regex;
use throng_base::units;
use throng_program::{BodyCheck, Check, HeaderCheck, JsonCheck, StatusSet};

use crate::json;
use crate::keys;
use crate::read::{Context, Fields, shorten};
use crate::syntax::{Key, Kind, Node, Place};

/// What kind of answer is checked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Http,
    Message,
}

pub(crate) fn read_checks(cx: &mut Context<'_>, node: &Node, answer: Answer) -> Vec<Check> {
    let mut checks = Vec::new();
    let is_path = |key: &str| key.starts_with("json.") || key.starts_with("json[");
    let Some(fields) = Fields::read_open(cx, node, &keys::CHECK, is_path) else { return checks };
    for (key, value) in fields.iter() {
        match key.text.as_str() {
            "status" | "header" if answer == Answer::Message => {
                let message = format!("a message has no {}", key.text);
                let error = cx.error("wrong-check", message, key.place).label("only HTTP has it");
                cx.note(error.help("check `text`, `json` or `time`"));
            }
            "status" => checks.extend(read_status(cx, value).map(Check::Status)),
            "header" => read_header_checks(cx, value, &mut checks),
            "text" | "body" => {
                checks.extend(read_text_check(cx, value, Plain::Contains).map(Check::Body));
            }
            "time" => checks.extend(read_time(cx, value).map(Check::Time)),
            "json" => {
                let mut fields = Vec::new();
                json::read_json_checks(cx, value, &mut fields);
                checks.extend(fields.into_iter().map(Check::Json));
            }
            _ => read_path_check(cx, key, value, &mut checks),
        }
    }
    checks
}

/// `json.data.token: present`
fn read_path_check(cx: &mut Context<'_>, key: &Key, value: &Node, checks: &mut Vec<Check>) {
    let text = key.text.strip_prefix("json").unwrap_or(&key.text);
    let text = text.strip_prefix('.').unwrap_or(text);
    let mut fields: Vec<JsonCheck> = Vec::new();
    if let Some(path) = json::read_path(cx, text, key.place) {
        json::read_want(cx, value, path, &mut fields);
    }
    checks.extend(fields.into_iter().map(Check::Json));
}

fn read_status(cx: &mut Context<'_>, node: &Node) -> Option<StatusSet> {
    let nodes = match &node.kind {
        Kind::List(items) if items.is_empty() => {
            return cx.bad_value(node, "no status is right here", "write `status: 200`");
        }
        Kind::List(items) => items.as_slice(),
        _ => std::slice::from_ref(node),
    };
    let mut ranges = Vec::new();
    for node in nodes {
        let text = cx.text(node, "a status")?;
        match parse_status(&text) {
            Some(range) => ranges.push(range),
            None => {
                let message = format!("`{}` is not a status", shorten(&text));
                let error = cx.error("bad-value", message, node.place).label("100 to 599");
                let help = "write `200`, `2xx`, `200..299`, or a list: `[200, 304]`";
                return cx.fail(error.help(help));
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
    let help = "write `header: {content-type: text/plain}`";
    for (key, value) in cx.entries(node, "a map of headers", help).unwrap_or_default() {
        if !crate::headers::is_token(&key.text) {
            let message = format!("`{}` cannot be the name of a header", shorten(&key.text));
            let error = cx.error("bad-header", message, key.place).label("not a header name");
            cx.note(error.help(help));
            continue;
        }
        let name = key.text.clone();
        if let Some(want) = read_text_check(cx, value, Plain::Equals) {
            checks.push(Check::Header(HeaderCheck { name, want }));
        }
    }
}

/// What a text alone means.
#[derive(Clone, Copy)]
enum Plain {
    Contains,
    Equals,
}

fn read_text_check(cx: &mut Context<'_>, node: &Node, meaning: Plain) -> Option<BodyCheck> {
    if let Kind::Scalar { text, plain } = &node.kind {
        match (text.as_str(), plain, meaning) {
            ("present", true, _) => return Some(BodyCheck::Present),
            ("absent", true, _) => return Some(BodyCheck::Absent),
            ("", false, Plain::Equals) => return Some(BodyCheck::Equals(Vec::new())),
            _ => {}
        }
        let text = cx.text(node, "a text")?.into_bytes();
        return Some(match meaning {
            Plain::Contains => BodyCheck::Contains(text),
            Plain::Equals => BodyCheck::Equals(text),
        });
    }
    let fields = Fields::read(cx, node, &keys::TEXT_CHECK)?;
    let Some((key, value)) = fields.one_of(cx, &["contains", "equals", "matches"]) else {
        return match fields.is_empty() {
            true => cx.wrong_type(node, "a text", "write `{contains: text}`"),
            false => None,
        };
    };
    match key.text.as_str() {
        "matches" => read_regex(cx, value).map(BodyCheck::Matches),
        "equals" => {
            let text = crate::body::read_text(cx, value, "a text")?;
            match text.as_literal() {
                Some(bytes) => Some(BodyCheck::Equals(bytes.to_vec())),
                // A text that differs from user to user: `text` says where it cannot stand.
                None => cx.text(value, "what a check compares with").and(None),
            }
        }
        _ => cx.text(value, "a text").map(|text| BodyCheck::Contains(text.into_bytes())),
    }
}

/// A regular expression; its own limits keep compiling it short.
pub(crate) fn read_regex(cx: &mut Context<'_>, node: &Node) -> Option<Regex> {
    let text = cx.text(node, "a regular expression")?;
    match regex::bytes::RegexBuilder::new(&text).size_limit(1 << 20).build() {
        Ok(regex) => Some(regex),
        Err(reason) => {
            let message = format!("`{}` is not a regular expression", shorten(&text));
            let reason = reason.to_string();
            let last =
                reason.lines().last().unwrap_or("").trim_start_matches("error: ").to_string();
            let error = cx.error("bad-pattern", message, node.place).label(shorten(&last));
            cx.fail(
                error.help("put `\\` before a special character; single quotes keep it as it is"),
            )
        }
    }
}

/// `< 500ms`
fn read_time(cx: &mut Context<'_>, node: &Node) -> Option<std::time::Duration> {
    let text = cx.text(node, "a time limit")?;
    let plain = text.trim();
    let limit = plain.strip_prefix("<=").or(plain.strip_prefix('<')).unwrap_or(plain);
    match units::parse_duration(limit) {
        Ok(limit) if !limit.is_zero() => Some(limit),
        Ok(_) => cx.bad_value(node, "no answer comes in no time", "write `time: < 500ms`"),
        Err(reason) => {
            let message = format!("`{}` is not a time limit", shorten(&text));
            let error = cx.error("bad-value", message, node.place).label(reason.message);
            cx.fail(error.help("write `time: < 500ms`"))
        }
    }
}

/// A place for what is said about a list of checks.
pub(crate) fn empty_check(cx: &mut Context<'_>, place: Place) {
    let warning = cx
        .warning("empty-check", "this check checks nothing".into(), place)
        .label("empty")
        .help("write `check: {status: 200}`, or remove it");
    cx.note(warning);
}
