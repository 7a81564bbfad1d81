//! A hash for 64-bit keys: one multiplication, folded. The keys are those of our own users, so it
//! need not resist attacks. Also converts values to such keys.

use std::hash::{BuildHasherDefault, Hasher};

use throng_expression::Value;

pub(super) type Mixed = BuildHasherDefault<Mix>;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }

    #[inline]
    fn write_u64(&mut self, key: u64) {
        self.0 = mixed(self.0 ^ key);
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }
}

#[inline]
pub(super) fn mixed(key: u64) -> u64 {
    let wide = u128::from(key ^ 0x9E37_79B9_7F4A_7C15) * u128::from(0xD134_2543_DE82_EF95_u64);
    (wide >> 64) as u64 ^ wide as u64
}

/// The key of an ID or of an audience. A whole number is its own key, and so is a text of just its
/// digits: one side may write a number where the other writes text.
pub(crate) fn of_value(value: &Value) -> u64 {
    match value {
        Value::Int(number) => *number as u64,
        Value::UInt(number) => *number,
        Value::Text(text) => whole(text).unwrap_or_else(|| of_bytes(text.as_bytes())),
        Value::Bytes(bytes) => of_bytes(bytes),
        Value::Null => mixed(1),
        Value::Bool(true) => mixed(2),
        Value::Bool(false) => mixed(3),
        Value::Float(number) => mixed(number.to_bits()),
        Value::List(_) | Value::Map(_) => of_bytes(value.to_text().as_bytes()),
    }
}

/// Digits without a sign or leading zeros.
fn whole(text: &str) -> Option<u64> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit());
    (plain && (text == "0" || !text.starts_with('0'))).then(|| text.parse().ok())?
}

fn of_bytes(bytes: &[u8]) -> u64 {
    let words = bytes.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    });
    words.fold(mixed(bytes.len() as u64), |key, word| mixed(key ^ word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_number_and_its_digits_share_a_key() {
        let text = |text: &str| of_value(&Value::Text(text.into()));
        assert_eq!(of_value(&Value::Int(42)), 42);
        assert_eq!(of_value(&Value::UInt(u64::MAX)), u64::MAX);
        assert_eq!(text("42"), 42);
        let values = ["042", "+42", "4.2", "", "a", "b", "ab", "longer than a word", "longer than"];
        let mut keys: Vec<u64> = values.iter().map(|value| text(value)).collect();
        keys.extend([42, of_value(&Value::Float(42.0)), of_value(&Value::Bool(true))]);
        let count = keys.len();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), count);
    }
}
