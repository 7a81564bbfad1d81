//! Structs of counts that add up: each worker writes its own, readers add them.

use std::collections::BTreeMap;

/// Adds the counts of another worker. What only readers fill in is left as it is.
pub(crate) trait Sums {
    fn add(&mut self, other: &Self);
}

impl Sums for u64 {
    fn add(&mut self, other: &u64) {
        *self += other;
    }
}

impl Sums for [u64; 3] {
    fn add(&mut self, other: &[u64; 3]) {
        self.iter_mut().zip(other).for_each(|(ours, theirs)| *ours += theirs);
    }
}

impl Sums for BTreeMap<&'static str, u64> {
    fn add(&mut self, other: &Self) {
        other.iter().for_each(|(name, count)| *self.entry(name).or_default() += count);
    }
}

impl<T: Sums + Default> Sums for Option<T> {
    fn add(&mut self, other: &Self) {
        if let Some(other) = other {
            self.get_or_insert_default().add(other);
        }
    }
}

macro_rules! sums {
    ($(#[$of:meta])* $of_vis:vis struct $name:ident {
        $($(#[$doc:meta])* $vis:vis $field:ident: $type:ty,)+
    }) => {
        $(#[$of])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
        $of_vis struct $name {
            $($(#[$doc])* $vis $field: $type,)+
        }

        impl $crate::sums::Sums for $name {
            fn add(&mut self, other: &$name) {
                $($crate::sums::Sums::add(&mut self.$field, &other.$field);)+
            }
        }
    };
}
