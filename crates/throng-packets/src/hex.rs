//! Bytes in pasted text: pairs of digits with any separators, or a dump of `xxd`, `hexdump -C`,
//! `od`, Wireshark or `tcpdump -x`.

use std::ops::Range;

/// The maximum number of bytes in a text.
pub const BYTES_MAX: usize = 64 << 20;

/// Bytes per row in dumps without a colon after the offset.
const ROW_BYTES: usize = 16;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pasted {
    Bytes(Vec<u8>),
    /// The output of `tcpdump -x`: IP packets, each from its first byte on.
    Frames(Vec<Vec<u8>>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HexMistake {
    pub kind: HexMistakeKind,
    /// The position in the text, in bytes.
    pub place: Range<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HexMistakeKind {
    Empty,
    NoDigit(char),
    OddDigits,
    TooLong,
}

pub fn read(text: &str) -> Result<Pasted, HexMistake> {
    let mistake = |kind, place| Err(HexMistake { kind, place });
    let dump = tcpdump(text).map(Pasted::Frames).or_else(|| dump(text).map(Pasted::Bytes));
    let pasted = match dump {
        Some(pasted) => pasted,
        None => Pasted::Bytes(digits(text)?),
    };
    match &pasted {
        Pasted::Bytes(bytes) if bytes.is_empty() => mistake(HexMistakeKind::Empty, 0..text.len()),
        Pasted::Bytes(bytes) if bytes.len() > BYTES_MAX => {
            mistake(HexMistakeKind::TooLong, 0..text.len())
        }
        _ => Ok(pasted),
    }
}

/// Pairs of digits; `0x`, `\x`, separators and text after a `#` are skipped.
fn digits(text: &str) -> Result<Vec<u8>, HexMistake> {
    let mistake = |kind, place| Err(HexMistake { kind, place });
    let (bytes, mut out) = (text.as_bytes(), Vec::with_capacity(text.len() / 2));
    let mut at = 0;
    while at < bytes.len() {
        if matches!(bytes[at..], [b'0' | b'\\', b'x' | b'X', ..]) {
            at += 2;
            let run = run_of_digits(&bytes[at..]);
            // `0x1` is a byte, too; `0x` without a digit is not.
            match run {
                0 => return mistake(HexMistakeKind::OddDigits, at - 2..at),
                1 => out.push(digit(bytes[at])),
                run if run % 2 == 1 => {
                    return mistake(HexMistakeKind::OddDigits, at - 2..at + run);
                }
                run => out.extend(pairs(&bytes[at..at + run])),
            }
            at += run;
            continue;
        }
        let run = run_of_digits(&bytes[at..]);
        if run > 0 {
            if run % 2 == 1 {
                return mistake(HexMistakeKind::OddDigits, at..at + run);
            }
            out.extend(pairs(&bytes[at..at + run]));
            at += run;
            continue;
        }
        let rest = text.get(at..).unwrap_or_default();
        let Some(next) = rest.chars().next() else { break };
        match next {
            '#' => at += rest.find('\n').unwrap_or(rest.len()),
            _ if next.is_whitespace() || ",:;-_{}[]()<>\"'|\u{feff}".contains(next) => {
                at += next.len_utf8();
            }
            _ => {
                return mistake(HexMistakeKind::NoDigit(next), at..at + next.len_utf8());
            }
        }
    }
    Ok(out)
}

fn run_of_digits(bytes: &[u8]) -> usize {
    let run = bytes.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    // The 0 of a `0x` that directly follows digits belongs to it.
    match (bytes[..run].last(), bytes.get(run)) {
        (Some(b'0'), Some(b'x' | b'X')) => run - 1,
        _ => run,
    }
}

fn pairs(digits: &[u8]) -> impl Iterator<Item = u8> + '_ {
    digits.chunks_exact(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1]))
}

fn digit(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    }
}

/// Rows that start with `0x0010:`; the lines between them are packet summaries.
fn tcpdump(text: &str) -> Option<Vec<Vec<u8>>> {
    let mut frames: Vec<Vec<u8>> = Vec::new();
    let mut total = 0;
    for line in text.lines() {
        let Some(row) = line.trim_start().strip_prefix("0x") else { continue };
        let Some((offset, rest)) = row.split_once(':') else { continue };
        let Ok(offset) = usize::from_str_radix(offset, 16) else { continue };
        if offset == 0 {
            frames.push(Vec::new());
        }
        let frame = frames.last_mut().filter(|frame| frame.len() == offset)?;
        frame.extend(columns(rest.trim_start())?);
        total += ROW_BYTES;
        if total > BYTES_MAX {
            return None;
        }
    }
    (!frames.is_empty()).then_some(frames)
}

/// Rows with offsets in any of the other formats.
fn dump(text: &str) -> Option<Vec<u8>> {
    let mut out: Vec<u8> = Vec::new();
    let (mut rows, mut folded) = (0, false);
    for line in text.lines().map(str::trim_end).filter(|line| !line.is_empty()) {
        if line == "*" && rows > 0 {
            folded = true;
            continue;
        }
        let row = line.trim_start();
        let end = row.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(row.len());
        let (offset, rest) = row.split_at(end);
        if !(4..=16).contains(&offset.len()) {
            return None;
        }
        let offset = usize::from_str_radix(offset, 16).ok()?;
        if std::mem::take(&mut folded) {
            repeat_last_row(&mut out, offset)?;
        }
        if offset != out.len() {
            return None;
        }
        out.extend(match rest.strip_prefix(':') {
            Some(rest) => columns(rest.strip_prefix(' ')?.trim_start())?,
            None => row_of_pairs(rest)?,
        });
        rows += 1;
    }
    // An offset alone is not a dump: these digits are bytes.
    (rows > 0 && !out.is_empty()).then_some(out)
}

/// hexdump and od omit rows that are equal to the previous one, up to this offset.
fn repeat_last_row(out: &mut Vec<u8>, until: usize) -> Option<()> {
    let last = out.len().checked_sub(ROW_BYTES)?;
    let row: [u8; ROW_BYTES] = out[last..].try_into().ok()?;
    let missing = until.checked_sub(out.len())?;
    if until > BYTES_MAX || missing % ROW_BYTES != 0 {
        return None;
    }
    (0..missing / ROW_BYTES).for_each(|_| out.extend(row));
    Some(())
}

/// Groups of pairs separated by one space; two spaces start the text column.
fn columns(rest: &str) -> Option<Vec<u8>> {
    let groups = rest.find("  ").map_or(rest, |end| &rest[..end]).trim_end();
    let mut out = Vec::with_capacity(ROW_BYTES);
    for group in groups.split(' ').filter(|group| !group.is_empty()) {
        let bytes = group.as_bytes();
        if bytes.len() % 2 != 0 || run_of_digits(bytes) != bytes.len() {
            return None;
        }
        out.extend(pairs(bytes));
    }
    Some(out)
}

/// Single pairs after an offset without a colon; after sixteen, three spaces or a bar start the
/// text column.
fn row_of_pairs(rest: &str) -> Option<Vec<u8>> {
    let rest = rest.split('|').next().unwrap_or_default();
    if rest.is_empty() {
        // The last row of hexdump and od is an offset alone.
        return Some(Vec::new());
    }
    let rest = rest.strip_prefix(' ')?.trim_start();
    let rest = rest.find("   ").map_or(rest, |end| &rest[..end]);
    let mut out = Vec::with_capacity(ROW_BYTES);
    for pair in rest.split(' ').filter(|pair| !pair.is_empty()).take(ROW_BYTES) {
        let bytes = pair.as_bytes();
        if bytes.len() != 2 || run_of_digits(bytes) != 2 {
            return None;
        }
        out.extend(pairs(bytes));
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn bytes(text: &str) -> Vec<u8> {
        match read(text) {
            Ok(Pasted::Bytes(bytes)) => bytes,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn pairs_are_read_with_any_separators() {
        for text in [
            "c4a700001201",
            "C4 A7 00 00 12 01",
            "c4:a7:00:00:12:01",
            "0xc4a7 0x00 0x00 0x12 0x1",
            "{0xC4, 0xA7, 0x0, 0x0, 0x12, 0x01}",
            "\\xc4\\xa7\\x00\\x00\\x12\\x01",
            "\"c4a7\"  # the magic\n0000 # more\n\n12-01\n",
            "0xc40xa70x000x000x120x01",
        ] {
            assert_eq!(bytes(text), [0xc4, 0xa7, 0, 0, 0x12, 1], "{text}");
        }
        // Zeros are not an offset, either.
        assert_eq!((bytes("0000"), bytes("000000")), (vec![0; 2], vec![0; 3]));
    }

    #[test]
    fn dumps_of_all_tools_are_read() {
        let want: Vec<u8> = (0u8..20).collect();
        let xxd = "00000000: 0001 0203 0405 0607 0809 0a0b 0c0d 0e0f  ................\n\
                   00000010: 1011 1213                                ab  c\n";
        let hexdump = "00000000  00 01 02 03 04 05 06 07  08 09 0a 0b 0c 0d 0e 0f  |.......|....|\n\
                       00000010  10 11 12 13                                       |ab c|\n\
                       00000014\n";
        let wireshark = "0000   00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f   ..........a b ..\n\
                         0010   10 11 12 13                                       ....\n";
        let od = "000000 00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f\n\
                  000010 10 11 12 13\n000014\n";
        for text in [xxd, hexdump, wireshark, od] {
            assert_eq!(bytes(text), want, "{text}");
        }
        let folded = "00000000  61 61 61 61 61 61 61 61  61 61 61 61 61 61 61 61  |aaaaaaaa|\n*\n\
                      00000030  62                                                |b|\n00000031\n";
        let mut want = vec![0x61; 48];
        want.push(0x62);
        assert_eq!(bytes(folded), want);
    }

    #[test]
    fn tcpdump_prints_whole_packets() {
        let text = "12:00:00.1 IP 127.0.0.1.9 > 127.0.0.1.8: Flags [P.], length 4\n\
                    \t0x0000:  4500 0014 0001 0203 0405 0607 0809 0a0b  E...............\n\
                    \t0x0010:  ffee                                     ..\n\
                    12:00:00.2 IP 127.0.0.1.8 > 127.0.0.1.9: length 1\n\
                    \t0x0000:  45\n";
        let Ok(Pasted::Frames(frames)) = read(text) else { panic!("frames") };
        assert_eq!(frames.iter().map(Vec::len).collect::<Vec<_>>(), [18, 1]);
        assert_eq!(frames[0][16..], [0xff, 0xee]);
    }

    #[test]
    fn errors_in_hex_have_a_position() {
        let kind = |text: &str| read(text).map_err(|it| (it.kind, it.place)).unwrap_err();
        assert_eq!(kind(""), (HexMistakeKind::Empty, 0..0));
        assert_eq!(kind("c4 zz"), (HexMistakeKind::NoDigit('z'), 3..4));
        assert_eq!(kind("c4 a"), (HexMistakeKind::OddDigits, 3..4));
        assert_eq!(kind("c4 0x"), (HexMistakeKind::OddDigits, 3..5));
        assert_eq!(kind("好"), (HexMistakeKind::NoDigit('好'), 0..3));
    }

    #[test]
    fn fuzz_whatever_is_pasted_is_read_or_refused() {
        let corpus: [&[u8]; 4] = [
            b"00000000: 0001 0203  ....\n00000004: 0405  ..\n",
            b"\t0x0000:  4500 0014  E...\n\t0x0004:  ffee\n",
            b"0000   00 01 02 03   abc\n*\n0040 00\n",
            b"0xc4, \\xa7 # x\n12:34",
        ];
        throng_fuzz::mutations(&corpus, |input, _| {
            let text = String::from_utf8_lossy(input);
            match read(&text) {
                Ok(Pasted::Bytes(bytes)) => assert!(bytes.len() <= BYTES_MAX),
                Ok(Pasted::Frames(frames)) => assert!(frames.len() <= text.len()),
                Err(it) => assert!(it.place.end <= text.len()),
            }
        });
    }
}
