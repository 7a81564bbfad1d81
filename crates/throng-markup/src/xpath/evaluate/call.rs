//! Evaluates functions.

use super::{Context, Found, Item, Search, truth};
use crate::fault::Refusal;
use crate::tree::{Tree, local};
use crate::xpath::function::Function;
use crate::xpath::parse::Expr;

pub(super) fn call(
    search: &mut Search<'_>,
    function: Function,
    arguments: &[Expr],
    context: Context,
) -> Result<Found, Refusal> {
    let tree = search.tree;
    Ok(match function {
        Function::Last => Found::Number(context.size as f64),
        Function::Position => Found::Number(context.position as f64),
        Function::Count => Found::Number(search.nodes(&arguments[0], context)?.len() as f64),
        Function::True => Found::Bool(true),
        Function::False => Found::Bool(false),
        Function::Boolean => Found::Bool(truth(&search.expr(&arguments[0], context)?)),
        Function::Not => Found::Bool(!truth(&search.expr(&arguments[0], context)?)),
        Function::Id => by_id(search, &arguments[0], context)?,
        Function::LocalName | Function::Name | Function::NamespaceUri => {
            let item = match arguments.first() {
                Some(expr) => search.nodes(expr, context)?.first().copied(),
                None => Some(context.item),
            };
            let name = item.map_or("", |item| match function {
                Function::Name => item.name(tree),
                Function::LocalName => local(item.name(tree)),
                _ => namespace(tree, item),
            });
            Found::Text(name.to_string())
        }
        Function::Substring => {
            let value = search.expr(&arguments[0], context)?;
            let text = search.string(&value)?;
            let mut numbers = Vec::with_capacity(2);
            for expr in &arguments[1..] {
                let value = search.expr(expr, context)?;
                numbers.push(search.number(&value)?);
            }
            Found::Text(substring(&text, numbers[0], numbers.get(1).copied()))
        }
        Function::Sum => {
            let items = search.nodes(&arguments[0], context)?;
            Found::Number(search.texts(&items)?.iter().map(|text| to_number(text)).sum())
        }
        Function::Number | Function::Floor | Function::Ceiling | Function::Round => {
            let number = match arguments.first() {
                Some(expr) => {
                    let value = search.expr(expr, context)?;
                    search.number(&value)?
                }
                None => to_number(&search.text(context.item)?),
            };
            Found::Number(match function {
                Function::Floor => number.floor(),
                Function::Ceiling => number.ceil(),
                // Halves are rounded up, also below zero.
                Function::Round => (number + 0.5).floor(),
                _ => number,
            })
        }
        _ => {
            let mut texts = Vec::new();
            for expr in arguments {
                let value = search.expr(expr, context)?;
                texts.push(search.string(&value)?);
            }
            if texts.is_empty() {
                texts.push(search.text(context.item)?);
            }
            of_texts(search, function, &texts, context)?
        }
    })
}

/// The functions with text arguments.
fn of_texts(
    search: &mut Search<'_>,
    function: Function,
    texts: &[String],
    context: Context,
) -> Result<Found, Refusal> {
    let first = texts[0].as_str();
    let second = texts.get(1).map_or("", String::as_str);
    Ok(Found::Text(match function {
        Function::StartsWith => return Ok(Found::Bool(first.starts_with(second))),
        Function::EndsWith => return Ok(Found::Bool(first.ends_with(second))),
        Function::Contains => return Ok(Found::Bool(first.contains(second))),
        Function::StringLength => return Ok(Found::Number(first.chars().count() as f64)),
        Function::Lang => return Ok(Found::Bool(has_language(search.tree, context.item, first))),
        Function::Concat => texts.concat(),
        Function::SubstringBefore => {
            first.split_once(second).map_or("", |(before, _)| before).to_string()
        }
        Function::SubstringAfter => {
            first.split_once(second).map_or("", |(_, after)| after).to_string()
        }
        Function::NormalizeSpace => {
            let words = first.split([' ', '\t', '\n', '\r']).filter(|word| !word.is_empty());
            words.collect::<Vec<_>>().join(" ")
        }
        Function::Translate => {
            search.work.spend(first.len() * second.len() / 16)?;
            translate(first, second, &texts[2])
        }
        Function::LowerCase => first.to_lowercase(),
        Function::UpperCase => first.to_uppercase(),
        _ => first.to_string(),
    }))
}

/// The part of a text from a position, counted from 1 and rounded, to the end without a length
/// (XPath 1.0, 4.2).
fn substring(text: &str, start: f64, length: Option<f64>) -> String {
    let round = |number: f64| (number + 0.5).floor();
    let start = round(start);
    let end = length.map_or(f64::INFINITY, |length| start + round(length));
    let chosen = text.chars().zip(1u32..).filter(|(_, at)| {
        let at = f64::from(*at);
        at >= start && at < end
    });
    chosen.map(|(c, _)| c).collect()
}

fn translate(text: &str, from: &str, to: &str) -> String {
    let to: Vec<char> = to.chars().collect();
    let replaced = text.chars().filter_map(|c| match from.chars().position(|other| other == c) {
        Some(at) => to.get(at).copied(),
        None => Some(c),
    });
    replaced.collect()
}

fn by_id(search: &mut Search<'_>, expr: &Expr, context: Context) -> Result<Found, Refusal> {
    let value = search.expr(expr, context)?;
    let text = match &value {
        Found::Nodes(items) => search.texts(items)?.join(" "),
        other => search.string(other)?,
    };
    let wanted: std::collections::HashSet<&str> = text.split_ascii_whitespace().collect();
    let tree = search.tree;
    search.work.spend(tree.end() as usize)?;
    let named = (1..tree.end())
        .filter(|node| tree.attribute(*node, "id").is_some_and(|id| wanted.contains(id)));
    Ok(Found::Nodes(named.map(Item::of).collect()))
}

/// The namespace that the document declares for the prefix of a name.
fn namespace(tree: &Tree, item: Item) -> &str {
    let name = item.name(tree);
    let declaration = match name.split_once(':') {
        Some(("xml", _)) => return "http://www.w3.org/XML/1998/namespace",
        Some((prefix, _)) => format!("xmlns:{prefix}"),
        // Attributes without a prefix have none.
        None if item.attribute().is_some() || name.is_empty() => return "",
        None => "xmlns".to_string(),
    };
    upward(tree, item, &declaration).unwrap_or("")
}

fn has_language(tree: &Tree, item: Item, wanted: &str) -> bool {
    let language = upward(tree, item, "xml:lang").or_else(|| upward(tree, item, "lang"));
    language.is_some_and(|language| {
        let (language, wanted) = (language.to_ascii_lowercase(), wanted.to_ascii_lowercase());
        language.strip_prefix(&wanted).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    })
}

/// The value of an attribute of the node or of its nearest ancestor.
fn upward<'t>(tree: &'t Tree, item: Item, name: &str) -> Option<&'t str> {
    let nodes = std::iter::successors(Some(item.node()), |node| tree.parent(*node));
    nodes.into_iter().find_map(|node| tree.attribute(node, name))
}

/// XPath 1.0, 4.4: digits with at most one dot and sign, and surrounding space.
pub(super) fn to_number(text: &str) -> f64 {
    let text = text.trim_matches([' ', '\t', '\n', '\r']);
    let digits = text.strip_prefix('-').unwrap_or(text);
    let good = digits.bytes().all(|b| b.is_ascii_digit() || b == b'.')
        && digits.bytes().any(|b| b.is_ascii_digit());
    if good { text.parse().unwrap_or(f64::NAN) } else { f64::NAN }
}

pub(super) fn number_text(number: f64) -> String {
    match number {
        _ if number.is_nan() => "NaN".into(),
        _ if number.is_infinite() && number > 0.0 => "Infinity".into(),
        _ if number.is_infinite() => "-Infinity".into(),
        _ if number == 0.0 => "0".into(),
        _ => number.to_string(),
    }
}
