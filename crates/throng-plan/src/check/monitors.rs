//! What a run reads in addition to the load: hosts and exporters, and how each is reached.

use std::fmt::Write as _;

use throng_base::clean;
use throng_base::units::write_duration;

use super::{ROWS_SHOWN_MAX, Report};

impl Report<'_> {
    pub(super) fn monitors(&self) -> String {
        let monitors = &self.program.monitors;
        if monitors.is_empty() {
            return String::new();
        }
        let mut out = format!("{}\n", self.style.bold(&tell!("monitor")));
        for monitor in monitors.iter().take(ROWS_SHOWN_MAX) {
            let every = tell!("every {}", write_duration(monitor.every));
            let url = self.style.dim(&self.told(&monitor.url()));
            let _ = writeln!(out, "  {}  {every}  {url}", clean(&monitor.name));
        }
        self.more(&mut out, monitors.len());
        out
    }
}
