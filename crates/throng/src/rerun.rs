//! `throng rerun`: a recorded run once more, from its directory alone.

use std::sync::Arc;

use throng_base::Exit;
use throng_results::Run;

use crate::arguments::{LoadPart, RerunArguments};
use crate::bundle::{Given, load};
use crate::conduct::Conduct;
use crate::scenario::assignments;
use crate::screen::Screen;

pub(crate) fn rerun(arguments: RerunArguments) -> Exit {
    with_record(arguments, |conduct| conduct.run())
}

/// Does something with the run that such a command line stands for.
pub(crate) fn with_record(
    mut arguments: RerunArguments,
    then: impl FnOnce(Conduct<'_>) -> Exit,
) -> Exit {
    let errors = Screen::errors(arguments.output.no_color);
    let run = match Run::open(&arguments.run) {
        Ok(run) => run,
        Err(diagnostic) => {
            errors.diagnostic(&diagnostic);
            return Exit::Usage;
        }
    };
    let set = match assignments(&arguments.set, errors) {
        Ok(set) => set,
        Err(exit) => return exit,
    };
    let labels = arguments.output.labels.clone();
    let given = Given { set, labels, allow_changed: arguments.allow_changed, ..Given::default() };
    let loaded = match load(&run, &given, errors) {
        Ok(loaded) => loaded,
        Err(exit) => return exit,
    };
    // Shards share the users and the rows among them.
    let shards = usize::try_from(run.info.shards).ok().filter(|shards| *shards > 0);
    arguments.output.shards = arguments.output.shards.or(shards);
    // One part of a load stays that part; the processes of a run had the whole of it.
    if let [only] = &*run.info.machines
        && only.width < only.of
        && arguments.output.processes.is_none()
    {
        let part = LoadPart { first: only.first, width: only.width, of: only.of };
        arguments.output.part.get_or_insert(part);
    }
    then(Conduct {
        search: None,
        program: Arc::new(loaded.program),
        recorded: loaded.recorded,
        rerun_of: Some(run.info.id),
        command: std::env::args().collect(),
        output: &arguments.output,
        limits: &arguments.limits,
    })
}
