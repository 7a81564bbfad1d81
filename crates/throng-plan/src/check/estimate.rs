//! A forecast in readable form. Closed loads depend on the response time of the service: two cases
//! are shown.

use std::time::Duration;

use throng_base::units::{format_count, format_duration};
use throng_load::{Assumed, Course, Forecast};
use throng_program::Program;

use crate::ANSWER_SECONDS;

/// The totals of all phases.
pub(super) struct Estimate {
    quick: Course,
    slow: Course,
    /// Requests, for a target of any speed and any random choices.
    most: f64,
    has_known_end: bool,
    /// Users that stay, and users that arrive.
    users: (u64, u64),
}

impl Estimate {
    /// The run ends when this many rows of one of these sources are used.
    pub(super) fn new(
        program: &Program,
        forecast: &Forecast<'_>,
        ending: &[(u16, u64)],
    ) -> Estimate {
        let course = |assumed| {
            let course = forecast.course(assumed);
            ending.iter().fold(course, |course, (source, rows)| {
                course.capped(&program.sessions_with(*source), *rows as f64)
            })
        };
        Estimate {
            quick: course(Assumed::mean(0.0)),
            slow: course(Assumed::mean(ANSWER_SECONDS)),
            most: course(Assumed::most()).requests(),
            has_known_end: forecast.has_known_end(),
            users: forecast.users(),
        }
    }

    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let slow = format_duration(Duration::from_secs_f64(ANSWER_SECONDS));
        let of = |course: &Course| (course.requests(), course.requests_peak());
        let ((quick, quick_peak), (held, held_peak)) = (of(&self.quick), of(&self.slow));
        if quick.is_finite() && (quick - held).abs() < 0.5 {
            lines.push(say!("{} requests, up to {}/s", figure(quick), figure(quick_peak)));
        } else {
            if quick.is_finite() {
                lines.push(say!(
                    "{} requests, up to {}/s, if every response is immediate",
                    figure(quick),
                    figure(quick_peak)
                ));
            } else {
                lines.push(say!("the request count depends on how fast the target responds"));
            }
            lines.push(say!(
                "{} requests, up to {}/s, if every response takes {slow}",
                figure(held),
                figure(held_peak)
            ));
        }
        if self.most.is_finite() && self.most - quick >= 0.5 {
            lines.push(say!(
                "at most {} requests, regardless of how fast the target responds",
                figure(self.most)
            ));
        }
        if !self.has_known_end {
            lines.push(say!(
                "at least one phase has no fixed duration, so the total duration is not known"
            ));
        }
        lines.push(match self.users {
            (users, 0) => say!("user.id from 1 to {}", format_count(users)),
            (users, arrivals) => {
                say!("user.id from 1 to about {}", format_count(users + arrivals))
            }
        });
        lines.into_iter().map(|line| line.spoken()).collect()
    }
}

/// A count that may be fractional.
pub(super) fn figure(count: f64) -> String {
    match count {
        count if count.is_infinite() => "∞".into(),
        count if count >= 100.0 || count == count.round() => format_count(count.round() as u64),
        count => format!("{count:.1}"),
    }
}

pub(super) fn seconds(seconds: f64) -> String {
    match Duration::try_from_secs_f64(seconds) {
        Ok(time) => format_duration(time),
        Err(_) => "∞".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short() {
        assert_eq!(figure(2.0), "2");
        assert_eq!(figure(2.25), "2.2");
        assert_eq!(figure(f64::INFINITY), "∞");
        assert_eq!(seconds(f64::INFINITY), "∞");
    }
}
