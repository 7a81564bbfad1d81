//! JSON for output: entries keep their order, which editors show.

/// A JSON value.
#[derive(Clone, Debug)]
pub(super) enum Json {
    Bool(bool),
    Number(u64),
    Text(String),
    List(Vec<Json>),
    Map(Vec<(String, Json)>),
}

impl From<bool> for Json {
    fn from(value: bool) -> Json {
        Json::Bool(value)
    }
}

impl From<u64> for Json {
    fn from(value: u64) -> Json {
        Json::Number(value)
    }
}

impl From<&str> for Json {
    fn from(text: &str) -> Json {
        Json::Text(text.to_string())
    }
}

impl From<String> for Json {
    fn from(text: String) -> Json {
        Json::Text(text)
    }
}

impl From<Vec<Json>> for Json {
    fn from(items: Vec<Json>) -> Json {
        Json::List(items)
    }
}

impl From<&[&str]> for Json {
    fn from(words: &[&str]) -> Json {
        Json::List(words.iter().map(|word| Json::from(*word)).collect())
    }
}

/// A map with these entries.
pub(super) fn map<const N: usize>(entries: [(&str, Json); N]) -> Json {
    Json::Map(entries.into_iter().map(|(name, value)| (name.to_string(), value)).collect())
}

/// Entries in the order in which they were added.
#[derive(Clone, Default)]
pub(super) struct Entries(Vec<(String, Json)>);

impl Entries {
    pub(super) fn add(&mut self, name: &str, value: impl Into<Json>) {
        self.0.push((name.to_string(), value.into()));
    }

    pub(super) fn extend(&mut self, other: Entries) {
        self.0.extend(other.0);
    }

    pub(super) fn into_json(self) -> Json {
        Json::Map(self.0)
    }
}

impl Json {
    /// Indents by two spaces; short values without nesting are on one line.
    pub(super) fn pretty(&self) -> String {
        let mut out = String::new();
        self.write(0, &mut out);
        out
    }

    fn write(&self, depth: usize, out: &mut String) {
        const LINE_MAX: usize = 160;
        let line = self.line();
        if 2 * depth + line.len() <= LINE_MAX {
            out.push_str(&line);
            return;
        }
        let indent = |depth: usize, out: &mut String| {
            out.push('\n');
            out.extend(std::iter::repeat_n("  ", depth));
        };
        match self {
            Json::List(items) => {
                out.push('[');
                for (i, item) in items.iter().enumerate() {
                    out.push_str(if i > 0 { "," } else { "" });
                    indent(depth + 1, out);
                    item.write(depth + 1, out);
                }
                indent(depth, out);
                out.push(']');
            }
            Json::Map(entries) => {
                out.push('{');
                for (i, (name, value)) in entries.iter().enumerate() {
                    out.push_str(if i > 0 { "," } else { "" });
                    indent(depth + 1, out);
                    out.push_str(&quoted(name));
                    out.push_str(": ");
                    value.write(depth + 1, out);
                }
                indent(depth, out);
                out.push('}');
            }
            _ => out.push_str(&line),
        }
    }

    fn line(&self) -> String {
        match self {
            Json::Bool(value) => value.to_string(),
            Json::Number(value) => value.to_string(),
            Json::Text(text) => quoted(text),
            Json::List(items) => {
                let items: Vec<String> = items.iter().map(Json::line).collect();
                format!("[{}]", items.join(", "))
            }
            Json::Map(entries) => {
                let entries: Vec<String> = entries
                    .iter()
                    .map(|(name, value)| format!("{}: {}", quoted(name), value.line()))
                    .collect();
                format!("{{{}}}", entries.join(", "))
            }
        }
    }
}

fn quoted(text: &str) -> String {
    let mut out = vec![b'"'];
    crate::words::escape_json(text, &mut out);
    out.push(b'"');
    String::from_utf8_lossy(&out).into_owned()
}
