//! Scenarios of tests, and what is read out of their runs.

use serde_json::Value;

use crate::run::{Run, Throng, throng};

/// A scenario of one session. `head` stands beside the session, `steps` are the lines of its list.
pub(crate) fn one_session(target: &str, head: &str, steps: &str) -> String {
    let steps: String = steps.lines().map(|line| format!("      {line}\n")).collect();
    format!("name: test\ntarget: {target}\n{head}\nsessions:\n  user:\n    steps:\n{steps}")
}

/// `throng run` with the summary as JSON and the record in `record`.
pub(crate) fn running(text: &str) -> Throng {
    throng("run scenario.yaml --json --out record").file("scenario.yaml", text)
}

/// All users together do the steps so often.
pub(crate) fn times(total: u64, users: u64) -> String {
    format!("load: [{{iterations: {total}, users: {users}}}]")
}

impl Run {
    /// The row of this name in a list of the summary: `steps`, `transactions`, `phases` …
    #[track_caller]
    pub(crate) fn row(&self, list: &str, name: &str) -> Value {
        let json = self.json();
        let rows = json[list].as_array().cloned().unwrap_or_default();
        let is = |row: &Value| ["name", "step", "stage", "text"].iter().any(|key| row[key] == name);
        match rows.into_iter().find(is) {
            Some(row) => row,
            None => panic!("there is no `{name}` in {list}\n{self}"),
        }
    }

    /// The events of the record that are of this kind.
    pub(crate) fn events(&self, kind: &str) -> Vec<Value> {
        let path = self.folder().join("record/events.ndjson");
        let text = std::fs::read_to_string(path).expect("events");
        let lines = text.lines().map(|line| serde_json::from_str(line).expect("JSON"));
        lines.filter(|event: &Value| event["event"] == kind).collect()
    }
}
