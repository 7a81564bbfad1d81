//! Downloads of a live page: a run as CSV, as JSON, or as a separate page. A separate thread
//! creates them from the run directory, as `throng report` does, and drops clients that do not
//! read.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;
use throng_base::clean::clean_json;
use throng_base::{Clock, Diagnostic, Said, Time};
use throng_results::csv::seconds_csv;
use throng_results::page::{html, report_data};
use throng_results::{Run, summary_json};
use throng_web::{Connection, Reply, Request};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};

/// Maximum number of simultaneous downloads.
const SAVING_MAX: usize = 4;
/// Maximum number of parts that wait for the client, and the size of a part.
const WAITING_MAX: usize = 8;
const PART_BYTES: usize = 64 * 1024;
/// How long a part waits for its client.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(10);

/// File format of a download.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Csv,
    Json,
    Page,
}

impl Form {
    /// The format that a request asks for.
    pub fn of(request: &Request) -> Option<Form> {
        [Form::Csv, Form::Json, Form::Page]
            .into_iter()
            .find(|form| request.asked("form") == Some(form.ending()))
    }

    fn ending(self) -> &'static str {
        match self {
            Form::Csv => "csv",
            Form::Json => "json",
            Form::Page => "html",
        }
    }

    fn kind(self) -> &'static str {
        match self {
            Form::Csv => "text/csv; charset=utf-8",
            Form::Json => "application/json",
            Form::Page => "text/html; charset=utf-8",
        }
    }

    /// A download for a run without a directory, from the data of its live page; `None` if the page
    /// does not have it.
    pub fn of_shown(self, name: &str, shown: &Value) -> Option<Reply> {
        let text = match self {
            Form::Csv => return None,
            Form::Json => json_text(&shown["summary"]),
            Form::Page => html(shown),
        };
        let name = format!("{name}.{}", self.ending());
        Some(Reply::new(200, self.kind(), text).attachment(&name))
    }

    fn make(self, run: &Run, parts: &mut Parts) -> Result<(), Box<Diagnostic>> {
        match self {
            Form::Csv => seconds_csv(run, |piece| parts.add(run, piece))?,
            Form::Json => parts.add(run, &json_text(&summary_json(&run.summary()?))),
            Form::Page => parts.add(run, &html(&report_data(run, &run.summary()?)?)),
        }
        parts.send(run);
        Ok(())
    }
}

/// The same text as `--json` prints.
fn json_text(summary: &Value) -> String {
    clean_json(&summary.to_string()) + "\n"
}

/// Active downloads: each has a clone of the reference.
#[derive(Default)]
pub struct Saving(Arc<()>);

impl Saving {
    /// Creates a download of the run that `open` finds.
    pub async fn reply(
        &self,
        (form, connection): (Form, Connection),
        open: impl FnOnce() -> Result<Run, Box<Diagnostic>> + Send + 'static,
    ) -> Reply {
        let busy = || Reply::text(503, "too many requests at a time\n");
        if Arc::strong_count(&self.0) > SAVING_MAX {
            return busy();
        }
        let (begun, begins) = oneshot::channel();
        let (cut, is_cut) = oneshot::channel();
        let (parts, waiting) = mpsc::channel(WAITING_MAX);
        let one_more = Arc::clone(&self.0);
        let work = move || {
            let _one_more = one_more;
            let mut parts = Parts { begun: Some(begun), cut: Some(cut), parts, next: Vec::new() };
            let made = open().and_then(|run| form.make(&run, &mut parts));
            if let (Err(error), Some(begun)) = (made, parts.begun.take()) {
                let _ = begun.send(Err(error.message.clone()));
            }
        };
        let _ = std::thread::Builder::new().name("saved".into()).spawn(work);
        match begins.await {
            Ok(Ok(name)) => {
                tokio::task::spawn_local(async move {
                    if let Ok(()) = is_cut.await {
                        connection.hang_up();
                    }
                });
                let name = format!("{name}.{}", form.ending());
                Reply::stream(form.kind(), waiting).attachment(&name)
            }
            Ok(Err(said)) => Reply::text(404, format!("{}\n", said.spoken())),
            Err(_) => busy(),
        }
    }
}

/// A download in progress.
struct Parts {
    /// Sent once: the name of the file with its first part, or why there is no file.
    begun: Option<oneshot::Sender<Result<String, Said>>>,
    /// Sent if the client stops reading, so that a partial file is not mistaken for a complete one.
    cut: Option<oneshot::Sender<()>>,
    parts: mpsc::Sender<Bytes>,
    next: Vec<u8>,
}

impl Parts {
    fn add(&mut self, run: &Run, text: &str) {
        self.next.extend_from_slice(text.as_bytes());
        if self.next.len() >= PART_BYTES {
            self.send(run);
        }
    }

    fn send(&mut self, run: &Run) {
        let part = Bytes::from(std::mem::take(&mut self.next));
        if let Some(begun) = self.begun.take() {
            let name = run.directory.file_name().unwrap_or_default().to_string_lossy();
            let _ = begun.send(Ok(name.into_owned()));
        }
        let clock = Clock::start();
        while self.cut.is_some() {
            match self.parts.try_send(part.clone()) {
                Ok(()) => return,
                Err(TrySendError::Full(_)) if clock.now() - Time::ZERO < PATIENCE => {
                    std::thread::park_timeout(LOOK);
                }
                Err(_) => drop(self.cut.take().map(|cut| cut.send(()))),
            }
        }
    }
}
