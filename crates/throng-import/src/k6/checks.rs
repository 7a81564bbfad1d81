//! Checks of k6: conditions on a response, as arrow functions.

use std::time::Duration;

use crate::json::Json;
use crate::model::{Check, Item, Save};
use crate::script::world::{Known, World};
use crate::script::{Expr, ScriptKind};

pub(super) fn read(
    world: &mut World,
    id: Option<usize>,
    checks: Option<&Expr>,
    line: usize,
    items: &mut Vec<Item>,
) {
    let Some(Expr::Map(entries)) = checks else {
        return items.push(Item::left_out(line, say!("a check")));
    };
    for (name, condition) in entries {
        let name = world.text(name).map_or("check".into(), |name| name.to_string());
        let is_read = id.is_some_and(|id| one(world, id, condition));
        if !is_read {
            let name: String = name.chars().take(60).collect();
            items.push(Item::left_out(line, say!("the check `{name}`")));
        }
    }
}

/// A function of the response, or its return value.
fn one(world: &mut World, id: usize, condition: &Expr) -> bool {
    let Expr::Function(function) = condition else { return read_condition(world, id, condition) };
    if !world.enter() {
        return false;
    }
    if let Some(name) = function.parameters.first() {
        world.set(name, Known::Response(id));
    }
    let returned = function.body.iter().find_map(|statement| match &statement.kind {
        ScriptKind::Return(Some(value)) => Some(value.clone()),
        _ => None,
    });
    let is_read = function.body.len() == 1
        && returned.is_some_and(|condition| read_condition(world, id, &condition));
    world.leave();
    is_read
}

fn read_condition(world: &mut World, id: usize, condition: &Expr) -> bool {
    match condition {
        Expr::Binary(sign, left, right) if matches!(sign.as_str(), "&&" | "and") => {
            read_condition(world, id, left) & read_condition(world, id, right)
        }
        Expr::Binary(sign, ..) if matches!(sign.as_str(), "||" | "or") => {
            let list = statuses(world, condition);
            list.is_some_and(|list| checked(world, id, Check::Status(list)))
        }
        Expr::Binary(sign, left, right) => compare(world, id, sign, left, right),
        Expr::Call(callee, arguments) => {
            let Expr::Member(inner, method) = &**callee else { return false };
            let is_body = matches!(world.value(inner), Known::Field(_, Save::Body, _));
            let text = arguments.first().and_then(|one| world.text(&one.value));
            match (is_body, method.as_str(), text) {
                (true, "includes" | "contains", Some(text)) => {
                    checked(world, id, Check::Contains(text))
                }
                _ => false,
            }
        }
        _ => false,
    }
}

/// `r.status === 200 || r.status === 201`
fn statuses(world: &mut World, condition: &Expr) -> Option<Vec<String>> {
    let Expr::Binary(sign, left, right) = condition else { return None };
    if matches!(sign.as_str(), "||" | "or") {
        let mut list = statuses(world, left)?;
        list.extend(statuses(world, right)?);
        return Some(list);
    }
    let is_status = matches!(world.value(left), Known::Field(_, Save::Status, _));
    let is_equal = matches!(sign.as_str(), "===" | "==");
    let code = world.number(right).filter(|_| is_status && is_equal)?;
    Some(vec![format!("{code:.0}")])
}

fn compare(world: &mut World, id: usize, sign: &str, left: &Expr, right: &Expr) -> bool {
    comparison(world, sign, left, right).is_some_and(|check| checked(world, id, check))
}

fn comparison(world: &mut World, sign: &str, left: &Expr, right: &Expr) -> Option<Check> {
    let is_equal = matches!(sign, "===" | "==");
    let path = left.path().unwrap_or_default();
    if path.ends_with(".timings.duration") && matches!(sign, "<" | "<=") {
        let ms = world.number(right).filter(|ms| *ms >= 1.0)?.min(1e9);
        return Some(Check::TimeBelow(Duration::from_millis(ms as u64)));
    }
    if path.ends_with(".body.length") && matches!(sign, ">" | ">=" | "<" | "<=") {
        let bytes = world.number(right).filter(|bytes| *bytes >= 0.0)?;
        return Some(Check::Size(format!("{sign} {bytes:.0}B")));
    }
    match world.value(left) {
        Known::Field(_, Save::Status, _) => match (world.number(right)?, sign) {
            (code, _) if is_equal => Some(Check::Status(vec![format!("{code:.0}")])),
            (code, "<") if code > 200.0 => {
                Some(Check::Status(vec![format!("200..{:.0}", code - 1.0)]))
            }
            _ => None,
        },
        Known::Field(_, Save::Json(path), _) if !path.is_empty() => {
            match (sign, world.json(right)?) {
                ("!==" | "!=", Json::Null) => Some(Check::Json(path, None)),
                (_, want @ (Json::Text(_) | Json::Number(_) | Json::Bool(_))) if is_equal => {
                    Some(Check::Json(path, Some(want)))
                }
                _ => None,
            }
        }
        Known::Field(_, Save::Body, _) if is_equal => world.text(right).map(Check::Contains),
        _ => None,
    }
}

/// The check is read: always true.
fn checked(world: &mut World, id: usize, check: Check) -> bool {
    world.check(id, check);
    true
}
