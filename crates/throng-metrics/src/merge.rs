//! How figures become those of a longer time, of more shards or of more machines. Each field of a
//! record names its rule, and three things follow from it: the sum, the check of a foreign record,
//! and how much a line may add before sums could overflow.
//!
//! | rule | the field becomes |
//! | --- | --- |
//! | `Sum` | the sum of both; lists are merged row by row |
//! | `Most` | the larger one |
//! | `Least` | the smaller one of those that are known |
//! | `LeastKnown` | the same, where 0 says that it is not known |
//! | `Any` | true if one is |
//! | `By(function)` | what the function makes of it, before all other fields |
//! | `Now` | nothing: it is the last one of a time, and a sum of shards |
//! | `Key` | nothing: it tells rows apart |
//! | `Own` | nothing: whoever merges knows more |

use crate::histogram::Histogram;

/// A struct with more fields has more than one subject. Tables check it; `cargo xtask tidy` checks
/// all other structs.
pub(crate) const FIELDS_MAX: usize = 20;

/// Figures that can be merged.
pub trait Merge {
    /// Adds those of other shards, or of a later time.
    fn merge(&mut self, other: &Self);

    /// How much sums grow by it, `u64::MAX` at most.
    fn weight(&self) -> u64;

    /// Whether a record can have it.
    fn is_sound(&self) -> bool {
        true
    }
}

/// A row of a list, which is merged with the row that has the same key.
pub trait Keyed: Merge + Clone {
    type Key<'a>: Ord
    where
        Self: 'a;

    /// Whether lists are in the order of their keys; others are in that in which rows came.
    const IS_SORTED: bool;

    fn key(&self) -> Self::Key<'_>;
}

/// What a row says, or else what holds of most.
macro_rules! or {
    ($default:expr) => {
        $default
    };
    ($default:expr, $chosen:expr) => {
        $chosen
    };
}

/// What a rule does with a field.
#[doc(hidden)]
#[macro_export]
macro_rules! merge_rule {
    (first By ($by:path), $mine:expr, $theirs:expr, $field:ident) => {
        $by($mine, $theirs)
    };
    (first $($other:tt)+) => {};
    (merge Sum, $mine:expr, $theirs:expr, $field:ident) => {
        $crate::merge::Merge::merge(&mut $mine.$field, &$theirs.$field)
    };
    (merge Most, $mine:expr, $theirs:expr, $field:ident) => {
        $mine.$field = $mine.$field.max($theirs.$field)
    };
    (merge Least, $mine:expr, $theirs:expr, $field:ident) => {
        $mine.$field = $mine.$field.into_iter().chain($theirs.$field).min()
    };
    (merge LeastKnown, $mine:expr, $theirs:expr, $field:ident) => {
        $mine.$field = match ($mine.$field, $theirs.$field) {
            (0, known) | (known, 0) => known,
            (mine, theirs) => mine.min(theirs),
        }
    };
    (merge Any, $mine:expr, $theirs:expr, $field:ident) => {
        $mine.$field |= $theirs.$field
    };
    (merge $($other:tt)+) => {};
    (weight Sum $mine:expr) => {
        $crate::merge::Merge::weight(&$mine)
    };
    (weight By $mine:expr) => {
        $crate::merge::Merge::weight(&$mine)
    };
    (weight Now $mine:expr) => {
        $crate::merge::Merge::weight(&$mine)
    };
    (weight $rule:ident $mine:expr) => {
        0u64
    };
    (sound Sum $mine:expr) => {
        $crate::merge::Merge::is_sound(&$mine)
    };
    (sound Now $mine:expr) => {
        $crate::merge::Merge::is_sound(&$mine)
    };
    (sound By $mine:expr) => {
        $crate::merge::Merge::is_sound(&$mine)
    };
    (sound $rule:ident $mine:expr) => {
        true
    };
}

/// A struct whose fields name how they are merged.
#[macro_export]
macro_rules! merged {
    (
        $(#[$about:meta])* $shown:vis struct $name:ident {
            $($(#[$meta:meta])* $seen:vis $field:ident: $type:ty => $rule:ident $(($by:path))?,)+
        }
    ) => {
        $(#[$about])*
        $shown struct $name {
            $($(#[$meta])* $seen $field: $type,)+
        }

        impl $crate::merge::Merge for $name {
            fn merge(&mut self, other: &$name) {
                $($crate::merge_rule!(first $rule $(($by))?, self, other, $field);)+
                $($crate::merge_rule!(merge $rule $(($by))?, self, other, $field);)+
            }

            fn weight(&self) -> u64 {
                [$($crate::merge_rule!(weight $rule self.$field),)+]
                    .into_iter()
                    .fold(0, u64::saturating_add)
            }

            fn is_sound(&self) -> bool {
                [$($crate::merge_rule!(sound $rule self.$field),)+]
                    .into_iter()
                    .all(|is_sound| is_sound)
            }
        }
    };
}

macro_rules! order {
    (sorted) => {
        true
    };
    (unsorted) => {
        false
    };
}

/// What tells the rows of lists apart.
macro_rules! keyed {
    ($($order:ident $name:ident: $key:ty, |$row:ident| $of:expr;)+) => {
        $(impl $crate::merge::Keyed for $name {
            type Key<'a> = $key;

            const IS_SORTED: bool = order!($order);

            fn key(&self) -> Self::Key<'_> {
                let $row = self;
                $of
            }
        })+
    };
}

impl Merge for u64 {
    fn merge(&mut self, other: &u64) {
        *self += other;
    }

    fn weight(&self) -> u64 {
        *self
    }
}

impl Merge for Histogram {
    fn merge(&mut self, other: &Histogram) {
        Histogram::merge(self, other);
    }

    fn weight(&self) -> u64 {
        self.count()
    }

    fn is_sound(&self) -> bool {
        self.min() <= self.max()
    }
}

impl<T: Merge + Clone> Merge for Option<T> {
    fn merge(&mut self, other: &Option<T>) {
        match (self, other) {
            (Some(mine), Some(theirs)) => mine.merge(theirs),
            (mine @ None, Some(theirs)) => *mine = Some(theirs.clone()),
            (_, None) => {}
        }
    }

    fn weight(&self) -> u64 {
        self.as_ref().map_or(0, Merge::weight)
    }

    fn is_sound(&self) -> bool {
        self.as_ref().is_none_or(Merge::is_sound)
    }
}

/// A count of a cause or of a code.
impl<K: Copy + Ord> Merge for (K, u64) {
    fn merge(&mut self, other: &(K, u64)) {
        self.1 += other.1;
    }

    fn weight(&self) -> u64 {
        self.1
    }
}

impl<K: Copy + Ord> Keyed for (K, u64) {
    type Key<'a>
        = K
    where
        K: 'a;

    const IS_SORTED: bool = false;

    fn key(&self) -> K {
        self.0
    }
}

impl<T: Keyed> Merge for Vec<T> {
    fn merge(&mut self, other: &Vec<T>) {
        if T::IS_SORTED {
            return merge_sorted(self, other);
        }
        for row in other {
            match self.iter_mut().find(|mine| mine.key() == row.key()) {
                Some(mine) => mine.merge(row),
                None => self.push(row.clone()),
            }
        }
    }

    fn weight(&self) -> u64 {
        self.iter().map(Merge::weight).fold(0, u64::saturating_add)
    }

    fn is_sound(&self) -> bool {
        self.iter().all(Merge::is_sound)
    }
}

/// Adds rows to others, in a time that grows with the number of rows: with a thousand steps on a
/// thousand shards nobody searches for each. Rows that throng writes are in the order of their
/// keys; those of a foreign record need not be.
fn merge_sorted<T: Keyed>(mine: &mut Vec<T>, theirs: &[T]) {
    if !mine.is_sorted_by(|one, next| one.key() <= next.key()) {
        mine.sort_by(|one, other| one.key().cmp(&other.key()));
    }
    let known = mine.len();
    let mut from = 0;
    for row in theirs {
        // The next row is the next one here, or not far behind it.
        if mine[..known].get(from).is_none_or(|mine| mine.key() > row.key()) {
            from = mine[..known].partition_point(|mine| mine.key() < row.key());
        }
        from += mine[from..known].iter().take_while(|mine| mine.key() < row.key()).count();
        match mine[..known].get_mut(from).filter(|mine| mine.key() == row.key()) {
            Some(mine) => mine.merge(row),
            None => mine.push(row.clone()),
        }
    }
    if mine.len() > known {
        mine.sort_by(|one, other| one.key().cmp(&other.key()));
        // A record may name a key twice that was not known here.
        mine.dedup_by(|later, first| {
            let is_same = later.key() == first.key();
            if is_same {
                first.merge(later);
            }
            is_same
        });
    }
}
