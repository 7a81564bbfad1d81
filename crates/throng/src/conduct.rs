//! A scenario becomes a run: compiled, started, watched, recorded, summed up.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use throng_base::{Diagnostic, Exit, Time, clock::wall_now};
use throng_engine::{Options, Run, StartError, Stopped, StoppedBy, Update, start};
use throng_host::usage::{HostCpu, ProcessUsage};
use throng_metrics::{Interval, Resources, StepInterval};
use throng_program::Program;
use throng_results::terminal::{Live, Progress, progress_line, summary_text};
use throng_results::{
    Collector, Event, PhaseInfo, Recorder, RunInfo, StepInfo, StopBy, Summary, ThresholdInfo,
    create_directory, exit_code, is_connecting, junit, summary_json, timestamp,
};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::arguments::{OutputArguments, RunArguments};
use crate::scenario::{self, Loaded};
use crate::screen::Screen;

/// Where records go when nothing else is said.
const RECORDS: &str = "throng-runs";
/// A target that nobody could connect to for so long is not there.
const UNREACHABLE_AFTER: Time = Time(3_000_000_000);
/// A target that answers nobody and lets nobody connect for so long is gone. Only a load that
/// has no time of its own needs to be told.
const LOST_AFTER: Duration = Duration::from_secs(30);
const REDRAW: Duration = Duration::from_millis(200);
/// What is left of a second at the end of a run gets a line of its own from this length on.
const LINE_TIME_MIN: Duration = Duration::from_millis(250);

/// `throng run FILE`.
pub(crate) fn run_file(arguments: &RunArguments) -> Exit {
    let errors = Screen::errors(arguments.output.no_color);
    let Loaded { program, source, .. } = match scenario::load(&arguments.scenario, errors) {
        Ok(loaded) => loaded,
        Err(exit) => return exit,
    };
    let text = source.text.clone();
    let command = std::env::args().collect();
    Conduct { program: Arc::new(program), text, command, output: &arguments.output }.run()
}

/// Ready when somebody asks the process to stop: Ctrl-C or SIGTERM.
pub(crate) async fn told_to_stop() {
    match Signals::new() {
        Ok(mut signals) => signals.next().await,
        Err(_) => std::future::pending().await,
    }
}

/// Ctrl-C and SIGTERM, from the moment on in which this was made.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Signals> {
        let interrupt = signal(SignalKind::interrupt())?;
        Ok(Signals { interrupt, terminate: signal(SignalKind::terminate())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// A run that is to be.
pub(crate) struct Conduct<'a> {
    pub(crate) program: Arc<Program>,
    /// The scenario as it is run.
    pub(crate) text: String,
    pub(crate) command: Vec<String>,
    pub(crate) output: &'a OutputArguments,
}

impl Conduct<'_> {
    pub(crate) fn run(self) -> Exit {
        let errors = Screen::errors(self.output.no_color);
        // Built before any shard has a descriptor table of its own: shards wake this runtime by a
        // descriptor that their tables must have too.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = match runtime {
            Ok(runtime) => runtime,
            Err(error) => {
                let message = format!("no event loop: {error}");
                let help = "raise the limit that is named: `ulimit -n 1024` for descriptors";
                errors.diagnostic(&Diagnostic::error("host-unfit", message).help(help));
                return Exit::HostUnfit;
            }
        };
        runtime.block_on(async {
            let mut info = self.describe();
            // Heard from before there is anything on the disk; acted on once the run is there.
            let signals = match Signals::new() {
                Ok(signals) => signals,
                Err(error) => {
                    let message = format!("cannot hear signals: {error}");
                    errors.diagnostic(&Diagnostic::error("host-unfit", message));
                    return Exit::HostUnfit;
                }
            };
            let recorder = match self.record(&info) {
                Ok(recorder) => recorder,
                Err(diagnostic) => {
                    errors.diagnostic(&diagnostic);
                    return Exit::Usage;
                }
            };
            let options = Options {
                shards: self.output.shards,
                give_back: Some(crate::give_back_memory),
                ..Options::default()
            };
            let run = match start(&self.program, &options) {
                Ok(run) => run,
                Err(error) => return not_started(&error, recorder, errors),
            };
            info.shards = run.shards as u64;
            Watch::new(&self, run, info, recorder).watch(signals).await
        })
    }

    /// What is known of the run before it begins.
    fn describe(&self) -> RunInfo {
        let program = &self.program;
        let url = |target: &throng_program::Target| {
            format!("{}://{}", target.scheme.word(), target.authority())
        };
        let phase = |phase: &throng_program::Phase| PhaseInfo {
            name: phase.name.clone(),
            measured: phase.measured,
            planned_ns: phase.time.map(|time| time.as_nanos() as u64),
        };
        RunInfo {
            throng_version: env!("CARGO_PKG_VERSION").into(),
            command: self.command.clone(),
            seed: program.seed,
            host: throng_host::facts(env!("CARGO_PKG_VERSION")),
            targets: program.targets.iter().map(url).collect(),
            steps: program
                .steps
                .iter()
                .map(|step| StepInfo { name: step.name.clone(), kind: step.kind.word().into() })
                .collect(),
            phases: program.load.phases.iter().map(phase).collect(),
            thresholds: program.thresholds.iter().map(ThresholdInfo::from).collect(),
            users_planned: program.load.staying_max(),
            ..RunInfo::new(program.name.clone(), wall_now())
        }
    }

    fn record(&self, info: &RunInfo) -> Result<Option<Recorder>, Box<Diagnostic>> {
        if self.output.no_record {
            return Ok(None);
        }
        let directory = match &self.output.out {
            Some(directory) => {
                let mut there = std::fs::read_dir(directory).ok();
                if there.as_mut().is_some_and(|entries| entries.next().is_some()) {
                    let message = format!("{} is not empty", directory.display());
                    let help = "name a new directory with --out";
                    let diagnostic = Diagnostic::error("record-impossible", message);
                    return Err(Box::new(diagnostic.help(help)));
                }
                directory.clone()
            }
            None => {
                create_directory(Path::new(RECORDS), wall_now(), &info.name).map_err(|error| {
                    let message = format!("cannot make a directory under ./{RECORDS}: {error}");
                    let help = "go where you may write, name another place with --out, or record \
                            nothing with --no-record";
                    Box::new(Diagnostic::error("record-impossible", message).help(help))
                })?
            }
        };
        match Recorder::create(&directory, info, &self.text) {
            Ok(recorder) => Ok(Some(recorder)),
            Err(error) => Err(Box::new(
                error
                    .diagnostic()
                    .help("name a new directory with --out, or record nothing with --no-record"),
            )),
        }
    }
}

/// Nothing was sent: says why, and leaves no empty record behind.
pub(crate) fn not_started(error: &StartError, recorder: Option<Recorder>, errors: Screen) -> Exit {
    if let Some(recorder) = recorder {
        let _ = std::fs::remove_dir_all(recorder.directory());
    }
    let (exit, diagnostic) = match error {
        StartError::Resolve { host, reason } => (
            Exit::TargetUnreachable,
            Diagnostic::error("resolve-failed", format!("`{host}` has no address: {reason}"))
                .help("check the name, the network, and -4 or -6"),
        ),
        StartError::Tls(reason) => (
            Exit::Usage,
            Diagnostic::error("tls-impossible", reason.clone())
                .help("check --cacert, --cert and --key, or `tls` in the scenario"),
        ),
        StartError::Data(error) => (Exit::Usage, scenario::data_failed(error)),
        StartError::Host(reason) => (
            Exit::HostUnfit,
            Diagnostic::error("host-unfit", reason.clone())
                .help("raise the limit that is named, or use fewer --shards"),
        ),
    };
    errors.diagnostic(&diagnostic);
    errors.say("nothing was sent");
    exit
}

/// Since when nothing has been answered, nobody is connected, and those who try fail.
#[derive(Debug, Default)]
struct Loss {
    since: Option<Time>,
}

impl Loss {
    fn add(&mut self, interval: &Interval) {
        let steps = || interval.steps.iter();
        let mut causes = steps().flat_map(|step| &step.errors).map(|(cause, _)| *cause);
        let is_alive = interval.gauges.connections_open > 0
            || steps().any(|step| step.ok > 0)
            || !causes.all(is_connecting);
        if is_alive {
            self.since = None;
        } else if steps().any(|step| step.failed() > 0) {
            self.since.get_or_insert(Time::from_secs(interval.second));
        }
    }

    fn lasts(&self, now: Time) -> Duration {
        self.since.map_or(Duration::ZERO, |since| now.since(since))
    }
}

/// A run that is under way, and everything that is told about it.
struct Watch<'a> {
    conduct: &'a Conduct<'a>,
    run: Run,
    info: RunInfo,
    recorder: Option<Recorder>,
    collector: Collector,
    live: Live,
    /// The second that has figures but no line yet.
    pending: Option<u64>,
    line_until: Time,
    screen: Screen,
    errors: Screen,
    progress_drawn: bool,
    phase: u16,
    phase_begun: Time,
    usage: ProcessUsage,
    host_cpu: HostCpu,
    attempted: u64,
    opened: u64,
    failed: u64,
    loss: Loss,
    stops: u32,
}

impl<'a> Watch<'a> {
    fn new(
        conduct: &'a Conduct<'a>,
        run: Run,
        info: RunInfo,
        recorder: Option<Recorder>,
    ) -> Watch<'a> {
        let no_color = conduct.output.no_color;
        let errors = Screen::errors(no_color);
        // With JSON the output belongs to a program; people read the other one.
        let screen = if conduct.output.json { errors } else { Screen::output(no_color) };
        Watch {
            collector: Collector::new(&info),
            live: Live::new(screen.style, &info),
            conduct,
            run,
            info,
            recorder,
            pending: None,
            line_until: Time::ZERO,
            screen,
            errors,
            progress_drawn: false,
            phase: 0,
            phase_begun: Time::ZERO,
            usage: ProcessUsage::now(),
            host_cpu: HostCpu::default(),
            attempted: 0,
            opened: 0,
            failed: 0,
            loss: Loss::default(),
            stops: 0,
        }
    }

    async fn watch(mut self, mut signals: Signals) -> Exit {
        let mut redraw = tokio::time::interval(REDRAW);
        loop {
            tokio::select! {
                biased;
                () = signals.next() => self.interrupted(),
                update = self.run.next() => match update {
                    Some(update) => self.update(update),
                    None => break,
                },
                _ = redraw.tick() => self.draw_progress(),
            }
        }
        self.finish()
    }

    fn update(&mut self, update: Update) {
        match update {
            Update::Interval(interval) => self.interval(interval),
            Update::Example(example) => self.event(&Event::Failure {
                at_ns: example.at.as_nanos(),
                step: example.step.0,
                cause: example.cause,
                detail: example.detail,
            }),
            Update::PhaseBegun { phase, at } => {
                (self.phase, self.phase_begun) = (phase, at);
                self.event(&Event::PhaseBegun { at_ns: at.as_nanos(), phase });
            }
            Update::PhaseEnded { phase, at } => {
                self.event(&Event::PhaseEnded { at_ns: at.as_nanos(), phase });
            }
            Update::Stopped(Stopped { at, reason, by }) => {
                let by = match by {
                    StoppedBy::Rule => StopBy::Rule,
                    StoppedBy::Data => StopBy::Data,
                };
                self.event(&Event::Stopped { at_ns: at.as_nanos(), reason, by });
            }
            Update::Log(line) => self.log(line),
            // Only `throng try` asks for them.
            Update::Trace(_) => {}
        }
    }

    /// A line that the scenario wrote.
    fn log(&mut self, line: throng_engine::Line) {
        if !self.conduct.output.quiet {
            self.clear_progress();
            let at = throng_base::units::format_duration(line.at - Time::ZERO);
            let who = line.user.map_or_else(String::new, |user| format!(" user {user}"));
            self.screen.line(&format!("[{at}{who}] {}", line.text));
        }
        let user = line.user.map_or(0, |user| user.0);
        self.event(&Event::Log { at_ns: line.at.as_nanos(), user, text: line.text });
    }

    fn interval(&mut self, mut interval: Interval) {
        interval.resources = Some(self.resources());
        self.attempted += interval.connections.attempted;
        self.opened += interval.connections.opened;
        self.failed += interval.steps.iter().map(StepInterval::failed).sum::<u64>();
        self.loss.add(&interval);
        if let Some(recorder) = &mut self.recorder
            && let Err(error) = recorder.interval(&interval)
        {
            let diagnostic = error.diagnostic();
            self.trouble(&diagnostic);
        }
        self.collector.interval(&interval);
        if self.pending.is_some_and(|pending| pending < interval.second) {
            self.print_line();
        }
        self.pending = Some(interval.second);
        self.live.add(&interval);
        // A phase that ended inside this second leaves a part of it to come.
        if self.run.clock.now() >= Time::from_secs(interval.second + 1) {
            self.print_line();
        }
        self.give_up_if_unreachable();
        self.give_up_if_lost();
    }

    fn print_line(&mut self) {
        let Some(second) = self.pending.take() else { return };
        let until = Time::from_secs(second + 1).min(self.run.clock.now());
        if until - self.line_until < LINE_TIME_MIN && self.line_until > Time::ZERO {
            return;
        }
        self.line_until = until;
        let line = self.live.line(until);
        if !self.conduct.output.quiet {
            self.clear_progress();
            self.screen.line(&line);
        }
    }

    /// Recording failed: said at once; the run goes on.
    fn trouble(&mut self, diagnostic: &Diagnostic) {
        self.clear_progress();
        self.errors.diagnostic(diagnostic);
        self.errors.say("the run goes on; what cannot be recorded is lost");
    }

    fn event(&mut self, event: &Event) {
        self.collector.event(event);
        if let Some(recorder) = &mut self.recorder
            && let Err(error) = recorder.event(event)
        {
            let diagnostic = error.diagnostic();
            self.trouble(&diagnostic);
        }
    }

    fn resources(&mut self) -> Resources {
        let now = ProcessUsage::now();
        let before = std::mem::replace(&mut self.usage, now);
        Resources {
            cpu_user_ns: now.cpu_user_ns.saturating_sub(before.cpu_user_ns),
            cpu_system_ns: now.cpu_system_ns.saturating_sub(before.cpu_system_ns),
            memory_bytes: now.memory_bytes,
            host_cpu: self.host_cpu.since_last().map_or(0.0, |share| share.busy),
        }
    }

    /// A run against a target that is not there is over soon.
    fn give_up_if_unreachable(&mut self) {
        let now = self.run.clock.now();
        let tried = self.attempted > 0 && self.opened == 0;
        if tried && self.failed > 0 && now >= UNREACHABLE_AFTER && self.stops == 0 {
            self.stops = 1;
            let text = format!("no connection in {} s: the run ends here", now.second());
            self.clear_progress();
            self.errors.say(&text);
            self.event(&Event::Notice { at_ns: now.as_nanos(), text });
            self.event(&Event::TargetLost { at_ns: now.as_nanos() });
            self.run.control.stop();
        }
    }

    /// A load that ends only when something is done would never end when the target is gone.
    fn give_up_if_lost(&mut self) {
        let phase = self.info.phases.get(usize::from(self.phase));
        let has_end = phase.is_none_or(|phase| phase.planned_ns.is_some());
        let now = self.run.clock.now();
        if has_end || self.stops > 0 || self.loss.lasts(now) < LOST_AFTER {
            return;
        }
        self.stops = 1;
        let text = format!(
            "nothing was answered and no connection opened for {} s: the run ends here",
            self.loss.lasts(now).as_secs()
        );
        self.clear_progress();
        self.errors.say(&text);
        self.event(&Event::Notice { at_ns: now.as_nanos(), text });
        self.event(&Event::TargetLost { at_ns: now.as_nanos() });
        self.run.control.stop();
    }

    fn interrupted(&mut self) {
        self.stops += 1;
        self.clear_progress();
        if self.info.interrupted {
            self.run.control.abort();
            return;
        }
        self.info.interrupted = true;
        self.errors.say("interrupted: users finish their step and leave; once more to leave now");
        self.event(&Event::Interrupted { at_ns: self.run.clock.now().as_nanos() });
        self.run.control.stop();
    }

    fn draw_progress(&mut self) {
        if !self.screen.is_terminal || self.conduct.output.quiet {
            return;
        }
        let phases = &self.info.phases;
        let Some(phase) = phases.get(usize::from(self.phase)) else { return };
        let now = self.run.clock.now();
        let passed = now - self.phase_begun;
        let planned = phase.planned_ns.map(Duration::from_nanos);
        let rest = phases.iter().skip(usize::from(self.phase) + 1);
        let rest: Option<u64> = rest.map(|phase| phase.planned_ns).sum();
        let left = planned.map(|planned| planned.saturating_sub(passed));
        let progress = Progress {
            phase: phase.name.clone(),
            number: usize::from(self.phase) + 1,
            phases: phases.len(),
            share: planned.map(|planned| passed.as_secs_f64() / planned.as_secs_f64().max(1e-9)),
            left: left.and_then(|left| Some(left + Duration::from_nanos(rest?))),
            elapsed: now - Time::ZERO,
        };
        let line = progress_line(&progress, &self.screen.style);
        self.screen.text(&format!("\r\x1b[K{line}"));
        self.progress_drawn = true;
    }

    fn clear_progress(&mut self) {
        if std::mem::take(&mut self.progress_drawn) {
            self.screen.text("\r\x1b[K");
        }
    }

    /// The run is over: sums up, records the end, prints, and says with which code to exit.
    fn finish(mut self) -> Exit {
        self.print_line();
        self.clear_progress();
        self.event(&Event::RunEnded { at_ns: self.run.clock.now().as_nanos() });
        let whole = self.run.join();
        self.info.ended = Some(timestamp(wall_now()));
        self.info.lines_lost = self.recorder.as_ref().map_or(0, Recorder::lost);
        let mut summary = self.collector.finish(self.info);
        summary.directory = self.recorder.as_ref().map(|it| it.directory().to_path_buf());
        let mut exit = exit_code(&summary);
        if let Some(recorder) = &mut self.recorder
            && let Err(error) = recorder.finish(&summary.info)
        {
            self.errors.diagnostic(&error.diagnostic());
            if matches!(exit, Exit::GoalsMet | Exit::GoalsNotMet) {
                exit = Exit::ResultInvalid;
            }
        }
        match self.conduct.output.json {
            true => {
                Screen::output(true).line(&summary_json(&summary).to_string());
            }
            false => self.screen.text(&summary_text(&summary, &self.screen.style)),
        }
        if let Some(path) = &self.conduct.output.junit
            && let Err(diagnostic) = write_junit(path, &summary)
        {
            self.errors.diagnostic(&diagnostic);
            if matches!(exit, Exit::GoalsMet | Exit::GoalsNotMet) {
                exit = Exit::ResultInvalid;
            }
        }
        if whole { exit } else { Exit::Bug }
    }
}

/// The verdict for a CI server.
pub(crate) fn write_junit(path: &Path, summary: &Summary) -> Result<(), Box<Diagnostic>> {
    std::fs::write(path, junit(summary)).map_err(|error| {
        let message = format!("cannot write `{}`: {error}", path.display());
        let error = Diagnostic::error("file-unwritable", message);
        Box::new(error.help("give --junit a path you may write to"))
    })
}

#[cfg(test)]
mod tests {
    use throng_metrics::Cause;

    use super::*;

    #[test]
    fn a_target_is_lost_while_nobody_gets_a_connection() {
        let second = |second: u64, ok: u64, errors: &[(Cause, u64)], open: u64| {
            let mut interval = Interval { second, ..Interval::default() };
            let count = ok + errors.iter().map(|(_, n)| n).sum::<u64>();
            let errors = errors.to_vec();
            interval.steps = vec![StepInterval { count, ok, errors, ..StepInterval::default() }];
            interval.gauges.connections_open = open;
            interval
        };
        let refused = [(Cause::ConnectRefused, 4)];
        let lasts = |intervals: &[Interval]| {
            let mut loss = Loss::default();
            intervals.iter().for_each(|interval| loss.add(interval));
            loss.lasts(Time::from_secs(40)).as_secs()
        };
        let good = second(1, 100, &[], 4);
        let torn = second(2, 0, &[(Cause::ClosedEarly, 4), (Cause::ConnectRefused, 1)], 0);
        let [gone, silent] = [second(3, 0, &refused, 0), second(4, 0, &[], 0)];
        assert_eq!(lasts(&[good.clone(), torn.clone()]), 0);
        assert_eq!(lasts(&[good.clone(), torn, gone.clone(), silent.clone()]), 37);
        assert_eq!(lasts(&[good, silent]), 0, "nobody tried: users think");
        assert_eq!(lasts(&[gone.clone(), second(5, 0, &refused, 1)]), 0, "one is still there");
        assert_eq!(lasts(&[gone, second(5, 1, &refused, 0)]), 0, "one was answered");
    }
}
