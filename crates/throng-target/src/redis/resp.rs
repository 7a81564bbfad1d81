//! RESP2, the language of Redis, as far as a mirror needs it: commands, and replies without lists.

/// The longest line of a reply, and the longest text in one.
const REPLY_BYTES_MAX: usize = 64 * 1024;

/// Writes a command of these words.
pub(super) fn write_command(out: &mut Vec<u8>, words: &[&[u8]]) {
    write_count(out, b'*', words.len());
    for word in words {
        write_count(out, b'$', word.len());
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
}

/// Writes the head of a command of so many words, which [`write_word`] writes.
pub(super) fn write_head(out: &mut Vec<u8>, words: usize) {
    write_count(out, b'*', words);
}

pub(super) fn write_word(out: &mut Vec<u8>, word: &[u8]) {
    write_count(out, b'$', word.len());
    out.extend_from_slice(word);
    out.extend_from_slice(b"\r\n");
}

fn write_count(out: &mut Vec<u8>, mark: u8, count: usize) {
    out.push(mark);
    let mut digits = [0; 20];
    let (mut at, mut left) = (digits.len(), count);
    loop {
        at -= 1;
        digits[at] = b'0' + (left % 10) as u8;
        left /= 10;
        if left == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
    out.extend_from_slice(b"\r\n");
}

/// What Redis says to one command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reply<'a> {
    /// It was done; what it gave is of no interest.
    Done,
    /// It was not done, for this reason.
    Error(&'a str),
}

/// The first reply in `input` and how many bytes it has; none when it is not yet complete.
pub(super) fn read_reply(input: &[u8]) -> Result<Option<(Reply<'_>, usize)>, &'static str> {
    let Some(end) = input.iter().position(|byte| *byte == b'\n') else {
        return if input.len() > REPLY_BYTES_MAX { Err("a reply is too long") } else { Ok(None) };
    };
    let Some(line) = input[..end].strip_suffix(b"\r") else {
        return Err("a line does not end in CR and LF");
    };
    let used = end + 1;
    match line.split_first() {
        Some((b'+' | b':', _)) => Ok(Some((Reply::Done, used))),
        Some((b'-', reason)) => {
            let reason = std::str::from_utf8(reason).unwrap_or("an error that is not text");
            Ok(Some((Reply::Error(reason), used)))
        }
        Some((b'$', b"-1")) => Ok(Some((Reply::Done, used))),
        Some((b'$', length)) => {
            let length = std::str::from_utf8(length).ok().and_then(|length| length.parse().ok());
            let length: usize = length.ok_or("the length of a string is not a number")?;
            if length > REPLY_BYTES_MAX {
                return Err("a reply is too long");
            }
            let all = used + length + 2;
            Ok((input.len() >= all).then_some((Reply::Done, all)))
        }
        _ => Err("a reply starts with an unknown character"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_lists_of_texts() {
        let mut out = Vec::new();
        write_command(&mut out, &[b"SADD", b"presence", b"d17"]);
        assert_eq!(out, b"*3\r\n$4\r\nSADD\r\n$8\r\npresence\r\n$3\r\nd17\r\n");
        let mut same = Vec::new();
        write_head(&mut same, 3);
        [&b"SADD"[..], b"presence", b"d17"].iter().for_each(|word| write_word(&mut same, word));
        assert_eq!(out, same);
    }

    #[test]
    fn replies_are_read_however_they_are_split() {
        let replies = b"+OK\r\n:1\r\n-LOADING wait\r\n$-1\r\n$3\r\na\nb\r\n+PONG\r\n";
        throng_fuzz::splits(replies, |parts| {
            let (mut kept, mut read) = (Vec::new(), Vec::new());
            for part in parts {
                kept.extend_from_slice(part);
                while let Some((reply, used)) = read_reply(&kept).unwrap() {
                    read.push(matches!(reply, Reply::Error("LOADING wait")));
                    kept.drain(..used);
                }
            }
            assert_eq!((read, kept.len()), (vec![false, false, true, false, false, false], 0));
        });
        for wrong in [&b"OK\r\n"[..], b"+OK\n", b"$x\r\n", b"$99999999\r\n", b"*1\r\n", b"\r\n"] {
            assert!(read_reply(wrong).is_err(), "{wrong:?}");
        }
        assert!(read_reply(&vec![b'+'; REPLY_BYTES_MAX + 1]).is_err());
    }

    #[test]
    fn fuzz_replies() {
        let corpus: [&[u8]; 2] = [b"+OK\r\n:1\r\n$3\r\nabc\r\n", b"-ERR no\r\n$-1\r\n$0\r\n\r\n"];
        throng_fuzz::mutations(&corpus, |input, _| {
            let mut at = 0;
            while let Ok(Some((_, used))) = read_reply(&input[at..]) {
                assert!(used > 0 && used <= input.len() - at);
                at += used;
            }
        });
    }
}
