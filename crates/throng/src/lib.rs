//! The throng program: arguments, wiring, printing, exit codes. Everything else is in the crates.
//!
//! - `arguments`: the command line, one definition per flag. `choice`: a value that is one of a
//!   few. `fingers`: what other tools' users type. `instead`: what to write for it.
//! - `bench`: a command line becomes a scenario. `conduct`: a scenario becomes a run.
//! - `duel`: two targets under the same load in turn.
//! - `guard`: which targets may be loaded; `budget`: how much, at most.
//! - `mcp`: the commands as tools of an AI assistant.
//! - `plan`: how many machines it takes; `machine`: what one gives. `protocol`: private protocols,
//!   drawn, decoded, encoded.
//! - `bundle`: what a run was made of, in its directory; `rerun`: a run once more, from there.
//! - `replay`: an access log becomes a scenario. `record`: what a browser does becomes one.
//! - `monitor`: this host for the runs of others.
//! - `manual`: pages of the manual, and completions for shells. `version`: of what this was made.
//! - `fleet`: the keys of a fleet, its bus, its agents; `agent`: a machine of it.
//! - `system`: what only Linux does; `elsewhere`: the same for other systems, which make no load.
//! - `saved`: what the pages give to be saved.
//! - `post`: one of several processes of a run. `compare`, `history`, `report`, `target`: the other
//!   commands. `screen`: everything that is printed. `speech`: in which language.

#[macro_use]
extern crate throng_base;

mod agent;
mod arguments;
mod attempt;
mod bench;
mod budget;
mod bundle;
mod capacity;
mod check;
mod choice;
mod compare;
mod conduct;
mod control;
mod doctor;
mod duel;
#[cfg(not(target_os = "linux"))]
mod elsewhere;
mod explain;
mod files;
mod fingers;
mod fleet;
mod guard;
mod history;
mod import;
mod init;
mod instead;
mod link;
mod machine;
mod manual;
mod mcp;
mod merge;
mod monitor;
mod permit;
mod plan;
mod post;
mod preflight;
mod protocol;
mod record;
mod reflect;
mod replay;
mod report;
mod rerun;
mod saved;
mod scenario;
mod screen;
mod serve;
mod signals;
mod speech;
#[cfg(target_os = "linux")]
mod system;
#[cfg(not(target_os = "linux"))]
use elsewhere as system;
mod target;
mod version;
mod why;

use std::os::unix::process::CommandExt;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use throng_base::{Exit, Said};

use arguments::{Arguments, Command};
use screen::Screen;

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

/// Under a limit on the address space (`ulimit -v`) the allocators must not reserve what they do
/// not use: mimalloc reserves 1 GiB at its first allocation, and glibc 64 MiB for each thread. They
/// read these settings when a process starts, so it starts once more.
fn reserve_no_address_space() {
    const SETTINGS: [(&str, &str); 2] =
        [("MIMALLOC_ARENA_RESERVE", "0"), ("MALLOC_ARENA_MAX", "1")];
    let is_set = SETTINGS.iter().all(|(name, _)| std::env::var_os(name).is_some());
    if is_set || throng_host::address_space_limit().is_none() {
        return;
    }
    let mut words = std::env::args_os();
    if let (Ok(program), Some(name)) = (std::env::current_exe(), words.next()) {
        // It returns only where it fails; then all goes on as it is.
        let _ = std::process::Command::new(program).arg0(name).args(words).envs(SETTINGS).exec();
    }
}

/// A file may not grow beyond `ulimit -f`: the write that would make it fails with an error, as on
/// a full disk, in place of a signal that ends the process in the middle of a run.
fn fail_writes_of_large_files() {
    // SAFETY: the call replaces the action of one signal; no handler of ours is installed.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

/// Sends a signal to all processes of a group. One that is gone needs none.
fn signal_group(group: u32, signal: libc::c_int) {
    let Ok(group) = libc::pid_t::try_from(group) else { return };
    if group > 1 {
        // SAFETY: the call takes no pointer; the group is that of a child that was put in one of
        // its own, so this process is not in it.
        unsafe { libc::kill(-group, signal) };
    }
}

/// Whether whoever started this process wants a signal ignored: `nohup` does.
fn ignores(signal: libc::c_int) -> bool {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: nothing is changed where the new action is null; the present one is written to
    // `action`, which is read only when the call has done so.
    unsafe {
        libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) == 0
            && action.assume_init().sa_sigaction == libc::SIG_IGN
    }
}

/// Overwrites an argument of the command line, which the kernel shows to everybody (`ps`,
/// `/proc/PID/cmdline`) as it stands in the memory of this process.
fn hide_argument(argument: &str) {
    // proc_pid_stat(5): the name in brackets may hold anything; `arg_start` and `arg_end` are
    // fields 48 and 49, and field 3 is the first behind it.
    let Ok(stat) = std::fs::read_to_string("/proc/self/stat") else { return };
    let Some((_, fields)) = stat.rsplit_once(')') else { return };
    let mut fields = fields.split_whitespace().skip(45).map(str::parse::<usize>);
    let (Some(Ok(start)), Some(Ok(end))) = (fields.next(), fields.next()) else { return };
    if argument.is_empty() || start == 0 || end <= start {
        return;
    }
    // SAFETY: the kernel says that the arguments of this process lie there. They are written to
    // by nobody else: this is done before any thread is started, and Rust copies them when asked.
    let arguments = unsafe { std::slice::from_raw_parts_mut(start as *mut u8, end - start) };
    let length = argument.len();
    for at in 0..arguments.len().saturating_sub(length - 1) {
        if arguments[at..at + length] == *argument.as_bytes() {
            arguments[at..at + length].fill(b'*');
        }
    }
}

/// Whether whoever started this process has closed its standard output (`>&-`). It is asked before
/// Rust's own beginning, which opens `/dev/null` in its place.
static HAS_OUTPUT: AtomicBool = AtomicBool::new(true);

extern "C" fn look_at_output() {
    // SAFETY: the call only asks for the flags of a descriptor.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    HAS_OUTPUT.store(flags >= 0, Ordering::Relaxed);
}

// SAFETY: what stands in this section is called before `main`, with arguments that a function
// without any ignores; this one needs nothing that has to be set up before.
#[used]
#[cfg_attr(target_os = "linux", unsafe(link_section = ".init_array"))]
static LOOK_AT_OUTPUT: extern "C" fn() = look_at_output;

/// A part of throng has panicked, or stood still: whatever else comes of the run, this is a bug.
static HAS_BUG: AtomicBool = AtomicBool::new(false);

/// The first panic is told, on a terminal that is as it was.
fn report_panics() {
    std::panic::set_hook(Box::new(|panic| {
        if !HAS_BUG.swap(true, Ordering::Relaxed) {
            conduct::restore_terminal();
            screen::bug(panic);
        }
    }));
}

/// A user stood still that nothing would ever have woken. Where a run has a record of that, its
/// verdict says so; this is for what has none.
fn tell_bug(reason: &Said) {
    HAS_BUG.store(true, Ordering::Relaxed);
    screen::standstill(reason);
}

/// The whole program, from its arguments to its exit code.
pub fn main() -> ExitCode {
    // What is used here is linked, and so is called before.
    std::hint::black_box(&LOOK_AT_OUTPUT);
    screen::has_output(HAS_OUTPUT.load(Ordering::Relaxed));
    reserve_no_address_space();
    fail_writes_of_large_files();
    report_panics();
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
    let exit = if HAS_BUG.load(Ordering::Relaxed) { Exit::Bug } else { exit };
    ExitCode::from(exit.code())
}

fn execute(arguments: Arguments) -> Exit {
    if let Some(diagnostic) = system::refusal(&arguments.command) {
        Screen::errors(false).diagnostic(&diagnostic);
        return Exit::HostUnfit;
    }
    if arguments.command.has_users() {
        keep_no_free_memory();
    }
    match arguments.command {
        Command::Bench(arguments) => bench::bench(&arguments),
        Command::Init(arguments) => init::init(arguments),
        Command::Import(arguments) => import::import(&arguments),
        Command::Record(arguments) => record::record(&arguments),
        Command::Check(arguments) => check::check(&arguments),
        Command::Try(arguments) => attempt::attempt(&arguments),
        Command::Plan(arguments) => plan::plan(&arguments),
        Command::Run(arguments) => replay::run(&arguments),
        Command::Capacity(arguments) => capacity::capacity(&arguments),
        Command::Duel(arguments) => duel::duel(&arguments),
        Command::Post => post::post(),
        Command::Fleet(arguments) => fleet::fleet(&arguments),
        Command::Agent(arguments) => agent::agent(&arguments),
        Command::Resume(arguments) => conduct::resume(&arguments),
        Command::Collect(arguments) => conduct::collect(&arguments),
        Command::Rerun(arguments) => rerun::rerun(arguments),
        Command::Doctor(arguments) => doctor::doctor(&arguments),
        Command::Monitor(arguments) => monitor::monitor(arguments),
        Command::Protocol(arguments) => protocol::protocol(&arguments),
        Command::Explain(arguments) => explain::explain(&arguments),
        Command::Schema(arguments) => explain::schema(&arguments),
        Command::Demo(arguments) => target::demo(arguments),
        Command::Control(arguments) => control::control(&arguments),
        Command::Report(arguments) => report::report(&arguments),
        Command::Why(arguments) => why::why(&arguments),
        Command::Merge(arguments) => merge::merge(&arguments),
        Command::Compare(arguments) => compare::compare(&arguments),
        Command::History(arguments) => history::history(&arguments),
        Command::Serve(arguments) => serve::serve(&arguments),
        Command::Mcp(arguments) => mcp::mcp(&arguments),
        Command::Target(arguments) => target::target(&arguments),
        Command::Completions(arguments) => manual::completions(&arguments),
        Command::Man(arguments) => manual::man(&arguments),
    }
}
