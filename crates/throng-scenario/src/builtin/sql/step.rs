//! Statements of SQL: the verb `sql`.

use std::sync::Arc;

use throng_base::{Said, sql};
use throng_program::{
    Check, Extractor, Matcher, Save, Scheme, Sql, Statement, StatusSet, StepKind, Text,
};
use throng_protocol::sql::{Dialect, PARAMETERS_MAX};

use super::scan::{Scan, scan};
use crate::ast::{self, Field};
use crate::keys;
use crate::message::checks::read_time;
use crate::message::matchers::{Meaning, read_found};
use crate::read::Context;
use crate::read::template::Escape;
use crate::step::failing::{read_failing, read_timeout};
use crate::step::rows::Rows;
use crate::step::via::Via;
use crate::synonyms::did_you_mean;
use crate::syntax::{Node, Place};
use crate::words::shorten;

pub(crate) fn read_sql(
    cx: &mut Context<'_>,
    fields: &ast::Sql<'_>,
    via: Via<'_>,
    rows: &mut Rows,
) -> Option<Statement> {
    let node = fields.sql.node()?;
    let text = cx.template(node, say!("a statement"), Escape::None);
    let written = node.text().unwrap_or("");
    let dialect = via.reach.scheme.and_then(Scheme::dialect).unwrap_or_default();
    let found = scan(written, dialect);
    warn_quoted(cx, node, written, &found);
    let with = read_with(cx, fields.with);
    let prepares = fields.prepare.node().map_or(Some(true), |node| cx.bool(node));
    let timeout = read_timeout(cx, fields.timeout);
    let mut checks = Vec::new();
    if let Some(node) = fields.check.node() {
        read_checks(cx, node, dialect, &mut checks);
    }
    let saves = read_saves(cx, *fields.save, dialect);
    let failing = read_failing(cx, fields.on_error, fields.retry);
    let step = rows.row(cx, fields, StepKind::Sql, Some(written))?;
    rows.speak(step, via.link, None);
    let (text, with, prepares) = (text?, with?, prepares?);
    check_parameters(cx, fields, &found, with.as_ref())?;
    // Several statements, or a text with expressions, use the simple protocol.
    let is_one = found.statements == 1 && !found.has_expressions && prepares;
    let with = with.or_else(|| is_one.then(Vec::new));
    let prepares = prepares && !found.has_expressions;
    let (link, timeout) = (via.link, timeout?);
    let sql = Sql { step, link, text, with, prepares, timeout, checks, saves, failing };
    Some(Statement::Sql(Arc::new(sql)))
}

/// An expression in quotes becomes part of the text: a quote in its value changes the statement.
fn warn_quoted(cx: &mut Context<'_>, node: &Node, written: &str, found: &Scan) {
    let Some(range) = found.quoted.first().cloned() else { return };
    let place = cx.place_of(node, &written[range.clone()]);
    let value = written[range.clone()].trim_matches('\'');
    let mark = match found.dialect {
        Dialect::Postgres => format!("${}", found.parameters + 1),
        Dialect::MySql => "?".into(),
    };
    let rest = format!("{}{mark}{}", &written[..range.start], &written[range.end..]);
    let label = say!("a quote in the value would change the statement");
    let help = say!("write `sql: {}` with `with: [\"{}\"]`", shorten(&rest), shorten(value));
    cx.warn("sql-quotes", place, say!("this value becomes part of the statement"), label, help);
}

fn read_with(cx: &mut Context<'_>, field: Field<'_>) -> Option<Option<Vec<Text>>> {
    let Some(node) = field.node() else { return Some(None) };
    let items =
        cx.items(node, say!("a list of values"), say!("write `with: [\"${{user.id}}\"]`"))?;
    let value = |node: &Node| match node.is_null() {
        true => Some(Text::constant(throng_expression::Value::Null)),
        false => cx.value_text(node),
    };
    let values: Vec<Option<Text>> = items.iter().map(value).collect();
    values.into_iter().collect::<Option<Vec<Text>>>().map(Some)
}

/// Each parameter needs a value.
fn check_parameters(
    cx: &mut Context<'_>,
    fields: &ast::Sql<'_>,
    found: &Scan,
    with: Option<&Vec<Text>>,
) -> Option<()> {
    let (has, matchers) = (with.map_or(0, Vec::len), found.parameters);
    let place = fields.with.place_or(fields.sql.place_or(fields.place));
    if has > PARAMETERS_MAX {
        let message = say!("a statement has more than {PARAMETERS_MAX} parameters");
        let help = say!("use fewer parameters");
        return cx.refuse("too-many", place, message, say!("this exceeds the limit"), help);
    }
    if has != matchers {
        let message = match (with, found.dialect) {
            (None, Dialect::Postgres) => {
                say!("the statement has parameters up to `${matchers}`, but there is no `with`")
            }
            (None, Dialect::MySql) => {
                say!("the statement has {matchers} parameters, but there is no `with`")
            }
            (Some(_), _) => {
                say!("the statement has {matchers} parameters, but `with` has {has} values")
            }
        };
        let help = match (found.dialect, matchers) {
            (Dialect::Postgres, 0) if found.has_foreign => {
                say!("on PostgreSQL, write `$1`, `$2` and so on instead of `?`")
            }
            (Dialect::MySql, 0) if found.has_foreign => {
                say!("on MySQL, write `?` for each value instead of `$1`, `$2` and so on")
            }
            (Dialect::Postgres, 0) => say!("remove `with`, or write `$1` where a value belongs"),
            (Dialect::MySql, 0) => say!("remove `with`, or write `?` where a value belongs"),
            _ => say!("write `with: […]` with a value for each parameter"),
        };
        return cx.refuse("sql-parameters", place, message, say!("the numbers differ"), help);
    }
    if has > 0 && found.statements > 1 {
        let message = say!("only a single statement can have parameters");
        let label = say!("this text has {} statements", found.statements);
        let help = say!("write a `sql` step for each statement");
        return cx.refuse("sql-parameters", place, message, label, help);
    }
    Some(())
}

const CHECK_HELP: Said = say!("write `check: {{rows: 1, column.name: ann}}`");

fn read_checks(cx: &mut Context<'_>, node: &Node, dialect: Dialect, checks: &mut Vec<Check>) {
    let is_column = |key: &str| key.starts_with("column.");
    let entries = ast::read_open(cx, node, &keys::SQL_CHECK, is_column).unwrap_or_default();
    for (key, value) in entries {
        let mut add = |cx: &mut Context<'_>, name: String, value: &Node| {
            let matcher = read_found(cx, value, Meaning::Json);
            checks.extend(
                matcher.map(|matcher| Check { extractor: Extractor::Result(name), matcher }),
            );
        };
        match key.text.as_str() {
            "column" => {
                let columns = cx.entries(value, say!("a map of columns"), CHECK_HELP);
                for (key, value) in columns.unwrap_or_default() {
                    add(cx, format!("column.{}", key.text), value);
                }
            }
            "sqlstate" => {
                let set = read_states(cx, value).map(Matcher::Statuses);
                checks.extend(set.map(|matcher| Check { extractor: Extractor::Status, matcher }));
            }
            "time" => {
                let limit = read_time(cx, value).map(|(comparison, limit)| {
                    Matcher::Number(comparison, (limit.as_nanos() as u64).into())
                });
                checks.extend(limit.map(|matcher| Check { extractor: Extractor::Time, matcher }));
            }
            "insert_id" if dialect == Dialect::Postgres => {
                no_insert_id::<()>(cx, key.place);
            }
            name => add(cx, name.to_string(), value),
        }
    }
}

fn read_states(cx: &mut Context<'_>, node: &Node) -> Option<StatusSet> {
    let nodes = node.one_or_more();
    let mut ranges = Vec::new();
    for node in nodes {
        let text = cx.text(node, say!("a SQLSTATE"))?;
        let before = ranges.len();
        ranges.extend(sql::named(text.trim()).map(|status| (status, status)));
        if ranges.len() == before {
            let message = say!("`{}` is not a SQLSTATE that throng knows", shorten(&text));
            let help = say!("write a code such as `23505`, or a name such as `unique_violation`");
            return cx.refuse("bad-value", node.place, message, say!("unknown"), help);
        }
    }
    Some(StatusSet { ranges })
}

const SAVED: [&str; 5] = ["rows", "affected", "insert_id", "time", "column"];

/// PostgreSQL returns generated keys as columns of the result.
fn no_insert_id<T>(cx: &mut Context<'_>, place: Place) -> Option<T> {
    let message = say!("PostgreSQL does not report an `insert_id`");
    let help = say!("end the statement with `returning id`, and read `column.id`");
    cx.refuse("unknown-field", place, message, say!("only on MySQL and MariaDB"), help)
}

/// `{name: column.name, count: rows}`
fn read_saves(cx: &mut Context<'_>, field: Field<'_>, dialect: Dialect) -> Vec<Save> {
    let Some(node) = field.node() else { return Vec::new() };
    let help = say!("write `save: {{name: column.name}}`");
    let matchers = say!("a map of names and values to save");
    let mut saves = Vec::new();
    for (key, value) in cx.entries(node, matchers, help).unwrap_or_default() {
        let slot = cx.slot(key);
        let extractor = read_extractor(cx, value, dialect);
        if let Some(slot) = slot {
            cx.session.set_written(slot);
        }
        let pair = slot.zip(extractor);
        saves.extend(pair.map(|(slot, extractor)| Save {
            slot,
            extractor,
            all: false,
            default: None,
        }));
    }
    saves
}

fn read_extractor(cx: &mut Context<'_>, node: &Node, dialect: Dialect) -> Option<Extractor> {
    let text = cx.text(node, say!("a value to save"))?;
    match text.as_str() {
        "insert_id" if dialect == Dialect::Postgres => no_insert_id(cx, node.place),
        "rows" | "affected" | "insert_id" => Some(Extractor::Result(text)),
        "time" => Some(Extractor::Time),
        column if column.strip_prefix("column.").is_some_and(|name| !name.is_empty()) => {
            Some(Extractor::Result(text))
        }
        _ => {
            let word = text.split('.').next().unwrap_or_default();
            let message = say!("`{}` cannot be saved", shorten(&text));
            let label = match did_you_mean(word, SAVED) {
                Some(near) if near != word => say!("did you mean `{near}`?"),
                _ => say!("unknown"),
            };
            let help = say!("write `column.NAME`, `rows`, `affected`, `insert_id` or `time`");
            cx.refuse("unknown-save", node.place, message, label, help)
        }
    }
}
