//! `throng monitor`: this host for whoever tests a service on it. It only reads, does nothing that
//! a reader asks for, stands back behind everything else, and stops when nobody reads any more.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use rustls::ServerConfig;
use throng_base::units::parse_duration;
use throng_base::{Clock, Diagnostic, Exit, Said, Time};
use throng_bus::keys::Token;
use throng_bus::nats::Nats;
use throng_bus::{Bus as _, Link as BusLink};
use throng_engine::pem;
use throng_fleet::monitor::Question;
use throng_fleet::wire::names;
use throng_host::probe::Format;
use throng_host::probe::listeners::WINDOW_MAX;
use throng_host::set_nice;
use throng_monitor::{Asked, Readings};
use throng_run::fleet::bus;
use throng_run::live::link::{Access, Link};
use throng_terminal::Screen;
use throng_terminal::signals::stop_requested;
use throng_web::server::{Connections, in_thread};
use throng_web::{Reply, Request};

use crate::Ended;
use crate::agent::token;
use crate::arguments::MonitorArguments;
use crate::fleet;

/// Of an output that nothing reads.
const IDLE_MAX: Duration = Duration::from_secs(60);
/// Before its first one: whoever starts it goes on to prepare a run.
const FIRST_READER_MAX: Duration = Duration::from_secs(600);
/// Of maxima, where a reader does not say it: as long as a scenario's `monitor` waits by default.
const WINDOW: Duration = Duration::from_secs(5);
/// With 19, a reading took up to 1.2 s beside 12 threads that always compute, on 2 cores; with 10,
/// at most 0.05 s, and that is when readings matter most.
const NICE: i32 = 10;
const EVERY_MIN: Duration = Duration::from_millis(100);

pub(crate) fn monitor(arguments: MonitorArguments) -> Ended {
    let errors = Screen::errors(false);
    // What is already lower stays as it is.
    drop(set_nice(NICE));
    let every = arguments.every;
    if arguments.stdio && !(EVERY_MIN..=WINDOW_MAX).contains(&every) {
        return Err(errors.refused(
            &Diagnostic::error("bad-value", say!("--every must be between 100 ms and 60 s"))
                .help(say!("write a duration, such as `--every 1s`")),
        ));
    }
    // Before any thread begins: a token that was pasted is taken out of the list of processes.
    let token =
        arguments.join.as_deref().map(token).transpose().map_err(|told| errors.refused(&told))?;
    let link = match arguments.stdio || token.is_some() {
        true => None,
        false => {
            let link = Link::take(&arguments.listen, "/metrics", Access::TokenFromOutside);
            let told = |cause| errors.refused(&not_listening(&arguments.listen, &cause));
            Some(link.map_err(told)?)
        }
    };
    let tls = arguments.cert.as_deref().zip(arguments.key.as_deref()).map(tls).transpose();
    let tls = tls.map_err(|cause| {
        let message = say!("the certificate in --cert cannot be used: {cause}");
        errors.refused(&Diagnostic::error("monitor-failed", message))
    })?;
    let clock = Clock::start();
    let services = arguments.services(std::env::var("REDISCLI_AUTH").ok().as_deref());
    let twice = services
        .iter()
        .enumerate()
        .find(|(at, service)| services[..*at].iter().any(|other| other.name() == service.name()));
    if let Some((_, service)) = twice {
        let message = say!("two sources are named `{}`", service.name());
        let told = Diagnostic::error("duplicate-name", message);
        return Err(errors.refused(
            &told.help(say!("give each source only once, and each command a unique name")),
        ));
    }
    let asked = Asked { processes: arguments.processes, ports: arguments.ports, services };
    let tell = move |text| errors.say(text);
    let (readings, trouble) = Readings::begin(asked, &clock, env!("CARGO_PKG_VERSION"), tell);
    if let Some(cause) = trouble {
        errors.say(say!(
            "warning: listening sockets cannot be read ({cause}); all other values are available"
        ));
    }
    let idle = Idle::new(&clock, (!arguments.stay).then_some(arguments.idle));
    Ok(match (link, token) {
        (Some(link), _) => listen((link, tls), readings, idle, errors),
        (None, Some(token)) => join(token, &readings, &idle, errors),
        (None, None) => write(readings, &clock, every, errors),
    })
}

/// When readers came last, and for how long none may come.
#[derive(Clone)]
struct Idle {
    clock: Clock,
    max: Option<Duration>,
    /// Of the last reader; 0 before the first one.
    last: Arc<AtomicU64>,
}

impl Idle {
    fn new(clock: &Clock, max: Option<Duration>) -> Idle {
        Idle { clock: clock.clone(), max, last: Arc::default() }
    }

    fn seen(&self) {
        self.last.store(self.clock.now().as_nanos().max(1), Ordering::Relaxed);
    }

    fn is_over(&self) -> bool {
        self.max.is_some_and(|max| match self.last.load(Ordering::Relaxed) {
            0 => self.clock.now().since(Time::ZERO) > FIRST_READER_MAX.max(max),
            last => self.clock.now().since(Time(last)) > max,
        })
    }

    /// Until no reader has come for too long.
    async fn over(&self, errors: Screen) {
        while !self.is_over() {
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        errors.say(say!("stopped: there are no readers (--stay keeps it running)"));
    }
}

fn not_listening(address: &str, cause: &Said) -> Diagnostic {
    let message = say!("the monitor cannot listen on `{address}`");
    let told = Diagnostic::error("monitor-failed", message).note(say!("cause: {cause}"));
    told.help(say!("set {} to an address of this host and a free port", "--listen"))
}

/// What a server shows and proves, from two files of PEM.
fn tls((cert, key): (&Path, &Path)) -> Result<Arc<ServerConfig>, Said> {
    let (chain, key) = (pem::certificates(cert)?, pem::private_key(key)?);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let of = |error: rustls::Error| Said::of_others(error.to_string());
    let config = ServerConfig::builder_with_provider(provider);
    let config = config.with_safe_default_protocol_versions().map_err(of)?;
    let mut config = config.with_no_client_auth().with_single_cert(chain, key).map_err(of)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// Answers readers until it is stopped, or none comes any more.
fn listen(
    (link, tls): (Link, Option<Arc<ServerConfig>>),
    readings: Readings,
    idle: Idle,
    errors: Screen,
) -> Exit {
    let is_loopback = link.address().ip().is_loopback();
    let url = match tls {
        Some(_) => link.url.replacen("http:", "https:", 1),
        None => link.url.clone(),
    };
    errors.say(say!("metrics: {url}"));
    if !is_loopback && tls.is_some() {
        errors
            .say(say!("readers need this link's token, in the URL or as `Authorization: Bearer`"));
    } else if !is_loopback {
        errors.say(say!(
            "readers need this link's token, in the URL or as `Authorization: Bearer`; the \
             connection is not encrypted"
        ));
    }
    let Link { server, gate, .. } = link;
    let server = match tls {
        Some(tls) => server.secured(tls),
        None => server,
    };
    let readers = idle.clone();
    let answer = move |request: &Request| {
        if !gate.lets(request) {
            return refusal();
        }
        readers.seen();
        reply(request, &readings)
    };
    in_thread(async move {
        let answer = move |request: Request| std::future::ready(answer(&request));
        tokio::select! {
            () = stop_requested() => {}
            () = idle.over(errors) => {}
            _ = server.serve(Connections::default(), answer) => {}
        }
    });
    Exit::Success
}

/// Answers readers over the bus of a fleet until it is stopped, or none comes any more.
fn join(token: Token, readings: &Readings, idle: &Idle, errors: Screen) -> Exit {
    let (name, address) = (token.identity.name.clone(), token.identity.address);
    let answered = async {
        let bus = Nats::connect(token.identity)?;
        errors.say(say!("monitor `{}`: connecting to {address}", name.clone()));
        tokio::select! {
            () = stop_requested() => Ok(()),
            () = idle.over(errors) => Ok(()),
            why = watch(&bus, errors) => Err(why),
            ended = answer(&bus, &name, readings, idle) => ended,
        }
    };
    let runtime = match fleet::runtime() {
        Ok(runtime) => runtime,
        Err(diagnostic) => {
            errors.diagnostic(&diagnostic);
            return Exit::HostUnfit;
        }
    };
    match runtime.block_on(answered) {
        Ok(()) => Exit::Success,
        Err(why) => {
            let message = say!("monitor `{name}` cannot continue: {why}");
            let help = say!("ask the fleet's operator what has changed, or request a new token");
            errors.diagnostic(&Diagnostic::error("fleet-unfit", message).help(help));
            Exit::HostUnfit
        }
    }
}

/// Says how the connection is, until it will never come again.
async fn watch(bus: &Nats, errors: Screen) -> Said {
    let mut link = bus.link();
    let mut was_up = false;
    loop {
        let now = link.borrow_and_update().clone();
        let is_up = now == BusLink::Up;
        match now {
            BusLink::Up if was_up => errors.say(say!("the bus is available again")),
            BusLink::Up => errors.say(say!("joined; waiting for readers")),
            BusLink::Cut => errors.say(say!("the bus does not respond: retrying")),
            BusLink::Refused(why) => return why,
            BusLink::Begun => {}
        }
        was_up |= is_up;
        if link.changed().await.is_err() {
            return say!("the connection to the bus is permanently lost");
        }
    }
}

/// Answers each question; what is none is passed over.
async fn answer(bus: &Nats, name: &str, readings: &Readings, idle: &Idle) -> Result<(), Said> {
    let asked = bus.subscribe(&names::monitor(name)).await;
    let mut asked = asked.map_err(|error| bus::told(&error))?;
    while let Some(message) = asked.recv().await {
        let Some(question) = Question::from_bytes(&message.payload) else { continue };
        idle.seen();
        let text = readings.text(question.window().min(WINDOW_MAX), Format::Text);
        bus.publish(&names::reading(name), question.answer(&plain(&text)));
    }
    Err(say!("the connection to the bus is permanently lost"))
}

fn refusal() -> Reply {
    let text = "open the link that `throng monitor` printed, with its token and an address or \
                name of this host\n";
    Reply::text(403, text)
}

fn reply(request: &Request, readings: &Readings) -> Reply {
    match (request.method.as_str(), request.path.as_str()) {
        ("GET", "/metrics") => {
            let window = match request.asked("window").map(parse_duration) {
                None => WINDOW,
                Some(Ok(window)) if window <= WINDOW_MAX => window,
                Some(_) => return Reply::text(400, "`window` is a time of at most 60s\n"),
            };
            let format = Format::accepted(request.header("accept").unwrap_or_default());
            Reply::new(200, format.content_type(), readings.text(window, format))
        }
        ("GET", "/") => Reply::text(200, "the figures of this host are at /metrics\n"),
        ("GET", _) => Reply::text(404, "the figures of this host are at /metrics\n"),
        _ => Reply::text(405, "only GET: nothing can be changed here\n"),
    }
}

/// Writes readings to standard output until the other end is closed, or takes nothing any more.
#[allow(clippy::disallowed_methods)] // Readings are due at times.
fn write(readings: Readings, clock: &Clock, every: Duration, errors: Screen) -> Exit {
    let (tell, told) = channel();
    let clock = clock.clone();
    let work = move || {
        let mut due = clock.now();
        loop {
            let text = plain(&readings.text(every, Format::Text));
            let mut output = std::io::stdout().lock();
            let written = output.write_all(text.as_bytes()).and_then(|()| output.flush());
            if written.is_err() || tell.send(()).is_err() {
                return;
            }
            due = (due + every).max(clock.now());
            std::thread::sleep(due - clock.now());
        }
    };
    let name = std::thread::Builder::new().name("readings".into());
    if let Err(error) = name.spawn(work) {
        let message = say!("the monitor cannot start a thread: {}", Said::of_error(&error));
        errors.diagnostic(&Diagnostic::error("host-unfit", message));
        return Exit::HostUnfit;
    }
    loop {
        match told.recv_timeout(IDLE_MAX + every) {
            Ok(()) => {}
            Err(RecvTimeoutError::Disconnected) => return Exit::Success,
            Err(RecvTimeoutError::Timeout) => {
                errors
                    .say(say!("stopped: nothing has read the output for {} s", IDLE_MAX.as_secs()));
                return Exit::Success;
            }
        }
    }
}

/// Without what programs do not need again with each reading.
fn plain(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with("# HELP "));
    lines.flat_map(|line| [line, "\n"]).collect()
}
