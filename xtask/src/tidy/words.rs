//! The words of `docs/writing.md`: what a sentence must not say, and what to write instead. The
//! page is the one list of them; this file only reads its table.

use super::Finding;
use crate::voice::Sentence;

/// The page with the tables.
pub(super) const FILE: &str = "docs/writing.md";

/// The most words that a sentence may have before a semicolon, a colon or its end.
const SENTENCE_WORDS_MAX: usize = 40;

/// Words that are not written, and what is written instead.
#[derive(Debug, PartialEq)]
struct Rule {
    banned: Vec<Vec<String>>,
    instead: String,
}

/// A sentence that may say what is banned: part of its text, and why it may.
#[derive(Debug, PartialEq)]
struct Exception {
    line: usize,
    text: String,
}

/// Checks sentences against the tables of the page.
pub(super) fn check(page: &str, sentences: &[Sentence]) -> Vec<Finding> {
    let (rules, exceptions) = (rules(page), exceptions(page));
    let mut used = vec![false; exceptions.len()];
    let mut mistakes = Vec::new();
    for sentence in sentences.iter().filter(|one| one.file != FILE) {
        let found = mistakes_of(sentence, &rules);
        if found.is_empty() {
            continue;
        }
        match exceptions.iter().position(|one| sentence.text.contains(&one.text)) {
            Some(at) => used[at] = true,
            None => mistakes.extend(found),
        }
    }
    let unused = exceptions.iter().zip(used).filter(|(_, used)| !used);
    mistakes.extend(unused.map(|(exception, _)| {
        let what = format!("no sentence needs the exception `{}`", exception.text);
        Finding::new(FILE, exception.line, what, "remove the row")
    }));
    mistakes
}

fn mistakes_of(sentence: &Sentence, rules: &[Rule]) -> Vec<Finding> {
    let mistake =
        |what: String, cure: String| Finding::new(&sentence.file, sentence.line, what, cure);
    let words = words(&sentence.text);
    let mut mistakes = Vec::new();
    let clauses = words
        .split(|word| word == ";")
        .map(|clause| clause.iter().filter(|word| *word != ",").count());
    let longest = clauses.max().unwrap_or_default();
    if longest > SENTENCE_WORDS_MAX && !sentence.is_list {
        let what = format!("{longest} words without a break: {}", sentence.text);
        mistakes.push(mistake(what, format!("at most {SENTENCE_WORDS_MAX}; make it two")));
    }
    for rule in rules {
        for banned in rule.banned.iter().filter(|banned| has(&words, banned)) {
            let what = format!("`{}`: {}", banned.join(" "), sentence.text);
            mistakes.push(mistake(what, rule.instead.clone()));
        }
    }
    mistakes
}

fn has(words: &[String], banned: &[String]) -> bool {
    words.windows(banned.len()).any(|window| window == banned)
}

/// The words of a text in lower case. Code is one word of its own, and a sign between two words
/// separates them: what is banned stands within one clause.
fn words(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    for (index, part) in text.split('`').enumerate() {
        if index % 2 == 1 {
            out.push("`".to_string());
            continue;
        }
        for word in part.split_whitespace() {
            let kept = word.trim_matches(|c: char| !c.is_alphanumeric());
            if !kept.is_empty() {
                out.push(kept.to_lowercase());
            }
            if word.ends_with([';', ':']) {
                out.push(";".to_string());
            } else if word.ends_with([',', '.', ')']) {
                out.push(",".to_string());
            }
        }
    }
    out
}

/// The rows of the table below `## Checked phrases`: `| write | not |`, with `;` between phrases.
fn rules(page: &str) -> Vec<Rule> {
    let rule = |(_, cells): (usize, Vec<&str>)| {
        let [instead, not] = cells.as_slice() else { return None };
        let banned = not.split(';').map(words).filter(|phrase| !phrase.is_empty()).collect();
        Some(Rule { banned, instead: format!("write: {instead}") })
    };
    rows(page, "## Checked phrases").into_iter().filter_map(rule).collect()
}

/// The rows of the table below `## Exceptions`: `| part of the sentence | why |`.
fn exceptions(page: &str) -> Vec<Exception> {
    let exception = |(line, cells): (usize, Vec<&str>)| {
        let text = cells.first()?.trim_matches('"').to_string();
        Some(Exception { line, text })
    };
    rows(page, "## Exceptions").into_iter().filter_map(exception).collect()
}

/// The rows of the table of a section, without its head.
fn rows<'p>(page: &'p str, heading: &str) -> Vec<(usize, Vec<&'p str>)> {
    let lines = page.lines().enumerate().skip_while(|(_, line)| *line != heading).skip(1);
    let section = lines.take_while(|(_, line)| !line.starts_with("## "));
    let rows = section.filter(|(_, line)| line.starts_with('|')).skip(2);
    let cells = |line: &'p str| line.trim_matches('|').split('|').map(str::trim).collect();
    rows.map(|(index, line)| (index + 1, cells(line))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# Writing\n\n## Checked phrases\n\n| write | not |\n| --- | --- |\n\
                        | is not | is no; are no |\n| a user | nobody |\n\n## Exceptions\n\n\
                        | part of the sentence | why |\n| --- | --- |\n| \"is no more than\" | a limit |\n";

    fn found(text: &str) -> Vec<String> {
        let sentence = Sentence { file: "a.md".into(), line: 3, text: text.into(), is_list: false };
        let all = check(PAGE, &[sentence]);
        all.into_iter().filter(|one| one.file == "a.md").map(|one| one.what).collect()
    }

    #[test]
    fn banned_phrases_are_found_as_whole_words_of_one_clause() {
        assert_eq!(found("The body is no JSON."), ["`is no`: The body is no JSON."]);
        assert_eq!(found("Nobody waits."), ["`nobody`: Nobody waits."]);
        assert!(found("This is normal.").is_empty());
        assert!(found("That is, no more users start.").is_empty());
        assert!(found("The key `nobody` is kept.").is_empty());
    }

    #[test]
    fn sentences_have_a_length() {
        assert!(found(&"word ".repeat(SENTENCE_WORDS_MAX)).is_empty());
        assert_eq!(found(&"word ".repeat(SENTENCE_WORDS_MAX + 1)).len(), 1);
    }

    #[test]
    fn an_exception_is_allowed_and_must_be_needed() {
        assert!(found("It is no more than ten.").is_empty());
        let unused = check(PAGE, &[]);
        let unused: Vec<_> = unused.iter().map(|one| (one.file.as_str(), one.line)).collect();
        assert_eq!(unused, [(FILE, 14)]);
    }
}
