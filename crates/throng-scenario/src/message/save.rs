//! Values saved from a response: the map under `save:`.

use throng_base::Said;
use throng_extract::JsonPath;
use throng_program::{Extractor, Save};

use crate::ast::{self, Field};
use crate::message::answer::Answer;
use crate::message::checks::{json_path_of, no_fields};
use crate::message::fields::{field_extractor, warn_hidden};
use crate::message::headers::{self, is_token};
use crate::message::json::read_path;
use crate::message::matchers::read_extractor;
use crate::message::packets::packets_extractor;
use crate::native::Headers;
use crate::read::Context;
use crate::synonyms::did_you_mean;
use crate::syntax::{Kind, Node};
use crate::words::shorten;

const HELP: Said = say!(
    "write `json.data.token`, `header.etag`, `cookie.sid`, `body`, `status`, `time`, `size`, \
     `{{regex: 'id=(\\d+)'}}`, `{{css: 'input@value'}}`, `{{xpath: //a/@href}}` or \
     `\"${{response.json.items.size()}}\"`"
);

/// Reads the `save:` of a step, whose expressions can use the response.
pub(crate) fn read_saves(cx: &mut Context<'_>, field: Field<'_>, answer: Answer<'_>) -> Vec<Save> {
    let Some(node) = field.node() else { return Vec::new() };
    let help = say!("write `save: {{token: json.data.token}}`");
    let entries = cx
        .entries(node, say!("a map of names and values to save"), help.clone())
        .unwrap_or_default();
    if entries.is_empty() && matches!(node.kind, Kind::Map(_)) {
        let message = say!("this `save` does not contain any values");
        cx.warn("empty-check", node.place, message, say!("empty"), help);
    }
    let mut saves = Vec::new();
    for (key, value) in entries {
        let slot = cx.slot(key);
        let found = answer.read(cx, |cx| read_save(cx, value, answer));
        if let Some(slot) = slot {
            cx.session.set_written(slot);
        }
        saves.extend(slot.zip(found).map(|(slot, found)| Save { slot, ..found }));
    }
    saves
}

/// A saved value, whose slot is set later.
fn read_save(cx: &mut Context<'_>, node: &Node, answer: Answer<'_>) -> Option<Save> {
    let first = |extractor| Save { slot: 0, extractor, all: false, default: None };
    let Kind::Scalar { text, .. } = &node.kind else { return read_save_map(cx, node, answer) };
    if node.is_null() {
        return cx.wrong_type(node, say!("a value to save"), HELP);
    }
    if text.contains("${") {
        return cx
            .expression(node, say!("a value"))
            .map(|value| first(Extractor::Expression(value)));
    }
    if let Some(kinds) = answer.kinds() {
        match text.as_str() {
            word @ ("body" | "text" | "time" | "size" | "status") if answer.is_word(word) => {
                warn_hidden(cx, kinds, word, node.place);
            }
            word if answer.has_head() && word.starts_with("header.") => {}
            word if kinds.counts_packets(word) => {
                return packets_extractor(cx, kinds, word, node.place).map(first);
            }
            path => return field_extractor(cx, kinds, path, node.place).map(first),
        }
    }
    let extractor = match text.as_str() {
        "body" | "text" => Extractor::Body,
        "time" => Extractor::Time,
        "size" => Extractor::Size,
        "json" => Extractor::Json(JsonPath::default()),
        "status" if matches!(answer, Answer::Message) => return not_of_message(cx, node, text),
        "status" => Extractor::Status,
        _ if text.starts_with("json.") || text.starts_with("json[") => {
            Extractor::Json(read_path(cx, json_path_of(text), node.place)?)
        }
        word if cx.scope.spoken.native().and_then(|it| it.only_here(word)).is_some() => {
            Extractor::Header(word.into())
        }
        _ => match text.split_once('.') {
            Some(("header", name)) => read_header(cx, node, name, answer)?,
            Some(("cookie", name)) => read_cookie(cx, node, name, answer)?,
            _ => return unknown_save(cx, node, text),
        },
    };
    Some(first(extractor))
}

fn not_of_message<T>(cx: &mut Context<'_>, node: &Node, what: &str) -> Option<T> {
    let label = say!("only available for HTTP responses");
    let help = say!("save `body`, `json.PATH`, `size` or `time`");
    cx.refuse("wrong-check", node.place, say!("a message has no `{}`", shorten(what)), label, help)
}

fn read_header(
    cx: &mut Context<'_>,
    node: &Node,
    name: &str,
    answer: Answer<'_>,
) -> Option<Extractor> {
    if !answer.has_head() && !cx.scope.spoken.has_headers() {
        return not_of_message(cx, node, "header");
    }
    if matches!(cx.scope.spoken.headers(), Headers::Values(_)) {
        return Some(Extractor::Header(name.into()));
    }
    if !is_token(name) {
        let message = say!("`{}` is not a valid header name", shorten(name));
        let help = say!("write `header.etag`");
        let place = cx.place_of(node, name);
        return cx.refuse("bad-header", place, message, say!("not a header name"), help);
    }
    Some(Extractor::Header(name.to_ascii_lowercase()))
}

fn read_cookie(
    cx: &mut Context<'_>,
    node: &Node,
    name: &str,
    answer: Answer<'_>,
) -> Option<Extractor> {
    if !matches!(answer, Answer::Http) {
        return not_of_message(cx, node, "cookie");
    }
    let place = cx.place_of(node, name);
    headers::check_cookie_name(cx, name, place, say!("write `cookie.sid`"))?;
    Some(Extractor::Cookie(name.into()))
}

fn unknown_save<T>(cx: &mut Context<'_>, node: &Node, text: &str) -> Option<T> {
    let message = say!("`{}` cannot be saved", shorten(text));
    let error = cx.error("unknown-save", message, node.place);
    let word = text.split(['.', '[']).next().unwrap_or(text);
    let words = ["json", "header", "cookie", "body", "status", "time", "size"];
    let error = error.label(match did_you_mean(word, words) {
        Some(near) if near != word => say!("did you mean `{near}`?"),
        _ => say!("unknown"),
    });
    let path = text.strip_prefix("$.").unwrap_or(text);
    // A misspelled word is not a missing one.
    let is_near = throng_base::diagnostic::did_you_mean(word, words).is_some();
    cx.fail(match path != text || path.contains('.') && !is_near {
        true => error.label(say!("unknown")).help(say!("write `json.{}`", shorten(path))),
        false => error.help(HELP),
    })
}

/// `{json: PATH, all: true, default: x}` and the like.
fn read_save_map(cx: &mut Context<'_>, node: &Node, answer: Answer<'_>) -> Option<Save> {
    let fields = ast::Save::read(cx, node)?;
    let ways = [
        fields.json,
        fields.regex,
        fields.xpath,
        fields.css,
        fields.header,
        fields.cookie,
        fields.field,
    ];
    let Some((key, value)) = ast::one_of(cx, &ways) else {
        // Unknown keys are already reported.
        return match node.is_empty() || fields.all.is_there() || fields.default.is_there() {
            true => cx.wrong_type(node, say!("a value to save"), HELP),
            false => None,
        };
    };
    let text = cx.text(value, say!("a pattern to search for"));
    let extractor = text.and_then(|text| match key.text.as_str() {
        "json" => read_path(cx, &text, value.place).map(Extractor::Json),
        "header" => read_header(cx, value, &text, answer),
        "cookie" => read_cookie(cx, value, &text, answer),
        "field" => match answer.kinds() {
            Some(kinds) => field_extractor(cx, kinds, &text, value.place),
            None => {
                no_fields(cx, key.place);
                None
            }
        },
        kind => read_extractor(cx, kind, &text, value.place),
    });
    let all = fields.all.node().map_or(Some(false), |node| cx.bool(node));
    let default = fields.default.node().map_or(Some(None), |node| cx.value_text(node).map(Some))?;
    Some(Save { slot: 0, extractor: extractor?, all: all?, default })
}
