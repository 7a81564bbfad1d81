//! The course of a run in a few points, for sparklines.

use throng_base::Said;
use throng_metrics::Unit;

/// Maximum number of points in a line.
pub const POINTS_MAX: usize = 40;

/// The points of the measured time in equal steps. A gap means that nothing, or too little for the
/// value, was measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curves {
    /// Successful attempts per second.
    pub rate: Vec<Option<f64>>,
    /// Of the response times of all attempts, in nanoseconds.
    pub p99: Vec<Option<f64>>,
    /// Maximum number online.
    pub users: Vec<Option<f64>>,
}

/// A named value over time.
pub(crate) struct Named<'a> {
    pub(crate) name: Said,
    pub(crate) values: &'a [Option<f64>],
    pub(crate) unit: Unit,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

impl Curves {
    /// The curves that have values.
    pub(crate) fn named(&self) -> impl Iterator<Item = Named<'_>> {
        let all = [
            (say!("rate"), &self.rate, Unit::PerSecond),
            (say!("p99"), &self.p99, Unit::Nanoseconds),
            (say!("users"), &self.users, Unit::Number),
        ];
        all.into_iter().filter_map(|(name, values, unit)| {
            let known = || values.iter().flatten().copied();
            let (least, most) = (known().reduce(f64::min)?, known().reduce(f64::max)?);
            // Users that start and leave within a second are present at the end of none.
            if most == 0.0 && unit == Unit::Number {
                return None;
            }
            Some(Named { name, values, unit, least, most })
        })
    }
}
