//! JSON for output: entries keep their order, which editors show.

use std::sync::Arc;

pub(super) use throng_expression::Value as Json;

pub(super) fn texts(texts: &[&str]) -> Json {
    texts.iter().copied().map(Json::from).collect::<Vec<_>>().into()
}

/// A map with these entries.
pub(super) fn map<const N: usize>(entries: [(&str, Json); N]) -> Json {
    Json::Map(entries.into_iter().map(|(name, value)| (name.into(), value)).collect())
}

/// Entries in the order in which they were added.
#[derive(Clone, Default)]
pub(super) struct Entries(Vec<(Arc<str>, Json)>);

impl Entries {
    pub(super) fn add(&mut self, name: &str, value: impl Into<Json>) {
        self.0.push((name.into(), value.into()));
    }

    pub(super) fn extend(&mut self, other: Entries) {
        self.0.extend(other.0);
    }

    pub(super) fn into_json(self) -> Json {
        self.0.into()
    }
}

/// Indents by two spaces; short values are on one line.
pub(super) fn pretty(json: &Json) -> String {
    let mut out = String::new();
    write(json, 0, &mut out);
    out
}

fn write(json: &Json, depth: usize, out: &mut String) {
    const LINE_MAX: usize = 160;
    let line = line(json);
    let (ends, parts): (_, Vec<(String, &Json)>) = match json {
        _ if 2 * depth + line.len() <= LINE_MAX => return out.push_str(&line),
        Json::List(items) => (['[', ']'], items.iter().map(|item| (String::new(), item)).collect()),
        Json::Map(entries) => (['{', '}'], entries.iter().map(|(n, v)| (key(n), v)).collect()),
        _ => return out.push_str(&line),
    };
    let indent = |depth: usize, out: &mut String| {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", depth));
    };
    out.push(ends[0]);
    for (i, (key, value)) in parts.into_iter().enumerate() {
        out.push_str(if i > 0 { "," } else { "" });
        indent(depth + 1, out);
        out.push_str(&key);
        write(value, depth + 1, out);
    }
    indent(depth, out);
    out.push(ends[1]);
}

fn key(name: &str) -> String {
    format!("{}: ", line(&name.into()))
}

fn line(json: &Json) -> String {
    match json {
        Json::List(items) => {
            let items: Vec<String> = items.iter().map(line).collect();
            format!("[{}]", items.join(", "))
        }
        Json::Map(entries) => {
            let entries: Vec<String> =
                entries.iter().map(|(name, value)| key(name) + &line(value)).collect();
            format!("{{{}}}", entries.join(", "))
        }
        _ => {
            let mut out = Vec::new();
            json.write_json(&mut out);
            String::from_utf8_lossy(&out).into_owned()
        }
    }
}
