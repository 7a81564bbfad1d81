//! Structs of counts that can be added: each worker writes its own, readers add them.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Adds the counts of another worker. Fields that only readers set are not changed.
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

/// A panic while statistics are locked leaves them consistent.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Parts with separate locks, so that workers rarely contend.
pub(crate) struct Shards<T>(Vec<Mutex<T>>);

const SHARDS: usize = 256;

impl<T: Default> Default for Shards<T> {
    fn default() -> Shards<T> {
        Shards((0..SHARDS).map(|_| Mutex::default()).collect())
    }
}

impl<T> Shards<T> {
    pub(crate) fn of(&self, key: u64) -> MutexGuard<'_, T> {
        lock(&self.0[key as usize % SHARDS])
    }

    pub(crate) fn each(&self) -> impl Iterator<Item = MutexGuard<'_, T>> {
        self.0.iter().map(lock)
    }
}

impl<T: Sums + Default> Shards<T> {
    pub(crate) fn sum(&self) -> T {
        let mut sum = T::default();
        self.each().for_each(|part| sum.add(&part));
        sum
    }

    pub(crate) fn reset(&self) {
        self.each().for_each(|mut part| *part = T::default());
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
