//! Values of responses that a later request sends: tokens, ids, hidden fields. They become `save`
//! in the response and `${saved.name}` in the request. A value that was sent before the response
//! had it comes from elsewhere and stays.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use regex::Regex;
use throng_base::secret::is_secret_name;

use super::names::is_id;
use crate::form::decoded;
use crate::json::{Json, json_key};
use crate::model::{Body, Exchange, Recording, Response, Save, name_of};
use crate::text::Text;

/// Values of one response that are looked at.
const VALUES_MAX: usize = 5_000;
/// Saved values of a scenario: a session has room for no more than a few hundred.
const SAVES_MAX: usize = 200;

/// A value of a response.
#[derive(Clone)]
struct Found {
    /// The number of its exchange.
    exchange: usize,
    save: Save,
    name: String,
    /// What an id is of: `order` for `order.id` and for the `id` that `POST /orders` returns.
    noun: String,
    /// Long enough not to be the same by chance.
    is_sure: bool,
    /// The name under which it is saved, once it is.
    saved: Option<String>,
}

#[derive(Default)]
struct Correlation {
    found: Vec<Found>,
    by_value: HashMap<String, usize>,
    sent: HashSet<String>,
    names: HashSet<String>,
    exchange: usize,
}

/// How many values are saved.
pub(super) fn correlate(recording: &mut Recording) -> usize {
    let mut correlation = Correlation::default();
    recording.each_exchange(|exchange| {
        correlation.request(exchange);
        if let Some(response) = &exchange.response {
            correlation.response(&noun_of_path(&exchange.url), response);
        }
        correlation.exchange += 1;
    });
    let mut number = 0;
    let used: Vec<&Found> = correlation.found.iter().filter(|one| one.saved.is_some()).collect();
    recording.each_exchange(|exchange| {
        for one in used.iter().filter(|one| one.exchange == number) {
            let name = one.saved.clone().unwrap_or_default();
            exchange.saves.push((name, one.save.clone()));
        }
        number += 1;
    });
    used.len()
}

impl Correlation {
    /// Puts saved values in the place of what the request sends, and remembers the rest.
    fn request(&mut self, exchange: &mut Exchange) {
        self.path(exchange);
        let mut headers = std::mem::take(&mut exchange.headers);
        for (name, value) in &mut headers {
            *value = self.header(name, value);
        }
        exchange.headers = headers;
        match &mut exchange.body {
            Body::Json(json) => json.leaves("", &mut |name, leaf| self.leaf(name, leaf)),
            Body::Form(pairs) => {
                for (name, value) in pairs {
                    *value = self.whole(name, value);
                }
            }
            Body::Multipart(parts) => {
                for part in parts {
                    if let crate::model::PartContent::Text(text) = &part.content {
                        part.content =
                            crate::model::PartContent::Text(self.whole(&part.name, text));
                    }
                }
            }
            Body::None | Body::Text(_) | Body::Bytes(_) | Body::File(_) => {}
        }
    }

    fn path(&mut self, exchange: &mut Exchange) {
        if let Some(url) = exchange.url.as_literal()
            && let Some(name) = self.use_value(&format!("url {url}"), "location", "")
        {
            exchange.url = Text::value(format!("saved.{name}"));
            return;
        }
        let (path, query) = match exchange.url.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (exchange.url.clone(), None),
        };
        let mut url = Text::default();
        let mut before = String::new();
        for (number, segment) in path.split('/').iter().enumerate() {
            if number > 0 {
                url.push("/");
            }
            let literal = segment.as_literal().unwrap_or_default().to_string();
            match self.use_value(&decoded(&literal, false), "", &singular(&before)) {
                Some(name) if !literal.is_empty() => url.push_value(format!("saved.{name}")),
                _ => url.append(segment),
            }
            self.remember(&literal);
            before = literal;
        }
        let Some(query) = query else {
            exchange.url = url;
            return;
        };
        for (number, pair) in query.split('&').iter().enumerate() {
            url.push(if number == 0 { "?" } else { "&" });
            let Some((name, value)) = pair.split_once('=') else {
                url.append(pair);
                continue;
            };
            url.append(&name);
            url.push("=");
            let plain = value.as_literal().map(|value| decoded(value, true)).unwrap_or_default();
            match self.use_value(&plain, &name.to_string(), "") {
                // What is safe in a query as it is needs no encoding.
                Some(saved)
                    if plain.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b)) =>
                {
                    url.push_value(format!("saved.{saved}"));
                }
                Some(saved) => url.push_value(format!("url.encode(saved.{saved})")),
                None => url.append(&value),
            }
            self.remember(&plain);
        }
        exchange.url = url;
    }

    /// `Bearer TOKEN` or the token alone.
    fn header(&mut self, name: &str, value: &Text) -> Text {
        const PLAIN: [&str; 8] = [
            "accept",
            "accept-language",
            "content-type",
            "origin",
            "referer",
            "user-agent",
            "x-requested-with",
            "range",
        ];
        if PLAIN.contains(&name.to_ascii_lowercase().as_str()) {
            return value.clone();
        }
        let Some(literal) = value.as_literal() else { return value.clone() };
        let (scheme, token) = literal.rsplit_once(' ').unwrap_or(("", literal));
        let mut out = Text::literal(match scheme.is_empty() {
            true => String::new(),
            false => format!("{scheme} "),
        });
        let used = self.use_value(token, name, "");
        self.remember(token);
        match used {
            Some(saved) => {
                out.push_value(format!("saved.{saved}"));
                out
            }
            None => value.clone(),
        }
    }

    fn whole(&mut self, name: &str, value: &Text) -> Text {
        let Some(literal) = value.as_literal().map(str::to_string) else { return value.clone() };
        let used = self.use_value(&literal, name, "");
        self.remember(&literal);
        used.map_or_else(|| value.clone(), |saved| Text::value(format!("saved.{saved}")))
    }

    fn leaf(&mut self, name: &str, leaf: &mut Json) {
        let literal = match leaf {
            Json::Text(text) => text.as_literal().unwrap_or_default().to_string(),
            Json::Number(number) => number.clone(),
            _ => return,
        };
        if let Some(saved) = self.use_value(&literal, name, "") {
            *leaf = Json::Text(Text::value(format!("saved.{saved}")));
        }
        self.remember(&literal);
    }

    fn remember(&mut self, value: &str) {
        if !value.is_empty() && value.len() <= 4096 {
            self.sent.insert(value.to_string());
        }
    }

    /// The saved name of a value, if a response had it; `name` is the field that sends it, or
    /// `noun` what stands before it in a path.
    fn use_value(&mut self, value: &str, name: &str, noun: &str) -> Option<String> {
        let number = *self.by_value.get(value)?;
        let found = &self.found[number];
        let is_meant = found.is_sure || {
            let sent = if noun.is_empty() { name_of(name) } else { noun.to_string() };
            let sent = sent.strip_suffix("_id").unwrap_or(&sent);
            !found.noun.is_empty()
                && (sent == found.noun || sent.ends_with(&format!("_{}", found.noun)))
        };
        if !is_meant {
            return None;
        }
        if let Some(name) = &found.saved {
            return Some(name.clone());
        }
        if self.names.len() >= SAVES_MAX {
            return None;
        }
        let base = found.name.clone();
        let mut name = base.clone();
        let mut more = 2;
        while !self.names.insert(name.clone()) {
            name = format!("{base}_{more}");
            more += 1;
        }
        self.found[number].saved = Some(name.clone());
        Some(name)
    }

    fn response(&mut self, noun: &str, response: &Response) {
        for (name, value) in &response.headers {
            let name = name.to_ascii_lowercase();
            if name == "location" {
                self.location(value);
            } else if is_secret_name(&name) && name != "set-cookie" {
                self.add(value, Save::Header(name.clone()), &name, "");
            }
        }
        if response.body.is_empty() {
            return;
        }
        if response.content_type.contains("html") || response.body.trim_start().starts_with('<') {
            self.html(&response.body);
        } else if let Ok(json) = Json::parse(&response.body) {
            let mut left = VALUES_MAX;
            self.json(&json, &mut Vec::new(), noun, &mut left);
        }
    }

    /// Where a response leads, if it names something new.
    fn location(&mut self, url: &str) {
        let path = match url.split_once("://") {
            Some((_, rest)) => rest.find('/').map_or("/", |at| &rest[at..]),
            None => url,
        };
        let path = path.split('#').next().unwrap_or_default();
        if path.split(['/', '?', '&', '=']).any(is_id) && path.starts_with('/') {
            self.insert(
                &format!("url {path}"),
                Found {
                    exchange: self.exchange,
                    save: Save::Header("location".into()),
                    name: "location".into(),
                    noun: String::new(),
                    is_sure: true,
                    saved: None,
                },
            );
        }
    }

    fn html(&mut self, body: &str) {
        static INPUT: LazyLock<Option<Regex>> =
            LazyLock::new(|| Regex::new(r#"(?is)<(input|meta)\s[^>]{0,2000}>"#).ok());
        let Some(input) = &*INPUT else { return };
        for tag in input.captures_iter(body).take(500) {
            let text = &tag[0];
            let Some(name) = attribute(text, "name") else { continue };
            let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
            if name.is_empty() || !is_plain {
                continue;
            }
            let is_meta = tag[1].eq_ignore_ascii_case("meta");
            if is_meta {
                let value = attribute(text, "content").unwrap_or_default();
                if is_secret_name(&name) || name.to_ascii_lowercase().contains("csrf") {
                    let css = format!("meta[name={name}]@content");
                    self.add(&value, Save::Css(css), &name, "");
                }
            } else if attribute(text, "type")
                .is_some_and(|kind| kind.eq_ignore_ascii_case("hidden"))
            {
                let value = attribute(text, "value").unwrap_or_default();
                self.add(&value, Save::Css(format!("input[name={name}]@value")), &name, "");
            }
        }
    }

    fn json(&mut self, json: &Json, path: &mut Vec<Step>, noun: &str, left: &mut usize) {
        if *left == 0 || path.len() > 20 {
            return;
        }
        *left -= 1;
        match json {
            Json::Map(entries) => {
                for (key, value) in entries {
                    path.push(Step::Key(key.clone()));
                    let inner = match value {
                        // `data` and `result` say nothing of what is in them.
                        Json::Map(_) | Json::List(_) if !is_wrapper(key) => singular(key),
                        _ => noun.to_string(),
                    };
                    self.json(value, path, &inner, left);
                    path.pop();
                }
            }
            Json::List(items) => {
                for (number, item) in items.iter().enumerate().take(100) {
                    path.push(Step::Item(number));
                    self.json(item, path, noun, left);
                    path.pop();
                }
            }
            Json::Text(text) => self.field(text.as_literal().unwrap_or_default(), path, noun),
            Json::Number(number) => self.field(number, path, noun),
            Json::Null | Json::Bool(_) => {}
        }
    }

    fn field(&mut self, value: &str, path: &[Step], noun: &str) {
        let key = path.iter().rev().find_map(|step| match step {
            Step::Key(key) => Some(key.as_str()),
            Step::Item(_) => None,
        });
        let key = name_of(key.unwrap_or("value"));
        let (name, noun) = match key.strip_suffix("_id") {
            _ if key == "id" && !noun.is_empty() => (format!("{noun}_id"), noun.to_string()),
            Some(noun) => (key.clone(), noun.to_string()),
            None => (key.clone(), String::new()),
        };
        self.add(value, save_of(path), &name, &noun);
    }

    fn add(&mut self, value: &str, save: Save, name: &str, noun: &str) {
        let (name, is_secret) = (name_of(name), is_secret_name(name));
        let digits = value.bytes().filter(u8::is_ascii_digit).count();
        let is_word = value.chars().all(|c| c.is_ascii_graphic());
        let is_sure = is_word
            && (value.len() >= 16 && !value.contains("://") && !value.starts_with('/')
                || value.len() >= 8 && digits > 0
                || value.len() >= 6 && digits == value.len()
                || value.len() >= 4 && is_secret);
        let is_good = is_sure || !noun.is_empty() && is_word;
        if value.is_empty() || value.len() > 4096 || !is_good || self.sent.contains(value) {
            return;
        }
        let found = Found {
            exchange: self.exchange,
            save,
            name,
            noun: noun.to_string(),
            is_sure,
            saved: None,
        };
        self.insert(value, found);
    }

    /// The latest response counts, until a value is used.
    fn insert(&mut self, value: &str, found: Found) {
        if let Some(number) = self.by_value.get(value) {
            let known = &self.found[*number];
            // In one response the first place of a value is the plainest one.
            if known.saved.is_some() || known.exchange == self.exchange {
                return;
            }
        }
        self.by_value.insert(value.to_string(), self.found.len());
        self.found.push(found);
    }
}

/// A step of a path in JSON.
enum Step {
    Key(String),
    Item(usize),
}

fn save_of(path: &[Step]) -> Save {
    let is_plain = |key: &str| {
        key.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    };
    let all_plain = path.iter().all(|step| !matches!(step, Step::Key(key) if !is_plain(key)));
    let mut out = String::new();
    for step in path {
        match step {
            Step::Item(number) => out.push_str(&format!("[{number}]")),
            Step::Key(key) if all_plain => {
                out.push_str(if out.is_empty() { "" } else { "." });
                out.push_str(key);
            }
            Step::Key(key) => {
                let key = json_key(key);
                out.push_str(&format!("['{key}']"));
            }
        }
    }
    match all_plain {
        true => Save::Json(out),
        false => Save::JsonPath(format!("${out}")),
    }
}

fn is_wrapper(key: &str) -> bool {
    matches!(
        key,
        "data" | "result" | "results" | "items" | "response" | "payload" | "content" | "body"
    )
}

/// The last word of a path that is not an id: `order` of `/api/orders/7`.
fn noun_of_path(url: &Text) -> String {
    let url = url.to_string();
    let path = url.split('?').next().unwrap_or_default();
    let words = path.split('/').rev();
    let mut words = words.filter(|word| word.len() > 2 && !is_id(word) && !word.contains("${"));
    words.next().map(singular).unwrap_or_default()
}

fn singular(word: &str) -> String {
    let word = name_of(word);
    match word.strip_suffix("ies") {
        Some(stem) => format!("{stem}y"),
        None => word.strip_suffix('s').filter(|stem| !stem.ends_with('s')).unwrap_or(&word).into(),
    }
}

/// The value of an attribute in the text of a tag.
fn attribute(tag: &str, name: &str) -> Option<String> {
    let lower = tag.to_ascii_lowercase();
    for (at, _) in lower.match_indices(name) {
        let before = lower[..at].chars().next_back();
        let behind = tag[at + name.len()..].trim_start();
        let (Some(behind), true) =
            (behind.strip_prefix('='), before.is_some_and(char::is_whitespace))
        else {
            continue;
        };
        let behind = behind.trim_start();
        return Some(match behind.chars().next()? {
            quote @ ('"' | '\'') => behind[1..].split(quote).next()?.to_string(),
            _ => behind.split([' ', '>', '/', '\n', '\t']).next()?.to_string(),
        });
    }
    None
}

#[cfg(test)]
mod tests;
