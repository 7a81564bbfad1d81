//! Response values that a later request sends: tokens, IDs, hidden fields, links. They become
//! `save` in the response and `${saved.name}` in the request. A value that was sent before a
//! response contained it has another source and is kept.

mod labels;
mod links;
mod scan;

use std::collections::{HashMap, HashSet};

use throng_base::secret::is_secret_name;
use throng_extract::Page;

use super::forms::Forms;
use super::names::is_id;
use super::page;
use crate::form::decoded;
use crate::json::{Json, json_key};
use crate::model::{Body, Exchange, Item, Recording, Response, Save, Socket, name_of};
use crate::text::Text;
use labels::{Used, placeholder};
use links::Links;

/// The maximum number of values per response.
const VALUES_MAX: usize = 5_000;
/// The maximum number of saved values of a scenario: a session supports only a few hundred.
const SAVES_MAX: usize = 200;
/// Fields that identify a created resource.
const NAMES: [&str; 6] = ["key", "name", "path", "slug", "uid", "uuid"];
/// The maximum number of values that are searched in the texts of all responses.
const SCANS_MAX: usize = 500;

/// A value of a response.
struct Found {
    /// The number of its exchange.
    exchange: usize,
    save: Save,
    name: String,
    /// The resource of an ID: `order` for `order.id` and for the `id` that `POST /orders` returns.
    noun: String,
    /// Long enough to rule out a coincidence.
    is_sure: bool,
    /// The last exchange whose request sends it.
    last_use: Option<usize>,
}

impl Found {
    fn sure(exchange: usize, save: Save, name: String) -> Found {
        Found { exchange, save, name, noun: String::new(), is_sure: true, last_use: None }
    }
}

#[derive(Default)]
struct Correlation {
    forms: Forms,
    found: Vec<Found>,
    by_value: HashMap<String, usize>,
    sent: HashSet<String>,
    links: Links,
    /// The URLs of all requests: of other links, only their existence matters.
    requested: HashSet<String>,
    /// The responses so far, by exchange.
    received: Vec<(usize, Response)>,
    exchange: usize,
    /// The response says that the request created a resource.
    creates: bool,
    saves: usize,
    scans: usize,
}

/// Returns the number of saved values.
pub(super) fn correlate(recording: &mut Recording, forms: &Forms) -> usize {
    let mut correlation = Correlation { forms: forms.clone(), ..Correlation::default() };
    recording.each_exchange(|exchange| {
        correlation.requested.insert(exchange.url.to_string());
    });
    each(recording, &mut |item| correlation.item(item));
    let saves = Saves::of(&correlation.found);
    let mut at = 0;
    each(recording, &mut |item| {
        match item {
            Item::Http(exchange) => {
                exchange.each_text(&mut |text| labels::rename(text, &saves.names));
                exchange.saves.extend(saves.by_exchange.get(&at).cloned().unwrap_or_default());
            }
            Item::Socket(socket) => {
                socket.each_text(&mut |text| labels::rename(text, &saves.names));
            }
            _ => {}
        }
        at += 1;
    });
    saves.by_exchange.values().map(Vec::len).sum()
}

/// The saves, and their names by value number.
struct Saves {
    names: HashMap<usize, String>,
    by_exchange: HashMap<usize, Vec<(String, Save)>>,
}

impl Saves {
    fn of(found: &[Found]) -> Saves {
        let mut used: Vec<usize> = (0..found.len()).collect();
        used.retain(|number| found[*number].last_use.is_some());
        used.sort_by_key(|number| (found[*number].exchange, *number));
        // Values with the same source are the same value.
        let mut values: Vec<Used> = Vec::new();
        let mut same: Vec<(usize, usize)> = Vec::new();
        for number in used {
            let one = &found[number];
            let last_use = one.last_use.unwrap_or_default();
            let mut known = values.iter_mut().rev().take_while(|it| it.saved_at == one.exchange);
            match known.find(|known| found[known.number].save == one.save) {
                Some(known) => {
                    known.last_use = known.last_use.max(last_use);
                    same.push((number, known.number));
                }
                None => {
                    let (base, saved_at) = (one.name.clone(), one.exchange);
                    values.push(Used { number, base, saved_at, last_use });
                }
            }
        }
        let mut names = labels::names(&values);
        let mut by_exchange: HashMap<usize, Vec<(String, Save)>> = HashMap::new();
        for value in &values {
            if let Some(name) = names.get(&value.number) {
                let save = (name.clone(), found[value.number].save.clone());
                by_exchange.entry(value.saved_at).or_default().push(save);
            }
        }
        for (number, known) in same {
            if let Some(name) = names.get(&known).cloned() {
                names.insert(number, name);
            }
        }
        Saves { names, by_exchange }
    }
}

/// Calls `visit` with each request and each WebSocket, in the order of the recording.
fn each(recording: &mut Recording, visit: &mut dyn FnMut(&mut Item)) {
    fn inner(items: &mut [Item], visit: &mut dyn FnMut(&mut Item)) {
        for item in items {
            match item {
                Item::Http(_) | Item::Socket(_) => visit(item),
                Item::Parallel(branches) => branches.iter_mut().for_each(|it| inner(it, visit)),
                _ => {}
            }
        }
    }
    recording.lists_mut().for_each(|items| inner(items, visit));
}

impl Correlation {
    fn item(&mut self, item: &mut Item) {
        match item {
            Item::Http(exchange) => {
                let url = exchange.url.to_string();
                let is_login = self.forms.login(exchange).is_some();
                self.request(exchange);
                if is_login {
                    self.links.log_in();
                } else if !matches!(exchange.method.as_str(), "GET" | "HEAD" | "OPTIONS") {
                    self.links.change();
                }
                if let Some(response) = &mut exchange.response {
                    self.response(&url, response);
                    // The checks only need the status.
                    let status = response.status;
                    let received = std::mem::take(response);
                    response.status = status;
                    self.received.push((self.exchange, received));
                }
            }
            Item::Socket(socket) => self.socket(socket),
            _ => {}
        }
        self.exchange += 1;
    }

    /// Replaces saved values in the request, and remembers the others.
    fn request(&mut self, exchange: &mut Exchange) {
        if let Some(row) = self.url(&mut exchange.url) {
            exchange.name = Some(format!("{} {row}", exchange.method));
        }
        for (name, value) in &mut exchange.headers {
            *value = self.header(name, value);
        }
        match &mut exchange.body {
            Body::Json(json) => json.leaves("", &mut |name, leaf| self.leaf(name, leaf)),
            body => body.each_field(&mut |name, text| *text = self.whole(name, text)),
        }
    }

    /// The messages that a WebSocket sends; received ones are not searched.
    fn socket(&mut self, socket: &mut Socket) {
        if !socket.continues {
            self.url(&mut socket.url);
        }
        for (name, value) in &mut socket.headers {
            *value = self.header(name, value);
        }
        socket.each_json(&mut |json| json.leaves("", &mut |name, leaf| self.leaf(name, leaf)));
    }

    /// The path of a request, and its query. If the whole URL is a saved value, returns the name of
    /// its row.
    fn url(&mut self, whole: &mut Text) -> Option<String> {
        let literal = whole.as_literal().unwrap_or_default().to_string();
        if let Some(number) = self.use_value(&format!("url {literal}"), "", "") {
            *whole = Text::value(self.sent_value(number));
            return Some(self.links.row(&literal));
        }
        self.links.remember(&literal);
        let (path, query) = match whole.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (whole.clone(), None),
        };
        let mut url = Text::default();
        let mut before = String::new();
        for (number, segment) in path.split('/').iter().enumerate() {
            if number > 0 {
                url.push("/");
            }
            let literal = segment.as_literal().unwrap_or_default().to_string();
            match self.use_value(&decoded(&literal, false), "", &singular(&before)) {
                Some(number) if !literal.is_empty() => url.push_value(self.sent_value(number)),
                _ => url.append(segment),
            }
            self.remember(&literal);
            before = literal;
        }
        if let Some(query) = query {
            self.query(&query, &mut url);
        }
        *whole = url;
        None
    }

    fn query(&mut self, query: &Text, url: &mut Text) {
        for (number, pair) in query.split('&').iter().enumerate() {
            url.push(if number == 0 { "?" } else { "&" });
            let Some((name, value)) = pair.split_once('=') else {
                url.append(pair);
                continue;
            };
            url.append(&name);
            url.push("=");
            let plain = value.as_literal().map(|value| decoded(value, true)).unwrap_or_default();
            match self.find_value(&plain, &name.to_string()) {
                // A value that is safe in a query needs no encoding.
                Some(number)
                    if plain.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b)) =>
                {
                    url.push_value(self.sent_value(number));
                }
                Some(number) => url.push_value(format!("url.encode({})", self.sent_value(number))),
                None => url.append(&value),
            }
            self.remember(&plain);
        }
    }

    /// `Bearer TOKEN`, or only the token.
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
        let used = self.find_value(token, name);
        self.remember(token);
        match used {
            Some(number) => {
                out.push_value(self.sent_value(number));
                out
            }
            None => value.clone(),
        }
    }

    /// A form field: the page's field has precedence over other equal values.
    fn whole(&mut self, name: &str, value: &Text) -> Text {
        let Some(literal) = value.as_literal().map(str::to_string) else { return value.clone() };
        let field = self.use_value(&format!("field {name}={literal}"), "", "");
        let used = field.or_else(|| self.find_value(&literal, name));
        self.remember(&literal);
        used.map_or_else(|| value.clone(), |number| Text::value(self.sent_value(number)))
    }

    fn leaf(&mut self, name: &str, leaf: &mut Json) {
        let literal = match leaf {
            Json::Text(text) => text.as_literal().unwrap_or_default().to_string(),
            Json::Number(number) => number.clone(),
            _ => return,
        };
        if let Some(number) = self.find_value(&literal, name) {
            *leaf = Json::Text(Text::value(self.sent_value(number)));
        }
        self.remember(&literal);
    }

    fn remember(&mut self, value: &str) {
        if !value.is_empty() && value.len() <= 4096 {
            self.sent.insert(value.to_string());
        }
    }

    /// The number of a value from a response field, or else from any response text.
    fn find_value(&mut self, value: &str, name: &str) -> Option<usize> {
        self.use_value(value, name, "").or_else(|| self.scan(value, name))
    }

    fn scan(&mut self, value: &str, name: &str) -> Option<usize> {
        let is_new = !self.by_value.contains_key(value) && !self.sent.contains(value);
        if !is_new || !scan::is_worth_it(name, value) || self.scans >= SCANS_MAX {
            return None;
        }
        self.scans += 1;
        let (exchange, base, save) =
            self.received.iter().rev().find_map(|(exchange, response)| {
                let cookie = scan::in_cookies(response, value);
                let text = || Some((name.to_string(), scan::in_text(&response.body, value)?));
                let (base, save) = cookie.or_else(text)?;
                Some((*exchange, base, save))
            })?;
        self.by_value.insert(value.to_string(), self.found.len());
        self.found.push(Found::sure(exchange, save, name_of(&base)));
        self.use_value(value, "", "")
    }

    /// The number of a value that a response contained; `name` is the field that sends it, or
    /// `noun` the path segment before it.
    fn use_value(&mut self, value: &str, name: &str, noun: &str) -> Option<usize> {
        let number = *self.by_value.get(value)?;
        let found = &self.found[number];
        let is_meant = found.is_sure || {
            let sent = if noun.is_empty() { name_of(name) } else { noun.to_string() };
            let sent = sent.strip_suffix("_id").unwrap_or(&sent);
            let names = |noun: &str| {
                sent == noun
                    || sent.ends_with(&format!("_{noun}"))
                    || NAMES.contains(&sent) && found.name == format!("{noun}_{sent}")
            };
            !found.noun.is_empty() && names(&found.noun)
        };
        if !is_meant {
            return None;
        }
        if found.last_use.is_none() {
            if self.saves >= SAVES_MAX {
                return None;
            }
            self.saves += 1;
        }
        self.found[number].last_use = Some(self.exchange);
        Some(number)
    }

    /// The expression for the sent form of a value.
    fn sent_value(&self, number: usize) -> String {
        match self.found[number].save {
            Save::Cookie { is_encoded: true, .. } => format!("url.decode({})", placeholder(number)),
            _ => placeholder(number),
        }
    }

    fn response(&mut self, url: &str, response: &Response) {
        let noun = noun_of_path(url);
        self.creates = response.status == Some(201);
        for (name, value) in &response.headers {
            let name = name.to_ascii_lowercase();
            if name == "location" {
                self.location(url, value);
            } else if is_secret_name(&name) && name != "set-cookie" || name == "etag" {
                self.add(value, Save::Header(name.clone()), &name, "");
            }
        }
        if let Some(body) = response.html() {
            self.html(url, body);
        } else if let Ok(json) = Json::parse(&response.body) {
            let mut left = VALUES_MAX;
            self.json(&json, &mut Vec::new(), &noun, &mut left);
        }
    }

    /// The URL of a redirect, if it names a new resource.
    fn location(&mut self, page: &str, url: &str) {
        if let Some(url) = links::resolved(page, url)
            && self.links.is_new(&url)
        {
            self.url_found(&url, Save::Header("location".into()));
        }
    }

    fn url_found(&mut self, url: &str, save: Save) {
        let key = format!("url {url}");
        let is_link = !matches!(save, Save::Header(_));
        // A redirect is reliable; a link is only the first of those that match.
        let known = self.by_value.get(&key).map(|number| &self.found[*number]);
        let is_better =
            |known: &Found| known.last_use.is_some() || matches!(known.save, Save::Header(_));
        if is_link && known.is_some_and(is_better) {
            return;
        }
        let noun = noun_of_path(url);
        let name = match noun.is_empty() {
            true => "location".to_string(),
            false => format!("{noun}_url"),
        };
        let found = Found { noun, ..Found::sure(self.exchange, save, name) };
        self.insert_latest(&key, found);
    }

    fn html(&mut self, url: &str, body: &str) {
        let page = Page::new(body.as_bytes());
        for field in page::fields(&page) {
            let is_secret =
                is_secret_name(&field.name) || field.name.to_ascii_lowercase().contains("csrf");
            if !field.is_hidden {
                if is_secret {
                    self.add(&field.value, field.save, &field.name, "");
                }
                continue;
            }
            let has_digit = field.value.bytes().any(|b| b.is_ascii_digit());
            let varies =
                self.forms.is_varying(&field.name) && (field.value.is_empty() || has_digit);
            let is_token = is_secret && !field.value.is_empty();
            let save = field.save;
            if varies || is_token || is_sure(&field.value, is_secret) {
                let found = Found::sure(self.exchange, save.clone(), name_of(&field.name));
                self.insert_latest(&format!("field {}={}", field.name, field.value), found);
            }
            self.add(&field.value, save, &field.name, "");
        }
        for (tag, attribute, all) in page::links(&page) {
            for (number, link) in all.iter().enumerate() {
                let Some(to) = links::resolved(url, link) else { continue };
                self.links.see(&to);
                let is_requested = self.requested.contains(&to);
                let kind = (tag, attribute);
                let save = is_requested.then(|| self.links.finds(kind, &all, number, &to, body));
                if let Some(save) = save.flatten() {
                    self.url_found(&to, save);
                }
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
                        // `data` and `result` do not describe their content.
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
            None if self.creates && NAMES.contains(&&*key) && !noun.is_empty() => {
                (format!("{noun}_{key}"), noun.to_string())
            }
            None => (key.clone(), String::new()),
        };
        self.add(value, save_of(path), &name, &noun);
    }

    fn add(&mut self, value: &str, save: Save, name: &str, noun: &str) {
        let (name, is_secret) = (name_of(name), is_secret_name(name));
        let is_sure = is_sure(value, is_secret);
        let is_good = is_sure || !noun.is_empty() && is_word(value);
        // A created value is new, even if it was sent before.
        let is_sent = self.sent.contains(value) && (!self.creates || noun.is_empty());
        if value.is_empty() || value.len() > 4096 || !is_good || is_sent {
            return;
        }
        let found = Found::sure(self.exchange, save, name);
        let found = Found { noun: noun.to_string(), is_sure, ..found };
        // The latest response counts, until a value is used.
        let known = self.by_value.get(value).map(|number| &self.found[*number]);
        if known.is_none_or(|known| known.last_use.is_none()) {
            self.insert_latest(value, found);
        }
    }

    /// Within a response, the first occurrence of a value is the simplest.
    fn insert_latest(&mut self, value: &str, found: Found) {
        let known = self.by_value.get(value).map(|number| &self.found[*number]);
        if known.is_none_or(|known| known.exchange != self.exchange) {
            self.by_value.insert(value.to_string(), self.found.len());
            self.found.push(found);
        }
    }
}

fn is_word(value: &str) -> bool {
    value.chars().all(|c| c.is_ascii_graphic())
}

/// True if an equal value cannot be a coincidence.
fn is_sure(value: &str, is_secret: bool) -> bool {
    let digits = value.bytes().filter(u8::is_ascii_digit).count();
    is_word(value)
        && (value.len() >= 16 && !value.contains("://") && !value.starts_with('/')
            || value.len() >= 8 && digits > 0
            || value.len() >= 6 && digits == value.len()
            || value.len() >= 4 && is_secret)
}

/// A step of a JSON path.
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

/// The last path segment that is not an ID: `order` for `/api/orders/7` and `issue` for `/issue7`.
fn noun_of_path(url: &str) -> String {
    let path = url.split('?').next().unwrap_or_default();
    let is_noun = |word: &str| {
        let is_slug = word.contains(['-', '_']) && word.bytes().any(|b| b.is_ascii_digit());
        word.len() > 2 && !is_slug && !is_id(word) && !word.contains("${")
    };
    const OWN: [&str; 5] = ["me", "self", "whoami", "current", "current_user"];
    if path.rsplit('/').next().is_some_and(|word| OWN.contains(&word)) {
        return "user".into();
    }
    let noun = path.split('/').rfind(|word| is_noun(word)).unwrap_or_default();
    match noun.trim_end_matches(|c: char| c.is_ascii_digit()) {
        "" => String::new(),
        noun => singular(noun),
    }
}

fn singular(word: &str) -> String {
    let word = name_of(word);
    match word.strip_suffix("ies") {
        Some(stem) => format!("{stem}y"),
        None => word.strip_suffix('s').filter(|stem| !stem.ends_with('s')).unwrap_or(&word).into(),
    }
}

#[cfg(test)]
mod tests;
