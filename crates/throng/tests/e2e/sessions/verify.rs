//! What answers are checked for and what is kept of them, against real servers.

use std::process::Command;

use crate::run::{Child, Run};
use crate::scenarios::{one_session, running, times};
use crate::scribe::Scribe;
use crate::servers::{Nginx, Target, program};

/// The steps, four times by two users.
#[track_caller]
fn run(target: &str, steps: &str, code: i32) -> Run {
    running(&one_session(target, &times(4, 2), steps)).run().exits(code)
}

#[track_caller]
fn good(target: &str, steps: &str) -> Run {
    let run = run(target, steps, 0);
    run.has("/total/failed", 0);
    run.has("/users/iterations_finished", 4);
    run
}

/// One step with this check fails so.
#[track_caller]
fn bad(target: &str, path: &str, check: &str, cause: &str, words: &[&str]) {
    let run = run(target, &format!("- http: GET {path}\n  check: {check}"), 1);
    // A status of the server's own says whose it is; what fails a check does not.
    let blame = if cause == "status-unexpected" { "target" } else { "target or scenario" };
    run.fails(cause, blame, Some(4));
    let detail =
        run.json()["errors"][0]["example"]["detail"].as_str().unwrap_or_default().to_string();
    for word in words {
        run.check(detail.contains(word), &format!("`{detail}` has no `{word}`"));
    }
}

#[test]
fn a_form_is_filled_with_values_of_its_page() {
    let target = Target::start("http");
    let steps = "\
- http: GET /login
  check:
    header: {content-type: {contains: text/html}}
    css:
      title: Sign in
      form: {count: 1}
      input: {count: 3}
      'form@action': /login
      .none: absent
    xpath:
      //title: Sign in
      //form/@method: post
      '//input[@type=\"password\"]/@name': password
    regex: {'name=\"csrf\" value=\"([0-9a-f]{32})\"': {matches: '^[0-9a-f]+$'}}
  save:
    by_css: {css: 'input[name=csrf]@value'}
    by_xpath: {xpath: '//input[@name=\"csrf\"]/@value'}
    by_regex: {regex: 'name=\"csrf\" value=\"([^\"]+)\"'}
    names: {css: 'input@name', all: true}
    none: {css: '.none', default: nothing}
- set: {same: \"${saved.by_css == saved.by_xpath && saved.by_css == saved.by_regex}\"}
- http: POST /login
  form: {user: \"a b&c=${user.id}\", password: p, csrf: \"${saved.by_css}\"}
  check:
    status: 200
    json.data.user: \"a b&c=${user.id}\"
    that:
      - ${saved.same}
      - \"${saved.names == ['csrf', 'user', 'password']}\"
      - \"${saved.none == 'nothing' && response.status == 200}\"
      - \"${response.json.data.token.size() == 32}\"
  save: {token: json.data.token, cookie: header.set-cookie}
- http: POST /cart
  json: {product: 7}
  check: {status: 201, that: \"${saved.cookie.contains(saved.token)}\"}";
    let run = good(&target.http(""), steps);
    assert_eq!(target.counts("/accounts"), 2, "{run}");
    // A form without what the page gave is refused.
    let steps =
        "- http: POST /login\n  form: {user: a, password: p, csrf: none}\n  check: {status: 200}";
    let run = self::run(&target.http(""), steps, 1);
    run.fails("status-unexpected", "target or scenario", Some(4));
}

/// `/anything` says back what it was asked: a URL in its body is one that an answer has given.
#[test]
fn a_saved_url_is_requested() {
    let target = Target::start("http");
    let follows = |url: &str, path: &str, query: &str| {
        let steps = format!(
            "- http: POST /anything/list/first?page=1
  body: \"{url}\"
  save: {{next: json.body}}
- http: GET /anything/between
- http: GET ${{saved.next}}
  name: next
  check: {{json: {{method: GET, path: {path}, query: \"{query}\"}}}}"
        );
        good(&target.http(""), &steps);
    };
    follows("/anything/x?y=1", "/anything/x", "y=1");
    follows("second", "/anything/list/second", "");
    follows("../up?z=2", "/anything/up", "z=2");
    follows("?page=2", "/anything/list/first", "page=2");
    follows(&target.http("/anything/whole#part"), "/anything/whole", "");
    follows(&format!("//{}/anything/any", target.address), "/anything/any", "");
}

#[test]
fn a_saved_url_of_another_host_is_asked_there_or_not_at_all() {
    let (first, second) = (Target::start("http"), Target::start("http"));
    let save = |url: &str| {
        format!(
            "- http: POST /anything
  body: {url}
  save: {{next: json.body}}
- http: GET ${{saved.next}}
  name: next"
        )
    };
    let both = format!("{{addresses: [\"{}\", \"{}\"]}}", first.http(""), second.http(""));
    let steps = save(&second.http("/anything/there"));
    let steps = format!("{steps}\n  check: {{json.headers.host: \"{}\"}}", second.address);
    let run = good(&both, &steps);
    let asked = [first.counts("/requests"), second.counts("/requests")];
    run.check(asked[0] + asked[1] == 8 && asked[1] >= 4, &format!("{asked:?}"));
    // One that nobody has named gets nothing, and neither does the target in its place.
    let stranger = Target::start("http");
    let before = first.counts("/requests");
    let run = self::run(&first.http(""), &save(&stranger.http("/anything/there")), 0);
    run.fails("scenario-failed", "scenario", Some(4));
    run.says(&["`, which is not a target of this scenario"]);
    assert_eq!((stranger.counts("/requests"), first.counts("/requests") - before), (0, 4), "{run}");
}

#[test]
fn cookies_are_kept_and_redirects_followed() {
    let target = Target::start("http");
    let steps = "\
- http: GET /cookies/set?colour=blue
  redirects: follow
  check: {status: 200, json.cookies.colour: blue}
- http: GET /cookies
  check: {json.cookies.colour: blue}
- http: GET /cookies/set?colour=red
  check: {status: 302, header: {location: /cookies}}
  save: {where: header.location, set: {header: set-cookie}}
- http: GET ${saved.where}
  cookies: {size: large}
  check:
    json: {cookies.colour: red, cookies.size: large}
    that: \"${saved.set.contains('colour=red')}\"
- http: GET /redirect/3
  redirects: 3
  check: {status: 200, text: {equals: arrived}, size: 7}
- http: GET /redirect/3
  check: {status: 302, size: 0}";
    good(&target.http(""), steps);
    let url = target.http("");
    let steps = "- http: GET /redirect/3\n  redirects: 2";
    run(&url, steps, 1).fails("redirect-failed", "target", Some(4));
}

#[test]
fn all_kinds_of_checks_find_errors() {
    let target = Target::start("http");
    let url = target.http("");
    bad(
        &url,
        "/login",
        "{css: {title: Sign out}}",
        "check-failed",
        &["title", "Sign out", "Sign in"],
    );
    bad(&url, "/login", "{css: .price}", "check-failed", &[".price"]);
    bad(&url, "/login", "{css: {input: {count: 4}}}", "check-failed", &["input", "4", "3"]);
    bad(&url, "/login", "{xpath: {//title: x}}", "check-failed", &["//title", "Sign in"]);
    bad(&url, "/bytes/100", "{size: < 50}", "check-failed", &["50", "100"]);
    bad(&url, "/bytes/100", "{size: 1KiB..2KiB}", "check-failed", &["100"]);
    bad(&url, "/json", "{json.data.token: {contains: zzz}}", "json-unexpected", &["zzz"]);
    bad(&url, "/json", "{json.code: \"> 3\"}", "json-unexpected", &["3", "0"]);
    bad(&url, "/bytes/5", "{json.code: 0}", "json-unexpected", &["JSON"]);
    bad(&url, "/status/503", "{status: [2xx, 301]}", "status-unexpected", &["503"]);
    // What is no JSON is so whoever looks at it.
    bad(&url, "/", "{json.code: 0}", "json-unexpected", &["not valid JSON"]);
    bad(
        &url,
        "/",
        "{that: \"${response.json.code == 0}\"}",
        "json-unexpected",
        &["not valid JSON"],
    );
    bad(&url, "/json", "{header: {x-none: present}}", "header-unexpected", &["x-none"]);
    bad(
        &url,
        "/json",
        "{that: \"${response.json.code == 1}\"}",
        "check-failed",
        &["true", "false"],
    );
    bad(&url, "/bytes/9", "{text: {equals: y}}", "body-unexpected", &["y", "xxxxxxxxx"]);
    bad(
        &url,
        "/bytes/9",
        "{digest: {md5: 0123456789abcdef0123456789abcdef}}",
        "check-failed",
        &["md5"],
    );
}

#[test]
fn all_failed_checks_of_a_response_are_reported() {
    let target = Target::start("http");
    let check = "{status: 201, json.code: 7, size: < 3, header: {x-a: b}}";
    let words = ["201", "200", "`json.code`", "7", "x-a"];
    bad(&target.http(""), "/json", check, "status-unexpected", &words);
}

/// Writes a page and says where it is.
fn page(nginx: &Nginx, name: &str, content: &[u8]) {
    std::fs::write(nginx.home.path().join("www").join(name), content).expect("a page");
}

#[test]
fn a_file_of_nginx_has_the_digest_that_sha256sum_gives() {
    let nginx = Nginx::start("", "");
    let content: Vec<u8> =
        (0..300_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    page(&nginx, "file.bin", &content);
    let digest = |tool: &str| {
        let mut command = Command::new(program(tool, "coreutils"));
        command.arg(nginx.home.path().join("www/file.bin"));
        let run = Child::start(command).wait().exits(0);
        run.out.split(' ').next().unwrap_or_default().to_string()
    };
    let (sha256, md5, sha1) = (digest("sha256sum"), digest("md5sum"), digest("sha1sum"));
    let steps = format!(
        "- http: GET /file.bin\n  check:\n    size: {}\n    \
         digest: {{sha256: {sha256}, md5: {md5}, sha1: {sha1}}}",
        content.len()
    );
    good(&nginx.url(""), &steps);
    page(&nginx, "file.bin", &content[1..]);
    let check = format!("{{digest: {{sha256: {sha256}}}}}");
    bad(&nginx.url(""), "/file.bin", &check, "check-failed", &["sha256", &sha256[..8]]);
}

#[test]
fn a_page_of_nginx_is_understood() {
    let nginx = Nginx::start(
        "",
        "gzip on; gzip_types text/html; gzip_min_length 1; default_type text/html;",
    );
    let page_text = "<!doctype html><html><body><ul id=fruits>\
        <li class='item red' data-id=3>Apple &amp; pear<li class=item data-id=5>Kiwi\
        <li class='item'>Ф</ul><table><tr><td>1</td><td>2</td></tr></table>\
        <a href='/next?a=1&amp;b=2'>next</a></body></html>";
    page(&nginx, "fruits.html", page_text.as_bytes());
    let steps = "\
- http: GET /fruits.html
  headers: {Accept-Encoding: gzip}
  check:
    css:
      '#fruits > li': {count: 3}
      'li.red': Apple & pear
      'li:nth-child(3)': Ф
      'li[data-id=\"5\"]': {contains: Kiw}
      'a@href': '/next?a=1&b=2'
    xpath:
      '//td[2]': '2'
      '//li/@data-id': '3'
      '//ul/li': {count: \">= 3\"}
  save:
    ids: {css: 'li@data-id', all: true}
    next: {xpath: '//a/@href'}
    etag: header.etag
    first: {regex: 'data-id=(\\d+)'}
- http: GET /fruits.html
  headers: {If-None-Match: \"${saved.etag}\"}
  check:
    status: 304
    that:
      - \"${saved.ids == ['3', '5']}\"
      - \"${saved.next == '/next?a=1&b=2'}\"
      - \"${saved.first == '3'}\"";
    let run = good(&nginx.url(""), steps);
    let log = nginx.log(8);
    run.check(log.iter().filter(|words| words[3] == "304").count() == 4, "the ETag is known");
    run.check(log.iter().filter(|words| words[4] == "gzip").count() == 4, "it comes compressed");
}

#[test]
fn values_are_passed_from_response_to_request() {
    let scribe = Scribe::start();
    let steps = "\
- http: POST /a
  save: {n: json.n, code: status, all: body, size: size}
- http: POST /b
  json:
    n: ${saved.n}
    code: ${saved.code}
    all: ${saved.all}
    size: ${saved.size}
    sum: ${saved.n + 1}
    hash: ${sha256('abc')}
    text: \"<${saved.n}>\"
    user: ${user.id}
    turn: ${iteration}";
    let text = one_session(&scribe.target(), &times(2, 1), steps);
    running(&text).run().succeeds(4);
    let book = scribe.book();
    let body = |at: usize| serde_json::from_str::<serde_json::Value>(&book[at].body).expect("JSON");
    for (at, n, turn) in [(1, 1, 1), (3, 3, 2)] {
        let wanted = serde_json::json!({
            "n": n, "code": 200, "all": format!("{{\"n\":{n}}}"), "size": 7, "sum": n + 1,
            "hash": "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
            "text": format!("<{n}>"), "user": 1, "turn": turn,
        });
        assert_eq!(body(at), wanted);
    }
}

#[test]
fn a_failed_save_or_evaluation_is_a_failure() {
    let target = Target::start("http");
    let url = target.http("");
    let run =
        run(&url, "- http: GET /json\n  save: {x: json.data.nothing}\n- http: GET /${saved.x}", 1);
    run.check(run.json()["errors"].to_string().contains("nothing"), "what was not there");
    run.check(run.figure("/total/failed") >= 4.0, "it fails");
    let steps =
        "- http: GET /json\n  save: {t: json.data.token}\n- http: GET /${int(saved.t + 'z')}";
    let run = self::run(&url, steps, 0);
    let row = run.row("errors", "GET /${int(saved.t + 'z')}");
    run.check(row["cause"] == "expression-failed" && row["blame"] == "scenario", "the scenario");
}
