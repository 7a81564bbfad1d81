//! `throng explain CODE`: what a message means and how to fix it; `throng schema`: the language for
//! editors.

use std::sync::LazyLock;

use throng_base::diagnostic::did_you_mean;
use throng_base::{Diagnostic, Exit, Language, language, packed};

use crate::arguments::{ExplainArguments, SchemaArguments, SchemaKind};
use crate::screen::Screen;

/// One section per code. The Chinese page has its own prose and links to the English examples.
static CODES: LazyLock<String> = LazyLock::new(|| packed::text(packed!("../../docs/codes.md")));
static CODES_ZH: LazyLock<String> =
    LazyLock::new(|| packed::text(packed!("../../docs/zh/codes.md")));

/// The codes of all messages, sorted.
pub(crate) fn all_codes() -> Vec<&'static str> {
    sections(&CODES).iter().map(|section| section.code).collect()
}

struct Section<'t> {
    code: &'t str,
    /// Its first sentence.
    brief: &'t str,
    text: &'t str,
}

pub(crate) fn explain(arguments: &ExplainArguments) -> Exit {
    let text = match language::spoken() {
        Language::English => CODES.as_str(),
        Language::Chinese => CODES_ZH.as_str(),
    };
    let screen = Screen::output(false);
    let sections = sections(text);
    let Some(code) = &arguments.code else {
        let width = sections.iter().map(|section| section.code.len()).max().unwrap_or_default();
        for section in &sections {
            screen.line(&format!("{:width$}  {}", section.code, section.brief));
        }
        return Exit::Success;
    };
    // As it may be copied from a message: `error[unknown-key]`.
    let word = code.rsplit('[').next().unwrap_or(code).trim_end_matches([']', ':']);
    if let Some(section) = sections.iter().find(|section| section.code == word) {
        screen.text(&shown(section.code, &with_examples(section)));
        return Exit::Success;
    }
    let mut error = Diagnostic::error("unknown-code", say!("there is no code `{word}`"))
        .help(say!("`throng explain` without a code lists all codes"));
    if let Some(near) = did_you_mean(word, sections.iter().map(|section| section.code)) {
        error = error.note(say!("did you mean `{near}`?"));
    }
    Screen::errors(false).diagnostic(&error);
    Exit::Usage
}

pub(crate) fn schema(arguments: &SchemaArguments) -> Exit {
    let schema = match arguments.of {
        SchemaKind::Scenario => throng_scenario::schema::json_schema(),
        SchemaKind::Protocol => throng_scenario::schema::protocol(),
    };
    Screen::output(false).line(&schema);
    Exit::Success
}

fn sections(text: &str) -> Vec<Section<'_>> {
    let parts = text.split("\n## ").skip(1);
    let section = |part: &'_ str| -> Option<(usize, usize)> {
        let end = part.find('\n')?;
        let start = end + part[end..].find(|c: char| !c.is_whitespace())?;
        Some((end, start))
    };
    parts
        .filter_map(|part| {
            let (end, start) = section(part)?;
            let text = part[start..].trim_end();
            Some(Section { code: part[..end].trim(), brief: first_sentence(text), text })
        })
        .collect()
}

/// The full stop of `.proto` does not end a sentence.
fn first_sentence(text: &str) -> &str {
    let stops = [(". ", 1), (".\n", 1), ("。", 3)];
    let ends = stops.iter().filter_map(|(stop, length)| Some(text.find(stop)? + length));
    &text[..ends.min().unwrap_or(text.len())]
}

/// The text of a section. In Chinese, the examples of the English section replace their links.
fn with_examples(section: &Section<'_>) -> String {
    let english = sections(&CODES).into_iter().find(|english| english.code == section.code);
    let text = english.map_or("", |english| english.text);
    let mut examples = text.split("```").skip(1).step_by(2).peekable();
    let link = format!("](../codes.md#{})", section.code);
    let lines = section.text.lines().map(|line| {
        let example = examples.next_if(|_| line.ends_with(&link));
        example.map_or(line.to_string(), in_chinese)
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// A fenced example. Its first line says whether it is wrong or right.
fn in_chinese(example: &str) -> String {
    let text = example.replacen("# wrong", "# 错误", 1).replacen("# right", "# 正确", 1);
    format!("```{text}```")
}

/// A section for a terminal: examples are indented, without their fences.
fn shown(code: &str, text: &str) -> String {
    let mut out = format!("{code}\n\n");
    let mut fenced = false;
    for line in text.lines() {
        match line.strip_prefix("```") {
            Some(_) => fenced = !fenced,
            None if fenced => out.push_str(&format!("    {line}\n")),
            None => out.push_str(&format!("{line}\n")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_languages_explain_the_same_codes() {
        let codes = |text| sections(text).iter().map(|one| one.code).collect::<Vec<_>>();
        let english = codes(&CODES);
        assert!(english.len() > 50, "{}", english.len());
        assert_eq!(english, codes(&CODES_ZH));
        let mut sorted = english.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted, english, "sorted, and each once");
    }

    #[test]
    fn a_section_is_code_brief_and_text() {
        let text =
            "# t\n\n## a-b\n\nOne `.b`. More\nof it.\n\n```yaml\nx: 1\n```\n\n## c\n\nTwo.\n";
        let sections = sections(text);
        assert_eq!((sections[0].code, sections[0].brief), ("a-b", "One `.b`."));
        let shown = shown(sections[0].code, sections[0].text);
        assert_eq!(shown, "a-b\n\nOne `.b`. More\nof it.\n\n    x: 1\n");
        assert_eq!((sections[1].code, sections[1].text), ("c", "Two."));
    }

    #[test]
    fn chinese_sections_show_the_english_examples() {
        for (english, chinese) in sections(&CODES).iter().zip(&sections(&CODES_ZH)) {
            let text = with_examples(chinese);
            let same = english.text == with_examples(english);
            let fences = |text: &str| text.matches("```").count();
            assert!(same && fences(&text) == fences(english.text), "{text}");
            let left = ["](../codes.md#", "# wrong\n", "# right\n"];
            assert!(left.iter().all(|left| !text.contains(left)), "{text}");
        }
        let sections = sections(&CODES_ZH);
        let section = sections.iter().find(|section| section.code == "bad-method").unwrap();
        let shown = shown(section.code, &with_examples(section));
        assert!(shown.contains("\n    # 错误\n    target: http"), "{shown}");
    }
}
