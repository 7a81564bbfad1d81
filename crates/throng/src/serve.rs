//! `throng serve`: the runs of a folder as a page.

use throng_base::Exit;
use throng_serve::Setup;
use throng_terminal::Screen;
use throng_terminal::signals::stop_requested;

use crate::Ended;
use crate::arguments::ServeArguments;
use crate::speech;

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
