//! `throng explain`: what a message means, by the code in the message.

use crate::run::{Run, throng};

fn explain(words: &str) -> Run {
    throng(&format!("--lang en explain {words}")).run()
}

#[test]
fn all_codes_are_listed_with_a_sentence() {
    let run = explain("").exits(0);
    run.says(&["unknown-key ", "connect-refused ", "generator-late "]);
    run.check(run.out.lines().count() > 100, "there are more codes");
    run.check(run.out.lines().is_sorted(), "they are not sorted");
    for line in run.out.lines() {
        let (code, brief) = line.split_once("  ").unwrap_or_default();
        run.check(!code.is_empty() && !code.contains(' '), line);
        run.check(brief.trim_end().ends_with('.'), line);
    }
    run.check(run.err.is_empty(), "something is wrong");
}

#[test]
fn a_code_is_explained() {
    let run = explain("unknown-key").exits(0);
    run.check(run.out.starts_with("unknown-key\n\n"), "its name is not first");
    run.says(&["Check its spelling"]);
}

#[test]
fn a_code_may_be_copied_from_a_message() {
    let plain = explain("unknown-key").exits(0);
    for copied in ["error[unknown-key]", "error[unknown-key]:", "[unknown-key]"] {
        let run = explain(copied).exits(0);
        run.check(run.out == plain.out, copied);
    }
    let run = explain("warning[never-fails]").exits(0);
    run.says(&["never-fails", "Every run meets"]);
}

#[test]
fn wrong_command_lines_are_wrong() {
    let scenario = "target: http://127.0.0.1:9\nvars: {users: 1}\n\
                    sessions: {a: {steps: [{http: GET /}]}}\n\
                    load: [{users: \"${vars.users}\", for: 1s}]\n";
    let codes = [
        "ambiguous-flag",
        "bad-auth",
        "bad-expectation",
        "bad-hex",
        "bad-set",
        "flag-without-effect",
        "two-bodies",
        "two-urls",
        "unknown-code",
        "unknown-variable",
        "url-missing",
    ];
    let examples = include_str!("../../../../throng-scenario/src/tests/wrong.txt");
    for code in codes {
        let (_, example) = examples.split_once(&format!("\n## {code}\nthrong ")).expect(code);
        let words = example.lines().next().unwrap_or_default().replace('\'', "");
        let run = throng(&words).file("shop.yaml", scenario).file("post.txt", "a").run().exits(2);
        run.says(&[&format!("error[{code}]")]);
    }
}

#[test]
fn words_of_failures_are_explained() {
    explain("connect-refused").exits(0).says(&["no program listens", "Blame: target."]);
    explain("ports-exhausted").exits(0).says(&["source port", "Blame: generator."]);
}

#[test]
fn an_unknown_code_is_answered_with_the_nearest() {
    let run = explain("unknown-kye").exits(2);
    run.says(&["error[unknown-code]", "did you mean `unknown-key`?", "help"]);
    run.check(run.out.is_empty(), "a mistake belongs on standard error");
    let run = explain("zzzzzzzzzz").exits(2);
    run.says(&["error[unknown-code]", "`throng explain` without a code"]);
    run.check(!run.err.contains("did you mean"), "nothing is near");
}

#[test]
fn chinese_is_spoken_on_demand() {
    let run = throng("explain unknown-key --lang zh").run().exits(0);
    run.says(&["unknown-key\n\n", "拼写"]);
    let listed = throng("explain --lang zh").run().exits(0);
    run.check(listed.out.contains("connect-refused  "), "it is not listed");
    let codes = |run: &Run| {
        let first = |line: &str| line.split(' ').next().unwrap_or_default().to_string();
        run.out.lines().map(first).collect::<Vec<_>>()
    };
    listed.check(codes(&listed) == codes(&explain("")), "other codes than in English");
    throng("explain unknown-kye --lang zh").run().exits(2).says(&["unknown-code", "`unknown-key`"]);
}
