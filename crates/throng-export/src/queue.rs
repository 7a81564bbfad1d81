//! A thread and a bounded queue for each output. The thread merges the lines of a second; when a
//! queue is full, lines are dropped and counted.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use throng_base::{Clock, Diagnostic, Said, Time};
use throng_metrics::Interval;
use throng_program::Output;
use throng_results::{AllGauges, RunInfo};

use crate::{Export, Second, open};

/// Maximum number of waiting lines per output and machine: how long an output may stall.
const SECONDS_MAX: usize = 60;
/// The pause before a failed second is sent again.
const RETRY: Duration = Duration::from_secs(1);
/// How long waiting seconds may take after the end of the run.
const END_MAX: Duration = Duration::from_secs(10);

/// All outputs of a run.
#[derive(Default)]
pub struct Exports {
    all: Vec<Exported>,
}

struct Exported {
    wanted: Output,
    lines: SyncSender<Arc<Interval>>,
    thread: JoinHandle<ExportOutcome>,
    /// Seconds with dropped lines, and the last of them.
    dropped: u64,
    dropped_last: Option<u64>,
}

/// The result of an output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExportOutcome {
    pub seconds: u64,
    /// Seconds that failed, or that are incomplete because the output was too slow.
    pub lost: u64,
    /// The reason for the last failure.
    pub trouble: Option<Said>,
}

impl Exports {
    /// Passes a line to all outputs. It never blocks.
    pub fn line(&mut self, interval: &Interval) {
        if self.all.is_empty() {
            return;
        }
        let line = Arc::new(interval.clone());
        for one in &mut self.all {
            if let Err(TrySendError::Full(_)) = one.lines.try_send(Arc::clone(&line)) {
                let last = one.dropped_last.replace(interval.second);
                one.dropped += u64::from(last != Some(interval.second));
            }
        }
    }

    /// The run has ended: waits for waiting seconds, for a limited time.
    pub fn finish(self) -> Vec<(Output, ExportOutcome)> {
        let waiting: Vec<_> = self
            .all
            .into_iter()
            .map(|one| {
                drop(one.lines);
                (one.wanted, one.thread, one.dropped)
            })
            .collect();
        waiting
            .into_iter()
            .map(|(wanted, thread, dropped)| {
                let mut told = thread.join().unwrap_or_default();
                told.lost += dropped;
                (wanted, told)
            })
            .collect()
    }
}

/// Outputs that are open before the start of the run is known.
#[derive(Default)]
pub struct Opened(Vec<(Output, Box<dyn Export>)>);

impl Opened {
    /// Opens all outputs; nothing is sent yet.
    pub fn open<'a>(
        wanted: impl Iterator<Item = &'a Output>,
        info: &RunInfo,
    ) -> Result<Opened, Box<Diagnostic>> {
        let open = |one: &Output| open::open(one, info).map(|export| (one.clone(), export));
        Ok(Opened(wanted.map(open).collect::<Result<_, _>>()?))
    }

    /// Starts the run, whose clock is in `info`.
    pub fn begin(self, info: &RunInfo) -> Exports {
        let info = Arc::new(info.clone());
        let lines_max = SECONDS_MAX * info.generator.machines.len().max(1);
        let begin = |(wanted, export): (Output, Box<dyn Export>)| {
            let (lines, told) = sync_channel(lines_max);
            let worker = Worker {
                export,
                info: Arc::clone(&info),
                told: ExportOutcome::default(),
                is_failing: false,
                until: None,
                clock: Clock::start(),
            };
            let thread = std::thread::Builder::new().name("export".into());
            let thread = thread.spawn(move || worker.work(&told)).ok()?;
            Some(Exported { wanted, lines, thread, dropped: 0, dropped_last: None })
        };
        Exports { all: self.0.into_iter().filter_map(begin).collect() }
    }
}

/// The state of an output's thread.
struct Worker {
    export: Box<dyn Export>,
    info: Arc<RunInfo>,
    told: ExportOutcome,
    /// The last second failed.
    is_failing: bool,
    /// The run has ended: seconds are sent again until then.
    until: Option<Time>,
    clock: Clock,
}

impl Worker {
    fn work(mut self, lines: &Receiver<Arc<Interval>>) -> ExportOutcome {
        let mut gauges = AllGauges::default();
        let mut current: Option<Interval> = None;
        let mut waiting = VecDeque::new();
        loop {
            let line = match lines.recv_timeout(RETRY) {
                Ok(line) => Some(line),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => break,
            };
            if let Some(line) = line {
                self.add(&line, &mut gauges, &mut current, &mut waiting);
            }
            self.tell(&mut waiting);
        }
        self.until = Some(self.clock.now() + END_MAX);
        waiting.extend(current);
        self.tell(&mut waiting);
        let ended = self.export.finish();
        self.told.trouble = ended.err().or(self.told.trouble);
        self.told
    }

    /// A late line is added to the current second.
    fn add(
        &self,
        line: &Interval,
        gauges: &mut AllGauges,
        current: &mut Option<Interval>,
        waiting: &mut VecDeque<Interval>,
    ) {
        let phase = self.info.tables.phases.get(usize::from(line.phase));
        let all = gauges.add(phase.map_or(0, |phase| usize::from(phase.load)), line);
        match current {
            Some(second) if second.second >= line.second => second.merge_later(line),
            _ => waiting.extend(current.replace(line.clone())),
        }
        if let Some(second) = current {
            second.gauges = all;
        }
    }

    /// Sends waiting seconds until one fails. After the run, an output that has worked before is
    /// tried again, for a limited time.
    fn tell(&mut self, waiting: &mut VecDeque<Interval>) {
        while let Some(figures) = waiting.front() {
            match self.export.second(&Second { info: &self.info, figures }) {
                Ok(()) => {
                    self.told.seconds += 1;
                    self.is_failing = false;
                    waiting.pop_front();
                }
                Err(trouble) => {
                    self.told.trouble = Some(trouble);
                    let was_failing = std::mem::replace(&mut self.is_failing, true);
                    match self.until {
                        None => break,
                        Some(until) if self.clock.now() < until && !was_failing => {
                            std::thread::park_timeout(RETRY);
                        }
                        Some(_) => {
                            self.told.lost += waiting.len() as u64;
                            waiting.clear();
                        }
                    }
                }
            }
        }
        while waiting.len() > SECONDS_MAX {
            self.told.lost += 1;
            waiting.pop_front();
        }
    }
}

#[cfg(test)]
mod tests;
