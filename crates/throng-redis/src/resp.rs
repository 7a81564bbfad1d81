//! RESP2, the language of Redis: commands and replies.

/// The longest line of a reply, and the longest text in one.
const REPLY_BYTES_MAX: usize = 64 * 1024;
/// Of a list in a reply.
const ITEMS_MAX: usize = 64 * 1024;
/// Lists within each other.
const DEPTH_MAX: usize = 4;

/// Writes a command of these words.
pub fn write_command(out: &mut Vec<u8>, words: &[&[u8]]) {
    write_count(out, b'*', words.len());
    for word in words {
        write_count(out, b'$', word.len());
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
}

/// Writes the head of a command of so many words, which [`write_word`] writes.
pub fn write_head(out: &mut Vec<u8>, words: usize) {
    write_count(out, b'*', words);
}

pub fn write_word(out: &mut Vec<u8>, word: &[u8]) {
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// A word such as `OK`, or a text.
    Text(Vec<u8>),
    Number(i64),
    Nothing,
    List(Vec<Reply>),
    /// It was not done, for this reason.
    Error(String),
}

impl Reply {
    /// A text, if it is one of UTF-8.
    pub fn text(&self) -> Option<&str> {
        match self {
            Reply::Text(bytes) => std::str::from_utf8(bytes).ok(),
            _ => None,
        }
    }
}

/// The first reply in `input` and how many bytes it has; none when it is not yet complete.
pub fn read_reply(input: &[u8]) -> Result<Option<(Reply, usize)>, &'static str> {
    read_nested(input, 0)
}

fn read_nested(input: &[u8], depth: usize) -> Result<Option<(Reply, usize)>, &'static str> {
    let line = &input[..input.len().min(REPLY_BYTES_MAX)];
    let Some(end) = line.iter().position(|byte| *byte == b'\n') else {
        return if input.len() > REPLY_BYTES_MAX { Err("a reply is too long") } else { Ok(None) };
    };
    let Some(line) = input[..end].strip_suffix(b"\r") else {
        return Err("a line does not end in CR and LF");
    };
    let used = end + 1;
    let (mark, rest) = line.split_first().ok_or("a reply starts with an unknown character")?;
    let number = || std::str::from_utf8(rest).ok().and_then(|text| text.parse::<i64>().ok());
    let reply = match (mark, rest) {
        (b'+', _) => Reply::Text(rest.to_vec()),
        (b'-', _) => {
            let reason = std::str::from_utf8(rest).unwrap_or("an error that is not text");
            Reply::Error(reason.to_owned())
        }
        (b':', _) => Reply::Number(number().ok_or("a number is not one")?),
        (b'$' | b'*', b"-1") => Reply::Nothing,
        (b'$', _) => return read_text(input, used, number()),
        (b'*', _) => return read_list(input, used, number(), depth),
        _ => return Err("a reply starts with an unknown character"),
    };
    Ok(Some((reply, used)))
}

fn read_text(
    input: &[u8],
    used: usize,
    length: Option<i64>,
) -> Result<Option<(Reply, usize)>, &'static str> {
    let length = length.and_then(|length| usize::try_from(length).ok());
    let length = length.ok_or("the length of a string is not a number")?;
    if length > REPLY_BYTES_MAX {
        return Err("a reply is too long");
    }
    let all = used + length + 2;
    let text = input.get(used..all).map(|text| Reply::Text(text[..length].to_vec()));
    Ok(text.map(|text| (text, all)))
}

fn read_list(
    input: &[u8],
    mut used: usize,
    length: Option<i64>,
    depth: usize,
) -> Result<Option<(Reply, usize)>, &'static str> {
    let length = length.and_then(|length| usize::try_from(length).ok());
    let length = length.ok_or("the length of a list is not a number")?;
    if length > ITEMS_MAX || depth == DEPTH_MAX {
        return Err("a reply is too long");
    }
    let mut items = Vec::new();
    for _ in 0..length {
        let Some((item, bytes)) = read_nested(&input[used..], depth + 1)? else { return Ok(None) };
        items.push(item);
        used += bytes;
    }
    Ok(Some((Reply::List(items), used)))
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
        let replies =
            b"+OK\r\n:-1\r\n-LOADING wait\r\n$-1\r\n$3\r\na\nb\r\n*2\r\n$1\r\n0\r\n*1\r\n:7\r\n";
        throng_fuzz::splits(replies, |parts| {
            let (mut kept, mut read) = (Vec::new(), Vec::new());
            for part in parts {
                kept.extend_from_slice(part);
                while let Some((reply, used)) = read_reply(&kept).unwrap() {
                    read.push(reply);
                    kept.drain(..used);
                }
            }
            let text = |text: &str| Reply::Text(text.as_bytes().to_vec());
            let list = Reply::List(vec![text("0"), Reply::List(vec![Reply::Number(7)])]);
            let error = Reply::Error("LOADING wait".into());
            let all =
                [text("OK"), Reply::Number(-1), error, Reply::Nothing, text("a\nb"), list].to_vec();
            assert_eq!((read, kept.len()), (all, 0));
        });
        for wrong in [&b"OK\r\n"[..], b"+OK\n", b"$x\r\n", b"$99999999\r\n", b"*x\r\n", b"\r\n"] {
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
