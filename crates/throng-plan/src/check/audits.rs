//! The audits of a scenario: what is compared, when, and with which source.

use std::fmt::Write as _;

use throng_base::clean;
use throng_base::units::write_duration;
use throng_program::event::written;
use throng_program::{Audit, AuditWhat, Books, RedisKind, Source, View};

use super::{ROWS_SHOWN_MAX, Report};

impl Report<'_> {
    pub(super) fn audits(&self) -> String {
        let audits = &self.program.audits;
        if audits.is_empty() {
            return String::new();
        }
        let mut out = format!("{}\n", self.style.bold(&tell!("audits")));
        for audit in audits.iter().take(ROWS_SHOWN_MAX) {
            let _ = writeln!(out, "  {}  {}", clean(&audit.name), self.told(&times(audit)));
            match &audit.what {
                AuditWhat::Presence { views, .. } => {
                    for view in views {
                        let asked = self.style.dim(&self.told(&asked(view)));
                        let _ = writeln!(out, "    {}  {asked}", clean(&view.name));
                    }
                }
                AuditWhat::Count { books, step_name, .. } => {
                    let counted = self.told(&counted(books));
                    let text = format!("{counted} = ok(\"{}\")", clean(step_name));
                    let _ = writeln!(out, "    {}", self.style.dim(&text));
                }
            }
        }
        self.more(&mut out, audits.len());
        if audits.iter().any(|audit| audit.commands().next().is_some()) {
            let text = tell!("commands are executed only with `--allow-commands`");
            let _ = writeln!(out, "  {}", self.style.dim(&text));
        }
        out
    }
}

fn times(audit: &Audit) -> String {
    let mut times = Vec::new();
    if let Some(every) = audit.every {
        times.push(tell!("every {}", write_duration(every)));
    }
    times.extend(audit.at.iter().map(|at| tell!("at {}", write_duration(*at))));
    if audit.at_end {
        times.push(tell!("at the end"));
    }
    if times.is_empty() {
        times.push(tell!("by an event"));
    }
    times.join(", ")
}

fn asked(view: &View) -> String {
    match &view.source {
        Source::Redis { kind, .. } => match kind {
            RedisKind::Scan => format!("redis: scan {}", view.names.pattern()),
            RedisKind::Mget => format!("redis: mget {}", view.names.pattern()),
            RedisKind::Set { key } => format!("redis: set {key}"),
            RedisKind::SortedSet { key, .. } => format!("redis: sorted_set {key}"),
        },
        Source::Http(http) => format!("http: {}", http.urls.join(", ")),
        Source::Run(command) => format!("run: {}", written(command)),
    }
}

fn counted(books: &Books) -> String {
    match books {
        Books::Redis { command, .. } => format!("redis: {}", command.join(" ")),
        Books::Http { url, .. } => format!("http: {url}"),
        Books::Run(command) => format!("run: {}", written(command)),
    }
}
