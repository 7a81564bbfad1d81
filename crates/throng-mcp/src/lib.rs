//! A server of the Model Context Protocol, over a reader and a writer (`throng mcp`). One thread
//! reads, one waits for requests to stop, each call has its own; the calling thread replies.
//!
//! - `message`: parses and writes messages. `tools`: the tools and their arguments.
//! - `call`: runs a tool. `pages`: resources that clients can read.

#![forbid(unsafe_code)]

#[macro_use]
extern crate throng_base;

mod call;
mod message;
mod pages;
mod tools;

use std::collections::HashMap;
use std::io::{self, BufRead, Read as _, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value, json};
use throng_base::{Clock, Diagnostic, Time};
use throng_run::StopRequests;
use throng_web::server::in_thread;

pub use call::Site;
use call::{Running, refused, result};
use message::{MODERN, Message, Mistake, Request, negotiated, progress, read, refusal, server};
use tools::{LANGUAGE, TOOLS, Tool};

/// Maximum size of a message.
const LINE_BYTES_MAX: usize = 16 << 20;
/// Maximum number of concurrent calls.
const CALLS_MAX: usize = 16;
/// How long calls may take to end when the client is gone; then they are asked again, more
/// strongly.
const STOP_MAX: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(500);

/// An event for the replying thread.
enum Heard {
    Line(Vec<u8>),
    TooLong,
    /// The client has closed its side, or no longer reads.
    Closed,
    /// A request to stop this process.
    Told,
    /// A call has ended.
    Over(Value),
}

/// Serves until the client is gone or the process is asked to stop; calls in progress are stopped
/// first. `stops` is called inside a runtime.
pub fn serve(
    site: Site,
    input: impl BufRead + Send + 'static,
    output: impl Write + Send + 'static,
    stops: fn() -> io::Result<StopRequests>,
) {
    let (tell, heard) = channel();
    let (reader, stopped) = (tell.clone(), tell.clone());
    std::thread::spawn(move || read_lines(input, &reader));
    std::thread::spawn(move || in_thread(hear_stops(stops, stopped)));
    let output = Output { written: Mutex::new(Box::new(output)), is_gone: AtomicBool::new(false) };
    let (site, output) = (Arc::new(site), Arc::new(output));
    let mut serving = Serving { site, output, calls: HashMap::new(), tell };
    serving.serve(&heard);
    serving.stop(&heard);
}

/// Writes complete messages.
struct Output {
    written: Mutex<Box<dyn Write + Send>>,
    /// The client no longer reads.
    is_gone: AtomicBool,
}

impl Output {
    fn say(&self, message: &Value) {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        if written.write_all(format!("{message}\n").as_bytes()).is_err() {
            self.is_gone.store(true, Ordering::Relaxed);
        }
    }

    fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::Relaxed)
    }
}

/// Reads one message per line to the end.
fn read_lines(mut input: impl BufRead, tell: &Sender<Heard>) {
    loop {
        let mut line = Vec::new();
        let read = input.by_ref().take(LINE_BYTES_MAX as u64 + 1).read_until(b'\n', &mut line);
        let heard = match read {
            Ok(0) | Err(_) => Heard::Closed,
            Ok(count) if count > LINE_BYTES_MAX && line.last() != Some(&b'\n') => {
                skip_line(&mut input);
                Heard::TooLong
            }
            Ok(_) if line.trim_ascii().is_empty() => continue,
            Ok(_) => Heard::Line(line),
        };
        let is_closed = matches!(heard, Heard::Closed);
        if tell.send(heard).is_err() || is_closed {
            return;
        }
    }
}

fn skip_line(input: &mut impl BufRead) {
    while let Ok(bytes @ [_, ..]) = input.fill_buf() {
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let count = end.map_or(bytes.len(), |end| end + 1);
        input.consume(count);
        if end.is_some() {
            return;
        }
    }
}

async fn hear_stops(stops: fn() -> io::Result<StopRequests>, tell: Sender<Heard>) {
    let Ok(mut stops) = stops() else { return };
    loop {
        stops.next().await;
        if tell.send(Heard::Told).is_err() {
            return;
        }
    }
}

struct Serving {
    site: Arc<Site>,
    output: Arc<Output>,
    /// Calls in progress, by the text of their request ID.
    calls: HashMap<String, Arc<Running>>,
    tell: Sender<Heard>,
}

impl Serving {
    /// Replies until the client is gone, or the process is asked to stop.
    fn serve(&mut self, heard: &Receiver<Heard>) {
        while let Ok(heard) = heard.recv() {
            match heard {
                Heard::Line(line) => self.answer(&line),
                Heard::TooLong => {
                    self.output.say(&refusal(&Value::Null, &Mistake::too_long(LINE_BYTES_MAX)));
                }
                Heard::Over(id) => drop(self.calls.remove(&id.to_string())),
                Heard::Closed | Heard::Told => return,
            }
            if self.output.is_gone() {
                return;
            }
        }
    }

    /// Stops the calls in progress, and waits for them.
    fn stop(&mut self, heard: &Receiver<Heard>) {
        let clock = Clock::start();
        let mut strength = 1;
        while !self.calls.is_empty() {
            let passed = (clock.now() - Time::ZERO).as_secs() / STOP_MAX.as_secs();
            let due = u8::try_from(passed).unwrap_or(u8::MAX).saturating_add(1);
            self.calls.values().for_each(|call| call.leave(strength.max(due)));
            match heard.recv_timeout(LOOK) {
                Ok(Heard::Over(id)) => drop(self.calls.remove(&id.to_string())),
                Ok(Heard::Told) => strength = (strength + 1).min(2),
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn answer(&mut self, line: &[u8]) {
        match read(line) {
            Ok(Message::Request(request)) => self.request(request),
            Ok(Message::Cancelled { id }) => {
                if let Some(call) = self.calls.get(&id.to_string()) {
                    call.cancel();
                }
            }
            Ok(Message::Nothing) => {}
            Err((id, mistake)) => self.output.say(&refusal(&id, &mistake)),
        }
    }

    fn request(&mut self, request: Request) {
        let result = match request.method.as_str() {
            "tools/call" => match self.called(&request) {
                Ok((tool, arguments)) => return self.call(request, tool, &arguments),
                Err(mistake) => Err(mistake),
            },
            "initialize" => Ok(initialized(&request)),
            "server/discover" => Ok(discovered()),
            "ping" => Ok(json!({})),
            "tools/list" => {
                Ok(json!({"tools": TOOLS.iter().map(Tool::described).collect::<Value>()}))
            }
            "resources/list" => Ok(pages::list()),
            "resources/templates/list" => Ok(json!({"resourceTemplates": []})),
            "resources/read" => request.text("uri").and_then(pages::read),
            method => Err(Mistake::unknown_method(method)),
        };
        self.output.say(&request.answer(result));
    }

    /// The tool that a request calls, and its arguments.
    fn called(&self, request: &Request) -> Result<(&'static Tool, Map<String, Value>), Mistake> {
        if self.calls.contains_key(&request.id.to_string()) {
            let id = request.id.to_string();
            return Err(Mistake::parameters(say!("a request with the id {id} is in progress")));
        }
        let name = request.text("name")?;
        let tool = tools::find(name).ok_or_else(|| {
            let known: Vec<&str> = TOOLS.iter().map(|tool| tool.name).collect();
            let name = throng_base::clean(name);
            Mistake::parameters(say!("there is no tool `{name}`; tools: {}", known.join(", ")))
        })?;
        match request.parameters.get("arguments") {
            None => Ok((tool, Map::new())),
            Some(Value::Object(arguments)) => Ok((tool, arguments.clone())),
            Some(_) => Err(Mistake::parameters(say!("`params.arguments` must be an object"))),
        }
    }

    /// Runs a call in its own thread, which replies to the request.
    fn call(&mut self, request: Request, tool: &'static Tool, arguments: &Map<String, Value>) {
        let words = match tool.words(arguments) {
            Ok(_) if tool.name == LANGUAGE => {
                return self.output.say(&request.answer(Ok(result(
                    &pages::language(),
                    None,
                    false,
                ))));
            }
            Ok(words) => words,
            Err(diagnostic) => return self.output.say(&request.answer(Ok(refused(&diagnostic)))),
        };
        if self.calls.len() >= CALLS_MAX {
            let message = say!("{} calls are in progress", CALLS_MAX.to_string());
            let error = Diagnostic::error("run-in-progress", message);
            let error = error.help(say!("wait for one of them, then call the tool again"));
            return self.output.say(&request.answer(Ok(refused(&error))));
        }
        let running = Arc::new(Running::of(tool));
        self.calls.insert(request.id.to_string(), Arc::clone(&running));
        let (site, output) = (Arc::clone(&self.site), Arc::clone(&self.output));
        let tell = self.tell.clone();
        std::thread::spawn(move || {
            let called =
                || site.call(tool, &words, (&*running, &progress_of(&request, &output, &tell)));
            let result = catch_unwind(AssertUnwindSafe(called)).unwrap_or_else(|_| bug());
            if !running.is_cancelled() {
                output.say(&request.answer(Ok(result)));
            }
            let _ = tell.send(Heard::Over(request.id));
        });
    }
}

/// Notifies the client of the progress of a call, if requested.
fn progress_of(
    request: &Request,
    output: &Output,
    tell: &Sender<Heard>,
) -> impl Fn(f64, &str) + Sync {
    let token = request.progress_token();
    // Progress must increase, and is not sent to a client that is gone.
    let state = Mutex::new((-1.0, tell.clone()));
    move |seconds, text| {
        let Some(token) = &token else { return };
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        state.0 = f64::max(seconds, state.0 + 0.001);
        output.say(&progress(token, (state.0 * 1000.0).round() / 1000.0, text));
        if output.is_gone() {
            let _ = state.1.send(Heard::Closed);
        }
    }
}

fn bug() -> Value {
    let message = say!("throng has a bug: {}", "tools/call");
    let help = say!("please report this line with the command and the scenario");
    refused(&Diagnostic::error("bug", message).help(help))
}

fn capabilities() -> Value {
    json!({"tools": {}, "resources": {}})
}

fn initialized(request: &Request) -> Value {
    let asked = request.parameters.get("protocolVersion").and_then(Value::as_str);
    json!({
        "protocolVersion": negotiated(asked),
        "capabilities": capabilities(),
        "serverInfo": server(),
        "instructions": instructions(),
    })
}

fn discovered() -> Value {
    json!({
        "supportedVersions": [MODERN],
        "capabilities": capabilities(),
        "instructions": instructions(),
    })
}

fn instructions() -> String {
    say!(
        "throng is a load-testing tool. To test a service, call the tool `language` or read the \
         resource {}, write a scenario, then call `check`, `try` and `run` with it. After a run, \
         `why` shows what went wrong. Load only services that the user owns.",
        pages::LANGUAGE_URI
    )
    .spoken()
}
