//! `throng monitor`: serves the metrics of this host to runs on other hosts: over HTTP, over the
//! bus of a fleet, or on standard output. It changes nothing, has a low priority, and stops when
//! there are no readers.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use clap::Args;
use throng_base::flags::duration;
use throng_base::units::parse_duration;
use throng_base::{Clock, Diagnostic, Exit, Said, Time};
use throng_bus::keys::Token;
use throng_bus::nats::Nats;
use throng_bus::{Bus as _, Link as BusLink};
use throng_engine::pem;
use throng_fleet::monitor::Question;
use throng_fleet::wire::names;
use throng_host::probe::listeners::WINDOW_MAX;
use throng_host::probe::{Format, Wanted};
use throng_host::set_nice;
use throng_monitor::{Asked, Readings, Service};
use throng_web::server::{Connections, ServerConfig, in_thread, tls_config};
use throng_web::{Reply, Request};

use crate::Operator;
use crate::fleet::bus;
use crate::live::link::{Access, Link};

/// Timeout of a blocked output.
const IDLE_MAX: Duration = Duration::from_secs(60);
/// Timeout before the first reader, which may still prepare its run.
const FIRST_READER_MAX: Duration = Duration::from_secs(600);
/// Window of maxima if the reader does not set one: the default interval of a scenario's `monitor`.
const WINDOW: Duration = Duration::from_secs(5);
/// With niceness 19, a reading took up to 1.2 s beside 12 busy threads on 2 cores; with 10, at most
/// 0.05 s. Readings matter most on a busy host.
const NICE: i32 = 10;
const EVERY_MIN: Duration = Duration::from_millis(100);

/// What is read, and how it is served.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n\
     \x20 throng monitor --process nginx --port 8080\n\
     \x20 throng monitor --listen 10.0.0.5:9465       other hosts need the token of the link\n\
     \x20 ssh shop-1 throng monitor --stdio           readings on standard output\n\
     \x20 throng monitor --join shop-1.token          read over the bus of a fleet\n\
     \n\
     It does not change the host, and never reads command lines or environment variables. \
     docs/monitor.md lists all series.")]
pub struct MonitorOptions {
    /// Address for `GET /metrics`; use a non-loopback address for other hosts, which need the token
    /// of the printed link
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = "127.0.0.1:9465",
        conflicts_with = "stdio"
    )]
    pub listen: String,
    /// Serve over TLS with this certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "key", conflicts_with = "stdio")]
    pub cert: Option<PathBuf>,
    /// Private key for --cert (PEM)
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub key: Option<PathBuf>,
    /// Write the readings to standard output instead
    #[arg(long)]
    pub stdio: bool,
    /// Time between two readings on standard output
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "1s", requires = "stdio")]
    pub every: Duration,
    /// Join a fleet, so that its runs can read this host over the bus: a file with the token from
    /// `throng fleet token NAME`, `-` for standard input, or the token itself
    #[arg(long, value_name = "TOKEN", conflicts_with_all = ["stdio", "listen", "cert"])]
    pub join: Option<String>,
    /// Watch the processes with this name, or the process with this ID; may be given more than once
    #[arg(long = "process", value_name = "NAME|PID", value_parser = wanted)]
    pub processes: Vec<Wanted>,
    /// Watch only the listening sockets of this port; may be given more than once. Default: all
    /// listening sockets
    #[arg(long = "port", value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub ports: Vec<u16>,
    /// Read `INFO` of this Redis server; a password is taken from REDISCLI_AUTH
    #[arg(long, value_name = "HOST:PORT|SOCKET", value_parser = redis)]
    pub redis: Vec<String>,
    /// Read the `stub_status` page of nginx
    #[arg(long, value_name = "URL", value_parser = url)]
    pub nginx: Vec<String>,
    /// Read HAProxy's statistics: from its socket, or from the URL of its page with `;csv`
    #[arg(long, value_name = "SOCKET|URL", value_parser = haproxy)]
    pub haproxy: Vec<String>,
    /// Read a Prometheus endpoint on this host
    #[arg(long, value_name = "URL", value_parser = url)]
    pub prometheus: Vec<String>,
    /// Run this command once per second; it must print a number, or metrics in the Prometheus
    /// text format
    #[arg(long = "command", value_name = "NAME=COMMAND", value_parser = command)]
    pub commands: Vec<(String, String)>,
    /// Stop this long after the last request
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "60s")]
    #[arg(conflicts_with_all = ["stdio", "stay"])]
    pub idle: Duration,
    /// Run until stopped, even without readers
    #[arg(long, conflicts_with = "stdio")]
    pub stay: bool,
}

impl MonitorOptions {
    /// The services to read in addition to the host. `password` is for Redis.
    fn services(&self, password: Option<&str>) -> Vec<Service> {
        let redis = |place: &String| Service::Redis {
            place: place.clone(),
            password: password.map(str::to_string),
        };
        let commands = self.commands.iter().cloned();
        { self.redis.iter().map(redis) }
            .chain(self.nginx.iter().cloned().map(|url| Service::Nginx { url }))
            .chain(self.haproxy.iter().cloned().map(|place| Service::Haproxy { place }))
            .chain(self.prometheus.iter().cloned().map(|url| Service::Prometheus { url }))
            .chain(commands.map(|(name, line)| Service::Command { name, line }))
            .collect()
    }
}

fn redis(text: &str) -> Result<String, String> {
    let is_address = text.rsplit_once(':').is_some_and(|(host, port)| {
        !host.is_empty() && !host.contains('/') && port.parse::<u16>().is_ok()
    });
    match text.starts_with('/') || is_address {
        true => Ok(text.to_string()),
        false => Err(say!(
            "write an address or a path, such as `127.0.0.1:6379` or \
             `/run/redis.sock`"
        )
        .spoken()),
    }
}

fn url(text: &str) -> Result<String, String> {
    match ["http://", "https://"].iter().any(|scheme| text.starts_with(scheme)) {
        true => Ok(text.to_string()),
        false => Err(say!("write a URL, such as `http://127.0.0.1:8080/metrics`").spoken()),
    }
}

fn haproxy(text: &str) -> Result<String, String> {
    if text.starts_with('/') || url(text).is_ok() {
        return Ok(text.to_string());
    }
    let help = say!(
        "write a path or a URL, such as `/run/haproxy/admin.sock` or \
         `http://127.0.0.1:8404/stats;csv`"
    );
    Err(help.spoken())
}

/// Splits an option into a name for labels and a shell command.
fn command(text: &str) -> Result<(String, String), String> {
    let (name, line) = text.split_once('=').unwrap_or_default();
    let is_name = !name.is_empty() && name.len() <= 64 && !name.contains(char::is_control);
    match is_name && !line.trim().is_empty() {
        true => Ok((name.to_string(), line.to_string())),
        false => Err(say!("write a name and a command, such as `queue='mailq | wc -l'`").spoken()),
    }
}

fn wanted(text: &str) -> Result<Wanted, String> {
    text.parse::<Wanted>().map_err(|reason| reason.spoken())
}

/// Serves until the operator stops it or readers stop. `tell` passes a message to the operator from
/// any thread.
///
/// # Errors
/// An option is invalid, or the address cannot be used.
pub fn monitor(
    options: MonitorOptions,
    token: Option<Token>,
    errors: &dyn Operator,
    tell: impl Fn(Said) + Send + Sync + 'static,
) -> Result<Exit, Box<Diagnostic>> {
    // Keep a higher niceness.
    drop(set_nice(NICE));
    let every = options.every;
    if options.stdio && !(EVERY_MIN..=WINDOW_MAX).contains(&every) {
        let told = Diagnostic::error("bad-value", say!("--every must be between 100 ms and 60 s"));
        return Err(told.help(say!("write a duration, such as `--every 1s`")).into());
    }
    let link = match options.stdio || token.is_some() {
        true => None,
        false => {
            let link = Link::take(&options.listen, "/metrics", Access::TokenFromOutside);
            Some(link.map_err(|cause| not_listening(&options.listen, &cause))?)
        }
    };
    let tls = options.cert.as_deref().zip(options.key.as_deref()).map(tls).transpose();
    let tls = tls.map_err(|cause| {
        let message = say!("the certificate in --cert cannot be used: {cause}");
        Diagnostic::error("monitor-failed", message)
    })?;
    let clock = Clock::start();
    let services = options.services(std::env::var("REDISCLI_AUTH").ok().as_deref());
    let twice = services
        .iter()
        .enumerate()
        .find(|(at, service)| services[..*at].iter().any(|other| other.name() == service.name()));
    if let Some((_, service)) = twice {
        let message = say!("two sources are named `{}`", service.name());
        let told = Diagnostic::error("duplicate-name", message);
        return Err(told
            .help(say!("give each source only once, and each command a unique name"))
            .into());
    }
    let asked = Asked { processes: options.processes, ports: options.ports, services };
    let (readings, trouble) = Readings::begin(asked, &clock, env!("CARGO_PKG_VERSION"), tell);
    if let Some(cause) = trouble {
        errors.say(say!(
            "warning: listening sockets cannot be read ({cause}); all other values are available"
        ));
    }
    let idle = Idle::new(&clock, (!options.stay).then_some(options.idle));
    Ok(match (link, token) {
        (Some(link), _) => listen((link, tls), readings, idle, errors),
        (None, Some(token)) => join(token, &readings, &idle, errors),
        (None, None) => write(readings, &clock, every, errors),
    })
}

/// The time of the last request, and the timeout.
#[derive(Clone)]
struct Idle {
    clock: Clock,
    max: Option<Duration>,
    /// Time of the last request; 0 before the first.
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

    /// Waits until the timeout has passed without a request.
    async fn over(&self, errors: &dyn Operator) {
        while !self.is_over() {
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        errors.say(say!("stopped: there are no readers (--stay keeps it running)"));
    }
}

fn not_listening(address: &str, cause: &Said) -> Box<Diagnostic> {
    let message = say!("the monitor cannot listen on `{address}`");
    let told = Diagnostic::error("monitor-failed", message).note(say!("cause: {cause}"));
    Box::new(told.help(say!("set {} to an address of this host and a free port", "--listen")))
}

/// The certificate and key of the server, from two PEM files.
fn tls((cert, key): (&Path, &Path)) -> Result<Arc<ServerConfig>, Said> {
    let (chain, key) = (pem::certificates(cert)?, pem::private_key(key)?);
    tls_config(chain, key).map_err(|error| Said::of_others(error.to_string()))
}

/// Serves readers over HTTP until it is stopped or idle.
fn listen(
    (link, tls): (Link, Option<Arc<ServerConfig>>),
    readings: Readings,
    idle: Idle,
    errors: &dyn Operator,
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
            () = errors.stop_requested() => {}
            () = idle.over(errors) => {}
            _ = server.serve(Connections::default(), answer) => {}
        }
    });
    Exit::Success
}

/// Serves readers over the bus of a fleet until it is stopped or idle.
fn join(token: Token, readings: &Readings, idle: &Idle, errors: &dyn Operator) -> Exit {
    let (name, address) = (token.identity.name.clone(), token.identity.address);
    let answered = async {
        let bus = Nats::connect(token.identity)?;
        errors.say(say!("monitor `{}`: connecting to {address}", name.clone()));
        tokio::select! {
            () = errors.stop_requested() => Ok(()),
            () = idle.over(errors) => Ok(()),
            why = watch(&bus, errors) => Err(why),
            ended = answer(&bus, &name, readings, idle) => ended,
        }
    };
    let ended = crate::runtime(errors).and_then(|runtime| {
        runtime.block_on(answered).map_err(|why| {
            let message = say!("monitor `{name}` cannot continue: {why}");
            let help = say!("ask the fleet's operator what has changed, or request a new token");
            errors.fail(&Diagnostic::error("fleet-unfit", message).help(help), Exit::HostUnfit)
        })
    });
    ended.map_or_else(|exit| exit, |()| Exit::Success)
}

/// Reports the state of the connection until the bus rejects it permanently.
async fn watch(bus: &Nats, errors: &dyn Operator) -> Said {
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

/// Replies to each request, and ignores invalid ones.
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

/// Writes readings to standard output until the reader closes it or stops reading.
#[allow(clippy::disallowed_methods)] // Waits between readings.
fn write(readings: Readings, clock: &Clock, every: Duration, errors: &dyn Operator) -> Exit {
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
        return errors.fail(&Diagnostic::error("host-unfit", message), Exit::HostUnfit);
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

/// Removes what programs do not need with every reading.
fn plain(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with("# HELP "));
    lines.flat_map(|line| [line, "\n"]).collect()
}
