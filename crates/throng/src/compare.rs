//! `throng compare`: recorded runs against the first of them.

use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use throng_base::language::spoken;
use throng_base::{Diagnostic, Exit};
use throng_results::Run;
use throng_results::compare::{Comparison, Condition, Sampled, comparisons_json, exit_of};
use throng_results::markdown::comparison_markdown;
use throng_results::page::{Series, renderings};
use throng_results::terminal::comparison_text;
use throng_run::files::write_html;
use throng_terminal::Screen;

use crate::arguments::CompareArguments;

/// Runs on the same axes, each in a colour of its own.
const SHOWN_MAX: usize = 8;

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

pub(crate) type Held = (Sampled, Comparison);

fn held(arguments: &CompareArguments) -> Result<(Sampled, Vec<Held>), Box<Diagnostic>> {
    let conditions = arguments.conditions.iter().map(|text| Condition::parse(text));
    let conditions = conditions.collect::<Result<Vec<_>, _>>()?;
    let paths = std::iter::once(&arguments.baseline).chain(&arguments.runs);
    let runs = paths.map(|path| Run::open(path)).collect::<Result<Vec<_>, _>>()?;
    if arguments.html.is_some() {
        may_show(runs.len())?;
    }
    let baseline = Sampled::read(&runs[0])?;
    conditions.iter().try_for_each(|condition| condition.check(&baseline.summary.info))?;
    let others = runs[1..].iter().map(|run| {
        let other = Sampled::read(run)?;
        let held = throng_results::compare::compare(&baseline, &other, &conditions)?;
        Ok((other, held))
    });
    let others = others.collect::<Result<Vec<_>, Box<Diagnostic>>>()?;
    if let Some(path) = &arguments.html {
        let mut names: Vec<String> = runs.iter().map(|run| name_of(&run.directory)).collect();
        let different: HashSet<&String> = names.iter().collect();
        if different.len() < names.len() {
            names = runs.iter().map(|run| run.directory.display().to_string()).collect();
        }
        let data = page_data((&names, &runs), &baseline, &others)?;
        write_html(&json!({"language": spoken().word(), "compared": data}), path)?;
    }
    Ok((baseline, others))
}

fn name_of(directory: &Path) -> String {
    let name = directory.file_name().map(|name| name.to_string_lossy().into_owned());
    name.unwrap_or_else(|| directory.display().to_string())
}

/// Whether a page can show so many runs side by side.
pub(crate) fn may_show(runs: usize) -> Result<(), Box<Diagnostic>> {
    match (2..=SHOWN_MAX).contains(&runs) {
        true => Ok(()),
        false => {
            let message = say!("choose two to {} runs", SHOWN_MAX.to_string());
            Err(Box::new(Diagnostic::error("not-comparable", message)))
        }
    }
}

/// What a page shows of runs side by side: their curves, and the others held against the first.
pub(crate) fn page_data(
    (names, runs): (&[String], &[Run]),
    baseline: &Sampled,
    others: &[Held],
) -> Result<Value, Box<Diagnostic>> {
    let pairs: Vec<_> = others.iter().map(|(run, held)| (run, held)).collect();
    let sampled = std::iter::once(baseline).chain(others.iter().map(|(run, _)| run));
    let series = runs.iter().zip(sampled).zip(names).map(|((run, sampled), name)| {
        let series = Series::read(run, &sampled.summary)?.json();
        let lasted_ns = nanos(sampled.summary.lasted);
        Ok::<_, Box<Diagnostic>>(json!({"name": name, "lasted_ns": lasted_ns, "series": series}))
    });
    Ok(json!({
        "comparison": comparisons_json(baseline, &pairs),
        "renderings": renderings(others.iter().flat_map(|(_, held)| &held.unlike)),
        "runs": series.collect::<Result<Vec<_>, _>>()?,
    }))
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
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
    if let Some(path) = arguments.html.as_ref().filter(|_| !arguments.markdown) {
        screen.say(say!("page: {}", path.display()));
    }
}
