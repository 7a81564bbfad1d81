//! The words of types: throng's own, and those of Kaitai Struct where they are not ambiguous.

use throng_base::{Said, diagnostic};
use throng_protocol::framed::declaration::{Coding, Endian, Format, Prefix, Type};

/// The meaning of the value of `type`; other keys determine where it ends.
#[derive(Debug, PartialEq)]
pub(super) enum TypeWord {
    /// A type with its own size, and the byte order that the word names.
    Sized(Type, Option<Endian>),
    Text,
    /// A zero-terminated text.
    TextZero,
    Bytes,
    Json,
    /// A document in another format.
    Binary(Format),
    /// A number in digits up to a terminator.
    Decimal,
    Proto(String),
}

/// Why a word is not a type.
#[derive(Debug, PartialEq)]
pub(super) struct WordError {
    pub(super) label: Said,
    pub(super) help: Said,
}

/// Simple types, for diagnostics; bit types are described in [`TYPES_HELP`].
const SIMPLE: &[&str] = &[
    "u8", "u16", "u24", "u32", "u40", "u48", "u56", "u64", "i8", "i16", "i24", "i32", "i40", "i48",
    "i56", "i64", "f32", "f64", "bool", "varint", "zigzag", "ber", "lenenc", "decimal", "str",
    "strz", "bytes", "json", "cbor", "msgpack",
];

/// Words of other languages and their equivalents here.
const OTHER_WORDS: &[(&[&str], &str)] = &[
    (&["string", "text", "utf8", "varchar"], "str"),
    (&["cstring", "cstr", "asciiz"], "strz"),
    (&["byte", "uint8", "uchar", "uint8_t", "octet"], "u8"),
    (&["uint16", "ushort", "uint16_t", "word"], "u16"),
    (&["uint", "uint32", "uint32_t", "dword"], "u32"),
    (&["ulong", "uint64", "uint64_t", "qword"], "u64"),
    (&["char", "int8", "int8_t", "sbyte"], "i8"),
    (&["short", "int16", "int16_t", "s16"], "i16"),
    (&["int", "int32", "int32_t", "integer", "s32"], "i32"),
    (&["long", "int64", "int64_t", "s64"], "i64"),
    (&["float", "single", "float32"], "f32"),
    (&["double", "float64", "number"], "f64"),
    (&["boolean", "flag"], "bool"),
    (&["uvarint", "leb128", "uleb128", "vlq", "varuint"], "varint"),
    (&["svarint", "sint", "sint32", "sint64", "varsint"], "zigzag"),
    (&["blob", "binary", "buffer", "raw", "data", "payload"], "bytes"),
];

pub(super) const TYPES_HELP: Said = say!(
    "write `u8`, `u16`, `u32`, `u64`, `i32`, `f64`, `bool`, \
     `varint`, `zigzag`, `decimal`, `b3`, `str`, `bytes`, `json`, `protobuf(Message)` or one of \
     `types`"
);

pub(super) const PREFIX_HELP: Said =
    say!("write `u8`, `u16`, `u24`, `u32`, `u64`, `varint`, `ber` or `lenenc`");

/// The meaning of a word; None may be the name of a structure.
pub(super) fn parse(word: &str) -> Result<Option<TypeWord>, WordError> {
    let simple = match word {
        "str" => Some(TypeWord::Text),
        "strz" => Some(TypeWord::TextZero),
        "bytes" => Some(TypeWord::Bytes),
        "json" => Some(TypeWord::Json),
        "cbor" => Some(TypeWord::Binary(Format::Cbor)),
        "msgpack" => Some(TypeWord::Binary(Format::MessagePack)),
        "bool" => Some(TypeWord::Sized(Type::Bool, None)),
        "varint" => Some(TypeWord::Sized(Type::Varint, None)),
        "zigzag" => Some(TypeWord::Sized(Type::ZigZag, None)),
        "ber" => Some(TypeWord::Sized(Type::Coded(Coding::Ber), None)),
        "lenenc" => Some(TypeWord::Sized(Type::Coded(Coding::Lenenc), None)),
        "decimal" => Some(TypeWord::Decimal),
        _ => None,
    };
    if simple.is_some() {
        return Ok(simple);
    }
    if let Some(inner) = word.strip_prefix("protobuf").map(str::trim) {
        let name = inner.strip_prefix('(').and_then(|inner| inner.strip_suffix(')'));
        return match name.map(str::trim).filter(|name| is_path(name)) {
            Some(name) => Ok(Some(TypeWord::Proto(name.to_string()))),
            None => {
                wrong(say!("the message is missing"), say!("write `type: protobuf(shop.Order)`"))
            }
        };
    }
    parse_number(word)
}

/// The closest type to an unknown word; `names` are those of the structures.
pub(super) fn meant<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let small = word.to_ascii_lowercase();
    let other = OTHER_WORDS.iter().find(|(words, _)| words.contains(&small.as_str()));
    let names: Vec<&str> = names.chain(SIMPLE.iter().copied()).collect();
    other.map(|(_, word)| *word).or_else(|| diagnostic::did_you_mean(word, names))
}

/// The length prefix of a type without a fixed size.
pub(super) fn prefix(word: &str) -> Option<Prefix> {
    Some(match word {
        "u8" | "u1" => Prefix::Unsigned(8),
        "u16" | "u2" => Prefix::Unsigned(16),
        "u24" => Prefix::Unsigned(24),
        "u32" | "u4" => Prefix::Unsigned(32),
        "u64" => Prefix::Unsigned(64),
        "varint" => Prefix::Varint,
        "ber" => Prefix::Ber,
        "lenenc" => Prefix::Lenenc,
        _ => return None,
    })
}

fn wrong<T>(label: Said, help: Said) -> Result<T, WordError> {
    Err(WordError { label, help })
}

/// `shop.Order`
fn is_path(name: &str) -> bool {
    let is_word = |word: &str| {
        !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    name.strip_prefix('.').unwrap_or(name).split('.').all(is_word)
}

/// A letter, a number, and perhaps a byte order: `u32`, `u4le`, `b3`.
fn parse_number(word: &str) -> Result<Option<TypeWord>, WordError> {
    let (plain, endian) = match (word.strip_suffix("le"), word.strip_suffix("be")) {
        (Some(plain), _) => (plain, Some(Endian::Little)),
        (_, Some(plain)) => (plain, Some(Endian::Big)),
        _ => (word, None),
    };
    let Some(letter) = plain.chars().next().filter(|c| "uisfb".contains(*c)) else {
        return Ok(None);
    };
    let digits = &plain[1..];
    let is_number = (1..=2).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
    let Some(number) = digits.parse::<u8>().ok().filter(|_| is_number) else { return Ok(None) };
    let sized = |ty: Type| Ok(Some(TypeWord::Sized(ty, endian)));
    match (letter, number) {
        ('u', 8) | ('s', 8) if endian.is_some() || letter == 's' => {
            let (eight, one) = if letter == 's' { ("i64", "i8") } else { ("u64", "u8") };
            wrong(
                say!(
                    "in Kaitai Struct, this type has 8 bytes; in throng, a name such as `u8` \
                     means 8 bits"
                ),
                say!("write `{eight}` for 8 bytes, or `{one}` for 8 bits"),
            )
        }
        ('u', 1) => sized(Type::Unsigned(8)),
        ('u', 2) => sized(Type::Unsigned(16)),
        ('u', 4) => sized(Type::Unsigned(32)),
        ('s', 1) => sized(Type::Signed(8)),
        ('s', 2) => sized(Type::Signed(16)),
        ('s', 4) => sized(Type::Signed(32)),
        ('f', 4 | 32) => sized(Type::Float32),
        ('f', 8 | 64) => sized(Type::Float64),
        ('u', 8..=64) if number % 8 == 0 => sized(Type::Unsigned(number)),
        ('i', 8..=64) if number % 8 == 0 => sized(Type::Signed(number)),
        ('b', 1..=64) if endian == Some(Endian::Little) => wrong(
            say!("bit fields fill bytes from the most significant bit"),
            say!("write `{plain}`, or read a whole number and test its bits"),
        ),
        ('b', 1..=64) => sized(Type::Bits(number)),
        ('b', _) => wrong(say!("a bit field must have 1 to 64 bits"), say!("write `b1` to `b64`")),
        ('u' | 'i', _) => wrong(
            say!("a number must have 8, 16, 24, 32, 40, 48, 56 or 64 bits"),
            say!("write `b12` for a bit field"),
        ),
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_both_languages_are_known() {
        use Endian::{Big, Little};
        for (word, ty, endian) in [
            ("u8", Type::Unsigned(8), None),
            ("u16", Type::Unsigned(16), None),
            ("u24le", Type::Unsigned(24), Some(Little)),
            ("u56", Type::Unsigned(56), None),
            ("i64be", Type::Signed(64), Some(Big)),
            ("u1", Type::Unsigned(8), None),
            ("u2le", Type::Unsigned(16), Some(Little)),
            ("u4be", Type::Unsigned(32), Some(Big)),
            ("s1", Type::Signed(8), None),
            ("s4", Type::Signed(32), None),
            ("f4", Type::Float32, None),
            ("f8le", Type::Float64, Some(Little)),
            ("f64", Type::Float64, None),
            ("b1", Type::Bits(1), None),
            ("b64", Type::Bits(64), None),
        ] {
            assert_eq!(parse(word), Ok(Some(TypeWord::Sized(ty, endian))), "{word}");
        }
        assert_eq!(parse("protobuf(a.B)"), Ok(Some(TypeWord::Proto("a.B".into()))));
        for word in ["u8le", "s8", "u12", "i128", "b65", "b0", "b3le", "protobuf", "protobuf()"] {
            assert!(parse(word).is_err() || word == "i128", "{word}");
        }
        for name in ["item", "user", "bits", "f16", "u", "s5x", "ééle", "b"] {
            assert_eq!(parse(name), Ok(None), "{name}");
        }
    }

    #[test]
    fn words_of_other_languages_suggest_ours() {
        for (word, want) in
            [("string", "str"), ("UInt32", "u32"), ("double", "f64"), ("itm", "item")]
        {
            assert_eq!(meant(word, ["item"].into_iter()), Some(want), "{word}");
        }
        for (_, word) in OTHER_WORDS {
            assert!(SIMPLE.contains(word), "{word}");
        }
    }
}
