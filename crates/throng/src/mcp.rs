//! `throng mcp`: the commands as tools of an AI assistant, on standard input and output.

use std::io::{BufReader, IsTerminal as _, stdin};

use throng_base::{Diagnostic, Exit, Said};
use throng_mcp::Site;
use throng_plan::budget::Budget;
use throng_terminal::Screen;
use throng_terminal::screen::StandardOutput;
use throng_terminal::signals::stop_requests;

use crate::Ended;
use crate::arguments::McpArguments;

pub(crate) fn mcp(arguments: &McpArguments) -> Ended {
    let errors = Screen::errors(false);
    let site = site(arguments).map_err(|told| errors.refused(&told))?;
    if stdin().is_terminal() {
        errors.say(say!(
            "this command speaks the Model Context Protocol: start it from an AI assistant, see \
             docs/mcp.md; Ctrl-D ends it"
        ));
    }
    throng_mcp::serve(site, BufReader::new(stdin()), StandardOutput, stop_requests);
    Ok(Exit::Success)
}

fn site(arguments: &McpArguments) -> Result<Site, Box<Diagnostic>> {
    std::env::set_current_dir(&arguments.directory).map_err(|error| {
        let directory = arguments.directory.display();
        let message = say!(
            "cannot change to the directory {directory}: {error}",
            error = Said::of_error(&error)
        );
        let help = say!("give an existing directory with --dir");
        Box::new(Diagnostic::error("file-unreadable", message).help(help))
    })?;
    let given = Budget {
        users: Some(arguments.max_users),
        rate: Some(arguments.max_rate),
        time: Some(arguments.max_time),
    };
    Site::new(&arguments.allow, Budget::of_environment()?.and(given))
}
