//! Sparklines: one character for each value, or for several.

use super::Style;

/// From the minimum to the maximum.
pub(crate) type Levels = [char; 8];

pub(crate) const BLOCKS: Levels = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// For ASCII terminals: rising and increasingly dense.
const MARKS: Levels = ['_', '.', '-', '~', '=', '*', '%', '#'];

pub(crate) fn levels(style: &Style) -> &'static Levels {
    if style.ascii { &MARKS } else { &BLOCKS }
}

/// The sparkline in at most `columns` columns. If all values exceed half of the maximum, it starts
/// there, so that similar values look alike. Gaps are unknown values.
pub(crate) fn spark(values: &[Option<f64>], columns: usize, levels: &Levels) -> String {
    let columns = columns.min(values.len());
    let known = || values.iter().flatten().copied().filter(|value| value.is_finite());
    let most = known().fold(0.0, f64::max);
    let least = known().fold(most / 2.0, f64::min);
    let column = |at: usize| {
        let (from, to) = (at * values.len() / columns, (at + 1) * values.len() / columns);
        let some: Vec<f64> = values[from..to].iter().flatten().copied().collect();
        let mean = some.iter().sum::<f64>() / some.len() as f64;
        let part = if most > least { (mean - least) / (most - least) } else { 0.0 };
        let level = (part * (levels.len() - 1) as f64).round() as usize;
        if some.is_empty() { ' ' } else { levels[level.min(levels.len() - 1)] }
    };
    (0..columns).map(column).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_show_relevant_differences() {
        let of = |values: &[f64], columns| {
            let values: Vec<Option<f64>> = values.iter().map(|value| Some(*value)).collect();
            spark(&values, columns, &BLOCKS)
        };
        assert_eq!(of(&[0.0, 50.0, 100.0], 80), "▁▅█");
        assert_eq!(of(&[99.0, 100.0, 99.5], 80), "███");
        assert_eq!(of(&[77.0, 100.0], 80), "▅█");
        assert_eq!(of(&[0.0, 0.0], 80), "▁▁");
        assert_eq!(of(&[0.0, 0.0, 8.0, 8.0, 4.0, 4.0], 3), "▁█▅");
        assert_eq!((of(&[], 9), of(&[1.0], 0)), (String::new(), String::new()));
        assert_eq!(spark(&[Some(1.0), None, Some(f64::NAN)], 9, &BLOCKS), "█ ▁");
        assert_eq!(spark(&[Some(0.0), None, Some(8.0)], 9, &MARKS), "_ #");
    }
}
