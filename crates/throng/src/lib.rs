//! The throng program: arguments, wiring, printing, exit codes. Everything else is in the crates.
//!
//! - `arguments`: the command line, one definition per flag. `choice`: a value that is one of a
//!   few. `fingers`: what other tools' users type. `instead`: what to write for it.
//! - `bench`: a command line becomes a scenario.
//! - `duel`: two targets under the same load in turn.
//! - `mcp`: the commands as tools of an AI assistant.
//! - `check`, `plan`, `doctor`: what a run does and needs. `protocol`: private protocols, drawn,
//!   decoded, encoded.
//! - `rerun`: a run once more, from its directory.
//! - `run`: a scenario file, or an access log. `record`: what a browser does becomes a scenario.
//! - `monitor`: this host for the runs of others.
//! - `manual`: pages of the manual, and completions for shells. `version`: of what this was made.
//! - `fleet`: the keys of a fleet, its bus, its agents; `agent`: a machine of it.
//! - `system`: what only Linux does; `elsewhere`: the same for other systems, which make no load.
//! - `post`: one of several processes of a run. `compare`, `history`, `report`, `target`: the other
//!   commands. `speech`: in which language.

#[macro_use]
extern crate throng_base;

mod agent;
mod arguments;
mod attempt;
mod bench;
mod capacity;
mod check;
mod choice;
mod compare;
mod control;
mod doctor;
mod duel;
#[cfg(not(target_os = "linux"))]
mod elsewhere;
mod explain;
mod fingers;
mod fleet;
mod history;
mod import;
mod init;
mod instead;
mod manual;
mod mcp;
mod merge;
mod monitor;
mod plan;
mod post;
mod protocol;
mod record;
mod reflect;
mod report;
mod rerun;
mod run;
mod scenario;
mod serve;
mod speech;
#[cfg(target_os = "linux")]
mod system;
#[cfg(not(target_os = "linux"))]
use elsewhere as system;
mod target;
mod version;
mod why;

use std::process::ExitCode;

use throng_base::Exit;
use throng_terminal::{Screen, bug, screen, signals, terminal};

use arguments::{Arguments, Command};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// `mi_option_purge_delay` in mimalloc.h: how many milliseconds freed pages are kept.
const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;

/// Memory that is free goes back at once, page by page. Thousands of users who connect at the
/// same moment need far more while they connect than when they are there, and the kernel needs
/// that memory for their sockets. A huge page would be held by the one small thing left in it.
/// Commands without users are faster without it.
fn keep_no_free_memory() {
    system::use_no_huge_pages();
    // SAFETY: the call sets a number of the allocator; it takes no pointer.
    unsafe { libmimalloc_sys::mi_option_set(PURGE_DELAY, 0) };
}

/// Gives memory back to the system that the calling thread has freed. The allocator does so only
/// while it is used, and users that stay do not use it.
fn give_back_memory() {
    // SAFETY: the call only walks the allocator's own structures of this thread.
    unsafe { libmimalloc_sys::mi_collect(true) }
}

/// The whole program, from its arguments to its exit code.
pub fn main() -> ExitCode {
    system::reserve_no_address_space();
    signals::fail_writes_of_large_files();
    bug::report_panics(terminal::restore);
    let words: Vec<_> = std::env::args_os().collect();
    speech::choose(&words);
    let arguments = match fingers::understood(words) {
        Ok(arguments) => arguments,
        Err(diagnostic) => {
            Screen::errors(false).diagnostic(&diagnostic);
            return ExitCode::from(Exit::Usage.code());
        }
    };
    let arguments = match speech::parse(arguments) {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version are no mistakes.
            let exit = if error.use_stderr() { Exit::Usage } else { Exit::Success };
            speech::print(&error);
            return ExitCode::from(screen::delivered(exit).code());
        }
    };
    let exit = std::panic::catch_unwind(|| execute(arguments)).unwrap_or(Exit::Bug);
    let exit = screen::delivered(exit);
    let exit = if bug::is_told() { Exit::Bug } else { exit };
    ExitCode::from(exit.code())
}

/// How a command ended: with an error if it could not do what it is for, which was told.
type Ended = Result<Exit, Exit>;

fn execute(arguments: Arguments) -> Exit {
    if let Some(diagnostic) = system::refusal(&arguments.command) {
        Screen::errors(false).diagnostic(&diagnostic);
        return Exit::HostUnfit;
    }
    if arguments.command.has_users() {
        keep_no_free_memory();
    }
    let ended = match arguments.command {
        Command::Bench(arguments) => bench::bench(&arguments),
        Command::Init(arguments) => init::init(arguments),
        Command::Import(arguments) => import::import(&arguments),
        Command::Record(arguments) => record::record(&arguments),
        Command::Check(arguments) => check::check(&arguments),
        Command::Try(arguments) => attempt::attempt(&arguments),
        Command::Plan(arguments) => plan::plan(&arguments),
        Command::Run(arguments) => run::run(&arguments),
        Command::Capacity(arguments) => capacity::capacity(&arguments),
        Command::Duel(arguments) => duel::duel(&arguments),
        Command::Post => post::post(),
        Command::Fleet(arguments) => fleet::fleet(&arguments),
        Command::Agent(arguments) => agent::agent(&arguments),
        Command::Resume(arguments) => fleet::resume(&arguments),
        Command::Collect(arguments) => fleet::collect(&arguments),
        Command::Rerun(arguments) => rerun::rerun(arguments),
        Command::Doctor(arguments) => doctor::doctor(&arguments),
        Command::Monitor(arguments) => monitor::monitor(arguments),
        Command::Protocol(arguments) => protocol::protocol(&arguments),
        Command::Explain(arguments) => explain::explain(&arguments),
        Command::Schema(arguments) => explain::schema(&arguments),
        Command::Demo(arguments) => Ok(target::demo(arguments)),
        Command::Control(arguments) => control::control(&arguments),
        Command::Report(arguments) => report::report(&arguments),
        Command::Why(arguments) => why::why(&arguments),
        Command::Merge(arguments) => merge::merge(&arguments),
        Command::Compare(arguments) => compare::compare(&arguments),
        Command::History(arguments) => history::history(&arguments),
        Command::Serve(arguments) => serve::serve(&arguments),
        Command::Mcp(arguments) => mcp::mcp(&arguments),
        Command::Target(arguments) => Ok(target::target(&arguments)),
        Command::Completions(arguments) => manual::completions(&arguments),
        Command::Man(arguments) => manual::man(&arguments),
    };
    ended.unwrap_or_else(|exit| exit)
}
