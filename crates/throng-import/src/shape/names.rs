//! Names of rows: requests that differ only by an ID share one row, `GET /users/:id`.

use std::collections::{BTreeMap, HashMap};

use crate::json::Json;
use crate::model::{Body, Exchange, Recording};
use crate::text::{Piece, Text};

/// Names longer than this are cut in reports.
const NAME_CHARS_MAX: usize = 80;

pub(super) fn give(recording: &mut Recording) {
    let actions = actions(recording);
    recording.each_exchange(|exchange| {
        let written = format!("{} {}", exchange.method, exchange.url.template());
        let name = match exchange.name.take() {
            Some(name) => clean(&name),
            None => name_of(exchange, &actions),
        };
        // Without a name, the row shows the request as written.
        exchange.name = Some(name).filter(|name| !name.is_empty() && *name != written);
    });
}

fn clean(name: &str) -> String {
    let name: Vec<&str> = name.split_whitespace().collect();
    name.join(" ").chars().take(NAME_CHARS_MAX).collect()
}

/// The parameters that select an action, for paths that serve all pages, such as `/index.php`: all
/// their values are words, and there are several.
fn actions(recording: &mut Recording) -> HashMap<String, Vec<String>> {
    let mut values: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    recording.each_exchange(|exchange| {
        let Some((path, query)) = exchange.url.split_once('?') else { return };
        let path = path.to_string();
        if path != "/" && !path.rsplit('/').next().is_some_and(|program| program.contains('.')) {
            return;
        }
        for pair in query.split('&') {
            if let Some((name, value)) = pair.split_once('=') {
                let values = values.entry((path.clone(), name.to_string())).or_default();
                if !values.contains(&value.to_string()) && values.len() < 100 {
                    values.push(value.to_string());
                }
            }
        }
    });
    let is_word = |value: &String| {
        let is_letter = |b: u8| b.is_ascii_alphabetic() || b"_-".contains(&b);
        (1..=24).contains(&value.len()) && value.bytes().all(is_letter)
    };
    values.retain(|_, values| values.len() > 1 && values.iter().all(is_word));
    let mut actions: HashMap<String, Vec<String>> = HashMap::new();
    for (path, name) in values.into_keys() {
        actions.entry(path).or_default().push(name);
    }
    actions
}

fn name_of(exchange: &Exchange, actions: &HashMap<String, Vec<String>>) -> String {
    let (path, query) = match exchange.url.split_once('?') {
        Some((path, query)) => (path, query),
        None => (exchange.url.clone(), Text::default()),
    };
    let mut name = exchange.method.clone();
    name.push(' ');
    if let Some(value) = path.as_value() {
        name.push(':');
        name.push_str(value.rsplit('.').next().unwrap_or(value));
    }
    let segments = path.split('/');
    for (number, segment) in segments.iter().enumerate().filter(|_| path.as_value().is_none()) {
        name.push_str(if number > 0 { "/" } else { "" });
        name.push_str(&segment_name(segment));
    }
    let actions = actions.get(&path.to_string()).map_or(&[][..], Vec::as_slice);
    let is_action =
        |pair: &Text| pair.split_once('=').is_some_and(|(it, _)| actions.contains(&it.to_string()));
    for (number, pair) in query.split('&').iter().filter(|pair| is_action(pair)).enumerate() {
        name.push_str(if number == 0 { "?" } else { "&" });
        name.push_str(&pair.to_string());
    }
    if let Body::Json(json) = &exchange.body
        && let Some(operation) = operation(json)
    {
        name.push(' ');
        name.push_str(&operation);
    }
    clean(&name)
}

fn segment_name(segment: &Text) -> String {
    match segment.pieces() {
        [] => String::new(),
        [Piece::Literal(text)] if is_id(text) => ":id".into(),
        [Piece::Literal(text)] => text.clone(),
        pieces => {
            let named = pieces.iter().map(|piece| match piece {
                Piece::Literal(text) => text.clone(),
                Piece::Value(value) => {
                    let word = value.rsplit(['.', '(']).next().unwrap_or_default();
                    let word = word.trim_end_matches([')', ' ']);
                    let is_word = !word.is_empty()
                        && word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
                    format!(":{}", if is_word { word } else { "value" })
                }
            });
            named.collect()
        }
    }
}

/// The operation of a GraphQL request.
fn operation(json: &Json) -> Option<String> {
    json.get("query")?;
    json.str("operationName").filter(|name| !name.is_empty()).map(str::to_string)
}

/// True if a path segment identifies one of many resources: a number, a UUID, a digest, a token.
pub(super) fn is_id(segment: &str) -> bool {
    let bytes = segment.as_bytes();
    let digits = bytes.iter().filter(|b| b.is_ascii_digit()).count();
    let is_hex = bytes.iter().all(|b| b.is_ascii_hexdigit() || *b == b'-');
    let is_word = bytes.iter().all(|b| b.is_ascii_alphanumeric() || b"-_.~%=".contains(b));
    let is_version = segment.starts_with('v') && segment[1..].bytes().all(|b| b.is_ascii_digit());
    match bytes.len() {
        0 => false,
        _ if is_version => false,
        length if digits == length => true,
        length if is_hex && length >= 8 && digits > 0 => true,
        // Words with a number are names: `2024-summer-sale`. Long random ones are not.
        length => {
            let letters: Vec<char> = segment.chars().collect();
            let changes = letters.windows(2).filter(|two| {
                two[0].is_ascii_digit() != two[1].is_ascii_digit() && two[0] != '-' && two[1] != '-'
            });
            is_word && length >= 12 && digits >= 3 && changes.count() >= 3
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Item, Session};

    #[test]
    fn ids_are_distinguished_from_names() {
        let ids = [
            "42",
            "550e8400-e29b-41d4-a716-446655440000",
            "8f3a9c21",
            "01ARZ3NDEKTSV4RRFFQ69G5FAV",
            "cus_9s6XKzkNRiz8i3",
        ];
        let names =
            ["users", "v2", "summer-sale", "2024-summer-sale", "deadbeef", "index.html", ""];
        assert!(ids.iter().all(|id| is_id(id)));
        assert_eq!(names.iter().filter(|name| is_id(name)).count(), 0);
    }

    #[test]
    fn row_names_have_no_ids_or_query() {
        let mut url = Text::literal("/users/42/orders/");
        url.push_value("saved.order_id");
        url.push("?page=2");
        let exchange = Exchange { method: "GET".into(), url, ..Exchange::default() };
        assert_eq!(name_of(&exchange, &HashMap::new()), "GET /users/:id/orders/:order_id");
        let body = Json::parse(r#"{"query":"{me}","operationName":"Me"}"#).unwrap();
        let (method, url) = ("POST".into(), "/graphql".into());
        let exchange = Exchange { method, url, body: Body::Json(body), ..Exchange::default() };
        assert_eq!(name_of(&exchange, &HashMap::new()), "POST /graphql Me");
    }
    #[test]
    fn a_single_script_for_all_pages_has_a_row_per_action() {
        let urls = [
            "/index.php?title=Tea&action=edit",
            "/index.php?title=Tea_2&action=submit",
            "/index.php?search=tea",
            "/list?sort=asc",
            "/list?sort=desc",
        ];
        let exchange = |url: &str| Exchange { url: url.into(), ..Exchange::default() };
        let steps = urls.map(|url| Item::Http(Box::new(exchange(url)))).into();
        let session = Session { steps, ..Session::default() };
        let mut recording = Recording { sessions: vec![session], ..Recording::default() };
        give(&mut recording);
        let mut names = Vec::new();
        recording.each_exchange(|exchange| names.push(exchange.name.clone().unwrap_or_default()));
        let names: Vec<&str> = names.iter().map(|name| name.trim()).collect();
        let want =
            ["/index.php?action=edit", "/index.php?action=submit", "/index.php", "/list", "/list"];
        assert_eq!(names, want);
    }
}
