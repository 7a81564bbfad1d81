//! Every rule, through strings: what it must find and what it must leave alone.

use super::source::Source;
use super::{circles, dependencies, layers, methods, sources, tokens};
use crate::workspace::{Dependency, Package};

fn rust(text: &str) -> Vec<String> {
    let findings = sources::check_rust(&Source::new("crates/x/src/y.rs", text.to_string()));
    findings.iter().map(|finding| format!("{}: {}", finding.line, finding.what)).collect()
}

fn package(name: &str, inside: &[&str]) -> Package {
    let edge = |name: &&str| Dependency { name: name.to_string(), external: false, normal: true };
    Package {
        name: name.to_string(),
        manifest: format!("crates/{name}/Cargo.toml"),
        dependencies: inside.iter().map(edge).collect(),
    }
}

fn layer_findings(document: &str, packages: &[Package]) -> Vec<String> {
    let findings = layers::check(document, packages);
    findings.iter().map(ToString::to_string).collect()
}

#[test]
fn a_file_says_what_it_is() {
    assert_eq!(rust("fn main() {}\n"), ["1: the file does not say what it is"]);
    assert!(rust("//! It is this.\nfn main() {}\n").is_empty());
}

#[test]
fn files_and_lines_have_a_length() {
    let long = format!("//! x\n{}", "fn f() {}\n".repeat(1000));
    assert_eq!(rust(&long), ["1001: 1001 lines; at most 1000"]);
    let wide = format!("//! x\nlet {} = 1;\n", "é".repeat(100));
    assert_eq!(rust(&wide), ["2: 109 characters; at most 100"]);
    assert!(rust(&format!("//! x\nlet a = \"{}\";\n", "a".repeat(100))).is_empty());
    assert!(rust(&format!("//! https://{}\n", "a".repeat(100))).is_empty());
    assert!(rust(&format!("//! x\nf(r#\"\n{}\n\"#);\n", "a".repeat(101))).is_empty());
}

#[test]
fn unfinished_code_is_found_and_talk_of_it_is_not() {
    assert_eq!(rust("//! x\n  todo!()\n"), ["2: `todo!` in the code"]);
    assert_eq!(rust("//! x\n#[ignore = \"slow\"]\n"), ["2: `#[ignore` in the code"]);
    assert_eq!(rust("//! x\nf(unimplemented!(\"x\"))\n"), ["2: `unimplemented!` in the code"]);
    let linked = "the reference servers are linked from elsewhere than `throng target`";
    assert_eq!(rust("//! x\nuse throng_target::start;\n"), [format!("2: {linked}")]);
    assert!(rust("//! todo!\n// todo!()\nf(\"todo!\"); /* todo! */ my_todo!()\n").is_empty());
}

#[test]
fn names_are_nouns() {
    let count = |file: &str| sources::check_name(file).len();
    assert_eq!(count("crates/x/src/utils.rs"), 1);
    assert_eq!(count("crates/throng-common/src/lib.rs"), 1);
    assert_eq!(count("crates/x/src/user_manager.rs"), 1);
    assert_eq!(count("web/helpers/x.ts"), 1);
    assert_eq!(count("crates/x/src/commonness.rs"), 0);
    assert_eq!(count("docs/common.md"), 0);
}

#[test]
fn paths_of_a_machine_are_found() {
    let lines = |text: &str| -> Vec<usize> {
        sources::check_machine_paths("a.md", text).iter().map(|finding| finding.line).collect()
    };
    let text = format!("x\ncd {}main\n`{}x`", concat!("/wo", "rk/"), concat!("/ro", "ot/"));
    assert_eq!(lines(&text), [2, 3]);
    let inside = format!("crates{}x and ~{}y", concat!("/wo", "rk/"), concat!("/ro", "ot/"));
    assert!(lines(&inside).is_empty());
}

#[test]
fn code_is_told_from_text() {
    let code = |text: &str| -> Vec<String> {
        tokens::read(text).1.into_iter().map(|line| line.code).collect()
    };
    assert_eq!(code("a(\"b \\\" c\", d) // e"), ["a(, d) "]);
    assert_eq!(code("a /* b /* c */ d\n e */ f"), ["a ", " f"]);
    assert_eq!(code("r##\"a\"# \n\"##; b br\"c\" for\"x\""), ["", "; b  for"]);
    assert_eq!(code("f('\"', '\\'', '\\u{1F}', b'x', &'a str) x"), ["f(, , , b, &'a str) x"]);
    assert_eq!(code("'\\"), ["'\\"]);
}

#[test]
fn layers_are_compared_with_cargo() {
    let packages = [package("a", &["c", "b"]), package("b", &[]), package("c", &[])];
    let document = "# x\n```layers\na: b c\nb:\nc:\n```\n";
    assert!(layer_findings(document, &packages).is_empty());

    let document = "```layers\na: b\nb:\nd:\n```\n";
    assert_eq!(
        layer_findings(document, &packages),
        [
            "ARCHITECTURE.md:2: the manifest of `a` says: `a: b c`\n  \
             cure: change the dependencies, or argue the edge in ARCHITECTURE.md",
            "ARCHITECTURE.md:4: there is no crate `d`\n  cure: remove the line",
            "ARCHITECTURE.md:1: the block ```layers has no line `c:`\n  cure: add it",
        ]
    );
    assert_eq!(layer_findings("# nothing\n", &packages).len(), 3);
}

#[test]
fn every_foreign_crate_has_a_reason() {
    let root =
        "[workspace.dependencies]\na = { path = \"crates/a\" }\nlibc = \"0.2\"\n\n[x]\ny = 1";
    let mut package = package("a", &[]);
    package.dependencies.push(Dependency {
        name: "serde".to_string(),
        external: true,
        normal: false,
    });
    let declared = dependencies::declared(root, &[package]);
    let document = "# x\n- `serde` — records; a\n- `gone` — was nice; a\n";
    let findings: Vec<String> = dependencies::check_reasons(document, &declared)
        .iter()
        .map(|finding| format!("{}:{}: {}", finding.file, finding.line, finding.what))
        .collect();
    assert_eq!(
        findings,
        [
            "docs/decisions/dependencies.md:3: no crate uses `gone`",
            "Cargo.toml:3: nobody says why `libc` is needed",
        ]
    );
}

#[test]
fn the_lock_file_has_a_size() {
    assert!(dependencies::check_lock(&"source = \"x\"\n".repeat(290)).is_empty());
    assert_eq!(dependencies::check_lock(&"source = \"x\"\n".repeat(291)).len(), 1);
    assert_eq!(dependencies::check_lock("").len(), 1);
}

fn circle_findings(sources: &[(&str, &str)]) -> Vec<String> {
    let read = |(file, text): &(&str, &str)| {
        Source::new(&format!("crates/x/src/{file}"), text.to_string())
    };
    let findings = circles::check(&sources.iter().map(read).collect::<Vec<_>>());
    findings.iter().map(ToString::to_string).collect()
}

fn circles_of(sources: &[(&str, &str)]) -> Vec<String> {
    let whats = circle_findings(sources).into_iter();
    whats.filter_map(|what| Some(what.split_once(": ")?.1.lines().next()?.to_string())).collect()
}

#[test]
fn modules_that_use_each_other_are_found() {
    let sources = [("a.rs", "use crate::b::B;"), ("b.rs", "fn f() {\n super::a::g() }")];
    let sources = [("lib.rs", "mod a;\nmod b;"), sources[0], sources[1]];
    assert_eq!(
        circle_findings(&sources),
        ["crates/x/src/a.rs:1: modules of `x` use each other in a circle: a, b\n  \
          cure: move what they share to where it belongs\n    \
          a uses b: crates/x/src/a.rs:1\n    b uses a: crates/x/src/b.rs:2"]
    );
    let circle = "modules of `x` use each other in a circle: a, b";
    for (a, b) in [
        ("use super::{c, b::{self, B}};", "use crate::a;"),
        ("use crate::{c::C as D, B};", "pub(crate) struct B; use crate::a::A;"),
        ("fn f() -> Vec<crate::b::B> { x }", "fn g() { crate::a::h::<u8>() }"),
        ("use super::b::*;", "use super::a::*;"),
    ] {
        let root = ("lib.rs", "mod a;\nmod b;\nmod c;\npub use b::B;");
        assert_eq!(circles_of(&[root, ("a.rs", a), ("b.rs", b), ("c.rs", "")]), [circle], "{a}");
    }
}

#[test]
fn a_module_and_its_children_are_one_thing() {
    let family = [
        ("lib.rs", "mod a;"),
        ("a/mod.rs", "mod b;\nmod c;\nuse b::B;\nuse self::c::C;"),
        ("a/b.rs", "use super::A;\nuse super::c::C;"),
        ("a/c.rs", "use crate::a::A;"),
    ];
    assert!(circles_of(&family).is_empty());
    let mut beside = family.to_vec();
    beside.extend([("d.rs", "use crate::a::A;"), ("a/c/e.rs", "use crate::d::D;")]);
    assert_eq!(circles_of(&beside), ["modules of `x` use each other in a circle: a, d"]);
}

#[test]
fn uses_in_tests_make_no_circle() {
    let b = "#[cfg(test)]\nuse crate::a::A;\n#[cfg(test)]\nfn f() { crate::a::g(); }\n\
             #[cfg(test)]\nmod tests {\n use crate::a::A;\n}";
    let sources = [
        ("lib.rs", "mod a;\nmod b;\nmod c;\n#[cfg(test)]\npub(crate) mod world;"),
        ("a.rs", "use crate::b::B;"),
        ("b.rs", b),
        ("c.rs", "// use crate::a::A;\nfn f() { \"crate::a::A\" }\n#[cfg(test)]\nmod tests;"),
        ("c/tests.rs", "use crate::world::W;\nuse crate::a::A;"),
        ("world.rs", "use crate::c::C;"),
    ];
    assert!(circles_of(&sources).is_empty());
}

fn method_findings(sources: &[(&str, &str)]) -> Vec<String> {
    let read =
        |(file, text): &(&str, &str)| Source::new(&format!("crates/{file}"), text.to_string());
    let findings = methods::check(&sources.iter().map(read).collect::<Vec<_>>());
    findings.into_iter().map(|finding| finding.what).collect()
}

/// `a` defines a type and calls what `b` adds to it, and the other way round.
const CIRCLE: [(&str, &str); 3] = [
    ("x/src/lib.rs", "mod a;\nmod b;"),
    ("x/src/a.rs", "pub struct User;\nimpl User {\n fn one(&self) { self.two() }\n}"),
    ("x/src/b.rs", "impl super::a::User {\n fn two(&self) { self.one() }\n}"),
];

#[test]
fn modules_that_call_each_others_methods_are_found() {
    let what = "modules of `x` call methods in a circle: a, b";
    assert_eq!(method_findings(&CIRCLE), [what]);
}

#[test]
fn a_call_leads_where_only_one_type_has_the_method() {
    let [root, _, b] = CIRCLE;
    let is_found = |a: &str, c: &str| {
        let sources =
            [root, ("x/src/a.rs", a), b, ("x/src/c.rs", c), ("y/src/lib.rs", "fn f() {}")];
        !method_findings(&sources).is_empty()
    };
    let user = |body: &str| format!("struct User;\nimpl User {{\n fn one(&self) {{ {body} }}\n}}");
    assert!(is_found(&user("other.two()"), ""));
    assert!(is_found(&user("other.two::<u8>()"), ""));
    // Another type has one of the same name.
    let other = "struct Other;\nimpl<T: Fn() -> u8> Other<T> {\n fn two(&self) {}\n}";
    assert!(!is_found(&user("other.two()"), other));
    assert!(is_found(&user("self.two()"), other));
    // A trait's method, a function without a receiver, a field, a test: none of them is a method.
    for b in ["trait T {}\nimpl T for User { fn two(&self) {} }", "impl User { fn two() {} }"] {
        let sources = [root, ("x/src/a.rs", &*user("x.two()")), ("x/src/b.rs", b)];
        assert!(method_findings(&sources).is_empty(), "{b}");
    }
    assert!(!is_found(&user("self.two + 1"), ""));
    assert!(!is_found(&format!("{}\n#[cfg(test)]\nfn f() {{ x.two() }}", user("")), ""));
    // A name that a crate calls without having it is not ours.
    let elsewhere = ("y/src/lib.rs", "fn f(list: &mut Vec<u8>) { list.two() }");
    let sources = [root, ("x/src/a.rs", &*user("other.two()")), b, elsewhere];
    assert!(method_findings(&sources).is_empty());
    // One that a crate makes public may be meant where that crate is named.
    for (visible, named, is_found) in
        [("pub", "throng_y", false), ("pub(crate)", "throng_y", true), ("pub", "throng_z", true)]
    {
        let y = format!("impl Y {{\n {visible} const fn two(&self) {{}}\n}}");
        let a = format!("use {named}::Y;\n{}", user("other.two()"));
        let sources = [root, ("x/src/a.rs", &*a), b, ("throng-y/src/lib.rs", &*y)];
        assert_eq!(!method_findings(&sources).is_empty(), is_found, "{visible} {named}");
    }
}

#[test]
fn types_with_many_methods_are_found() {
    let methods = |count: usize, from: usize| -> String {
        (from..from + count).map(|n| format!("pub fn m{n}(&mut self) {{}}\n")).collect()
    };
    let of = |one: usize, other: usize| {
        let a = format!("struct User;\nimpl User {{\n{}}}", methods(one, 0));
        let b = format!("impl<'a> super::a::User<'a> where X: Y {{\n{}}}", methods(other, 100));
        method_findings(&[CIRCLE[0], ("x/src/a.rs", &*a), ("x/src/b.rs", &*b)])
    };
    assert_eq!(of(20, 21), ["`x::User` has 41 methods; at most 40"]);
    assert_eq!(of(20, 20), Vec::<String>::new());
    // Two types of one name are two.
    let a = format!("struct User;\nimpl User {{\n{}}}", methods(30, 0));
    let sources = [CIRCLE[0], ("x/src/a.rs", &*a), ("x/src/b.rs", &*a)];
    assert!(method_findings(&sources).is_empty());
}

#[test]
fn structs_of_figures_with_many_fields_are_found() {
    let of = |folder: &str, head: &str, count: usize| {
        let field =
            |n| format!("#[serde(default)]\npub f{n}: a::Map<u8, fn(b: u8) -> u8> => Sum,\n");
        let fields: String = (0..count).map(field).collect();
        let text =
            format!("merged! {{ {head} {{\n{fields}}} }}\nstruct Other;\nstruct Pair(u8, u8);");
        let file = format!("{folder}/src/lib.rs");
        method_findings(&[(&*file, &*text)])
    };
    let found = of("throng-metrics", "pub struct Second<T: Copy>", 21);
    assert_eq!(found, ["`throng-metrics::Second` has 21 fields; at most 20"]);
    assert!(of("throng-metrics", "pub struct Second<T: Copy>", 20).is_empty());
    assert!(of("throng-engine", "struct Second", 21).is_empty());
}

#[test]
fn folders_with_many_sources_are_found() {
    let of = |folder: &str, count: usize| {
        let files: Vec<String> = (0..count).map(|n| format!("{folder}/f{n}.rs")).collect();
        let sources: Vec<(&str, &str)> = files.iter().map(|file| (&**file, "")).collect();
        method_findings(&sources)
    };
    assert_eq!(of("x/src", 26), ["`crates/x/src` has 26 sources; at most 25"]);
    assert!(of("x/src", 25).is_empty());
    assert_eq!(
        of("x/tests/e2e/http", 16),
        ["`crates/x/tests/e2e/http` has 16 sources; at most 15"]
    );
}
