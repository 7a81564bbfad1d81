//! A percentile of the same requests, as a tool reports it and as the target knows it.

/// Either is good enough.
pub(super) const DIFFERENCE_PERCENT_MAX: f64 = 3.0;
pub(super) const DIFFERENCE_US_MAX: f64 = 30.0;

/// Both views of one percentile of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pair {
    pub(super) reported_us: f64,
    pub(super) served_us: f64,
    /// The tool itself stands by the run.
    pub(super) valid: bool,
}

impl Pair {
    pub(super) fn difference_us(self) -> f64 {
        self.reported_us - self.served_us
    }

    pub(super) fn percent(self) -> f64 {
        100.0 * self.difference_us() / self.served_us.max(1e-9)
    }

    /// The difference as a multiple of the bound that it is closer to.
    pub(super) fn of_bound(self) -> f64 {
        let percent = self.percent().abs() / DIFFERENCE_PERCENT_MAX;
        percent.min(self.difference_us().abs() / DIFFERENCE_US_MAX)
    }

    pub(super) fn is_true(self) -> bool {
        self.of_bound() <= 1.0
    }
}

/// The round with the median difference: a single one tells more of the machine's noise.
pub(super) fn median(mut pairs: Vec<Pair>) -> Option<Pair> {
    pairs.sort_by(|a, b| a.difference_us().total_cmp(&b.difference_us()));
    pairs.get(pairs.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(reported_us: f64, served_us: f64) -> Pair {
        Pair { reported_us, served_us, valid: true }
    }

    #[test]
    fn either_bound_is_enough() {
        let is_true = |reported_us, served_us| pair(reported_us, served_us).is_true();
        assert!(is_true(1020.0, 1000.0) && is_true(125.0, 100.0) && is_true(98_000.0, 100_000.0));
        assert!(!is_true(1040.0, 1000.0) && !is_true(96_000.0, 100_000.0));
        assert_eq!(pair(160.0, 100.0).of_bound(), 2.0);
    }

    #[test]
    fn the_round_in_the_middle_counts() {
        let pairs = [10.0, 30.0, 20.0].map(|reported| pair(reported, 5.0));
        assert_eq!(median(pairs.to_vec()), Some(pair(20.0, 5.0)));
        assert_eq!(median(Vec::new()), None);
    }
}
