//! The counts of a run, and those on the disks of its agents.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::machines::fleet::Fleet;
use crate::run::Run;

/// Sums over all steps.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Books {
    pub(super) begun: u64,
    pub(super) ok: u64,
    pub(super) failed: u64,
    pub(super) interrupted: u64,
    /// Attempts of users that arrive at a rate: the step of their session.
    pub(super) arrived: u64,
}

/// The scenario numbers its steps.
const COMERS: u64 = 0;

impl Books {
    #[track_caller]
    pub(super) fn of_run(run: &Run) -> Books {
        let json = run.json();
        let count = |name: &str| json["total"][name].as_u64().unwrap_or_default();
        let rows = json["steps"].as_array().cloned().unwrap_or_default();
        let comers = rows.iter().filter(|row| row["name"].as_str().is_some_and(is_comers));
        Books {
            begun: count("begun"),
            ok: count("ok"),
            failed: count("failed"),
            interrupted: count("interrupted"),
            arrived: comers.filter_map(|row| row["begun"].as_u64()).sum(),
        }
    }

    /// All lines that child processes have written.
    pub(super) fn of_disks(fleet: &Fleet) -> Books {
        let mut books = Books::default();
        for file in spools(fleet) {
            let text = std::fs::read_to_string(&file).unwrap_or_default();
            // A truncated last line does not count.
            let whole = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
            for line in whole.lines() {
                books.add(&serde_json::from_str(line).expect("a line of JSON"));
            }
        }
        books
    }

    fn add(&mut self, line: &Value) {
        for step in line["interval"]["steps"].as_array().into_iter().flatten() {
            let count = |name: &str| step[name].as_u64().unwrap_or_default();
            self.begun += count("begun");
            self.ok += count("ok");
            self.failed += count("count") - count("ok");
            self.interrupted += count("interrupted");
            if count("step") == COMERS {
                self.arrived += count("begun");
            }
        }
    }
}

fn is_comers(name: &str) -> bool {
    name.contains("/come")
}

/// The files to which engines write their lines.
fn spools(fleet: &Fleet) -> Vec<PathBuf> {
    let below = |folder: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
    };
    let agents = fleet.names().into_iter().map(|name| fleet.disk_of(&name));
    let parts = agents.flat_map(|own| below(&own));
    parts.map(|part| part.join("lines.ndjson")).filter(|file| file.exists()).collect()
}
