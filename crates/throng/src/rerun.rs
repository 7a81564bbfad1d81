//! `throng rerun`: a recorded run once more, from its directory alone.

use throng_base::{Diagnostic, Exit};
use throng_results::Run;
use throng_run::bundle::{Given, load};
use throng_run::{Conduct, LoadPart, SearchOptions, capacity};
use throng_terminal::Screen;

use crate::Ended;
use crate::arguments::RerunArguments;
use crate::run::with_program;
use crate::scenario::assignments;

pub(crate) fn rerun(arguments: RerunArguments) -> Ended {
    with_record(arguments, |conduct, search| match search {
        Some(options) => capacity::search(conduct, &options),
        None => conduct.run(),
    })
}

/// Does something with the run that such a command line stands for, and with the options of its
/// search.
pub(crate) fn with_record(
    mut arguments: RerunArguments,
    then: impl FnOnce(Conduct<'_>, Option<SearchOptions>) -> Exit,
) -> Ended {
    let errors = Screen::errors(arguments.output.no_color);
    let run = Run::open(&arguments.run).map_err(|told| errors.refused(&told))?;
    if run.info.mode.duel {
        let message = say!("{} is a duel, which cannot be rerun", arguments.run.display());
        let help = say!("start it again with `throng duel`; `run.json` has its command and seed");
        return Err(errors.refused(&Diagnostic::error("duel-unclear", message).help(help)));
    }
    let set = assignments(&arguments.set, errors)?;
    let labels = arguments.output.labels.clone();
    let given = Given { set, labels, allow_changed: arguments.allow_changed, ..Given::default() };
    let loaded = load(&run, &given, &errors)?;
    // Shards share the users and the rows among them.
    let shards = usize::try_from(run.info.generator.shards).ok().filter(|shards| *shards > 0);
    arguments.output.shards = arguments.output.shards.or(shards);
    // One part of a load stays that part; the processes of a run had the whole of it.
    if let [only] = &*run.info.generator.machines
        && only.width < only.of
        && arguments.output.processes.is_none()
    {
        let part = LoadPart { first: only.first, width: only.width, of: only.of };
        arguments.output.part.get_or_insert(part);
    }
    let search = run.info.sources.bundle.and_then(|bundle| bundle.search);
    let search = search.map(serde_json::from_value).transpose();
    let search = search.map_err(|error| errors.refused(&unread(&error)))?;
    let given = (&arguments.output, &arguments.limits);
    let compiled = (loaded.program, loaded.recorded);
    Ok(with_program(compiled, given, std::env::args().collect(), |conduct| {
        then(Conduct { rerun_of: Some(run.info.id), ..conduct }, search)
    }))
}

/// Options of a search that another version has recorded.
// sentences
fn unread(error: &serde_json::Error) -> Diagnostic {
    let error = error.to_string();
    let message = say!("the recorded options of the search cannot be read: {error}");
    let help = say!("search again with `throng capacity` and the recorded scenario");
    Diagnostic::error("run-unreadable", message).help(help)
}
