//! The names of the functions of XPath 1.0, and three frequently requested ones of 2.0.

macro_rules! functions {
    ($($variant:ident $name:literal $least:literal $most:expr;)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Function { $($variant),* }

        impl Function {
            pub(super) fn of(name: &str) -> Option<Function> {
                match name {
                    $($name => Some(Function::$variant),)*
                    _ => None,
                }
            }

            /// How many arguments it takes, at least and at most.
            pub(super) fn arguments(self) -> (usize, usize) {
                match self {
                    $(Function::$variant => ($least, $most),)*
                }
            }
        }
    };
}

functions! {
    Last "last" 0 0;
    Position "position" 0 0;
    Count "count" 1 1;
    Id "id" 1 1;
    LocalName "local-name" 0 1;
    NamespaceUri "namespace-uri" 0 1;
    Name "name" 0 1;
    String "string" 0 1;
    Concat "concat" 2 usize::MAX;
    StartsWith "starts-with" 2 2;
    EndsWith "ends-with" 2 2;
    Contains "contains" 2 2;
    SubstringBefore "substring-before" 2 2;
    SubstringAfter "substring-after" 2 2;
    Substring "substring" 2 3;
    StringLength "string-length" 0 1;
    NormalizeSpace "normalize-space" 0 1;
    Translate "translate" 3 3;
    LowerCase "lower-case" 1 1;
    UpperCase "upper-case" 1 1;
    Boolean "boolean" 1 1;
    Not "not" 1 1;
    True "true" 0 0;
    False "false" 0 0;
    Lang "lang" 1 1;
    Number "number" 0 1;
    Sum "sum" 1 1;
    Floor "floor" 1 1;
    Ceiling "ceiling" 1 1;
    Round "round" 1 1;
}
