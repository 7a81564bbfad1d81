//! The tutorials and the page for users of other tools, done as they tell it: each page in a folder
//! of its own, block after block.
//!
//! - A block `sh` is commands, one a line. What ends with `&` is a server: it is waited for, and
//!   lives until the page is done. `# exit code 1` behind a command says how it ends, otherwise
//!   it ends with 0.
//! - A block `text` is what the command before it prints.
//! - A block of another kind with a name behind it, `yaml shop.yaml`, is a file; without a name it
//!   is of another tool, and is only shown.
//!
//! Addresses are others here, and times are shorter; what is shortened stands in `PAGES`.

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::run::{Child, FIRST, Run, binary, throng};

struct Page {
    name: &'static str,
    shorter: &'static [(&'static str, &'static str)],
}

const PAGES: [Page; 7] = [
    Page {
        name: "tutorial/quick-check",
        shorter: &[
            ("-d 5s", "-d 1s"),
            ("-d 10s", "-d 1s"),
            ("--hold 5s", "--hold 2s"),
            ("-c 500 --rate 200", "-c 100 --rate 100"),
            ("[500,500,0]", "[100,100,0]"),
            ("'http p95 < 2s'", "'http p95 < 20s'"),
        ],
    },
    Page {
        name: "tutorial/private-protocol",
        shorter: &[
            ("{exponential: 1s}", "{exponential: 300ms}"),
            ("for: 10s", "for: 4s"),
            ("join p99 < 2s", "join p99 < 20s"),
        ],
    },
    Page {
        name: "tutorial/push",
        shorter: &[
            ("lost_after: 1s", "lost_after: 2s"),
            ("for: 6s", "for: 4s"),
            ("for: 8s", "for: 6s"),
            ("for: 5s}", "for: 4s}"),
            ("connect p99 < 5s", "connect p99 < 20s"),
        ],
    },
    Page {
        name: "tutorial/api",
        shorter: &[
            ("for: 8s", "for: 2s"),
            ("for: 2s, measured", "for: 1s, measured"),
            ("authorize rate > 10/s", "authorize rate > 3/s"),
            ("http p95 < 2s", "http p95 < 20s"),
        ],
    },
    Page {
        name: "coming-from",
        shorter: &[
            ("-d30s", "-d1s"),
            ("-duration=10s", "-duration=1s"),
            ("-c 1000 --hold 10s --heartbeat 5s", "-c 50 --hold 2s --heartbeat 1s"),
            ("{to: 20, rate: 2/s}", "{to: 4, rate: 4/s}"),
            ("for: 30s", "for: 2s"),
            ("for: 10s}", "for: 1s}"),
            ("http p95 < 500ms", "http p95 < 20s"),
        ],
    },
    Page { name: "tutorial/capacity", shorter: &[("--confirm 10s", "--confirm 2s")] },
    Page { name: "tutorial/proxy", shorter: &[("for: 6s", "for: 5s")] },
];

/// Where the pages are.
pub(crate) fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// What is only shown: what a person types and writes for other tools.
const SHOWN: [&str; 5] = ["console", "java", "js", "python", "xml"];

#[derive(Debug, PartialEq)]
pub(crate) struct Block {
    /// `sh`, `text`, or a language of its own.
    pub(crate) kind: String,
    /// Of a file.
    pub(crate) name: Option<String>,
    pub(crate) text: String,
    line: usize,
}

pub(crate) fn blocks(markdown: &str) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let mut open = false;
    for (index, line) in markdown.lines().enumerate() {
        match (line.strip_prefix("```"), open) {
            (Some(head), false) => {
                let mut words = head.split_whitespace().map(String::from);
                let kind = words.next().unwrap_or_default();
                let text = String::new();
                found.push(Block { kind, name: words.next(), text, line: index + 1 });
                open = true;
            }
            (Some(_), true) => open = false,
            (None, true) => {
                let block = found.last_mut().expect("a block");
                block.text += &format!("{line}\n");
            }
            (None, false) => {}
        }
    }
    found
}

/// The commands of a block; a `\` at the end of a line goes on in the next.
fn commands(text: &str) -> Vec<String> {
    let joined = text.replace("\\\n", " ");
    joined.lines().filter(|line| !line.trim().is_empty()).map(String::from).collect()
}

/// How a command may end: the codes behind it, or 0.
fn exit_codes(command: &str) -> Vec<i32> {
    let told = command.split_once("# exit code ").map_or("0", |(_, codes)| codes);
    told.split_whitespace().filter_map(|word| word.trim_matches(',').parse().ok()).collect()
}

/// A page that is being done.
struct Reader {
    folder: tempfile::TempDir,
    path: String,
    /// Servers; they end with the page.
    servers: Vec<Child>,
    last: Option<Run>,
    name: String,
}

impl Reader {
    fn begin(name: &str) -> Reader {
        let own = binary();
        let path = std::env::var("PATH").unwrap_or_default();
        let path = format!("{}:{path}", own.parent().expect("a directory").display());
        let folder = tempfile::tempdir().expect("a temporary folder");
        Reader { folder, path, servers: Vec::new(), last: None, name: name.to_string() }
    }

    fn shell(&self, command: &str) -> Command {
        // Whether a level of a search is met depends on the time that this machine has for it.
        let first = if self.name == "tutorial/capacity" { *FIRST } else { "" };
        let mut words = first.split_whitespace().chain(["bash", "-c", command]);
        let mut shell = Command::new(words.next().expect("a program"));
        shell.args(words).current_dir(self.folder.path());
        shell.env("PATH", &self.path).env("LC_ALL", "C").env_remove("NO_COLOR");
        shell
    }

    fn takes(&mut self, block: &Block) {
        match (block.kind.as_str(), &block.name) {
            (_, Some(name)) => {
                let path = self.folder.path().join(name);
                std::fs::write(path, &block.text).expect("a file");
            }
            ("sh", None) => commands(&block.text).iter().for_each(|line| self.does(line)),
            ("text", None) => {
                let printed = &self.last.as_ref().expect("a command before it").out;
                let place = format!("{}, line {}", self.name, block.line);
                assert_eq!(*printed, block.text, "{place}");
            }
            (kind, None) if SHOWN.contains(&kind) => {}
            (kind, None) => panic!("{}, line {}: what is `{kind}`?", self.name, block.line),
        }
    }

    fn does(&mut self, line: &str) {
        if let Some(server) = line.trim_end().strip_suffix('&') {
            let child = Child::start(self.shell(&format!("exec {server}")));
            let (_, listens) = server.split_once("--listen ").expect("where it listens");
            let address = listens.split_whitespace().next().expect("an address").to_string();
            child.until("a server that listens", || TcpStream::connect(&address).is_ok());
            self.servers.push(child);
            return;
        }
        let run = Child::start(self.shell(line)).wait();
        let wanted = exit_codes(line);
        let good = wanted.contains(&run.code()) || run.code() == 5 && self.was_only_late();
        run.check(good, &format!("{}: {wanted:?} expected", self.name));
        self.last = Some(run);
    }

    /// A run that is invalid for the one reason that this machine was late has counted right.
    fn was_only_late(&self) -> bool {
        let report = Child::start(self.shell("throng report --json")).wait();
        let reasons = report.json()["outcome"]["invalid_reasons"].clone();
        reasons.as_array().is_some_and(|all| all.iter().all(|it: &Value| it["reason"] == "late"))
    }
}

/// The page with an address of this host that no other page has. Ports stay: those of outgoing
/// connections are others.
fn moved(page: &Page, text: &str) -> String {
    let id = std::process::id();
    let number = PAGES.iter().position(|it| it.name == page.name).unwrap_or_default();
    let own = format!("127.{}.{}.{}:", 64 + id % 64, id / 64 % 256, number + 1);
    text.replace("127.0.0.1:", &own)
}

fn do_page(page: &Page) {
    let path = docs().join(format!("{}.md", page.name));
    let text = std::fs::read_to_string(&path).expect("a page");
    let short = |text: String, (old, new): &(&str, &str)| {
        assert!(text.contains(old), "{} has no `{old}`", page.name);
        text.replace(old, new)
    };
    let text = moved(page, &page.shorter.iter().fold(text, short));
    let mut reader = Reader::begin(page.name);
    for block in blocks(&text) {
        reader.takes(&block);
    }
    assert!(reader.last.is_some(), "{} has no command", page.name);
}

fn page(name: &str) -> &'static Page {
    PAGES.iter().find(|page| page.name == name).expect("a page")
}

#[test]
fn every_tutorial_is_done_by_a_test() {
    let files = docs().join("tutorial").read_dir().expect("the pages");
    for name in files.map(|it| it.expect("a file").file_name().to_string_lossy().into_owned()) {
        let known =
            PAGES.iter().any(|page| format!("{}.md", page.name) == format!("tutorial/{name}"));
        assert!(known, "docs/tutorial/{name} is done by no test: add it here");
    }
}

#[test]
fn the_quick_check_tutorial_works() {
    do_page(page("tutorial/quick-check"));
}

#[test]
fn the_chat_room_tutorial_works() {
    do_page(page("tutorial/private-protocol"));
}

#[test]
fn the_push_service_tutorial_works() {
    do_page(page("tutorial/push"));
}

#[test]
fn the_api_tutorial_works() {
    do_page(page("tutorial/api"));
}

#[test]
fn the_proxy_tutorial_works() {
    do_page(page("tutorial/proxy"));
}

#[test]
fn the_capacity_tutorial_works() {
    do_page(page("tutorial/capacity"));
}

#[test]
fn the_page_for_users_of_other_tools_works() {
    do_page(page("coming-from"));
}

/// What a block does, without remarks but for those that say how a command ends.
fn without_remarks(block: &Block) -> (String, Option<String>, String) {
    let line = |line: &str| match line.split_once(" #") {
        Some((before, remark)) if !remark.starts_with(" exit code ") => before.trim_end().into(),
        _ => line.to_string(),
    };
    let lines: Vec<String> = block.text.lines().map(line).collect();
    (block.kind.clone(), block.name.clone(), lines.join("\n"))
}

#[test]
fn both_languages_show_the_same_blocks() {
    let tutorials = PAGES.iter().filter(|page| page.name.starts_with("tutorial/"));
    let mut pairs: Vec<(String, String)> = tutorials
        .map(|page| (format!("{}.md", page.name), format!("zh/{}.md", page.name)))
        .collect();
    assert_eq!(docs().join("zh/tutorial").read_dir().expect("pages").count(), pairs.len());
    pairs.push(("../README.md".into(), "zh/README.md".into()));
    pairs.push(("cookbook.md".into(), "zh/cookbook.md".into()));
    for (english, chinese) in pairs {
        let read = |name: &str| {
            let text = std::fs::read_to_string(docs().join(name)).expect(name);
            // What is printed is shown in one of them only.
            let all = blocks(&text).into_iter().filter(|block| !block.kind.is_empty());
            all.collect::<Vec<_>>()
        };
        let (english, chinese) = (read(&english), read(&chinese));
        for (one, other) in english.iter().zip(&chinese) {
            assert_eq!(without_remarks(one), without_remarks(other), "line {}", other.line);
        }
        assert_eq!(english.len(), chinese.len());
        assert!(!english.is_empty());
    }
}

/// The heading as links name it: small letters, hyphens for spaces, no other signs.
fn slug(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = text.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// All pages of the documentation.
fn pages(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in folder.read_dir().expect("a folder").map(|it| it.expect("a file").path()) {
        match path.is_dir() {
            true => found.extend(pages(&path)),
            false if path.extension().is_some_and(|it| it == "md") => found.push(path),
            false => {}
        }
    }
    found
}

#[test]
fn every_link_leads_to_a_page_and_to_a_heading() {
    let mut all = pages(&docs());
    all.push(docs().join("../README.md"));
    assert!(all.len() > 30, "{}", all.len());
    let headings = |text: &str| -> Vec<String> {
        text.lines().filter(|line| line.starts_with('#')).map(slug).collect()
    };
    let mut wrong = Vec::new();
    for page in &all {
        let text = std::fs::read_to_string(page).expect("a page");
        for part in text.split("](").skip(1).filter(|part| !part.starts_with("http")) {
            let link = part.split(')').next().unwrap_or_default();
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let to = match file {
                "" => page.clone(),
                file => page.parent().expect("a folder").join(file),
            };
            let there = match std::fs::read_to_string(&to) {
                Ok(text) => heading.is_empty() || headings(&text).contains(&heading.to_string()),
                Err(_) => heading.is_empty() && to.is_dir(),
            };
            if !there {
                wrong.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Whoever looks for a page finds it in the map.
#[test]
fn the_map_has_every_page() {
    let map = std::fs::read_to_string(docs().join("index.md")).expect("the map");
    for page in pages(&docs()) {
        let name = page.strip_prefix(docs()).expect("a page").to_string_lossy().into_owned();
        // Chinese pages have a map of their own; reasons are for those who build throng.
        let elsewhere = name.starts_with("zh/tutorial/") || name.starts_with("decisions/");
        assert!(elsewhere || name == "index.md" || map.contains(&format!("]({name}")), "{name}");
    }
}

#[test]
fn a_page_is_read_as_blocks() {
    let page = "a\n```sh\nx \\\n  y # exit code 0 or 3\n\nz\n```\n```yaml a.yaml\nb: 1\n```\n";
    let blocks = blocks(page);
    assert_eq!(blocks.len(), 2);
    assert_eq!(commands(&blocks[0].text), ["x    y # exit code 0 or 3", "z"]);
    assert_eq!(exit_codes(&commands(&blocks[0].text)[0]), [0, 3]);
    assert_eq!(exit_codes("z"), [0]);
    assert_eq!((blocks[1].name.as_deref(), blocks[1].line), (Some("a.yaml"), 8));
}

/// The commands of throng that a page or an example tells its reader to type: at the beginning of
/// a line of code or of a comment, or as code within a sentence.
fn commands_named(text: &str) -> Vec<String> {
    let code = blocks(text).into_iter().flat_map(|block| {
        let lines: Vec<String> = block.text.lines().map(String::from).collect();
        lines
    });
    let comments = text.lines().filter_map(|line| line.strip_prefix("#   ")).map(String::from);
    let typed = code.chain(comments).filter_map(|line| {
        let line = line.trim_start().trim_start_matches("$ ");
        line.strip_prefix("throng ").map(String::from)
    });
    let quoted = text.split("`throng ").skip(1).map(String::from);
    let words = typed
        .chain(quoted)
        .filter_map(|rest| rest.split(|c: char| !c.is_ascii_alphabetic()).next().map(String::from));
    // Placeholders such as `COMMAND` are none.
    words.filter(|word| !word.is_empty() && word.chars().all(|c| c.is_lowercase())).collect()
}

#[test]
fn every_named_command_exists() {
    let help = throng("--help").run().exits(0);
    let (_, list) = help.out.split_once("\nCommands:\n").expect("the commands");
    let list = list.split("\n\n").next().unwrap_or_default();
    let first = |line: &str| line.strip_prefix("  ")?.split(' ').next().map(String::from);
    let known: Vec<String> = list.lines().filter_map(first).collect();
    assert!(known.contains(&"report".to_string()), "{known:?}");
    let examples = docs().join("../examples");
    let examples = examples.read_dir().expect("examples").map(|it| it.expect("a file").path());
    let mut files: Vec<PathBuf> = pages(&docs()).into_iter().chain(examples).collect();
    files.push(docs().join("../README.md"));
    let mut wrong = Vec::new();
    for file in files {
        let Ok(text) = std::fs::read_to_string(&file) else { continue };
        let named = commands_named(&text).into_iter();
        let unknown = named.filter(|word| !known.contains(word));
        wrong.extend(unknown.map(|word| format!("{}: throng {word}", file.display())));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
