//! The verb `redis`: a command as redis-cli reads it, or its words, or several of them.

use std::sync::Arc;

use throng_base::Said;
use throng_program::redis::Commands;
use throng_program::{
    Check, Content, Extractor, Matcher, Message, Request, Statement, StepKind, Text, Until, Which,
};

use super::words::split;
use crate::ast::{self, Field};
use crate::message::answer::Answer;
use crate::message::checks::{need_header, read_checks};
use crate::message::save::read_saves;
use crate::read::Context;
use crate::read::template::Escape;
use crate::step::failing::{read_failing, read_timeout};
use crate::step::rows::Rows;
use crate::step::via::Via;
use crate::syntax::{Kind, Node};
use crate::words::shorten;

const HELP: Said = say!(
    "write `redis: GET user:${{user.id}}`, or the words in a list: `redis: [SET, key, value]`"
);

pub(crate) fn read_redis(
    cx: &mut Context<'_>,
    fields: &ast::Redis<'_>,
    via: Via<'_>,
    rows: &mut Rows,
) -> Option<Statement> {
    let node = fields.redis.node()?;
    let commands = read_commands(cx, node);
    let checks = read_checks(cx, fields.check, Answer::Message);
    let saves = read_saves(cx, *fields.save, Answer::Message);
    let timeout = read_timeout(cx, fields.timeout);
    let failing = read_failing(cx, fields.on_error, fields.retry);
    let written = written(node);
    let step = rows.row(cx, fields, StepKind::Redis, Some(&written))?;
    rows.speak(step, via.link, None);
    let is_read = !checks.is_empty() || !saves.is_empty();
    let commands = Commands::new(&commands?, written, is_read);
    Some(Statement::Request(Arc::new(Request {
        step,
        link: via.link,
        message: Message { content: Content::Redis(Box::new(commands)), cut: None },
        answer: Which::default(),
        until: Until::Any,
        checks,
        saves,
        timeout: timeout?,
        failing,
    })))
}

/// The first command as written, and the number of the others.
fn written(node: &Node) -> String {
    let text = |node: &Node| node.text().unwrap_or("").to_string();
    let words = |items: &[Node]| items.iter().map(text).collect::<Vec<_>>().join(" ");
    let all: Vec<String> = match &node.kind {
        Kind::List(items) if items.iter().any(|item| matches!(item.kind, Kind::List(_))) => items
            .iter()
            .map(|item| match &item.kind {
                Kind::List(items) => words(items),
                _ => text(item),
            })
            .collect(),
        Kind::List(items) => vec![words(items)],
        _ => text(node)
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .map(String::from)
            .collect(),
    };
    match all.as_slice() {
        [] => String::new(),
        [one] => shorten(one),
        [first, others @ ..] => format!("{} (+{})", shorten(first), others.len()),
    }
}

/// The words of each command; at least one command.
fn read_commands(cx: &mut Context<'_>, node: &Node) -> Option<Vec<Vec<Text>>> {
    let is_list = |node: &Node| matches!(node.kind, Kind::List(_));
    let commands = match &node.kind {
        Kind::List(items) if items.iter().any(is_list) => {
            let all: Vec<Option<_>> = items.iter().map(|item| read_words(cx, item)).collect();
            all.into_iter().collect::<Option<_>>()?
        }
        Kind::List(_) => vec![read_words(cx, node)?],
        Kind::Map(_) => return cx.wrong_type(node, say!("a command"), HELP),
        Kind::Scalar { .. } => {
            let text = cx.template(node, say!("a command"), Escape::None)?;
            match split(text) {
                Ok(commands) => commands,
                Err(mistake) => return cx.bad_value(node, mistake, QUOTES),
            }
        }
    };
    if commands.iter().all(Vec::is_empty) {
        return cx.refuse("empty", node.place, say!("there is no command"), say!("empty"), HELP);
    }
    for words in &commands {
        check_command(cx, node, words)?;
    }
    Some(commands)
}

/// The words of a command as a list.
fn read_words(cx: &mut Context<'_>, node: &Node) -> Option<Vec<Text>> {
    let Kind::List(items) = &node.kind else {
        return cx.wrong_type(node, say!("a list of words"), HELP);
    };
    if items.is_empty() {
        return cx.refuse("empty", node.place, say!("there is no command"), say!("empty"), HELP);
    }
    let words: Vec<Option<Text>> = items
        .iter()
        .map(|item| cx.template(item, say!("a word of the command"), Escape::None))
        .collect();
    words.into_iter().collect()
}

/// Rejects commands whose number of replies is unknown.
fn check_command(cx: &mut Context<'_>, node: &Node, words: &[Text]) -> Option<()> {
    let word = |nth: usize| words.get(nth).and_then(Text::as_literal).unwrap_or_default();
    let upper = |nth: usize| String::from_utf8_lossy(word(nth)).to_ascii_uppercase();
    let name = upper(0);
    let (message, help) = match name.as_str() {
        "MONITOR" | "SYNC" | "PSYNC" => (
            say!("`{name}` is not supported: its replies never end"),
            say!("to compare counts, use `INFO commandstats` or a monitor of throng"),
        ),
        "HELLO" if words.len() > 1 && word(1) != b"2" => (
            say!("`{name}` is not supported: throng uses version 2 of the Redis protocol"),
            say!("write `AUTH`, or the user and the password in the URL of the target"),
        ),
        "CLIENT" if upper(1) == "REPLY" => (
            say!("`CLIENT REPLY` is not supported: each command needs its reply"),
            say!("remove it; to send faster, write several commands in one step"),
        ),
        "SUBSCRIBE" | "PSUBSCRIBE" | "SSUBSCRIBE" | "UNSUBSCRIBE" | "PUNSUBSCRIBE"
        | "SUNSUBSCRIBE"
            if words.len() == 1 =>
        {
            (say!("`{name}` requires a channel"), say!("write `redis: {name} news`"))
        }
        _ => return Some(()),
    };
    cx.bad_value(node, message, help)
}

const QUOTES: Said = say!(
    "quote as in redis-cli, `SET key \"two words\"`, or write a list: `[SET, key, two words]`"
);

/// `channel` of a pattern: the channel of a published message.
pub(crate) fn read_channel(
    cx: &mut Context<'_>,
    field: Field<'_>,
    checks: &mut Vec<Check>,
) -> Option<()> {
    let Some((key, node)) = field.entry() else { return Some(()) };
    need_header(cx, key)?;
    let channel = cx.template(node, say!("a channel"), Escape::None)?;
    checks.push(Check {
        extractor: Extractor::Header("channel".into()),
        matcher: Matcher::Equals(channel),
    });
    Some(())
}
