//! Which instance behind an address responded, if the scenario names the response header with its
//! name.

use std::time::Duration;

use throng_metrics::{INSTANCES_MAX, InstanceInterval, Keyed as _};

use crate::recorder::spent::nanos;

/// Longer names are truncated.
const NAME_BYTES_MAX: usize = 64;

/// The responses of one interval by instance. A row keeps its index for the whole run, so that an
/// exchange only stores that.
#[derive(Default)]
pub(crate) struct Instances(Vec<InstanceInterval>);

impl Instances {
    /// The row of the instance that a response names.
    pub(crate) fn row(&mut self, target: u16, name: &[u8]) -> u16 {
        let name = String::from_utf8_lossy(&name[..name.len().min(NAME_BYTES_MAX)]);
        let row = self.find(target, &name).unwrap_or_else(|| {
            let is_full = self.0.len() >= INSTANCES_MAX;
            let name = if is_full { InstanceInterval::OTHERS } else { &name };
            self.find(target, name).unwrap_or_else(|| {
                self.0.push(empty(target, name.to_string()));
                self.0.len() - 1
            })
        });
        row as u16
    }

    fn find(&self, target: u16, name: &str) -> Option<usize> {
        self.0.iter().position(|row| row.target == target && row.name == name)
    }

    /// A response of an instance is complete.
    pub(crate) fn said(&mut self, row: u16, latency: Option<Duration>, ok: bool) {
        let Some(row) = self.0.get_mut(usize::from(row)) else { return };
        row.count += 1;
        row.failed += u64::from(!ok);
        if let Some(latency) = latency {
            row.latency.record(nanos(latency));
        }
    }

    /// Hands over the responses since the last call.
    pub(crate) fn take(&mut self) -> Vec<InstanceInterval> {
        let rows = self.0.iter_mut().filter(|row| row.count > 0);
        let take = |row: &mut InstanceInterval| {
            let next = empty(row.target, row.name.clone());
            std::mem::replace(row, next)
        };
        let mut taken: Vec<InstanceInterval> = rows.map(take).collect();
        taken.sort_by(|one, other| one.key().cmp(&other.key()));
        taken
    }
}

fn empty(target: u16, name: String) -> InstanceInterval {
    InstanceInterval { target, name, ..InstanceInterval::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_are_counted_by_instance_with_a_limited_number_of_names() {
        let mut instances = Instances::default();
        let a = instances.row(0, b"a");
        let b = instances.row(0, b"b");
        assert_eq!((a, instances.row(0, b"a")), (0, 0));
        assert_ne!(instances.row(1, b"a"), a);
        instances.said(b, Some(Duration::from_millis(2)), true);
        instances.said(a, None, false);
        let told = |taken: Vec<InstanceInterval>| -> Vec<(String, u64, u64, u64)> {
            let one =
                |row: InstanceInterval| (row.name, row.count, row.failed, row.latency.count());
            taken.into_iter().map(one).collect()
        };
        let both = [("a".to_string(), 1, 1, 0), ("b".to_string(), 1, 0, 1)];
        assert_eq!(told(instances.take()), both);
        assert_eq!(told(instances.take()), []);
        // A row keeps its index; of a thousand names, a few have a row of their own.
        assert_eq!(instances.row(0, b"b"), b);
        let rows: Vec<u16> =
            (0..1_000).map(|number| instances.row(0, format!("i{number}").as_bytes())).collect();
        assert!(usize::from(*rows.iter().max().unwrap()) <= INSTANCES_MAX);
        rows.iter().for_each(|row| instances.said(*row, None, true));
        let taken = told(instances.take());
        assert_eq!(taken.iter().map(|row| row.1).sum::<u64>(), 1_000);
        assert!(taken.iter().any(|row| row.0 == InstanceInterval::OTHERS && row.1 > 900));
        let long = instances.row(0, &[b'x'; 1_000]);
        assert_eq!(long, instances.row(0, &[b'x'; 2_000]), "as long as others, or the others");
    }
}
