//! Enums whose variants are rows: a name, the stable word of records and JSON, a text for people.

macro_rules! words {
    ($(#[$of:meta])* $type:ident {
        $($(#[$doc:meta])* $name:ident, $word:literal, $text:literal;)+
    }) => {
        $(#[$of])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum $type {
            $($(#[$doc])* #[serde(rename = $word)] $name,)+
        }

        impl $type {
            pub const ALL: [$type; [$($word),+].len()] = [$($type::$name),+];

            /// The word of records and JSON. It never changes.
            pub fn word(self) -> &'static str {
                match self { $($type::$name => $word,)+ }
            }

            /// For people.
            pub fn text(self) -> Said {
                match self { $($type::$name => say!($text),)+ }
            }
        }
    };
}
