//! `throng check`: what a scenario will do, and what is wrong with its data.

use crate::run::{Run, throng};
use crate::scribe::Scribe;
use crate::servers::Target;

const SHOP: &str = r#"name: a shop
target: {addresses: ["http://127.0.0.1:1", {url: "http://127.0.0.1:2", weight: 3}]}
vars: {users: 10}
data:
  accounts: {csv: accounts.csv, take: unique}
  colours: {list: [red, green], take: random}
parts:
  pause: [{think: 1s}]
sessions:
  buyer:
    weight: 3
    before:
      - http: POST /login
        json: {user: "${user.id}"}
        check: {status: 200, json.code: 0}
        save: {token: json.data.token}
    steps:
      - transaction: buy
        steps:
          - http: GET /?q=${data.colours}
            headers: {Authorization: "Bearer ${saved.token}"}
          - repeat: 2
            steps:
              - http: POST /cart
                form: {id: "${data.accounts.id}"}
                retry: {times: 2, wait: 1s}
              - use: pause
      - choose:
          - {weight: 70, steps: [{http: GET /a}]}
          - {weight: 30, steps: [{log: nothing}]}
      - if: ${iteration > 3}
        then: [leave]
        else: [{think: 2s..4s}]
    after:
      - http: POST /logout
  robot:
    weight: 1
    steps:
      - for_each: [1, 2, 3]
        as: number
        steps: [{http: "GET /pages/${number}", name: page}]
      - during: 2s
        steps: [{http: GET /b}, {think: 500ms}]
load:
  - {name: fill, users: {to: "${vars.users}", rate: 5/s}, measured: false}
  - {name: hold, for: 10s}
  - {name: open, arrivals: 2/s, for: 5s}
thresholds: [buy p95 < 1s, page errors = 0 in hold]
"#;

fn check(text: &str, rows: &str) -> Run {
    throng("check shop.yaml").file("shop.yaml", text).file("accounts.csv", rows).run()
}

fn rows(count: u64) -> String {
    (1..=count).fold("id\n".into(), |rows, row| format!("{rows}{row}\n"))
}

/// All that it says of this scenario.
const SAID: &str = "a shop\n\
     http://127.0.0.1:1\n\
     http://127.0.0.1:2 (weight 3)\n\
     \n\
     session buyer · 75 % of the users\n\
     \x20 before\n\
     \x20   http POST /login\n\
     \x20       check status 200 · check json code 0 · save token = json data.token\n\
     \x20 steps\n\
     \x20   transaction buy\n\
     \x20     http GET /?q=${data.colours}\n\
     \x20         header Authorization: Bearer ${saved.token}\n\
     \x20     repeat 2\n\
     \x20       http POST /cart\n\
     \x20           retry 2, wait 1s..1s\n\
     \x20       think 1s\n\
     \x20   choose\n\
     \x20     70%\n\
     \x20       http GET /a\n\
     \x20     30%\n\
     \x20       log nothing\n\
     \x20   if ${iteration > 3}\n\
     \x20     leave\n\
     \x20   else\n\
     \x20     think 2s..4s\n\
     \x20 after\n\
     \x20   http POST /logout\n\
     \x20 per iteration: ~3.7 requests, ~2.00s in pauses (2.00s to 6.00s)\n\
     \n\
     session robot · 25 % of the users\n\
     \x20 steps\n\
     \x20   for_each [1,2,3] as number\n\
     \x20     http GET /pages/${number}\n\
     \x20         name page\n\
     \x20   during 2s\n\
     \x20     http GET /b\n\
     \x20     think 500ms\n\
     \x20 per iteration: ~7 requests, ~2.00s in pauses (2.00s to 2.50s)\n\
     \n\
     data accounts: csv accounts.csv, 300 rows, take unique; up to 75 are needed\n\
     data colours: list, 2 rows, take random\n\
     \n\
     load\n\
     \x20       0s  fill     2.00s  from 0 to 10 users, 5/s, not measured\n\
     \x20    2.00s  hold     10.0s  keeps the current users\n\
     \x20    12.0s  open     5.00s  arrivals: 2/s, one session per user\n\
     \n\
     \x20         10      ▃██████████████████████████████████████████████████████\n\
     \x20               ▂▇███████████████████████████████████████████████████████\n\
     \x20             ▁▆█████████████████████████████████████████████████████████\n\
     \x20      users ▄███████████████████████████████████████████████████████████\n\
     \x20        2/s                                           ██████████████████\n\
     \x20                                                      ██████████████████\n\
     \x20                                                      ██████████████████\n\
     \x20   starts/s                                           ██████████████████\n\
     \x20            0s                                                     17.0s\n\
     \n\
     expected\n\
     \x20 431 requests, up to 34.7/s, if every response is immediate\n\
     \x20 358 requests, up to 30.2/s, if every response takes 100ms\n\
     \x20 at most 483 requests, regardless of how fast the target responds\n\
     \x20 user.id from 1 to about 20\n\
     \n\
     thresholds\n\
     \x20 buy p95 < 1s\n\
     \x20 page errors = 0 in hold\n\
     \n\
     the scenario is valid; nothing was sent\n";

const PEOPLE: &str = r#"target: ws://127.0.0.1:1
source: {addresses: [127.1.0.0/16, interface lo]}
sessions:
  member:
    steps:
      - connect: /acc
      - request: {text: hi}
      - stay: forever
        heartbeat: {ping: true, every: 10s}
load:
  - {name: ceiling, users: {step: 100, every: 30s, to: 350}}
  - {name: flapping, churn: {share: 20%, every: 10s, how: [fin, vanish]}, for: 1m}
  - {name: dropping, churn: {rate: 5/s, how: reset}, for: 1m}
abort_when: [errors > 10% over 10s for 20s]
hold_when: [errors > 1% for 5s]
"#;

#[test]
fn populations_are_told_with_what_shakes_them() {
    let run = throng("check people.yaml").file("people.yaml", PEOPLE).run().exits(0);
    run.says(&[
        "from 127.1.0.1 to 127.1.255.254\nfrom the addresses of lo\n",
        "heartbeat ping every 10s · lost_after 10s",
        "2m00s  from 0 to 350 users, in steps of 100 every 30s",
        "keeps the current users; 20 % of the users disconnect every 10s (fin, vanish) and \
         reconnect",
        "keeps the current users; 5 users/s disconnect (reset) and reconnect",
        // 350 logins, those who come back, and heartbeats of 100, 200, 300 and 350 users.
        "requests, up to 42/s",
        "abort when\n  errors > 10% over 10s for 20s\n\nhold when\n  errors > 1% for 5s\n",
    ]);
}

#[test]
fn a_scenario_is_described_before_it_runs() {
    let run = check(SHOP, &rows(300)).exits(0);
    run.check(run.err.is_empty(), "there are warnings");
    if run.out != SAID {
        let line = run.out.lines().zip(SAID.lines()).find(|(said, want)| said != want);
        panic!("it says something else, first {line:#?}\n{run}");
    }
}

#[test]
fn a_space_at_the_start_of_a_value_is_reported() {
    let with_space = rows(30_000).replace("\n1\n", "\n 1\n");
    check(SHOP, &with_space).exits(0).says(&["warning[data-space]", "accounts.csv:2"]);
}

#[test]
fn insufficient_rows_are_reported() {
    let small = |at_end: &str| {
        let text = SHOP.replace("take: unique}", &format!("take: unique, at_end: {at_end}}}"));
        check(&text, &rows(3)).exits(0)
    };
    small("stop").says(&["3 rows", "(too few: the run may end early)"]);
    small("wrap").says(&["(too few: rows may be reused)"]);
    small("error").says(&["(too few: steps may fail)"]);
    check(SHOP, &rows(3)).exits(0).says(&["warning[data-ended]", "with 1 warning"]);
    let run = check(SHOP, &rows(30_000)).exits(0);
    run.check(!run.out.contains("too few"), "they suffice");
}

#[test]
fn nothing_is_sent() {
    let scribe = Scribe::apart();
    let target = scribe.target();
    let text = SHOP.replace("http://127.0.0.1:1\"", &format!("{target}\""));
    check(&text, &rows(3)).exits(0);
    assert_eq!(scribe.accepted(), 0);
}

#[test]
fn variables_may_be_set() {
    let line = "check shop.yaml --set users=400";
    let run = throng(line).file("shop.yaml", SHOP).file("accounts.csv", rows(3)).run().exits(0);
    run.says(&["from 0 to 400 users, 5/s"]);
    let line = "check shop.yaml --set user=400";
    let run = throng(line).file("shop.yaml", SHOP).file("accounts.csv", rows(3)).run().exits(2);
    run.says(&["user", "did you mean `users`?"]);
    throng("check shop.yaml --set users").file("shop.yaml", SHOP).run().exits(2).says(&["bad-set"]);
}

#[test]
fn a_wrong_file_is_answered() {
    let run = check(&SHOP.replace("think: 1s", "think: 1x"), &rows(3)).exits(2);
    run.says(&["error[bad-value]", "--> shop.yaml:8:19", "= help: "]);
    run.check(run.out.is_empty(), "it tells a plan");
    throng("check none.yaml").run().exits(2).says(&["error[file-unreadable]", "none.yaml"]);
    let run = throng("check latin.yaml").file("latin.yaml", b"name: caf\xe9").run().exits(2);
    run.says(&["error[file-unreadable]", "UTF-8"]);
    throng("check empty.yaml").file("empty.yaml", "").run().exits(2).says(&["error["]);
}

#[test]
fn a_wrong_row_is_named_with_its_line() {
    let many = "id,name\n1,ann\n2,bob\n3,\"carl\n4,dora\n";
    let run = check(SHOP, many).exits(2);
    run.says(&["error[data-malformed]", "accounts.csv:4"]);
    let short = "id,name\n1,ann\n2\n";
    let run = check(SHOP, short).exits(2);
    run.says(&["error[data-malformed]", "accounts.csv:3"]);
    let missing = check(&SHOP.replace("data.accounts.id", "data.accounts.idd"), &rows(3)).exits(2);
    missing.says(&["did you mean `id`?", "--> shop.yaml:"]);
    let lines = "{\"id\": 1}\n{\"id\": 2}\n{\"id\": \n";
    let text = SHOP.replace("csv: accounts.csv", "json_lines: accounts.csv");
    check(&text, lines).exits(2).says(&["error[data-malformed]", "accounts.csv:3"]);
    check(SHOP, "").exits(2).says(&["error[data-", "accounts.csv"]);
    let none = throng("check shop.yaml").file("shop.yaml", SHOP).run().exits(2);
    none.says(&["error[data-unreadable]", "accounts.csv", "--> shop.yaml:5:"]);
}

#[test]
fn endless_output_is_truncated() {
    let steps = "      - http: GET /\n".repeat(5_000);
    let text = format!(
        "target: http://127.0.0.1:1\nsessions:\n  s:\n    steps:\n{steps}\
         load: [{{users: 1, for: 1s}}]"
    );
    let run = throng("check long.yaml").file("long.yaml", text).run().exits(0);
    run.says(&["… and more steps", "5,000 requests"]);
    run.check(run.out.lines().count() < 300, "it is not read to its end by anybody");
}

/// Of 66 users 20 do the one and 46 the other session.
const COUNTED: &str = r#"name: counted
target: TARGET
data: {keys: {list: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20], take: per user}}
sessions:
  admin:
    users: 20
    steps: [{http: "GET /?k=${data.keys}"}, {stay: forever}]
  reader:
    before: [{http: GET /}]
    steps: [{repeat: 7, steps: [{http: GET /}]}, {stay: forever}]
load: LOAD
"#;

#[test]
fn what_is_foreseen_of_counted_sessions_is_what_is_done() {
    let target = Target::start("http");
    let closed = "[{users: 66, for: 2s}]";
    let arriving = "[{arrivals: 33/s, for: 2s}]";
    for (load, stays) in [(closed, true), (arriving, false)] {
        let text = COUNTED.replace("TARGET", &target.http("")).replace("LOAD", load);
        let text = if stays { text } else { text.replace(", {stay: forever}", "") };
        let checked = throng("check counted.yaml").file("counted.yaml", &text).run().exits(0);
        checked.says(&["session admin · 30.303 % of the users", "up to 20 are needed"]);
        checked.check(!checked.out.contains("too few"), "20 rows are enough for 20 users");
        let requests = 20 + 46 * 8;
        // Where answers are slow, the last who arrive are sent away before they have asked for all.
        checked.says(&[&format!("  {requests} requests, up to ")]);
        let run = throng("run counted.yaml --json").file("counted.yaml", &text).run().exits(0);
        let steps = run.json()["steps"].as_array().expect("rows").clone();
        let http = steps.iter().filter(|row| row["kind"] == "http");
        let done: u64 = http.filter_map(|row| row["count"].as_u64()).sum();
        run.check(done == requests, &format!("{done} requests were done"));
    }
}
