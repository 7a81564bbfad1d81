//! Serves the runs of a folder as a page (`throng serve`). One thread reads runs, which may take
//! seconds; the other replies, and starts runs if allowed.
//!
//! - `folder`: the content of the folder; figures are read once and kept. - `started`: runs that
//!   were started from the page.

#![forbid(unsafe_code)]

#[macro_use]
extern crate throng_base;

mod folder;
mod started;

use std::borrow::Cow;
use std::cell::RefCell;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};

use percent_encoding::percent_decode_str;
use serde_json::{Value, json};
use throng_base::language::spoken;
use throng_base::{Diagnostic, Said};
use throng_results::page::served_html;
use throng_run::Operator;
use throng_run::live::link::Link;
use throng_run::live::saved::{Form, Saving};
use throng_web::server::{Connections, in_thread};
use throng_web::{Gate, Reply, Request};
use tokio::sync::oneshot;

use folder::{Folder, Wanted, find};
use started::{Begin, Started};

/// Maximum number of requests that wait for the reader.
const WAITING_MAX: usize = 64;

/// A request to the reader, and the channel for its reply.
type Job = (Wanted, oneshot::Sender<Value>);

/// The setup of the server.
pub struct Setup {
    /// The folder with the directories of runs.
    pub folder: PathBuf,
    /// The address of the page.
    pub listen: String,
    /// The folder whose scenarios may be run from the page.
    pub allow_run: Option<PathBuf>,
    /// Maximum number of concurrent runs from the page.
    pub runs_max: u64,
    /// Checks the command line of a run before it is started.
    pub refusal: fn(Vec<OsString>) -> Option<Said>,
}

/// Serves the page until `stop`; the operator is shown its link. Then the runs that it has started
/// are stopped.
///
/// # Errors A folder is missing, or the address cannot be used.
pub fn serve(
    setup: &Setup,
    operator: &dyn Operator,
    stop: impl Future<Output = ()>,
) -> Result<(), Box<Diagnostic>> {
    let folders = [Some(&setup.folder), setup.allow_run.as_ref()];
    folders.into_iter().flatten().try_for_each(|folder| is_folder(folder))?;
    let link = Link::open(&setup.listen, "--listen")?;
    link.print(&say!("runs"), operator);
    let started = setup.allow_run.as_ref().map(|scenarios| {
        let runs_max = usize::try_from(setup.runs_max).unwrap_or(usize::MAX);
        Started::new((scenarios, &setup.folder), (link.address().ip(), runs_max), setup.refusal)
    });
    let (jobs, waiting) = sync_channel::<Job>(WAITING_MAX);
    let mut folder = Folder::new(&setup.folder);
    let reader = std::thread::Builder::new().name("reader".into());
    let reader = reader.spawn(move || folder.work(&waiting));
    reader.map_err(|error| {
        let error = Said::of_error(&error);
        Box::new(Diagnostic::error("host-unfit", say!("cannot start an event loop: {error}")))
    })?;
    let Link { server, gate, .. } = link;
    let (folder, saving) = (setup.folder.clone(), Saving::default());
    let site = Rc::new(Site { gate, jobs, folder, saving, started: RefCell::new(started) });
    let own = Rc::clone(&site);
    in_thread(async move {
        let answer = move |request| {
            let own = Rc::clone(&own);
            async move { own.answer(request).await }
        };
        tokio::select! {
            () = stop => {}
            _ = server.serve(Connections::default(), answer) => {}
        }
    });
    if let Some(started) = site.started.borrow_mut().take() {
        started.stop();
    }
    Ok(())
}

fn is_folder(path: &Path) -> Result<(), Box<Diagnostic>> {
    if path.is_dir() {
        return Ok(());
    }
    let message = say!("{} is not a folder", path.display());
    let help = say!("give an existing folder");
    Err(Box::new(Diagnostic::error("run-unreadable", message).help(help)))
}

struct Site {
    gate: Gate,
    jobs: SyncSender<Job>,
    folder: PathBuf,
    saving: Saving,
    /// Present if runs can be started.
    started: RefCell<Option<Started>>,
}

impl Site {
    async fn answer(&self, request: Request) -> Reply {
        if !self.gate.lets(&request) {
            return Gate::refusal();
        }
        let name = request.asked("name").map(decoded).unwrap_or_default();
        match (request.method.as_str(), request.path.as_str()) {
            ("GET", "/") => {
                let page = json!({"connect": "folder", "language": spoken().word()});
                Reply::new(200, "text/html; charset=utf-8", served_html(&page))
            }
            ("GET", "/runs") => {
                let mut list = self.read(Wanted::List).await;
                if let (Some(list), Some(started)) = (&mut list, &mut *self.started.borrow_mut()) {
                    list["started"] = started.json();
                    list["can_run"] = json!(true);
                }
                told(list)
            }
            ("GET", "/run") => told(self.read(Wanted::Report(name)).await),
            ("GET", "/save") => match Form::of(&request) {
                Some(form) => {
                    let folder = self.folder.clone();
                    let open = move || find(&folder, &name);
                    self.saving.reply((form, request.connection.clone()), open).await
                }
                None => Reply::text(404, "page not found\n"),
            },
            ("GET", "/compare") => {
                let names = request.query.split('&').filter_map(|pair| pair.strip_prefix("run="));
                told(self.read(Wanted::Compare(names.map(decoded).collect())).await)
            }
            ("GET", "/history") => {
                let baseline = request.asked("baseline").map(decoded);
                told(self.read(Wanted::History(baseline)).await)
            }
            ("GET", "/scenarios") => {
                let started = self.started.borrow();
                told(Some(started.as_ref().map_or(json!([]), Started::scenarios)))
            }
            ("POST", "/start") => self.start(&request.body),
            _ => Reply::text(404, "page not found\n"),
        }
    }

    fn start(&self, body: &[u8]) -> Reply {
        let Some(started) = &mut *self.started.borrow_mut() else {
            return Reply::text(403, "starting runs is not allowed: see --allow-run\n");
        };
        let Ok(wanted) = serde_json::from_slice::<Begin>(body) else {
            return Reply::text(400, "not a valid request to start a run\n");
        };
        told(Some(match started.begin(&wanted) {
            Ok(name) => json!({"name": name}),
            Err(said) => json!({"error": said.spoken()}),
        }))
    }

    /// None if too many requests are waiting.
    async fn read(&self, wanted: Wanted) -> Option<Value> {
        let (reply, read) = oneshot::channel();
        match self.jobs.try_send((wanted, reply)) {
            Ok(()) => read.await.ok(),
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => None,
        }
    }
}

fn told(value: Option<Value>) -> Reply {
    match value {
        Some(value) => Reply::new(200, "application/json", value.to_string()),
        None => Reply::text(503, "too many requests at a time\n"),
    }
}

/// Decodes percent-encoding (RFC 3986). Invalid text is unchanged, and matches no name.
fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8().map_or_else(|_| text.to_string(), Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_queries_are_decoded() {
        for (given, wanted) in [
            ("a%20b", "a b"),
            ("%2e%2E%2f", "../"),
            ("100%", "100%"),
            ("%zz", "%zz"),
            ("%ff", "%ff"),
        ] {
            assert_eq!(decoded(given), wanted);
        }
    }
}
