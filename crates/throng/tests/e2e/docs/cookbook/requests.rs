//! Recipes of requests: the server keeps a book, and hands out what only it can know.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};
use throng_base::{Clock, Time};

use super::{cooked, field, json_of, tally};
use crate::scribe::{Asked, Scribe, answer, ok};
use crate::servers::program;

const SHOP: &str = "http://127.0.0.1:8080";
const OTHER: &str = "http://127.0.0.1:8081";
const THINK: (&str, &str) = ("think: 1s..3s", "think: 1ms");

fn bearer(asked: &Asked) -> &str {
    let value = asked.header("Authorization").unwrap_or_default();
    value.strip_prefix("Bearer ").unwrap_or_default()
}

fn refused() -> String {
    answer("401 Unauthorized", "", "")
}

/// A token is good for five requests.
pub(super) fn login_and_again_on_401(name: &str) {
    let uses: Mutex<BTreeMap<String, u64>> = Mutex::default();
    let scribe = Scribe::answering(move |asked, number| {
        let mut uses = uses.lock().expect("no panic");
        if asked.what == "POST /login" {
            uses.insert(format!("t{number}"), 0);
            return ok(&json!({"token": format!("t{number}")}).to_string());
        }
        match uses.get_mut(bearer(asked)) {
            Some(used @ 0..5) => {
                *used += 1;
                ok("{}")
            }
            _ => refused(),
        }
    });
    let target = scribe.target();
    let changes =
        [(SHOP, target.as_str()), THINK, ("{users: 50, for: 5m}", "{iterations: 60, users: 3}")];
    let run = cooked(name, &changes).run().exits(0);
    run.has("/total/failed", 0);
    // Of three users with 20 requests each, every sixth one finds its token used up.
    let logins = scribe.count("POST /login");
    assert!((9..=15).contains(&logins), "{logins} logins\n{run}");
    let again = run.row("steps", "GET /orders after login")["ok"].as_u64().expect("a count");
    assert_eq!(logins as u64, 3 + again, "{run}");
    assert_eq!(scribe.count("GET /orders") as u64, 60 + again, "{run}");
}

/// A token is good for as long as it says and a bit more, and a refresh token works once.
pub(super) fn token_refresh(name: &str) {
    const LIFE_MS: u128 = 1_000;
    const GRACE_MS: u128 = 3_000;
    let clock = Clock::start();
    let issued: Mutex<BTreeMap<String, u128>> = Mutex::default();
    let refreshers: Mutex<BTreeSet<String>> = Mutex::default();
    let scribe = Scribe::answering(move |asked, number| {
        let (mut issued, mut refreshers) =
            (issued.lock().expect("no panic"), refreshers.lock().expect("no panic"));
        let now = clock.now().since(Time::ZERO).as_millis();
        if asked.what != "POST /token" {
            let age = issued.get(bearer(asked)).map(|at| now - at);
            return if age.is_some_and(|age| age < LIFE_MS + GRACE_MS) {
                ok("{}")
            } else {
                refused()
            };
        }
        let is_known = match field(&asked.body, "grant_type") {
            Some("password") => field(&asked.body, "username").is_some(),
            _ => field(&asked.body, "refresh_token").is_some_and(|it| refreshers.remove(it)),
        };
        if !is_known {
            return refused();
        }
        issued.insert(format!("t{number}"), now);
        refreshers.insert(format!("r{number}"));
        let (token, refresh) = (format!("t{number}"), format!("r{number}"));
        ok(&json!({"access_token": token, "refresh_token": refresh, "expires_in": 1}).to_string())
    });
    let target = scribe.target();
    let changes = [
        (SHOP, target.as_str()),
        ("think: 500ms", "think: 50ms"),
        ("users: 50, for: 10m", "users: 2, for: 4s"),
    ];
    let run = cooked(name, &changes).run().exits(0);
    run.has("/total/failed", 0);
    let forms: Vec<String> = scribe.book().into_iter().map(|asked| asked.body).collect();
    let of =
        |grant: &str| forms.iter().filter(|body| field(body, "grant_type") == Some(grant)).count();
    assert_eq!(of("password"), 2, "{run}");
    // Once every 0.9 s for each of two users, in 4 s.
    assert!((4..=8).contains(&of("refresh_token")), "{run}");
}

pub(super) fn oauth_client_credentials(name: &str) {
    let identity = Scribe::answering(|asked, _| {
        // `load-test:example-only`
        let is_known = asked.header("Authorization")
            == Some("Basic bG9hZC10ZXN0OmV4YW1wbGUtb25seQ==")
            && field(&asked.body, "grant_type") == Some("client_credentials");
        if is_known { ok(r#"{"access_token":"of-the-service"}"#) } else { refused() }
    });
    let api = Scribe::answering(|asked, _| match bearer(asked) {
        "of-the-service" => ok("{}"),
        _ => refused(),
    });
    let (at, other) = (api.target(), identity.target());
    let changes = [
        (SHOP, at.as_str()),
        (OTHER, other.as_str()),
        ("think: 1s", "think: 1ms"),
        ("users: 20, for: 1m", "iterations: 40, users: 4"),
        ("p95 < 300ms", "p95 < 20s"),
    ];
    let run = cooked(name, &changes).run().exits(0);
    run.has("/total/ok", 40);
    assert_eq!(identity.asked(), ["POST /oauth/token"], "{run}");
    assert_eq!(api.count("GET /orders"), 40, "{run}");
}

pub(super) fn logins_from_csv(name: &str) {
    let passwords = [("ann", "first-example"), ("bob", "second-example"), ("eve", "third-example")];
    let scribe = Scribe::answering(move |asked, _| {
        if asked.what == "POST /login" {
            let given = (field(&asked.body, "name"), field(&asked.body, "password"));
            let known = passwords.iter().find(|(own, word)| given == (Some(own), Some(word)));
            let Some((own, _)) = known else { return refused() };
            return answer("200 OK", &format!("Set-Cookie: session={own}; Path=/\r\n"), "");
        }
        match asked.header("Cookie") {
            Some("session=ann" | "session=bob" | "session=eve") => ok("{}"),
            _ => refused(),
        }
    });
    let target = scribe.target();
    let changes =
        [(SHOP, target.as_str()), THINK, ("{users: 3, for: 1m}", "{iterations: 30, users: 3}")];
    let run = cooked(name, &changes).run().exits(0);
    run.has("/total/failed", 0);
    let book = scribe.book();
    let logins = book.iter().filter(|asked| asked.what == "POST /login");
    let names: Vec<&str> = logins.filter_map(|asked| field(&asked.body, "name")).collect();
    assert_eq!(names.len(), 3, "{run}");
    assert_eq!(BTreeSet::from_iter(names), BTreeSet::from(["ann", "bob", "eve"]), "{run}");
    assert_eq!(scribe.count("GET /orders"), 30, "{run}");
}

/// A user gets its token once, percent-encoded, and sends it back decoded.
pub(super) fn csrf_token_from_a_cookie(name: &str) {
    let scribe = Scribe::answering(move |asked, number| {
        let cookie = asked.header("Cookie").and_then(|it| it.strip_prefix("XSRF-TOKEN="));
        match (asked.what.as_str(), cookie) {
            ("GET /cart", None) => {
                let cookie = format!("Set-Cookie: XSRF-TOKEN=t{number}%3D; Path=/\r\n");
                answer("200 OK", &cookie, "")
            }
            ("GET /cart", Some(_)) => ok(""),
            (_, Some(token))
                if asked.header("X-XSRF-TOKEN") == Some(&token.replace("%3D", "=")) =>
            {
                answer("201 Created", "", "")
            }
            _ => answer("419 Page Expired", "", ""),
        }
    });
    let target = scribe.target();
    let changes =
        [(SHOP, target.as_str()), THINK, ("{users: 20, for: 1m}", "{iterations: 30, users: 3}")];
    let run = cooked(name, &changes).run().exits(0);
    run.has("/total/failed", 0);
    assert_eq!(scribe.count("POST /cart"), 30, "{run}");
    let book = scribe.book();
    let tokens = book.iter().filter_map(|asked| asked.header("X-XSRF-TOKEN"));
    assert_eq!(tokens.collect::<BTreeSet<_>>().len(), 3, "each user has its own\n{run}");
}

/// Knows the products, and says what it does not like in the way of GraphQL.
pub(super) fn graphql(name: &str) {
    let scribe = Scribe::answering(|asked, _| {
        let body = json_of(asked);
        let query = body["query"].as_str().unwrap_or_default().to_string();
        let id = &body["variables"]["id"];
        let is_good = query.contains("($id: ID!)") && id.is_string();
        let data = match () {
            () if !is_good => return ok(r#"{"errors":[{"message":"variable"}],"data":null}"#),
            () if query.starts_with("query Product") => json!({"product": {"id": id, "price": 3}}),
            () => json!({"addToCart": {"items": 1}}),
        };
        ok(&json!({"data": data}).to_string())
    });
    let target = scribe.target();
    let changes = [
        (SHOP, target.as_str()),
        ("think: 2s..5s", "think: 1ms"),
        ("{users: 50, for: 2m}", "{iterations: 20, users: 2}"),
        ("p95 < 200ms", "p95 < 20s"),
    ];
    let run = cooked(name, &changes).run().exits(0);
    run.has("/total/ok", 40);
    let ids: Vec<Value> =
        scribe.book().iter().map(|asked| json_of(asked)["variables"]["id"].clone()).collect();
    // Both users are in the book in turns: each product is asked for as often as it is bought.
    let counts = tally(ids.iter().filter_map(Value::as_str));
    assert!(counts.values().all(|count| count % 2 == 0), "{counts:?}\n{run}");
}

pub(super) fn file_upload(name: &str) {
    let scribe = Scribe::answering(|asked, _| {
        let parts = [
            "name=\"title\"",
            "photo 1 of user ",
            "name=\"photo\"; filename=\"photo.png\"\r\nContent-Type: image/png\r\n\r\n\
             what is in the file\r\n",
        ];
        let is_form = asked.header("Content-Type").is_some_and(|it| it.starts_with("multipart/"));
        match is_form && parts.iter().all(|part| asked.body.contains(part)) {
            true => answer("201 Created", "", ""),
            false => answer("400 Bad Request", "", ""),
        }
    });
    let target = scribe.target();
    let changes = [
        (SHOP, target.as_str()),
        ("think: 5s..15s", "think: 1ms"),
        ("time: < 5s", "time: < 20s"),
        ("{users: 20, for: 5m}", "{iterations: 3, users: 3}"),
    ];
    let run = cooked(name, &changes).run().exits(0);
    run.has("/total/ok", 3);
    assert_eq!(scribe.count("POST /photos"), 3, "{run}");
}

/// What openssl makes of the same key and text.
fn signature(text: &str) -> String {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("text");
    std::fs::write(&path, text).expect("a file");
    let mut command = Command::new(program("openssl", "openssl"));
    command.args(["dgst", "-sha256", "-hmac", "example-only"]).arg(path);
    let out = command.output().expect("openssl").stdout;
    let out = String::from_utf8(out).expect("text");
    out.trim().rsplit(' ').next().expect("a digest").to_string()
}

pub(super) fn hmac_signature(name: &str) {
    let scribe = Scribe::start();
    let target = scribe.target();
    let changes = [
        (SHOP, target.as_str()),
        ("think: 1s", "think: 1ms"),
        ("{users: 20, for: 1m}", "{iterations: 6, users: 2}"),
    ];
    let run = cooked(name, &changes).run().exits(0);
    run.has("/total/ok", 6);
    let book = scribe.book();
    assert_eq!(book.len(), 6);
    for asked in &book {
        let at = asked.header("X-Timestamp").expect("a time");
        let own = signature(&format!("{at}.{}", asked.body));
        assert_eq!(asked.header("X-Signature"), Some(own.as_str()), "{asked:?}");
        assert!(json_of(asked)["user"].is_u64(), "{asked:?}");
    }
}

pub(super) fn unique_ids(name: &str) {
    let scribe = Scribe::start();
    let target = scribe.target();
    let changes = [(SHOP, target.as_str()), ("iterations: 1000", "iterations: 200")];
    let run = cooked(name, &changes).run().exits(0);
    run.has("/total/ok", 200);
    let book = scribe.book();
    let different =
        |what: fn(&Asked) -> String| book.iter().map(what).collect::<BTreeSet<String>>().len();
    assert_eq!(different(|asked| asked.header("Idempotency-Key").unwrap_or_default().into()), 200);
    assert_eq!(different(|asked| json_of(asked)["id"].to_string()), 200);
    assert_eq!(different(|asked| json_of(asked)["card"].to_string()), 200);
}

/// Every tenth order is refused, and has no ID.
pub(super) fn an_id_from_a_response(name: &str) {
    let orders = AtomicU64::new(0);
    let scribe = Scribe::answering(move |asked, _| {
        if let Some(id) = asked.what.strip_prefix("GET /orders/") {
            return ok(&json!({"order": {"id": id}}).to_string());
        }
        match orders.fetch_add(1, Ordering::Relaxed) {
            number if number % 10 == 9 => answer("503 Service Unavailable", "", ""),
            number => {
                let body = json!({"order": {"id": format!("n{number}")}});
                answer("201 Created", "", &body.to_string())
            }
        }
    });
    let target = scribe.target();
    let changes = [
        (SHOP, target.as_str()),
        THINK,
        ("{users: 50, for: 2m}", "{iterations: 60, users: 3}"),
        ("p95 < 200ms", "p95 < 20s"),
    ];
    let run = cooked(name, &changes).run().exits(1);
    let failed = run.row("steps", "POST /orders")["failed"].as_u64().expect("a count");
    run.check(failed == 6, "each tenth order was refused");
    let asked = scribe.asked();
    let followed = asked.iter().filter(|what| what.starts_with("GET /orders/n"));
    let counts = tally(followed.map(String::as_str));
    assert_eq!(counts.len() as u64, 60 - failed, "{run}");
    assert!(counts.values().all(|count| *count == 1), "{counts:?}\n{run}");
    assert_eq!(asked.len() as u64, 120 - failed, "{run}");
}

/// A job takes three polls. The second time, one of them never ends.
pub(super) fn polling_until_done(name: &str) {
    for ends in [true, false] {
        let polls: Mutex<BTreeMap<String, u64>> = Mutex::default();
        let scribe = Scribe::answering(move |asked, number| {
            let mut polls = polls.lock().expect("no panic");
            let Some(job) = asked.what.strip_prefix("GET /jobs/") else {
                return ok(&json!({"id": format!("j{number}")}).to_string());
            };
            let count = polls.entry(job.to_string()).or_default();
            *count += 1;
            let is_done = *count >= 3 && (ends || job != "j1");
            ok(&json!({"state": if is_done { "done" } else { "running" }}).to_string())
        });
        let target = scribe.target();
        let changes = [
            (SHOP, target.as_str()),
            ("think: 500ms", "think: 1ms"),
            ("think: 5s", "think: 1ms"),
            ("polls < 120", "polls < 7"),
            ("{users: 20, for: 10m}", "{iterations: 10, users: 2}"),
            ("p95 < 30s", "p95 < 60s"),
        ];
        let run = cooked(name, &changes).run().exits(if ends { 0 } else { 1 });
        let asked = scribe.asked();
        let polled = asked.iter().filter(|what| what.starts_with("GET /jobs/j"));
        let counts = tally(polled.map(String::as_str));
        assert_eq!((counts.len(), scribe.count("POST /jobs")), (10, 10), "{run}");
        let long = counts.values().filter(|count| **count == 7).count();
        assert_eq!(long, usize::from(!ends), "{counts:?}\n{run}");
        assert_eq!(counts.values().filter(|count| **count == 3).count(), 10 - long, "{counts:?}");
    }
}

pub(super) fn a_page_with_resources(name: &str) {
    const HTML: &str = "<!doctype html><link rel=stylesheet href='/a.css'>\
        <link rel=stylesheet href='/b.css'><script src='/app.js?v=3'></script>\
        <img src='/1.png'><img src='/2.png'><img src='/3.png'><link rel=icon href='/icon.svg'>";
    let scribe = Scribe::answering(|asked, _| match asked.what.as_str() {
        "GET /" => answer("200 OK", "Content-Type: text/html\r\n", HTML),
        _ => ok("{}"),
    });
    let target = scribe.target();
    let changes = [
        (SHOP, target.as_str()),
        ("think: 3s..10s", "think: 1ms"),
        ("{arrivals: 20/s, for: 5m}", "{iterations: 20, users: 4}"),
        ("p95 < 1s", "p95 < 20s"),
    ];
    let run = cooked(name, &changes).run().exits(0);
    run.has("/total/failed", 0);
    for path in ["/", "/a.css", "/b.css", "/app.js?v=3", "/1.png", "/2.png", "/3.png"] {
        assert_eq!(scribe.count(&format!("GET {path}")), 20, "{path}\n{run}");
    }
    assert_eq!(scribe.book().len(), 7 * 20, "{run}");
    let open = scribe.accepted();
    assert!((8..=24).contains(&open), "{open} connections of four users\n{run}");
}
