//! CSS selectors over HTML and XML.

mod matching;
mod parse;

#[cfg(test)]
mod tests;

use std::fmt;

use throng_expression::Value;

use crate::fault::{PathError, Refusal};
use crate::near::{Beginning, beginnings, longest};
use crate::page::Page;
use crate::tree::{NodeId, Tree};
use matching::Search;
use parse::Complex;

/// A CSS selector, such as `form#login input[name=csrf]@value`: the part after the last `@` is the
/// requested attribute. Without it, the result is the text inside the element, without surrounding
/// space.
///
/// Selectors are those of level 4 that say something about a document: names, `#id`, `.class`,
/// attributes with all comparisons and `i`, all four combinators, lists, `:not`, `:is`, `:where`,
/// `:has`, the `:nth-…`, `:first-…`, `:last-…` and `:only-…` family, `:empty`, `:root`, `:checked`,
/// `:disabled`, `:enabled`, and `:contains("text")` as in older tools. In XML, a name means
/// elements with any prefix, as in [`crate::XPath`].
#[derive(Clone, Debug)]
pub struct Css {
    text: String,
    selectors: Vec<Complex>,
    attribute: Option<String>,
}

impl Css {
    pub fn parse(text: &str) -> Result<Css, PathError> {
        let (selector, attribute) = split_attribute(text);
        let selectors = parse::parse(selector)?;
        Ok(Css { text: text.to_string(), selectors, attribute: attribute.map(str::to_string) })
    }

    /// The first result in document order.
    pub fn first(&self, page: &Page<'_>) -> Option<Value> {
        self.find(page, 1).pop()
    }

    pub fn all(&self, page: &Page<'_>) -> Vec<Value> {
        self.find(page, usize::MAX)
    }

    /// How much of a selector without a match does match.
    pub fn beginning(&self, page: &Page<'_>) -> Option<Beginning> {
        let tree = page.tree()?;
        let pieces = |text: &str| Css::parse(text).ok().map(|css| css.pieces());
        longest(beginnings(&self.text, pieces), |text| {
            let found = Css::parse(text).ok().and_then(|css| css.search(tree, usize::MAX).ok());
            found.map_or(0, |values| values.len())
        })
    }

    /// How many elements, and tests of them, it contains.
    fn pieces(&self) -> usize {
        let compounds = self.selectors.iter().flat_map(|selector| &selector.parts);
        let pieces = compounds
            .map(|(_, compound)| 1 + usize::from(compound.name.is_some()) + compound.tests.len());
        pieces.sum::<usize>() + usize::from(self.attribute.is_some())
    }

    fn find(&self, page: &Page<'_>, count_max: usize) -> Vec<Value> {
        let Some(tree) = page.tree() else { return Vec::new() };
        self.search(tree, count_max).unwrap_or_else(|refusal| {
            page.refuse(refusal);
            Vec::new()
        })
    }

    fn search(&self, tree: &Tree, count_max: usize) -> Result<Vec<Value>, Refusal> {
        let mut search = Search::new(tree);
        let mut values = Vec::new();
        for node in 1..tree.end() {
            if tree.is_element(node) && search.matches_any(node, &self.selectors)? {
                values.extend(self.given(&mut search, node)?);
                if values.len() >= count_max {
                    break;
                }
            }
        }
        Ok(values)
    }

    fn given(&self, search: &mut Search<'_>, node: NodeId) -> Result<Option<Value>, Refusal> {
        Ok(match &self.attribute {
            Some(name) => search.attribute(node, name).map(|value| Value::Text(value.into())),
            None => Some(Value::Text(search.text(node)?.trim().into())),
        })
    }
}

impl PartialEq for Css {
    fn eq(&self, other: &Css) -> bool {
        self.text == other.text
    }
}

impl Eq for Css {}

impl fmt::Display for Css {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// An `@` inside quotes or brackets is followed by a quote or bracket, so it does not start a name.
fn split_attribute(text: &str) -> (&str, Option<&str>) {
    let is_name = |name: &str| {
        let part = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | ':' | '.');
        name.starts_with(|c: char| c.is_alphabetic() || c == '_') && name.chars().all(part)
    };
    match text.rsplit_once('@') {
        Some((selector, name)) if is_name(name.trim_end()) => (selector, Some(name.trim_end())),
        _ => (text, None),
    }
}
