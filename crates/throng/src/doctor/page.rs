//! What the rules found, for people: what is wrong first, with why and cure, then a line for each
//! of the others.

use std::fmt::Write as _;

use throng_base::columns::{left, wrap};
use throng_base::language::say;
use throng_base::units::format_count;
use throng_host::doctor::{Applied, Examination, Finding, Fix, Needs, Role, Severity};
use throng_results::terminal::Style;
use unicode_width::UnicodeWidthStr as _;

/// Text is set in so far below its heading.
const INDENT: usize = 4;

pub(super) fn page(
    needs: &Needs,
    examination: &Examination,
    applied: &[Applied],
    fixed: bool,
    style: &Style,
) -> String {
    let page = Page { style };
    let mut out = page.head(needs);
    if fixed {
        page.applied(&mut out, applied);
    }
    let [mut bad, mut good] = [Vec::new(), Vec::new()];
    for finding in &examination.findings {
        match finding.severity {
            Severity::Unfit | Severity::Warn => bad.push(finding),
            Severity::Unknown | Severity::Fit => good.push(finding),
        }
    }
    bad.iter().for_each(|finding| page.problem(&mut out, finding));
    page.table(&mut out, &good);
    page.verdict(&mut out, needs, examination);
    out
}

struct Page<'s> {
    style: &'s Style,
}

impl Page<'_> {
    fn head(&self, needs: &Needs) -> String {
        let users = format_count(needs.users);
        let text = match (needs.role, needs.is_local()) {
            (Role::Target, _) => format!("can this host serve {users} users?"),
            (Role::Generator, true) => {
                format!("can this host run {users} users, and the target beside them?")
            }
            (Role::Generator, false) => format!("can this host run {users} users?"),
        };
        format!("{}\n\n", self.ink("1", &say(&text)))
    }

    // sentences
    fn applied(&self, out: &mut String, applied: &[Applied]) {
        if applied.is_empty() {
            let _ = writeln!(out, "{}\n", say("no setting of the kernel had to be changed"));
            return;
        }
        for Applied { key, before, value, error } in applied {
            let before = before.as_deref().unwrap_or("–").replace('\t', " ");
            let line = match error {
                None => format!("set {key} from {before} to {value}"),
                Some(error) => format!("could not set {key} to {value}: {error}"),
            };
            let _ = writeln!(out, "{}", say(&line));
        }
        out.push('\n');
    }

    fn problem(&self, out: &mut String, finding: &Finding) {
        // words
        let (word, code) = match finding.severity {
            Severity::Unfit => ("not fit", "1;31"),
            _ => ("mind", "1;33"),
        };
        let head = self.ink(code, &say(word));
        let (title, value) = (say(finding.title), say(&finding.value));
        let rule = self.ink("2", &format!("[{}]", finding.rule));
        let _ = writeln!(out, "{head}: {}: {value} {rule}", self.ink("1", &title));
        let pad = " ".repeat(INDENT);
        if !finding.needed.is_empty() {
            let needed = format!("needed: {}", say(&finding.needed));
            let _ = writeln!(out, "{pad}{}", say(&needed));
        }
        if let Some(ceiling) = finding.ceiling {
            let text = format!("enough for {} users", format_count(ceiling));
            let _ = writeln!(out, "{pad}{}", say(&text));
        }
        self.text(out, &say(&finding.detail));
        let now: Vec<String> = finding.fixes.iter().filter_map(Fix::now).collect();
        let for_good: Vec<String> = finding.fixes.iter().flat_map(Fix::for_good).collect();
        self.list(out, &say("now:"), &now);
        self.list(out, &say("for good:"), &for_good);
        for advice in finding.fixes.iter().filter_map(Fix::advice) {
            self.text(out, &say(advice));
        }
        out.push('\n');
    }

    /// Commands stand alone on their lines, to be copied.
    fn list(&self, out: &mut String, label: &str, lines: &[String]) {
        if lines.is_empty() {
            return;
        }
        let _ = writeln!(out, "{}{}", " ".repeat(INDENT), self.ink("2", label));
        for line in lines {
            let _ = writeln!(out, "{}{}", " ".repeat(INDENT + 2), self.ink("36", line));
        }
    }

    /// A paragraph.
    fn text(&self, out: &mut String, text: &str) {
        let room = self.style.width.clamp(Style::WIDTH_MIN, 100).saturating_sub(INDENT);
        for line in wrap(text, room) {
            let _ = writeln!(out, "{}{line}", " ".repeat(INDENT));
        }
    }

    fn table(&self, out: &mut String, findings: &[&Finding]) {
        // words
        let word = |finding: &Finding| match finding.severity {
            Severity::Fit => say("fine"),
            _ => say("unknown"),
        };
        let titles = findings.iter().map(|finding| say(finding.title).width());
        let titles = titles.max().unwrap_or(0);
        let words = findings.iter().map(|finding| word(finding).width()).max().unwrap_or(0);
        for finding in findings {
            let mut parts = Vec::new();
            match finding.value.is_empty() {
                true => parts.push(say("cannot be read").into_owned()),
                false => parts.push(say(&finding.value).into_owned()),
            }
            if !finding.needed.is_empty() {
                parts.push(say(&format!("needed: {}", say(&finding.needed))).into_owned());
            }
            if let Some(ceiling) = finding.ceiling.filter(|ceiling| *ceiling < u64::MAX / 2) {
                let text = format!("enough for {} users", format_count(ceiling));
                parts.push(say(&text).into_owned());
            }
            let code = if finding.severity == Severity::Fit { "32" } else { "2" };
            let word = self.ink(code, &left(&word(finding), words));
            let title = left(&say(finding.title), titles);
            let _ = writeln!(out, "{word}  {title}  {}", parts.join(" · "));
        }
        if !findings.is_empty() {
            out.push('\n');
        }
    }

    // sentences
    fn verdict(&self, out: &mut String, needs: &Needs, examination: &Examination) {
        let users = format_count(needs.users);
        let text = match examination.is_fit() {
            true => format!("this host is fit for {users} users"),
            false => format!("this host is not fit for {users} users"),
        };
        let code = if examination.is_fit() { "1;32" } else { "1;31" };
        let _ = writeln!(out, "{}", self.ink(code, &say(&text)));
        if let Some(next) = examination.next_limit() {
            let ceiling = format_count(next.ceiling.unwrap_or_default());
            let next = next.title;
            let text = format!("it can hold {ceiling} users; the next limit is `{}`", say(next));
            let _ = writeln!(out, "{}", say(&text));
        }
    }

    fn ink(&self, code: &str, text: &str) -> String {
        match self.style.colour {
            true => format!("\x1b[{code}m{text}\x1b[0m"),
            false => text.to_string(),
        }
    }
}
