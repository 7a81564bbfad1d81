//! Long and rarely used texts in the binary, compressed to a third of their size (`packed!`).

use std::io::Read as _;

use flate2::read::ZlibDecoder;

/// Unpacks the result of `packed!`, which cannot fail because the compiler created it.
pub fn text(packed: &[u8]) -> String {
    let mut text = String::new();
    let unpacked = ZlibDecoder::new(packed).read_to_string(&mut text);
    debug_assert!(unpacked.is_ok(), "{unpacked:?}");
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn unpacking_restores_the_file() {
        let packed: &[u8] = throng_words::packed!("words/zh.txt");
        let file = include_str!("../words/zh.txt");
        assert!(packed.len() < file.len() / 2, "{} of {}", packed.len(), file.len());
        assert!(super::text(packed) == file);
    }
}
