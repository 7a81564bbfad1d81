//! The sources of rows under `data:`. Compiling reads only the first line of a file, for its
//! columns; the run reads the rows.

use std::sync::Arc;

use throng_base::{Diagnostic, Said};
use throng_data::{AtEnd, DataError, Generator, Origin, Source, Take};
use throng_expression::Value;

use crate::ast;
use crate::read::Context;
use crate::read::template::constant;
use crate::scope::{Declared, FileRole, Known};
use crate::syntax::{Key, Node, Place};
use crate::words::{is_name, shorten};

/// Maximum number of sources in a scenario.
const SOURCES_MAX: usize = 1_000;

const HELP: Said = say!("write `data: {{accounts: {{csv: accounts.csv, take: unique}}}}`");

/// Reads the sources of one file. The scenario's own are read first and win.
pub(crate) fn read_data(cx: &mut Context<'_>, node: &Node) {
    let entries = cx.entries(node, say!("a map of sources"), HELP).unwrap_or_default();
    if let Some((key, _)) = entries.get(SOURCES_MAX) {
        let help = say!("combine rows of the same kind in one file");
        cx.too_many(key.place, say!("more than {SOURCES_MAX} data sources"), help);
    }
    for (key, value) in entries.into_iter().take(SOURCES_MAX) {
        if !matches!(cx.data.find(&key.text), Known::No) {
            // The including file wins.
            continue;
        }
        match read_source(cx, key, value) {
            Some((source, columns)) => {
                let number = cx.data.sources.len() as u16;
                cx.data.by_name.insert(key.text.clone(), number);
                cx.data.sources.push(source);
                cx.data.declared.push(Declared { place: key.place, columns, used: false });
            }
            None => cx.data.broken.push(key.text.clone()),
        }
    }
}

fn read_source(
    cx: &mut Context<'_>,
    key: &Key,
    node: &Node,
) -> Option<(Source, Option<Vec<String>>)> {
    if !is_name(&key.text) {
        let message = say!("`{}` is not a valid data source name", shorten(&key.text));
        let help = say!(
            "a name consists of letters, digits and `_`: \
                                        `test_accounts`"
        );
        return cx.refuse("bad-value", key.place, message, say!("not a valid name"), help);
    }
    let fields = ast::Data::read(cx, node)?;
    let origins = [fields.csv, fields.json_lines, fields.list, fields.generate];
    let Some((kind, value)) = ast::one_of(cx, &origins) else {
        let message = say!("the data source has no rows");
        let label = say!("`csv`, `json_lines`, `list` or `generate` is missing");
        return cx.refuse("missing-key", fields.place, message, label, HELP);
    };
    let belongs = [
        (fields.separator, fields.csv, "csv"),
        (fields.columns, fields.csv, "csv"),
        (fields.rows, fields.generate, "generate"),
    ];
    for (field, owner, owner_name) in belongs {
        if let Some(key) = field.key().filter(|_| !owner.is(kind)) {
            let name = &key.text;
            let message =
                say!("`{name}` is valid only with `{owner_name}`, not with `{}`", kind.text);
            let help = say!("remove `{name}`");
            cx.report("conflicting-keys", key.place, message, say!("has no effect here"), help);
        }
    }
    let take = read_take(cx, &fields);
    let origin = match kind.text.as_str() {
        "csv" => read_csv(cx, &fields, value),
        "json_lines" => {
            let path = cx.text(value, say!("the path of a file"));
            path.map(|path| Origin::JsonLines {
                path: cx.named_path(value.place, &path, FileRole::Data),
            })
        }
        "list" => read_list(cx, value),
        _ => read_generate(cx, &fields, value),
    };
    let (origin, (take, at_end)) = (origin?, take?);
    let columns = match throng_data::columns(&origin) {
        Ok(columns) => columns.or_else(|| list_columns(&origin)),
        Err(reason) => return data_error(cx, &reason, value.place),
    };
    Some((Source::new(&key.text, origin, take, at_end), columns))
}

/// Reports what is wrong with the data, at its place in the scenario.
pub(crate) fn data_error<T>(cx: &mut Context<'_>, reason: &DataError, place: Place) -> Option<T> {
    let mut error: Diagnostic = reason.diagnostic().at(cx.span(place));
    if error.help.is_none() {
        error = error.help(HELP);
    }
    cx.fail(error)
}

fn read_take(cx: &mut Context<'_>, fields: &ast::Data<'_>) -> Option<(Take, AtEnd)> {
    const TAKES: [(&str, Take); 5] = [
        ("unique", Take::Unique),
        ("circular", Take::Circular),
        ("random", Take::Random),
        ("shuffle", Take::Shuffle),
        ("per user", Take::PerUser),
    ];
    const ENDS: [(&str, AtEnd); 3] =
        [("stop", AtEnd::Stop), ("wrap", AtEnd::Wrap), ("error", AtEnd::Error)];
    let take = fields.take.node().map_or(Some(Take::Circular), |node| cx.word(node, &TAKES));
    let at_end = fields.at_end.node().map_or(Some(AtEnd::default()), |node| cx.word(node, &ENDS));
    if let (Some(take), Some(key)) = (take, fields.at_end.key())
        && !take.can_end()
    {
        let message = say!("`at_end` has no effect if rows are reused");
        let help = say!("write `take: unique` or `take: per user`, or remove `at_end`");
        cx.report("conflicting-keys", key.place, message, say!("the rows never run out"), help);
    }
    take.zip(at_end)
}

fn read_csv(cx: &mut Context<'_>, fields: &ast::Data<'_>, node: &Node) -> Option<Origin> {
    let path = cx.text(node, say!("the path of a file"));
    let path = path.map(|path| cx.named_path(node.place, &path, FileRole::Data));
    let separator = fields.separator.node().map_or(Some(b','), |node| read_separator(cx, node));
    let columns = match fields.columns.node() {
        Some(node) => {
            let help = say!("write `columns: [name, password]`");
            let items = cx.items(node, say!("a list of names"), help.clone())?;
            let names = items.iter().map(|item| cx.text(item, say!("the name of a column")));
            let names: Vec<Option<String>> = names.collect();
            if names.is_empty() {
                return cx.bad_value(node, say!("a file must have at least one column"), help);
            }
            Some(names.into_iter().collect::<Option<Vec<String>>>()?)
        }
        None => None,
    };
    Some(Origin::Csv { path: path?, separator: separator?, columns })
}

fn read_separator(cx: &mut Context<'_>, node: &Node) -> Option<u8> {
    let text = cx.text(node, say!("a separator"))?;
    match (text.as_str(), text.as_bytes()) {
        ("tab" | "\\t", _) => Some(b'\t'),
        (_, [one]) if one.is_ascii() && !matches!(one, b'"' | b'\r' | b'\n') => Some(*one),
        _ => cx.bad_value(
            node,
            say!("a separator must be a single character"),
            say!("write `separator: \";\"` or `separator: tab`"),
        ),
    }
}

fn read_list(cx: &mut Context<'_>, node: &Node) -> Option<Origin> {
    let help = say!("write `list: [red, green]` or `list: [{{name: ann, code: 7}}]`");
    let items = cx.items(node, say!("a list of rows"), help.clone())?;
    if items.is_empty() {
        return cx.refuse("empty", node.place, say!("there are no rows"), say!("empty"), help);
    }
    let values: Vec<Option<Value>> = items.iter().map(|item| constant(cx, item)).collect();
    let values: Option<Vec<Value>> = values.into_iter().collect();
    values.map(|values| Origin::List(values.into()))
}

/// The columns of a list: all that any of its rows has. None if some rows have columns and others
/// do not.
fn list_columns(origin: &Origin) -> Option<Vec<String>> {
    let Origin::List(items) = origin else { return None };
    if !items.iter().any(|item| matches!(item, Value::Map(_))) {
        return Some(Vec::new());
    }
    let mut names: Vec<&Arc<str>> = Vec::new();
    for item in items.iter() {
        let Value::Map(entries) = item else { return None };
        for (name, _) in entries.iter() {
            if !names.contains(&name) && names.len() < throng_data::COLUMNS_MAX {
                names.push(name);
            }
        }
    }
    Some(names.into_iter().map(|name| name.to_string()).collect())
}

fn read_generate(cx: &mut Context<'_>, fields: &ast::Data<'_>, node: &Node) -> Option<Origin> {
    let help = say!("write `generate: {{id: 1..1_000_000, name: \"user-######\"}}`");
    let entries = cx.entries(node, say!("a map of columns"), help.clone())?;
    if entries.is_empty() {
        return cx.refuse("empty", node.place, say!("there are no columns"), say!("empty"), help);
    }
    let rows = match fields.rows.node() {
        Some(node) => match cx.count(node)? {
            0 => {
                return cx.bad_value(
                    node,
                    say!("a data source must have at least one row"),
                    say!("write `rows: 1000`"),
                );
            }
            rows => Some(rows),
        },
        None => None,
    };
    let mut columns = Vec::new();
    for (key, value) in entries {
        let generator = match constant(cx, value)? {
            Value::Text(text) => match Generator::parse(&text) {
                Ok(generator) => generator,
                Err(reason) => return data_error(cx, &reason, value.place),
            },
            other => Generator::Constant(other),
        };
        columns.push((key.text.clone(), generator));
    }
    Some(Origin::Generate { columns, rows })
}

/// Warns of sources that no expression uses, except in included files, which may offer more than
/// each scenario needs.
pub(crate) fn warn_unused(cx: &mut Context<'_>) {
    let unused: Vec<(String, Place)> = cx
        .data
        .sources
        .iter()
        .zip(&cx.data.declared)
        .filter(|(_, declared)| !declared.used && declared.place.file == 0)
        .map(|(source, declared)| (source.name.clone(), declared.place))
        .collect();
    for (name, place) in unused {
        let warning = cx
            .warning("unused-data", say!("no step uses the data source `{name}`"), place)
            .label(say!("never used"))
            .help(say!("write `${{data.{name}.COLUMN}}` where it is needed, or remove it"));
        cx.note(warning);
    }
}
