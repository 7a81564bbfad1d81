//! Every sentence that is said to people has a translation, and every translation a sentence.
//!
//! A text is found where it is said: as an argument of one of [`CALLS`], in a binding of one of
//! [`BINDINGS`], in an attribute or a doc comment of the command line. Texts that get there on
//! other ways stand behind a comment: `// words` means every text of the item that follows,
//! `// sentences` those with a space in them.

use std::collections::HashMap;

use throng_base::language::entries;

use super::Finding;
use super::tokens::{Kind, Token, tokens};

pub(super) const FILE: &str = "crates/throng-base/words/zh.txt";

/// The crates whose sentences are translated.
const CRATES: &[&str] = &[
    "throng",
    "throng-base",
    "throng-data",
    "throng-engine",
    "throng-expression",
    "throng-extract",
    "throng-markup",
    "throng-host",
    "throng-metrics",
    "throng-protocol",
    "throng-packets",
    "throng-program",
    "throng-results",
    "throng-scenario",
    "throng-target",
];

/// What takes sentences, as it is written, and the first of its arguments that is one.
const CALLS: &[(&str, usize)] = &[
    ("say", 0),
    (".say", 0),
    (".fill", 0),
    ("language::say", 0),
    ("Diagnostic::error", 1),
    ("Diagnostic::warning", 1),
    (".label", 0),
    (".note", 0),
    (".help", 0),
    // Of the report on the terminal.
    ("Table::new", 0),
    ("note", 0),
    ("section", 0),
    ("labelled", 0),
    // Of the command line.
    ("cannot", 0),
    ("mistake", 1),
    ("unreadable", 0),
    // Of throng-base's units.
    ("error", 0),
    // Of the language of scenarios.
    (".error", 1),
    (".warning", 1),
    (".fail", 1),
    (".wrong", 0),
    (".warn", 0),
    (".message", 0),
    (".malformed", 1),
    (".inner", 2),
    (".get_or_insert_with", 0),
    ("no_users", 2),
    ("endless", 1),
    ("busy", 1),
    ("DataError::new", 1),
    ("PathError::new", 1),
    ("unconvertible", 1),
    (".expression", 1),
    (".bad_value", 1),
    (".wrong_type", 1),
    (".not_yet", 0),
    (".feature", 1),
    (".need", 2),
    (".text", 1),
    (".template", 1),
    (".items", 1),
    (".entries", 1),
    (".unit", 1),
    ("read_text", 2),
    ("body::read_text", 2),
    ("later", 3),
    ("whole", 1),
    ("wrong", 0),
    // Of expressions, of what is found in answers, and of data.
    ("Fault", 0),
    // Of declared protocols, and of the values of their messages.
    (".mistake", 0),
    ("Refused::new", 0),
];

/// Bindings and fields that hold sentences, as do all constants that end in `HELP`.
const BINDINGS: &[&str] =
    &["message", "help", "detail", "head", "label", "more", "note", "short", "title", "torn"];

/// Bindings that may hold sentences: texts in them with a space inside are some.
const BINDINGS_MIXED: &[&str] = &["line", "text"];

/// Texts for machines, which stay English.
const MACHINE_FILES: &[&str] = &[
    "crates/throng-results/src/json.rs",
    "crates/throng-results/src/junit.rs",
    // The scenario of a command line, the words of the language, the JSON Schema.
    "crates/throng-scenario/src/bench.rs",
    "crates/throng-scenario/src/quote.rs",
    "crates/throng-scenario/src/outline/words.rs",
    "crates/throng-scenario/src/schema.rs",
    "crates/throng-scenario/src/schema/json.rs",
    "crates/throng-scenario/src/schema/shapes.rs",
    // What the reference target answers.
    "crates/throng-target/src/http/head.rs",
    "crates/throng-target/src/session.rs",
];

/// Attributes of clap that hold sentences.
const ATTRIBUTES: &[&str] = &["about", "after_help", "help_heading", "next_help_heading"];

/// Where doc comments are the help of the command line.
const HELP_FILES: &[&str] = &[
    "crates/throng/src/arguments.rs",
    "crates/throng/src/arguments/protocol.rs",
    "crates/throng/src/arguments/route.rs",
    "crates/throng/src/arguments/target.rs",
];

/// A text that is said, and where.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Said {
    pub(super) line: usize,
    pub(super) text: String,
}

/// Whether sentences of this file are looked for.
pub(super) fn covers(file: &str) -> bool {
    let is_covered = |name: &&str| file.starts_with(&format!("crates/{name}/src/"));
    let is_test = file.contains("/tests") || file.ends_with("/sample.rs");
    let is_for_people = !is_test && !MACHINE_FILES.contains(&file);
    file.ends_with(".rs") && is_for_people && CRATES.iter().any(is_covered)
}

/// Compares the catalogue with the sources, which are told by name and text.
pub(super) fn check(catalogue: &str, sources: &[(String, String)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut unsaid: HashMap<&str, usize> =
        entries(catalogue).iter().map(|entry| (entry.english, entry.line)).collect();
    let known: Vec<&str> = unsaid.keys().copied().collect();
    let mut missing: Vec<String> = Vec::new();
    for (file, source) in sources {
        for token in tokens(source) {
            let Kind::Text(text) = token.kind else { continue };
            unsaid.remove(text.as_str());
            unsaid.remove(template(&text).as_str());
        }
        for Said { line, text } in said(file, source) {
            unsaid.remove(text.as_str());
            if !known.contains(&text.as_str()) && !missing.contains(&text) {
                let cure = format!("translate it in {FILE}");
                findings.push(Finding::new(file, line, format!("not translated: {text}"), cure));
                missing.push(text);
            }
        }
    }
    unsaid.retain(|text, _| has_words(text));
    let mut unsaid: Vec<(usize, &str)> = unsaid.into_iter().map(|(text, at)| (at, text)).collect();
    unsaid.sort_unstable();
    findings.extend(unsaid.into_iter().map(|(line, text)| {
        let cure = "remove it, or write it as the code has it";
        Finding::new(FILE, line, format!("nobody says: {text}"), cure)
    }));
    findings
}

/// All that a source says to people, as the catalogue has it.
pub(super) fn said(file: &str, source: &str) -> Vec<Said> {
    let tokens = tokens(source);
    let mut said = Vec::new();
    for at in 0..tokens.len() {
        match &tokens[at].kind {
            Kind::Mark('(') => call(&tokens, at, &mut said),
            // `PHASE Phase = "a phase" {`: what a table of keys is called.
            Kind::Mark('{')
                if at > 3 && tokens[at - 2].is_mark('=') && tokens[at - 3].word().is_some() =>
            {
                texts(&tokens, at - 1..at, &mut said);
            }
            Kind::Word(word) if word == "let" || word == "const" || word == "static" => {
                binding(&tokens, at, &mut said);
            }
            // `say!("…")` itself.
            Kind::Mark('!') if at > 0 && is_saying(&tokens[at - 1]) => {
                if let Some(Token { line, kind: Kind::Text(text) }) = tokens.get(at + 2) {
                    let text = template(text);
                    said.extend(has_words(&text).then_some(Said { line: *line, text }));
                }
            }
            Kind::Mark(':') => field(&tokens, at, &mut said),
            Kind::Mark('=') if is_attribute(&tokens, at) => {
                texts(&tokens, at + 1..at + 2, &mut said);
            }
            Kind::Remark(word) if word == "words" || word == "sentences" => {
                let mut found = Vec::new();
                texts(&tokens, at + 1..end_of_item(&tokens, at + 1), &mut found);
                found.retain(|one| word == "words" || is_sentence(&one.text));
                said.extend(found);
            }
            Kind::Doc(_) if HELP_FILES.contains(&file) => doc(&tokens, at, &mut said),
            _ => {}
        }
    }
    said.sort_by(|a, b| (a.line, &a.text).cmp(&(b.line, &b.text)));
    said.dedup();
    said
}

/// Whether this names a macro that says a sentence.
fn is_saying(token: &Token) -> bool {
    token.is_word("say") || token.is_word("tell")
}

/// Whether what stands before `at` is one of [`ATTRIBUTES`].
fn is_attribute(tokens: &[Token], at: usize) -> bool {
    let name = at.checked_sub(1).and_then(|before| tokens[before].word());
    name.is_some_and(|name| ATTRIBUTES.contains(&name))
}

/// A call whose `(` is at `open`.
fn call(tokens: &[Token], open: usize, said: &mut Vec<Said>) {
    let Some(name) = called(tokens, open) else { return };
    let Some((_, first)) = CALLS.iter().find(|(call, _)| *call == name) else { return };
    let end = closing(tokens, open);
    let mut commas = 0;
    let mut depth = 0;
    let mut begin = (*first == 0).then_some(open + 1);
    for (at, token) in tokens.iter().enumerate().take(end).skip(open + 1) {
        depth += depth_of(token);
        if depth == 0 && token.is_mark(',') {
            commas += 1;
            begin = begin.or((commas == *first).then_some(at + 1));
        }
    }
    if let Some(begin) = begin {
        texts(tokens, begin..end, said);
    }
}

/// What is called: `name`, `.name` or `Type::name`; nothing where a function is defined.
fn called(tokens: &[Token], open: usize) -> Option<String> {
    let name = tokens.get(open.checked_sub(1)?)?.word()?;
    let before = |back: usize| open.checked_sub(back).and_then(|at| tokens.get(at));
    if before(2).is_some_and(|token| token.is_word("fn")) {
        return None;
    }
    if before(2).is_some_and(|token| token.is_mark('.')) {
        return Some(format!(".{name}"));
    }
    let is_path = [2, 3].iter().all(|back| before(*back).is_some_and(|token| token.is_mark(':')));
    match before(4).and_then(Token::word).filter(|_| is_path) {
        Some(parent) => Some(format!("{parent}::{name}")),
        None => Some(name.to_string()),
    }
}

/// A binding that begins at `at`.
fn binding(tokens: &[Token], at: usize, said: &mut Vec<Said>) {
    let mut names = tokens[at + 1..].iter().filter_map(Token::word);
    let Some(name) = names.find(|word| *word != "mut") else { return };
    let is_mixed = BINDINGS_MIXED.contains(&name);
    if is_mixed || BINDINGS.contains(&name) || name.ends_with("HELP") || name.ends_with("_help") {
        let mut found = Vec::new();
        texts(tokens, at..end_of_item(tokens, at), &mut found);
        found.retain(|one| !is_mixed || one.text.trim().contains(' '));
        said.extend(found);
    }
}

/// A field of a value that is built, `message: …`, whose `:` is at `colon`.
fn field(tokens: &[Token], colon: usize, said: &mut Vec<Said>) {
    let name = colon.checked_sub(1).and_then(|before| tokens[before].word());
    let is_path = tokens.get(colon + 1).is_some_and(|token| token.is_mark(':'));
    if is_path || !name.is_some_and(|name| BINDINGS.contains(&name)) {
        return;
    }
    let mut depth = 0;
    let rest = tokens.iter().enumerate().skip(colon + 1);
    let end = rest.into_iter().find(|(_, token)| {
        depth += depth_of(token);
        // What a key is for stands behind an arrow, in English alone.
        depth < 0 || depth == 0 && [',', ';', '>'].iter().any(|mark| token.is_mark(*mark))
    });
    texts(tokens, colon + 1..end.map_or(tokens.len(), |(at, _)| at), said);
}

/// The paragraph of doc comments that begins at `at`, if it is of a flag, a value or a command.
fn doc(tokens: &[Token], at: usize, said: &mut Vec<Said>) {
    let text = |token: &Token| match &token.kind {
        Kind::Doc(text) => Some(text.clone()),
        _ => None,
    };
    if at > 0 && text(&tokens[at - 1]).is_some() {
        return;
    }
    let lines: Vec<String> = tokens[at..].iter().map_while(text).collect();
    let mut next = at + lines.len();
    while tokens.get(next).is_some_and(|token| token.is_mark('#')) {
        next = closing(tokens, next + 1) + 1;
    }
    const ITEMS: [&str; 6] = ["const", "enum", "fn", "impl", "static", "struct"];
    let rest = tokens[next.min(tokens.len())..].iter();
    // What stands in the parentheses of `pub(crate)` is no item.
    let mut words = rest.filter_map(Token::word).filter(|word| !["pub", "crate"].contains(word));
    if words.next().is_none_or(|word| ITEMS.contains(&word)) {
        return;
    }
    // As clap makes its help of it.
    let text = lines.join(" ").trim_end_matches('.').to_string();
    if has_words(&text) {
        said.push(Said { line: tokens[at].line, text });
    }
}

/// The texts among these tokens that have words in them.
fn texts(tokens: &[Token], range: std::ops::Range<usize>, said: &mut Vec<Said>) {
    for at in range {
        let Some(Token { line, kind: Kind::Text(text) }) = tokens.get(at) else { continue };
        let before = |back: usize| at.checked_sub(back).and_then(|at| tokens.get(at));
        if is_looked_for(tokens, at) {
            continue;
        }
        let is_made_by = |name: &str, back: usize| {
            before(back).is_some_and(|token| token.is_mark('!'))
                && before(back + 1).is_some_and(|token| token.is_word(name))
        };
        // `format!("…")`, `write!(f, "…")`.
        let is_format = is_made_by("format", 2) || is_made_by("write", 4);
        let is_said = before(3).is_some_and(is_saying);
        let text = if is_format || is_said && before(2).is_some_and(|token| token.is_mark('!')) {
            template(text)
        } else {
            text.clone()
        };
        // Long texts are translated by paragraphs.
        let parts = text.split("\n\n").map(|part| part.trim_end_matches('\n'));
        let worded = parts.filter(|part| has_words(part));
        said.extend(worded.map(|part| Said { line: *line, text: part.to_string() }));
    }
}

/// Whether a text of a marked item is said: it has several words, and is no call of a function.
fn is_sentence(text: &str) -> bool {
    let mut pairs = text.as_bytes().windows(2);
    text.contains(' ') && !pairs.any(|pair| pair[0].is_ascii_alphanumeric() && pair[1] == b'(')
}

/// Whether a text is compared with another, and not said: a pattern of a `match`, the argument of
/// `contains`.
fn is_looked_for(tokens: &[Token], at: usize) -> bool {
    const LOOKING: [&str; 3] = ["contains", "starts_with", "get"];
    let mark = |at: usize, mark: char| tokens.get(at).is_some_and(|token| token.is_mark(mark));
    let before = |sign: char| at.checked_sub(1).is_some_and(|at| mark(at, sign));
    let second = at.checked_sub(2).map(|at| &tokens[at].kind);
    let is_last = before('|') && matches!(second, Some(Kind::Text(_)));
    let is_pattern = mark(at + 1, '=') && mark(at + 2, '>') || mark(at + 1, '|') || is_last;
    let name = at.checked_sub(2).and_then(|name| tokens[name].word());
    let is_argument = before('(');
    is_pattern || is_argument && name.is_some_and(|name| LOOKING.contains(&name))
}

/// Whether there is anything to translate: not in `p99` and `{}/s`, nor in abbreviations and codes
/// of messages such as `bad-value`.
fn has_words(text: &str) -> bool {
    // What stands in backticks is code.
    let own: String = text.split('`').step_by(2).collect();
    let bytes = own.as_bytes();
    let is_code = bytes.iter().all(|byte| byte.is_ascii_lowercase() || *byte == b'-');
    if is_code && bytes.contains(&b'-') {
        return false;
    }
    let is_word = bytes.windows(2).any(|pair| pair.iter().all(u8::is_ascii_lowercase));
    let are_words = bytes.windows(3).any(|three| {
        three[1] == b' ' && three[0].is_ascii_alphabetic() && three[2].is_ascii_alphabetic()
    });
    is_word || are_words
}

/// What `format!` is given, with `{}` for each value and its other braces as they come out.
fn template(format: &str) -> String {
    let mut out = String::new();
    let mut rest = format;
    while let Some(at) = rest.find(['{', '}']) {
        out.push_str(&rest[..at]);
        let brace = &rest[at..at + 1];
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix(brace) {
            out.push_str(brace);
            rest = after;
        } else if let Some(close) = rest.find('}').filter(|_| brace == "{") {
            out.push_str("{}");
            rest = &rest[close + 1..];
        }
    }
    out + rest
}

/// Where the bracket closes that opens at `open`.
fn closing(tokens: &[Token], open: usize) -> usize {
    let mut depth = 0;
    let close = tokens.iter().enumerate().skip(open).find(|(_, token)| {
        depth += depth_of(token);
        depth == 0
    });
    close.map_or(tokens.len(), |(at, _)| at)
}

/// Where the item or statement ends that begins at `start`.
fn end_of_item(tokens: &[Token], start: usize) -> usize {
    let is_let = tokens.get(start).is_some_and(|token| token.is_word("let"));
    let mut depth = 0;
    let end = tokens.iter().enumerate().skip(start).find(|(_, token)| {
        depth += depth_of(token);
        depth < 0 || depth == 0 && (token.is_mark(';') || token.is_mark('}') && !is_let)
    });
    end.map_or(tokens.len(), |(at, _)| at)
}

fn depth_of(token: &Token) -> i32 {
    match token.kind {
        Kind::Mark('(' | '[' | '{') => 1,
        Kind::Mark(')' | ']' | '}') => -1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(source: &str) -> Vec<String> {
        said(HELP_FILES[0], source).into_iter().map(|said| said.text).collect()
    }

    #[test]
    fn sentences_are_found_where_they_are_said() {
        assert_eq!(found("screen.say(\"a text\"); other(\"no text\")"), ["a text"]);
        assert_eq!(found("say(&format!(\"{n} of {:.1} {{x}}\", f(2)))"), ["{} of {} {x}"]);
        assert_eq!(found("x(Diagnostic::error(\"a-code\", \"one \\\n   text\"))"), ["one text"]);
        assert_eq!(found("fn say(text: &str) { \"no text\" }"), [""; 0]);
        assert_eq!(found("my::error(\"no text\"); error(\"a text\", X)"), ["a text"]);
        let source = "let message = match x { 1 => format!(\"an {b}\"), _ => \"two\".into() };\
                      let other = \"no text\"; const A_HELP: &str = \"one\\n\\ntwo\\n\";";
        assert_eq!(found(source), ["an {}", "one", "two"]);
        assert_eq!(found("let text = x(\"etc/os\", \" in \", \"{} users\");"), ["{} users"]);
        assert_eq!(found(".help(\"p99 `{}`\").note(x(\"–\", \"ok\"))"), ["ok"]);
        assert_eq!(found("cx.error(\"a-code\", \"a text\", place).label(\"`p`\")"), ["a text"]);
        assert_eq!(found("Err(Oops { message: f(\"a text\"), code: \"no text\" })"), ["a text"]);
        let source = "let help = match kind { \"one\" | \"two\" => \"a text\", _ => \"another\" };";
        assert_eq!(found(source), ["a text", "another"]);
        assert_eq!(found("if info.contains(\"no text\") { say(\"a text\") }"), ["a text"]);
        assert_eq!(found("PHASE Phase = \"a phase\" { label: Text => \"A doc.\", }"), ["a phase"]);
    }

    #[test]
    fn marked_items_and_the_command_line() {
        let source =
            "// words\nlet (a, b) = match x { 1 => (\"ab\", 1), _ => (\"cd\", 2) };\n\"no\"";
        assert_eq!(found(source), ["ab", "cd"]);
        assert_eq!(
            found("// sentences\ncauses! { A, \"a-b\", \"a text\"; }\n\"no no\""),
            ["a text"]
        );
        let source = "/// A struct\n#[derive(X)]\npub(crate) struct A {\n/// One\n/// flag.\n\
                      #[arg(long)]\npub(crate) a: u8 }\n#[command(next_help_heading = \"A head\")]";
        assert_eq!(found(source), ["One flag", "A head"]);
    }

    #[test]
    fn what_is_missing_and_what_is_too_much_is_told() {
        let source = "//! x\nsay(\"one\");\nsay(\"two\");\nsay(\"two\");\n";
        let findings = check("one\n\t一\nthree\n\t三\n", &[("a.rs".into(), source.into())]);
        let told: Vec<String> =
            findings.iter().map(|it| format!("{}:{}: {}", it.file, it.line, it.what)).collect();
        let want = ["a.rs:3: not translated: two", &format!("{FILE}:3: nobody says: three")];
        assert_eq!(told, want);
    }

    #[test]
    fn tests_and_other_crates_are_left_alone() {
        assert!(covers("crates/throng-base/src/units.rs"));
        assert!(!covers("crates/throng-results/src/terminal/tests.rs"));
        assert!(!covers("crates/throng-http/src/lib.rs") && !covers("xtask/src/main.rs"));
    }
}
