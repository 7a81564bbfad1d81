//! Where a packet of a stream ends, if packets are elements: all bytes are looked at once, however
//! they are cut.

use memchr::{memchr, memchr3};

use throng_base::Said;

use super::super::Extent;
use super::{CDATA, COMMENT, DEPTH_MAX, blank, name_end, wrong};

/// How far the packet was looked at, and what its bytes were there.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::framed) struct ExtentSearch {
    /// The bytes that need not be looked at again.
    pub(in crate::framed) bytes: u32,
    /// Where the markup begins that they end in.
    markup: u32,
    depth: u16,
    within: Within,
}

/// What the next byte stands in.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Within {
    #[default]
    Text,
    /// `<`, and nothing that says what follows.
    Markup,
    Tag,
    /// An attribute in these quotes.
    Quotes(u8),
    Comment,
    CData,
    /// `<?...?>`
    Instruction,
}

/// The end of the packet that `bytes` begin with. `root` is the name of the element around all
/// packets, whose tags are packets of their own.
pub(in crate::framed) fn end(
    bytes: &[u8],
    root: &[u8],
    seen: &mut ExtentSearch,
) -> Result<Extent, (usize, Said)> {
    let mut at = seen.bytes as usize;
    while at < bytes.len() {
        let (next, within) = match seen.within {
            Within::Text => match text(bytes, at, seen.depth)? {
                Some(markup) => {
                    seen.markup = markup as u32;
                    (markup, Within::Markup)
                }
                None => (bytes.len(), Within::Text),
            },
            Within::Markup => match markup(&bytes[at..]) {
                Ok(Some(within)) => (at + 1, within),
                Ok(None) => break,
                Err(wrong_at) => return Err((at + wrong_at, wrong(bytes, at + wrong_at))),
            },
            Within::Quotes(quote) => match memchr(quote, &bytes[at..]) {
                Some(found) => (at + found + 1, Within::Tag),
                None => (bytes.len(), seen.within),
            },
            Within::Tag => match memchr3(b'>', b'"', b'\'', &bytes[at..]).map(|found| at + found) {
                Some(close) if bytes[close] == b'>' => {
                    if tag(&bytes[..close], root, seen)? {
                        return Ok(Extent::Complete(close + 1));
                    }
                    (close + 1, Within::Text)
                }
                Some(quote) => (quote + 1, Within::Quotes(bytes[quote])),
                None => (bytes.len(), Within::Tag),
            },
            Within::Comment | Within::CData | Within::Instruction => {
                let (open, last): (_, &[u8]) = match seen.within {
                    Within::Comment => (COMMENT.len(), b"--"),
                    Within::CData => (CDATA.len(), b"]]"),
                    _ => (b"<?".len(), b"?"),
                };
                let begin = seen.markup as usize + open;
                match memchr(b'>', &bytes[at..]).map(|found| at + found) {
                    Some(close) if bytes[begin.min(close)..close].ends_with(last) => {
                        (close + 1, Within::Text)
                    }
                    Some(close) => (close + 1, seen.within),
                    None => (bytes.len(), seen.within),
                }
            }
        };
        (at, seen.within) = (next, within);
        seen.bytes = at as u32;
    }
    Ok(Extent::Needs(bytes.len() + 1))
}

/// Where the next markup begins. Outside of elements there is no text.
fn text(bytes: &[u8], at: usize, depth: u16) -> Result<Option<usize>, (usize, Said)> {
    if depth > 0 {
        return Ok(memchr(b'<', &bytes[at..]).map(|found| at + found));
    }
    match blank(bytes, at) {
        end if end == bytes.len() => Ok(None),
        end if bytes[end] == b'<' => Ok(Some(end)),
        end => Err((end, say!("expected an XML element, not `{}`", bytes[end].escape_ascii()))),
    }
}

/// What begins with `<`; None while too few bytes are there, and otherwise the wrong one.
fn markup(bytes: &[u8]) -> Result<Option<Within>, usize> {
    match bytes.get(1) {
        None => Ok(None),
        Some(b'?') => Ok(Some(Within::Instruction)),
        Some(b'!') => {
            for (open, within) in [(COMMENT, Within::Comment), (CDATA, Within::CData)] {
                if bytes.starts_with(open) {
                    return Ok(Some(within));
                }
                if open.starts_with(bytes) {
                    return Ok(None);
                }
            }
            let right = |open: &[u8]| bytes.iter().zip(open).take_while(|(a, b)| a == b).count();
            Err(right(COMMENT).max(right(CDATA)))
        }
        Some(b' ' | b'\t' | b'\r' | b'\n' | b'>' | b'=' | b'<' | b'&') => Err(1),
        Some(_) => Ok(Some(Within::Tag)),
    }
}

/// Whether the packet ends with this tag, of which the `>` is not in `bytes`.
fn tag(bytes: &[u8], root: &[u8], seen: &mut ExtentSearch) -> Result<bool, (usize, Said)> {
    let begin = seen.markup as usize;
    let is_end = bytes.get(begin + 1) == Some(&b'/');
    let name_at = begin + 1 + usize::from(is_end);
    let name = &bytes[name_at.min(bytes.len())..name_end(bytes, name_at.min(bytes.len()))];
    let is_root = seen.depth == 0 && !root.is_empty() && name == root;
    let is_empty = !is_end && bytes.last() == Some(&b'/');
    match (is_end, is_empty) {
        _ if is_root => return Ok(true),
        (true, _) if seen.depth == 0 => {
            let name = name.escape_ascii().to_string();
            return Err((begin, say!("the element `{name}` ends here, but it is not open")));
        }
        (true, _) => seen.depth -= 1,
        (false, true) => {}
        (false, false) if usize::from(seen.depth) == DEPTH_MAX => {
            return Err((begin, say!("elements are nested more than {DEPTH_MAX} levels deep")));
        }
        (false, false) => seen.depth += 1,
    }
    Ok(seen.depth == 0)
}
