//! Reads an element, once: whether it is well formed, and where the wanted parts of it are.

use memchr::{memchr, memchr3, memmem};

use super::{CDATA, COMMENT, DEPTH_MAX, MARKUP, NAME, blank, entity, name_end};
use crate::framed::wanted::{ABSENT, Inner, Span, Wanted};

/// Notes where the wanted parts are; where it stops being XML. Of the element `root`, each tag is a
/// packet.
pub(in crate::framed) fn scan(
    text: &[u8],
    root: &[u8],
    wanted: &Wanted,
    found: &mut [Span],
) -> Result<(), usize> {
    let mut scan = Scan { text, found };
    let begin = scan.others(0)?;
    scan.expect(begin, b"<")?;
    let is_end = text.get(begin + 1) == Some(&b'/');
    let name_at = begin + 1 + usize::from(is_end);
    let name = begin + 1..scan.name(name_at)?;
    let is_root = !root.is_empty() && text[name_at..name.end] == *root;
    scan.note(below(wanted, NAME.as_bytes()), name.start, name.end);
    let end = match (is_end, is_root) {
        (true, true) => scan.expect(blank(text, name.end), b">")?,
        (true, false) => return Err(begin + 1),
        (false, true) => scan.attributes(name.end, Some(wanted))?.0,
        (false, false) => scan.element(begin, DEPTH_MAX, Some(wanted))?,
    };
    let end = scan.others(end)?;
    if end == text.len() { Ok(()) } else { Err(end) }
}

/// Whether it is text, or the markup of elements that are whole, as it stands in an element.
pub(in crate::framed) fn is_whole(markup: &[u8]) -> bool {
    let mut scan = Scan { text: markup, found: &mut [] };
    scan.content(0, DEPTH_MAX, None).is_ok_and(|end| end == markup.len())
}

/// Behind the tag, the comment or the like that begins there.
pub(super) fn tag_end(text: &[u8], begin: usize) -> Option<usize> {
    let scan = Scan { text, found: &mut [] };
    if let Some(end) = scan.other(begin) {
        return end.ok();
    }
    let mut at = begin;
    loop {
        at += memchr3(b'>', b'"', b'\'', &text[at..])?;
        at += 1;
        match text[at - 1] {
            b'>' => return Some(at),
            quote => at += memchr(quote, &text[at..])? + 1,
        }
    }
}

fn below<'w>(wanted: &'w Wanted, name: &[u8]) -> Option<&'w Wanted> {
    wanted.below(|step| matches!(step, Inner::Key(key) if key.as_bytes() == name))
}

struct Scan<'a> {
    text: &'a [u8],
    found: &'a mut [Span],
}

impl Scan<'_> {
    /// Behind these bytes.
    fn expect(&self, at: usize, bytes: &[u8]) -> Result<usize, usize> {
        let rest = self.text.get(at..).unwrap_or_default();
        let right = bytes.iter().zip(rest).take_while(|(a, b)| a == b).count();
        if right == bytes.len() { Ok(at + right) } else { Err(at + right) }
    }

    /// Of parts that are there several times, the first one counts.
    fn note(&mut self, wanted: Option<&Wanted>, start: usize, end: usize) {
        let slot = wanted.and_then(|wanted| wanted.slot).map(usize::from);
        if let Some(span) = slot.and_then(|slot| self.found.get_mut(slot))
            && *span == ABSENT
        {
            *span = (start as u32, end as u32);
        }
    }

    /// Behind the name that begins there.
    fn name(&self, at: usize) -> Result<usize, usize> {
        let at = at.min(self.text.len());
        let end = name_end(self.text, at);
        let is_name = std::str::from_utf8(&self.text[at..end]).is_ok_and(super::is_name);
        if is_name { Ok(end) } else { Err(at) }
    }

    /// Behind a comment, CDATA or instruction, if one begins there.
    fn other(&self, at: usize) -> Option<Result<usize, usize>> {
        let rest = &self.text[at..];
        let kinds: [(&[u8], &[u8]); 3] = [(COMMENT, b"-->"), (CDATA, b"]]>"), (b"<?", b"?>")];
        let (open, close) = kinds.into_iter().find(|(open, _)| rest.starts_with(open))?;
        let end = memmem::find(&rest[open.len()..], close);
        Some(end.map(|end| at + open.len() + end + close.len()).ok_or(self.text.len()))
    }

    /// Behind what may stand outside of elements.
    fn others(&self, at: usize) -> Result<usize, usize> {
        let mut at = blank(self.text, at);
        while at < self.text.len() && !self.text[at..].starts_with(CDATA) {
            let Some(end) = self.other(at) else { break };
            at = blank(self.text, end?);
        }
        Ok(at)
    }

    /// The letters of a text are themselves, or what stands for them is known.
    fn letters(&self, start: usize, end: usize) -> Result<(), usize> {
        let mut at = start;
        while let Some(found) = memchr(b'&', &self.text[at..end]) {
            at += found;
            let behind = entity(self.text, at).filter(|(_, behind)| *behind <= end);
            at = behind.ok_or(at)?.1;
        }
        Ok(())
    }

    /// Behind a start tag whose name ends at `at`, and whether the element ends with it.
    fn attributes(&mut self, at: usize, wanted: Option<&Wanted>) -> Result<(usize, bool), usize> {
        let text = self.text;
        let mut end = at;
        loop {
            let at = blank(text, end);
            match text.get(at) {
                Some(b'>') => return Ok((at + 1, false)),
                Some(b'/') => return Ok((self.expect(at + 1, b">")?, true)),
                Some(_) if at > end => {}
                _ => return Err(at),
            }
            let name = at..self.name(at)?;
            let at = blank(text, self.expect(blank(text, name.end), b"=")?);
            let quote = match text.get(at) {
                Some(quote @ (b'"' | b'\'')) => *quote,
                _ => return Err(at),
            };
            let start = at + 1;
            let length = memchr(quote, &text[start..]).ok_or(text.len())?;
            if let Some(open) = memchr(b'<', &text[start..start + length]) {
                return Err(start + open);
            }
            self.letters(start, start + length)?;
            let name = &text[name];
            let is_it = |key: &str| key.strip_prefix('@').map(str::as_bytes) == Some(name);
            let part = wanted.and_then(|wanted| {
                wanted.below(|step| matches!(step, Inner::Key(key) if is_it(key)))
            });
            self.note(part, start, start + length);
            end = start + length + 1;
        }
    }

    /// Behind the element that begins there.
    fn element(
        &mut self,
        begin: usize,
        depth_left: usize,
        wanted: Option<&Wanted>,
    ) -> Result<usize, usize> {
        let depth_left = depth_left.checked_sub(1).ok_or(begin)?;
        let name = begin + 1..self.name(begin + 1)?;
        let (start, is_empty) = self.attributes(name.end, wanted)?;
        let (end, behind) = match is_empty {
            true => (start, start),
            false => {
                let end = self.content(start, depth_left, wanted)?;
                let at = self.expect(end, b"</")?;
                let at = self.expect(at, &self.text[name.clone()])?;
                (end, self.expect(blank(self.text, at), b">")?)
            }
        };
        self.note(wanted, start, end);
        self.note(wanted.and_then(|wanted| below(wanted, MARKUP.as_bytes())), start, end);
        Ok(behind)
    }

    /// The end of what is in an element: where the tag begins that ends it.
    fn content(
        &mut self,
        begin: usize,
        depth_left: usize,
        wanted: Option<&Wanted>,
    ) -> Result<usize, usize> {
        let text = self.text;
        let mut at = begin;
        loop {
            let open = memchr(b'<', &text[at..]).map_or(text.len(), |found| at + found);
            self.letters(at, open)?;
            if open == text.len() || text[open + 1..].starts_with(b"/") {
                return Ok(open);
            }
            at = match self.other(open) {
                Some(end) => end?,
                None => {
                    let name = &text[open + 1..name_end(text, open + 1)];
                    let part = wanted.and_then(|wanted| below(wanted, name));
                    // A second element of the name is not looked into.
                    let part = part.filter(|part| {
                        let (start, end) = (part.slots.start, part.slots.end);
                        let spans = self.found.get(usize::from(start)..usize::from(end));
                        spans.is_some_and(|spans| spans.iter().all(|span| *span == ABSENT))
                    });
                    self.element(open, depth_left, part)?
                }
            };
        }
    }
}
