//! Secrets of scenarios: learned, masked in recorded files and messages; and files that are not
//! quoted.

use throng_base::{Diagnostic, Source};
use throng_program::Program;

use super::{Masked, masked_in, masked_scenario};
use crate::CompileOptions;

fn compile(text: &str, set: &[(&str, &str)]) -> Result<Program, Vec<Diagnostic>> {
    let set = set.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let read_file = |path: &std::path::Path, _: usize| match path.to_str() {
        Some("shadow") => Ok(b"root:$6$abcdef:19000:0:99999:7:::\nmail:*:19000::::::\n".to_vec()),
        Some("broken.yaml") => Ok(b"parts: {x: [\nhidden-line: [}\n".to_vec()),
        _ => Err(std::io::ErrorKind::NotFound.into()),
    };
    let env = |name: &str| (name == "DB_PASSWORD").then(|| "of-the-environment".to_string());
    let run = crate::RunOptions::default();
    let options = CompileOptions { set, base: "".into(), read_file: &read_file, env: &env, run };
    crate::compile(&Source::new("t.yaml", text), &options).map(|(program, _)| program)
}

const SCENARIO: &str = "\
# The password is swordfish, as everywhere.
vars:
  password: swordfish
  pin: {value: 4711, secret: true}
  db: {env: DB_PASSWORD}
  given: unknown-until-now
  plain: visible
target: http://127.0.0.1:1
sessions:
  get_token:
    steps:
    - http: POST /login?api_key=k3y-k3y
      headers:
        Authorization: Bearer literal.token
        X-Note: \"${vars.plain} ${vars.given}\"
        X-Auth: \"${'swordfish'}\"
        Proxy-Authorization: \"Basic ${base64.encode('admin:letmein!')}\"
      json: {user: anna, password: \"${vars.password}\", pin: \"${vars.pin}\", n: \"${vars.db}\"}
      save: {token: {json: $.token}}
      check: {json: {$.token: present}}
load: [{users: 1, iterations: 1}]
";

#[test]
fn secrets_are_learned_from_names_and_declarations() {
    let program = compile(SCENARIO, &[("pin", "999999")]).unwrap_or_else(|wrong| {
        panic!("{}", wrong.iter().map(|one| one.render(false)).collect::<String>())
    });
    let secrets = &program.secrets;
    for (text, want) in [
        ("swordfish 999999 of-the-environment", "*** *** ***"),
        ("k3y-k3y literal.token letmein!", "*** *** ***"),
        ("anna visible present $.token", "anna visible present $.token"),
        ("pin=12", "pin=***"),
    ] {
        assert_eq!(secrets.mask(text), want);
    }
}

#[test]
fn a_recorded_scenario_masks_secrets_and_names_what_to_give() {
    let program = compile(SCENARIO, &[]).unwrap();
    let recorded = masked_scenario(SCENARIO, &program.secrets);
    for secret in ["swordfish", "4711", "k3y-k3y", "literal", "letmein"] {
        assert!(!recorded.contains(secret), "{secret}: {recorded}");
    }
    for kept in [
        "# To rerun it, set them: --set password=… --set pin=…\n",
        "  password: \"***\"\n",
        "  pin: {value: \"***\", secret: true}\n",
        "  db: {env: DB_PASSWORD}\n",
        "  get_token:\n",
        "POST /login?api_key=***\n",
        "password: \"${vars.password}\"",
        "save: {token: {json: $.token}}",
        "Basic ${base64.encode('***')}",
        "# The password is ***, as everywhere.\n",
    ] {
        assert!(recorded.contains(kept), "{kept}: {recorded}");
    }
    let line = recorded.lines().position(|line| line.contains("api_key=***")).unwrap() + 1;
    let told = recorded.lines().find(|line| line.starts_with("# To rerun it, write")).unwrap();
    assert!(told.contains(&format!(" {line},")), "{told} {line}");
    // It is still YAML, but cannot run unchanged.
    let wrong = compile(&recorded, &[("pin", "1")]).unwrap_err();
    let codes: Vec<_> = wrong.iter().map(|one| one.code).collect();
    assert!(codes.iter().all(|code| *code == "masked-secret") && codes.len() == 2, "{wrong:?}");
    // A scenario without secrets is recorded unchanged.
    let plain = "# a\ntarget: http://h:1\n";
    assert_eq!(masked_scenario(plain, &program.secrets), plain);
}

#[test]
fn secrets_in_blocks_and_included_parts_are_masked_in_place() {
    let text = "vars:\n  token: |\n    first line\n    second\n  list: {passwords: [], \
                secret: [a1, b2]}\n";
    let recorded = masked_scenario(text, &throng_base::Secrets::default());
    let want = "  token: |\n    ***\n    ***\n";
    assert!(recorded.contains(want), "{recorded}");
    assert!(recorded.contains("secret: [\"***\", \"***\"]"), "{recorded}");
    let parsed = crate::syntax::parse(&Source::new("t", recorded.as_str()), 0);
    assert!(parsed.is_ok(), "{recorded}");
}

#[test]
fn messages_mask_secrets() {
    let text = "vars: {password: swordfish, x: }\ntarget: http://127.0.0.1:1\nsessions:\n  s:\n    \
                steps:\n    - http: GET /swordfish/${vars.nothing}\nload: [{users: 1, \
                iterations: 1}]\nnonsense: {token: other-secret}\n";
    let wrong = compile(text, &[("passwrd", "given-secret")]).unwrap_err();
    assert!(wrong.len() >= 3, "{wrong:?}");
    let told: String = wrong.iter().map(|one| one.render(false)).collect();
    for secret in ["swordfish", "given-secret", "other-secret"] {
        assert!(!told.contains(secret), "{told}");
    }
    assert!(told.contains("GET /*********/${vars.nothing}"), "{told}");
    // Even if the file is not YAML.
    let wrong = compile("vars: {password: swordfish, x: [}\n", &[]).unwrap_err();
    let told = wrong[0].render(false);
    assert!(told.contains("t.yaml:1") && !told.contains("swordfish"), "{told}");
}

#[test]
fn an_included_file_that_is_not_yaml_is_not_quoted() {
    for (file, place) in [("shadow", "shadow:1:1"), ("broken.yaml", "broken.yaml:2:")] {
        for text in [format!("include: {file}\n"), format!("protocol: {file}\n")] {
            let wrong = compile(&format!("{text}target: tcp://127.0.0.1:1\n"), &[]).unwrap_err();
            let told: String = wrong.iter().map(|one| one.render(false)).collect();
            assert!(told.contains(place), "{told}");
            for part in ["$6$", "19000", "root", "hidden-line"] {
                assert!(!told.contains(part), "{told}");
            }
        }
    }
}

#[test]
fn masked_secrets_are_recognized_when_recompiled() {
    let text = "vars:\n  pin: {value: \"***\", secret: true}\n  password: \"***\"\n  users: 5\n\
                target: http://127.0.0.1:1\nsessions:\n  s:\n    steps:\n      \
                - http: GET /a?api_key=***\n        headers: {Authorization: \"***\"}\n";
    let names = ["pin", "password"].map(String::from).to_vec();
    let mut masked = masked_in(text);
    masked.lines.sort_unstable();
    assert_eq!(masked, Masked { names, lines: vec![9, 10] });
    assert_eq!(masked_in("target: http://127.0.0.1:1\n"), Masked::default());
}

/// A scenario whose secrets are words that also occur elsewhere in it.
fn common(word: &str) -> String {
    format!(
        "\
vars: {{user: {word}, password: {word}, state: {word}}}
target: http://127.0.0.1:1
sessions:
  {word}:
    steps:
    - http: POST /{word}/login
      name: {word}
      auth: {{user: {word}, password: \"${{vars.password}}\"}}
      headers: {{X-Kind: {word}, X-Mark: \"{word}; ${{vars.password}}\"}}
      json: {{user: \"${{vars.user}}\", pw: \"${{vars.password}}\", role: {word}, roles: [{word}]}}
      check: {{json.state: {word}, body: {{contains: {word}-x}}}}
    - log: \"as ${{vars.password}} in {word}\"
load: [{{users: 1, iterations: 1}}]
"
    )
}

#[test]
fn a_secret_that_is_a_common_word_is_masked_only_where_it_is_used() {
    for word in ["admin", "test", "open", "checkout", "production1"] {
        let text = common(word);
        let program = compile(&text, &[]).unwrap();
        assert_eq!(program.steps[0].name, word);
        let secrets = &program.secrets;
        for (text, want) in [
            (format!("POST /{word}/login {word}"), None),
            (format!("{{\"state\":\"{word}\",\"user\":\"{word}\"}}"), None),
            (format!("expected {word}, got {word}"), None),
            (
                format!("X-Mark: {word}; {word}\r\nX-Kind: {word}"),
                Some(format!("X-Mark: {word}; ***\r\nX-Kind: {word}")),
            ),
            (format!("{{\"pw\":\"{word}\"}}"), Some("{\"pw\":\"***\"}".to_string())),
            (format!("as {word} in {word}"), Some(format!("as *** in {word}"))),
        ] {
            let want = want.unwrap_or_else(|| text.clone());
            assert_eq!(secrets.mask(&text), want);
        }
        let recorded = masked_scenario(&text, secrets);
        let own: Vec<&str> = recorded.lines().filter(|line| !line.starts_with('#')).collect();
        let want = text.replace(&format!("password: {word},"), "password: \"***\",");
        assert_eq!(own.join("\n") + "\n", want);
        let wrong = compile(&recorded, &[]).unwrap_err();
        assert_eq!(wrong.iter().map(|one| one.code).collect::<Vec<_>>(), ["masked-secret"]);
        let again = compile(&recorded, &[("password", word)]).unwrap();
        assert_eq!(again.steps[0].name, word);
    }
}

#[test]
fn messages_quote_the_scenario_except_for_secrets() {
    let text = format!("{}nonsense: admin\nload2: {{password: admin}}\n", common("admin"));
    let wrong = compile(&text, &[]).unwrap_err();
    let told: String = wrong.iter().map(|one| one.render(false)).collect();
    for part in ["nonsense: admin", "load2: {password: *****}"] {
        assert!(told.contains(part), "{told}");
    }
}

#[test]
fn a_recorded_scenario_is_always_yaml() {
    let text = "\
# hunter2-hunter2
vars: {token: hunter2-hunter2, basic: admin, a: 'it''s'}
target: http://127.0.0.1:1
sessions:
  s:
    steps:
    - log: hunter2-hunter2/x 'quoted' hunter2-hunter2
    - log: |
        hunter2-hunter2 first
        second
    - log: \"\\thunter2-hunter2\"
    - http: POST /
      headers: {Authorization: '${\"Basic \" + base64.encode(vars.a + '':'' + vars.basic)}', \
               X-Api-Key: \"${'abcd'}\"}
      json: [hunter2-hunter2/y]
      check: {json.state: hunter2-hunter2/z, json.a: x-hunter2-hunter2}
load: [{users: 1, iterations: 1}]
";
    let program = compile(text, &[]).unwrap();
    let recorded = masked_scenario(text, &program.secrets);
    for secret in ["hunter2", "abc", "basic: admin"] {
        assert!(!recorded.contains(secret), "{secret}: {recorded}");
    }
    for kept in [
        "# ***\n",
        "- log: '***/x ''quoted'' ***'\n",
        "        *** first\n        second\n",
        "json.state: '***/z', json.a: x-***",
        "a: 'it''s'",
        "base64.encode(vars.a + '':'' + vars.basic)",
        "\"${'***'}\"",
    ] {
        assert!(recorded.contains(kept), "{kept}: {recorded}");
    }
    let parsed = crate::syntax::parse(&Source::new("t", recorded.as_str()), 0);
    assert!(parsed.is_ok(), "{recorded}");
    assert_eq!(masked_in(&recorded).names, ["token", "basic"]);
}

#[test]
fn sources_of_secrets_are_secret_but_the_user_name_is_not() {
    let text = "\
vars: {name: anna, pw: admin, both: '${vars.name}:${vars.pw}', other: x}
target: http://127.0.0.1:1
sessions:
  s:
    steps:
    - http: GET /${vars.name}/${vars.other}
      headers: {Authorization: \"Basic ${base64.encode(vars.name + ':' + vars.pw)}\"}
      body: \"login ${vars.both}!\"
load: [{users: 1, iterations: 1}]
";
    let secrets = compile(text, &[]).unwrap().secrets;
    for (text, want) in [
        ("login anna:admin! as anna", "login ***! as anna"),
        ("GET /anna/admin?pw=admin", "GET /anna/***?pw=***"),
        ("Authorization: Basic YWJj", "Authorization: Basic ***"),
    ] {
        assert_eq!(secrets.mask(text), want);
    }
    let recorded = masked_scenario(text, &secrets);
    for kept in ["name: anna, pw: \"***\", both:", "vars.name + ':' + vars.pw"] {
        assert!(recorded.contains(kept), "{recorded}");
    }
}

#[test]
fn a_short_secret_is_masked_everywhere() {
    let text = "\
# Not hunter, and not admin.
vars: {user: admin, password: hunter, list: {value: [open], secret: true}, own: admin, up: {value: \
admin, secret: true}}
target: http://127.0.0.1:1
sessions:
  s:
    steps:
    - http: POST /login?api_key=tiger
      body: \"${'x' + vars.password}\"
    - log: \"${vars.user}\"
load: [{users: 1, iterations: 1}]
";
    let secrets = compile(text, &[]).unwrap().secrets;
    for (text, want) in [
        ("hunter was refused", "*** was refused"),
        ("[\"hunter\", \"open\"]", "[\"***\", \"***\"]"),
        ("GET /tiger/x", "GET /***/x"),
        ("as admin", "as admin"),
    ] {
        assert_eq!(secrets.mask(text), want);
        assert_eq!(secrets.mask_sentence(text), want);
    }
    let recorded = masked_scenario(text, &secrets);
    assert!(recorded.contains("# Not ***, and not ***.\n"), "{recorded}");
    assert!(recorded.contains("user: admin, password: \"***\""), "{recorded}");
    // Values of other variables on the command line count as occurrences elsewhere.
    let secrets = compile(text, &[("user", "root"), ("password", "root")]).unwrap().secrets;
    assert_eq!(secrets.mask("root"), "root");
}

#[test]
fn a_prefix_of_an_id_and_signed_data_are_not_secrets() {
    let text = "\
vars: {key: 0123456789abcdef}
target: http://127.0.0.1:1
sessions:
  s:
    steps:
    - http: GET /a
      cookies: {sid: \"${'u' + string(user.id)}\"}
      headers:
        Authorization: \"HMAC ${hmac.sha256(vars.key, 'GET-it' + string(user.id))}\"
        X-Api-Key: \"${hmac.sha256('sesame', 'signed')}\"
load: [{users: 1, iterations: 1}]
";
    let program = compile(text, &[]).unwrap();
    let recorded = masked_scenario(text, &program.secrets);
    for kept in ["'u' + string", "vars.key, 'GET-it' +", "sha256('***', 'signed')"] {
        assert!(recorded.contains(kept), "{recorded}");
    }
}
