//! What the headers of a binary say (elf(5)).

use std::fs;
use std::path::Path;

/// Whether no loader is asked for: a program header of the kind `PT_INTERP` names one (elf(5)).
pub(super) fn is_static(binary: &Path) -> Result<bool, String> {
    let bytes = fs::read(binary).map_err(|error| format!("{}: {error}", binary.display()))?;
    let kinds = program_headers(&bytes).ok_or("the binary is no 64-bit ELF file")?;
    Ok(!kinds.contains(&PT_INTERP))
}

/// Whether it is loaded where the kernel likes, and not where the linker has put it.
pub(super) fn is_movable(binary: &Path) -> Result<bool, String> {
    let bytes = fs::read(binary).map_err(|error| format!("{}: {error}", binary.display()))?;
    Ok(bytes.starts_with(b"\x7fELF\x02\x01") && bytes.get(16..18) == Some(&ET_DYN))
}

const PT_INTERP: u32 = 3;
/// The type of a file that can be moved.
const ET_DYN: [u8; 2] = [3, 0];

/// The kinds of the program headers of an ELF file, 64 bits, little endian.
fn program_headers(bytes: &[u8]) -> Option<Vec<u32>> {
    if bytes.get(..6)? != b"\x7fELF\x02\x01" {
        return None;
    }
    let short = |at: usize| Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
    let offset = u64::from_le_bytes(bytes.get(32..40)?.try_into().ok()?) as usize;
    let (size, count) = (usize::from(short(54)?), usize::from(short(56)?));
    (0..count)
        .map(|index| {
            let at = offset + index * size;
            Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loader_is_found_in_the_headers() {
        let mut file = b"\x7fELF\x02\x01".to_vec();
        file.resize(64, 0);
        file[32] = 64;
        file[54] = 56;
        file[56] = 2;
        file.resize(64 + 2 * 56, 0);
        file[64] = 1;
        file[64 + 56] = 3;
        assert_eq!(program_headers(&file), Some(vec![1, PT_INTERP]));
        assert_eq!(program_headers(&file[..100]), None, "cut off");
        assert_eq!(program_headers(b"#!/bin/sh"), None);
    }

    /// This test is a program with a loader.
    #[test]
    fn an_ordinary_program_is_not_static() {
        let this = std::env::current_exe().unwrap();
        assert!(!is_static(&this).unwrap());
        assert!(is_movable(&this).unwrap());
        assert!(!is_movable(Path::new("Cargo.toml")).unwrap());
        assert!(is_static(Path::new("Cargo.toml")).is_err());
    }
}
