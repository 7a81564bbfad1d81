//! The same in Chinese: asked for by a flag or by the locale.

use crate::run::{Run, Throng, throng};
use crate::scenarios::{one_session, times};
use crate::servers::{Target, free_port};

fn is_chinese(text: &str) -> bool {
    text.chars().any(|c| ('\u{4e00}'..='\u{9fff}').contains(&c))
}

#[track_caller]
fn speaks_chinese(run: &Run) {
    run.check(is_chinese(&run.out) || is_chinese(&run.err), "it speaks no Chinese");
    run.check(!run.err.contains("panicked"), "it panics");
}

#[track_caller]
fn speaks_english(run: &Run) {
    run.check(!is_chinese(&run.out) && !is_chinese(&run.err), "it speaks Chinese");
}

fn small(target: &Target) -> String {
    let steps = "\
- transaction: visit
  steps: [{http: GET /}, {think: 10ms}]
- http: GET /json
  check: {json.code: 1}
- log: done
- if: ${iteration > 5}
  then: [{http: GET /}]";
    let head = format!(
        "data: {{it: {{list: [1, 2], take: unique, at_end: stop}}}}\nvars: {{a: 1}}\n{}",
        times(4, 2)
    );
    let steps = format!("{steps}\n- set: {{x: \"${{data.it}}\"}}\n- http: GET /${{saved.x}}");
    let thresholds = "thresholds: [visit p95 < 10s, errors < 1%, GET / count > 1k]";
    one_session(&target.http(""), &format!("{head}\n{thresholds}"), &steps)
}

fn with(line: &str, text: &str) -> Throng {
    throng(line).file("scenario.yaml", text)
}

#[test]
fn a_run_is_reported_in_chinese() {
    let target = Target::start("http");
    let text = small(&target);
    let run = with("run scenario.yaml --lang zh --out record", &text).run().exits(1);
    speaks_chinese(&run);
    // Names, codes and figures are what they are.
    run.says(&["visit", "GET /json", "json-unexpected", "200", "未满足"]);
    for english in ["thresholds", "latency ", "online at peak", "not met", "the run ended"] {
        run.check(!run.out.contains(english), &format!("it says `{english}`"));
    }
    let report = throng("report --lang zh").arg(run.folder().join("record")).run().exits(1);
    speaks_chinese(&report);
    // What programs read does not change.
    let json = throng("report --json --lang zh").arg(run.folder().join("record")).run().exits(1);
    json.check(json.json()["thresholds"][1]["verdict"] == "not-met", "a word for programs");
    speaks_english(&throng("report --lang en").arg(run.folder().join("record")).run().exits(1));
}

#[test]
fn a_plan_is_printed_in_chinese() {
    let target = Target::start("http");
    let run = with("check scenario.yaml --lang zh", &small(&target)).run().exits(0);
    speaks_chinese(&run);
    run.check(!run.out.contains("the scenario is valid"), "English at the end");
    run.check(run.out.contains("transaction visit"), "verbs stay");
    for english in ["expected\n", "load\n", "thresholds\n", "users at once", "an iteration"] {
        run.check(!run.out.contains(english), &format!("it says `{english}`"));
    }
}

#[test]
fn throng_try_prints_chinese() {
    let target = Target::start("http");
    let run = with("try scenario.yaml --lang zh", &small(&target)).run().exits(1);
    speaks_chinese(&run);
    run.says(&["✓ http GET /", "→ GET / HTTP/1.1", "json-unexpected"]);
    for english in ["paused", "connected to", "session user"] {
        run.check(!run.out.contains(english), &format!("it says `{english}`"));
    }
}

#[test]
fn errors_are_reported_in_chinese() {
    let text =
        one_session("http://127.0.0.1:1", &times(1, 1), "- http: GET /\n  chek: {}\n- thnk: 1s");
    for command in ["run", "check", "try"] {
        let run = with(&format!("{command} scenario.yaml --lang zh"), &text).run().exits(2);
        speaks_chinese(&run);
        run.says(&["[unknown-key]", "--> scenario.yaml:8:9", "`chek`", "`check`"]);
        let english = ["error[", "= help", "did you mean", "nothing was sent", "mistakes"];
        for english in english {
            run.check(!run.err.contains(english), &format!("it says `{english}`"));
        }
    }
    let none = throng("run none.yaml --lang zh").run().exits(2);
    speaks_chinese(&none);
    let refused =
        one_session(&format!("http://127.0.0.1:{}", free_port()), &times(3, 1), "- http: GET /");
    let run = with("run scenario.yaml --lang zh --no-record", &refused).run().exits(4);
    speaks_chinese(&run);
    run.says(&["connect-refused"]);
    speaks_chinese(&throng("run --lang zh").run().exits(2));
    speaks_chinese(&throng("--help --lang zh").run().exits(0));
    speaks_chinese(&throng("init api --lang zh").run().exits(0));
}

#[test]
fn the_locale_is_understood() {
    let target = Target::start("http");
    let text = small(&target);
    let run = |name: &str, value: &str| {
        // The tests set LC_ALL, which comes before all others.
        let run = with("check scenario.yaml", &text).env("LC_ALL", "").env("LANG", "");
        run.env("LC_MESSAGES", "").env("LANGUAGE", "").env(name, value).run().exits(0)
    };
    speaks_chinese(&run("LANG", "zh_CN.UTF-8"));
    speaks_chinese(&run("LANG", "zh_TW"));
    speaks_chinese(&run("LC_ALL", "zh_CN.UTF-8"));
    speaks_chinese(&run("LC_MESSAGES", "zh_SG.UTF-8"));
    for english in ["C", "C.UTF-8", "POSIX", "en_GB.UTF-8", "de_DE.UTF-8", "", "zhxx"] {
        speaks_english(&run("LANG", english));
    }
    let both = with("check scenario.yaml --lang en", &text).env("LC_ALL", "zh_CN.UTF-8");
    speaks_english(&both.run().exits(0));
    let wrong = throng("check scenario.yaml --lang klingon").run().exits(2);
    wrong.says(&["klingon", "`en` or `zh`"]);
}

#[test]
fn chinese_in_scenarios_works_in_any_language() {
    let target = Target::start("http");
    let steps =
        "- http: GET /json\n  name: 登录\n  check: {json.code: 0}\n- log: 用户 ${user.id} 已登录";
    let head = format!("vars: {{名字: 7}}\nthresholds: [登录 p95 < 10s]\n{}", times(2, 1));
    let text = one_session(&target.http(""), &head.replace("vars: {名字: 7}\n", ""), steps);
    for language in ["en", "zh"] {
        let line = format!("run scenario.yaml --no-record --lang {language}");
        let run = with(&line, &text).run().exits(0);
        run.says(&["登录 p95 < 10s", "用户 1 已登录"]);
        let line = format!("try scenario.yaml --lang {language}");
        with(&line, &text).run().exits(0).says(&["✓ http 登录", "用户 1 已登录"]);
    }
}
