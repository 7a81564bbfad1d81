//! SQL statements, from the text to the result.

use std::io;
use std::task::Context;

use throng_base::{Said, Time, sql};
use throng_expression::Value;
use throng_metrics::Cause;
use throng_program::{Check, Database, Sql, Statement};
use throng_protocol::machine::{Field, Fields, Machine};
use throng_protocol::sql::{Ask, Dialect, Reply, ServerError, Values};

use crate::failure::Finding;
use crate::looked::{Looked, value_of};
use crate::prepared::Plan;
use crate::prepared::code::Instruction;
use crate::recorder::evidence;
use crate::recorder::evidence::EVIDENCE_BYTES_MAX;
use crate::scope::{UserScope, scope};
use crate::shard::Lane;
use crate::trace::{Shown, What};
use crate::user::connection::Connection;
use crate::user::exchange::Exchange;
use crate::user::task::Active;
use crate::user::verb::asking::{Asking, asked, judged};
use crate::user::{State, Waits};

/// The database of a target that speaks SQL.
fn database_of(shard: &Lane, target: u16) -> Option<&Database> {
    shard.prepared.targets[usize::from(target)].target.database()
}

/// The SQL dialect of a task's database.
fn dialect_of(active: &Active<'_>) -> Dialect {
    let target = active.user.lines.get(active.task.line).target;
    database_of(active.shard, target).map_or(Dialect::default(), |it| it.dialect)
}

/// The verb `sql`: sends the statement, on a new connection if none is open.
pub(in crate::user) fn execute(
    active: &mut Active<'_>,
    sql: &Sql,
    keeps: bool,
    cx: &mut Context<'_>,
) {
    let Sql { link, step, timeout, .. } = *sql;
    let started = Asking { active, link, step, timeout }.starts(cx);
    let Some((mut exchange, until)) = started else { return };
    let sent = send(active, sql, keeps, &mut exchange, cx);
    asked(active, step, (exchange, until), sent);
}

fn send(
    active: &mut Active<'_>,
    sql: &Sql,
    keeps: bool,
    exchange: &mut Exchange,
    cx: &mut Context<'_>,
) -> Result<io::Result<()>, Finding> {
    let (shard, line) = (active.shard, active.task.line);
    let iteration = active.task.iteration(active.user.iterations);
    let (dialect, number) = (dialect_of(active), u16::try_from(active.task.pc).ok());
    let number = number.filter(|_| sql.prepares);
    let mut rendered = shard.content_buffer.borrow_mut();
    let mut scope = scope!(active.user, shard);
    scope.iterations = iteration;
    let values = sql.with.as_ref().map(|_| values_of(sql, dialect, &mut scope)).transpose()?;
    let text = match sql.text.as_literal() {
        Some(literal) => literal,
        None => {
            rendered.clear();
            scope.render(&sql.text, &mut rendered)?;
            &rendered
        }
    };
    if text.contains(&0) {
        return Err((Cause::ScenarioFailed, NUL));
    }
    if shard.is_traced() {
        let shown = shown(text, sql, dialect, &mut scope);
        shard.tell(scope.who(), scope.now, || What::Sent(Shown::of(&shown)));
    }
    let mut out = shard.write_buffer.borrow_mut();
    out.clear();
    if let Some(Connection { machine: Machine::Sql(client), .. }) =
        active.user.lines.connection_mut(line)
    {
        let values = values.as_ref();
        let keeps = keeps || shard.is_traced();
        client.ask(&Ask { sql: text, values, number, keeps }, &mut out);
    }
    exchange.bytes_out += out.len() as u64;
    Ok(active.user.outbound(line).send(&out, cx))
}

/// The result of the statement is complete.
pub(in crate::user) fn done(active: &mut Active<'_>, reply: &Reply<'_>) {
    let (shard, line) = (active.shard, active.task.line);
    let (Instruction::Do(Statement::Sql(sql)), Plan::Sql { check_plan, .. }) = active.at_pc()
    else {
        return;
    };
    let Some(mut exchange) = active.task.take_exchange() else { return };
    let (now, due) = (active.user.now, active.task.due);
    if let Some(Connection { machine: Machine::Sql(client), used, .. }) =
        active.user.lines.connection_mut(line)
    {
        *used = now;
        if client.is_in_transaction() {
            active.user.waits.change(Waits::IN_TRANSACTION, true);
        }
    }
    exchange.bytes_in = reply.bytes;
    if exchange.first_byte == Time::ZERO {
        exchange.first_byte = now;
    }
    let error = reply.error();
    exchange.status = error.as_ref().map_or(sql::SUCCESS, ServerError::status);
    if shard.is_traced() {
        trace_result(active.user, reply, error.as_ref());
    }
    let attempt = exchange.attempt(now, due);
    let mut looked = Looked::new(Some(exchange.status), b"", now - due);
    looked.fields = Fields::Sql(*reply);
    let is_wanted = || sql.checks.iter().any(|check: &Check| check.status().is_some());
    let verdict = match error {
        Some(error) if !is_wanted() => Err((Cause::of_status(error.status()), error.said())),
        _ => {
            let mut scope = scope!(active.user, shard);
            check_plan.judge(&sql.checks, &sql.saves, &looked, &mut scope)
        }
    };
    if let Err((cause, _)) = &verdict
        && shard.recorder.borrow().is_new(sql.step, *cause, exchange.status)
    {
        let dialect = dialect_of(active);
        let text = sql.text.as_literal().unwrap_or_default();
        let text = shown(text, sql, dialect, &mut scope!(active.user, shard));
        let sent = Some(Shown::first(&text, EVIDENCE_BYTES_MAX));
        shard.recorder.borrow_mut().exchange = evidence::Exchange { sent, received: None };
    }
    judged(active, exchange, &attempt, verdict);
}

#[cold]
fn trace_result(user: &mut State, reply: &Reply<'_>, error: Option<&ServerError>) {
    let mut text = match error {
        Some(error) => error.said().english().into_bytes(),
        None => format!("rows: {}", reply.rows).into_bytes(),
    };
    for name in ["affected", "insert_id"] {
        if let Some(Field::Number(number @ 1..)) = reply.field(name) {
            text.extend_from_slice(format!(", {name}: {number}").as_bytes());
        }
    }
    for (name, field) in reply.columns() {
        text.extend_from_slice(b"\n");
        text.extend_from_slice(name);
        text.extend_from_slice(b": ");
        value_of(field).write_json(&mut text);
    }
    user.tell(|| What::Received(Shown::of(&text)));
}

/// The values of its parameters.
fn values_of(sql: &Sql, dialect: Dialect, scope: &mut UserScope<'_>) -> Result<Values, Finding> {
    let (mut values, mut text) = (Values::default(), Vec::new());
    for one in sql.with.iter().flatten() {
        let value = scope.value_of(one)?;
        text.clear();
        let field = match (dialect, &value) {
            (_, Value::Null) => Field::Null,
            (Dialect::MySql, Value::Bool(value)) => Field::Bool(*value),
            (Dialect::MySql, Value::Int(value)) => Field::Number(*value),
            (Dialect::MySql, Value::Float(value)) => Field::Float(*value),
            (Dialect::MySql, Value::Bytes(bytes)) => Field::Bytes(bytes),
            (Dialect::MySql, value) => {
                // Lists and maps as JSON, for columns of that type.
                value.write_text(&mut text);
                Field::Bytes(&text)
            }
            (Dialect::Postgres, value) => {
                write_value(value, &mut text);
                Field::Bytes(&text)
            }
        };
        if dialect == Dialect::Postgres && text.contains(&0) {
            return Err((Cause::ScenarioFailed, NUL));
        }
        values.push(dialect, field);
    }
    Ok(values)
}

/// A value in PostgreSQL's format: a list as an array, bytes in hexadecimal digits.
fn write_value(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Bytes(bytes) => {
            out.extend_from_slice(b"\\x");
            bytes.iter().for_each(|byte| out.extend_from_slice(format!("{byte:02x}").as_bytes()));
        }
        Value::List(items) => {
            out.push(b'{');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                write_item(item, out);
            }
            out.push(b'}');
        }
        value => value.write_text(out),
    }
}

/// An item of an array, quoted unless it is NULL or an array.
fn write_item(item: &Value, out: &mut Vec<u8>) {
    if item.is_null() {
        return out.extend_from_slice(b"NULL");
    }
    let mut text = Vec::new();
    write_value(item, &mut text);
    if item.as_list().is_some() {
        return out.extend_from_slice(&text);
    }
    out.push(b'"');
    for byte in text {
        if matches!(byte, b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(byte);
    }
    out.push(b'"');
}

/// A statement in readable form, followed by its parameters.
#[cold]
fn shown(text: &[u8], sql: &Sql, dialect: Dialect, scope: &mut UserScope<'_>) -> Vec<u8> {
    let mut shown = text.to_vec();
    for (number, one) in (1..).zip(sql.with.iter().flatten()) {
        // Values that are only shown are drawn from a copy.
        let mut random = scope.random.clone();
        std::mem::swap(scope.random, &mut random);
        let value = one.value(scope).unwrap_or_default();
        std::mem::swap(scope.random, &mut random);
        let mark = match dialect {
            Dialect::Postgres => format!("\n${number} = "),
            Dialect::MySql => "\n? = ".into(),
        };
        shown.extend_from_slice(mark.as_bytes());
        value.write_json(&mut shown);
    }
    shown
}

const NUL: Said = say!("a statement or a parameter contains a NUL character");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_arrays_and_bytes_are_hexadecimal() {
        let written = |value: &Value| {
            let mut out = Vec::new();
            write_value(value, &mut out);
            String::from_utf8(out).unwrap()
        };
        let text = |text: &str| Value::from(text);
        let inner = Value::List([Value::Int(1), Value::Null].into());
        let list = Value::List([text("a\"b\\c"), inner, Value::Bool(true)].into());
        assert_eq!(written(&list), r#"{"a\"b\\c",{"1",NULL},"true"}"#);
        assert_eq!(written(&Value::Bytes([0, 255].into())), "\\x00ff");
        assert_eq!([written(&text("x")), written(&Value::Float(0.5))], ["x", "0.5"]);
    }
}
