//! `generated > 70%`: the share of its load that a run generates while it yields to other programs.

use throng_base::Said;
use throng_metrics::{Measure, Subject};

use super::ThresholdsReader;

pub(super) const WORD: &str = "generated";

const HELP: Said = say!("write `generated > 70%`");

pub(super) fn read(
    reader: &mut ThresholdsReader<'_, '_, '_>,
    value: &str,
    is_share: bool,
) -> Option<(Subject, Measure)> {
    if !is_share {
        let message = say!("`generated` is a share of the load");
        return reader.fail("bad-threshold", message, value, HELP);
    }
    Some((Subject::Generated, Measure::ShareOfWhole))
}

/// Generators can yield at any time, so the share is known only for the whole run.
pub(super) fn refuse_part<T>(reader: &mut ThresholdsReader<'_, '_, '_>, text: &str) -> Option<T> {
    reader.fail("bad-threshold", say!("`generated` covers the whole run"), text, HELP)
}

pub(super) fn refuse_rule<T>(reader: &mut ThresholdsReader<'_, '_, '_>, text: &str) -> Option<T> {
    let help = say!("write it as a threshold: `generated > 70%`");
    reader.fail("bad-threshold", say!("`generated` cannot end a run"), text, help)
}
