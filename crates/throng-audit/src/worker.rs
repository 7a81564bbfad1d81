//! A thread for each audit: it reads on schedule or when an event of the scenario requests it,
//! judges, and reports. The owner of the run answers its requests; the run never waits for it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use throng_base::{Clock, Said, Time};
use throng_metrics::audit::{self, ViewRound};
use throng_metrics::presence::Snapshot;
use throng_program::{Audit, AuditWhat, Books, View};

use crate::books;
use crate::judge::{CONFIRMED_AFTER, Judge, Reading, pairs};
use crate::views::{Own, Reader};

/// The shortest and longest pause between two readings of pending users.
const PAUSE_MIN: Duration = Duration::from_millis(1050);
const PAUSE_MAX: Duration = Duration::from_secs(8);
/// A round without a snapshot of the run within this time is not judged.
const SNAPSHOT_MAX: Duration = Duration::from_secs(10);
/// The additional time for the last round, besides `agree_within`.
const LAST_MORE: Duration = Duration::from_secs(12);

/// A request of a worker to the owner of the run.
#[derive(Debug)]
pub enum Ask {
    /// Which users are online now.
    Presence(Sender<Snapshot>),
    /// Reports a finding; needs no reply.
    Found(Found),
    /// The audit is finished: nothing follows.
    Over,
}

/// The finding of an audit, by its number.
#[derive(Debug)]
pub struct Found {
    pub audit: u16,
    /// When it started.
    pub at: Time,
    /// Its scheduled time: 0 for an event, and never at the end of the load.
    pub due: Time,
    /// The event that requested it, by its number.
    pub event: Option<u16>,
    pub what: Heard,
}

#[derive(Debug)]
pub enum Heard {
    Round(audit::Round),
    /// A count was read between `from` and `to`.
    Books {
        from: Time,
        to: Time,
        said: Result<i64, Said>,
        is_last: bool,
    },
}

/// The audits of a run, by their numbers. They end when it is dropped.
pub struct Audits {
    heard: BTreeMap<u16, Sender<Tell>>,
}

impl Audits {
    /// `ask` receives the workers' requests, on their threads.
    pub fn begin<'a>(
        audits: impl IntoIterator<Item = (u16, &'a Audit)>,
        own: &Own,
        clock: &Clock,
        ask: impl Fn(Ask) + Send + Sync + 'static,
    ) -> Audits {
        let ask: Arc<dyn Fn(Ask) + Send + Sync> = Arc::new(ask);
        let begin = |(number, audit): (u16, &Audit)| {
            let (tell, heard) = channel();
            let (audit, clock, ask) = (audit.clone(), clock.clone(), Arc::clone(&ask));
            let own = own.clone();
            let worker = Worker { number, audit, own, clock, ask: Arc::clone(&ask), heard };
            let thread = std::thread::Builder::new().name("audit".into());
            if thread.spawn(move || worker.work()).is_err() {
                ask(Ask::Over);
            }
            (number, tell)
        };
        Audits { heard: audits.into_iter().map(begin).collect() }
    }

    /// Reports the end of the load: final rounds start now. Each audit sends [`Ask::Over`] when it
    /// is done.
    pub fn end(&self) {
        self.heard.values().for_each(|audit| {
            let _ = audit.send(Tell::End);
        });
    }

    /// Requests a round of this audit for an event. False if the audit is over.
    pub fn round(&self, audit: u16, event: u16) -> bool {
        let audit = self.heard.get(&audit);
        audit.is_some_and(|audit| audit.send(Tell::Round(event)).is_ok())
    }
}

/// A message to a worker.
enum Tell {
    /// An event requests a round.
    Round(u16),
    /// The load has ended.
    End,
}

struct Worker {
    number: u16,
    audit: Audit,
    own: Own,
    clock: Clock,
    ask: Arc<dyn Fn(Ask) + Send + Sync>,
    heard: Receiver<Tell>,
}

/// Why a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wake {
    Due,
    /// An event requests a round.
    Asked(u16),
    /// The load has ended.
    Ended,
    /// The owner of the run is gone.
    Gone,
}

impl Worker {
    fn work(self) {
        // Times of the run use its clock, which starts with the load.
        self.clock.wait_for_zero();
        match &self.audit.what {
            AuditWhat::Presence { views, within } => self.presence(views, *within),
            AuditWhat::Count { books, .. } => self.count(books),
        }
        (self.ask)(Ask::Over);
    }

    fn presence(&self, views: &[View], within: Duration) {
        let readers: Vec<Result<Reader, Said>> =
            views.iter().map(|view| Reader::new(view, self.own.clone(), &self.clock)).collect();
        let judges = views.iter().map(|_| Judge::new(within)).collect();
        let mut rounds = Rounds { worker: self, readers, judges };
        let mut last = Time::ZERO;
        let mut next = self.next(last);
        let mut wake = self.wait(next);
        loop {
            wake = match wake {
                Wake::Due => {
                    last = next;
                    rounds.round(Round { until: self.next(last), due: last, ..Round::default() })
                }
                Wake::Asked(event) => {
                    let until = self.latest(within).min(next);
                    rounds.round(Round { until, event: Some(event), ..Round::default() })
                }
                Wake::Ended => break,
                Wake::Gone => return,
            };
            if wake == Wake::Due {
                next = self.next(last);
                wake = self.wait(next);
            }
        }
        if self.audit.at_end {
            let (until, due) = (self.latest(within), Time::NEVER);
            rounds.round(Round { until, due, is_last: true, event: None });
        }
    }

    fn count(&self, books: &Books) {
        let mut reader = match books::Reader::new(books, &self.clock) {
            Ok(reader) => reader,
            Err(_) => return,
        };
        let mut last = Time::ZERO;
        loop {
            let next = self.next(last);
            match self.wait(next) {
                Wake::Due => {
                    self.read_books(&mut reader, false, None);
                    last = next;
                }
                Wake::Asked(event) => self.read_books(&mut reader, false, Some(event)),
                Wake::Ended => break,
                Wake::Gone => return,
            }
        }
        if self.audit.at_end {
            self.read_books(&mut reader, true, None);
        }
    }

    fn read_books(&self, reader: &mut books::Reader, is_last: bool, event: Option<u16>) {
        let from = self.clock.now();
        let said = reader.read();
        let to = self.clock.now();
        self.tell((from, Time::ZERO), event, Heard::Books { from, to, said, is_last });
    }

    fn tell(&self, (at, due): (Time, Time), event: Option<u16>, what: Heard) {
        (self.ask)(Ask::Found(Found { audit: self.number, at, due, event, what }));
    }

    /// When a round ends at the latest, if it starts now and no other follows.
    fn latest(&self, within: Duration) -> Time {
        self.clock.now().saturating_add(within).saturating_add(LAST_MORE)
    }

    /// When the next round starts, after the one that was due at `last`.
    fn next(&self, last: Time) -> Time {
        let now = self.clock.now();
        let every = self.audit.every.map_or(Time::NEVER, |every| {
            // A slow view skips rounds instead of catching up.
            let every_ns = every.as_nanos().max(1) as u64;
            let rounds = now.as_nanos().max(last.as_nanos()) / every_ns + 1;
            Time(rounds.saturating_mul(every_ns))
        });
        let at = self.audit.at.iter().map(|at| Time::ZERO.saturating_add(*at));
        at.filter(|at| *at > last).fold(every, Time::min)
    }

    fn wait(&self, until: Time) -> Wake {
        let left = until - self.clock.now();
        let waited = match until {
            Time::NEVER => self.heard.recv().map_err(|_| RecvTimeoutError::Disconnected),
            _ => self.heard.recv_timeout(left),
        };
        match waited {
            Ok(Tell::End) => Wake::Ended,
            Ok(Tell::Round(event)) => Wake::Asked(event),
            Err(RecvTimeoutError::Timeout) => Wake::Due,
            Err(RecvTimeoutError::Disconnected) => Wake::Gone,
        }
    }

    fn ask_presence(&self) -> Result<Snapshot, Said> {
        let (tell, told) = channel();
        (self.ask)(Ask::Presence(tell));
        told.recv_timeout(SNAPSHOT_MAX)
            .map_err(|_| say!("the generator did not report its users in time"))
    }
}

/// One round of an audit of presence.
#[derive(Clone, Copy, Default)]
struct Round {
    /// Users that are pending then stay undecided.
    until: Time,
    /// The scheduled time.
    due: Time,
    /// The load had ended before.
    is_last: bool,
    /// The event that requested it.
    event: Option<u16>,
}

/// The rounds of an audit of presence.
struct Rounds<'a> {
    worker: &'a Worker,
    readers: Vec<Result<Reader, Said>>,
    judges: Vec<Judge>,
}

impl Rounds<'_> {
    /// Ends when no user is pending, its time is over, or another round is requested.
    fn round(&mut self, round: Round) -> Wake {
        let worker = self.worker;
        let at = worker.clock.now();
        let troubles = self.first_look();
        let took = worker.clock.now() - at;
        let (mut pause, mut wake) = (PAUSE_MIN, Wake::Due);
        loop {
            let mut all = self.judges.iter().zip(&troubles);
            let is_done =
                all.all(|(judge, trouble)| trouble.is_some() || judge.pending().is_empty());
            let again = worker.clock.now().saturating_add(pause);
            if is_done || again.saturating_add(CONFIRMED_AFTER) > round.until {
                break;
            }
            wake = worker.wait(again);
            match wake {
                Wake::Due => {}
                // The load had ended before, or ends now.
                Wake::Asked(_) | Wake::Ended if !round.is_last => break,
                Wake::Asked(_) | Wake::Ended => {}
                Wake::Gone => return Wake::Gone,
            }
            self.look_again(&troubles);
            pause = (pause * 2).min(PAUSE_MAX);
        }
        let found = self.finish(took, troubles);
        worker.tell((at, round.due), round.event, Heard::Round(found));
        wake
    }

    /// Reads all views, and compares them with the state after that.
    fn first_look(&mut self) -> Vec<Option<Said>> {
        let needs_names = self.readers.iter().flatten().any(Reader::needs_names);
        let names = match needs_names {
            true => self.worker.ask_presence(),
            false => Ok(Snapshot::default()),
        };
        let users: Result<Vec<u64>, Said> =
            names.map(|known| known.users.iter().map(|(user, _)| *user).collect());
        let read = |reader: &mut Result<Reader, Said>| {
            let reader = reader.as_mut().map_err(|trouble| trouble.clone())?;
            match reader.needs_names() {
                true => reader.ask(users.as_ref().map_err(Said::clone)?),
                false => reader.list(),
            }
        };
        let readings: Vec<Result<Reading, Said>> = self.readers.iter_mut().map(read).collect();
        let known = self.worker.ask_presence();
        let judge = |(judge, reading): (&mut Judge, Result<Reading, Said>)| {
            let known = known.as_ref().map_err(Said::clone);
            match reading.and_then(|reading| Ok((reading, known?))) {
                Ok((reading, known)) => {
                    judge.begin(&reading, known);
                    None
                }
                Err(trouble) => Some(trouble),
            }
        };
        self.judges.iter_mut().zip(readings).map(judge).collect()
    }

    /// Reads pending users again. If a view cannot be read now, they stay pending.
    fn look_again(&mut self, troubles: &[Option<Said>]) {
        let views = self.readers.iter_mut().zip(&mut self.judges).zip(troubles);
        for ((reader, judge), trouble) in views {
            let Ok(reader) = reader else { continue };
            if trouble.is_some() || judge.pending().is_empty() {
                continue;
            }
            let reading = reader.ask(judge.pending());
            if let (Ok(reading), Ok(known)) = (reading, self.worker.ask_presence()) {
                judge.again(&reading, &known);
            }
        }
    }

    fn finish(&mut self, took: Duration, troubles: Vec<Option<Said>>) -> audit::Round {
        let end = |(judge, trouble): (&mut Judge, Option<Said>)| match trouble {
            None => judge.end(),
            Some(_) => {
                judge.skip();
                ViewRound { trouble, ..ViewRound::default() }
            }
        };
        let views = self.judges.iter_mut().zip(troubles).map(end).collect();
        let took_ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        audit::Round { took_ns, views, pairs: pairs(&self.judges) }
    }
}
