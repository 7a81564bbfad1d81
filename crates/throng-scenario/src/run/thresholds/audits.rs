//! Figures of audits: `audit presence false_online = 0`, `audit presence.redis agree > 99.9%`,
//! `audit presence time_to_agree p99 < 5s`, `audit orders off = 0`.

use throng_base::Said;
use throng_metrics::audit::AuditFigure;
use throng_metrics::{Measure, Subject};

use super::ThresholdsReader;
use crate::words::shorten;

const HELP: Said = say!(
    "write `audit NAME false_online = 0`, `audit NAME.VIEW agree > 99.9%`, `audit NAME \
     time_to_agree p99 < 5s` or `audit NAME off = 0`"
);

impl ThresholdsReader<'_, '_, '_> {
    /// The text after `audit`.
    pub(super) fn audit(&mut self, left: &str, is_share: bool) -> Option<(Subject, Measure)> {
        let (place, rest) = left.split_once(char::is_whitespace).unwrap_or((left, ""));
        let (name, view) = match place.split_once('.') {
            Some((name, view)) => (name, Some(view)),
            None => (place, None),
        };
        let audits = self.names.audits;
        let Some(audit) = audits.iter().position(|audit| audit.name == name) else {
            // If an earlier mistake hides the audits, nothing is reported.
            if !self.names.complete {
                return None;
            }
            let names = audits.iter().map(|audit| audit.name.as_str());
            return self.unknown(say!("audit"), name, names);
        };
        let views = audits[audit].views();
        let view = match view {
            None => None,
            Some(view) => match views.iter().position(|it| it.name == view) {
                Some(index) => Some(index as u16),
                None => {
                    let names = views.iter().map(|it| it.name.as_str());
                    return self.unknown(say!("view"), view, names);
                }
            },
        };
        let (figure, measure) = self.audit_figure(rest.trim(), is_share)?;
        if (figure == AuditFigure::Off) != views.is_empty() {
            // The views of an audit with mistakes are unknown.
            if !self.names.complete {
                return None;
            }
            let message = say!("the audit `{}` does not have this metric", shorten(name));
            return self.fail("bad-threshold", message, rest, HELP);
        }
        Some((Subject::Audit { audit: audit as u16, view, figure }, measure))
    }

    fn audit_figure(&mut self, rest: &str, is_share: bool) -> Option<(AuditFigure, Measure)> {
        let (word, measure) = match rest.split_once(char::is_whitespace) {
            Some((word, measure)) => (word, Some(measure.trim())),
            None => (rest, None),
        };
        let all = AuditFigure::COUNTS.iter();
        let figure = all.chain(&[AuditFigure::TimeToAgree, AuditFigure::Off]);
        let figure = figure.copied().find(|figure| figure.word() == word);
        let measured = match (figure, measure) {
            (Some(AuditFigure::TimeToAgree), Some(measure)) => super::measure(measure, false)
                .filter(|it| {
                    use Measure::{Max, Mean, Min, Quantile};
                    matches!(it, Quantile(_) | Mean | Min | Max)
                }),
            (Some(AuditFigure::TimeToAgree) | None, _) => None,
            (Some(AuditFigure::Off), None) if is_share => None,
            (Some(_), None) if is_share => Some(Measure::ShareOfWhole),
            (Some(_), None) => Some(Measure::Count),
            (Some(_), Some(_)) => None,
        };
        match figure.zip(measured) {
            Some(found) => Some(found),
            None => {
                let message = say!("this is not an audit metric");
                self.fail("bad-threshold", message, rest, HELP)
            }
        }
    }
}
