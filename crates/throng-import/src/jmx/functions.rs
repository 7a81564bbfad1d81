//! Texts of JMeter with `${name}` and `${__function(…)}` inside.

use super::Reader;
use crate::model::{LeftOut, Variable, name_of};
use crate::text::{Piece, Text};

const DEPTH_MAX: usize = 8;

impl Reader<'_> {
    pub(super) fn text(&mut self, raw: &str) -> Text {
        self.nested(raw, 0)
    }

    fn nested(&mut self, raw: &str, depth: usize) -> Text {
        let mut out = Text::default();
        let mut rest = raw;
        while let Some((before, behind)) = rest.split_once("${") {
            let Some(end) = closing(behind).filter(|_| depth < DEPTH_MAX) else { break };
            out.push(before);
            let value = self.value(&behind[..end], depth);
            out.append(&value);
            rest = &behind[end + 1..];
        }
        out.push(rest);
        out
    }

    fn value(&mut self, inner: &str, depth: usize) -> Text {
        if let Some(function) = inner.strip_prefix("__") {
            return self.function(function, depth);
        }
        let name = inner.trim();
        // `${name_g1}` and `${name_1}` are parts of what an extractor found.
        let base = ["_g1", "_1", "_g0"].iter().find_map(|end| name.strip_suffix(end));
        for name in [Some(name), base].into_iter().flatten() {
            if self.saved.contains(name) {
                return Text::value(format!("saved.{}", name_of(name)));
            }
        }
        if let Some((column, table)) = self.columns.iter().find(|(column, _)| column == name) {
            return Text::value(format!("data.{table}.{}", name_of(column)));
        }
        let own = name_of(name);
        self.recording.declare(Variable::unknown(&own));
        Text::value(format!("vars.{own}"))
    }

    fn function(&mut self, function: &str, depth: usize) -> Text {
        let (name, arguments) = match function.split_once('(') {
            Some((name, arguments)) => (name, arguments.strip_suffix(')').unwrap_or(arguments)),
            None => (function, ""),
        };
        let list: Vec<&str> = arguments.split(',').map(str::trim).collect();
        let number = |at: usize| list.get(at).and_then(|one| one.parse::<i64>().ok());
        let value = |text: &str| Text::value(text);
        match name {
            "P" | "property" => {
                let own = name_of(list[0]);
                let default = list.get(1).map(|default| self.nested(default, depth + 1));
                let default = default.filter(|default| !default.is_empty());
                self.recording.declare(match default {
                    Some(default) => Variable::plain(&own, default),
                    None => Variable::unknown(&own),
                });
                value(&format!("vars.{own}"))
            }
            "Random" => match (number(0), number(1)) {
                (Some(low), Some(high)) if low <= high => {
                    value(&format!("random.int({low}, {high})"))
                }
                _ => value("random.int(1, 1000)"),
            },
            "RandomString" => {
                let length = number(0).unwrap_or(8).clamp(1, 1000);
                value(&format!("random.string({length})"))
            }
            "UUID" => value("random.uuid()"),
            "time" if list[0].is_empty() => value("now.ms()"),
            "time" if list[0] == "/1000" => value("now.s()"),
            "time" | "timeShift" => value("now.iso()"),
            "threadNum" => value("user.id"),
            "counter" => value("iteration"),
            "V" | "evalVar" => self.value(list[0], depth + 1),
            "env" => value(&format!("env.{}", name_of(list[0]))),
            "urlencode" | "eval" | "escapeHtml" | "unescape" => self.nested(arguments, depth + 1),
            _ => {
                let name: String = name.chars().take(40).collect();
                let what = say!("the function `__{name}`; replaced by a variable");
                let left_out = LeftOut::of_all(1, what.clone());
                if !self.recording.left_out.iter().any(|known| known.what == what) {
                    self.recording.left_out.push(left_out);
                }
                let own = name_of(&name);
                self.recording.declare(Variable::unknown(&own));
                value(&format!("vars.{own}"))
            }
        }
    }

    /// The text with the values of variables that the plan itself sets.
    pub(super) fn constant(&self, text: &Text) -> Option<String> {
        let mut out = String::new();
        for piece in text.pieces() {
            match piece {
                Piece::Literal(text) => out.push_str(text),
                Piece::Value(value) => {
                    let name = value.strip_prefix("vars.")?;
                    let variable =
                        self.recording.variables.iter().find(|known| known.name == name)?;
                    out.push_str(variable.value.as_ref()?.as_literal()?);
                }
            }
        }
        Some(out)
    }
}

/// The brace that closes an expression.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0;
    for (at, c) in text.char_indices().take(4_096) {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => return Some(at),
            '}' => depth -= 1,
            _ => {}
        }
    }
    None
}
