//! A run that is under way, and everything that is told about it.

use std::borrow::Cow;
use std::time::Duration;

use throng_base::{Diagnostic, Exit, Time};
use throng_engine::{Example, Oddity, Options, Run, Shown, Stopped, StoppedBy, Update};
use throng_load::plan;
use throng_metrics::{Cause, Gauges, Interval, Resources, StepInterval};
use throng_results::terminal::{Live, Progress, progress_line};
use throng_results::{
    AllGauges, Collector, EVIDENCE_MAX, Event, Evidence, OnceRun, Piece, Recorder, RunInfo, StopBy,
    is_connecting,
};

use super::ending::Ending;
use super::limits::{Deed, Limits, Reason, is_growing};
use super::once::tear_down;
use super::resources::Watcher;
use super::{Conduct, Signals};
use crate::screen::Screen;

/// A target that nobody could connect to for so long is not there.
const UNREACHABLE_AFTER: Time = Time(3_000_000_000);
/// A target that answers nobody and lets nobody connect for so long is gone. Only a load that
/// has no time of its own needs to be told.
const LOST_AFTER: Duration = Duration::from_secs(30);
const REDRAW: Duration = Duration::from_millis(200);
/// What is left of a second at the end of a run gets a line of its own from this length on.
const LINE_TIME_MIN: Duration = Duration::from_millis(250);
/// Resources are looked at with every interval, and without one after this time: shards that have
/// no processor to run on hand nothing over.
const LOOK_AFTER: Duration = Duration::from_millis(1500);

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
pub(super) struct Watch<'a> {
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
    /// By load: its running phase by its number, and when that began.
    running: Vec<Option<(u16, Time)>>,
    watcher: Watcher,
    limits: Limits,
    looked: Time,
    /// What was seen since the last interval.
    resources: Option<Resources>,
    /// Of the last interval.
    gauges: Gauges,
    all_gauges: AllGauges,
    attempted: u64,
    opened: u64,
    failed: u64,
    loss: Loss,
    stops: u32,
    /// Kinds of failures whose evidence is recorded.
    evidenced: Vec<(u16, Cause, u16)>,
}

impl<'a> Watch<'a> {
    pub(super) fn new(
        conduct: &'a Conduct<'a>,
        run: Run,
        info: RunInfo,
        recorder: Option<Recorder>,
    ) -> Watch<'a> {
        let no_color = conduct.output.no_color;
        let errors = Screen::errors(no_color);
        // With JSON the output belongs to a program; people read the other one.
        let screen = if conduct.output.json { errors } else { Screen::output(no_color) };
        let screen = screen.with_details(conduct.output.details);
        Watch {
            watcher: Watcher::new(&conduct.program, &run),
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
            running: vec![None; conduct.program.loads.len()],
            limits: Limits::new(conduct.limits),
            looked: Time::ZERO,
            resources: None,
            gauges: Gauges::default(),
            all_gauges: AllGauges::default(),
            attempted: 0,
            opened: 0,
            failed: 0,
            loss: Loss::default(),
            stops: 0,
            evidenced: Vec::new(),
        }
    }

    /// `setup` is what was done before, where there was something to do.
    pub(super) async fn watch(
        mut self,
        setup: Option<OnceRun>,
        options: &Options,
        mut signals: Signals,
    ) -> Exit {
        if let Some(once) = setup {
            self.event(&Event::Once { at_ns: 0, once: Box::new(once) });
        }
        // A host that has too little already lets nobody come.
        self.look();
        let mut redraw = tokio::time::interval(REDRAW);
        loop {
            tokio::select! {
                biased;
                () = signals.next() => self.interrupted(),
                update = self.run.next() => match update {
                    Some(update) => self.update(update),
                    None => break,
                },
                _ = redraw.tick() => self.tick(),
            }
        }
        self.print_line();
        self.clear_progress();
        let at_ns = self.run.clock.now().as_nanos();
        self.event(&Event::RunEnded { at_ns });
        if let Some(once) = tear_down(self.conduct, options, &mut signals).await {
            self.event(&Event::Once { at_ns, once: Box::new(once) });
        }
        let whole = self.run.join();
        let Watch { conduct, info, collector, recorder, .. } = self;
        Ending { conduct, info, collector, recorder }.conclude(whole)
    }

    fn update(&mut self, update: Update) {
        match update {
            Update::Interval(interval) => self.interval(interval),
            Update::Example(example) => self.failure(example),
            Update::PhaseBegun { phase, at } => {
                let load = self.load_of(phase);
                self.running[load] = Some((phase, at));
                self.event(&Event::PhaseBegun { at_ns: at.as_nanos(), phase });
            }
            Update::PhaseEnded { phase, at } => {
                self.phase_ended(phase);
                self.event(&Event::PhaseEnded { at_ns: at.as_nanos(), phase });
            }
            Update::Stopped(Stopped { at, reason, by }) => {
                let by = match by {
                    StoppedBy::Rule => StopBy::Rule,
                    StoppedBy::Data => StopBy::Data,
                };
                self.event(&Event::Stopped { at_ns: at.as_nanos(), reason, by });
            }
            Update::Oddity(Oddity { at, step, counter, detail }) => {
                self.event(&Event::Delivery {
                    at_ns: at.as_nanos(),
                    step: step.0,
                    counter,
                    detail,
                });
            }
            Update::Log(line) => self.log(line),
            // Only `throng try` asks for them.
            Update::Trace(_) => {}
        }
    }

    /// An example of a failure. Shards do not know of each other: the first of each kind in the
    /// run keeps its evidence.
    fn failure(&mut self, example: Example) {
        let Example { at, step, cause, detail, evidence } = example;
        let evidence = evidence.filter(|evidence| {
            let kind = (step.0, cause, evidence.code);
            let is_new = self.evidenced.len() < EVIDENCE_MAX && !self.evidenced.contains(&kind);
            if is_new {
                self.evidenced.push(kind);
            }
            is_new
        });
        // A password of the user's row is one wherever it was sent.
        let mut secrets = self.conduct.program.secrets.clone();
        let row = evidence.iter().flat_map(|evidence| &evidence.row);
        let column_of = |name: &str| name.rsplit('.').next().unwrap_or_default().to_string();
        row.for_each(|(name, value)| {
            if secrets.is_name(&column_of(name)) {
                secrets.add(value.trim_matches('"'));
            }
        });
        let mut detail = detail;
        detail.change_texts(&|text| secrets.mask(text).into_owned());
        let piece = |shown: &Shown| Piece::of(&shown.bytes, shown.length, &secrets);
        let evidence = evidence.map(|evidence| {
            let masked = |(name, value): &(String, String)| {
                (name.clone(), secrets.mask_value(&column_of(name), value).into_owned())
            };
            Box::new(Evidence {
                user: evidence.user.0,
                iteration: evidence.iteration,
                code: evidence.code,
                row: evidence.row.iter().map(masked).collect(),
                sent: evidence.exchange.sent.as_ref().map(piece),
                received: evidence.exchange.received.as_ref().map(piece),
            })
        });
        let (at_ns, step) = (at.as_nanos(), step.0);
        self.event(&Event::Failure { at_ns, step, cause, detail, evidence });
    }

    /// A line that the scenario wrote.
    fn log(&mut self, mut line: throng_engine::Line) {
        if let Cow::Owned(masked) = self.conduct.program.secrets.mask(&line.text) {
            line.text = masked;
        }
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
        let load = self.load_of(interval.phase);
        self.gauges = self.all_gauges.add(load, &interval);
        self.look();
        interval.resources = self.resources.take();
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

    /// The last phase of one of several loads is over, and with it the load.
    fn phase_ended(&mut self, phase: u16) {
        let load = self.load_of(phase);
        let next = self.info.phases.get(usize::from(phase) + 1);
        let is_last = next.is_none_or(|next| usize::from(next.load) != load);
        if is_last && self.running.len() > 1 {
            self.running[load] = None;
        }
    }

    /// The load of a phase.
    fn load_of(&self, phase: u16) -> usize {
        let load = self.info.phases.get(usize::from(phase)).map_or(0, |phase| phase.load);
        usize::from(load).min(self.running.len() - 1)
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
        self.errors.say(say!("the run goes on; what cannot be recorded is lost"));
    }

    fn event(&mut self, event: &Event) {
        let event = &event.masked(&self.conduct.program.secrets);
        self.collector.event(event);
        if let Some(recorder) = &mut self.recorder
            && let Err(error) = recorder.event(event)
        {
            let diagnostic = error.diagnostic();
            self.trouble(&diagnostic);
        }
    }

    fn tick(&mut self) {
        if self.run.clock.now() - self.looked >= LOOK_AFTER {
            self.look();
        }
        self.draw_progress();
    }

    /// Looks at this process and its host, and keeps to the limits.
    fn look(&mut self) {
        let now = self.run.clock.now();
        self.looked = now;
        let (mut resources, mut seen) = self.watcher.look(&self.gauges, now);
        resources.held = self.limits.is_held();
        match &mut self.resources {
            Some(before) => before.merge(&resources),
            None => self.resources = Some(resources),
        }
        let program = &self.conduct.program;
        let firsts = program.first_phases();
        let loads = program.loads.iter().zip(&firsts).enumerate();
        let mut growing = loads.map(|(number, (load, first))| {
            let phase = self.running[number].map_or(0, |(phase, _)| phase - first);
            is_growing(load, phase, self.all_gauges.latest_of(number).users_present)
        });
        seen.is_growing = self.stops == 0 && growing.any(|growing| growing);
        if let Some(deed) = self.limits.see(&seen, now) {
            self.do_deed(deed, now);
        }
    }

    /// A limit was reached or left: the run does as it has to, and a person hears of it at once.
    fn do_deed(&mut self, deed: Deed, now: Time) {
        let at_ns = now.as_nanos();
        let word = |reason: &Reason| reason.limit.word().to_string();
        let (text, event) = match deed {
            Deed::Hold(reason) => {
                self.run.control.hold(now);
                let text = say!("nobody comes for now: {}", reason.detail);
                (text, Event::Held { at_ns, limit: word(&reason), detail: reason.detail })
            }
            Deed::Release => {
                self.run.control.release(now);
                (say!("users come again"), Event::Released { at_ns })
            }
            Deed::GiveUp(reason) => {
                self.run.control.give_up_growth();
                let text = say!(
                    "nobody comes any more in this run, which goes on with who is there: {}",
                    reason.detail
                );
                (text, Event::GrowthGivenUp { at_ns, limit: word(&reason), detail: reason.detail })
            }
            Deed::Tell(reason) => {
                let text = say!(
                    "at a limit, with nobody to come who could be held back: {}",
                    reason.detail
                );
                (text.clone(), Event::Notice { at_ns, text: text.english() })
            }
        };
        self.clear_progress();
        self.errors.say(text);
        self.event(&event);
    }

    /// A run against a target that is not there is over soon.
    fn give_up_if_unreachable(&mut self) {
        let now = self.run.clock.now();
        let tried = self.attempted > 0 && self.opened == 0;
        if tried && self.failed > 0 && now >= UNREACHABLE_AFTER && self.stops == 0 {
            self.stops = 1;
            let text = say!("no connection in {} s: the run ends here", now.second());
            self.clear_progress();
            self.event(&Event::Notice { at_ns: now.as_nanos(), text: text.english() });
            self.errors.say(text);
            self.event(&Event::TargetLost { at_ns: now.as_nanos() });
            self.run.control.stop();
        }
    }

    /// A load that ends only when something is done would never end when the target is gone.
    fn give_up_if_lost(&mut self) {
        let of = |phase: u16| self.info.phases.get(usize::from(phase));
        let running = self.running.iter().flatten().filter_map(|(phase, _)| of(*phase));
        let has_end = running.into_iter().all(|phase| phase.planned_ns.is_some());
        let now = self.run.clock.now();
        if has_end || self.stops > 0 || self.loss.lasts(now) < LOST_AFTER {
            return;
        }
        self.stops = 1;
        let text = say!(
            "nothing was answered and no connection opened for {} s: the run ends here",
            self.loss.lasts(now).as_secs()
        );
        self.clear_progress();
        self.event(&Event::Notice { at_ns: now.as_nanos(), text: text.english() });
        self.errors.say(text);
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
        self.errors
            .say(say!("interrupted: users finish their step and leave; once more to leave now"));
        self.event(&Event::Interrupted { at_ns: self.run.clock.now().as_nanos() });
        self.run.control.stop();
    }

    fn draw_progress(&mut self) {
        if !self.screen.is_terminal || self.conduct.output.quiet {
            return;
        }
        let progress = match self.running.as_slice() {
            [running] => self.progress_of_phase(running.unwrap_or((0, Time::ZERO))),
            _ => Some(self.progress_of_loads()),
        };
        let Some(progress) = progress else { return };
        let line = progress_line(&progress, &self.screen.style);
        self.screen.text(&format!("{}{line}", self.screen.line_away()));
        self.progress_drawn = true;
    }

    /// Of the only load.
    fn progress_of_phase(&self, (number, begun): (u16, Time)) -> Option<Progress> {
        let phases = &self.info.phases;
        let phase = phases.get(usize::from(number))?;
        let now = self.run.clock.now();
        let passed = now - begun;
        let planned = phase.planned_ns.map(Duration::from_nanos);
        let rest = phases.iter().skip(usize::from(number) + 1);
        let rest: Option<u64> = rest.map(|phase| phase.planned_ns).sum();
        let left = planned.map(|planned| planned.saturating_sub(passed));
        Some(Progress {
            phase: phase.name.clone(),
            number: usize::from(number) + 1,
            phases: phases.len(),
            share: planned.map(|planned| passed.as_secs_f64() / planned.as_secs_f64().max(1e-9)),
            left: left.and_then(|left| Some(left + Duration::from_nanos(rest?))),
            elapsed: now - Time::ZERO,
        })
    }

    /// Of all loads together: which of them go on, and how much of the whole run is over.
    fn progress_of_loads(&self) -> Progress {
        let loads = self.info.loads.iter().zip(&self.running);
        let running = loads.filter(|(_, running)| running.is_some());
        let names: Vec<&str> = running.map(|(name, _)| name.as_str()).collect();
        let ends = plan(&self.conduct.program.loads);
        let ends = ends.iter().map(|one| Some(one.begin.saturating_add(one.length?)));
        let end = ends.collect::<Option<Vec<_>>>().and_then(|ends| ends.into_iter().max());
        let elapsed = self.run.clock.now() - Time::ZERO;
        Progress {
            phase: names.join(", "),
            number: 1,
            phases: 1,
            share: end.map(|end| elapsed.as_secs_f64() / end.as_secs_f64().max(1e-9)),
            left: end.map(|end| end.saturating_sub(elapsed)),
            elapsed,
        }
    }

    fn clear_progress(&mut self) {
        if std::mem::take(&mut self.progress_drawn) {
            self.screen.text(&self.screen.line_away());
        }
    }
}

#[cfg(test)]
mod tests {
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
