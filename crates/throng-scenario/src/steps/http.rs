//! HTTP requests: the verb `http`.

use std::sync::Arc;

use throng_program::{Escape, Http, Segment, Statement, StepKind, Text};

use crate::ast;
use crate::message::answer::Answer;
use crate::message::body::{read_body, read_pairs};
use crate::message::checks::read_checks;
use crate::message::headers::{check_method, check_path, read_step_cookies, read_step_headers};
use crate::message::save::read_saves;
use crate::network::target::read_redirects;
use crate::read::Context;
use crate::read::template::TextBuilder;
use crate::step::failing::{read_failing, read_timeout};
use crate::step::rows::Rows;
use crate::step::via::Via;
use crate::syntax::{Key, Kind, Node};
use crate::words::shorten;

pub(crate) fn read_http(
    cx: &mut Context<'_>,
    fields: &ast::Http<'_>,
    via: Via<'_>,
    rows: &mut Rows,
) -> Option<Statement> {
    let node = fields.http.node()?;
    let line = read_request_line(cx, node);
    let (mut headers, digest) = read_step_headers(cx, (fields.headers, fields.auth));
    let cookies = read_step_cookies(cx, Some(fields.cookies));
    let bodies = [fields.json, fields.form, fields.body, fields.multipart];
    let body = read_body(cx, &bodies, &mut headers);
    let timeout = read_timeout(cx, fields.timeout);
    let follow_redirects = fields.redirects.node().map(|node| read_follow(cx, node));
    let checks = read_checks(cx, fields.check, Answer::Http);
    let saves = read_saves(cx, *fields.save, Answer::Http);
    let failing = read_failing(cx, fields.on_error, fields.retry);
    let step = rows.row(cx, fields, StepKind::Http, node.text());
    let query = fields.query.key().zip(fields.query.node());
    let query = query.and_then(|(key, node)| Some((key, read_query(cx, node)?)));
    let (method, path) = line?;
    let path = match query {
        Some((key, query)) => with_query(cx, path, key, &query)?,
        None => path,
    };
    rows.speak(step?, via.link, None);
    Some(Statement::Http(Arc::new(Http {
        step: step?,
        link: via.link,
        method,
        path,
        headers,
        cookies,
        digest,
        body,
        timeout: timeout?,
        follow_redirects: follow_redirects.unwrap_or(false),
        checks,
        saves,
        failing,
    })))
}

/// `GET /path`
pub(super) fn read_request_line(cx: &mut Context<'_>, node: &Node) -> Option<(String, Text)> {
    let mut text = cx.template(node, say!("a method and a path"), Escape::Path)?;
    let first = match text.segments.first() {
        Some(Segment::Literal(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
        _ => String::new(),
    };
    let Some((method, rest)) = first.split_once(char::is_whitespace) else {
        let looks_like_path = first.is_empty() || first.contains('/');
        let (message, help) = match looks_like_path {
            true => (say!("the method is missing"), say!("write `http: GET {}`", shorten(&first))),
            false => (say!("the path is missing"), say!("write `http: {} /`", shorten(&first))),
        };
        return cx.refuse("bad-path", node.place, message, say!("not `METHOD /path`"), help);
    };
    let rest = rest.trim_start();
    match rest.is_empty() {
        true => drop(text.segments.remove(0)),
        false => text.segments[0] = Segment::Literal(rest.as_bytes().into()),
    }
    let method = method.to_string();
    let method_good = check_method(cx, node, &method);
    if method == "OPTIONS" && text.as_literal() == Some(b"*") {
        return Some((method, text));
    }
    check_path(cx, node, &text)?;
    method_good.map(|()| (method, text))
}

fn read_query(cx: &mut Context<'_>, node: &Node) -> Option<Text> {
    read_pairs(cx, node, say!("write `query: {{name: value}}`"))
}

/// The path with these query parameters appended.
fn with_query(cx: &mut Context<'_>, path: Text, key: &Key, query: &Text) -> Option<Text> {
    if query.segments.is_empty() {
        return Some(path);
    }
    if path.begins_with().is_some() {
        let message = say!("a saved URL may already have a query");
        let help = say!(
            "append the query to the URL, with `?` or `&`: `http: GET ${{saved.url}}&name=value`"
        );
        return cx.refuse("bad-path", key.place, message, say!("not possible here"), help);
    }
    let has = |byte: u8| {
        path.segments.iter().any(|segment| match segment {
            Segment::Literal(bytes) => bytes.contains(&byte),
            Segment::Value { .. } | Segment::Given(_) => false,
        })
    };
    let ends = match path.segments.last() {
        Some(Segment::Literal(bytes)) => bytes.ends_with(b"?") || bytes.ends_with(b"&"),
        _ => false,
    };
    let mut builder = TextBuilder::default();
    builder.text(&path);
    builder.bytes(match (ends, has(b'?')) {
        (true, _) => b"",
        (false, true) => b"&",
        (false, false) => b"?",
    });
    builder.text(query);
    Some(builder.finish())
}

fn read_follow(cx: &mut Context<'_>, node: &Node) -> bool {
    if matches!(&node.kind, Kind::Scalar { text, .. } if text == "follow") {
        return true;
    }
    let Some(number) = read_redirects(cx, node) else { return false };
    if number == 0 {
        return false;
    }
    match cx.redirects.limit {
        Some(limit) if limit != number => {
            let message = say!("the number of redirects must be the same for all steps");
            let label = say!("other steps allow {limit}");
            let help = say!("write `redirects: follow` here and `limits: {{redirects: 10}}` once");
            cx.report("conflicting-keys", node.place, message, label, help);
        }
        _ => cx.redirects.limit = Some(number),
    }
    true
}
