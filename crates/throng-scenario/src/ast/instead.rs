//! Replacements for keys that a map does not have: keys of other tools, and common mistakes.

use throng_base::Said;

use crate::keys::{self, MapKind};

/// Keys of a map, and the message for them.
type Instead = (&'static MapKind, &'static [&'static str], Said);

static ALL: &[Instead] = &[
    (
        &keys::HTTP,
        &["params", "query_params", "querystring", "qs"],
        say!("write `query: {{name: value}}`; for a form, write `form: {{name: value}}`"),
    ),
    (
        &keys::SESSION,
        &["wait_time", "think_time", "sleep", "pause"],
        say!("write a step: `- think: 1s..3s`"),
    ),
    (
        &keys::SESSION,
        &["login", "setup", "on_start"],
        say!("put the steps that each user runs once, before all others, under `before: […]`"),
    ),
    (
        &keys::SESSION,
        &["auth", "basic_auth"],
        say!(
            "write `auth: {{…}}` in each `http` step, or for all: `headers: {{Authorization: \
             \"Basic ${{base64('USER:PASSWORD')}}\"}}`"
        ),
    ),
    (
        &keys::SCENARIO,
        &["headers", "header"],
        say!("write `defaults: {{headers: {{…}}}}`; a session can have `headers:` too"),
    ),
    (
        &keys::SCENARIO,
        &["steps", "requests", "tasks", "flow"],
        say!("write the steps in a session: `sessions: {{user: {{steps: […]}}}}`"),
    ),
    (
        &keys::SCENARIO,
        &["config"],
        say!(
            "this looks like an Artillery file: write `target: URL`, the phases as `load: \
             [{{arrivals: 5/s, for: 1m}}]` and each flow as `sessions: {{name: {{steps: \
             […]}}}}`; docs/coming-from.md compares the terms"
        ),
    ),
    (
        &keys::PHASE,
        &["rate", "ramp", "ramp_up", "rampup", "spawn_rate"],
        say!(
            "write `users: {{to: 10, rate: 5/s}}` for 10 users that start at this rate, \
             `arrivals: 5/s` for new users, or `iterations: 5/s` for iterations"
        ),
    ),
    (
        &keys::CHECK,
        &["contains", "contain", "includes"],
        say!("write `check: {{body: {{contains: text}}}}`"),
    ),
];

/// What to write instead of this key.
pub(crate) fn instead(key: &str, kind: &'static MapKind) -> Option<Said> {
    let simple = key.to_ascii_lowercase().replace(['-', ' '], "_");
    let is_it = |of: &'static MapKind, words: &[&str]| {
        std::ptr::eq(of, kind) && words.contains(&simple.as_str())
    };
    if let Some((_, _, said)) = ALL.iter().find(|(of, words, _)| is_it(of, words)) {
        return Some(said.clone());
    }
    if std::ptr::eq(kind, &keys::BODY) {
        if ["json", "form", "multipart"].contains(&key) {
            return Some(say!("write `{key}:` directly in the step, not inside `body:`"));
        }
        return Some(say!(
            "write `json: {{{key}: …}}` for a JSON body, `form: {{{key}: …}}` for a form"
        ));
    }
    let path = key.strip_prefix("$.").filter(|_| std::ptr::eq(kind, &keys::CHECK))?;
    Some(say!("write `json.{path}`"))
}

#[cfg(test)]
mod tests {
    use throng_base::Source;

    /// The messages for a scenario with these lines at the top, in its session, step or load.
    fn said(top: &str, session: &str, step: &str, phase: &str) -> String {
        let text = format!(
            "target: http://127.0.0.1:1\n{top}data: {{accounts: {{csv: {{file: a.csv, columns: \
             [username]}}}}}}\nsessions:\n  user:\n{session}    steps:\n      - http: GET \
             /\n{step}      - log: \"${{data.accounts.username}}\"\nload:\n  - {phase}\n"
        );
        let source = Source::new("t.yaml", text);
        match crate::tests::compile_set(&source, &[]) {
            Ok((_, warnings)) => warnings.iter().map(|one| one.render(false)).collect(),
            Err(wrong) => wrong.iter().map(|one| one.render(false)).collect(),
        }
    }

    #[test]
    fn common_mistakes_are_answered_with_a_replacement() {
        let phase = "{users: 1, for: 1s}";
        let steps = [
            ("params: {a: 1}", "write `query: {name: value}`"),
            ("body: {identity: a}", "`json: {identity: …}` for a JSON body"),
            ("json: '{\"a\":1}'", "warning[quoted-json]"),
            ("json: '[1, {\"a\": \"b\"}]'", "`body: '…'`"),
            ("check: {contains: x}", "`check: {body: {contains: text}}`"),
            ("check: {$.code: 200}", "write `json.code`"),
            ("check: {json: {a: {contains: x}}}", "write `check: {json.a: {contains: …}}`"),
            ("check: status: 200", "write `check: {status: 200}`"),
            ("save: {token: data.token}", "write `json.data.token`"),
            ("save: {token: $.code}", "write `json.code`"),
            ("json: {password: abc #1}", "in quotes: `\"abc #1\"`"),
            ("json: {a: \"${username}\"}", "`data.SOURCE.username`"),
            ("json: {a: \"${token}\"}", "`vars.token`, `saved.token`"),
            ("json: {a: \"${random(1, 9)}\"}", "`random.int("),
            ("json: {a: \"${__P(users, 9)}\"}", "`${vars.users}`"),
            ("json: 1\n      - GET /x", "write `- http: GET /x`"),
            ("json: 1\n      - http: GET http://other.example/x", "or in `targets`"),
        ];
        for (step, want) in steps {
            let found = said("", "", &format!("        {step}\n"), phase);
            assert!(found.contains(want), "{step}: {found}");
            assert!(!found.contains("did you mean `user`"), "{found}");
        }
        for (top, want) in [
            ("headers: {A: b}\n", "`defaults: {headers: {…}}`"),
            ("steps: [{http: GET /}]\n", "`sessions: {user: {steps: […]}}`"),
            (
                "config: {phases: []}\n",
                "this looks like an Artillery file: write `target: URL`, the phases as `load: \
                 [{arrivals: 5/s, for: 1m}]` and each flow as `sessions: {name: {steps: […]}}`; \
                 docs/coming-from.md compares the terms",
            ),
        ] {
            let found = said(top, "", "", phase);
            assert!(found.contains(want), "{top}: {found}");
        }
        for (session, want) in [
            ("wait_time: 1s", "- think: 1s..3s"),
            ("login: [{http: GET /}]", "`before: […]`"),
            ("auth: {user: a, password: b}", "\"Basic ${base64('USER:PASSWORD')}\"}`"),
        ] {
            let found = said("", &format!("    {session}\n"), "", phase);
            assert!(found.contains(want), "{session}: {found}");
        }
        for phase in ["{users: 10, rate: 5/s}", "{users: 10, ramp: 5s, for: 1m}"] {
            let found = said("", "", "", phase);
            assert!(found.contains("`users: {to: 10, rate: 5/s}`"), "{phase}: {found}");
        }
        let found = said("", "", "        json: {a: '${username}'}\n", phase);
        assert!(found.contains("not defined here"), "{found}");
    }

    #[test]
    fn correct_keys_cause_no_warning() {
        let (vars, phase) = ("vars: {stars: 5}\n", "{users: 1, for: 1s}");
        let found = said(vars, "", "        json: {query: 'query { a(b: [$stars]) }'}\n", phase);
        assert!(found.contains("did you mean `${vars.stars}`?"), "{found}");
        for step in [
            "json: {a: 1}",
            "json: '${data.accounts.username}'",
            "json: 'plain'",
            "json: '{'",
            "json: [\"{}\", 1]",
            "json: {query: 'query Q($stars: Int!) { a(b: $stars) {stars} }'}",
            "check: {json.a: {contains: x}}",
            "check: {json: {a.contains: x, b: {count: 3, size: 1}}}",
        ] {
            let found = said(vars, "", &format!("        {step}\n"), phase);
            for code in ["quoted-json", "other-placeholder", "nested-condition"] {
                assert!(!found.contains(code), "{step}: {found}");
            }
        }
    }
}
