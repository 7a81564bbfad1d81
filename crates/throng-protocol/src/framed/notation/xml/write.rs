//! Writes elements: what stands around the values of their fields.

use super::MARKUP;
use crate::framed::wanted::{Around, Inner};

/// The element of this name that has values at these places. The tags of `root` are packets of
/// their own: the first one leaves the element open, and `/root` ends it.
pub(in crate::framed) fn around<'p>(
    name: &str,
    root: &[u8],
    paths: impl Iterator<Item = &'p [Inner]>,
) -> Around {
    let mut element = Element::default();
    for (index, path) in paths.enumerate() {
        element.add(path, index);
    }
    let mut around = Around { order: Vec::new(), pieces: Vec::new(), end: Vec::new() };
    if name.as_bytes() == root || name.starts_with('/') {
        element.tag(name, &mut around);
        around.end.push(b'>');
    } else {
        element.write(name, &mut around);
    }
    around
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

/// An element with the values in it.
#[derive(Default)]
struct Element<'p> {
    /// Its text, or its markup.
    text: Option<usize>,
    attributes: Vec<(&'p str, usize)>,
    children: Vec<(&'p str, Element<'p>)>,
}

impl<'p> Element<'p> {
    fn add(&mut self, path: &'p [Inner], index: usize) {
        let Some((Inner::Key(first), rest)) = path.split_first() else {
            self.text = Some(index);
            return;
        };
        if let Some(name) = first.strip_prefix('@') {
            self.attributes.push((name, index));
        } else if **first == *MARKUP {
            self.text = Some(index);
        } else {
            let at = match self.children.iter().position(|(name, _)| *name == &**first) {
                Some(at) => at,
                None => {
                    self.children.push((first, Element::default()));
                    self.children.len() - 1
                }
            };
            self.children[at].1.add(rest, index);
        }
    }

    /// The start tag, but for its end.
    fn tag(&self, name: &str, around: &mut Around) {
        around.end.push(b'<');
        around.end.extend_from_slice(name.as_bytes());
        for (attribute, index) in &self.attributes {
            around.end.extend_from_slice(format!(" {attribute}='").as_bytes());
            around.value(*index);
            around.end.push(b'\'');
        }
    }

    fn write(&self, name: &str, around: &mut Around) {
        self.tag(name, around);
        if self.text.is_none() && self.children.is_empty() {
            around.end.extend_from_slice(b"/>");
            return;
        }
        around.end.push(b'>');
        if let Some(index) = self.text {
            around.value(index);
        }
        for (name, child) in &self.children {
            child.write(name, around);
        }
        around.end.extend_from_slice(format!("</{name}>").as_bytes());
    }
}
