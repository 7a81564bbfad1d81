//! A plan as people and programs read it.
//!
//! - `page`: what is wanted, what a user costs, how many machines; `commands` or `fleet` at its
//!   end: what to do. `explain`: where a user's bytes go. [`json`]: the same for programs.

mod commands;
mod explain;
mod fleet;
mod json;
mod page;

use std::path::PathBuf;

use throng_results::terminal::Style;

use crate::Plan;
pub use json::json;

/// A plan, and what the command line says beside it.
pub struct Planned {
    pub file: Option<PathBuf>,
    pub set: Vec<String>,
    /// Requests per second that a machine of the service carries.
    pub per_machine: Option<f64>,
    /// The most agents that a fleet can have.
    pub agents_max: u64,
    pub plan: Plan,
}

/// The plan for people; `explain` adds where the bytes of a user go.
pub fn text(planned: &Planned, explain: bool, style: &Style) -> String {
    let mut out = page::page(planned, style);
    if explain {
        out += &explain::explain(&planned.plan, style);
    }
    out + &match &planned.plan.agents {
        Some(agents) => fleet::page(planned, agents, style),
        None => commands::commands(planned, style),
    }
}
