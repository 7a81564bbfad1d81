//! Every translation has a sentence that is said. That every sentence has a translation is checked
//! elsewhere: `say!` does not compile without one, and the texts of the command line's help are
//! tested where they are shown.

use std::collections::BTreeMap;

use throng_base::language::entries;

use super::Finding;
use super::source::Source;
use super::tokens::{Token, TokenKind};

pub(super) const FILE: &str = "crates/throng-base/words/zh.txt";

/// Compares the catalogue with the sources.
pub(super) fn check(catalogue: &str, sources: &[Source]) -> Vec<Finding> {
    let mut unsaid: BTreeMap<&str, usize> =
        entries(catalogue).iter().map(|entry| (entry.english, entry.line)).collect();
    for source in sources.iter().filter(|source| source.is_product()) {
        for text in texts(&source.tokens) {
            unsaid.remove(text.as_str());
        }
    }
    let mut unsaid: Vec<(usize, &str)> = unsaid.into_iter().map(|(text, at)| (at, text)).collect();
    unsaid.sort_unstable();
    let finding = |(line, text)| {
        let cure = "remove it, or write it as the code has it";
        Finding::new(FILE, line, format!("nothing says: {text}"), cure)
    };
    unsaid.into_iter().map(finding).collect()
}

/// The texts of a source as they may stand in the catalogue: strings, the keys of sentences, the
/// paragraphs of long texts, and doc comments as clap makes its help of them.
fn texts(tokens: &[Token]) -> impl Iterator<Item = String> {
    let doc = |token: &Token| match &token.kind {
        TokenKind::Doc(text) => Some(text.clone()),
        _ => None,
    };
    (0..tokens.len()).flat_map(move |at| match &tokens[at].kind {
        TokenKind::Text(text) => {
            let paragraphs = text.split("\n\n").map(|part| part.trim_end_matches('\n').to_string());
            paragraphs.chain([template(text)]).collect()
        }
        TokenKind::Doc(_) if at == 0 || doc(&tokens[at - 1]).is_none() => {
            let lines: Vec<String> = tokens[at..].iter().map_while(doc).collect();
            vec![lines.join(" ").trim_end_matches('.').to_string()]
        }
        _ => Vec::new(),
    })
}

/// The key of a sentence: with `{}` for each value, and other braces as they come out.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nothing_says_is_told() {
        let source = "/// A flag\n/// of ours.\nflag: u8, say!(\"{n} of {:.1} {{x}}\"), \
                      HELP = \"one\\n\\ntwo\\n\"";
        let catalogue = "A flag of ours\n\t一\n{} of {} {x}\n\t一\none\n\t一\ntwo\n\t一\n\
                         three\n\t三\n";
        let findings = check(catalogue, &[Source::new("crates/a/src/a.rs", source.into())]);
        let told: Vec<String> =
            findings.iter().map(|it| format!("{}:{}: {}", it.file, it.line, it.what)).collect();
        assert_eq!(told, [format!("{FILE}:9: nothing says: three")]);
    }
}
