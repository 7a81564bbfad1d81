//! Runs the controller's part of audits: answers the requests of their threads and records findings
//! as events. In a fleet, each generator compares its own users, and the controller adds up their
//! findings.

mod sums;

use throng_audit::{Ask, Audits as Workers, Found, Heard, Own, books};
use throng_base::{Clock, Said, Time};
use throng_metrics::audit::{Entry, Round, ViewRound};
use throng_metrics::presence::Snapshot;
use throng_metrics::{Cause, Interval, StepInterval};
use throng_program::{Audit, AuditWhat};
use throng_results::{AuditInfo, Event, is_connecting};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::wire::Tally;
use sums::Sums;

/// Maximum number of pending snapshots, in case a generator never responds.
const GATHERINGS_MAX: usize = 64;

/// Maximum number of readings kept for another controller. Each is sent with all orders of the run.
const KEPT_MAX: usize = 64;

/// The audits of a run that has any.
pub(crate) struct Audits {
    pub(super) asked: UnboundedReceiver<Ask>,
    /// Receives the sums, like the findings of a worker.
    tell: UnboundedSender<Ask>,
    workers: Workers,
    audits: Vec<Audit>,
    /// Present if the generators audit presence.
    sums: Option<Sums>,
    /// By post: the users online when its load ended.
    last: Vec<Option<Snapshot>>,
    gathering: Vec<Gathering>,
    next: u64,
    ledgers: Vec<Ledger>,
    /// Readings of the target's counts that cover seconds whose results are incomplete.
    unjudged: Vec<Found>,
    /// Number of readings kept for a controller that takes over.
    kept: usize,
    /// Workers that have not ended.
    working: usize,
    /// By audit: the user numbers reported as wrong in the last round.
    told: Vec<Vec<u64>>,
}

/// The parts of a snapshot, by post.
struct Gathering {
    id: u64,
    tell: std::sync::mpsc::Sender<Snapshot>,
    parts: Vec<Option<Snapshot>>,
}

/// What the run counted for an audit of the target's counts, up to each second.
#[derive(Default)]
struct Ledger {
    /// The target's count before the load.
    before: Option<i64>,
    ok: u64,
    /// Maximum number of attempts that the target can have processed: all that started, except
    /// those that never had a connection.
    may: u64,
    /// By second: the second, its successful attempts so far, and the maximum that the target can
    /// have processed.
    seconds: Vec<(u64, u64, u64)>,
}

pub(crate) fn infos(audits: &[Audit]) -> Vec<AuditInfo> {
    let info = |audit: &Audit| match &audit.what {
        AuditWhat::Presence { views, within } => AuditInfo {
            name: audit.name.clone(),
            within_ns: u64::try_from(within.as_nanos()).unwrap_or(u64::MAX),
            views: views.iter().map(|view| view.name.clone()).collect(),
            step: None,
        },
        AuditWhat::Count { step_name, .. } => AuditInfo {
            name: audit.name.clone(),
            step: Some(step_name.clone()),
            ..AuditInfo::default()
        },
    };
    audits.iter().map(info).collect()
}

/// The target's counts before the load, by audit; `None` if unknown.
pub(crate) type BooksBefore = Vec<Option<Result<i64, Said>>>;

pub(crate) fn books_before(audits: &[Audit]) -> BooksBefore {
    let clock = Clock::start();
    let read = |audit: &Audit| match &audit.what {
        AuditWhat::Count { books, .. } => {
            Some(books::Reader::new(books, &clock).and_then(|mut reader| reader.read()))
        }
        AuditWhat::Presence { .. } => None,
    };
    audits.iter().map(read).collect()
}

impl Audits {
    pub(crate) fn begin(
        audits: &[Audit],
        clock: &Clock,
        (generators, is_fleet): (usize, bool),
        before: &[Option<Result<i64, Said>>],
    ) -> Option<Audits> {
        if audits.is_empty() {
            return None;
        }
        let (tell, asked) = unbounded_channel();
        let before = before.iter().chain(std::iter::repeat(&None));
        // Without a count from before the load, this audit cannot be evaluated.
        let is_here = |(audit, before): (&Audit, &Option<_>)| match audit.what {
            AuditWhat::Presence { .. } => !is_fleet,
            AuditWhat::Count { .. } => before.is_some(),
        };
        let here = (0..).zip(audits.iter().zip(before.clone()));
        let here = here.filter(|(_, it)| is_here(*it)).map(|(number, (audit, _))| (number, audit));
        let here: Vec<_> = here.collect();
        let working = here.len();
        let workers = Workers::begin(here, &Own::all(), clock, {
            let tell = tell.clone();
            // The receiver no longer exists after the run.
            move |ask| drop(tell.send(ask))
        });
        let ledger = |before: &Option<Result<i64, Said>>| Ledger {
            before: before.as_ref().and_then(|read| read.as_ref().ok()).copied(),
            ..Ledger::default()
        };
        Some(Audits {
            asked,
            tell,
            workers,
            audits: audits.to_vec(),
            sums: is_fleet.then(|| Sums::new(generators)),
            last: vec![None; generators],
            gathering: Vec::new(),
            next: 0,
            ledgers: before.take(audits.len()).map(ledger).collect(),
            unjudged: Vec::new(),
            kept: 0,
            working,
            told: vec![Vec::new(); audits.len()],
        })
    }

    /// An event requests an audit round. Returns true if the generators must run it, false if the
    /// controller does.
    pub(crate) fn wants(&mut self, audit: u16, event: u16) -> bool {
        let Some(sums) = &mut self.sums else { return false };
        let is_so = !self.audits[usize::from(audit)].views().is_empty();
        if is_so {
            sums.wants(audit, event);
        }
        is_so
    }

    /// Adds a generator's results, and reports the rounds that are now complete.
    pub(crate) fn tally(&mut self, generator: usize, tally: Tally) {
        self.summed(|sums| sums.take(generator, tally));
    }

    /// A generator has ended: reports the rounds that waited only for it.
    pub(crate) fn generator_over(&mut self, generator: usize) {
        self.summed(|sums| sums.over(generator));
    }

    fn summed(&mut self, found: impl FnOnce(&mut Sums) -> Vec<Found>) {
        let all = self.sums.as_mut().map(found).unwrap_or_default();
        all.into_iter().for_each(|found| drop(self.tell.send(Ask::Found(found))));
    }

    /// An event requests a round of this audit. Returns false if the audit has ended.
    pub(crate) fn round(&self, audit: u16, event: u16) -> bool {
        self.workers.round(audit, event)
    }

    /// The result of a round for the event that requested it.
    pub(crate) fn answer(&self, found: &Found) -> Result<Said, Said> {
        match &found.what {
            Heard::Round(round) if round.views.is_empty() => Err(say!("the audit has ended")),
            Heard::Round(round) => {
                if let Some((view, trouble)) = self.unread_view(found.audit, round) {
                    return Err(say!("{view} cannot be read: {trouble}"));
                }
                let sum = |of: fn(&ViewRound) -> u64| round.views.iter().map(of).sum::<u64>();
                let (online, offline) = (sum(|it| it.false_online), sum(|it| it.false_offline));
                let (node, undecided) = (sum(|it| it.wrong_node), sum(|it| it.undecided));
                Ok(say!(
                    "{online} false online, {offline} false offline, {node} on the wrong node, \
                     {undecided} undecided"
                ))
            }
            Heard::Books { said: Ok(said), .. } => Ok(say!("the service counts {said}")),
            Heard::Books { said: Err(trouble), .. } => {
                Err(say!("the service's count cannot be read: {trouble}"))
            }
        }
    }

    /// Starts a snapshot of the users that are online. Returns its number, under which the
    /// generators must be asked, if any.
    pub(crate) fn gather(&mut self, tell: std::sync::mpsc::Sender<Snapshot>) -> Option<u64> {
        let id = self.next;
        self.next += 1;
        if self.gathering.len() == GATHERINGS_MAX {
            self.gathering.remove(0);
        }
        self.gathering.push(Gathering { id, tell, parts: self.last.clone() });
        let asks = self.last.iter().any(Option::is_none);
        self.deliver();
        asks.then_some(id)
    }

    /// Processes a generator's list of online users, or its list at the end of its load.
    pub(crate) fn presence(&mut self, generator: usize, ask: Option<u64>, known: Snapshot) {
        match ask {
            Some(id) => {
                let it = self.gathering.iter_mut().find(|gathering| gathering.id == id);
                if let Some(part) = it.and_then(|it| it.parts.get_mut(generator)) {
                    *part = Some(known);
                }
            }
            None => self.over(generator, known),
        }
        self.deliver();
    }

    /// A generator is lost, and with it the state of its users.
    pub(crate) fn lost(&mut self, generator: usize) {
        if self.last.get(generator).is_some_and(Option::is_none) {
            self.over(generator, Snapshot::default());
            self.deliver();
        }
        self.generator_over(generator);
    }

    fn over(&mut self, generator: usize, known: Snapshot) {
        for gathering in &mut self.gathering {
            if let Some(part) = gathering.parts.get_mut(generator) {
                part.get_or_insert_with(|| known.clone());
            }
        }
        if let Some(last) = self.last.get_mut(generator) {
            *last = Some(known);
        }
    }

    fn deliver(&mut self) {
        let is_whole = |gathering: &mut Gathering| gathering.parts.iter().all(Option::is_some);
        for whole in self.gathering.extract_if(.., is_whole) {
            // The receiver may have timed out.
            let _ = whole.tell.send(Snapshot::join(whole.parts.into_iter().flatten()));
        }
    }

    /// Counts the results of a second.
    pub(crate) fn interval(&mut self, interval: &Interval) {
        for (ledger, audit) in self.ledgers.iter_mut().zip(&self.audits) {
            if let AuditWhat::Count { step, .. } = audit.what {
                ledger.add(interval, step.0);
            }
        }
    }

    /// Converts a finding to events, and to a message that the operator must see immediately.
    pub(crate) fn found(&mut self, found: Found) -> (Vec<Event>, Option<Said>) {
        let Found { audit, at, due, event, what } = found;
        match what {
            Heard::Round(round) if round.views.is_empty() => (Vec::new(), None),
            Heard::Round(round) => {
                let text = self.sentence(audit, &round);
                let event = Event::Audited { at_ns: at.0, audit, round: Box::new(round) };
                (vec![event], text)
            }
            what @ Heard::Books { .. } => {
                let text = self.unread(audit, &what);
                self.unjudged.push(Found { audit, at, due, event, what });
                (Vec::new(), text)
            }
        }
    }

    /// Returns the readings whose seconds are complete; at the end, all readings.
    pub(crate) fn judged(&mut self, is_over: bool) -> Vec<Event> {
        let ledgers = &self.ledgers;
        let is_counted = |found: &mut Found| {
            let Heard::Books { to, .. } = &found.what else { return true };
            let ledger = &ledgers[usize::from(found.audit)];
            is_over || ledger.seconds.last().is_some_and(|(second, ..)| *second > to.second())
        };
        let counted: Vec<Found> = self.unjudged.extract_if(.., is_counted).collect();
        counted.into_iter().filter_map(|found| self.entry(found)).collect()
    }

    fn entry(&self, found: Found) -> Option<Event> {
        let Heard::Books { from, to, said, is_last } = found.what else { return None };
        let ledger = self.ledgers.get(usize::from(found.audit))?;
        let before = ledger.before.ok_or(say!("the service's count before the load is missing"));
        let (least, most) = ledger.bounds(from, to, is_last);
        let mut entry = Entry { least, most, is_last, ..Entry::default() };
        match said.and_then(|said| Ok((said, before?))) {
            Ok((said, before)) => {
                (entry.said, entry.before) = (said.saturating_sub(before), before);
            }
            Err(trouble) => entry.trouble = Some(trouble),
        }
        let (at_ns, audit) = (found.at.0, found.audit);
        Some(Event::BooksRead { at_ns, audit, entry: Box::new(entry) })
    }

    /// Whether a controller that takes over needs the event: the first wrong readings of a fleet.
    pub(crate) fn is_kept(&mut self, event: &Event) -> bool {
        let Event::BooksRead { entry, .. } = event else { return false };
        let is_kept = self.sums.is_some() && self.kept < KEPT_MAX;
        let is_kept = is_kept && (entry.off() != 0 || entry.trouble.is_some());
        self.kept += usize::from(is_kept);
        is_kept
    }

    /// Reports that the target's counts cannot be read, but only the first time.
    fn unread(&mut self, audit: u16, what: &Heard) -> Option<Said> {
        let Heard::Books { said, .. } = what else { return None };
        let told = &mut self.told[usize::from(audit)];
        let Some(trouble) = said.as_ref().err().cloned() else {
            told.clear();
            return None;
        };
        if !std::mem::replace(told, vec![1]).is_empty() {
            return None;
        }
        let name = &self.audits[usize::from(audit)].name;
        Some(say!("audit {name}: the service's count cannot be read: {trouble}; the run continues"))
    }

    /// A view that could not be read in this round, and the reason.
    fn unread_view(&self, audit: u16, round: &Round) -> Option<(&str, Said)> {
        let views = self.audits[usize::from(audit)].views().iter();
        views.zip(&round.views).find_map(|(view, it)| Some((&*view.name, it.trouble.clone()?)))
    }

    fn sentence(&mut self, audit: u16, round: &Round) -> Option<Said> {
        let name = &self.audits[usize::from(audit)].name;
        let wrong: Vec<u64> = round.views.iter().map(|view| view.wrong_users()).collect();
        let before = std::mem::replace(&mut self.told[usize::from(audit)], wrong.clone());
        if let Some((view, trouble)) = self.unread_view(audit, round) {
            return Some(say!("audit {name}: {view} cannot be read: {trouble}; the run continues"));
        }
        if before == wrong {
            return None;
        }
        let views = self.audits[usize::from(audit)].views().iter();
        let (view, it) = views.zip(&round.views).find(|(_, it)| it.wrong_users() > 0)?;
        let (view, count) = (&view.name, it.wrong_users());
        let (online, offline, node) = (it.false_online, it.false_offline, it.wrong_node);
        Some(say!(
            "audit {name}: {view} is wrong about {count} users: {online} false online, {offline} \
             false offline, {node} on the wrong node"
        ))
    }

    /// The load has ended: starts the final rounds.
    pub(crate) fn end(&self) {
        self.workers.end();
    }

    /// A worker has ended. Returns whether all have.
    pub(crate) fn one_is_over(&mut self) {
        self.working = self.working.saturating_sub(1);
    }

    pub(crate) fn are_over(&self) -> bool {
        self.working == 0
    }
}

impl Ledger {
    fn add(&mut self, interval: &Interval, step: u16) {
        let rows = interval.steps.iter().filter(|row| row.step == step);
        for row in rows {
            self.ok += row.ok;
            self.may = self.may.saturating_add_signed(may(row));
        }
        match self.seconds.last_mut() {
            Some((second, ok, may)) if *second == interval.second => {
                (*ok, *may) = (self.ok, self.may);
            }
            _ => self.seconds.push((interval.second, self.ok, self.may)),
        }
    }

    /// The minimum and maximum that the target may report in a reading between two times.
    fn bounds(&self, from: Time, to: Time, is_last: bool) -> (u64, u64) {
        if is_last {
            return (self.ok, self.may);
        }
        let before = self.seconds.iter().rev().find(|(second, ..)| *second < from.second());
        let after = self.seconds.iter().rev().find(|(second, ..)| *second <= to.second());
        let least = before.map_or(0, |(_, ok, _)| *ok);
        (least, after.map_or(self.may, |(_, _, most)| *most))
    }
}

/// The attempts of a row that the target can have processed. A retried attempt can be processed
/// several times; an attempt that ended without a connection was not.
fn may(row: &StepInterval) -> i64 {
    let of = |causes: &[(Cause, u64)], connecting: bool| -> u64 {
        let own = causes.iter().filter(|(cause, _)| is_connecting(*cause) == connecting);
        own.map(|(_, count)| count).sum()
    };
    let may = row.begun + of(&row.retried, false) + row.resent;
    may as i64 - of(&row.errors, true) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_include_attempts_in_flight() {
        let mut ledger = Ledger::default();
        for second in 0..5 {
            let errors = vec![(Cause::Timeout, 1), (Cause::ConnectRefused, 2)];
            // Five attempts are in flight from the first second on.
            let begun = if second == 0 { 18 } else { 13 };
            let row = StepInterval {
                step: 3,
                begun,
                count: 13,
                ok: 10,
                errors,
                ..StepInterval::default()
            };
            let other = StepInterval { step: 4, begun: 7, ok: 7, ..StepInterval::default() };
            let steps = vec![row, other];
            ledger.add(&Interval { second, steps, ..Interval::default() }, 3);
        }
        let at = |seconds: f64| Time((seconds * 1e9) as u64);
        assert_eq!(ledger.bounds(at(2.5), at(2.6), false), (20, 38));
        assert_eq!(ledger.bounds(at(0.1), at(3.1), false), (0, 49));
        assert_eq!(ledger.bounds(at(9.0), at(9.1), true), (50, 60));
    }
}
