//! Steps that are chosen by their labels: `http{region:east,tier:gold}`; without a name all that
//! are attempts.

use throng_metrics::Subject;

use super::Reader;
use crate::labels::written;

/// A subject with a selector behind it.
pub(super) struct Chosen<'t> {
    /// A step or a kind of them; empty: all.
    name: &'t str,
    /// Each has to be there.
    labels: Vec<(&'t str, &'t str)>,
}

impl<'t> Chosen<'t> {
    /// None where there is no selector. One that is not understood chooses by a label without a
    /// name, which no step has.
    pub(super) fn of(subject: &'t str) -> Option<Chosen<'t>> {
        let (name, rest) = subject.split_once('{')?;
        let inside = rest.trim_end().strip_suffix('}')?;
        let labels = inside.split(',').map(|label| {
            let (name, value) = label.split_once([':', '=']).unwrap_or(("", label));
            (name.trim(), value.trim())
        });
        Some(Chosen { name: name.trim(), labels: labels.collect() })
    }
}

impl Reader<'_, '_, '_> {
    /// The steps of this name that have these labels.
    pub(super) fn chosen(&self, subject: &str) -> Option<Subject> {
        let chosen = Chosen::of(subject)?;
        let Subject::Steps(mut ids) = self.subject(chosen.name)? else { return None };
        let has_all = |step: usize| {
            let labels = &self.names.steps[step].labels;
            chosen
                .labels
                .iter()
                .all(|(name, value)| labels.get(*name).is_some_and(|it| it == value))
        };
        ids.retain(|id| has_all(id.index()));
        (!ids.is_empty()).then_some(Subject::Steps(ids))
    }

    /// Says which part of it no step has.
    pub(super) fn unknown_choice<T>(&mut self, chosen: &Chosen<'_>) -> Option<T> {
        match self.subject(chosen.name) {
            Some(Subject::Steps(_)) => {}
            Some(_) => {
                let help = say!("use labels only with steps, as in `http{{tier:gold}} p99 < 50ms`");
                return self.fail(
                    "bad-threshold",
                    say!("only steps have labels"),
                    chosen.name,
                    help,
                );
            }
            None => return self.unknown_step(chosen.name),
        }
        let steps = self.names.steps;
        let mut all: Vec<String> =
            steps.iter().flat_map(|it| it.labels.iter().map(written)).collect();
        all.sort_unstable();
        all.dedup();
        let asked = chosen.labels.iter().map(|(name, value)| match name.is_empty() {
            true => (*value).to_string(),
            false => format!("{name}:{value}"),
        });
        let asked: Vec<String> = asked.collect();
        if let Some(unknown) = asked.iter().find(|label| !all.contains(label)) {
            return self.unknown(say!("label"), unknown, all.iter().map(String::as_str));
        }
        let help = say!("each label exists, but on different steps");
        let labels = asked.join(",");
        self.fail("bad-threshold", say!("no step has all of these labels"), &labels, help)
    }
}
