//! `--live`: serves the page of a current run from a separate thread. The desk passes recorded
//! lines to it and never waits: if the thread falls behind, lines are dropped and counted. The
//! final report has all lines, because it is created from the run directory.

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

/// Maximum number of lines per machine that wait for the thread.
const WAITING_MAX: usize = 120;
/// The threads that generate load take precedence.
const NICE: i32 = 5;

/// A message to the thread.
enum Told {
    Begun(Box<Begun>),
    Line(Box<Interval>),
    Event(Box<Event>),
    /// The number of dropped lines.
    Missed(u64),
}

/// The start of the run.
struct Begun {
    info: RunInfo,
    /// The run directory, if there is one.
    directory: Option<PathBuf>,
    /// Receives the commands from the page.
    asked: UnboundedSender<Asked>,
}

/// Replaces the page after the run.
struct End {
    /// Present if there is a run directory.
    report: Option<Value>,
    /// Includes its formatted values.
    summary: Value,
}

/// The page of a run that has not ended.
pub(crate) struct Live {
    /// `None` after the run.
    lines: Option<Sender<Told>>,
    thread: JoinHandle<()>,
    end: Arc<Mutex<Option<End>>>,
    /// Lines dropped since the last one that was sent.
    missed: u64,
}

impl Live {
    /// If a page is wanted, binds its port, prints the link and serves it. The run starts later,
    /// after its setup if it `has_setup`.
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
            // Keep a higher niceness.
            let _ = throng_host::set_nice(NICE);
            let watched = Watched::new(has_setup, gate, at_end);
            throng_web::server::in_thread(watched.work(server, told));
        });
        let live = |thread| Live { lines: Some(lines), thread, end, missed: 0 };
        Ok(thread.ok().map(live))
    }

    /// The run starts. `info` has its start time, and `directory` is the run directory.
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

    /// The run has ended: sends the remaining lines, then the report.
    pub(crate) fn end(&mut self, report: Option<Value>, summary: Value) {
        let end = End { report, summary };
        *self.end.lock().unwrap_or_else(PoisonError::into_inner) = Some(end);
        self.lines = None;
    }

    /// Waits until all viewers have the report, up to a limit.
    pub(crate) fn leave(self) {
        drop(self.lines);
        let _ = self.thread.join();
    }
}
