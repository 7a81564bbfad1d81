//! The Chinese renderings of a page's sentences. The summary contains them in English, as `--json`
//! does; the reader can switch the language of the page.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use throng_base::language::Language;
use throng_base::{Said, Severity};
use throng_metrics::{Cause, Stage};

use crate::event::Event;
use crate::summary::{Summary, Validity};
use crate::verdict::{headline, judge};

/// By English text; sentences that are the same in both languages are omitted.
#[derive(Clone, Debug, Default)]
pub(super) struct Renderings(BTreeMap<String, String>);

impl Renderings {
    /// Of all sentences in the summary.
    pub(super) fn of(summary: &Summary) -> Renderings {
        let mut all = Renderings::default();
        all.add(&headline(summary).text);
        judge(summary).1.iter().for_each(|reason| all.add(reason));
        if let Validity::Invalid { reasons } = &summary.verdict.validity {
            reasons.iter().for_each(|reason| all.add(&reason.text()));
        }
        for told in summary.diagnostics() {
            if told.severity == Severity::Warning {
                all.add(&told.message);
                told.notes.iter().for_each(|note| all.add(note));
            }
        }
        summary.capacity.iter().for_each(|found| all.add(&found.sentence()));
        all.of_findings(summary);
        all.of_rows(summary);
        all.of_events(summary);
        all
    }

    /// Of these sentences.
    pub(super) fn of_all<'a>(sentences: impl IntoIterator<Item = &'a Said>) -> Renderings {
        let mut all = Renderings::default();
        sentences.into_iter().for_each(|said| all.add(said));
        all
    }

    /// Of the findings.
    fn of_findings(&mut self, summary: &Summary) {
        let judged = &summary.verdict.why;
        judged.gave_way.iter().for_each(|it| self.add(&it.text));
        let measures = judged.stability.iter().flat_map(|found| &found.measures);
        measures.for_each(|it| self.add(&it.text()));
        for found in &judged.findings {
            self.add(&found.code.title());
            self.add(&found.text);
            self.add(&found.next);
            found.evidence.iter().for_each(|figure| self.add(&figure.text));
            for rival in &found.excluded {
                self.add(&rival.cause);
                self.add(&rival.how);
            }
        }
    }

    /// Of errors of steps, stages, messages and monitors.
    fn of_rows(&mut self, summary: &Summary) {
        for row in &summary.steps.errors {
            self.cause(row.cause);
            self.add(&row.blame.text());
            row.example.iter().for_each(|example| self.add(&example.detail));
        }
        for row in &summary.connections.stages {
            self.stage(row.stage);
            row.errors.iter().for_each(|(cause, _)| self.cause(*cause));
        }
        summary.steps.failures.iter().for_each(|row| self.add(&row.detail));
        let examples = summary.messages.deliveries.iter().flat_map(|row| &row.examples);
        examples.for_each(|(_, example)| self.add(&example.detail));
        summary.monitors.iter().filter_map(|it| it.trouble.as_ref()).for_each(|it| self.add(it));
    }

    /// Of the events in the run.
    fn of_events(&mut self, summary: &Summary) {
        summary.info.changes.iter().for_each(|change| self.add(change));
        summary.events.stopped.iter().for_each(|stopped| self.add(&stopped.reason));
        let holds = summary.growth.held.iter().chain(&summary.growth.given_up);
        holds.for_each(|hold| self.add(&hold.detail));
        for row in &summary.events.actions {
            self.add(&row.status.text());
            self.add(&row.detail);
            row.paragraph().iter().for_each(|text| self.add(text));
        }
        summary.events.back_offs.first.iter().for_each(|step| self.add(&step.detail));
        let failures = summary.events.once.iter().filter_map(|once| once.failure.as_ref());
        failures.for_each(|failure| self.add(&failure.detail));
    }

    /// Of an event during the run, or on the time axis.
    pub(super) fn event(&mut self, event: &Event) {
        sentence(event).into_iter().for_each(|said| self.add(said));
    }

    pub(super) fn cause(&mut self, cause: Cause) {
        self.add(&cause.text());
        self.add(&cause.blame().text());
    }

    pub(super) fn stage(&mut self, stage: Stage) {
        self.add(&stage.text());
    }

    pub(super) fn extend(&mut self, others: Renderings) {
        self.0.extend(others.0);
    }

    fn add(&mut self, said: &Said) {
        let (english, chinese) = (said.english(), said.render(Language::Chinese));
        if english != chinese {
            self.0.insert(english, chinese);
        }
    }

    pub(super) fn json(&self) -> Value {
        json!(self.0)
    }
}

/// The sentence of an event, if it has one.
pub(super) fn sentence(event: &Event) -> Option<&Said> {
    match event {
        Event::Stopped { reason, .. } => Some(reason),
        Event::Held { detail, .. }
        | Event::GrowthGivenUp { detail, .. }
        | Event::BackedOff { detail, .. }
        | Event::MachineLost { detail, .. } => Some(detail),
        _ => None,
    }
}
