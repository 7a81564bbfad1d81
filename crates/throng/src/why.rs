//! `throng why`: what went wrong in a recorded run, and why.

use serde_json::json;
use throng_base::{Diagnostic, Exit};
use throng_results::terminal::{findings_text, slowest_text};
use throng_results::{judged_json, slowest_json};
use throng_terminal::Screen;

use crate::Ended;
use crate::arguments::WhyArguments;
use crate::report::given_or_newest;

pub(crate) fn why(arguments: &WhyArguments) -> Ended {
    let errors = Screen::errors(arguments.no_color);
    told(arguments).map_err(|told| errors.refused(&told))?;
    Ok(Exit::Success)
}

fn told(arguments: &WhyArguments) -> Result<(), Box<Diagnostic>> {
    let screen = Screen::output(arguments.no_color);
    let run = given_or_newest(arguments.run.as_deref())?;
    let mut summary = run.summary()?;
    if summary.verdict.why.is_none() {
        // An older version has summed up its segments: their lines are read again.
        summary = run.summary_beside(|_| {})?;
    }
    let judged = summary.verdict.why.clone().unwrap_or_default();
    if arguments.json {
        let mut told = match arguments.slowest {
            true => json!({ "slowest": slowest_json(&summary) }),
            false => judged_json(&judged),
        };
        told["run"] = json!({ "id": summary.info.id, "name": summary.info.name });
        told["run"]["directory"] = json!(run.directory.display().to_string());
        screen.json(&told);
    } else {
        screen.text(&match arguments.slowest {
            true => slowest_text(&summary, &screen.style),
            false => findings_text(&summary, &judged, &screen.style),
        });
    }
    Ok(())
}
