//! The side of a run that a person sees: it takes what posts tell, records and sums it up, draws
//! it, hears signals, and gives the orders. There is one in a run.

mod steer;

use std::time::Duration;

use throng_base::units::format_duration;
use throng_base::{Clock, Diagnostic, Exit, Said, Time};
use throng_engine::Options;
use throng_export::{Exports, Opened, Told};
use throng_load::plan;
use throng_metrics::{AbortRule, Interval, StepInterval};
use throng_results::terminal::figure_text;
use throng_results::terminal::{Live, Progress, progress_line};
use throng_results::{
    AbortRules, AllGauges, Collector, Event, Line, Merge, OnceRun, Recorder, Ruling, RunInfo,
    StopBy, is_connecting,
};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

use super::ending::Ending;
use super::keys::Keys;
use super::once::tear_down;
use super::running::Running;
use super::socket::{Asked, Socket};
use super::wire::{Message, Order};
use super::{Conduct, Signals};
use crate::screen::Screen;
use steer::Steer;

/// A target that nobody could connect to for so long is not there.
const UNREACHABLE_AFTER: Time = Time(3_000_000_000);
/// A target that answers nobody and lets nobody connect for so long is gone. Only a load that
/// has no time of its own needs to be told.
const LOST_AFTER: Duration = Duration::from_secs(30);
const REDRAW: Duration = Duration::from_millis(200);
/// What is left of a second at the end of a run gets a line of its own from this length on.
const LINE_TIME_MIN: Duration = Duration::from_millis(250);
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

/// What ties a desk to its posts.
pub(super) struct Posts {
    /// Zero is the start of the run.
    pub(super) clock: Clock,
    /// By machine.
    pub(super) orders: Vec<UnboundedSender<Order>>,
    pub(super) lines: UnboundedReceiver<(u16, Message)>,
    /// How many users more than planned can be there at once.
    pub(super) users_spare: u64,
}

/// What is asked next over the socket; never where there is none.
async fn asked(socket: &mut Option<Socket>) -> Option<Asked> {
    match socket {
        Some(socket) => socket.asked.recv().await,
        None => std::future::pending().await,
    }
}

/// See the module's description.
pub(super) struct Desk<'a> {
    conduct: &'a Conduct<'a>,
    posts: Posts,
    info: RunInfo,
    recorder: Option<Recorder>,
    exports: Exports,
    merge: Merge,
    collector: Collector,
    live: Live,
    /// The second that has figures but no line yet.
    pending: Option<u64>,
    line_until: Time,
    screen: Screen,
    errors: Screen,
    progress_drawn: bool,
    running: Running,
    steer: Steer,
    attempted: u64,
    opened: u64,
    failed: u64,
    loss: Loss,
    /// Of all machines together.
    gauges: AllGauges,
    rules: AbortRules,
    stops: u32,
    /// Posts whose load is over, when the last of them was, and whether all ended well.
    over: usize,
    ended_ns: u64,
    whole: bool,
}

impl<'a> Desk<'a> {
    pub(super) fn new(
        conduct: &'a Conduct<'a>,
        posts: Posts,
        info: RunInfo,
        (recorder, exports): (Option<Recorder>, Opened),
    ) -> Desk<'a> {
        let no_color = conduct.output.no_color;
        let errors = Screen::errors(no_color);
        // With JSON the output belongs to a program; people read the other one.
        let screen = if conduct.output.json { errors } else { Screen::output(no_color) };
        let screen = screen.with_details(conduct.output.details);
        let rules = AbortRules::new(&conduct.program.abort_when, &info);
        Desk {
            merge: Merge::new(posts.orders.len()),
            collector: Collector::new(&info),
            live: Live::new(screen.style, &info),
            running: Running::new(&conduct.program),
            steer: Steer::new(&conduct.program, posts.users_spare),
            conduct,
            posts,
            exports: exports.begin(&info),
            info,
            recorder,
            pending: None,
            line_until: Time::ZERO,
            screen,
            errors,
            progress_drawn: false,
            attempted: 0,
            opened: 0,
            failed: 0,
            loss: Loss::default(),
            gauges: AllGauges::default(),
            rules,
            stops: 0,
            over: 0,
            ended_ns: 0,
            whole: true,
        }
    }

    /// `setup` is what was done before, where there was something to do.
    pub(super) async fn work(
        mut self,
        setup: Option<OnceRun>,
        options: &Options,
        mut signals: Signals,
    ) -> Exit {
        if let Some(once) = setup {
            self.event(&Event::Once { at_ns: 0, once: Box::new(once) });
        }
        let mut redraw = tokio::time::interval(REDRAW);
        let directory = self.recorder.as_ref().map(|recorder| recorder.directory());
        let mut socket = directory.and_then(Socket::open);
        let mut keys = Keys::read(self.screen.is_terminal && !self.conduct.output.quiet);
        while self.over < self.posts.orders.len() {
            tokio::select! {
                biased;
                () = signals.next() => self.interrupted(),
                line = self.posts.lines.recv() => match line {
                    Some((machine, message)) => self.messages(machine, message),
                    None => break,
                },
                Some((request, answer)) = asked(&mut socket) => {
                    // Who has gone has no answer.
                    let _ = answer.send(self.command(&request.command, request.load.as_deref()));
                }
                Some(key) = keys.next() => self.key(key),
                _ = redraw.tick() => {
                    keys.keep();
                    self.draw_progress();
                }
            }
        }
        drop((socket, keys));
        self.print_line();
        self.clear_progress();
        let at_ns = self.ended_ns;
        self.event(&Event::RunEnded { at_ns });
        if let Some(once) = tear_down(self.conduct, options, &mut signals).await {
            self.event(&Event::Once { at_ns, once: Box::new(once) });
        }
        self.finish_exports();
        let Desk { conduct, info, collector, recorder, whole, .. } = self;
        Ending { conduct, info, collector, recorder }.conclude(whole)
    }

    /// Takes what has come so far. A second is printed when all that was told of it has come: with
    /// several loads that is more than one line.
    fn messages(&mut self, machine: u16, message: Message) {
        self.message(machine, message);
        while let Ok((machine, message)) = self.posts.lines.try_recv() {
            self.message(machine, message);
        }
        // A phase that ended inside this second leaves a part of it to come.
        let is_over = |second: u64| self.posts.clock.now() >= Time::from_secs(second + 1);
        if self.pending.is_some_and(is_over) {
            self.print_line();
        }
    }

    fn message(&mut self, machine: u16, message: Message) {
        let number = usize::from(machine);
        match message {
            Message::Interval(mut interval) => {
                interval.machine = machine;
                self.merge.push(number, Line::Interval(interval));
            }
            Message::Event(event) => {
                self.tell(machine, &event);
                self.merge.push(number, Line::Event(event));
            }
            Message::Notice { at_ns, text } => {
                self.say(text.clone());
                self.event(&Event::Notice { at_ns, text: text.english() });
            }
            Message::Over { at_ns, whole } => {
                self.over += 1;
                self.ended_ns = self.ended_ns.max(at_ns);
                self.whole &= whole;
                self.merge.over(number);
            }
            Message::Lost { detail } => {
                let at_ns = self.posts.clock.now().as_nanos();
                let name = self.info.machines.get(number).map_or("", |it| it.name.as_str());
                let text =
                    say!("{name} is lost, and its users with it: {detail}", detail = &detail);
                self.say(text);
                self.event(&Event::MachineLost { at_ns, machine, detail });
                self.over += 1;
                self.ended_ns = self.ended_ns.max(at_ns);
                self.merge.over(number);
            }
            Message::Ready { .. } => {}
        }
        while let Some((machine, line)) = self.merge.pop() {
            match line {
                Line::Interval(interval) => self.interval(&interval),
                Line::Event(event) => self.event_of(machine as u16, &event),
            }
        }
    }

    /// Follows what happens, and says at once what a person has to know.
    fn tell(&mut self, machine: u16, event: &Event) {
        match event {
            Event::PhaseBegun { at_ns, phase } => self.running.begun(*phase, Time(*at_ns)),
            Event::PhaseEnded { phase, .. } => self.running.ended(*phase),
            Event::Log { at_ns, user, text } => self.log(*at_ns, *user, text),
            Event::Held { detail, .. } => self.say(say!("nobody comes for now: {detail}")),
            Event::Released { .. } => self.say(say!("users come again")),
            Event::GrowthGivenUp { detail, .. } => self.say(say!(
                "nobody comes any more in this run, which goes on with who is there: {detail}"
            )),
            // What ends the run on one machine ends it on all.
            Event::Stopped { .. } => {
                for (number, orders) in (0..).zip(&self.posts.orders) {
                    if number != machine {
                        let _ = orders.send(Order::Stop);
                    }
                }
            }
            _ => {}
        }
    }

    fn say(&mut self, text: Said) {
        self.clear_progress();
        self.errors.say(text);
    }

    /// A line that the scenario wrote.
    fn log(&mut self, at_ns: u64, user: u64, text: &str) {
        if !self.conduct.output.quiet {
            self.clear_progress();
            let at = format_duration(Duration::from_nanos(at_ns));
            let who = if user > 0 { format!(" user {user}") } else { String::new() };
            self.screen.line(&format!("[{at}{who}] {text}"));
        }
    }

    fn interval(&mut self, interval: &Interval) {
        self.attempted += interval.connections.attempted;
        self.opened += interval.connections.opened;
        self.failed += interval.steps.iter().map(StepInterval::failed).sum::<u64>();
        self.loss.add(interval);
        if let Some(recorder) = &mut self.recorder
            && let Err(error) = recorder.interval(interval)
        {
            let diagnostic = error.diagnostic();
            self.trouble(&diagnostic);
        }
        self.exports.line(interval);
        self.collector.interval(interval);
        if self.pending.is_some_and(|pending| pending < interval.second) {
            self.print_line();
        }
        self.pending = Some(interval.second);
        self.live.add(interval);
        self.judge(interval);
        self.give_up_if_unreachable();
        self.give_up_if_lost();
    }

    /// Waits for what receivers have not taken yet, and says what they never took. That changes
    /// nothing of the result: the record has it all.
    fn finish_exports(&mut self) {
        for (wanted, told) in std::mem::take(&mut self.exports).finish() {
            let Told { seconds, lost, trouble } = told;
            let Some(trouble) = trouble.filter(|_| lost > 0) else { continue };
            let all = seconds + lost;
            let export = wanted.to_string();
            let text = say!("`--export {export}` missed {lost} of {all} seconds: {trouble}");
            self.event(&Event::Notice { at_ns: self.ended_ns, text: text.english() });
            self.say(text);
        }
    }

    fn print_line(&mut self) {
        let Some(second) = self.pending.take() else { return };
        let until = Time::from_secs(second + 1).min(self.posts.clock.now());
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
        self.event_of(0, event);
    }

    fn event_of(&mut self, machine: u16, event: &Event) {
        let event = &event.masked(&self.conduct.program.secrets);
        self.collector.event(event);
        if let Some(recorder) = &mut self.recorder
            && let Err(error) = recorder.event_of(machine, event)
        {
            let diagnostic = error.diagnostic();
            self.trouble(&diagnostic);
        }
    }

    /// Ends the run where one of its rules wants it.
    fn judge(&mut self, interval: &Interval) {
        let load = self.running.load_of(interval.phase);
        let gauges = self.gauges.add(load, interval);
        for ruling in self.rules.add(interval, &gauges) {
            if self.stops > 0 {
                return;
            }
            let at_ns = self.posts.clock.now().as_nanos();
            let shown = |rule: &AbortRule, figure| figure_text(rule.condition.unit(), figure);
            let notice = match &ruling {
                Ruling::Warned { rule, figure, left } => say!(
                    "`{}` holds: {}; the run ends in {} unless that changes",
                    rule.condition.text,
                    shown(rule, *figure),
                    format_duration(*left)
                ),
                Ruling::Cleared { rule } => {
                    say!("`{}` does not hold any more: the run goes on", rule.condition.text)
                }
                Ruling::Aborted { rule, figure } => {
                    self.stops = 1;
                    let reason = say!(
                        "`abort_when: {}` held: {}",
                        rule.condition.text,
                        shown(rule, *figure)
                    );
                    self.say(say!("the run ends here: {reason}", reason = &reason));
                    self.event(&Event::Stopped { at_ns, reason, by: StopBy::Rule });
                    return self.order(Order::Stop);
                }
            };
            self.say(notice.clone());
            self.event(&Event::Notice { at_ns, text: notice.english() });
        }
    }

    /// A run against a target that is not there is over soon.
    fn give_up_if_unreachable(&mut self) {
        let now = self.posts.clock.now();
        let tried = self.attempted > 0 && self.opened == 0;
        if tried && self.failed > 0 && now >= UNREACHABLE_AFTER && self.stops == 0 {
            self.stops = 1;
            let text = say!("no connection in {} s: the run ends here", now.second());
            self.clear_progress();
            self.event(&Event::Notice { at_ns: now.as_nanos(), text: text.english() });
            self.errors.say(text);
            self.event(&Event::TargetLost { at_ns: now.as_nanos() });
            self.order(Order::Stop);
        }
    }

    /// A load that ends only when something is done would never end when the target is gone.
    fn give_up_if_lost(&mut self) {
        let of = |phase: u16| self.info.phases.get(usize::from(phase));
        let running = self.running.loads().iter().flatten().filter_map(|(phase, _)| of(*phase));
        let has_end = running.into_iter().all(|phase| phase.planned_ns.is_some());
        let now = self.posts.clock.now();
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
        self.order(Order::Stop);
    }

    fn order(&self, order: Order) {
        for orders in &self.posts.orders {
            // One whose load is over obeys nothing any more.
            let _ = orders.send(order);
        }
    }

    fn interrupted(&mut self) {
        self.stops += 1;
        self.clear_progress();
        if self.info.interrupted {
            self.order(Order::Abort);
            return;
        }
        self.info.interrupted = true;
        self.errors
            .say(say!("interrupted: users finish their step and leave; once more to leave now"));
        self.event(&Event::Interrupted { at_ns: self.posts.clock.now().as_nanos() });
        self.order(Order::Stop);
    }

    fn draw_progress(&mut self) {
        if !self.screen.is_terminal || self.conduct.output.quiet {
            return;
        }
        let progress = match self.running.loads() {
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
        let now = self.posts.clock.now();
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
        let loads = self.info.loads.iter().zip(self.running.loads());
        let running = loads.filter(|(_, running)| running.is_some());
        let names: Vec<&str> = running.map(|(name, _)| name.as_str()).collect();
        let ends = plan(&self.conduct.program.loads);
        let ends = ends.iter().map(|one| Some(one.begin.saturating_add(one.length?)));
        let end = ends.collect::<Option<Vec<_>>>().and_then(|ends| ends.into_iter().max());
        let elapsed = self.posts.clock.now() - Time::ZERO;
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
