//! `throng compare`: recorded runs against the first of them.

use std::path::Path;

use throng_base::{Diagnostic, Exit};
use throng_results::Run;
use throng_results::compare::{Comparison, Condition, Sampled, comparisons_json, exit_of};
use throng_results::markdown::comparison_markdown;
use throng_results::terminal::comparison_text;

use crate::arguments::CompareArguments;
use crate::screen::Screen;

pub(crate) fn compare(arguments: &CompareArguments) -> Exit {
    match held(arguments) {
        Ok((baseline, others)) => {
            tell(arguments, &baseline, &others);
            exit_of(others.iter().flat_map(|(_, held)| &held.judged))
        }
        Err(diagnostic) => {
            Screen::errors(arguments.no_color).diagnostic(&diagnostic);
            Exit::Usage
        }
    }
}

type Held = (Sampled, Comparison);

fn held(arguments: &CompareArguments) -> Result<(Sampled, Vec<Held>), Box<Diagnostic>> {
    let conditions = arguments.conditions.iter().map(|text| Condition::parse(text));
    let conditions = conditions.collect::<Result<Vec<_>, _>>()?;
    let baseline = read(&arguments.baseline)?;
    conditions.iter().try_for_each(|condition| condition.check(&baseline))?;
    let others = arguments.runs.iter().map(|path| {
        let other = read(path)?;
        let held = throng_results::compare::compare(&baseline, &other, &conditions)?;
        Ok((other, held))
    });
    let others = others.collect::<Result<Vec<_>, Box<Diagnostic>>>()?;
    Ok((baseline, others))
}

fn read(path: &Path) -> Result<Sampled, Box<Diagnostic>> {
    Sampled::read(&Run::open(path)?)
}

fn tell(arguments: &CompareArguments, baseline: &Sampled, others: &[Held]) {
    let screen = Screen::output(arguments.no_color);
    if arguments.json {
        let held: Vec<_> = others.iter().map(|(run, held)| (run, held)).collect();
        return screen.json(&comparisons_json(baseline, &held));
    }
    for (at, (run, held)) in others.iter().enumerate() {
        if at > 0 {
            screen.line("");
        }
        screen.text(&match arguments.markdown {
            true => comparison_markdown(baseline, run, held),
            false => comparison_text(baseline, run, held, &screen.style),
        });
    }
}
