//! Writes a scenario of several requests: a session sends them one after another. The requests of a
//! session go to one target, so each host has its own session.

use throng_program::Scheme;

use super::{Bench, BenchRoute, Writer};
use crate::quote::{scalar, text};
use crate::url::Url;

/// The head of a scenario copied from a browser, with an initial load.
const HEAD: &str = "\
# Generated from cURL commands. Check it with `throng check`, run it once with `throng try`.
# Replace what belongs to one user (cookies, tokens): save it from a response, or take it from
# `data`.
";
const LOAD: &str = "load:\n  - {users: 10, for: 30s}\n";

/// The scenario as YAML; `name` is its own.
pub fn write_requests(requests: &[Bench], name: &str) -> String {
    let mut requests = requests.to_vec();
    let shared = take_shared_headers(&mut requests);
    let places = places(&requests);
    let common = common(&requests);
    let mut writer = Writer::new(&common);
    writer.out.push_str(HEAD);
    writer.line(&format!("name: {}", scalar(name)));
    writer.line(&format!("target: {}", places.first().map_or("", |place| &place.target)));
    writer.tls();
    writer.connection();
    if !shared.is_empty() {
        writer.line("defaults:\n  headers:");
        for (name, value) in &shared {
            writer.line(&format!("    {}: {}", scalar(name), text(value)));
        }
    }
    writer.line("sessions:");
    let mut out = writer.out;
    for (number, place) in places.iter().enumerate() {
        let host = place.origin.split("://").nth(1).unwrap_or(&place.origin);
        let before = places[..number].iter().filter(|other| other.origin == place.origin).count();
        let session = match (places.len(), before) {
            (1, _) => "user".to_string(),
            (_, 0) => host.to_string(),
            (_, before) => format!("{host} {}", before + 1),
        };
        out.push_str(&format!("  {}:\n", scalar(&session)));
        if number > 0 {
            out.push_str(&format!("    target: {}\n", place.target));
        }
        out.push_str("    steps:\n");
        for request in requests.iter().filter(|request| RequestPlace::of(request) == *place) {
            let mut writer = Writer::new(request);
            writer.step();
            out.push_str(&writer.out);
        }
    }
    out + LOAD
}

impl Writer<'_> {
    /// One request as a step of a session; a copied upgrade becomes a connection that is kept open
    /// for a while.
    fn step(&mut self) {
        if !matches!(self.scheme, Scheme::Http | Scheme::Https) {
            self.connect();
            self.line("      - stay: 10s\n      - disconnect");
            return;
        }
        self.http_step();
        if let Some((plain, _)) = self.path.split_once('?') {
            let method = self.method();
            let name = format!("        name: {}", scalar(&format!("{method} {plain}")));
            self.line(&name);
        }
    }
}

/// The target of a session's requests.
#[derive(PartialEq, Eq)]
struct RequestPlace {
    origin: String,
    /// In the form of `target`.
    target: String,
}

impl RequestPlace {
    fn of(request: &Bench) -> RequestPlace {
        let origin = Url::parse(&request.url).map(|url| url.origin());
        let origin = origin.unwrap_or_else(|_| request.url.clone());
        RequestPlace { target: request.route.target(&origin), origin }
    }
}

/// In the order of their first requests.
fn places(requests: &[Bench]) -> Vec<RequestPlace> {
    let mut places = Vec::new();
    for place in requests.iter().map(RequestPlace::of) {
        if !places.contains(&place) {
            places.push(place);
        }
    }
    places
}

/// Common settings: if one request accepts any certificate, all do.
fn common(requests: &[Bench]) -> Bench {
    let is_secure = |request: &&Bench| {
        ["https", "wss"].iter().any(|scheme| request.url.starts_with(&format!("{scheme}://")))
    };
    let secure = requests.iter().find(is_secure);
    Bench {
        url: secure.or(requests.first()).map(|one| one.url.clone()).unwrap_or_default(),
        verify_tls: requests.iter().find_map(|one| one.verify_tls),
        ca: requests.iter().find_map(|one| one.ca.clone()),
        certificate: requests.iter().find_map(|one| one.certificate.clone()),
        key: requests.iter().find_map(|one| one.key.clone()),
        keep_alive: requests.iter().find_map(|one| one.keep_alive),
        connect_timeout: requests.iter().find_map(|one| one.connect_timeout),
        family: requests.iter().find_map(|one| one.family),
        redirects_max: requests.iter().find_map(|one| one.redirects_max),
        deflate: requests.iter().any(|one| one.deflate),
        http_version: requests.iter().map(|one| one.http_version).max().unwrap_or_default(),
        route: requests.iter().fold(BenchRoute::default(), |mut all, one| {
            all.extend(&one.route);
            all
        }),
        sources: requests
            .iter()
            .find(|one| !one.sources.is_empty())
            .map_or_else(Vec::new, |one| one.sources.clone()),
        ..Bench::default()
    }
}

/// Removes headers that all requests share, and returns them.
fn take_shared_headers(requests: &mut [Bench]) -> Vec<(String, String)> {
    let [first, _, ..] = &*requests else { return Vec::new() };
    let is_once = |request: &Bench, name: &str, value: &str| {
        let mut same = request.headers.iter().filter(|(own, _)| own.eq_ignore_ascii_case(name));
        same.next().is_some_and(|(_, own)| own == value) && same.next().is_none()
    };
    let in_all = |(name, value): &&(String, String)| {
        // An empty header suppresses a default header.
        !value.is_empty() && requests.iter().all(|request| is_once(request, name, value))
    };
    let shared: Vec<(String, String)> = first.headers.iter().filter(in_all).cloned().collect();
    for request in requests {
        let is_own = |name: &str| !shared.iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
        request.headers.retain(|(name, _)| is_own(name));
    }
    shared
}
