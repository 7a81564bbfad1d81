//! Splits HTML and XML into tags, texts and comments. Never fails, and reads each byte at most a
//! constant number of times.

/// Most attributes of one element that are kept.
const ATTRIBUTES_MAX: usize = 128;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'t> {
    /// With references.
    Text(&'t str),
    /// Unchanged: a CDATA section.
    Plain(&'t str),
    /// The attributes are in [`Tokens::attributes`].
    Start {
        name: &'t str,
        closed: bool,
    },
    End(&'t str),
    Comment(&'t str),
    /// The name of the document type.
    Doctype(&'t str),
    Instruction(&'t str),
}

pub(super) struct Tokens<'t> {
    text: &'t str,
    at: usize,
    html: bool,
    /// Whether CDATA sections are recognized: in XML, and in SVG and MathML.
    pub(super) has_sections: bool,
    /// Names and values, with references, of the last start tag.
    pub(super) attributes: Vec<(&'t str, &'t str)>,
}

impl<'t> Tokens<'t> {
    pub(super) fn new(text: &'t str, html: bool) -> Tokens<'t> {
        Tokens { text, at: 0, html, has_sections: !html, attributes: Vec::new() }
    }

    pub(super) fn next(&mut self) -> Option<Token<'t>> {
        let rest = &self.text[self.at..];
        if rest.is_empty() {
            return None;
        }
        let mut from = 0;
        // A `<` that does not start markup is text.
        let tag = loop {
            match rest[from..].find('<') {
                Some(at) if begins_markup(&rest[from + at + 1..]) => break from + at,
                Some(at) => from += at + 1,
                None => break rest.len(),
            }
        };
        if tag > 0 {
            self.at += tag;
            return Some(Token::Text(&rest[..tag]));
        }
        self.markup(&rest[1..])
    }

    /// All text until the end tag `name`, which is also taken; to the end of the input without one.
    pub(super) fn raw(&mut self, name: &str) -> &'t str {
        let rest = &self.text[self.at..];
        let Some(start) = raw_end(rest, name) else {
            self.at = self.text.len();
            return rest;
        };
        let end = rest[start..].find('>').map_or(rest.len(), |end| start + end + 1);
        self.at += end;
        &rest[..start]
    }

    /// The markup after a `<`.
    fn markup(&mut self, rest: &'t str) -> Option<Token<'t>> {
        self.at += 1;
        if let Some(comment) = rest.strip_prefix("!--") {
            let comment = match comment.strip_prefix('>') {
                Some(_) => self.until(3, ">"),
                None => self.until(3, "-->"),
            };
            return Some(Token::Comment(comment));
        }
        if self.has_sections && rest.starts_with("![CDATA[") {
            return Some(Token::Plain(self.until(8, "]]>")));
        }
        if rest.get(..8).is_some_and(|begin| begin.eq_ignore_ascii_case("!doctype")) {
            return Some(self.doctype(&rest[8..]));
        }
        if rest.starts_with('?') {
            let end = if self.html { ">" } else { "?>" };
            return Some(Token::Instruction(self.until(1, end)));
        }
        if let Some(end) = rest.strip_prefix('/')
            && end.starts_with(is_name_start)
        {
            self.at += 1;
            let name = self.name();
            if self.read_attributes().is_none() {
                self.at = self.text.len();
            }
            return Some(Token::End(name));
        }
        if !rest.starts_with(is_name_start) {
            return Some(Token::Comment(self.until(1, ">")));
        }
        let name = self.name();
        let closed = self.read_attributes()?;
        Some(Token::Start { name, closed })
    }

    /// Skips `before` bytes and takes everything until `end`, which is skipped too.
    fn until(&mut self, before: usize, end: &str) -> &'t str {
        let rest = &self.text[self.at + before..];
        let (taken, length) = match rest.find(end) {
            Some(at) => (&rest[..at], at + end.len()),
            None => (rest, rest.len()),
        };
        self.at += before + length;
        taken
    }

    /// A document type, with XML declarations in brackets; those are skipped, so no entity of a
    /// document is ever expanded.
    fn doctype(&mut self, rest: &'t str) -> Token<'t> {
        let name = rest.trim_start();
        let length = name.find(|c: char| c.is_whitespace() || matches!(c, '>' | '['));
        let name = &name[..length.unwrap_or(name.len())];
        match rest.find(['[', '>']) {
            Some(at) if !self.html && rest[at..].starts_with('[') => {
                self.until(8, "]");
                self.until(0, ">");
            }
            _ => drop(self.until(8, ">")),
        }
        Token::Doctype(name)
    }

    fn name(&mut self) -> &'t str {
        let rest = &self.text[self.at..];
        let end = rest.find(|c: char| is_space(c) || matches!(c, '/' | '>'));
        let name = &rest[..end.unwrap_or(rest.len())];
        self.at += name.len();
        name
    }

    /// Reads past the `>`; true if a `/` precedes it. `None` at the end of the input.
    fn read_attributes(&mut self) -> Option<bool> {
        self.attributes.clear();
        loop {
            let rest = &self.text[self.at..];
            let body = rest.trim_start_matches(|c| is_space(c) || c == '/');
            self.at += rest.len() - body.len();
            if body.starts_with('>') {
                let closed = self.text[..self.at].ends_with('/');
                self.at += 1;
                return Some(closed);
            }
            let first = body.chars().next()?;
            let name_end = body[first.len_utf8()..]
                .find(|c: char| is_space(c) || matches!(c, '/' | '>' | '='))
                .map_or(body.len(), |end| first.len_utf8() + end);
            let name = &body[..name_end];
            self.at += name_end;
            let value = self.value()?;
            if self.attributes.len() < ATTRIBUTES_MAX
                && !self.attributes.iter().any(|(other, _)| self.same_name(other, name))
            {
                self.attributes.push((name, value));
            }
        }
    }

    /// The value after an attribute's name, empty if there is none.
    fn value(&mut self) -> Option<&'t str> {
        let rest = &self.text[self.at..];
        let Some(value) = rest.trim_start_matches(is_space).strip_prefix('=') else {
            return Some("");
        };
        let value = value.trim_start_matches(is_space);
        self.at = self.text.len() - value.len();
        let (value, length) = match value.chars().next()? {
            quote @ ('"' | '\'') => {
                let end = value[1..].find(quote)?;
                (&value[1..=end], end + 2)
            }
            _ => {
                let end = value.find(|c: char| is_space(c) || c == '>').unwrap_or(value.len());
                (&value[..end], end)
            }
        };
        self.at += length;
        Some(value)
    }

    fn same_name(&self, one: &str, other: &str) -> bool {
        one == other || (self.html && one.eq_ignore_ascii_case(other))
    }
}

/// The start of the end tag of an element with text content. In a script, the end tag is skipped
/// after `<!--` and another `<script>`, until `-->` (13.2.5.15 to 13.2.5.31).
fn raw_end(text: &str, name: &str) -> Option<usize> {
    let (mut is_comment, mut is_inner) = (false, false);
    let mut at = 0;
    while let Some(next) = text[at..].find(['<', '-']) {
        at += next;
        let rest = &text[at..];
        if name == "script" && rest.starts_with("<!--") && !is_comment {
            is_comment = true;
        } else if rest.starts_with("-->") {
            (is_comment, is_inner) = (false, false);
        } else if rest.strip_prefix("</").is_some_and(|rest| begins_with_name(rest, name)) {
            if !is_inner {
                return Some(at);
            }
            is_inner = false;
        } else if is_comment && begins_with_name(&rest[1..], name) {
            is_inner = true;
        }
        at += 1;
    }
    None
}

fn begins_with_name(text: &str, name: &str) -> bool {
    let (text, ends) = (text.as_bytes(), |b: &u8| b.is_ascii_whitespace() || b"/>".contains(b));
    text.get(..name.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(name.as_bytes()))
        && text.get(name.len()).is_some_and(ends)
}

fn begins_markup(rest: &str) -> bool {
    rest.starts_with(|c: char| is_name_start(c) || matches!(c, '!' | '/' | '?'))
}

fn is_name_start(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_' || !c.is_ascii()
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\x0c')
}
