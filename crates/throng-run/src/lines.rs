//! A run as a stream of lines, for programs that embed throng.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use throng_base::Exit;
use throng_program::Program;
use throng_scenario::Recorded;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::{Conduct, Line, Operator, Settings, StopRequests};

/// Runs a program in a separate thread. `recorded` is its scenario, for the run directory.
pub fn run(program: Program, recorded: Recorded, settings: Settings) -> Lines {
    let (tell, lines) = channel();
    let (stop, stops) = unbounded_channel();
    let thread = std::thread::spawn(move || {
        let operator = Embedder { tell, stops: Some(stops).into() };
        Conduct { settings, ..Conduct::new(Arc::new(program), recorded, &operator) }.run()
    });
    Lines { lines, stop, thread }
}

/// The lines of a run, in order, until it has ended.
pub struct Lines {
    lines: Receiver<Line<'static>>,
    stop: UnboundedSender<()>,
    thread: JoinHandle<Exit>,
}

impl Lines {
    /// Ends the run: the first time gracefully, the second time immediately.
    pub fn stop(&self) {
        let _ = self.stop.send(());
    }

    /// Waits until the run has ended, and returns the exit code of `throng run`.
    pub fn exit(self) -> Exit {
        self.thread.join().unwrap_or(Exit::Bug)
    }
}

impl Iterator for Lines {
    type Item = Line<'static>;

    fn next(&mut self) -> Option<Line<'static>> {
        self.lines.recv().ok()
    }
}

struct Embedder {
    tell: Sender<Line<'static>>,
    stops: std::cell::Cell<Option<UnboundedReceiver<()>>>,
}

impl Operator for Embedder {
    fn tell(&self, line: Line<'_>) {
        // The run continues if its lines are not read.
        let _ = self.tell.send(line.into_owned());
    }

    fn stop_requests(&self) -> std::io::Result<StopRequests> {
        Ok(self.stops.take().map_or_else(StopRequests::none, StopRequests::new))
    }
}
