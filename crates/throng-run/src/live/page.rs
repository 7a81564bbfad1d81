//! The thread of a live page: responds to requests, and sends each second to its viewers.

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use throng_base::language::spoken;
use throng_base::{Clock, Time, random};
use throng_results::Run;
use throng_results::page::{LivePage, served_html};
use throng_web::server::Connections;
use throng_web::{Gate, Hub, Reply, Request, Server};
use tokio::sync::mpsc::{Receiver, UnboundedSender};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::saved::{Form, Saving};
use super::{Begun, End, LiveNews};
use crate::control::command::{self, Answer, LoadStatus};
use crate::control::socket::Asked;

/// The parts of a second are sent together, once no more have arrived for this time.
const QUIET: Duration = Duration::from_millis(80);
/// The tables take 1/200 of the time, more only if that were too rare.
const TABLES_SHARE: u32 = 200;
const TABLES_EVERY_MIN: Duration = Duration::from_millis(900);
/// Computing them may have taken long only because the thread had no processor.
const TABLES_EVERY_MAX: Duration = Duration::from_secs(10);
/// Timeout of the run's reply to a viewer.
const ANSWER_MAX: Duration = Duration::from_secs(5);
/// How long viewers may take to load the report after the run.
const LEAVE_MAX: Duration = Duration::from_secs(5);

/// State of the live page.
pub(super) struct Watched {
    state: RefCell<PageState>,
    gate: Gate,
    saving: Saving,
    /// Set after the last line.
    end: Arc<Mutex<Option<End>>>,
    clock: Clock,
}

/// A run that has started.
struct Heard {
    name: String,
    directory: Option<PathBuf>,
    asked: UnboundedSender<Asked>,
}

struct PageState {
    /// `None` until the run starts.
    page: Option<LivePage>,
    run: Option<Heard>,
    /// The loads' levels, and whether they are being queried.
    status: Value,
    is_asked: bool,
    has_setup: bool,
    hub: Hub,
    /// The state for new viewers, until it changes.
    all: Option<Bytes>,
    /// There is data that viewers have not received.
    fresh: bool,
    /// The points are coarser than those that viewers have.
    coarser: bool,
    tables_at: Time,
    missed: u64,
    /// The report, after the run.
    report: Option<String>,
}

impl Watched {
    pub(super) fn new(has_setup: bool, gate: Gate, end: Arc<Mutex<Option<End>>>) -> Rc<Watched> {
        let state = PageState {
            page: None,
            run: None,
            status: json!([]),
            is_asked: false,
            has_setup,
            hub: Hub::new(random::fresh()),
            all: None,
            fresh: false,
            coarser: false,
            tables_at: Time::ZERO,
            missed: 0,
            report: None,
        };
        let (state, saving) = (RefCell::new(state), Saving::default());
        Rc::new(Watched { state, gate, saving, end, clock: Clock::start() })
    }

    /// Serves until the run has ended and its viewers have the report.
    pub(super) async fn work(self: Rc<Self>, server: Server, told: Receiver<LiveNews>) {
        let connections = Connections::default();
        let own = Rc::clone(&self);
        let answer = move |request| {
            let own = Rc::clone(&own);
            async move { own.answer(request).await }
        };
        tokio::select! {
            () = self.follow(told, &connections) => {}
            _ = server.serve(connections.clone(), answer) => {}
        }
    }

    async fn follow(self: &Rc<Self>, mut told: Receiver<LiveNews>, connections: &Connections) {
        loop {
            let fresh = self.state.borrow().fresh;
            let next = match fresh {
                true => timeout(QUIET, told.recv()).await,
                false => Ok(told.recv().await),
            };
            match next {
                Ok(Some(told)) => self.state.borrow_mut().take(told),
                Ok(None) => break,
                Err(_) => {
                    self.state.borrow_mut().tell(&self.clock);
                    self.look();
                }
            }
        }
        let end = self.end.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(End { report, summary }) = end {
            self.state.borrow_mut().end(report, &summary);
        }
        let all_told = async {
            while connections.busy() > 0 {
                tokio::time::sleep(QUIET).await;
            }
        };
        let _ = timeout(LEAVE_MAX, all_told).await;
    }

    async fn answer(self: Rc<Self>, request: Request) -> Reply {
        if !self.gate.lets(&request) {
            return Gate::refusal();
        }
        match (request.method.as_str(), request.path.as_str()) {
            ("GET", "/") => {
                let page = served_html(&json!({"connect": "live", "language": spoken().word()}));
                Reply::new(200, "text/html; charset=utf-8", page)
            }
            ("GET", "/events") => {
                let joined = self.state.borrow_mut().join(&request);
                self.look();
                joined
            }
            ("GET", "/save") => self.save(&request).await,
            ("POST", "/control") => self.control(&request.body).await,
            _ => Reply::text(404, "page not found\n"),
        }
    }

    /// Downloads come from the run directory, or from the page's data if there is none.
    async fn save(&self, request: &Request) -> Reply {
        let Some(form) = Form::of(request) else {
            return Reply::text(404, "page not found\n");
        };
        let directory = self.state.borrow().run.as_ref().and_then(|it| it.directory.clone());
        if let Some(directory) = directory {
            let open = move || Run::open(&directory);
            return self.saving.reply((form, request.connection.clone()), open).await;
        }
        let state = self.state.borrow();
        let shown = state.run.as_ref().zip(state.page.as_ref()).and_then(|(run, page)| {
            let mut shown = page.all();
            shown["live"] = json!(false);
            form.of_shown(&run.name, &shown)
        });
        shown.unwrap_or_else(|| Reply::text(404, tell!("there is nothing to save") + "\n"))
    }

    /// Queries the loads' levels, and sends them to viewers if they have changed.
    fn look(self: &Rc<Self>) {
        let status = command::Request {
            version: command::VERSION,
            command: command::Command::Status,
            load: None,
        };
        let mut state = self.state.borrow_mut();
        if state.is_asked || state.hub.viewers() == 0 {
            return;
        }
        let Some(answered) = state.ask(status) else { return };
        state.is_asked = true;
        let own = Rc::clone(self);
        tokio::task::spawn_local(async move {
            let answer = answered.await;
            let mut state = own.state.borrow_mut();
            state.is_asked = false;
            if let Ok(Answer::Status(loads)) = answer {
                state.tell_status(&loads);
            }
        });
    }

    /// Sends a command to the controller, as `throng control` does.
    async fn control(self: &Rc<Self>, body: &[u8]) -> Reply {
        let request = serde_json::from_slice::<command::Request>(body);
        let Some(request) = request.ok().filter(|it| it.version == command::VERSION) else {
            return Reply::text(400, "not a valid command\n");
        };
        let Some(answered) = self.state.borrow().ask(request) else {
            let told = json!({"refused": tell!("the run has not started yet"), "help": ""});
            return Reply::new(200, "application/json", told.to_string());
        };
        let told = match timeout(ANSWER_MAX, answered).await {
            Ok(Ok(Answer::Done(said))) => json!({"done": said.spoken()}),
            Ok(Ok(Answer::Status(loads))) => json!({"status": loads}),
            Ok(Ok(Answer::Refused { message, help })) => {
                json!({"refused": message.spoken(), "help": help.spoken()})
            }
            Ok(Err(_)) | Err(_) => json!({"refused": tell!("the run has ended"), "help": ""}),
        };
        self.look();
        Reply::new(200, "application/json", told.to_string())
    }
}

impl PageState {
    fn take(&mut self, told: LiveNews) {
        self.all = None;
        match (told, &mut self.page) {
            (LiveNews::Begun(begun), page) => {
                let Begun { info, directory, asked } = *begun;
                self.run = Some(Heard { name: info.name.clone(), directory, asked });
                *page = Some(LivePage::new(Arc::new(info)));
                self.tell_all();
            }
            (LiveNews::Line(interval), Some(page)) => {
                self.coarser |= page.line(*interval);
                self.fresh = true;
            }
            (LiveNews::Event(event), Some(page)) => {
                for (name, told) in page.event(&event) {
                    self.hub.tell(name, &told.to_string());
                }
            }
            (LiveNews::Missed(lines), _) => {
                self.missed += lines;
                self.fresh = true;
            }
            (LiveNews::Line(_) | LiveNews::Event(_), None) => {}
        }
    }

    /// The channel of the controller's reply; `None` before the run starts.
    fn ask(&self, request: command::Request) -> Option<oneshot::Receiver<Answer>> {
        let (reply, answered) = oneshot::channel();
        let asked = &self.run.as_ref()?.asked;
        let _ = asked.send((request, Box::new(move |answer| drop(reply.send(answer)))));
        Some(answered)
    }

    fn tell_status(&mut self, loads: &[LoadStatus]) {
        let one = |it: &LoadStatus| {
            json!({
                "load": it.load,
                "phase": it.phase,
                "users": it.users,
                "per_second": it.per_second,
                "paused": it.paused,
            })
        };
        let status: Value = loads.iter().map(one).collect();
        if status != self.status && self.report.is_none() {
            self.hub.tell("status", &status.to_string());
            (self.status, self.all) = (status, None);
        }
    }

    /// Invalidates all data sent before.
    fn tell_all(&mut self) {
        self.hub.forget();
        let (name, all) = self.all_text();
        self.hub.tell(name, &all);
    }

    /// Sends the last second, and the tables as often as their cost allows.
    fn tell(&mut self, clock: &Clock) {
        self.fresh = false;
        if std::mem::take(&mut self.coarser) {
            // The data sent before has other points.
            self.tell_all();
            return;
        }
        let Some(page) = &self.page else { return };
        let mut second = page.second();
        second["missed"] = json!(self.missed);
        self.hub.tell("second", &second.to_string());
        let begun = clock.now();
        if self.hub.viewers() > 0 && begun >= self.tables_at {
            self.hub.tell("figures", &page.figures().to_string());
            let took = clock.now().since(begun);
            let every = (took * TABLES_SHARE).clamp(TABLES_EVERY_MIN, TABLES_EVERY_MAX);
            self.tables_at = begun + every;
        }
    }

    /// The state for a new viewer, and the name of the event.
    fn all_text(&self) -> (&'static str, String) {
        let Some(page) = &self.page else {
            return ("waiting", json!({"setup": self.has_setup}).to_string());
        };
        let mut all = page.all();
        all["missed"] = json!(self.missed);
        all["status"] = self.status.clone();
        all["recorded"] = json!(self.run.as_ref().is_some_and(|it| it.directory.is_some()));
        ("all", all.to_string())
    }

    fn join(&mut self, request: &Request) -> Reply {
        let last = request.header("last-event-id");
        if let Some(report) = &self.report {
            let known = self.hub.join(last, &request.connection, |hub| hub.message("end", report));
            self.hub.close();
            return known;
        }
        if self.all.is_none() && last.is_none_or(|last| !self.hub.knows(last)) {
            self.all = Some(Bytes::from(self.all_text().1));
        }
        let PageState { hub, all, page, .. } = self;
        let name = if page.is_some() { "all" } else { "waiting" };
        let all = all.as_deref().map(String::from_utf8_lossy).unwrap_or_default();
        hub.join(last, &request.connection, |hub| hub.message(name, &all))
    }

    /// Replaces the page with the report.
    fn end(&mut self, report: Option<Value>, summary: &Value) {
        let all = self.page.as_ref().map(|page| {
            let mut all = page.all();
            ["summary", "tables"].iter().for_each(|part| all[*part] = summary[*part].clone());
            for (english, rendered) in summary["renderings"].as_object().into_iter().flatten() {
                all["renderings"][english] = rendered.clone();
            }
            all
        });
        let Some(mut report) = report.or(all) else { return };
        report["live"] = json!(false);
        let report = report.to_string();
        self.hub.tell("end", &report);
        self.hub.close();
        self.report = Some(report);
    }
}
