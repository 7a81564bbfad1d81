//! `throng try`: a scenario with one user or a few, told step by step: what was sent, what came
//! back, how long it took, what was saved, and why a step failed.

mod form;
mod progress;
mod telling;

use std::io::BufRead as _;
use std::sync::Arc;
use std::time::Duration;

use throng_base::diagnostic::did_you_mean;
use throng_base::units::format_duration;
use throng_base::{Diagnostic, Exit, Said};
use throng_engine::{Gate, Kept, Options, Run, StoppedBy, Update, start};
use throng_program::{Drive, Iterations, Load, OncePart, Pause, Phase, Program, Statement};
use throng_run::guard::Guard;
use throng_run::not_started;
use throng_terminal::screen::{self, Screen};
use throng_terminal::signals::stop_requested;

use crate::arguments::TryArguments;
use crate::scenario;
use progress::Progress;
use telling::Telling;

/// An attempt is a look, not a run: what takes longer is cut off.
const TIME_MAX: Duration = Duration::from_secs(300);
const GRACEFUL_STOP: Duration = Duration::from_secs(10);
/// Iterations of a loop that are run, unless all is to be shown.
const LOOP_ITERATIONS_MAX: u32 = 100;

/// What came of the attempts at all sessions.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) steps: u64,
    pub(crate) failed: u64,
}

pub(crate) fn attempt(arguments: &TryArguments) -> Exit {
    let screen = Screen::output(arguments.no_color);
    let errors = Screen::errors(arguments.no_color);
    let loaded = match scenario::load(&arguments.scenario, errors) {
        Ok(loaded) => loaded,
        Err(exit) => return exit,
    };
    let guard = match Guard::read(&errors) {
        Ok(guard) => guard,
        Err(exit) => return exit,
    };
    let sessions = match chosen(&loaded.program, arguments.session.as_deref()) {
        Ok(sessions) => sessions,
        Err(diagnostic) => {
            errors.diagnostic(&diagnostic);
            return Exit::Usage;
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            errors.diagnostic(&Diagnostic::error(
                "host-unfit",
                say!("cannot start an event loop: {error}", error = Said::of_error(&error)),
            ));
            return Exit::HostUnfit;
        }
    };
    let gate = arguments.step.then(|| ask_at_each_step(screen));
    let tally = Tally::default();
    let mut look = Look {
        guard: &guard,
        gate,
        arguments,
        screen,
        runtime,
        tally,
        is_unreachable: false,
        is_reached: false,
    };
    if let Err(exit) = look.all(loaded.program.clone(), &sessions) {
        return exit;
    }
    let (tally, is_unreachable) = (look.tally, look.is_unreachable && !look.is_reached);
    screen.line("");
    let result = match (tally.steps, tally.failed) {
        (1, 0) => tell!("1 step, ok"),
        (1, _) => tell!("1 step, failed"),
        (steps, 0) => tell!("{steps} steps, all ok"),
        (steps, failed) => tell!("{steps} steps, {failed} failed"),
    };
    screen.say(say!(
        "seed {}; to reproduce this run, add --seed {}",
        loaded.program.seed,
        loaded.program.seed
    ));
    screen.line(&result);
    match tally.failed {
        0 => Exit::Success,
        _ if is_unreachable => Exit::TargetUnreachable,
        _ => Exit::ThresholdsNotMet,
    }
}

/// The sessions to do: the one that is named, or all that users do.
fn chosen(program: &Program, name: Option<&str>) -> Result<Vec<usize>, Box<Diagnostic>> {
    let sessions = program.sessions.iter().enumerate();
    let Some(name) = name else {
        return Ok(sessions.filter(|(_, one)| one.weight > 0).map(|(index, _)| index).collect());
    };
    let found: Vec<usize> =
        sessions.filter(|(_, one)| one.name == name).map(|(index, _)| index).collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let names = || program.sessions.iter().map(|session| session.name.as_str());
    let list: Vec<String> = names().take(12).map(|name| format!("`{name}`")).collect();
    let mut error = Diagnostic::error("unknown-name", say!("there is no session `{name}`"))
        .help(say!("available: {}", list.join(", ")));
    if let Some(near) = did_you_mean(name, names()) {
        error = error.note(say!("did you mean `{near}`?"));
    }
    Err(Box::new(error))
}

/// The scenario with one session, done once by each of a few users, without long pauses; and which
/// of its loops are cut short.
fn reduced(program: &Program, session: usize, arguments: &TryArguments) -> (Program, Vec<Said>) {
    let mut cuts = Vec::new();
    let mut session = program.sessions[session].clone();
    session.weight = 1;
    session.change(&mut |statement| cuts.extend(shorten(statement, arguments)));
    cuts.dedup();
    let iterations = Iterations::new(arguments.users, None, Some(arguments.users));
    let phase = Phase {
        name: "try".into(),
        drive: Drive::Iterations(iterations),
        time: Some(TIME_MAX),
        churn: None,
        measured: true,
    };
    let program = Program {
        sessions: vec![session],
        loads: vec![Load::alone(vec![phase])],
        graceful_stop: GRACEFUL_STOP,
        precision: Duration::ZERO,
        thresholds: Vec::new(),
        abort_when: Vec::new(),
        hold_when: Vec::new(),
        events: Vec::new(),
        monitors: Vec::new(),
        audits: Vec::new(),
        outputs: Vec::new(),
        ..program.clone()
    };
    (program, cuts)
}

/// Shortens pauses and long loops. A cut loop changes what the target sees, so it is said.
fn shorten(statement: &mut Statement, arguments: &TryArguments) -> Option<Said> {
    let pause = arguments.pause;
    match statement {
        Statement::Think(Pause::Uniform { low, high }) => {
            *low = pause.min(*low);
            *high = pause.min(*high);
        }
        Statement::Think(Pause::Exponential { mean, max }) => {
            *mean = pause.min(*mean);
            *max = pause.min(*max);
        }
        Statement::Think(Pause::Normal { mean, deviation }) if *mean > pause => {
            *mean = pause;
            *deviation = Duration::ZERO;
        }
        Statement::Stay(stay) if !stay.awaits_end => {
            let stay = Arc::make_mut(stay);
            stay.time = Some(stay.time.map_or(pause, |time| time.min(pause)));
        }
        Statement::During { time, .. } if *time > pause => {
            let (long, short) = (format_duration(*time), format_duration(pause));
            *time = pause;
            return Some(say!("`during: {long}` runs for {short}; --pause sets this duration"));
        }
        Statement::Repeat { low, high, .. } if *high > LOOP_ITERATIONS_MAX && !arguments.full => {
            let most = std::mem::replace(high, LOOP_ITERATIONS_MAX);
            *low = LOOP_ITERATIONS_MAX.min(*low);
            return Some(say!(
                "only {LOOP_ITERATIONS_MAX} of {most} loop iterations run; --full runs all"
            ));
        }
        Statement::Forever(steps) => {
            let steps = std::mem::take(steps);
            *statement = Statement::Repeat { low: 1, high: 1, steps };
            return Some(say!("`repeat: forever` runs only once"));
        }
        Statement::Rendezvous(rendezvous) => {
            let rendezvous = Arc::make_mut(rendezvous);
            rendezvous.users = rendezvous.users.min(arguments.users);
        }
        _ => {}
    }
    None
}

/// Lets users through one by one, as the person presses Enter.
fn ask_at_each_step(screen: Screen) -> Arc<Gate> {
    let gate = Arc::new(Gate::default());
    screen.say(say!(
        "Press Enter to run the next step, `c` and Enter to run all remaining steps, or Ctrl-C \
         to quit"
    ));
    let asked = Arc::clone(&gate);
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            match line {
                Ok(line) if line.trim().is_empty() => asked.permit(),
                _ => break,
            }
        }
        asked.open();
    });
    gate
}

/// A look at a scenario.
struct Look<'a> {
    guard: &'a Guard,
    gate: Option<Arc<Gate>>,
    arguments: &'a TryArguments,
    screen: Screen,
    runtime: tokio::runtime::Runtime,
    tally: Tally,
    /// In one of the programs the target could not be reached at all; in one it was.
    is_unreachable: bool,
    is_reached: bool,
}

impl Look<'_> {
    /// The setup, these sessions and the teardown, as far as there are some. Without a setup that
    /// is good the sessions are not done; what was set up is torn down all the same.
    fn all(&mut self, mut program: Program, sessions: &[usize]) -> Result<(), Exit> {
        let mut looked = Ok(());
        if let Some(once) = &program.setup {
            let keep = Kept::default();
            looked = self.one(program.of_once(once), Some((OncePart::Setup, keep.clone())));
            program.setup_values = keep.values();
        }
        if looked.is_ok() && self.tally.failed > 0 {
            self.screen.say(say!("the setup failed, so no session runs"));
        } else if looked.is_ok() {
            // Without a reader there is nothing more to tell.
            let mut wanted = sessions.iter().take_while(|_| !screen::is_reader_gone());
            looked = wanted.try_for_each(|session| self.session(&program, *session));
        }
        match &program.teardown {
            Some(once) => {
                let torn =
                    self.one(program.of_once(once), Some((OncePart::Teardown, Kept::default())));
                looked.and(torn)
            }
            None => looked,
        }
    }

    fn session(&mut self, program: &Program, session: usize) -> Result<(), Exit> {
        let (program, cuts) = reduced(program, session, self.arguments);
        cuts.into_iter().for_each(|cut| self.screen.say(cut));
        self.one(program, None)
    }

    /// Does one program and tells it: that of a session, or of what is done once.
    fn one(&mut self, program: Program, once: Option<(OncePart, Kept)>) -> Result<(), Exit> {
        let program = Arc::new(program);
        let (part, keep) = once.unzip();
        let options = Options {
            shards: Some(1),
            trace: true,
            step_gate: self.gate.clone(),
            allowed: self.guard.lists.clone(),
            keep,
            ..Options::default()
        };
        let errors = Screen::errors(self.arguments.no_color);
        let run = match start(&program, &options) {
            Ok(run) => run,
            Err(error) => return Err(not_started(&error, &errors)),
        };
        self.guard.warn(&program, &run, &errors);
        let mut telling = Telling::new(&program, part, self.arguments, self.screen);
        let users = if part.is_some() { 1 } else { self.arguments.users };
        let mut progress = Progress::of(users);
        let told = self.runtime.block_on(tell(run, &program, &mut telling, &mut progress));
        telling.end();
        let is_unreachable = progress.is_unreachable();
        if told.is_ok()
            && (is_unreachable || progress.is_stuck())
            && let Some(diagnostic) = progress.diagnostic(|said| telling.in_words(said))
        {
            errors.diagnostic(&diagnostic);
        }
        self.is_unreachable |= is_unreachable;
        self.is_reached |= progress.is_reached();
        self.tally.steps += telling.tally.steps;
        self.tally.failed += telling.tally.failed;
        told
    }
}

/// Tells what a run does until it is over.
async fn tell(
    mut run: Run,
    program: &Program,
    telling: &mut Telling<'_>,
    progress: &mut Progress,
) -> Result<(), Exit> {
    let stopped = stop_requested();
    tokio::pin!(stopped);
    let (mut interrupted, mut is_over) = (false, false);
    loop {
        tokio::select! {
            update = run.next() => match update {
                None => break,
                Some(Update::Trace(trace)) => {
                    progress.hear(&trace, program);
                    telling.tell(&trace);
                    if !is_over && (progress.is_over() || screen::is_reader_gone()) {
                        is_over = true;
                        run.control.abort();
                    }
                }
                Some(Update::Stopped(stopped)) => match stopped.by {
                    StoppedBy::Rule => telling.say(say!(
                        "the scenario stopped the run: {}",
                        stopped.reason.english()
                    )),
                    StoppedBy::Data | StoppedBy::DataShort => telling.say(say!(
                        "the data has run out: {}",
                        stopped.reason.english()
                    )),
                    StoppedBy::Bug => throng_terminal::bug::tell(&stopped.reason),
                },
                Some(_) => {}
            },
            () = &mut stopped, if !interrupted => {
                // Who stands at the gate finds it shut: no step begins any more.
                interrupted = true;
                run.control.abort();
            }
        }
    }
    match interrupted {
        true => Err(Exit::Interrupted),
        false => Ok(()),
    }
}
