//! Enums whose variants are rows: a name, the stable word in run directories and JSON, and an
//! optional text for users.

#[macro_export]
macro_rules! words {
    ($(#[$of:meta])* $type:ident {
        $($(#[$doc:meta])* $name:ident, $word:literal $(, $text:literal)?;)+
    }) => {
        $(#[$of])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[derive(serde::Serialize, serde::Deserialize)]
        pub enum $type {
            $($(#[$doc])* #[serde(rename = $word)] $name,)+
        }

        impl $type {
            pub const ALL: [$type; [$($word),+].len()] = [$($type::$name),+];

            /// The word in run directories and JSON. It never changes.
            pub fn word(self) -> &'static str {
                match self { $($type::$name => $word,)+ }
            }
        }

        $crate::words!(@text $type $($name $($text)?,)+);
    };
    (@text $type:ident $($name:ident,)+) => {};
    (@text $type:ident $($name:ident $text:literal,)+) => {
        impl $type {
            /// The text for users.
            pub fn text(self) -> $crate::Said {
                match self { $($type::$name => say!($text),)+ }
            }
        }
    };
}
