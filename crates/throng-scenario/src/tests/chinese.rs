//! The diagnostics of the Markdown files in Chinese: only code, names, and messages of the test
//! file system stay English.

use throng_base::{Diagnostic, Language};

use super::{diagnostics, markdown_files};

/// Messages of the test file system.
const OF_OTHERS: [&str; 1] = ["no such file"];

/// The diagnostics of all blocks of all files.
fn all() -> Vec<Diagnostic> {
    let mut all = Vec::new();
    for (_, text) in markdown_files() {
        let mut parts = text.split("```");
        // Prose and blocks follow each other.
        while let (Some(_), Some(block)) = (parts.next(), parts.next()) {
            let (kind, block) = block.split_once('\n').unwrap_or((block, ""));
            if matches!(kind, "yaml" | "yaml protocol" | "sh" | "bat") {
                all.extend(diagnostics(kind, block));
            }
        }
    }
    all
}

/// The text without code in backticks; quotes and signs become spaces.
fn prose(text: &str) -> String {
    text.split('`').step_by(2).collect::<Vec<_>>().join(" ")
}

/// True if English is left: two English words in a row.
fn is_english(text: &str) -> bool {
    let is_word = |word: &str| word.len() > 1 && word.bytes().all(|byte| byte.is_ascii_lowercase());
    let prose = prose(text);
    let words: Vec<&str> = prose.split(' ').collect();
    words.windows(2).any(|pair| pair.iter().all(|word| is_word(word)))
}

#[test]
fn every_diagnostic_is_in_chinese() {
    let all = all();
    assert!(all.len() > 300, "{}", all.len());
    let mut missing = Vec::new();
    for one in &all {
        let texts = [Some(&one.message), one.label.as_ref(), one.help.as_ref()];
        for text in texts.into_iter().flatten().chain(&one.notes) {
            let (text, told) = (text.english(), text.render(Language::Chinese));
            let is_said = prose(&text).bytes().any(|byte| byte.is_ascii_lowercase());
            let is_of_others = OF_OTHERS.contains(&text.as_str());
            if is_said && (told == text || is_english(&told)) && !is_of_others {
                missing.push(format!("{}: {text}", one.code));
            }
        }
        let told = one.render_in(Language::Chinese, false);
        assert!(told.starts_with("错误[") || told.starts_with("警告["), "{told}");
    }
    missing.sort_unstable();
    missing.dedup();
    assert!(missing.is_empty(), "no Chinese for\n{}", missing.join("\n"));
}
