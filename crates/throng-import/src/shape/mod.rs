//! Turns a recording into a scenario that looks hand-written. Each step is one module, and their
//! order matters: response values are found before the remaining secrets are hidden, and names are
//! assigned when all values are known.

mod accounts;
mod connections;
mod correlate;
mod forms;
mod headers;
mod names;
mod page;
mod pauses;
mod secrets;
mod selection;
mod targets;
mod unsaved;

use crate::model::Recording;
use crate::{Format, Options};

pub(crate) use accounts::FILE as ACCOUNTS_FILE;
pub(crate) use targets::Targets;

/// The contents of the scenario, for the summary.
pub(crate) struct Shaped {
    pub(crate) targets: Targets,
    pub(crate) saved: usize,
}

pub(crate) fn shape(recording: &mut Recording, format: Format, options: &Options) -> Shaped {
    if matches!(format, Format::Har) {
        pauses::insert(recording);
        selection::select(recording, options);
    }
    headers::clean(recording, format);
    let targets = targets::split(recording, options);
    connections::name(recording);
    let forms = forms::find(recording);
    let saved = match format {
        Format::Har => correlate::correlate(recording, &forms),
        _ => 0,
    };
    unsaved::replace(recording);
    secrets::hide(recording, &forms);
    if matches!(format, Format::Har) {
        accounts::take_out(recording, &forms, options);
    }
    names::give(recording);
    Shaped { targets, saved }
}
