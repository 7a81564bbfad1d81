//! XML (Namespaces are not resolved: a name is as it is written): where an element of a stream
//! ends, where the parts of an element are, and how one is written. No declaration of a document
//! type is accepted, so there are no entities but the five of the standard.

mod end;
mod parts;
mod write;

use std::borrow::Cow;

use throng_base::Said;

use crate::framed::wanted::Inner;

pub(in crate::framed) use end::ExtentSearch;
pub(super) use end::end;
pub(super) use parts::{is_whole, scan};
pub(super) use write::escape;
pub(in crate::framed) use write::write;

/// Elements within each other.
const DEPTH_MAX: usize = 64;

/// In paths: the markup in an element, and the name of the packet's element.
const MARKUP: &str = "node()";
const NAME: &str = "name()";

/// What opens markup that is no element, and how many bytes of its end must lie behind it.
const COMMENT: &[u8] = b"<!--";
const CDATA: &[u8] = b"<![CDATA[";

/// `@id`, `body`, `error/@code`, `bind/node()`; None is no path.
pub(in crate::framed) fn path(written: &str) -> Option<Box<[Inner]>> {
    let steps: Vec<&str> = written.split('/').collect();
    let (last, before) = steps.split_last()?;
    let is_right = match *last {
        MARKUP => true,
        NAME => before.is_empty(),
        last => is_name(last.strip_prefix('@').unwrap_or(last)),
    };
    let is_right = is_right && before.iter().all(|step| is_name(step));
    is_right.then(|| steps.into_iter().map(|step| Inner::Key(step.into())).collect())
}

/// The path of the field that selects the message.
pub(in crate::framed) fn is_name_path(path: &[Inner]) -> bool {
    matches!(path, [Inner::Key(key)] if **key == *NAME)
}

/// Whether a path leads to markup, whose value is as it is written.
pub(super) fn is_markup(path: &[Inner]) -> bool {
    matches!(path.last(), Some(Inner::Key(key)) if **key == *MARKUP)
}

/// Whether no element that is written has values at both places.
pub(in crate::framed) fn are_at_odds(one: &[Inner], other: &[Inner]) -> bool {
    let is_own = |path: &[Inner]| path.is_empty() || is_markup(path) && path.len() == 1;
    let is_attribute = |path: &[Inner]| match path {
        [Inner::Key(key)] => key.starts_with('@') || **key == *NAME,
        _ => false,
    };
    let same = one.iter().zip(other).take_while(|(a, b)| a == b).count();
    let (one, other) = (&one[same..], &other[same..]);
    one == other || is_own(one) && !is_attribute(other) || is_own(other) && !is_attribute(one)
}

/// Whether an element may have this name. Letters of other languages are not told apart.
pub(in crate::framed) fn is_name(name: &str) -> bool {
    let is_start = |c: char| c.is_ascii_alphabetic() || !c.is_ascii() || matches!(c, '_' | ':');
    let is_other = |c: char| is_start(c) || c.is_ascii_digit() || matches!(c, '-' | '.');
    name.starts_with(is_start) && name.chars().all(is_other)
}

/// Behind the name that begins there.
fn name_end(text: &[u8], at: usize) -> usize {
    let is_in = |byte: &&u8| !matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b'/' | b'>' | b'=');
    at + text[at..].iter().take_while(is_in).count()
}

/// Behind spaces and line breaks.
fn blank(text: &[u8], at: usize) -> usize {
    let is_blank = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
    at + text.get(at..).unwrap_or_default().iter().take_while(is_blank).count()
}

/// What is said of a text that stops being XML there.
pub(super) fn wrong(text: &[u8], at: usize) -> Said {
    match text.get(at) {
        Some(byte) => say!("the text is not valid XML from here: {}", byte.escape_ascii()),
        None => say!("the XML text is incomplete"),
    }
}

/// The text in the markup of an attribute or an element, with that of the elements in it.
pub(super) fn text(markup: &[u8]) -> Cow<'_, [u8]> {
    if is_plain(markup) {
        return Cow::Borrowed(markup);
    }
    let (mut out, mut at) = (Vec::with_capacity(markup.len()), 0);
    while let Some(found) = memchr::memchr2(b'&', b'<', &markup[at..]) {
        out.extend_from_slice(&markup[at..at + found]);
        at += found;
        let end = match markup[at] {
            b'&' => entity(markup, at).map(|(letter, end)| {
                let mut bytes = [0; 4];
                out.extend_from_slice(letter.encode_utf8(&mut bytes).as_bytes());
                end
            }),
            _ => {
                let end = parts::tag_end(markup, at);
                if let (true, Some(end)) = (markup[at..].starts_with(CDATA), end) {
                    out.extend_from_slice(&markup[at + CDATA.len()..end - b"]]>".len()]);
                }
                end
            }
        };
        // Markup that was read once has no others.
        let Some(end) = end else { break };
        at = end;
    }
    out.extend_from_slice(&markup[at..]);
    Cow::Owned(out)
}

/// Whether the text in this markup is the markup itself.
pub(super) fn is_plain(markup: &[u8]) -> bool {
    memchr::memchr2(b'&', b'<', markup).is_none()
}

/// The letter that `&...;` stands for, and the place behind it.
fn entity(text: &[u8], at: usize) -> Option<(char, usize)> {
    /// `&#x10ffff;`
    const BYTES_MAX: usize = 10;
    let rest = &text[at + 1..text.len().min(at + BYTES_MAX)];
    let length = memchr::memchr(b';', rest)?;
    let name = std::str::from_utf8(&rest[..length]).ok()?;
    let letter = match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        name => {
            let digits = name.strip_prefix('#')?;
            let number = match digits.strip_prefix('x') {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => digits.parse().ok()?,
            };
            let is_letter = |c: &char| *c >= ' ' || matches!(c, '\t' | '\r' | '\n');
            char::from_u32(number).filter(is_letter).filter(|_| !digits.contains('+'))?
        }
    };
    Some((letter, at + 1 + length + 1))
}
