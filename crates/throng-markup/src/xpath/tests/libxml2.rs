//! Random expressions over random documents, compared with libxml2 through Python's package `lxml`.

use std::process::Command;

use throng_base::Random;

use super::*;

/// Input: one document and expression per line, separated by a tab; output: per line, the type and
/// the values. For elements, the text without surrounding space, as we return it.
const ORACLE: &str = r#"
import sys
from lxml import etree
trees = {}
def value(found):
    if isinstance(found, str):
        return found
    if found.tag is etree.Comment or found.tag is etree.ProcessingInstruction:
        return found.text or ""
    return str(found.xpath("string(.)")).strip(" \t")
for line in sys.stdin:
    document, path = line.rstrip("\n").split("\t")
    if document not in trees:
        trees[document] = etree.fromstring(document).getroottree()
    try:
        found = trees[document].xpath(path)
    except etree.XPathError as error:
        found = "invalid: " + str(error)
    if isinstance(found, bool):
        print("=" + str(found).lower())
    elif isinstance(found, float):
        print("=" + ("" if found != found else repr(found + 0.0)))
    elif isinstance(found, str):
        print("'" + found)
    else:
        print("*" + "|".join(value(one) for one in found))
"#;

fn answers(questions: &str) -> Vec<String> {
    let packages = throng_fuzz::python_packages("lxml");
    let mut python = Command::new("python3");
    throng_fuzz::answers(python.args(["-c", ORACLE]).env("PYTHONPATH", packages), questions)
}

/// Our result in the same format.
fn ours(page: &Page<'_>, path: &str) -> String {
    let path = XPath::parse(path).unwrap_or_else(|error| panic!("{path}: {error:?}"));
    let Some((tree, found)) = path.find(page) else { return "refused".into() };
    match found {
        Found::Nodes(items) => {
            // `lxml` omits the document node from its results.
            let nodes = items.iter().filter(|item| tree.kind(item.node()) != NodeKind::Root);
            let values = nodes.map(|item| match value_of(tree, *item) {
                Value::Text(text) => text.to_string(),
                other => panic!("{other:?}"),
            });
            format!("*{}", values.collect::<Vec<_>>().join("|"))
        }
        Found::Text(text) => format!("'{text}"),
        Found::Bool(value) => format!("={value}"),
        Found::Number(number) if number.is_nan() => "=".into(),
        Found::Number(number) => match number.is_infinite() {
            true => format!("={}inf", if number < 0.0 { "-" } else { "" }),
            false => format!("={:?}", number + 0.0),
        },
    }
}

/// Generates documents and expressions; `depth` limits the nesting.
struct Drawn {
    random: Random,
    /// How many predicates enclose the current part: outside of all, `lxml` has no position, and
    /// starts at another node.
    predicates: u32,
}

impl Drawn {
    fn new(seed: u64, owner: u64) -> Drawn {
        Drawn { random: Random::for_owner(seed, owner), predicates: 0 }
    }

    fn of(&mut self, words: &[&str]) -> String {
        words[self.random.below(words.len() as u64) as usize].to_string()
    }

    fn element(&mut self, depth: u32) -> String {
        let name = self.of(&["a", "b", "c", "d"]);
        let mut out = format!("<{name}");
        for (attribute, values) in [("n", ["1", "2", "-3.5"]), ("k", ["x", "x y", ""])] {
            if self.random.chance(0.4) {
                out += &format!(" {attribute}=\"{}\"", self.of(&values));
            }
        }
        out.push('>');
        for _ in 0..self.random.below(5) {
            out += &match self.random.below(8) {
                0..=3 if depth > 0 => self.element(depth - 1),
                0..=4 => self.of(&["1", "2.5", " x ", "x y", "-3", "  ", "12"]),
                5 => self.of(&["<!--x-->", "<?p x?>"]),
                _ => self.of(&["<a/>", "<b n=\"2\"/>", "<c>4</c>"]),
            };
        }
        out + &format!("</{name}>")
    }

    fn step(&mut self, depth: u32) -> String {
        let test = match self.random.below(10) {
            0 => self.of(&["text()", "node()", "comment()", "processing-instruction()"]),
            1 | 2 => "*".into(),
            _ => self.of(&["a", "b", "c", "d"]),
        };
        let mut step = match self.random.below(8) {
            0 => return self.of(&["..", ".", "@n", "@k", "@*"]),
            1..=3 => {
                let axis = self.of(&[
                    "ancestor",
                    "ancestor-or-self",
                    "child",
                    "descendant",
                    "descendant-or-self",
                    "following",
                    "following-sibling",
                    "parent",
                    "preceding",
                    "preceding-sibling",
                    "self",
                ]);
                format!("{axis}::{test}")
            }
            _ => test,
        };
        while depth > 0 && self.random.chance(0.35) {
            step += &format!("[{}]", self.predicate(depth - 1));
        }
        step
    }

    fn predicate(&mut self, depth: u32) -> String {
        self.predicates += 1;
        let predicate = match self.random.below(4) {
            0 => self.of(&["1", "2", "last()", "position()<3", "last()-1", "position() mod 2=1"]),
            1 => self.path(depth),
            _ => self.truth(depth),
        };
        self.predicates -= 1;
        predicate
    }

    fn path(&mut self, depth: u32) -> String {
        let mut path = match self.predicates {
            0 => self.of(&["/", "//", "//", "/*/", "/*/*/"]),
            _ => self.of(&["", "", "//", "/*/", ".//", "../"]),
        };
        path += &self.step(depth);
        for _ in 0..self.random.below(3) {
            // For an attribute, libxml2 applies `following` to its element.
            if path.contains('@') {
                break;
            }
            path += &self.of(&["/", "/", "//"]);
            path += &self.step(depth);
        }
        match self.random.below(12) {
            0 if depth > 0 => format!("{path} | {}", self.path(depth - 1)),
            1 if depth > 0 => format!("({path})[{}]", self.predicate(depth - 1)),
            _ => path,
        }
    }

    fn truth(&mut self, depth: u32) -> String {
        if depth == 0 {
            return match self.predicates {
                0 => self.of(&["true()", "false()", "//@n=2", "//@k='x'", "not(//b)"]),
                _ => self.of(&["@n", "@k='x'", "true()", "n=2", "not(@n)", "text()"]),
            };
        }
        match self.random.below(7) {
            0 => format!("not({})", self.truth(depth - 1)),
            1 => {
                let both = self.of(&["and", "or"]);
                format!("({} {both} {})", self.truth(depth - 1), self.truth(depth - 1))
            }
            2 => format!("contains({}, {})", self.text(depth - 1), self.text(depth - 1)),
            3 => format!("starts-with({}, {})", self.text(depth - 1), self.text(depth - 1)),
            4 => format!("boolean({})", self.any(depth - 1)),
            _ => {
                let operator = self.of(&["=", "!=", "<", "<=", ">", ">="]);
                format!("{} {operator} {}", self.any(depth - 1), self.any(depth - 1))
            }
        }
    }

    /// Sums and products of halves: they are exact, and written in a single form.
    fn number(&mut self, depth: u32) -> String {
        if depth == 0 {
            let known = if self.predicates > 0 { 9 } else { 6 };
            let all =
                ["0", "1", "2.5", "-3", ".5", "count(//*)", "count(*)", "position()", "last()"];
            return self.of(&all[..known]);
        }
        match self.random.below(9) {
            0 => format!("count({})", self.path(depth - 1)),
            1 => format!("sum({})", self.path(depth - 1)),
            2 => format!("string-length({})", self.text(depth - 1)),
            3 => format!("number({})", self.any(depth - 1)),
            4 => {
                let function = self.of(&["floor", "ceiling", "round"]);
                format!("{function}({})", self.number(depth - 1))
            }
            5 => format!("-{}", self.number(0)),
            6 => format!("({} div {})", self.number(depth - 1), self.of(&["2", "-4", "0"])),
            _ => {
                let operator = self.of(&["+", "-", "*", "mod"]);
                format!("({} {operator} {})", self.number(depth - 1), self.number(depth - 1))
            }
        }
    }

    fn text(&mut self, depth: u32) -> String {
        if depth == 0 {
            let known = if self.predicates > 0 { 9 } else { 5 };
            let all = ["'x'", "''", "' x y '", "\"12\"", "//@k", "name()", "string()", "@k", "."];
            return self.of(&all[..known]);
        }
        match self.random.below(9) {
            0 => format!("concat({}, {})", self.text(depth - 1), self.any(depth - 1)),
            1 => format!("substring-before({}, {})", self.text(depth - 1), self.text(0)),
            2 => format!("substring-after({}, {})", self.text(depth - 1), self.text(0)),
            3 => format!("substring({}, {})", self.text(depth - 1), self.number(depth - 1)),
            4 => {
                let (from, length) = (self.number(depth - 1), self.number(depth - 1));
                format!("substring({}, {from}, {length})", self.text(depth - 1))
            }
            5 => format!("normalize-space({})", self.text(depth - 1)),
            6 => format!("translate({}, 'xy1', 'ab')", self.text(depth - 1)),
            7 => format!("local-name({})", self.path(depth - 1)),
            _ => format!("string({})", self.any(depth - 1)),
        }
    }

    fn any(&mut self, depth: u32) -> String {
        match self.random.below(5) {
            0 => self.number(depth),
            1 => self.text(depth),
            2 if depth > 0 => self.truth(depth - 1),
            _ => self.path(depth),
        }
    }
}

#[test]
fn fuzz_expressions_agree_with_libxml2() {
    let mut questions = Vec::new();
    for case in throng_fuzz::cases(1) {
        let document = Drawn::new(case.seed, case.round / 20).element(4);
        let path = Drawn::new(!case.seed, case.round).any(3);
        questions.push((case, document, path));
    }
    let lines = questions.iter().map(|(_, document, path)| format!("{document}\t{path}\n"));
    let answers = answers(&lines.collect::<String>());
    assert_eq!(answers.len(), questions.len());
    let mut found = 0;
    for ((case, document, path), want) in questions.iter().zip(&answers) {
        let text = format!("<?xml version=\"1.0\"?>{document}");
        let got = ours(&Page::new(text.as_bytes()), path);
        case.try_on(b"", || assert_eq!(&got, want, "{path}\n{document}"));
        found += usize::from(want.len() > 1);
    }
    // Enough must match, or little would be compared.
    assert!(found * 3 > questions.len(), "{found} of {}", questions.len());
}
