//! Field paths as written, part by part: `items[2].price`, `labels["a.b"]`.

use throng_base::Said;

use super::PathMistake;

/// Characters of a path.
const PATH_CHARS_MAX: usize = 1024;

/// A part of a written path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Part<'p> {
    Name(&'p str),
    Index(u32),
}

/// The parts of a path that are not read yet.
pub(crate) struct Parts<'p> {
    rest: &'p str,
}

impl<'p> Parts<'p> {
    pub(crate) fn new(path: &'p str) -> Result<Parts<'p>, PathMistake> {
        match path.len() > PATH_CHARS_MAX {
            true => Err(wrong(say!("the path is too long"), &path[..path.floor_char_boundary(40)])),
            false => Ok(Parts { rest: path }),
        }
    }

    /// The rest of the path, which is a path of its own.
    pub(crate) fn rest(&self) -> &'p str {
        self.rest
    }

    pub(crate) fn next(&mut self) -> Result<Option<Part<'p>>, PathMistake> {
        let whole = self.rest;
        if whole.is_empty() {
            return Ok(None);
        }
        let (part, behind) = if let Some(inner) = whole.strip_prefix("[\"") {
            let Some((key, behind)) = inner.split_once("\"]") else {
                return Err(wrong(say!("a quoted key is not closed"), whole));
            };
            (Part::Name(key), behind)
        } else if let Some(inner) = whole.strip_prefix('[') {
            let Some((number, behind)) = inner.split_once(']') else {
                return Err(wrong(say!("`]` is missing"), whole));
            };
            let index = number.trim().parse();
            let not_one = |_| wrong(say!("`{number}` is not an index"), number);
            (Part::Index(index.map_err(not_one)?), behind)
        } else {
            let end = whole.find(['.', '[']).unwrap_or(whole.len());
            if end == 0 {
                return Err(name_is_missing(whole));
            }
            (Part::Name(&whole[..end]), &whole[end..])
        };
        self.rest = match behind.strip_prefix('.') {
            Some("") => return Err(name_is_missing(whole)),
            Some(rest) => rest,
            None if behind.is_empty() || behind.starts_with('[') => behind,
            None => return Err(wrong(say!("a dot is missing between two names"), behind)),
        };
        Ok(Some(part))
    }
}

pub(crate) fn name_is_missing(part: &str) -> PathMistake {
    wrong(say!("a name is missing"), part)
}

#[allow(clippy::needless_pass_by_value)] // Callers build the message for this call.
fn wrong(message: Said, part: &str) -> PathMistake {
    let help = say!("write a path such as `items[0].name` or `labels[\"a.b\"]`");
    PathMistake { message: message.to_owned(), part: part.to_owned(), help }
}
