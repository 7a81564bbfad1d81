//! The table of percentiles: names for each output, and the required number of values. Tables,
//! JSON, CSV and exports use it.

macro_rules! percentiles {
    ($($name:ident $quantile:literal $values_min:literal $label:literal $word:literal
        $plain:literal;)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Percentile {
            $($name,)*
        }

        impl Percentile {
            pub const ALL: &'static [Percentile] = &[$(Percentile::$name,)*];
            pub const COUNT: usize = Percentile::ALL.len();
            /// The percentiles with a column each: all except the last, which requires very many
            /// values.
            pub const MAIN: &'static [Percentile] =
                Percentile::ALL.split_at(Percentile::COUNT - 1).0;

            /// The share of values that are at most as large, 0 to 1.
            pub const fn quantile(self) -> f64 {
                match self { $(Percentile::$name => $quantile,)* }
            }

            /// The number of values for at least one to be above it: `count × (1 - p) ≥ 1`. With
            /// fewer, it equals the maximum.
            pub const fn values_min(self) -> u64 {
                match self { $(Percentile::$name => $values_min,)* }
            }

            /// For display, in both languages.
            pub const fn label(self) -> &'static str {
                match self { $(Percentile::$name => $label,)* }
            }

            /// The JSON field for values without a unit in its name.
            pub const fn word(self) -> &'static str {
                match self { $(Percentile::$name => $word,)* }
            }

            /// The JSON field and the CSV column in nanoseconds.
            pub const fn word_ns(self) -> &'static str {
                match self { $(Percentile::$name => concat!($word, "_ns"),)* }
            }

            /// Only letters and digits, for exported metrics and series of the page.
            pub const fn plain(self) -> &'static str {
                match self { $(Percentile::$name => $plain,)* }
            }
        }
    };
}

percentiles! {
    P50 0.5 2 "p50" "p50" "p50";
    P90 0.9 10 "p90" "p90" "p90";
    P95 0.95 20 "p95" "p95" "p95";
    P99 0.99 100 "p99" "p99" "p99";
    P999 0.999 1_000 "p99.9" "p99_9" "p999";
    P9999 0.9999 10_000 "p99.99" "p99_99" "p9999";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_requires_a_value_above_it() {
        for percentile in Percentile::ALL {
            let above = percentile.values_min() as f64 * (1.0 - percentile.quantile());
            assert!((above - 1.0).abs() < 1e-6, "{percentile:?}: {above}");
            let share = percentile.label().trim_start_matches('p').parse::<f64>().unwrap();
            assert!((share - percentile.quantile() * 100.0).abs() < 1e-6, "{percentile:?}");
            assert_eq!(percentile.word(), percentile.label().replace('.', "_"));
            assert_eq!(percentile.plain(), percentile.label().replace('.', ""));
        }
    }
}
