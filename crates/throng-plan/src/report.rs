//! A plan in readable form and as JSON.
//!
//! - `page`: the requested load, the cost of a user, the number of machines; `commands` or `fleet`
//!   at its end: what to do. `explain`: the memory of a user. [`json`]: the same as JSON.

mod commands;
mod explain;
mod fleet;
mod json;
mod page;

use std::path::PathBuf;

use throng_results::terminal::Style;

use crate::Plan;
pub use json::json;

/// A plan, and the values from the command line.
pub struct Planned {
    pub file: Option<PathBuf>,
    pub set: Vec<String>,
    /// Requests per second that a machine of the service handles.
    pub per_machine: Option<f64>,
    /// The maximum number of agents in a fleet.
    pub agents_max: u64,
    pub plan: Plan,
}

/// The plan in readable form; `explain` adds the memory of a user.
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
