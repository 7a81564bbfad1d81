//! What throng says to its readers, sentence by sentence: the pages of `docs/`, the README, and the
//! catalogue of messages and help. `cargo xtask sentences` draws some of them for a person to read;
//! `cargo xtask tidy` holds them to the words of `docs/writing.md`.

use std::fs;
use std::path::Path;

use throng_base::language::entries;
use throng_base::random::Random;

use crate::workspace;

/// Every template of a message or a help text, in English with its translation.
const CATALOGUE: &str = "crates/throng-base/words/zh.txt";

/// Shorter texts are labels, not sentences.
const WORDS_MIN: usize = 4;

const COUNT_DEFAULT: usize = 100;

/// One sentence, or the text of a table cell, and where it starts.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sentence {
    pub(crate) file: String,
    pub(crate) line: usize,
    /// On one line, without Markdown but for the backticks of code.
    pub(crate) text: String,
    /// It is a list by nature, such as the cell of a table: only its words are checked.
    pub(crate) is_list: bool,
}

/// Prints sentences drawn at random; the same seed draws the same ones from the same tree.
pub(crate) fn run(words: &[&str]) -> Result<(), String> {
    let usage = || "cargo xtask sentences [COUNT] [--seed N]".to_string();
    let (count, seed) = match words {
        [] => (COUNT_DEFAULT, 1),
        [count] => (count.parse().map_err(|_| usage())?, 1),
        ["--seed", seed] => (COUNT_DEFAULT, seed.parse().map_err(|_| usage())?),
        [count, "--seed", seed] => {
            (count.parse().map_err(|_| usage())?, seed.parse().map_err(|_| usage())?)
        }
        _ => return Err(usage()),
    };
    let root = workspace::load()?.root;
    let long = |one: &Sentence| one.text.split(' ').count() >= WORDS_MIN;
    let mut all: Vec<Sentence> =
        all(&root, &workspace::files(&root)?).into_iter().filter(long).collect();
    let mut random = Random::new(seed);
    for _ in 0..count.min(all.len()) {
        let at = random.below(all.len() as u64) as usize;
        let one = all.swap_remove(at);
        crate::say(&format!("{}:{}: {}", one.file, one.line, one.text));
    }
    Ok(())
}

/// All sentences of the project that readers meet in English.
pub(crate) fn all(root: &Path, files: &[String]) -> Vec<Sentence> {
    let read = |file: &str| fs::read_to_string(root.join(file)).unwrap_or_default();
    let pages = files.iter().filter(|file| is_page(file));
    let mut sentences: Vec<Sentence> = pages.flat_map(|file| of_page(file, &read(file))).collect();
    sentences.extend(of_catalogue(CATALOGUE, &read(CATALOGUE)));
    sentences
}

/// Whether the file is an English page of documentation.
fn is_page(file: &str) -> bool {
    let is_doc = file.starts_with("docs/") && !file.starts_with("docs/zh/");
    file.ends_with(".md") && (is_doc || file == "README.md" || file == "ARCHITECTURE.md")
}

fn of_catalogue(file: &str, text: &str) -> Vec<Sentence> {
    let entries = entries(text);
    let sentence = |entry: &throng_base::language::Entry<'_>| {
        let is_list = entry.english.contains('\n');
        split(file, &[(entry.line, entry.english.replace('\n', " "))], is_list)
    };
    entries.iter().flat_map(sentence).collect()
}

/// The prose of a page: paragraphs, items of lists and cells of tables, without blocks of code.
fn of_page(file: &str, markdown: &str) -> Vec<Sentence> {
    let mut sentences = Vec::new();
    let mut paragraph: Vec<(usize, String)> = Vec::new();
    let mut is_code = false;
    for (index, line) in markdown.lines().enumerate() {
        let text = line.trim();
        let fence = text.starts_with("```");
        let is_indented_code = line.starts_with("    ") && paragraph.is_empty();
        let starts_item = text.starts_with(['#', '|', '<']) || item(text).is_some();
        if fence || is_code || text.is_empty() || starts_item {
            sentences.extend(split(file, &std::mem::take(&mut paragraph), false));
        }
        is_code ^= fence;
        if fence || is_code || is_indented_code || text.is_empty() || text.starts_with('<') {
            continue;
        }
        if text.starts_with('|') {
            let cells = text.trim_matches('|').split('|').map(str::trim);
            let cells = cells.filter(|cell| cell.contains(char::is_alphabetic));
            cells.for_each(|cell| sentences.extend(split(file, &[(index + 1, plain(cell))], true)));
            continue;
        }
        let is_heading = text.starts_with('#');
        let text = text.trim_start_matches(['#', '>', ' ']);
        paragraph.push((index + 1, plain(item(text).unwrap_or(text))));
        if is_heading {
            sentences.extend(split(file, &std::mem::take(&mut paragraph), false));
        }
    }
    sentences.extend(split(file, &paragraph, false));
    sentences
}

/// The text of a list item, without its mark.
fn item(text: &str) -> Option<&str> {
    let digits = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let numbered = (digits.len() < text.len()).then(|| digits.strip_prefix(". ")).flatten();
    text.strip_prefix("- ").or_else(|| text.strip_prefix("* ")).or(numbered)
}

/// Without the marks of links and emphasis.
fn plain(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("](") {
        out.push_str(&rest[..at]);
        let after = &rest[at + 2..];
        rest = after.split_once(')').map_or("", |(_, rest)| rest);
    }
    out.push_str(rest);
    out.replace("**", "").replace(['[', ']'], "")
}

/// Cuts lines that belong together into sentences, each with the line on which it starts.
fn split(file: &str, lines: &[(usize, String)], is_list: bool) -> Vec<Sentence> {
    let mut sentences: Vec<Sentence> = Vec::new();
    let mut text = String::new();
    let mut line = 0;
    let mut is_code = false;
    for (number, content) in lines {
        for word in content.split_whitespace() {
            if text.is_empty() {
                line = *number;
            } else {
                text.push(' ');
            }
            text.push_str(word);
            is_code ^= word.matches('`').count() % 2 == 1;
            let ends = word.trim_end_matches([')', '"', '`']).ends_with(['.', '?', '!']);
            if ends && !is_code && !is_abbreviation(word) {
                let text = std::mem::take(&mut text);
                sentences.push(Sentence { file: file.into(), line, text, is_list });
            }
        }
    }
    if !text.is_empty() {
        sentences.push(Sentence { file: file.into(), line, text, is_list });
    }
    sentences
}

fn is_abbreviation(word: &str) -> bool {
    matches!(word.trim_start_matches('('), "e.g." | "i.e." | "etc." | "vs." | "..." | "…")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(markdown: &str) -> Vec<(usize, String)> {
        of_page("a.md", markdown).into_iter().map(|one| (one.line, one.text)).collect()
    }

    #[test]
    fn sentences_are_cut_from_prose_lists_and_tables() {
        let page = "# A title\nOne sentence\nover two lines. Two, with `a. b` in [a link](x.md).\n\
                    - An item.\n1. Another\n\n    no sentence\n```sh\nno. at all\n```\n| a cell | `code` |\n";
        let expected = [
            (1, "A title"),
            (2, "One sentence over two lines."),
            (3, "Two, with `a. b` in a link."),
            (4, "An item."),
            (5, "Another"),
            (11, "a cell"),
            (11, "`code`"),
        ];
        assert_eq!(texts(page), expected.map(|(line, text)| (line, text.to_string())));
    }

    #[test]
    fn messages_are_sentences_too() {
        let found = of_catalogue("zh.txt", "# note\n\nit is {}. Do this\n\t中文\n");
        let found: Vec<_> = found.iter().map(|one| (one.line, one.text.as_str())).collect();
        assert_eq!(found, [(3, "it is {}."), (3, "Do this")]);
    }

    #[test]
    fn only_english_pages_are_read() {
        let pages = ["README.md", "docs/index.md", "docs/tutorial/api.md"];
        assert!(pages.iter().all(|file| is_page(file)));
        assert!(!is_page("docs/zh/index.md") && !is_page("CHANGELOG.md"));
    }
}
