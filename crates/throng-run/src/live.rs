//! `--live`: the page of a current run, in its own thread. The desk passes recorded lines to it and
//! never waits: if the thread falls behind, lines are dropped and counted. The final report has all
//! lines, because it is created from the record.

pub mod link;
mod page;
pub mod saved;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use serde_json::Value;
use throng_base::Diagnostic;
use throng_metrics::Interval;
use throng_results::{Event, RunInfo};
use tokio::sync::mpsc::{Sender, UnboundedSender, channel};

use crate::Operator;
use crate::control::socket::Asked;
use link::Link;
use page::Watched;

/// What may wait for the thread, for each machine.
const WAITING_MAX: usize = 120;
/// Of the processor, the thread gives way to those that make the load.
const NICE: i32 = 5;

/// What a page is told.
enum Told {
    Begun(Box<Begun>),
    Line(Box<Interval>),
    Event(Box<Event>),
    /// Lines were dropped.
    Missed(u64),
}

/// The run begins.
struct Begun {
    info: RunInfo,
    /// Of its record, where there is one.
    directory: Option<PathBuf>,
    /// It hears what is asked of it.
    asked: UnboundedSender<Asked>,
}

/// What the page becomes when the run is over.
struct End {
    /// Where there is a record.
    report: Option<Value>,
    /// With its renderings.
    summary: Value,
}

/// The page of a run that is to begin, or goes on.
pub(crate) struct Live {
    /// None when the run is over.
    lines: Option<Sender<Told>>,
    thread: JoinHandle<()>,
    end: Arc<Mutex<Option<End>>>,
    /// Lines that were dropped since the last that was not.
    missed: u64,
}

impl Live {
    /// Takes the port, prints the link and answers there, where a page is wanted. The run begins
    /// later: behind its setup, where it `has_setup`.
    pub(crate) fn open(
        address: Option<&str>,
        (machines, has_setup): (usize, bool),
        errors: &dyn Operator,
    ) -> Result<Option<Live>, Box<Diagnostic>> {
        let Some(address) = address else { return Ok(None) };
        let link = Link::open(address, "--live")?;
        link.print(&say!("live page"), errors);
        let Link { server, gate, .. } = link;
        let (lines, told) = channel(WAITING_MAX * machines.max(1));
        let end = Arc::new(Mutex::new(None));
        let at_end = Arc::clone(&end);
        let thread = std::thread::Builder::new().name("live".into());
        let thread = thread.spawn(move || {
            // One that is nicer already stays so.
            let _ = throng_host::set_nice(NICE);
            let watched = Watched::new(has_setup, gate, at_end);
            throng_web::server::in_thread(watched.work(server, told));
        });
        let live = |thread| Live { lines: Some(lines), thread, end, missed: 0 };
        Ok(thread.ok().map(live))
    }

    /// The run begins. `info` has its clock; `directory` is that of its record.
    pub(crate) fn begin(
        &mut self,
        info: &RunInfo,
        directory: Option<&Path>,
        asked: UnboundedSender<Asked>,
    ) {
        let (info, directory) = (info.clone(), directory.map(Path::to_path_buf));
        self.tell(Told::Begun(Box::new(Begun { info, directory, asked })));
    }

    pub(crate) fn line(&mut self, interval: Box<Interval>) {
        self.tell(Told::Line(interval));
    }

    pub(crate) fn event(&mut self, event: &Event) {
        self.tell(Told::Event(Box::new(event.clone())));
    }

    fn tell(&mut self, told: Told) {
        let Some(lines) = &self.lines else { return };
        if self.missed > 0 && lines.try_send(Told::Missed(self.missed)).is_ok() {
            self.missed = 0;
        }
        self.missed += u64::from(lines.try_send(told).is_err());
    }

    /// The run is over: what waits is told first, then the report.
    pub(crate) fn end(&mut self, report: Option<Value>, summary: Value) {
        let end = End { report, summary };
        *self.end.lock().unwrap_or_else(PoisonError::into_inner) = Some(end);
        self.lines = None;
    }

    /// Waits until all viewers have the report, so long and no longer.
    pub(crate) fn leave(self) {
        drop(self.lines);
        let _ = self.thread.join();
    }
}
