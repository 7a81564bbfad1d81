//! Long texts that are part of the binary and seldom read: a third of their size (`packed!`).

use std::io::Read as _;

use flate2::read::ZlibDecoder;

/// The text of what `packed!` has made. It was packed when this was compiled, so that it can be
/// unpacked.
pub fn text(packed: &[u8]) -> String {
    let mut text = String::new();
    let unpacked = ZlibDecoder::new(packed).read_to_string(&mut text);
    debug_assert!(unpacked.is_ok(), "{unpacked:?}");
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_is_packed_is_the_file() {
        let packed: &[u8] = throng_words::packed!("words/zh.txt");
        let file = include_str!("../words/zh.txt");
        assert!(packed.len() < file.len() / 2, "{} of {}", packed.len(), file.len());
        assert!(super::text(packed) == file);
    }
}
