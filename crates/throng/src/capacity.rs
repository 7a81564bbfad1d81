//! `throng capacity`: a run whose load a search sets, level by level, until it knows the highest at
//! which the thresholds are met.

use throng_run::capacity::search;

use crate::Ended;
use crate::arguments::CapacityArguments;
use crate::run::with_run;

pub(crate) fn capacity(arguments: &CapacityArguments) -> Ended {
    with_run(&arguments.run, |conduct| search(conduct, &arguments.search.options()))
}
