//! Runs a scenario with one or a few users and prints each step (`throng try`): what was sent and
//! received, the response time, saved values, and the causes of failures.

mod form;
mod progress;
mod telling;

use std::cell::{Cell, RefCell};
use std::io::{BufRead, Write};
use std::sync::Arc;
use std::time::Duration;

use throng_base::clean::on_screen;
use throng_base::diagnostic::did_you_mean;
use throng_base::units::format_duration;
use throng_base::{Diagnostic, Exit, Said};
use throng_engine::{Gate, Kept, Options, Run, Update, start};
use throng_program::{Drive, Iterations, Load, OncePart, Pause, Phase, Program, Statement};
use throng_results::StopBy;
use throng_results::terminal::Style;

use crate::guard::Guard;
use crate::{Line, Operator, StopRequests, not_started};
use progress::Progress;
use telling::Telling;

/// A try that takes longer is aborted.
const TIME_MAX: Duration = Duration::from_secs(300);
const GRACEFUL_STOP: Duration = Duration::from_secs(10);
/// Maximum iterations of a loop, unless `full` is set.
const LOOP_ITERATIONS_MAX: u32 = 100;

/// Totals over all sessions.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    steps: u64,
    failed: u64,
}

pub struct Attempt {
    /// Runs only this session.
    pub session: Option<String>,
    /// Users per session; they run concurrently.
    pub users: u64,
    /// Maximum length of a pause.
    pub pause: Duration,
    /// Print all data, and run all iterations of loops.
    pub full: bool,
    pub show_secrets: bool,
    /// If set, each line that is read lets users execute one step.
    pub input: Option<Box<dyn BufRead + Send>>,
    pub style: Style,
}

/// Runs each session of a program once and prints every step. The operator can stop the attempt.
///
/// # Errors
/// The exit code; the operator has received the error.
pub fn attempt(
    program: &Program,
    mut wanted: Attempt,
    out: &mut dyn Write,
    operator: &dyn Operator,
) -> Result<Exit, Exit> {
    let guard = Guard::read(operator)?;
    let sessions = chosen(program, wanted.session.as_deref());
    let sessions = sessions.map_err(|told| operator.fail(&told, Exit::Usage))?;
    let runtime = crate::runtime(operator)?;
    let page = Page::new(out, wanted.style);
    let gate = wanted.input.take().map(|input| ask_at_each_step(input, &page));
    let mut look = Look {
        guard: &guard,
        gate,
        wanted: &wanted,
        page: &page,
        operator,
        runtime,
        tally: Tally::default(),
        is_unreachable: false,
        is_reached: false,
    };
    look.all(program.clone(), &sessions)?;
    let (tally, is_unreachable) = (look.tally, look.is_unreachable && !look.is_reached);
    page.line("");
    let result = match (tally.steps, tally.failed) {
        (1, 0) => tell!("1 step, ok"),
        (1, _) => tell!("1 step, failed"),
        (steps, 0) => tell!("{steps} steps, all ok"),
        (steps, failed) => tell!("{steps} steps, {failed} failed"),
    };
    page.say(&say!("seed {}; to reproduce this run, add --seed {}", program.seed, program.seed));
    page.line(&result);
    Ok(match tally.failed {
        0 => Exit::Success,
        _ if is_unreachable => Exit::TargetUnreachable,
        _ => Exit::ThresholdsNotMet,
    })
}

/// Destination of the output.
struct Page<'a> {
    out: RefCell<&'a mut dyn Write>,
    style: Style,
    /// The reader closed the pipe, as `head` does.
    is_unread: Cell<bool>,
}

impl<'a> Page<'a> {
    fn new(out: &'a mut dyn Write, style: Style) -> Page<'a> {
        Page { out: RefCell::new(out), style, is_unread: Cell::new(false) }
    }

    /// Removes control characters, so that names cannot change the terminal's state.
    fn line(&self, line: &str) {
        let text = on_screen(&format!("{line}\n"), self.style.colour).into_owned();
        if self.out.borrow_mut().write_all(text.as_bytes()).is_err() {
            self.is_unread.set(true);
        }
    }

    fn say(&self, said: &Said) {
        self.line(&said.spoken());
    }
}

/// The sessions to run: the named one, or all that users run.
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

/// Reduces the scenario to one session, run once by each of a few users without long pauses. Also
/// returns which loops were shortened.
fn reduced(program: &Program, session: usize, wanted: &Attempt) -> (Program, Vec<Said>) {
    let mut cuts = Vec::new();
    let mut session = program.sessions[session].clone();
    session.weight = 1;
    session.change(&mut |statement| cuts.extend(shorten(statement, wanted)));
    cuts.dedup();
    let iterations = Iterations::new(wanted.users, None, Some(wanted.users));
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

/// Shortens pauses and long loops. Reports shortened loops, because they change what the target
/// receives.
fn shorten(statement: &mut Statement, wanted: &Attempt) -> Option<Said> {
    let pause = wanted.pause;
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
        Statement::Repeat { low, high, .. } if *high > LOOP_ITERATIONS_MAX && !wanted.full => {
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
            rendezvous.users = rendezvous.users.min(wanted.users);
        }
        _ => {}
    }
    None
}

/// Lets users continue one step at a time when Enter is pressed.
fn ask_at_each_step(input: Box<dyn BufRead + Send>, page: &Page<'_>) -> Arc<Gate> {
    let gate = Arc::new(Gate::default());
    page.say(&say!(
        "Press Enter to run the next step, `c` and Enter to run all remaining steps, or Ctrl-C \
         to quit"
    ));
    let asked = Arc::clone(&gate);
    std::thread::spawn(move || {
        for line in input.lines() {
            match line {
                Ok(line) if line.trim().is_empty() => asked.permit(),
                _ => break,
            }
        }
        asked.open();
    });
    gate
}

struct Look<'a> {
    guard: &'a Guard,
    gate: Option<Arc<Gate>>,
    wanted: &'a Attempt,
    page: &'a Page<'a>,
    operator: &'a dyn Operator,
    runtime: tokio::runtime::Runtime,
    tally: Tally,
    /// In at least one program, every connection attempt failed; in at least one, some succeeded.
    is_unreachable: bool,
    is_reached: bool,
}

impl Look<'_> {
    /// Runs the setup, the sessions and the teardown, where they exist. Sessions run only if the
    /// setup succeeds; the teardown always runs.
    fn all(&mut self, mut program: Program, sessions: &[usize]) -> Result<(), Exit> {
        let mut looked = Ok(());
        if let Some(once) = &program.setup {
            let keep = Kept::default();
            looked = self.one(program.of_once(once), Some((OncePart::Setup, keep.clone())));
            program.setup_values = keep.values();
        }
        if looked.is_ok() && self.tally.failed > 0 {
            self.page.say(&say!("the setup failed, so no session runs"));
        } else if looked.is_ok() {
            // If the output is no longer read, skip the remaining sessions.
            let mut wanted = sessions.iter().take_while(|_| !self.page.is_unread.get());
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
        let (program, cuts) = reduced(program, session, self.wanted);
        cuts.iter().for_each(|cut| self.page.say(cut));
        self.one(program, None)
    }

    /// Runs one program and prints it: a session, a setup or a teardown.
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
        let run = start(&program, &options).map_err(|error| not_started(&error, self.operator))?;
        self.guard.warn(&program, &run, self.operator);
        let mut telling = Telling::new(&program, part, self.wanted, self.page);
        let users = if part.is_some() { 1 } else { self.wanted.users };
        let mut progress = Progress::of(users);
        let told = self.runtime.block_on(self.tell(run, &program, &mut telling, &mut progress));
        telling.end();
        let is_unreachable = progress.is_unreachable();
        if told.is_ok()
            && (is_unreachable || progress.is_stuck())
            && let Some(diagnostic) = progress.diagnostic(|said| telling.in_words(said))
        {
            self.operator.diagnostic(&diagnostic);
        }
        self.is_unreachable |= is_unreachable;
        self.is_reached |= progress.is_reached();
        self.tally.steps += telling.tally.steps;
        self.tally.failed += telling.tally.failed;
        told
    }

    /// Prints the events of a run until it ends.
    async fn tell(
        &self,
        mut run: Run,
        program: &Program,
        telling: &mut Telling<'_, '_>,
        progress: &mut Progress,
    ) -> Result<(), Exit> {
        let requests = self.operator.stop_requests();
        let mut requests = requests.unwrap_or_else(|_| StopRequests::none());
        let (mut interrupted, mut is_over) = (false, false);
        loop {
            tokio::select! {
                update = run.next() => match update {
                    None => break,
                    Some(Update::Trace(trace)) => {
                        progress.hear(&trace, program);
                        telling.tell(&trace);
                        if !is_over && (progress.is_over() || self.page.is_unread.get()) {
                            is_over = true;
                            run.control.abort();
                        }
                    }
                    Some(Update::Stopped(stopped)) => match stopped.by {
                        StopBy::Rule => telling.say(say!(
                            "the scenario stopped the run: {}",
                            stopped.reason.english()
                        )),
                        StopBy::Data | StopBy::DataShort => telling.say(say!(
                            "the data has run out: {}",
                            stopped.reason.english()
                        )),
                        StopBy::Bug => self.operator.tell(Line::Bug(stopped.reason)),
                    },
                    Some(_) => {}
                },
                () = requests.next(), if !interrupted => {
                    // Users that wait at the gate start no further step.
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
}
