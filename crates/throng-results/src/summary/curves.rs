//! How a run went over its time, in a few points: what small curves are drawn from.

use throng_base::Said;
use throng_metrics::Unit;

/// As many as a line has room for.
pub const POINTS_MAX: usize = 40;

/// The points of the measured time, in equal steps. A gap is where nothing was measured, or too
/// little for the figure.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curves {
    /// Attempts that went well, per second.
    pub rate: Vec<Option<f64>>,
    /// Of the response times of all attempts, in nanoseconds.
    pub p99: Vec<Option<f64>>,
    /// Online, at most.
    pub users: Vec<Option<f64>>,
}

/// A figure over time, with what it is called.
pub(crate) struct Named<'a> {
    pub(crate) name: Said,
    pub(crate) values: &'a [Option<f64>],
    pub(crate) unit: Unit,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

impl Curves {
    /// Those that have a figure.
    pub(crate) fn named(&self) -> impl Iterator<Item = Named<'_>> {
        let all = [
            (say!("rate"), &self.rate, Unit::PerSecond),
            (say!("p99"), &self.p99, Unit::Nanoseconds),
            (say!("users"), &self.users, Unit::Number),
        ];
        all.into_iter().filter_map(|(name, values, unit)| {
            let known = || values.iter().flatten().copied();
            let (least, most) = (known().reduce(f64::min)?, known().reduce(f64::max)?);
            // Users who come and go within a second are at no end of one.
            if most == 0.0 && unit == Unit::Number {
                return None;
            }
            Some(Named { name, values, unit, least, most })
        })
    }
}
