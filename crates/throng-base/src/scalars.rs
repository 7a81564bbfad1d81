//! Methods required by serde's visitors.

/// The scalar methods of a visitor that handles all scalars in the same way.
#[macro_export]
macro_rules! scalars {
    ($value:expr) => {
        fn visit_unit<E: serde::de::Error>(self) -> Result<Self::Value, E> {
            Ok($value)
        }

        $crate::scalars!($value; visit_bool: bool, visit_i64: i64, visit_u64: u64);
        $crate::scalars!($value; visit_f64: f64, visit_str: &str);
    };
    ($value:expr; $($visit:ident: $type:ty),+) => {
        $(fn $visit<E: serde::de::Error>(self, _: $type) -> Result<Self::Value, E> {
            Ok($value)
        })+
    };
}
