//! `throng compare`: recorded runs against the first of them.

use std::collections::HashSet;
use std::path::Path;

use serde_json::json;
use throng_base::Diagnostic;
use throng_base::language::spoken;
use throng_results::Run;
use throng_results::compare::{Condition, Sampled, comparisons_json, exit_of};
use throng_results::markdown::comparison_markdown;
use throng_results::page::{Compared, compared_data, may_compare};
use throng_results::terminal::comparison_text;
use throng_run::files::write_html;
use throng_terminal::Screen;

use crate::Ended;
use crate::arguments::CompareArguments;

pub(crate) fn compare(arguments: &CompareArguments) -> Ended {
    let errors = Screen::errors(arguments.no_color);
    let (baseline, others) = held(arguments).map_err(|told| errors.refused(&told))?;
    tell(arguments, &baseline, &others);
    Ok(exit_of(others.iter().flat_map(|(_, held)| &held.judged)))
}

fn held(arguments: &CompareArguments) -> Result<(Sampled, Vec<Compared>), Box<Diagnostic>> {
    let conditions = arguments.conditions.iter().map(|text| Condition::parse(text));
    let conditions = conditions.collect::<Result<Vec<_>, _>>()?;
    let paths = std::iter::once(&arguments.baseline).chain(&arguments.runs);
    let runs = paths.map(|path| Run::open(path)).collect::<Result<Vec<_>, _>>()?;
    if arguments.html.is_some() {
        may_compare(runs.len())?;
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
        let data = compared_data((&names, &runs), &baseline, &others)?;
        write_html(&json!({"language": spoken().word(), "compared": data}), path)?;
    }
    Ok((baseline, others))
}

fn name_of(directory: &Path) -> String {
    let name = directory.file_name().map(|name| name.to_string_lossy().into_owned());
    name.unwrap_or_else(|| directory.display().to_string())
}

fn tell(arguments: &CompareArguments, baseline: &Sampled, others: &[Compared]) {
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
