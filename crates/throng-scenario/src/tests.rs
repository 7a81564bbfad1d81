//! The language by its Markdown files, the examples, and mutated examples.
//!
//! A `yaml` block is compiled, an `sh` or `bat` block is read as a cURL command; the following
//! `text` block contains the diagnostics as users see them; without it, the block must be valid.
//! `THRONG_WRITE_TESTS=1` rewrites the blocks; review the difference before you commit it.

use std::path::Path;
use std::sync::Arc;

use throng_base::{Diagnostic, Random, Source, StepId, units};
use throng_expression::{Answer, EvaluationError, Scope, Value};
use throng_metrics::DeliveryCounter;
use throng_metrics::{Counter, Measure, Subject};
use throng_program::{
    Beat, Begins, Body, Check, CloseMode, Coming, Content, Drive, Extractor, Handler, Matcher,
    Message, MessageKind, Program, Scheme, SourceBlock, Statement, StepKind, TaskBody, Until,
    Users,
};

use crate::keys::{self, Shape};
use crate::outline::outline;
use crate::syntax::{Kind, Node};
use crate::{CompileOptions, LoadChanges, RunOptions, compile, curl};

mod chinese;
mod codes;
pub(crate) mod docs;
mod language;
mod links;
mod replies;

/// The files that test scenarios can name.
fn memory_file(path: &Path, bytes_max: usize) -> std::io::Result<Vec<u8>> {
    match path.file_name().and_then(|name| name.to_str()) {
        Some("post.txt" | "post_smaller.txt") => Ok(b"a small text\r\n".to_vec()),
        Some("bytes.bin") => Ok(vec![0, 0xff, 0x7e]),
        Some("ca.pem" | "client.pem" | "client.key") => Ok(b"-----BEGIN-----\n".to_vec()),
        Some("chat.protocol.yaml") => Ok(CHAT_PROTOCOL.into()),
        Some("common.yaml") => Ok(COMMON.into()),
        Some("login.yaml") => Ok(LOGIN.into()),
        Some("broken.yaml") => Ok(BROKEN.into()),
        Some("circle.yaml") => Ok(b"include: circle.yaml\n".to_vec()),
        Some("nothing.yaml") => Ok(b"# nothing\n".to_vec()),
        Some("deep.yaml") => Ok(deep_file(path)),
        Some(name) if name.ends_with(".proto") => {
            crate::protocol::tests::proto_file(path, bytes_max)
        }
        _ => Err(std::io::Error::new(std::io::ErrorKind::NotFound, "no such file")),
    }
}

const COMMON: &str = "\
parts:
  login:
    - http: POST /login
      form: {user: \"u${user.id}\", role: \"${vars.role}\"}
      save: {token: json.token}
  logout:
    - http: POST /logout
vars: {role: reader, host: shop}
defaults: {headers: {Accept: text/html, X-Host: \"${vars.host}\"}, timeout: 9s}
";

const LOGIN: &str = "include: common.yaml\nparts: {login: [{http: POST /sign-in}]}\n";

const BROKEN: &str = "parts:\n  login: [{htp: GET /}]\nsessions: {}\nvars: {role: x}\n";

/// A file in a folder that includes one in a subfolder, endlessly.
fn deep_file(path: &Path) -> Vec<u8> {
    let depth = path.components().count();
    format!("include: d{depth}/deep.yaml\n").into_bytes()
}

/// The environment of the tests.
fn memory_env(name: &str) -> Option<String> {
    (name == "HOST").then(|| "from-env".to_string())
}

pub(crate) fn compile_set(
    source: &Arc<Source>,
    set: &[(&str, &str)],
) -> Result<(Program, Vec<Diagnostic>), Vec<Diagnostic>> {
    compile_with(source, set, LoadChanges::default())
}

/// A scenario with a load changed by the command line.
pub(crate) fn compile_changed(
    text: &str,
    changes: LoadChanges,
) -> Result<Program, Vec<Diagnostic>> {
    let source = Source::new("test.yaml", text);
    compile_with(&source, &[], changes).map(|(program, _)| program)
}

fn compile_with(
    source: &Arc<Source>,
    set: &[(&str, &str)],
    load: LoadChanges,
) -> Result<(Program, Vec<Diagnostic>), Vec<Diagnostic>> {
    let set = set.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let options = CompileOptions {
        set,
        // Rows of `data` are read from disk, from the folder `files` in it.
        base: "tests-md".into(),
        read_file: &memory_file,
        env: &memory_env,
        run: RunOptions { id: "k3f9x2m7qa".into(), load, ..RunOptions::default() },
    };
    compile(source, &options)
}

/// The program of a scenario without mistakes and warnings.
pub(crate) fn program(text: &str) -> Program {
    match compile_set(&Source::new("test.yaml", text), &[]) {
        Ok((program, warnings)) if warnings.is_empty() => program,
        Ok((_, wrong)) | Err(wrong) => panic!("{}\n{text}", render(&wrong)),
    }
}

/// A user without rows and responses.
pub(crate) struct User {
    id: u64,
    iteration: u64,
    random: Random,
    pub(crate) slots: Vec<Value>,
}

impl User {
    pub(crate) fn new(id: u64, iteration: u64) -> User {
        User { id, iteration, random: Random::new(id), slots: vec![Value::Null; 8] }
    }
}

impl Scope for User {
    fn user_id(&self) -> u64 {
        self.id
    }

    fn iteration(&self) -> u64 {
        self.iteration
    }

    fn slot(&self, slot: u16) -> &Value {
        &self.slots[usize::from(slot)]
    }

    fn field(&mut self, _: u16, _: u16) -> Result<Value, EvaluationError> {
        Err(EvaluationError(throng_base::Said::of_others("no row")))
    }

    fn row(&mut self, _: u16) -> Result<Value, EvaluationError> {
        Err(EvaluationError(throng_base::Said::of_others("no row")))
    }

    fn answer(&mut self, _: Answer) -> Result<Value, EvaluationError> {
        Err(EvaluationError(throng_base::Said::of_others("no answer")))
    }

    fn random(&mut self) -> &mut Random {
        &mut self.random
    }

    fn unix_nanos(&self) -> u64 {
        1_000_000_000
    }
}

pub(crate) fn render(diagnostics: &[Diagnostic]) -> String {
    diagnostics.iter().map(|one| one.render(false)).collect::<Vec<_>>().join("\n")
}

/// The diagnostics of a block of this kind.
fn diagnostics(kind: &str, text: &str) -> Vec<Diagnostic> {
    if kind == "yaml protocol" {
        crate::protocol::tests::told(text)
    } else if kind == "yaml" {
        // A first line `# --set name=value` sets variables like the command line.
        let first = text.lines().next().and_then(|line| line.strip_prefix("# --set "));
        let set: Vec<(&str, &str)> =
            first.and_then(|set| set.split_once('=')).into_iter().collect();
        match compile_set(&Source::new("test.yaml", text), &set) {
            Ok((_, warnings)) => warnings,
            Err(errors) => errors,
        }
    } else {
        match curl::parse(&Source::new("request.curl", text)) {
            Ok(request) => request.warnings,
            Err(errors) => errors,
        }
    }
}

/// The rendered diagnostics of a block of this kind.
fn answer(kind: &str, text: &str) -> String {
    let diagnostics = diagnostics(kind, text);
    for one in &diagnostics {
        let complete = one.span.is_some() && one.label.is_some() && one.help.is_some();
        assert!(complete, "{}", one.render(false));
    }
    render(&diagnostics)
}

/// Checks each block of a file; returns the corrected file.
fn check(markdown: &str) -> String {
    let mut out = String::new();
    let mut lines = markdown.lines().peekable();
    while let Some(line) = lines.next() {
        out.push_str(line);
        out.push('\n');
        let kind = line.strip_prefix("```").unwrap_or("");
        if !matches!(kind, "yaml" | "yaml protocol" | "sh" | "bat") {
            continue;
        }
        let mut block = String::new();
        for line in lines.by_ref().take_while(|line| *line != "```") {
            block.push_str(line);
            block.push('\n');
        }
        out.push_str(&block);
        out.push_str("```\n");
        if lines.peek() == Some(&"```text") {
            lines.by_ref().take_while(|line| *line != "```").for_each(drop);
        }
        let answer = answer(kind, &block);
        if !answer.is_empty() {
            out.push_str(&format!("```text\n{answer}```\n"));
        }
    }
    out
}

fn markdown_files() -> Vec<(std::path::PathBuf, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests-md");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .map(|path| (path.clone(), std::fs::read_to_string(&path).unwrap()))
        .collect();
    files.sort();
    files
}

#[test]
fn the_language_matches_its_files() {
    let write = std::env::var_os("THRONG_WRITE_TESTS").is_some();
    let mut wrong = Vec::new();
    for (path, text) in markdown_files() {
        let right = check(&text);
        if write && right != text {
            std::fs::write(&path, &right).unwrap();
        } else if right != text {
            let differs = right.lines().zip(text.lines()).find(|(a, b)| a != b);
            wrong.push(format!("{}: {differs:?}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn read_sources(folder: &Path, out: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => read_sources(&path, out),
            false => out.push(std::fs::read_to_string(path).unwrap()),
        }
    }
}

#[test]
fn every_code_is_in_a_file() {
    let shown: String = markdown_files().into_iter().map(|(_, text)| text).collect();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut sources = Vec::new();
    read_sources(&folder, &mut sources);
    // Codes are the only hyphenated words that are complete literals right after one of these.
    let pattern = r#"(?:error|warning|wrong|fail|whole)\(\s*"([a-z]+(?:-[a-z]+)*)","#;
    let pattern = regex::Regex::new(pattern).unwrap();
    let mut missing: Vec<&str> = sources
        .iter()
        .flat_map(|source| pattern.captures_iter(source))
        .map(|found| found.get(1).unwrap().as_str())
        .filter(|code| !shown.contains(&format!("[{code}]")))
        .collect();
    missing.sort_unstable();
    missing.dedup();
    // Other tests cover these: they need a file of 16 MiB, 65,535 rows, a list of URLs or flags.
    let by_itself =
        ["file-too-large", "too-many", "flag-without-effect", "bad-url-list", "url-missing"];
    missing.retain(|code| !by_itself.contains(code));
    assert!(missing.is_empty(), "no test file shows {missing:?}");
}

/// Checks that a value has the shape, as far as that is visible without reading it.
fn has_shape(shape: &Shape, node: &Node, problems: &mut Vec<String>) -> bool {
    let scalar = |good: &dyn Fn(&str) -> bool| match &node.kind {
        Kind::Scalar { text, .. } => text.contains("${") || good(text),
        _ => false,
    };
    match shape {
        Shape::Anything => true,
        Shape::Nothing => node.is_null(),
        Shape::Text => matches!(node.kind, Kind::Scalar { .. }) && !node.is_null(),
        Shape::Expression => scalar(&|text| !text.is_empty()),
        Shape::Whole => scalar(&|text| text.parse::<u64>().is_ok()),
        Shape::Count => scalar(&|text| units::parse_count(text).is_ok()),
        Shape::CountRange => {
            scalar(&|text| text.split("..").all(|part| units::parse_count(part).is_ok()))
        }
        Shape::Duration => scalar(&|text| units::parse_time(text).is_ok()),
        Shape::DurationRange => scalar(&|text| units::parse_time_range(text).is_ok()),
        Shape::Size => scalar(&|text| units::parse_size(text).is_ok()),
        Shape::Rate => scalar(&|text| units::parse_rate(text).is_ok()),
        Shape::Share => scalar(&|text| units::parse_share(text).is_ok()),
        Shape::Bool => scalar(&|text| matches!(text, "true" | "false")),
        Shape::Words(words) => scalar(&|text| words.contains(&text)),
        Shape::Steps => match &node.kind {
            Kind::List(items) => items.iter().all(|item| is_step(item, problems)),
            _ => false,
        },
        Shape::List(inner) => match &node.kind {
            Kind::List(items) => items.iter().all(|item| has_shape(inner, item, problems)),
            _ => false,
        },
        Shape::Map(inner) => match &node.kind {
            Kind::Map(entries) => {
                entries.iter().all(|(_, value)| has_shape(inner, value, problems))
            }
            _ => false,
        },
        Shape::Kind(kind) => is_kind(kind, node, problems),
        Shape::OneOf(shapes) => shapes.iter().any(|one| has_shape(one, node, &mut Vec::new())),
    }
}

fn is_step(node: &Node, problems: &mut Vec<String>) -> bool {
    match &node.kind {
        Kind::Scalar { text, .. } => keys::BARE_VERBS.contains(&text.as_str()),
        Kind::Map(entries) => {
            let known = |verb: &str| entries.iter().any(|(key, _)| key.text == verb);
            let kind = match known("request") {
                true => Some(&keys::REQUEST),
                false => keys::VERBS.iter().find(|(verb, _)| known(verb)).map(|(_, kind)| *kind),
            };
            kind.is_some_and(|kind| is_kind(kind, node, problems))
        }
        Kind::List(_) => false,
    }
}

fn is_kind(kind: &keys::MapKind, node: &Node, problems: &mut Vec<String>) -> bool {
    let Kind::Map(entries) = &node.kind else { return false };
    let mut good = true;
    for (key, value) in entries {
        match kind.find(&key.text) {
            Some(doc) if has_shape(&doc.shape, value, problems) => {}
            Some(_) => {
                good = false;
                problems.push(format!("`{}` of {}", key.text, kind.what.english()));
            }
            // `check: {json.data.code: 0}`, and the keys of declared protocols.
            None => good &= kind.of_protocol() || key.text.starts_with("column."),
        }
    }
    good
}

#[test]
fn shapes_accept_the_values_in_valid_scenarios() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut texts: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "yaml"))
        .filter(|path| !path.to_string_lossy().contains(".protocol."))
        .map(|path| std::fs::read_to_string(path).unwrap())
        .collect();
    assert!(texts.len() >= 6);
    // Blocks without expected diagnostics are valid.
    for (_, markdown) in markdown_files() {
        let blocks = markdown.split("```yaml\n").skip(1);
        let good = blocks.filter(|block| !block.contains("\n```\n```text"));
        texts.extend(good.map(|block| block.split("\n```").next().unwrap_or("").to_string()));
    }
    for text in &texts {
        let source = Source::new("shapes.yaml", text.as_str());
        let root = crate::syntax::parse(&source, 0).unwrap().unwrap();
        let mut problems = Vec::new();
        let good = is_kind(&keys::SCENARIO, &root, &mut problems);
        assert!(good && problems.is_empty(), "{problems:?}\n{text}");
    }
}

#[test]
fn nesting_bombs_are_refused_quickly() {
    let head = "target: http://a\nload: [{users: 1, for: 1s}]\n";
    let deep = |open: &str, close: &str, inner: &str, depth: usize| {
        format!(
            "{head}sessions: {{a: {{steps: [{}{inner}{}]}}}}\n",
            open.repeat(depth),
            close.repeat(depth)
        )
    };
    for depth in [5, 28, 29, 30, 31, 40, 10_000] {
        for (open, close) in [
            ("{repeat: 2, steps: [", "]}"),
            ("{if: \"${true}\", then: [", "]}"),
            ("{choose: [{steps: [", "]}]}"),
            ("{for_each: [1], steps: [", "]}"),
        ] {
            let text = deep(open, close, "{http: GET /}", depth);
            match compile_set(&Source::new("deep.yaml", text), &[]) {
                Ok((program, _)) => drop(outline(&program, usize::MAX)),
                Err(errors) => assert!(!errors.is_empty()),
            }
        }
    }
    // Each part uses the next one twice: 2^60 steps without a limit.
    let parts: String =
        (0..60).map(|i| format!("  p{i}: [{{use: p{0}}}, {{use: p{0}}}]\n", i + 1)).collect();
    let text = format!(
        "{head}parts:\n{parts}  p60: [{{htp: x}}]\nsessions: {{a: {{steps: [{{use: p0}}]}}}}\n"
    );
    let errors = compile_set(&Source::new("parts.yaml", text), &[]).unwrap_err();
    assert!(errors.iter().any(|one| one.code == "too-many"), "{}", render(&errors));
    assert!(errors.len() < 10, "{}", render(&errors));
}

const QUICK: &str = include_str!("../../../examples/quick-http.yaml");
const PROXY: &str = include_str!("../../../examples/proxy-long-requests.yaml");
const API: &str = include_str!("../../../examples/open-platform-api.yaml");
const CHAT_PROTOCOL: &str = include_str!("../../../examples/chat.protocol.yaml");
const CHAT: &str = include_str!("../../../examples/chat-room.yaml");
const IM: &str = include_str!("../../../examples/im-websocket.yaml");
const PUSH: &str = include_str!("../../../examples/push-service.yaml");

#[test]
fn the_examples_compile() {
    let quick = program(QUICK);
    assert_eq!(quick.targets[0].authority(), "127.0.0.1:8080");
    assert_eq!(quick.steps[0].name, "GET /");
    assert_eq!(quick.thresholds[0].subject, Subject::Steps(vec![StepId(0)]));
    assert_eq!(quick.thresholds[0].measure, Measure::Quantile(0.99));
    assert_eq!(quick.thresholds[0].value, 50e6);
    assert_eq!(quick.thresholds[1].measure, Measure::FailedShare);

    let (proxy, warnings) = compile_example("proxy-long-requests.yaml").unwrap();
    assert!(warnings.is_empty(), "{}", render(&warnings));
    let [Statement::Http(http)] = &*proxy.sessions[0].steps else { panic!("{proxy:?}") };
    assert_eq!(http.timeout.as_secs(), 7200);
    assert_eq!(http.headers[0].1.as_literal(), Some(&b"60000"[..]));
    let Body::Text(body) = &http.body else { panic!("a body") };
    assert!((150..300).contains(&body.as_literal().unwrap().len()));
    let first = &proxy.loads[0].phases[0].drive;
    assert!(matches!(first, Drive::Arrivals(it) if it.rate.peak() == 900.0));
}

fn compile_example(name: &str) -> Result<(Program, Vec<Diagnostic>), Vec<Diagnostic>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let text = std::fs::read_to_string(folder.join(name)).unwrap();
    let options = CompileOptions {
        set: Vec::new(),
        base: folder,
        read_file: &crate::read_disk,
        env: &memory_env,
        run: RunOptions { id: "k3f9x2m7qa".into(), ..RunOptions::default() },
    };
    compile(&Source::new(name, text), &options)
}

#[test]
fn the_example_with_tokens_and_accounts_compiles() {
    let (api, warnings) = compile_example("open-platform-api.yaml").unwrap();
    assert!(warnings.is_empty(), "{}", render(&warnings));
    let session = &api.sessions[0];
    let [Statement::Transaction { steps, .. }, ..] = &session.steps[..] else {
        panic!("{:?}", session.steps)
    };
    assert_eq!((steps.len(), session.steps.len()), (4, 1));
    assert_eq!(session.slots.len(), 2, "{:?}", session.slots);
    assert_eq!((api.data.len(), api.data[0].name.as_str()), (1, "accounts"));
    assert_eq!(api.trace.map(|trace| trace.share), Some(0.01));
}

#[test]
fn the_example_of_devices_compiles() {
    let (push, warnings) = compile_example("push-service.yaml").unwrap();
    assert!(warnings.is_empty(), "{}", render(&warnings));
    assert_eq!((push.loads[0].phases.len(), push.thresholds.len()), (5, 6));
}

#[test]
fn the_example_of_a_million_compiles() {
    let (im, warnings) = compile_example("im-websocket.yaml").unwrap();
    assert!(warnings.is_empty(), "{}", render(&warnings));
    let first = "127.1.0.1".parse().unwrap();
    let last = "127.1.255.254".parse().unwrap();
    assert_eq!(im.connection.sources.blocks, [SourceBlock::Range { first, last }]);
    let stay = im.sessions[0].all().find_map(|one| match one {
        Statement::Stay(stay) => Some(stay),
        _ => None,
    });
    let heartbeat = stay.unwrap().heartbeat.as_ref().unwrap();
    assert_eq!((heartbeat.every.as_secs(), heartbeat.lost_after.unwrap().as_secs()), (30, 10));
    let text =
        |one: &Message| matches!(one.content, Content::Plain { kind: MessageKind::Text, .. });
    assert!(matches!(&heartbeat.beat, Beat::Message(one) if text(one)));
    let [handler] = &stay.unwrap().handlers[..] else { panic!("{stay:?}") };
    assert!(matches!(
        &handler.message.checks[..],
        [Check { extractor: Extractor::Json(_), matcher: Matcher::Equals(_) }]
    ));
    let rows: Vec<(&str, StepKind)> =
        im.steps.iter().map(|step| (step.name.as_str(), step.kind)).collect();
    let matcher = [
        ("connect", StepKind::Connect),
        ("request", StepKind::Request),
        ("stay", StepKind::Stay),
        ("heartbeat", StepKind::Heartbeat),
        ("broadcast", StepKind::Message),
    ];
    assert_eq!(rows, matcher);
    let users = Users { to: 1_000_000, coming: Coming::Rate(20_000.0) };
    assert_eq!(im.loads[0].phases[0].drive, Drive::Users(users));
    let thresholds: Vec<(&Subject, Measure)> =
        im.thresholds.iter().map(|threshold| (&threshold.subject, threshold.measure)).collect();
    let lost = Subject::Counter(Counter::HeartbeatsLost);
    assert_eq!(thresholds[0], (&Subject::UsersOnline, Measure::Count));
    assert_eq!(im.thresholds[0].value, 1e6);
    assert_eq!(thresholds[2], (&lost, Measure::ShareOfWhole));
}

/// Planned parts of the language that shared examples use.
const WIDER: &str = "
target: {addresses: [\"127.0.0.1:9000\", \"tls://127.0.0.2:9000\"]}
source: {addresses: 127.1.0.0/16}
protocol: chat.protocol.yaml
data: {accounts: {list: [1, 2], take: unique}}
sessions:
  member:
    on: [{message: any, do: [{send: leave}, {think: 1s}]}]
    every: [{time: 5m, do: [{request: ping}]}]
    steps:
      - {connect: , timeout: 15s, retry: {times: 5, wait: 1s..30s}}
      - request: {join: {room: 1, user: \"${data.accounts}\", token: x}}
        expect: joined
        check: {code: 0, online: > 5, time: < 1s}
        save: {online: online}
      - choose: [{weight: 70, steps: [disconnect: reset]}]
      - stay: forever
        heartbeat: {late: 5s, times: 2}
        on: [{message: {said: {text: {contains: hi}}}, do: [{send: {like: {count: \"${message.id}\"}}}]}]
load:
  - {name: fill, users: {to: 1_000_000, rate: 20_000/s}}
  - {name: flapping, churn: {share: 20%, every: 10s}, for: 10m}
deliveries: {talk: {sent: like, received: [said], match: {sent: count, received: id}}}
audit: {}
";

#[test]
fn unsupported_features_are_reported_with_their_places() {
    let errors = compile_set(&Source::new("wider.yaml", WIDER), &[]).unwrap_err();
    let codes: Vec<&str> = errors.iter().map(|one| one.code).collect();
    assert_eq!(codes, ["scheme-mismatch", "not-yet"], "{}", render(&errors));
    assert!(errors.iter().all(|one| one.span.is_some()));
}

#[test]
fn the_example_of_a_chat_room_compiles() {
    let (chat, warnings) = compile_example("chat-room.yaml").unwrap();
    assert!(warnings.is_empty(), "{}", render(&warnings));
    check_code(&chat);
    let [viewer, lurker] = &chat.sessions[..] else { panic!("{:?}", chat.sessions) };
    assert_eq!((viewer.links[0].protocol, lurker.links[0].protocol), (Some(0), Some(0)));
    assert_eq!((&*viewer.links[0].targets, chat.targets[0].scheme), (&[0][..], Scheme::Tcp));
    let protocol = &chat.protocols[0];
    let heartbeat = viewer.links[0].heartbeat.as_ref().unwrap();
    assert_eq!(heartbeat.every.as_secs(), 30);
    assert_eq!(*heartbeat.answer.messages, [protocol.message("pong").unwrap()]);
    let rows: Vec<&str> = chat.steps.iter().map(|step| step.name.as_str()).collect();
    let of_messages = ["join", "like", "say", "gift", "light", "leave", "room talk"];
    assert!(of_messages.iter().all(|name| rows.contains(name)), "{rows:?}");
    let Some(Statement::Request(join)) = viewer.all().nth(1) else { panic!("{viewer:?}") };
    let Content::Declared(declared) = &join.message.content else { panic!("{join:?}") };
    assert_eq!(declared.template.message, protocol.message("join").unwrap());
    // The room is the same for all users, so it is not a leaf.
    assert_eq!(declared.leaves.len(), 2);
    let [delivery] = &chat.deliveries[..] else { panic!("{:?}", chat.deliveries) };
    assert_eq!(chat.step(delivery.senders()[0]).name, "say");
    assert_eq!(*delivery.received.messages, [protocol.message("said").unwrap()]);
    let Begins::Sent { id, .. } = &delivery.begins else { panic!("{delivery:?}") };
    assert!(matches!(&id.extractor, Extractor::Field(paths) if &*paths[0].written == "id"));
    assert_eq!((delivery.protocol, delivery.stamp.is_some()), (Some(0), true));
    let lost = Subject::Delivery { step: delivery.step, counter: DeliveryCounter::Lost };
    assert_eq!(chat.thresholds[1].subject, lost);
    assert_eq!(chat.thresholds[2].subject, Subject::Steps(vec![delivery.step]));
    let outline = outline(&chat, usize::MAX);
    assert!(outline.sessions[0].beside[0].text.starts_with("heartbeat ping every 30s"));
    assert_eq!(outline.deliveries[0].text, "room talk: say → said");
}

#[test]
fn background_tasks_have_their_own_bodies() {
    let text = "
target: 127.0.0.1:9000
protocol: chat.protocol.yaml
sessions:
  s:
    on: [{message: any, do: [{repeat: 2, steps: [{send: leave}]}]}]
    every: [{time: 5m, do: [{while: \"${has(saved.x)}\", steps: [{request: ping}]}]}]
    steps:
      - connect
      - {repeat: 3, steps: [{expect: said, save: {x: id}}]}
      - stay: 1m
        on:
          - message: said
            do: [{log: \"${message.id} ${message.text} ${message.id}\"}, {if: \"${message.from > 5}\", then: [leave]}]
load: [{users: 1, for: 10m}]
";
    let program = program(text);
    check_code(&program);
    let session = &program.sessions[0];
    let [Statement::Connect(_), Statement::Repeat { .. }, Statement::Stay(stay)] =
        &session.steps[..]
    else {
        panic!("{:?}", session.steps)
    };
    let heard = &stay.handlers[0];
    assert_eq!(heard.saves.len(), 3);
    let names: Vec<&str> = session.slots.iter().map(String::as_str).collect();
    assert_eq!(names, ["x", "message.id", "message.text", "message.from"]);
    let body = |body: &TaskBody| format!("{:?}", body.steps);
    assert!(matches!(
        heard.body.as_ref().unwrap().steps[..],
        [Statement::Log(_), Statement::If { .. }]
    ));
    let [handler] = &session.links[0].handlers[..] else { panic!("{:?}", session.links) };
    let handled = handler.body.as_ref().unwrap();
    assert!(matches!(handled.steps[..], [Statement::Repeat { low: 2, .. }]), "{}", body(handled));
    let every = &session.links[0].every[0].body;
    assert!(matches!(every.steps[..], [Statement::While { .. }]), "{}", body(every));
    assert_eq!(outline(&program, usize::MAX).sessions[0].beside.len(), 3);
}

const PUSHED: &str = "
transport: tcp
packet:
  - {id: length, type: u16, counts: after, max: 16KiB}
  - {id: kind, type: u8, selects: message}
  - {id: body}
messages:
  push: {kind: 1, push: true, body: [{id: id, type: u64}], acknowledged_by: {received: {id: id}}}
  received: {kind: 2, body: [{id: id, type: u64}]}
  bye: {kind: 3, push: true}
";

#[test]
fn messages_are_acknowledged_whatever_the_user_does() {
    let protocol: String = PUSHED.lines().map(|line| format!("  {line}\n")).collect();
    let text = format!(
        "target: 127.0.0.1:9000\nprotocol:\n{protocol}\nload: [{{users: 1, for: 1m}}]\nsessions:\n  \
         s: {{steps: [connect, {{stay: 5s, on: [{{message: any, do: [{{log: heard}}]}}]}}]}}\n"
    );
    let program = program(&text);
    check_code(&program);
    let session = &program.sessions[0];
    let Statement::Stay(stay) = &session.steps[1] else { panic!("{:?}", session.steps) };
    // One for acknowledged messages, and one for all others.
    let [pushed, rest] = &stay.handlers[..] else { panic!("{stay:?}") };
    assert_eq!((pushed.message.messages.len(), rest.message.is_any()), (1, true));
    assert_eq!(pushed.step, rest.step);
    let body = |handler: &Handler| handler.body.clone().unwrap().steps;
    assert!(matches!(body(pushed)[..], [Statement::Send(_), Statement::Log(_)]));
    assert!(matches!(body(rest)[0], Statement::Log(_)));
    let [always] = &session.links[0].handlers[..] else { panic!("{:?}", session.links) };
    assert!(matches!(body(always)[..], [Statement::Send(_)]));
    assert_eq!((always.saves.len(), program.step(always.step).name.as_str()), (1, "push"));
}

/// A reply to the target carries the target's number, whichever side started.
#[test]
fn replies_to_the_target_carry_its_number() {
    let protocol = "
transport: tcp
packet:
  - {id: length, type: u16, counts: after, max: 16KiB}
  - {id: kind, type: u8, selects: message}
  - {id: seq, type: u32, correlates: request}
  - {id: body}
messages:
  bind: {kind: 1}
  bound: {kind: 2, answers: bind}
  push: {kind: 3, push: true, body: [{id: id, type: u64}]}
  received: {kind: 4, answers: push, body: [{id: id, type: u64}]}
  query: {kind: 5, push: true}
  state: {kind: 6, answers: query}
  note: {kind: 7}
  notice: {kind: 8, push: true, acknowledged_by: note}
";
    let protocol: String = protocol.lines().map(|line| format!("  {line}\n")).collect();
    let sends = |message: &str, send: &str| {
        let text = format!(
            "target: 127.0.0.1:9000\nprotocol:\n{protocol}\nload: [{{users: 1, for: 1m}}]\n\
             sessions:\n  s:\n    on: [{{message: {message}, do: [{{send: {send}}}]}}]\n    \
             steps: [connect, {{request: bind}}, {{send: {{note: {{seq: 7}}}}}}, {{send: note}}]\n"
        );
        let program = program(&text);
        let session = &program.sessions[0];
        let gives = |statement: &Statement| match statement {
            Statement::Send(send) => match &send.message.content {
                Content::Declared(declared) => declared.template.gives_correlation(),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        };
        // An explicit number is sent unchanged; a message that the user starts has a number of
        // ours.
        assert_eq!((gives(&session.steps[2]), gives(&session.steps[3])), (true, false));
        let handler = &session.links[0].handlers[0];
        (gives(&handler.body.as_ref().unwrap().steps[0]), handler.saves.len())
    };
    // The protocol declares that it is the reply.
    assert_eq!(sends("push", "{received: {id: \"${message.id}\"}}"), (true, 2));
    assert_eq!(sends("[push, query]", "state"), (true, 1));
    // An explicit number is sent unchanged.
    assert_eq!(sends("push", "{received: {id: \"${message.id}\", seq: 0}}"), (true, 1));
    // A message that is not a reply has a number of ours.
    assert_eq!(sends("push", "state"), (false, 0));
    assert_eq!(sends("query", "note"), (false, 0));
    // An automatic acknowledgement of the protocol.
    assert_eq!(sends("notice", "note"), (true, 1));
}

#[test]
fn the_program_has_the_structure_of_the_scenario() {
    let text = "
target: tcp://127.0.0.1:9000
sessions:
  s:
    before: [connect]
    steps:
      - repeat: 2..3
        steps:
          - {repeat: 4, steps: [{send: {hex: 00ff}}]}
          - request: {text: \"hi ${user.id}\"}
            expect: {delimiter: \"\\n\", text: ok}
      - {repeat: 5, steps: [{think: 1s..2s}]}
    after: [disconnect]
load: [{users: 1, for: 10s}]
";
    let program = program(text);
    let session = &program.sessions[0];
    assert!(matches!(session.before[..], [Statement::Connect(_)]));
    let [Statement::Repeat { low: 2, high: 3, steps }, Statement::Repeat { low: 5, high: 5, .. }] =
        &session.steps[..]
    else {
        panic!("{:?}", session.steps)
    };
    let [Statement::Repeat { low: 4, high: 4, steps: inner }, Statement::Request(request)] =
        &steps[..]
    else {
        panic!("{steps:?}")
    };
    let disconnects = Statement::Disconnect { link: 0, how: CloseMode::Fin };
    assert_eq!(format!("{:?}", session.after), format!("{:?}", [disconnects]));
    let [Statement::Send(send)] = &inner[..] else { panic!("{inner:?}") };
    let Content::Plain { kind, content } = &send.message.content else { panic!("{send:?}") };
    assert_eq!(*kind, MessageKind::Binary);
    assert_eq!(content.as_literal(), Some(&[0, 0xff][..]));
    assert!(matches!(&request.until, Until::Delimiter(end) if **end == *b"\n"));
    assert!(matches!(request.checks[..], [Check { extractor: Extractor::Body, .. }]));
    assert_eq!(program.step(request.step).kind, StepKind::Request);
}

#[test]
fn bodies_are_encoded_exactly() {
    let body = |step: &str| {
        let head = "target: http://h\nload: [{users: 1, for: 1s}]\nsessions:\n  s:\n    steps:\n";
        let program = program(&format!("{head}      - {{http: POST /, {step}}}\n"));
        let Statement::Http(http) = &program.sessions[0].steps[0] else { panic!("http") };
        let Body::Text(text) = http.body.clone() else { panic!("a body") };
        let mut out = Vec::new();
        text.render(&mut out, &mut User::new(7, 3)).unwrap();
        (http.headers.clone(), String::from_utf8(out).unwrap())
    };
    let json = "json: {b: 1.50, a: [true, null, x, \"1\", 007], \"q\\\"\": \"u${user.id}\\n\", n: '$${x}'}";
    let (headers, text) = body(json);
    assert_eq!(
        text,
        "{\"b\":1.50,\"a\":[true,null,\"x\",\"1\",\"007\"],\"q\\\"\":\"u7\\n\",\"n\":\"${x}\"}"
    );
    assert_eq!(headers[0].1.as_literal(), Some(&b"application/json"[..]));
    let (_, text) = body("form: {a b: \"x&y ${iteration}\", c: [1, ü]}");
    assert_eq!(text, "a+b=x%26y+3&c=1&c=%C3%BC");
    let (headers, text) = body("multipart: [{name: n, value: v}, {name: f, file: post.txt}]");
    let kind = String::from_utf8(headers[0].1.as_literal().unwrap().to_vec()).unwrap();
    let boundary = kind.strip_prefix("multipart/form-data; boundary=").unwrap();
    assert_eq!(
        text,
        format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"n\"\r\n\r\nv\r\n\
             --{boundary}\r\nContent-Disposition: form-data; name=\"f\"; filename=\"post.txt\"\r\n\
             Content-Type: application/octet-stream\r\n\r\na small text\r\n\r\n--{boundary}--\r\n"
        )
    );
}

#[test]
fn rows_are_shared_and_limited() {
    let mut text = String::from("target: http://h\nload: [{users: 1, for: 1s}]\nsessions:\n");
    for session in 0..70 {
        text.push_str(&format!("  s{session}:\n    steps:\n"));
        for step in 0..1000 {
            text.push_str(&format!("      - http: GET /{}\n", session * 1000 + step));
        }
    }
    let errors = compile_set(&Source::new("many.yaml", text), &[]).unwrap_err();
    assert_eq!(errors.iter().map(|one| one.code).collect::<Vec<_>>(), ["too-many"]);
    let name = format!("GET /{}", "x".repeat(100));
    let shared = program(&format!(
        "target: http://h\nload: [{{users: 1, for: 1s}}]\n\
         sessions: {{a: {{steps: [{{http: {name}}}, {{http: {name}}}]}}}}\n"
    ));
    assert_eq!(shared.steps.len(), 1);
    assert_eq!(shared.steps[0].name.chars().count(), 80);
}

#[test]
fn mistakes_are_limited_in_number() {
    let keys: String = (0..500).map(|i| format!("key{i}: 1\n")).collect();
    let errors = compile_set(&Source::new("many.yaml", keys), &[]).unwrap_err();
    assert_eq!(errors.len(), crate::DIAGNOSTICS_MAX);
    assert!(errors.iter().any(|one| {
        one.notes.iter().any(|note| note.english().contains("more errors are not shown"))
    }));
    // A file full of mistakes takes no longer than others: the work per mistake is bounded.
    let head = "target: http://a\nload: []\nsessions:\n  a:\n    steps:\n";
    for (head, line) in [("", "a: 1\n"), (head, "      - {repeat: forever, steps: [{x: 0s}]}\n")] {
        let text = head.to_string() + &line.repeat(100_000);
        let errors = compile_set(&Source::new("bad.yaml", text), &[]).unwrap_err();
        assert_eq!(errors.len(), crate::DIAGNOSTICS_MAX);
    }
}

/// Slots, links and places are within bounds, and body numbers are unique.
fn check_code(program: &Program) {
    for session in &program.sessions {
        let slot = |slot: u16| assert!(usize::from(slot) < session.slots.len());
        for statement in session.all() {
            statement.keeps().for_each(slot);
            assert!(statement.link().is_none_or(|link| usize::from(link) < session.links.len()));
            match statement {
                Statement::ForEach { list, item, .. } => [*list, *item].into_iter().for_each(slot),
                Statement::Choose(ways) => assert!(ways.iter().any(|way| way.weight > 0)),
                Statement::Rendezvous(one) => {
                    assert!(one.place < program.rendezvous && one.users > 0);
                }
                _ => {}
            }
        }
        let stays = session.all().filter_map(|statement| match statement {
            Statement::Stay(stay) => Some((&stay.handlers, &stay.every)),
            _ => None,
        });
        let links = session.links.iter().map(|link| (&link.handlers, &link.every));
        let mut numbers: Vec<u32> = stays
            .chain(links)
            .flat_map(|(handlers, every)| {
                let handled = handlers.iter().filter_map(|handler| handler.body.as_ref());
                handled.chain(every.iter().map(|every| &every.body))
            })
            .map(|body| body.number)
            .collect();
        let bodies = numbers.len();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), bodies, "two bodies have one number");
    }
}

#[test]
fn fuzz_scenarios() {
    let markdown: Vec<String> = markdown_files().into_iter().map(|(_, text)| text).collect();
    let blocks = markdown.iter().flat_map(|text| text.split("```yaml\n").skip(1));
    let blocks = blocks.map(|block| block.split("```").next().unwrap_or("").as_bytes());
    let mut corpus = vec![QUICK.as_bytes(), PROXY.as_bytes(), WIDER.as_bytes()];
    corpus.extend([API.as_bytes(), CHAT.as_bytes(), IM.as_bytes(), PUSH.as_bytes()]);
    corpus.extend(blocks);
    throng_fuzz::mutations(&corpus, |input, _| {
        let source = Source::new("fuzz.yaml", String::from_utf8_lossy(input));
        let diagnostics = match compile_set(&source, &[("users", "5")]) {
            Ok((program, warnings)) => {
                assert!(!program.sessions.is_empty() && !program.targets.is_empty());
                assert!(!program.loads[0].phases.is_empty());
                check_code(&program);
                assert_eq!(outline(&program, usize::MAX).sessions.len(), program.sessions.len());
                warnings
            }
            Err(errors) => {
                assert!(!errors.is_empty());
                errors
            }
        };
        for one in &diagnostics {
            let span = one.span.as_ref().expect("every diagnostic has a place");
            assert!(span.start <= span.end && span.end <= span.source.text.len());
            assert!(!one.message.english().contains('\n') && one.help.is_some(), "{one:?}");
            one.render(false);
        }
    });
}
