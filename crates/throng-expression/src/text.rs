//! Functions of texts. Positions and lengths count characters, from 0.

use regex::{Regex, RegexBuilder};

use crate::call::{Call, LENGTH_MAX};
use crate::scope::Fault;
use crate::value::Value;
use throng_base::Said;

/// Maximum memory of a compiled regular expression.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// Most items that `split` may return.
const PARTS_MAX: usize = LENGTH_MAX;

pub(crate) fn pattern(pattern: &str) -> Result<Regex, Fault> {
    let compiled = RegexBuilder::new(pattern).size_limit(PATTERN_BYTES_MAX).nest_limit(64).build();
    compiled.map_err(|error| {
        let text = error.to_string();
        // The last line contains the reason; those before draw the pattern.
        let reason = text.lines().last().unwrap_or_default();
        let reason = reason.strip_prefix("error: ").unwrap_or(reason);
        Fault(say!(
            "`{pattern}` is not a regular expression: {reason}",
            reason = Said::of_others(reason)
        ))
    })
}

pub(crate) fn string(call: &mut Call<'_>) -> Result<Value, Fault> {
    let text = call.value(0).to_text();
    call.charge(text.len())?;
    Ok(Value::Text(text))
}

pub(crate) fn bytes(call: &mut Call<'_>) -> Result<Value, Fault> {
    if let Value::Text(_) | Value::Bytes(_) = call.value(0) {
        return Ok(Value::from(call.octets(0)?));
    }
    let text = call.value(0).to_text();
    call.charge(text.len())?;
    Ok(Value::from(text.as_bytes()))
}

pub(crate) fn contains(call: &mut Call<'_>) -> Result<Value, Fault> {
    Ok(Value::Bool(call.text(0)?.contains(call.text(1)?)))
}

pub(crate) fn starts_with(call: &mut Call<'_>) -> Result<Value, Fault> {
    Ok(Value::Bool(call.text(0)?.starts_with(call.text(1)?)))
}

pub(crate) fn ends_with(call: &mut Call<'_>) -> Result<Value, Fault> {
    Ok(Value::Bool(call.text(0)?.ends_with(call.text(1)?)))
}

/// With a computed pattern; constant ones are compiled with the scenario.
pub(crate) fn matches(call: &mut Call<'_>) -> Result<Value, Fault> {
    let (text, pattern_text) = (call.text(0)?, call.text(1)?);
    // Compiling takes microseconds per character, as long as many steps.
    call.charge(64_000 + pattern_text.len() * 6_400)?;
    Ok(Value::Bool(pattern(pattern_text)?.is_match(text)))
}

pub(crate) fn lower_ascii(call: &mut Call<'_>) -> Result<Value, Fault> {
    Ok(Value::from(call.text(0)?.to_ascii_lowercase()))
}

pub(crate) fn upper_ascii(call: &mut Call<'_>) -> Result<Value, Fault> {
    Ok(Value::from(call.text(0)?.to_ascii_uppercase()))
}

pub(crate) fn lower(call: &mut Call<'_>) -> Result<Value, Fault> {
    Ok(Value::from(call.text(0)?.to_lowercase()))
}

pub(crate) fn upper(call: &mut Call<'_>) -> Result<Value, Fault> {
    Ok(Value::from(call.text(0)?.to_uppercase()))
}

pub(crate) fn trim(call: &mut Call<'_>) -> Result<Value, Fault> {
    Ok(Value::from(call.text(0)?.trim()))
}

pub(crate) fn replace(call: &mut Call<'_>) -> Result<Value, Fault> {
    let (text, old, new) = (call.text(0)?, call.text(1)?, call.text(2)?);
    let limit = limit(call, 3)?;
    let count = text.matches(old).take(limit).count();
    call.charge(text.len().saturating_add(count.saturating_mul(new.len())))?;
    Ok(Value::from(text.replacen(old, new, limit)))
}

pub(crate) fn split(call: &mut Call<'_>) -> Result<Value, Fault> {
    let (text, separator) = (call.text(0)?, call.text(1)?);
    // A part is a value of its own with its own memory.
    call.charge(text.len() * 8)?;
    let limit = limit(call, 2)?.min(PARTS_MAX);
    let parts: Vec<Value> = match (limit, separator) {
        (0, _) => Vec::new(),
        (_, "") => characters(text, limit),
        _ => text.splitn(limit, separator).map(Value::from).collect(),
    };
    Ok(Value::from(parts))
}

/// Every character as a part; the last part contains the rest.
fn characters(text: &str, limit: usize) -> Vec<Value> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = if parts.len() + 1 == limit { rest.len() } else { first.len_utf8() };
        parts.push(Value::from(&rest[..end]));
        rest = &rest[end..];
    }
    parts
}

/// An optional count; negative or missing means all.
fn limit(call: &Call<'_>, index: usize) -> Result<usize, Fault> {
    match call.get(index) {
        Some(_) => Ok(usize::try_from(call.whole(index)?).unwrap_or(usize::MAX)),
        None => Ok(usize::MAX),
    }
}

pub(crate) fn join(call: &mut Call<'_>) -> Result<Value, Fault> {
    let items = call.list(0)?;
    let separator = if call.get(1).is_some() { call.text(1)? } else { "" };
    let mut out = String::new();
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            call.charge(separator.len())?;
            out.push_str(separator);
        }
        let text = item.to_text();
        call.charge(text.len())?;
        out.push_str(&text);
    }
    Ok(Value::from(out))
}

pub(crate) fn substring(call: &mut Call<'_>) -> Result<Value, Fault> {
    let text = call.text(0)?;
    let start = position(call, text, 1)?;
    let end = if call.get(2).is_some() { position(call, text, 2)? } else { text.len() };
    let part = text.get(start..end);
    part.map(Value::from)
        .ok_or_else(|| Fault(say!("the end index of `substring` is before its start index")))
}

pub(crate) fn char_at(call: &mut Call<'_>) -> Result<Value, Fault> {
    let text = call.text(0)?;
    let start = position(call, text, 1)?;
    Ok(text[start..].chars().next().map_or_else(|| Value::from(""), |c| c.to_string().into()))
}

/// The byte offset of the character at argument `index`; the end is allowed.
fn position(call: &Call<'_>, text: &str, index: usize) -> Result<usize, Fault> {
    let wanted = call.whole(index)?;
    let outside = || {
        let (name, count) = (call.function.name, text.chars().count());
        Fault(say!("`{name}`: index {wanted} is out of range: the text has {count} characters"))
    };
    let character = usize::try_from(wanted).map_err(|_| outside())?;
    let mut starts = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    starts.nth(character).ok_or_else(outside)
}

pub(crate) fn index_of(call: &mut Call<'_>) -> Result<Value, Fault> {
    let (text, part) = (call.text(0)?, call.text(1)?);
    let start = if call.get(2).is_some() { position(call, text, 2)? } else { 0 };
    let found = text[start..].find(part).map(|at| at + start);
    Ok(Value::Int(found.map_or(-1, |at| text[..at].chars().count() as i64)))
}

pub(crate) fn last_index_of(call: &mut Call<'_>) -> Result<Value, Fault> {
    let (text, part) = (call.text(0)?, call.text(1)?);
    Ok(Value::Int(text.rfind(part).map_or(-1, |at| text[..at].chars().count() as i64)))
}

pub(crate) fn pad_start(call: &mut Call<'_>) -> Result<Value, Fault> {
    let text = call.text(0)?;
    let padding = padding(call, text)?;
    Ok(Value::from(padding + text))
}

pub(crate) fn pad_end(call: &mut Call<'_>) -> Result<Value, Fault> {
    let text = call.text(0)?;
    let padding = padding(call, text)?;
    Ok(Value::from(text.to_string() + &padding))
}

fn padding(call: &mut Call<'_>, text: &str) -> Result<String, Fault> {
    let length = call.length(1)?;
    let fill = if call.get(2).is_some() { call.text(2)? } else { " " };
    let missing = length.saturating_sub(text.chars().count());
    call.charge(missing * 4)?;
    Ok(fill.chars().cycle().take(missing).collect())
}
