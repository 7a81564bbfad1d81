//! `throng explain CODE`: the meaning of a message and how to fix it; `throng schema`: the language
//! for editors.

use std::sync::LazyLock;

use throng_base::diagnostic::did_you_mean;
use throng_base::{Diagnostic, Exit, Language, language, packed};
use throng_metrics::Cause;
use throng_terminal::Screen;

use crate::Ended;
use crate::arguments::{ExplainArguments, SchemaArguments, SchemaKind};

/// One section per code.
static CODES: LazyLock<String> = LazyLock::new(|| packed::text(packed!("../../docs/codes.md")));
static CODES_ZH: LazyLock<String> =
    LazyLock::new(|| packed::text(packed!("../../docs/zh/codes.md")));

/// The codes of all messages, sorted.
pub(crate) fn all_codes() -> Vec<&'static str> {
    sections(&CODES).iter().map(|section| section.code).collect()
}

struct Section<'t> {
    code: &'t str,
    text: &'t str,
}

impl<'t> Section<'t> {
    /// The first sentence. The dot in `.proto` does not end a sentence.
    fn brief(&self) -> &'t str {
        let stops = [(". ", 1), (".\n", 1), ("。", 3)];
        let ends = stops.iter().filter_map(|(stop, length)| Some(self.text.find(stop)? + length));
        &self.text[..ends.min().unwrap_or(self.text.len())]
    }

    /// The section for a terminal, including the blame of the code.
    fn shown(&self) -> String {
        let mut out = format!("{}\n\n{}\n", self.code, self.text);
        if let Some(cause) = Cause::ALL.iter().find(|cause| cause.word() == self.code) {
            out += &format!("{}\n", say!("Blame: {}.", cause.blame().text()).spoken());
        }
        out
    }
}

pub(crate) fn explain(arguments: &ExplainArguments) -> Ended {
    let text = match language::spoken() {
        Language::English => CODES.as_str(),
        Language::Chinese => CODES_ZH.as_str(),
    };
    let screen = Screen::output(false);
    let sections = sections(text);
    let Some(code) = &arguments.code else {
        let width = sections.iter().map(|section| section.code.len()).max().unwrap_or_default();
        for section in &sections {
            screen.line(&format!("{:width$}  {}", section.code, section.brief()));
        }
        return Ok(Exit::Success);
    };
    // Also as copied from a message: `error[unknown-key]`.
    let word = code.rsplit('[').next().unwrap_or(code).trim_end_matches([']', ':']);
    if let Some(section) = sections.iter().find(|section| section.code == word) {
        screen.text(&section.shown());
        return Ok(Exit::Success);
    }
    let mut error = Diagnostic::error("unknown-code", say!("there is no code `{word}`"))
        .help(say!("`throng explain` without a code lists all codes"));
    if let Some(near) = did_you_mean(word, sections.iter().map(|section| section.code)) {
        error = error.note(say!("did you mean `{near}`?"));
    }
    Err(Screen::errors(false).refused(&error))
}

pub(crate) fn schema(arguments: &SchemaArguments) -> Ended {
    let schema = match arguments.of {
        SchemaKind::Scenario => throng_scenario::schema::json_schema(),
        SchemaKind::Protocol => throng_scenario::schema::protocol(),
    };
    Screen::output(false).line(&schema);
    Ok(Exit::Success)
}

fn sections(text: &str) -> Vec<Section<'_>> {
    let section = |part| {
        let (code, text): (&str, &str) = str::split_once(part, '\n')?;
        Some(Section { code, text: text.trim_end() })
    };
    text.split("\n## ").skip(1).filter_map(section).collect()
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
    fn a_section_has_code_brief_and_text() {
        let text = "# t\n\n## a-b\nOne `.b`. More\nof it.\n\n## c\nTwo.\n";
        let sections = sections(text);
        let [one, two] = &sections[..] else { panic!("{}", sections.len()) };
        assert_eq!(
            (one.code, one.brief(), one.text),
            ("a-b", "One `.b`.", "One `.b`. More\nof it.")
        );
        assert_eq!((two.code, two.text), ("c", "Two."));
    }
}
