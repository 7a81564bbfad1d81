//! Units of figures, and the table of what is compared: between runs, over a history, and between
//! the sides of a duel. Each quantity stands here once, with its word, its unit, and whether more
//! of it is better.

/// In what a figure and the value it is compared with are given.
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
    /// The word that records carry.
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

/// Which of two figures is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Better {
    More,
    Less,
}

macro_rules! quantities {
    ($($(#[doc = $doc:literal])* $name:ident, $word:literal, $unit:ident, $better:ident;)+) => {
        /// What is compared of a row.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub enum Quantity {
            $($(#[doc = $doc])* $name,)+
            /// Of response times; its word is `p99`.
            Quantile(f64),
        }

        impl Quantity {
            const NAMED: &'static [Quantity] = &[$(Quantity::$name,)+];

            /// The word of `--fail-if`, and of JSON.
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
    /// Good and in time, per second.
    Rate, "rate", PerSecond, More;
    /// Share of all that failed.
    Failed, "failed", Share, Less;
    /// Of response times.
    Mean, "mean", Nanoseconds, Less;
    /// Processors that the generator kept busy.
    Cores, "cores", Decimal, Less;
    /// Processor time of the generator.
    CpuPerAttempt, "cpu_per_attempt", Nanoseconds, Less;
    /// Processor time of a target on this host; duels alone know it.
    TargetCpuPerAttempt, "target_cpu_per_attempt", Nanoseconds, Less;
}

impl Quantity {
    /// By its word; a percentile is any from 0 to 100.
    pub fn named(word: &str) -> Option<Quantity> {
        let known = Quantity::NAMED.iter().find(|quantity| quantity.word() == word);
        known.copied().or_else(|| {
            let percent: f64 = word.strip_prefix('p')?.parse().ok()?;
            (percent > 0.0 && percent < 100.0).then_some(Quantity::Quantile(percent / 100.0))
        })
    }

    /// Shares change by points, everything else by a share of what it was.
    pub fn is_by_points(self) -> bool {
        self.unit() == Unit::Share
    }

    /// Whether more of it is better.
    pub fn is_more_better(self) -> bool {
        self.better() == Better::More
    }

    /// Whether a change by so much is for the better.
    pub fn is_better(self, by: f64) -> bool {
        (by > 0.0) == self.is_more_better()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantity_is_its_word_and_less_of_all_but_rates_is_better() {
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
