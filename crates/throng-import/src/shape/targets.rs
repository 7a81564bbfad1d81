//! Hosts become targets: each URL is split into the service and a path. The service with the most
//! requests is the scenario's; steps name the others.

use throng_scenario::Url;

use crate::Options;
use crate::form::path_encoded;
use crate::model::{Auth, LeftOut, Recording, Variable, name_of, unique};
use crate::text::{Piece, Text};

/// The services of a scenario.
#[derive(Clone, Debug, Default)]
pub(crate) struct Targets {
    /// By name; the first is the default of all steps.
    pub(crate) list: Vec<(String, Text)>,
}

/// For descriptions without a server.
const UNKNOWN: &str = "http://127.0.0.1:8080";

struct Found {
    origin: Text,
    count: usize,
}

pub(super) fn split(recording: &mut Recording, options: &Options) -> Targets {
    let mut found: Vec<Found> = Vec::new();
    let mut is_unknown = false;
    let mut base = recording.base.clone();
    if let Some((origin, path)) = base.as_ref().and_then(split_origin) {
        base = Some(joined(&origin, &path));
    }
    let mut cut = |url: &mut Text, requests: usize| -> usize {
        if split_origin(url).is_none() {
            is_unknown |= base.is_none();
            let base = base.clone().unwrap_or_else(|| Text::literal(UNKNOWN));
            *url = under(&base, url);
        }
        let (origin, path) =
            split_origin(url).unwrap_or_else(|| (Text::literal(UNKNOWN), url.clone()));
        *url = clean_path(&path);
        match found.iter().position(|one| one.origin == origin) {
            Some(number) => {
                found[number].count += requests;
                number
            }
            None => {
                found.push(Found { origin, count: requests });
                found.len() - 1
            }
        }
    };
    recording.each_exchange(|exchange| {
        let url = exchange.url.as_literal().and_then(|url| Url::parse(url).ok());
        if let (Some((user, password)), None) = (url.and_then(|url| url.user), &exchange.auth) {
            let (user, password) = (Text::literal(user), Text::literal(password));
            exchange.auth = Some(Auth { user, password, is_digest: false });
        }
        exchange.target = Some(cut(&mut exchange.url, 1).to_string());
    });
    recording.each_socket(|socket| {
        if let Some(url) = socket.url.as_literal().map(socket_url) {
            socket.url = url;
        }
        let requests = usize::from(!socket.continues);
        socket.target = Some(cut(&mut socket.url, requests).to_string());
    });
    if is_unknown && options.target.is_none() {
        let what = say!("the service's address, which the file does not contain; set `target`");
        recording.left_out.push(LeftOut::of_all(1, what));
    }
    name_targets(recording, &found, options)
}

/// A WebSocket URL with a valid scheme and a host, whatever the file contains.
fn socket_url(url: &str) -> Text {
    let known = url.split_once("://").and_then(|(scheme, rest)| match scheme {
        "wss" | "https" => Some(Text::literal(format!("wss://{rest}"))),
        "ws" | "http" => Some(Text::literal(format!("ws://{rest}"))),
        _ => None,
    });
    let unknown = || format!("ws://127.0.0.1:8080/{}", url.trim_start_matches('/'));
    known.filter(|url| split_origin(url).is_some()).unwrap_or_else(|| Text::literal(unknown()))
}

fn name_targets(recording: &mut Recording, found: &[Found], options: &Options) -> Targets {
    let main =
        (0..found.len()).max_by_key(|number| (found[*number].count, std::cmp::Reverse(*number)));
    let mut order: Vec<usize> = main.into_iter().collect();
    order.extend((0..found.len()).filter(|number| Some(*number) != main));
    let mut targets = Targets::default();
    for number in &order {
        let is_taken = |name: &str| targets.list.iter().any(|(other, _)| other == name);
        let name = unique(&target_name(&found[*number].origin), "_", is_taken);
        let origin = match (&options.target, targets.list.is_empty()) {
            (Some(given), true) => Text::literal(given.trim_end_matches('/')),
            _ => found[*number].origin.clone(),
        };
        targets.list.push((name, origin));
    }
    let names: Vec<Option<String>> = (0..found.len())
        .map(|number| {
            let at = order.iter().position(|other| *other == number).filter(|at| *at > 0)?;
            targets.list.get(at).map(|(name, _)| name.clone())
        })
        .collect();
    let named = |target: &mut Option<String>| {
        let number = target.as_deref().and_then(|number| number.parse::<usize>().ok());
        *target = number.and_then(|number| names.get(number).cloned().flatten());
    };
    recording.each_exchange(|exchange| named(&mut exchange.target));
    recording.each_socket(|socket| named(&mut socket.target));
    keep_addresses(recording, &mut targets);
    targets
}

/// A variable for an address needs a valid default: `check` parses it.
fn keep_addresses(recording: &mut Recording, targets: &mut Targets) {
    if targets.list.is_empty() {
        targets.list.push(("service".into(), Text::literal(UNKNOWN)));
    }
    for (_, origin) in &mut targets.list {
        let Some(value) = origin.as_value().map(str::to_string) else {
            if origin.has_values() {
                fill_parts(recording, origin);
            }
            continue;
        };
        let Some(name) = value.strip_prefix("vars.") else {
            *origin = Text::literal(UNKNOWN);
            continue;
        };
        let variable = recording.variables.iter_mut().find(|one| one.name == name);
        match variable {
            Some(variable) => {
                let text = variable.value.as_ref().and_then(Text::as_literal).unwrap_or_default();
                let with_scheme = match text.contains("://") {
                    true => text.trim_end_matches('/').to_string(),
                    false if text.is_empty() => UNKNOWN.to_string(),
                    false => format!("http://{}", text.trim_end_matches('/')),
                };
                let url = Url::parse(&with_scheme);
                let has_values = variable.value.as_ref().is_some_and(Text::has_values);
                if !has_values {
                    let good = url.map(|url| url.origin()).unwrap_or_else(|_| UNKNOWN.into());
                    variable.value = Some(Text::literal(good));
                    variable.is_secret = false;
                }
            }
            None => recording.declare(Variable::plain(name, Text::literal(UNKNOWN))),
        }
    }
}

/// `https://${vars.host}:${vars.port}`: each needs a value that makes the whole a URL.
fn fill_parts(recording: &mut Recording, origin: &mut Text) {
    let mut whole = String::new();
    for piece in origin.pieces() {
        match piece {
            Piece::Literal(text) => whole.push_str(text),
            Piece::Value(expression) => {
                let name = expression.strip_prefix("vars.").unwrap_or_default();
                let variable = recording.variables.iter_mut().find(|one| one.name == name);
                let Some(variable) = variable else {
                    whole.push('?');
                    continue;
                };
                let value = variable.value.as_ref().and_then(Text::as_literal).unwrap_or_default();
                let value = match value.is_empty() {
                    true if whole.ends_with("://") || whole.contains('.') => "127.0.0.1",
                    true if whole.ends_with(':') => "8080",
                    true if whole.is_empty() => "http",
                    _ => value,
                };
                whole.push_str(value);
                variable.value = Some(Text::literal(value));
            }
        }
    }
    if Url::parse(&whole).is_err() {
        *origin = Text::literal(UNKNOWN);
    }
}

/// The first meaningful label of a host: `api` for `api.shop.example`.
fn target_name(origin: &Text) -> String {
    let text = match origin.as_value() {
        Some(value) => value.trim_start_matches("vars.").to_string(),
        None => origin.to_string(),
    };
    let (scheme, rest) = text.split_once("://").unwrap_or(("", &text));
    let host = rest.split([':', '/']).next().unwrap_or_default();
    let is_address = host.bytes().all(|b| b.is_ascii_digit() || b == b'.') || rest.starts_with('[');
    let mut labels = host.split('.').filter(|label| !label.is_empty() && *label != "www");
    let name = match is_address {
        true if scheme.starts_with("ws") => "chat".to_string(),
        true => "service".to_string(),
        false => name_of(labels.next().unwrap_or("service")),
    };
    match scheme.starts_with("ws") && !is_address {
        true => format!("{name}_ws"),
        false => name,
    }
}

/// The service of a URL, and the rest; `None`: it has no service.
fn split_origin(url: &Text) -> Option<(Text, Text)> {
    let mut pieces = url.pieces().iter();
    let first = pieces.next()?;
    if let Piece::Literal(text) = first
        && !text.contains("://")
    {
        return None;
    }
    // A leading value is the whole service, unless a scheme follows it.
    let mut out = (Text::default(), Text::default());
    let mut in_path = false;
    for (number, piece) in url.pieces().iter().enumerate() {
        match piece {
            Piece::Value(value) if in_path => out.1.push_value(value.clone()),
            Piece::Value(value) => out.0.push_value(value.clone()),
            Piece::Literal(text) if in_path => out.1.push(text),
            Piece::Literal(text) => {
                // The scheme is at the start, or the value before it is the scheme.
                let is_scheme = |at: &usize| match number {
                    0 => !text[..*at].contains(['/', '?']),
                    _ => number == 1 && *at == 0,
                };
                let from = text.find("://").filter(is_scheme).map_or(0, |at| at + 3);
                match text[from..].find(['/', '?']) {
                    Some(at) => {
                        out.0.push(&text[..from + at]);
                        out.1.push(&text[from + at..]);
                        in_path = true;
                    }
                    None => out.0.push(text),
                }
            }
        }
    }
    if let Some(text) = out.0.as_literal() {
        let url = Url::parse(text).ok()?;
        out.0 = Text::literal(url.origin());
    }
    Some(out)
}

fn joined(origin: &Text, path: &Text) -> Text {
    let mut out = origin.clone();
    out.append(path);
    out
}

/// A path below a base, which may have a path, too.
fn under(base: &Text, path: &Text) -> Text {
    let mut out = Text::default();
    let pieces = base.pieces();
    for (number, piece) in pieces.iter().enumerate() {
        match piece {
            Piece::Literal(text) if number + 1 == pieces.len() => {
                out.push(text.trim_end_matches('/'));
            }
            Piece::Literal(text) => out.push(text),
            Piece::Value(value) => out.push_value(value.clone()),
        }
    }
    let has_slash =
        matches!(path.pieces().first(), Some(Piece::Literal(text)) if text.starts_with(['/', '?']));
    if !has_slash {
        out.push("/");
    }
    out.append(path);
    out
}

/// A path for a step: it starts with a slash, without a fragment, encoded.
fn clean_path(path: &Text) -> Text {
    let path = path.split_once('#').map_or_else(|| path.clone(), |(path, _)| path);
    let path = path.map_literals(|text| Text::literal(path_encoded(text)));
    match path.pieces().first() {
        Some(Piece::Literal(text)) if text.starts_with('/') => path,
        _ => {
            let mut out = Text::literal("/");
            out.append(&path);
            out
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_split_into_service_and_path() {
        let cut = |url: &Text| {
            split_origin(url).map(|(origin, path)| (origin.to_string(), path.to_string()))
        };
        let pair = |one: &str, other: &str| Some((one.to_string(), other.to_string()));
        assert_eq!(cut(&"https://A.example:443/x?y".into()), pair("https://a.example", "/x?y"));
        assert_eq!(cut(&"http://a?x=/".into()), pair("http://a", "?x=/"));
        assert_eq!(cut(&"/x".into()), None);
        let mut url = Text::value("vars.base");
        url.push("/v1/");
        url.push_value("vars.id");
        assert_eq!(cut(&url), pair("${vars.base}", "/v1/${vars.id}"));
        let mut url = Text::literal("https://");
        url.push_value("vars.host");
        url.push(":8443/x");
        assert_eq!(cut(&url), pair("https://${vars.host}:8443", "/x"));
        assert_eq!(clean_path(&"?a b#c".into()).to_string(), "/?a%20b");
        assert_eq!(under(&"http://a/v1/".into(), &"x".into()).to_string(), "http://a/v1/x");
    }
}
