//! Commands about recorded runs: `throng report`, `why`, `merge`, `compare`, `history` and `serve`.

use std::collections::HashSet;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

use serde_json::json;
use throng_base::language::spoken;
use throng_base::{Diagnostic, Exit};
use throng_results::compare::{
    Asked, Condition, History, Sampled, comparisons_json, exit_of, history_json,
};
use throng_results::csv::seconds_csv;
use throng_results::directory::RECORDS;
use throng_results::markdown::{comparison_markdown, history_markdown};
use throng_results::page::{Compared, compared_data, may_compare};
use throng_results::terminal::{
    comparison_text, findings_text, history_text, slowest_text, summary_text,
};
use throng_results::{
    Run, Summary, exit_code, judged_json, merge_runs, slowest_json, summary_json,
};
use throng_run::files::{PAGE_FILE, unwritable, write_files, write_html, write_page, write_whole};
use throng_serve::Setup;
use throng_terminal::Screen;
use throng_terminal::signals::stop_requested;

use crate::arguments::{
    CompareArguments, HistoryArguments, MergeArguments, ReportArguments, ServeArguments,
    WhyArguments,
};
use crate::{Ended, speech};

/// The path that means standard output.
const OUTPUT: &str = "-";

pub(crate) fn report(arguments: &ReportArguments) -> Ended {
    reported(arguments).map_err(|told| {
        let errors = Screen::errors(arguments.no_color);
        told.iter().for_each(|diagnostic| errors.diagnostic(diagnostic));
        Exit::Usage
    })
}

fn reported(arguments: &ReportArguments) -> Result<Exit, Vec<Diagnostic>> {
    let mut screen = Screen::output(arguments.no_color);
    screen.style.details = arguments.details;
    screen.style.newest = arguments.run.is_none();
    let run = given_or_newest(arguments.run.as_deref()).map_err(|told| vec![*told])?;
    let summary = run.summary().map_err(|told| vec![*told])?;
    let own_page = summary.directory.clone().unwrap_or_default().join(PAGE_FILE);
    if let Some(path) = &arguments.html {
        write_page(&summary, path.as_deref()).map_err(|told| vec![*told])?;
    }
    screen.style.page = own_page.is_file();
    let to_output = arguments.csv.as_deref() == Some(Path::new(OUTPUT));
    match arguments.json {
        true => screen.json(&summary_json(&summary)),
        false if to_output => {}
        false => {
            screen.text(&summary_text(&summary, &screen.style));
            if let Some(path) = &arguments.html {
                let path = path.as_deref().unwrap_or(&own_page);
                screen.say(say!("page: {}", path.display()));
            }
        }
    }
    if let Some(path) = &arguments.csv {
        write_csv(&run, path, screen).map_err(|told| vec![*told])?;
    }
    let (junit, markdown) = (arguments.junit.as_deref(), arguments.markdown.as_deref());
    match write_files(junit, markdown, &summary) {
        failed if failed.is_empty() => Ok(exit_code(&summary)),
        failed => Err(failed),
    }
}

/// Writes a row for each second and step while they are read.
fn write_csv(run: &Run, path: &Path, screen: Screen) -> Result<(), Box<Diagnostic>> {
    if path == Path::new(OUTPUT) {
        return seconds_csv(run, |piece| screen.document(piece));
    }
    let failed = |error: &std::io::Error| unwritable("--csv", path, error);
    let mut read = Ok(());
    let written = write_whole(path, &mut OpenOptions::new(), |file| {
        let mut file = std::io::BufWriter::new(file);
        let mut written = Ok(());
        read = seconds_csv(run, |piece| {
            if written.is_ok() {
                written = file.write_all(piece.as_bytes());
            }
        });
        written.and_then(|()| file.flush())
    });
    read.and(written.map_err(|error| failed(&error)))
}

/// The given run, or the newest one.
pub(crate) fn given_or_newest(given: Option<&Path>) -> Result<Run, Box<Diagnostic>> {
    match given {
        Some(directory) => Run::open(directory),
        None => Run::newest(|_| true).ok_or_else(no_runs),
    }
}

fn no_runs() -> Box<Diagnostic> {
    let message = say!("no run is recorded in ./{RECORDS}");
    let help =
        say!("give a run directory, or change to the directory where `throng run` was started");
    Box::new(Diagnostic::error("run-unreadable", message).help(help))
}

pub(crate) fn why(arguments: &WhyArguments) -> Ended {
    let errors = Screen::errors(arguments.no_color);
    found(arguments).map_err(|told| errors.refused(&told))?;
    Ok(Exit::Success)
}

fn found(arguments: &WhyArguments) -> Result<(), Box<Diagnostic>> {
    let screen = Screen::output(arguments.no_color);
    let run = given_or_newest(arguments.run.as_deref())?;
    let summary = run.summary()?;
    let judged = &summary.verdict.why;
    if arguments.json {
        let mut told = match arguments.slowest {
            true => json!({ "slowest": slowest_json(&summary) }),
            false => judged_json(judged),
        };
        told["run"] = json!({ "id": summary.info.id, "name": summary.info.name });
        told["run"]["directory"] = json!(run.directory.display().to_string());
        screen.json(&told);
    } else {
        screen.text(&match arguments.slowest {
            true => slowest_text(&summary, &screen.style),
            false => findings_text(&summary, judged, &screen.style),
        });
    }
    Ok(())
}

pub(crate) fn merge(arguments: &MergeArguments) -> Ended {
    let errors = Screen::errors(arguments.no_color);
    let summary = merged(arguments).map_err(|told| errors.refused(&told))?;
    let mut screen = Screen::output(arguments.no_color);
    screen.style.details = arguments.details;
    match arguments.json {
        true => screen.json(&summary_json(&summary)),
        false => screen.text(&summary_text(&summary, &screen.style)),
    }
    Ok(exit_code(&summary))
}

fn merged(arguments: &MergeArguments) -> Result<Summary, Box<Diagnostic>> {
    let runs: Result<Vec<Run>, _> = arguments.runs.iter().map(|run| Run::open(run)).collect();
    merge_runs(&runs?, &arguments.out)?;
    Run::open(&arguments.out)?.summary()
}

pub(crate) fn compare(arguments: &CompareArguments) -> Ended {
    let errors = Screen::errors(arguments.no_color);
    let (baseline, others) = held(arguments).map_err(|told| errors.refused(&told))?;
    print(arguments, &baseline, &others);
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

fn print(arguments: &CompareArguments, baseline: &Sampled, others: &[Compared]) {
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

pub(crate) fn history(arguments: &HistoryArguments) -> Ended {
    let errors = Screen::errors(arguments.no_color);
    let history = listed(arguments).map_err(|told| errors.refused(&told))?;
    let screen = Screen::output(arguments.no_color);
    match (arguments.json, arguments.markdown) {
        (true, _) => screen.json(&history_json(&history)),
        (_, true) => screen.text(&history_markdown(&history)),
        _ => screen.text(&history_text(&history, &screen.style)),
    }
    Ok(exit_of(history.scenarios.iter().flat_map(|trend| &trend.judged)))
}

fn listed(arguments: &HistoryArguments) -> Result<History, Box<Diagnostic>> {
    let conditions = arguments.conditions.iter().map(|text| Condition::parse(text));
    let asked = Asked {
        step: arguments.step.clone(),
        labels: arguments.labels.clone(),
        last: arguments.last.map(|last| usize::try_from(last).unwrap_or(usize::MAX)),
        baseline: arguments.baseline.clone(),
        conditions: conditions.collect::<Result<_, _>>()?,
        without_links: false,
    };
    let folder = arguments.folder.as_deref().unwrap_or(Path::new(RECORDS));
    History::read(folder, &asked)
}

pub(crate) fn serve(arguments: &ServeArguments) -> Ended {
    let errors = Screen::errors(arguments.no_color);
    let setup = Setup {
        folder: arguments.folder.clone(),
        listen: arguments.listen.clone(),
        allow_run: arguments.allow_run.clone(),
        runs_max: arguments.runs_max,
        refusal: |words| speech::parse(words).err().map(|error| speech::wrong_in(&error)),
    };
    let served = throng_serve::serve(&setup, &errors, stop_requested());
    served.map_err(|told| errors.refused(&told))?;
    Ok(Exit::Success)
}
