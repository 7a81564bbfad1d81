//! Lasting changes in a series of runs: a run from which on a value differs.
//!
//! Each run is a point. The series is split where both sides differ most by Student's t, and each
//! side is then split in the same way. If no split is significant, a stretch that differs from all
//! around it is searched (circular binary segmentation; Olshen, Venkatraman and others, 2004). The
//! variance is that between similar runs, and at least the noise within them. A split must remain
//! significant after correction for all tests of all values (Bonferroni).

use throng_metrics::Quantity;

use super::{CONFIDENCE, matters_min};

/// Minimum number of runs on each side: a single different run is not a lasting change.
const SIDE_RUNS_MIN: usize = 2;
/// Maximum number of runs, starting with the newest: the work grows with its square.
const RUNS_MAX: usize = 1_000;
/// Values that are examined.
pub(super) const SHIFTING: [Quantity; 5] = [
    Quantity::Rate,
    Quantity::Failed,
    Quantity::Quantile(0.5),
    Quantity::Quantile(0.95),
    Quantity::Quantile(0.99),
];

/// A lasting change of a value.
#[derive(Clone, Debug, PartialEq)]
pub struct Shift {
    /// Index of the first run with the new value.
    pub since: usize,
    pub measure: Quantity,
    /// Mean of the runs since the previous shift, and of those from this one on.
    pub before: f64,
    pub after: f64,
    /// Relative to the value before; a difference for error shares.
    pub by: f64,
}

impl Shift {
    pub fn is_better(&self) -> bool {
        self.measure.is_better(self.by)
    }
}

/// The value of one run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    /// Index in the history.
    pub(super) run: usize,
    pub(super) value: f64,
    /// The standard error by the noise between its seconds.
    pub(super) error: f64,
}

/// The shifts of one value, in the order of time.
pub(super) fn shifts(measure: Quantity, points: &[Point]) -> Vec<Shift> {
    let row = Row::new(measure, &points[points.len().saturating_sub(RUNS_MAX)..]);
    let mut cuts = Vec::new();
    row.cut(0, row.runs.len(), &mut cuts);
    cuts.sort_unstable();
    let ends = |at: usize| {
        let before = if at == 0 { 0 } else { cuts[at - 1] };
        (before, cuts[at], cuts.get(at + 1).copied().unwrap_or(row.runs.len()))
    };
    let told = (0..cuts.len()).map(|at| {
        let (start, cut, end) = ends(at);
        let (before, after) = (row.mean(start, cut), row.mean(cut, end));
        let by = row.change(after - before);
        let plain = |mean: f64| if row.by_points { mean } else { mean.exp() };
        let (before, after) = (plain(before), plain(after));
        Shift { since: row.runs[cut], measure, before, after, by }
    });
    told.filter(|shift| shift.by.abs() >= matters_min(measure)).collect()
}

/// Prefix sums, so that any stretch is summed up in constant time.
struct Row {
    runs: Vec<usize>,
    /// Error shares are compared by difference, everything else by its logarithm.
    by_points: bool,
    values: Vec<f64>,
    squares: Vec<f64>,
    errors: Vec<f64>,
}

impl Row {
    fn new(measure: Quantity, points: &[Point]) -> Row {
        let by_points = measure.is_by_points();
        let known = points.iter().filter(|point| by_points || point.value > 0.0);
        let mut row = Row {
            runs: Vec::new(),
            by_points,
            values: vec![0.0],
            squares: vec![0.0],
            errors: vec![0.0],
        };
        for point in known {
            let (value, error) = match by_points {
                true => (point.value, point.error),
                false => (point.value.ln(), point.error / point.value),
            };
            row.runs.push(point.run);
            let at = row.runs.len() - 1;
            row.values.push(row.values[at] + value);
            row.squares.push(row.squares[at] + value * value);
            row.errors.push(row.errors[at] + error * error);
        }
        row
    }

    fn mean(&self, from: usize, to: usize) -> f64 {
        (self.values[to] - self.values[from]) / (to - from) as f64
    }

    fn change(&self, by: f64) -> f64 {
        if self.by_points { by } else { by.exp_m1() }
    }

    /// For a stretch and for the rest of `from` to `to`: the number of points, their sum, the sum
    /// of their squares, and the sum of their squared errors.
    fn sides(&self, (start, end): Stretch, (from, to): Stretch) -> [[f64; 4]; 2] {
        let sums = |from: usize, to: usize| {
            let of = |sums: &[f64]| sums[to] - sums[from];
            [(to - from) as f64, of(&self.values), of(&self.squares), of(&self.errors)]
        };
        let (inside, all) = (sums(start, end), sums(from, to));
        [inside, std::array::from_fn(|at| all[at] - inside[at])]
    }

    /// The difference between a stretch and the rest, and the difference in standard errors.
    fn apart(&self, stretch: Stretch, row: Stretch) -> (f64, f64) {
        let sides = self.sides(stretch, row);
        let [one, two] = sides.map(|[count, ..]| count);
        let spread = |[count, sum, squares, _]: [f64; 4]| (squares - sum * sum / count).max(0.0);
        let spread: f64 = sides.into_iter().map(spread).sum();
        let between = spread / (one + two - 2.0) * (1.0 / one + 1.0 / two);
        let within: f64 = sides.map(|[count, _, _, errors]| errors / (count * count)).iter().sum();
        let [inside, outside] = sides.map(|[count, sum, ..]| sum / count);
        // If all points are equal, rounding errors remain.
        let error = between.max(within).max(f64::EPSILON).sqrt();
        (inside - outside, (inside - outside).abs() / error)
    }

    /// Splits a series where its sides differ most, or else around a different stretch, and
    /// continues with each piece.
    fn cut(&self, from: usize, to: usize, cuts: &mut Vec<usize>) {
        let long = |length: usize| length >= SIDE_RUNS_MIN;
        let ends = (from..=to).filter(|cut| long(cut - from) && long(to - cut));
        let ends: Vec<Stretch> = ends.map(|cut| (cut, to)).collect();
        let inner = || {
            let starts = (from..=to).filter(|start| long(start - from));
            let of = |start: usize| (start..=to).map(move |end| (start, end));
            starts.flat_map(of).filter(|(start, end)| long(end - start) && long(to - end))
        };
        let found = self.finding(ends.iter().copied(), (from, to));
        let Some((start, end)) = found.or_else(|| self.finding(inner(), (from, to))) else {
            return;
        };
        cuts.extend([start, end].into_iter().filter(|cut| *cut != to));
        self.cut(from, start, cuts);
        self.cut(start, end, cuts);
        self.cut(end, to, cuts);
    }

    /// The stretch that differs most from the rest, if the difference is significant.
    fn finding(
        &self,
        stretches: impl Iterator<Item = Stretch> + Clone,
        row: Stretch,
    ) -> Option<Stretch> {
        let tried = (stretches.clone().count() * SHIFTING.len()) as f64;
        let measured = stretches.map(|stretch| (stretch, self.apart(stretch, row)));
        let most = measured.max_by(|(_, (_, one)), (_, (_, two))| one.total_cmp(two));
        let (stretch, (by, errors)) = most?;
        let chance = two_tails(errors, row.1 - row.0 - 2);
        (by != 0.0 && chance * tried <= 1.0 - CONFIDENCE).then_some(stretch)
    }
}

/// From the first point to one past the last.
type Stretch = (usize, usize);

/// The two-sided p-value of Student's t with these degrees of freedom (Abramowitz and Stegun:
/// "Handbook of Mathematical Functions", 26.7.3 and 26.7.4).
fn two_tails(errors: f64, freedom: usize) -> f64 {
    let angle = (errors / (freedom as f64).sqrt()).atan();
    let (sine, cosine) = angle.sin_cos();
    let is_odd = freedom % 2 == 1;
    let first = if is_odd { 1 } else { 0 };
    let (mut sum, mut term) = (0.0, if is_odd { cosine } else { 1.0 });
    for power in (first..freedom.saturating_sub(1)).step_by(2) {
        sum += term;
        term *= cosine * cosine * (power + 1) as f64 / (power + 2) as f64;
    }
    let within = match is_odd {
        true => (angle + sine * sum) * std::f64::consts::FRAC_2_PI,
        false => sine * sum,
    };
    (1.0 - within).max(0.0)
}

#[cfg(test)]
mod tests {
    use throng_base::random::Random;

    use super::*;

    fn points(values: &[f64], error: f64) -> Vec<Point> {
        let value = |(run, value): (usize, &f64)| Point { run, value: *value, error };
        values.iter().enumerate().map(value).collect()
    }

    const P99: Quantity = Quantity::Quantile(0.99);

    #[test]
    fn students_t_agrees_with_published_tables() {
        for (errors, freedom) in
            [(12.706, 1), (4.303, 2), (3.182, 3), (2.776, 4), (2.571, 5), (2.228, 10), (1.984, 100)]
        {
            let chance = two_tails(errors, freedom);
            assert!((chance - 0.05).abs() < 1e-3, "{freedom}: {chance}");
        }
        assert_eq!(two_tails(0.0, 7), 1.0);
    }

    #[test]
    fn a_lasting_change_is_found_where_it_happened() {
        let values = [20.0, 20.4, 19.8, 20.1, 26.0, 26.3, 25.9, 26.1, 26.2];
        let found = shifts(P99, &points(&values, 0.1));
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].since, 4);
        assert!((found[0].by - 0.3).abs() < 0.01, "{found:?}");
        assert!((found[0].before - 20.07).abs() < 0.01, "{found:?}");
        let back = [&values[..], &[20.0, 20.2, 19.9, 20.1]].concat();
        let found = shifts(P99, &points(&back, 0.1));
        let since: Vec<usize> = found.iter().map(|shift| shift.since).collect();
        assert_eq!(since, [4, 9]);
    }

    #[test]
    fn noise_is_not_a_lasting_change() {
        // A single different run is not a lasting change, not even at the end.
        assert_eq!(shifts(P99, &points(&[20.0, 20.1, 19.9, 20.0, 20.1, 30.0], 0.1)), []);
        // A difference smaller than that between the seconds of a run.
        let values = [20.0, 20.1, 19.9, 26.0, 26.3, 25.9];
        assert_eq!(shifts(P99, &points(&values, 8.0)), []);
        // A certain but irrelevant change.
        let values = [20.0, 20.0, 20.0, 20.0, 20.2, 20.2, 20.2, 20.2];
        assert_eq!(shifts(P99, &points(&values, 0.0)), []);
        assert_eq!(shifts(P99, &points(&[20.0, 40.0, 40.0], 0.1)), []);
        assert_eq!(shifts(P99, &points(&[20.0; 9], 0.0)), []);
        // A relative change needs a positive base.
        assert_eq!(shifts(P99, &points(&[0.0, 0.0, 0.0, 5.0, 5.0, 5.0], 0.0)), []);
    }

    #[test]
    fn error_shares_change_by_points() {
        let values = [0.0, 0.0, 0.0, 0.02, 0.021, 0.02];
        let found = shifts(Quantity::Failed, &points(&values, 0.0005));
        assert_eq!(found.len(), 1);
        assert!((found[0].by - 0.0203).abs() < 0.001, "{found:?}");
    }

    #[test]
    fn random_series_are_split_as_rarely_as_promised() {
        let mut cut = 0;
        for case in 0..500 {
            let mut random = Random::new(case);
            let values: Vec<f64> = (0..20).map(|_| random.uniform(90.0, 110.0)).collect();
            cut += usize::from(!shifts(P99, &points(&values, 1.0)).is_empty());
        }
        // At most one in twenty for all five values together.
        assert!(cut <= 10, "{cut} of 500");
    }
}
