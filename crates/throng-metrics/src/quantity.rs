//! Units of values, and the table of compared values: between runs, over a history, and between the
//! sides of a duel. Each has its word, its unit, and whether more is better.

/// The unit of a value and of its threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Nanoseconds,
    PerSecond,
    /// 0 to 1.
    Share,
    Number,
    /// A number with decimals.
    Decimal,
    Bytes,
    BytesPerSecond,
}

impl Unit {
    /// The word in run directories.
    pub fn word(self) -> &'static str {
        match self {
            Unit::Nanoseconds => "ns",
            Unit::PerSecond => "per_s",
            Unit::Share => "share",
            Unit::Number | Unit::Decimal => "number",
            Unit::Bytes => "bytes",
            Unit::BytesPerSecond => "bytes_per_s",
        }
    }
}

/// Which of two values is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Better {
    More,
    Less,
}

macro_rules! quantities {
    ($($(#[doc = $doc:literal])* $name:ident, $word:literal, $unit:ident, $better:ident;)+) => {
        /// A compared value of a row.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub enum Quantity {
            $($(#[doc = $doc])* $name,)+
            /// Of response times; its word is, for example, `p99`.
            Quantile(f64),
        }

        impl Quantity {
            const NAMED: &'static [Quantity] = &[$(Quantity::$name,)+];

            /// The word of `--fail-if` and JSON.
            pub fn word(self) -> String {
                match self {
                    $(Quantity::$name => $word.into(),)+
                    Quantity::Quantile(quantile) => format!("p{}", (quantile * 100.0).round()),
                }
            }

            pub fn unit(self) -> Unit {
                match self {
                    $(Quantity::$name => Unit::$unit,)+
                    Quantity::Quantile(_) => Unit::Nanoseconds,
                }
            }

            fn better(self) -> Better {
                match self {
                    $(Quantity::$name => Better::$better,)+
                    Quantity::Quantile(_) => Better::Less,
                }
            }
        }
    };
}

quantities! {
    /// Successful attempts during the load, per second.
    Rate, "rate", PerSecond, More;
    /// Share of failed attempts.
    Failed, "failed", Share, Less;
    /// Of response times.
    Mean, "mean", Nanoseconds, Less;
    /// Mean number of processors used by the generator.
    Cores, "cores", Decimal, Less;
    /// Processor time of the generator.
    CpuPerAttempt, "cpu_per_attempt", Nanoseconds, Less;
    /// Processor time of a target on this host; available only in duels.
    TargetCpuPerAttempt, "target_cpu_per_attempt", Nanoseconds, Less;
}

impl Quantity {
    /// From its word; percentiles from 0 to 100 are possible.
    pub fn named(word: &str) -> Option<Quantity> {
        let known = Quantity::NAMED.iter().find(|quantity| quantity.word() == word);
        known.copied().or_else(|| {
            let percent: f64 = word.strip_prefix('p')?.parse().ok()?;
            (percent > 0.0 && percent < 100.0).then_some(Quantity::Quantile(percent / 100.0))
        })
    }

    /// Shares change by points, everything else relative to the old value.
    pub fn is_by_points(self) -> bool {
        self.unit() == Unit::Share
    }

    /// Whether more of it is better.
    pub fn is_more_better(self) -> bool {
        self.better() == Better::More
    }

    /// Whether this change is an improvement.
    pub fn is_better(self, by: f64) -> bool {
        (by > 0.0) == self.is_more_better()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_named_by_words_and_only_for_rates_is_more_better() {
        for quantity in Quantity::NAMED.iter().copied().chain([Quantity::Quantile(0.95)]) {
            assert_eq!(Quantity::named(&quantity.word()), Some(quantity));
            assert_eq!(quantity.is_better(0.1), quantity == Quantity::Rate, "{quantity:?}");
            assert_eq!(quantity.is_better(-0.1), quantity != Quantity::Rate, "{quantity:?}");
        }
        assert_eq!(Quantity::named("p12.5"), Some(Quantity::Quantile(0.125)));
        for word in ["", "p", "p0", "p100", "median"] {
            assert_eq!(Quantity::named(word), None, "{word}");
        }
    }
}
