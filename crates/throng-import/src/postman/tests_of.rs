//! The checks and saves of test scripts, if they use the lines that Postman itself suggests. All
//! other lines are returned.

use std::collections::HashSet;
use std::sync::LazyLock;
use std::time::Duration;

use regex::{Captures, Regex};

use crate::json::Json;
use crate::model::{Check, Exchange, Save, name_of};
use crate::text::Text;

/// A line pattern and its meaning.
struct Pattern {
    regex: Regex,
    meaning: Meaning,
}

/// Adds the meaning of a line to a request; false: it does not apply.
type Meaning = fn(&Captures<'_>, &mut Exchange) -> bool;

static PATTERNS: LazyLock<Vec<Pattern>> = LazyLock::new(|| {
    let patterns: [(&str, Meaning); 12] = [
        (r"response\.to\.have\.status\((\d{3})\)", |found, to| status(&found[1], to)),
        (r"to\.be\.oneOf\(\[([\d,\s]+)\]\)", |found, to| {
            found[1].split(',').all(|one| status(one.trim(), to))
        }),
        (
            r"(?:response|responseCode)\.code\)?\s*(?:={2,3}|\.to\.(?:be\.)?(?:eql?|equals?)\()\s*(\d{3})",
            |found, to| status(&found[1], to),
        ),
        (r"response\.to\.be\.ok\b", |_, to| status("200", to)),
        (r"response\.to\.be\.success\b", |_, to| status("2xx", to)),
        (r"responseTime\)?\s*(?:<|\.to\.be\.(?:below|lessThan)\()\s*(\d+)", time),
        (
            r#"(?:responseBody\.has\(|(?:response\.text\(\)|responseBody)\)?\.(?:to\.)?(?:include|contain)s?\()\s*["']([^"'\\]+)["']"#,
            |found, to| {
                to.checks.push(Check::Contains(Text::literal(&found[1])));
                true
            },
        ),
        (r#"to\.have\.header\(\s*["']([\w-]+)["']\s*\)"#, |found, to| {
            to.checks.push(Check::Header(found[1].to_string(), None));
            true
        }),
        (
            r#"expect\(\s*(?:\w+|pm\.response\.json\(\))((?:\.\w+|\[\d+\])+)\s*\)\.to\.(?:be\.)?(?:eql?|equals?)\(\s*("[^"\\]*"|'[^'\\]*'|-?\d+(?:\.\d+)?|true|false)\s*\)"#,
            field,
        ),
        (
            r#"expect\(\s*pm\.response\.json\(\)((?:\.\w+|\[\d+\])+)\s*\)\.to\.(?:exist|not\.be\.(?:null|undefined))"#,
            |found, to| {
                to.checks.push(Check::Json(path(&found[1]), None));
                true
            },
        ),
        (
            r#"(?:pm\.(?:environment|globals|collectionVariables|variables)\.set|postman\.set(?:Environment|Global)Variable)\(\s*["']([^"']+)["']\s*,\s*(?:pm\.response\.json\(\)|JSON\.parse\(responseBody\)|\w+)((?:\.\w+|\[\d+\])+)\s*\)"#,
            save,
        ),
        (
            r#"(?:pm\.(?:environment|globals|collectionVariables|variables)\.set)\(\s*["']([^"']+)["']\s*,\s*pm\.response\.headers\.get\(\s*["']([\w-]+)["']\s*\)\s*\)"#,
            |found, to| {
                to.saves.push((name_of(&found[1]), Save::Header(found[2].to_string())));
                true
            },
        ),
    ];
    let made = patterns.into_iter().filter_map(|(pattern, meaning)| {
        Some(Pattern { regex: Regex::new(pattern).ok()?, meaning })
    });
    made.collect()
});

/// Lines without a meaning of their own: the frame of a check, and names for the response.
static SILENT: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let pattern = r#"(?x)^(?:
        [\s{}();,]* |
        (?:pm\.)?test\(\s*["'`][^"'`]*["'`]\s*,\s*(?:async\s+)?(?:function\s*\(\w*\)|\(\w*\)\s*=>)\s*\{?\s* |
        (?:const|let|var)\s+\w+\s*=\s*(?:pm\.response\.json\(\)|JSON\.parse\(responseBody\)|pm\.response\.text\(\))\s*;? |
        "use\s+strict";? | 'use\s+strict';? | console\.\w+\(.*
    )$"#;
    Regex::new(pattern).ok()
});

fn status(code: &str, exchange: &mut Exchange) -> bool {
    match exchange.checks.iter_mut().find(|check| matches!(check, Check::Status(_))) {
        Some(Check::Status(list)) => {
            if !list.iter().any(|known| known == code) {
                list.push(code.to_string());
            }
        }
        _ => exchange.checks.push(Check::Status(vec![code.to_string()])),
    }
    true
}

fn time(found: &Captures<'_>, exchange: &mut Exchange) -> bool {
    let Ok(ms) = found[1].parse() else { return false };
    exchange.checks.push(Check::TimeBelow(Duration::from_millis(ms)));
    true
}

fn field(found: &Captures<'_>, exchange: &mut Exchange) -> bool {
    let path = path(&found[1]);
    // The compared value must be a part of the response, not of a helper.
    if ["length", "code", "status", "responseTime"].iter().any(|word| path == *word) {
        return false;
    }
    let value = &found[2];
    let value = match value.trim_matches(['"', '\'']) {
        text if text.len() < value.len() => Json::text(text),
        text => Json::parse(text).unwrap_or_else(|_| Json::text(text)),
    };
    exchange.checks.push(Check::Json(path, Some(value)));
    true
}

fn save(found: &Captures<'_>, exchange: &mut Exchange) -> bool {
    let name = name_of(&found[1]);
    if !exchange.saves.iter().any(|(known, _)| *known == name) {
        exchange.saves.push((name, Save::Json(path(&found[2]))));
    }
    true
}

fn path(found: &str) -> String {
    found.trim_start_matches('.').to_string()
}

/// The statements of a script, one per line, without comments.
pub(super) fn lines(script: &str) -> Vec<String> {
    let silent = |line: &str| SILENT.as_ref().is_some_and(|silent| silent.is_match(line));
    let lines = script.lines().take(5_000).map(str::trim);
    let code = lines.filter(|line| !line.is_empty() && !line.starts_with("//") && !silent(line));
    code.map(str::to_string).collect()
}

/// Adds the checks and saves of a script; returns the lines that are not supported.
pub(super) fn read(script: &str, exchange: &mut Exchange) -> Vec<String> {
    let mut rest = Vec::new();
    for line in lines(script) {
        // A long line is an embedded library.
        let is_short = line.len() < 2_000;
        let understood = is_short
            && PATTERNS.iter().any(|pattern| {
                let found = pattern.regex.captures(&line);
                found.is_some_and(|found| (pattern.meaning)(&found, exchange))
            });
        if !understood {
            rest.push(line);
        }
    }
    rest
}

/// The names that scripts set from responses, in the whole collection.
pub(super) fn collect_saved(item: &Json, saved: &mut HashSet<String>, depth: usize) {
    static SET: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let names = r#"(?:\.set|set(?:Environment|Global)Variable)\(\s*["']([^"']+)["']"#;
        Regex::new(names).ok()
    });
    if depth > super::DEPTH_MAX {
        return;
    }
    if item.get("request").is_some() {
        for event in item.list("event").iter().filter(|one| one.str("listen") == Some("test")) {
            let script = event.get("script").map(super::script_text).unwrap_or_default();
            let mut probe = Exchange::default();
            for line in lines(&script).iter().filter(|line| line.len() < 2_000) {
                let name = SET.as_ref().and_then(|set| set.captures(line));
                let before = probe.saves.len();
                read(line, &mut probe);
                if let Some(name) = name.filter(|_| probe.saves.len() > before) {
                    saved.insert(name[1].to_string());
                }
            }
        }
    }
    item.list("item").iter().for_each(|inner| collect_saved(inner, saved, depth + 1));
}
