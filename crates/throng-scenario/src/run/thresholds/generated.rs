//! `generated > 70%`: how much of its load a run generates that yields to other programs.

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

/// Machines yield at any time: it is known of the whole run only.
pub(super) fn refuse_part<T>(reader: &mut ThresholdsReader<'_, '_, '_>, text: &str) -> Option<T> {
    reader.fail("bad-threshold", say!("`generated` covers the whole run"), text, HELP)
}

pub(super) fn refuse_rule<T>(reader: &mut ThresholdsReader<'_, '_, '_>, text: &str) -> Option<T> {
    let help = say!("write it as a threshold: `generated > 70%`");
    reader.fail("bad-threshold", say!("`generated` cannot end a run"), text, help)
}
