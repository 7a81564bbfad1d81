//! `throng post`: one process of a run, started by `--processes`.

use throng_base::{Diagnostic, Exit};
use throng_run::{Conduct, capacity};
use throng_terminal::Screen;

use crate::Ended;
use crate::arguments::Command;
use crate::speech::{self, fingers};
use crate::{bench, run};

pub(crate) fn post() -> Ended {
    let Some(part) = throng_run::assignment() else {
        let message = say!("`throng post` is started by `throng run --processes`");
        let told = Diagnostic::error("flag-without-effect", message);
        return Err(Screen::errors(false).refused(&told));
    };
    let words = part.words.iter().map(Into::into).collect();
    let parsed = fingers::understood(words).ok().and_then(|words| speech::parse(words).ok());
    let generate = |conduct: Conduct<'_>| throng_run::generate(conduct, &part);
    match parsed.map(|arguments| arguments.command) {
        Some(Command::Run(arguments)) => run::with_run(&arguments, generate),
        Some(Command::Rerun(arguments)) => {
            run::with_record(arguments, |conduct, search| match search {
                Some(options) => capacity::searching(conduct, &options, generate),
                None => generate(conduct),
            })
        }
        Some(Command::Bench(arguments)) if arguments.capacity.is_empty() => {
            bench::with_bench(&arguments, generate)
        }
        Some(Command::Bench(arguments)) => bench::with_bench(&arguments, |conduct| {
            capacity::searching(conduct, &arguments.searched(), generate)
        }),
        Some(Command::Capacity(arguments)) => run::with_run(&arguments.run, |conduct| {
            capacity::searching(conduct, &arguments.search, generate)
        }),
        _ => Err(Exit::Bug),
    }
}
