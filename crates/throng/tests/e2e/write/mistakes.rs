//! A scenario full of mistakes: all are told at once, each with its place, and nothing is sent.

use std::collections::BTreeSet;

use crate::run::throng;
use crate::scribe::Scribe;

/// Thirty mistakes, each in a line that ends with `#` and the code of the answer.
const WRONG: &str = r#"name: thirty mistakes
target: TARGET
tls: {verifi: false}                                #unknown-key
connection: {timeout: 5x}                           #bad-value
limits: {body: 10MM}                                #bad-value
trace: {share: 200%}                                #bad-value
vars:
  a: ${vars.b}                                      #unknown-name
data:
  one: {take: unique}                               #missing-key
  two: {list: []}                                   #empty
  three: {generate: {id: 9..1}}                     #data-generator
  four: {list: [1], take: twice}                    #bad-value
sessions:
  user:
    weight: heavy                                   #bad-value
    steps:
      - thnk: 1s                                    #unknown-key
      - think: 5x                                   #bad-value
      - http: get /                                 #bad-method
      - http: GET /${user.id +}                     #bad-expression
      - http: GET /${saved.nothing}                 #unknown-name
      - http: GET /
        chek: {status: 200}                         #unknown-key
      - http: GET /
        check: {status: 99}                         #bad-value
      - http: GET /
        check: {regex: 'a(b'}                       #bad-pattern
      - http: GET /
        check: {css: 'ul > '}                       #bad-selector
      - http: GET /
        check: {xpath: '//a['}                      #bad-xpath
      - http: GET /
        save: {x: jsn.a}                            #unknown-save
      - http: POST /
        json: {a: 1}
        form: {a: 1}                                #conflicting-keys
      - http: GET /
        headers: {Bad Header: x}                    #bad-header
      - http: GET /
        on_error: explode                           #bad-value
      - repeat: 0                                   #bad-value
        steps: [{http: GET /}]
      - use: nowhere                                #unknown-name
      - connect                                     #step-scheme
load:
  - {users: 10}                                     #missing-key
thresholds:
  - http p99 < 50                                   #bad-threshold
  - checks lower than all                           #bad-threshold
"#;

#[test]
fn thirty_mistakes_give_thirty_messages() {
    let scribe = Scribe::apart();
    let text = WRONG.replace("TARGET", &scribe.target());
    let lines = text.lines().enumerate();
    let wanted: Vec<(usize, &str)> =
        lines.filter_map(|(index, line)| Some((index + 1, line.split_once(" #")?.1))).collect();
    assert_eq!(wanted.len(), 30);
    for command in ["check", "run", "try"] {
        let run = throng(&format!("{command} wrong.yaml")).file("wrong.yaml", &text).run().exits(2);
        let messages: Vec<&str> = run.err.split("error[").skip(1).collect();
        let told = messages.iter().map(|message| {
            let code = message.split(']').next().unwrap_or_default();
            let place = message.split("--> wrong.yaml:").nth(1).unwrap_or_default();
            let mut numbers = place.split([':', '\n']).map(str::parse::<usize>);
            let (line, column) = (numbers.next(), numbers.next());
            let (Some(Ok(line)), Some(Ok(_))) = (line, column) else {
                panic!("no place in {message}\n{run}");
            };
            run.check(message.contains("= help: "), &format!("no help in {message}"));
            run.check(message.contains('^'), &format!("no mark in {message}"));
            (line, code)
        });
        let told: BTreeSet<(usize, &str)> = told.collect();
        let wanted: BTreeSet<(usize, &str)> = wanted.iter().copied().collect();
        let missing: Vec<_> = wanted.difference(&told).collect();
        let more: Vec<_> = told.difference(&wanted).collect();
        run.check(
            missing.is_empty() && more.is_empty(),
            &format!("missing {missing:?}, more {more:?}"),
        );
        run.check(messages.len() == 30, "no mistake is told twice");
        run.says(&["30 errors; nothing was sent"]);
        run.check(run.out.is_empty(), "the output is for plans and runs");
        run.check(run.folder().read_dir().expect("a folder").count() == 1, "nothing is recorded");
    }
    assert_eq!(scribe.accepted(), 0, "nothing was sent");
}

#[test]
fn what_is_no_scenario_is_answered() {
    let wrong: &[(&str, &str)] = &[
        ("", "error["),
        ("hello", "error["),
        ("- a\n- b\n", "error["),
        ("a: [1, 2\n", "error["),
        ("a: \"x\n", "error["),
        ("\ttarget: x\n", "error["),
        ("target: x\ntarget: y\n", "duplicate-key"),
        ("target: http://h\n", "missing-key"),
        ("%!PS-Adobe\n", "error["),
        ("a: &x [*x]\n", "error["),
        ("\u{feff}target: http://h\n", "missing-key"),
        ("a: !!binary x\n", "error["),
        ("---\na: 1\n---\nb: 2\n", "error["),
    ];
    for (text, said) in wrong {
        let run = throng("check wrong.yaml").file("wrong.yaml", text).run().exits(2);
        run.says(&[said, "--> wrong.yaml:"]);
        run.check(!run.err.contains("panicked"), "it panics");
    }
    // Deep and wide.
    for text in ["[".repeat(100_000), "a: ".repeat(50_000), format!("a: {}", "x".repeat(1 << 20))] {
        let run = throng("check wrong.yaml").file("wrong.yaml", text).run().exits(2);
        run.check(run.err.len() < 20_000, "the message is too long");
        run.check(run.took.as_secs() < 20, "it takes too long");
    }
    // Names that stand for nine of the one before.
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let lines = names.windows(2).map(|two| {
        let nine = vec![format!("*{}", two[0]); 9].join(", ");
        format!("{}: &{} [{nine}]\n", two[1], two[1])
    });
    let bombs = format!("a: &a [x]\n{}", lines.collect::<String>());
    let run = throng("check wrong.yaml").file("wrong.yaml", bombs).run().exits(2);
    run.check(run.took.as_secs() < 20, "it takes too long");
}
