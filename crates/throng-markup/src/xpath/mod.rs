//! XPath 1.0 over HTML and XML.

mod evaluate;
mod function;
mod lex;
mod parse;

#[cfg(test)]
mod tests;

use std::fmt;

use throng_expression::Value;

use crate::fault::PathError;
use crate::near::{Beginning, beginnings, longest};
use crate::page::Page;
use crate::tree::{NodeKind, Tree};
use evaluate::{Found, Item};
use parse::Expr;

/// An XPath 1.0 expression, such as `//form[@id='login']//input[@name='csrf']/@value`.
///
/// Elements return the text inside them without surrounding space, attributes and `text()` their
/// exact text, and an expression may also return a number, a text or a boolean.
///
/// - A name without a prefix matches elements with any prefix or none: `//Body` finds `soap:Body`.
///   A name with a prefix matches exactly that prefix in the document, so no namespace has to be
///   declared. `namespace-uri()` returns the declared namespace.
/// - In HTML, names are compared without regard to case. Implied elements exist as in a browser:
///   `/html/body`, `table/tbody`.
/// - `lower-case`, `upper-case` and `ends-with` of XPath 2.0 are supported; variables and the
///   namespace axis are not.
#[derive(Clone, Debug)]
pub struct XPath {
    text: String,
    expr: Expr,
}

impl XPath {
    pub fn parse(text: &str) -> Result<XPath, PathError> {
        Ok(XPath { text: text.to_string(), expr: parse::parse(text)? })
    }

    /// The first node in document order, or the number, text or boolean. `NaN` is no result.
    pub fn first(&self, page: &Page<'_>) -> Option<Value> {
        let (tree, found) = self.find(page)?;
        match found {
            Found::Nodes(items) => items.first().map(|item| value_of(tree, *item)),
            other => value(other),
        }
    }

    /// All nodes in document order, or the single number, text or boolean.
    pub fn all(&self, page: &Page<'_>) -> Vec<Value> {
        match self.find(page) {
            Some((tree, Found::Nodes(items))) => {
                items.iter().map(|item| value_of(tree, *item)).collect()
            }
            Some((_, other)) => value(other).into_iter().collect(),
            None => Vec::new(),
        }
    }

    /// How much of a path without a match does match.
    pub fn beginning(&self, page: &Page<'_>) -> Option<Beginning> {
        let tree = page.tree()?;
        let pieces = |text: &str| {
            let expr = parse::parse(text).ok()?;
            Some(expr.pieces()).filter(|count| *count > 0)
        };
        longest(beginnings(&self.text, pieces), |text| {
            let found = parse::parse(text).ok().and_then(|expr| evaluate::find(&expr, tree).ok());
            match found {
                Some(Found::Nodes(items)) => items.len(),
                _ => 0,
            }
        })
    }

    fn find<'t>(&self, page: &'t Page<'_>) -> Option<(&'t Tree, Found)> {
        let tree = page.tree()?;
        let found = evaluate::find(&self.expr, tree);
        Some((tree, found.map_err(|refusal| page.refuse(refusal)).ok()?))
    }
}

impl PartialEq for XPath {
    fn eq(&self, other: &XPath) -> bool {
        self.text == other.text
    }
}

impl Eq for XPath {}

impl fmt::Display for XPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn value_of(tree: &Tree, item: Item) -> Value {
    let text = item.text(tree);
    match item.attribute() {
        None if matches!(tree.kind(item.node()), NodeKind::Element | NodeKind::Root) => {
            Value::Text(text.trim().into())
        }
        _ => Value::Text(text.into()),
    }
}

fn value(found: Found) -> Option<Value> {
    match found {
        Found::Nodes(_) => None,
        Found::Text(text) => Some(Value::Text(text.into())),
        Found::Bool(value) => Some(Value::Bool(value)),
        Found::Number(number) if number.is_nan() => None,
        // Up to here every whole number is exact.
        Found::Number(number) if number.fract() == 0.0 && number.abs() <= 9e15 => {
            Some(Value::Int(number as i64))
        }
        Found::Number(number) => Some(Value::Float(number)),
    }
}
