//! The findings in readable form: problems first, with reason and fix, then a line for each of the
//! others.

use std::fmt::Write as _;

use throng_base::columns::{left, wrap};
use throng_base::units::format_count;
use throng_host::doctor::{Applied, Examination, Finding, Fix, Needs, Role, Severity};
use throng_results::terminal::Style;
use unicode_width::UnicodeWidthStr as _;

/// The indentation of text below its heading.
const INDENT: usize = 4;

pub fn page(
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
            (Role::Target, _) => say!("can this host serve {users} users?"),
            (Role::Generator, true) => {
                say!("can this host run {users} users and the target?")
            }
            (Role::Generator, false) => say!("can this host run {users} users?"),
        };
        format!("{}\n\n", self.style.bold(&text.spoken()))
    }

    fn applied(&self, out: &mut String, applied: &[Applied]) {
        if applied.is_empty() {
            let _ = writeln!(out, "{}\n", tell!("no kernel setting needed to be changed"));
            return;
        }
        for Applied { key, before, value, error } in applied {
            let before = before.as_deref().unwrap_or("–").replace('\t', " ");
            let line = match error {
                None => say!("set {key} from {before} to {value}"),
                Some(error) => {
                    say!("could not set {key} to {value}: {error}")
                }
            };
            let _ = writeln!(out, "{}", line.spoken());
        }
        out.push('\n');
    }

    fn problem(&self, out: &mut String, finding: &Finding) {
        let (word, code) = match finding.severity {
            Severity::Unfit => (say!("fail"), "1;31"),
            _ => (say!("warn"), "1;33"),
        };
        let head = self.style.ink(code, &word.spoken());
        let (title, value) = (finding.title.spoken(), finding.value.spoken());
        let rule = self.style.dim(&format!("[{}]", finding.rule));
        let _ = writeln!(out, "{head}: {}: {value} {rule}", self.style.bold(&title));
        let pad = " ".repeat(INDENT);
        if !finding.needed.is_empty() {
            let needed = say!("needed: {}", finding.needed);
            let _ = writeln!(out, "{pad}{}", needed.spoken());
        }
        if let Some(ceiling) = finding.ceiling {
            let text = say!("enough for {} users", format_count(ceiling));
            let _ = writeln!(out, "{pad}{}", text.spoken());
        }
        self.text(out, &finding.detail.spoken());
        let now: Vec<String> = finding.fixes.iter().filter_map(Fix::now).collect();
        let for_good: Vec<String> = finding.fixes.iter().flat_map(Fix::for_good).collect();
        self.list(out, &tell!("now:"), &now);
        self.list(out, &tell!("permanently:"), &for_good);
        for advice in finding.fixes.iter().filter_map(Fix::advice) {
            self.text(out, &advice.spoken());
        }
        out.push('\n');
    }

    /// Commands are on separate lines, to be copied.
    fn list(&self, out: &mut String, label: &str, lines: &[String]) {
        if lines.is_empty() {
            return;
        }
        let _ = writeln!(out, "{}{}", " ".repeat(INDENT), self.style.dim(label));
        for line in lines {
            let _ = writeln!(out, "{}{}", " ".repeat(INDENT + 2), self.style.ink("36", line));
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
        let word = |finding: &Finding| match finding.severity {
            Severity::Fit => tell!("pass"),
            _ => tell!("unknown"),
        };
        let titles = findings.iter().map(|finding| finding.title.spoken().width());
        let titles = titles.max().unwrap_or(0);
        let words = findings.iter().map(|finding| word(finding).width()).max().unwrap_or(0);
        for finding in findings {
            let mut parts = Vec::new();
            match finding.value.is_empty() {
                true => parts.push(tell!("cannot be read")),
                false => parts.push(finding.value.spoken()),
            }
            if !finding.needed.is_empty() {
                parts.push(tell!("needed: {}", &finding.needed));
            }
            if let Some(ceiling) = finding.ceiling.filter(|ceiling| *ceiling < u64::MAX / 2) {
                let text = say!("enough for {} users", format_count(ceiling));
                parts.push(text.spoken());
            }
            let code = if finding.severity == Severity::Fit { "32" } else { "2" };
            let word = self.style.ink(code, &left(&word(finding), words));
            let title = left(&finding.title.spoken(), titles);
            let _ = writeln!(out, "{word}  {title}  {}", parts.join(" · "));
        }
        if !findings.is_empty() {
            out.push('\n');
        }
    }

    fn verdict(&self, out: &mut String, needs: &Needs, examination: &Examination) {
        let users = format_count(needs.users);
        let text = match examination.is_fit() {
            true => say!("this host meets the requirements for {users} users"),
            false => say!("this host does not meet the requirements for {users} users"),
        };
        let code = if examination.is_fit() { "1;32" } else { "1;31" };
        let _ = writeln!(out, "{}", self.style.ink(code, &text.spoken()));
        if let Some(next) = examination.next_limit() {
            let ceiling = format_count(next.ceiling.unwrap_or_default());
            let next = &next.title;
            let text = say!("it supports up to {ceiling} users; the limit is `{}`", next);
            let _ = writeln!(out, "{}", text.spoken());
        }
    }
}
