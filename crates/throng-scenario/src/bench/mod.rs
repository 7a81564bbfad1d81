//! Writes the scenario of a `bench` command line: readable, commented, and compiled like a
//! handwritten one.

use crate::builtin::ALL;
use crate::writer;

pub use crate::builtin::to_reflect;
pub use crate::native::schemes_with;
pub use crate::writer::{
    Bench, BenchBody, BenchRoute, BenchShape, BenchStage, BenchUntil, BenchUrl, FILL_RATE,
    FormContent, FormPart, TIME, URLS_MAX, parse_rates, parse_urls, read_urls, unescape,
    without_effect, write_requests,
};

/// The scenario as YAML.
pub fn write(bench: &Bench) -> String {
    writer::write(bench, |verbs| {
        let own = ALL.iter().find(|one| verbs.contains(&one.verb));
        own.map(|one| one.session)
    })
}

#[cfg(test)]
mod tests;
