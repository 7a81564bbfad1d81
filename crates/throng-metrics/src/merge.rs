//! How values are combined over time, shards and machines. Each recorded field names its rule, from
//! which three functions follow: the sum, the check of foreign data, and the growth of sums by a
//! line, which must not overflow.
//!
//! | rule | the field becomes |
//! | --- | --- |
//! | `Sum` | the sum of both; lists are merged row by row |
//! | `Most` | the larger one |
//! | `Least` | the smaller one of the known values |
//! | `LeastKnown` | the same; 0 means unknown |
//! | `Any` | true if one of them is |
//! | `By(function)` | the result of the function, before all other fields |
//! | `Now` | unchanged: the last value over time, the sum over shards |
//! | `Key` | unchanged: it identifies the row |
//! | `Own` | unchanged: the caller sets it |

use crate::histogram::Histogram;

/// A struct with more fields has more than one purpose. Tables check this; `cargo xtask tidy`
/// checks all other structs.
pub(crate) const FIELDS_MAX: usize = 20;

/// Values that can be merged.
pub trait Merge {
    /// Adds the values of other shards or of a later time.
    fn merge(&mut self, other: &Self);

    /// The growth of sums by these values, at most `u64::MAX`.
    fn weight(&self) -> u64;

    /// Whether a run directory can contain these values.
    fn is_sound(&self) -> bool {
        true
    }
}

/// A row of a list, which is merged with the row that has the same key.
pub trait Keyed: Merge + Clone {
    type Key<'a>: Ord
    where
        Self: 'a;

    /// Whether lists are sorted by key; otherwise, rows stay in order of arrival.
    const IS_SORTED: bool;

    fn key(&self) -> Self::Key<'_>;
}

/// The given value, or else the default.
macro_rules! or {
    ($default:expr) => {
        $default
    };
    ($default:expr, $chosen:expr) => {
        $chosen
    };
}

/// Applies a rule to a field.
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

/// A struct whose fields name their rules.
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

/// The keys of list rows.
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

/// The count of a cause or code.
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

/// Merges rows in linear time, so that a thousand steps on a thousand shards need no search. Rows
/// written by throng are sorted by key; foreign ones need not be.
fn merge_sorted<T: Keyed>(mine: &mut Vec<T>, theirs: &[T]) {
    if !mine.is_sorted_by(|one, next| one.key() <= next.key()) {
        mine.sort_by(|one, other| one.key().cmp(&other.key()));
    }
    let known = mine.len();
    let mut from = 0;
    for row in theirs {
        // The next row is usually here, or slightly later.
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
        // A foreign line can repeat a new key.
        mine.dedup_by(|later, first| {
            let is_same = later.key() == first.key();
            if is_same {
                first.merge(later);
            }
            is_same
        });
    }
}
