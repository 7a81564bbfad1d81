//! The throng program: arguments, wiring, output, exit codes. Everything else is in the crates.
//!
//! - `arguments`: the command line; flags that are options of a library are in its crate.
//! - `run`: runs and examines scenario files. `scenario`: reads them.
//! - `bench`: converts a command line to a scenario. `duel`: alternates a load between two targets.
//! - `import`: scenarios from other tools, and from a browser. `init`: from a template.
//! - `records`: recorded runs. `control`: commands to a run in progress.
//! - `host`: machines for a load. `fleet`: machines that work together. `post`: a process of a run.
//! - `protocol`: packets of declared protocols. `explain`: codes of messages, and schemas.
//! - `target`: reference servers. `mcp`: the commands as tools of an AI assistant.
//! - `speech`: the language of the command line. `manual`: manual pages, completions for shells.
//!   `version`: the identity of the build.
//! - `system`: functions that need Linux; `elsewhere`: other systems, which generate no load.

#[macro_use]
extern crate throng_base;

mod arguments;
mod bench;
mod control;
mod duel;
#[cfg(not(target_os = "linux"))]
mod elsewhere;
mod explain;
mod fleet;
mod host;
mod import;
mod init;
mod manual;
mod mcp;
mod post;
mod protocol;
mod records;
mod run;
mod scenario;
mod speech;
#[cfg(target_os = "linux")]
mod system;
#[cfg(not(target_os = "linux"))]
use elsewhere as system;
mod target;
mod version;

use std::process::ExitCode;

use throng_base::Exit;
use throng_terminal::{Screen, bug, screen, signals, terminal};

use arguments::{Arguments, Command};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// `mi_option_purge_delay` in mimalloc.h: how many milliseconds freed pages are kept.
const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;

/// Returns free memory to the system immediately, page by page. Thousands of users that connect at
/// the same moment need far more memory while they connect than later, and the kernel needs that
/// memory for their sockets. A single small allocation would keep a whole huge page in use.
/// Commands without users are faster without it.
fn keep_no_free_memory() {
    system::use_no_huge_pages();
    // SAFETY: the call sets a numeric option of the allocator; it takes no pointer.
    unsafe { libmimalloc_sys::mi_option_set(PURGE_DELAY, 0) };
}

/// Returns memory that the calling thread has freed to the system. The allocator does so only while
/// it is used, and idle users do not use it.
fn give_back_memory() {
    // SAFETY: the call only walks the allocator's own structures of this thread.
    unsafe { libmimalloc_sys::mi_collect(true) }
}

/// The whole program, from arguments to exit code.
pub fn main() -> ExitCode {
    system::reserve_no_address_space();
    signals::fail_writes_of_large_files();
    bug::report_panics(terminal::restore);
    let words: Vec<_> = std::env::args_os().collect();
    speech::choose(&words);
    let arguments = match speech::fingers::understood(words) {
        Ok(arguments) => arguments,
        Err(diagnostic) => {
            Screen::errors(false).diagnostic(&diagnostic);
            return ExitCode::from(Exit::Usage.code());
        }
    };
    let arguments = match speech::parse(arguments) {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version are not mistakes.
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

/// How a command ended: an error means that it failed and has reported why.
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
        Command::Record(arguments) => import::record(&arguments),
        Command::Check(arguments) => run::check(&arguments),
        Command::Try(arguments) => run::attempt(&arguments),
        Command::Plan(arguments) => host::plan(&arguments),
        Command::Run(arguments) => run::run(&arguments),
        Command::Capacity(arguments) => run::capacity(&arguments),
        Command::Duel(arguments) => duel::duel(&arguments),
        Command::Post => post::post(),
        Command::Fleet(arguments) => fleet::fleet(&arguments),
        Command::Agent(arguments) => fleet::agent(&arguments),
        Command::Resume(arguments) => fleet::resume(&arguments),
        Command::Collect(arguments) => fleet::collect(&arguments),
        Command::Rerun(arguments) => run::rerun(arguments),
        Command::Doctor(arguments) => host::doctor(&arguments),
        Command::Monitor(arguments) => fleet::monitor(arguments),
        Command::Protocol(arguments) => protocol::protocol(&arguments),
        Command::Explain(arguments) => explain::explain(&arguments),
        Command::Schema(arguments) => explain::schema(&arguments),
        Command::Demo(arguments) => Ok(target::demo(arguments)),
        Command::Control(arguments) => control::control(&arguments),
        Command::Report(arguments) => records::report(&arguments),
        Command::Why(arguments) => records::why(&arguments),
        Command::Merge(arguments) => records::merge(&arguments),
        Command::Compare(arguments) => records::compare(&arguments),
        Command::History(arguments) => records::history(&arguments),
        Command::Serve(arguments) => records::serve(&arguments),
        Command::Mcp(arguments) => mcp::mcp(&arguments),
        Command::Target(arguments) => Ok(target::target(&arguments)),
        Command::Completions(arguments) => manual::completions(&arguments),
        Command::Man(arguments) => manual::man(&arguments),
    };
    ended.unwrap_or_else(|exit| exit)
}
