//! Random selectors over random pages, compared with npm's package `css-select`.

use std::process::Command;

use throng_base::Random;

use super::*;

/// Input: one page and selector per line, separated by a tab; output: per line, the numbers of the
/// elements.
const ORACLE: &str = r#"
const { parseDocument } = require("htmlparser2");
const { selectAll } = require("css-select");
const pages = new Map();
const lines = require("fs").readFileSync(0, "utf8").trimEnd().split("\n");
console.log(lines.map((line) => {
    const [page, selector] = line.split("\t");
    if (!pages.has(page)) pages.set(page, parseDocument(page));
    return selectAll(selector, pages.get(page)).map((one) => one.attribs.n).join(" ");
}).join("\n"));
"#;

fn answers(questions: &str) -> Vec<String> {
    let modules = throng_fuzz::node_modules("css-select");
    let mut node = Command::new("node");
    throng_fuzz::answers(node.args(["-e", ORACLE]).env("NODE_PATH", modules), questions)
}

/// Generates pages and selectors; `depth` limits the nesting.
struct Drawn {
    random: Random,
    elements: u32,
}

impl Drawn {
    fn new(seed: u64, owner: u64) -> Drawn {
        Drawn { random: Random::for_owner(seed, owner), elements: 0 }
    }

    fn of<'w>(&mut self, words: &[&'w str]) -> &'w str {
        words[self.random.below(words.len() as u64) as usize]
    }

    fn page(&mut self) -> String {
        let inside: String = (0..4).map(|_| self.element(4)).collect();
        format!("<!DOCTYPE html><html n=h><head n=e></head><body n=b>{inside}</body></html>")
    }

    /// Elements that every parser keeps in place, each with its number.
    fn element(&mut self, depth: u32) -> String {
        self.elements += 1;
        let name = self.of(&["div", "div", "span", "section", "input"]);
        let mut out = format!("<{name} n={}", self.elements);
        if self.random.chance(0.2) {
            out += &format!(" id={}", self.of(&["i1", "i2", "i3"]));
        }
        if self.random.chance(0.5) {
            out += &format!(" class=\"{}\"", self.of(&["on", "on off", "x-1 on", "Off"]));
        }
        if self.random.chance(0.3) {
            out += &format!(" lang=\"{}\"", self.of(&["en", "en-GB", "EN", "de-en", ""]));
        }
        if name == "input" {
            return out + self.of(&["", " checked type=checkbox", " disabled"]) + ">";
        }
        out.push('>');
        for _ in 0..self.random.below(4) {
            match self.random.below(3) {
                0 => out += self.of(&["x", "<!-- c -->", "two words"]),
                _ if depth > 0 => out += &self.element(depth - 1),
                _ => {}
            }
        }
        out + &format!("</{name}>")
    }

    fn list(&mut self, depth: u32) -> String {
        let mut list = self.complex(depth);
        while self.random.chance(0.2) {
            list += &format!(", {}", self.complex(depth));
        }
        list
    }

    fn complex(&mut self, depth: u32) -> String {
        let mut complex = self.compound(depth);
        while self.random.chance(0.35) {
            complex += self.of(&[" ", " > ", " + ", " ~ ", ">"]);
            complex += &self.compound(depth);
        }
        complex
    }

    fn compound(&mut self, depth: u32) -> String {
        let mut compound = self.of(&["*", "div", "span", "input", "", "section", ""]).to_string();
        let least = u64::from(compound.is_empty());
        for _ in 0..least + self.random.below(2) {
            compound += &self.test(depth);
        }
        compound
    }

    fn test(&mut self, depth: u32) -> String {
        if depth > 0 && self.random.chance(0.25) {
            // For siblings and longer selectors, `css-select` finds too much.
            if self.random.chance(0.2) {
                return format!(":has({} {})", self.of(&["", ">"]), self.compound(0));
            }
            let inner = self.list(depth - 1);
            return match self.random.below(4) {
                1 => format!(":is({inner})"),
                2 => format!(":where({inner})"),
                _ => format!(":not({inner})"),
            };
        }
        match self.random.below(6) {
            0 => self.of(&["#i1", "#i2"]).to_string(),
            1 => self.of(&[".on", ".off", ".x-1", ".Off"]).to_string(),
            2 => {
                let operator = self.of(&["=", "~=", "^=", "$=", "*=", "|="]);
                let name = self.of(&["lang", "class", "id"]);
                // For words, `css-select` also finds the empty one.
                let known = if operator == "~=" { 5 } else { 6 };
                let value = self.of(&["en", "on", "o", "en-GB", "i1", ""][..known]);
                format!("[{name}{operator}\"{value}\"{}]", self.of(&["", "", " i"]))
            }
            3 => self.of(&["[lang]", "[class]", "[checked]", "[none]"]).to_string(),
            4 => {
                let function =
                    self.of(&["nth-child", "nth-last-child", "nth-of-type", "nth-last-of-type"]);
                let which =
                    self.of(&["1", "2", "odd", "even", "2n", "3n+1", "-n+2", "n+2", "2n-1"]);
                format!(":{function}({which})")
            }
            _ => self
                .of(&[
                    ":first-child",
                    ":last-child",
                    ":only-child",
                    ":first-of-type",
                    ":last-of-type",
                    ":only-of-type",
                    ":empty",
                    ":root",
                    ":checked",
                    ":disabled",
                    ":contains(\"wo\")",
                ])
                .to_string(),
        }
    }
}

#[test]
fn fuzz_selectors_agree_with_css_select() {
    let mut questions = Vec::new();
    for case in throng_fuzz::cases(1) {
        let page = Drawn::new(case.seed, case.round / 20).page();
        let selector = Drawn::new(!case.seed, case.round).list(2);
        questions.push((case, page, selector));
    }
    let lines = questions.iter().map(|(_, page, selector)| format!("{page}\t{selector}\n"));
    let answers = answers(&lines.collect::<String>());
    assert_eq!(answers.len(), questions.len());
    let mut found = 0;
    for ((case, text, selector), want) in questions.iter().zip(&answers) {
        let css = Css::parse(&format!("{selector}@n"));
        let css = css.unwrap_or_else(|error| panic!("{selector}: {error:?}"));
        let page = Page::new(text.as_bytes());
        let values = css.all(&page).into_iter().map(|value| match value {
            Value::Text(text) => text.to_string(),
            other => panic!("{other:?}"),
        });
        let got = values.collect::<Vec<_>>().join(" ");
        case.try_on(b"", || assert_eq!(&got, want, "{selector}\n{text}"));
        found += usize::from(!want.is_empty());
    }
    // Enough must match, or little would be compared.
    assert!(found * 3 > questions.len(), "{found} of {}", questions.len());
}
