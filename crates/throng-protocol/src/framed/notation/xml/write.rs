//! Writes elements: what stands around the values of their fields.

use super::MARKUP;
use crate::framed::wanted::{Around, Inner, ValueTree};

/// Writes the element of this name with values at these places. The tags of `root` are packets of
/// their own: the first one leaves the element open, and `/root` ends it.
pub(in crate::framed) fn write(
    element: &ValueTree<'_>,
    name: &str,
    root: &[u8],
    around: &mut Around,
) {
    if name.as_bytes() == root || name.starts_with('/') {
        write_tag(element, name, around);
        around.end.push(b'>');
    } else {
        write_element(element, name, around);
    }
}

/// Makes the text behind `begin` that of an attribute or an element.
pub(in crate::framed) fn escape(out: &mut Vec<u8>, begin: usize) {
    let special = |byte: &u8| matches!(byte, b'&' | b'<' | b'>' | b'\'' | b'"');
    if !out[begin..].iter().any(special) {
        return;
    }
    let text = out.split_off(begin);
    for byte in text {
        match byte {
            b'&' => out.extend_from_slice(b"&amp;"),
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            b'\'' => out.extend_from_slice(b"&apos;"),
            b'"' => out.extend_from_slice(b"&quot;"),
            byte => out.push(byte),
        }
    }
}

/// The parts that have names.
fn named<'p>(element: &'p ValueTree<'p>) -> impl Iterator<Item = (&'p str, &'p ValueTree<'p>)> {
    element.children.iter().filter_map(|(step, part)| match step {
        Inner::Key(key) => Some((&**key, part)),
        Inner::Index(_) => None,
    })
}

/// The start tag, but for its end.
fn write_tag(element: &ValueTree<'_>, name: &str, around: &mut Around) {
    around.end.push(b'<');
    around.end.extend_from_slice(name.as_bytes());
    for (key, part) in named(element) {
        if let (Some(attribute), Some(index)) = (key.strip_prefix('@'), part.value) {
            around.end.extend_from_slice(format!(" {attribute}='").as_bytes());
            around.value(index);
            around.end.push(b'\'');
        }
    }
}

fn write_element(element: &ValueTree<'_>, name: &str, around: &mut Around) {
    write_tag(element, name, around);
    let markup = named(element).find(|(key, _)| *key == MARKUP).and_then(|(_, part)| part.value);
    let text = element.value.or(markup);
    let inner = named(element).filter(|(key, _)| !key.starts_with('@') && *key != MARKUP);
    let mut inner = inner.peekable();
    if text.is_none() && inner.peek().is_none() {
        around.end.extend_from_slice(b"/>");
        return;
    }
    around.end.push(b'>');
    if let Some(index) = text {
        around.value(index);
    }
    for (name, part) in inner {
        write_element(part, name, around);
    }
    around.end.extend_from_slice(format!("</{name}>").as_bytes());
}
