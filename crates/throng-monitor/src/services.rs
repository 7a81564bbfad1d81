//! Services of this host that export figures in addition to the kernel's: Redis, nginx, HAProxy,
//! any Prometheus endpoint, and commands given to the monitor. A thread polls each of them once per
//! second while there are readers. One that hangs delays no other.

mod command;
pub(crate) mod figure;
mod haproxy;
mod nginx;
mod redis;
mod socket;

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use throng_base::{Clock, Said, Time};
use throng_host::probe::{Figures, Format};

use crate::exposition;
use crate::scrape::Page;
use command::Shell;
use figure::Figure;
use redis::Redis;

const EVERY: Duration = Duration::from_secs(1);
/// The timeout of a response, or of a command.
const ASK_MAX: Duration = Duration::from_secs(3);
/// Older figures are not reported.
const AGE_MAX: Duration = Duration::from_secs(10);
/// Without a reader for this long, polling pauses.
const READ_WITHIN: Duration = Duration::from_secs(60);
/// The maximum per service; the first ones count.
const FIGURES_MAX: usize = 500;

/// The service to poll.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Service {
    /// Host and port or a socket's path, and the credentials for AUTH.
    Redis {
        place: String,
        password: Option<String>,
    },
    /// The URL of `stub_status`.
    Nginx {
        url: String,
    },
    /// A socket's path, or the URL of the statistics as CSV.
    Haproxy {
        place: String,
    },
    Prometheus {
        url: String,
    },
    /// A shell command from the monitor's own command line.
    Command {
        name: String,
        line: String,
    },
}

impl Service {
    /// Its name in labels and messages: no credentials, no scheme.
    pub fn name(&self) -> String {
        let place = match self {
            Service::Command { name, .. } => return name.clone(),
            Service::Redis { place, .. } | Service::Haproxy { place } => place,
            Service::Nginx { url } | Service::Prometheus { url } => url,
        };
        let place = place.split_once("://").map_or(place.as_str(), |(_, rest)| rest);
        let (host, path) = place.split_at(place.find('/').unwrap_or(place.len()));
        let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
        format!("{host}{}", path.split('?').next().unwrap_or_default())
    }
}

/// Services that are polled until this is dropped.
pub(crate) struct Services {
    clock: Clock,
    all: Vec<Known>,
    /// Time of the last read.
    read: Arc<Mutex<Time>>,
    _stop: Vec<Sender<()>>,
}

struct Known {
    name: String,
    last: Arc<Mutex<Last>>,
}

/// The last result of a service, and its time.
#[derive(Default)]
struct Last {
    at: Option<Time>,
    figures: Vec<Figure>,
    is_down: bool,
}

impl Services {
    /// `tell` is called when a service cannot be read and when it recovers, once each.
    pub(crate) fn begin(
        services: Vec<Service>,
        clock: &Clock,
        tell: impl Fn(Said) + Send + Sync + 'static,
    ) -> Services {
        let tell: Arc<dyn Fn(Said) + Send + Sync> = Arc::new(tell);
        let read = Arc::new(Mutex::new(clock.now()));
        let (mut all, mut stop) = (Vec::new(), Vec::new());
        for service in services {
            let (sender, stopped) = channel();
            let (name, last) = (service.name(), Arc::<Mutex<Last>>::default());
            all.push(Known { name: name.clone(), last: Arc::clone(&last) });
            let (clock, tell, read) = (clock.clone(), Arc::clone(&tell), Arc::clone(&read));
            let work = move || {
                let asking = Asking { name, source: Source::new(service), last, clock };
                asking.work(&stopped, &read, tell.as_ref());
            };
            drop(std::thread::Builder::new().name("service".into()).spawn(work));
            stop.push(sender);
        }
        Services { clock: clock.clone(), all, read, _stop: stop }
    }

    /// Which of them can be read; a service without a result so far is in neither list.
    pub(crate) fn tell(&self, figures: &mut Figures) {
        for known in &self.all {
            let last = lock(&known.last);
            if last.at.is_some() || last.is_down {
                let is_up = f64::from(u8::from(!last.is_down));
                figures.add("throng_source_up", &[("source", &known.name)], is_up);
            }
        }
    }

    /// The lines of all results of the last seconds.
    pub(crate) fn text(&self, format: Format) -> String {
        let now = self.clock.now();
        *lock(&self.read) = now;
        let all: Vec<_> = self.all.iter().map(|it| (it.name.as_str(), lock(&it.last))).collect();
        let is_fresh = |last: &Last| last.at.is_some_and(|at| now.since(at) <= AGE_MAX);
        let fresh = all.iter().filter(|(_, last)| !last.is_down && is_fresh(last));
        let figures = fresh.flat_map(|(name, last)| last.figures.iter().map(move |it| (*name, it)));
        figure::text(&figures.collect::<Vec<_>>(), format)
    }
}

/// A service with its state between two polls.
enum Source {
    Redis(Redis),
    Nginx(Page),
    HaproxySocket(String),
    HaproxyPage(Page),
    Prometheus(Page),
    Shell(Shell),
}

impl Source {
    fn new(service: Service) -> Source {
        let page = |url: &str| Page::new(url, &[], ASK_MAX);
        match service {
            Service::Redis { place, password } => {
                Source::Redis(Redis { place, password, socket: None })
            }
            Service::Nginx { url } => Source::Nginx(page(&url)),
            Service::Haproxy { place } if place.contains("://") => {
                Source::HaproxyPage(page(&place))
            }
            Service::Haproxy { place } => Source::HaproxySocket(place),
            Service::Prometheus { url } => Source::Prometheus(page(&url)),
            Service::Command { line, .. } => Source::Shell(Shell { line }),
        }
    }

    fn ask(&mut self, clock: &Clock) -> Result<Vec<Figure>, Said> {
        match self {
            Source::Redis(redis) => redis.ask(clock),
            Source::Nginx(page) => nginx::figures(&page.text()?),
            Source::HaproxySocket(path) => haproxy::ask(path, clock),
            Source::HaproxyPage(page) => haproxy::figures(&page.text()?),
            Source::Prometheus(page) => {
                let figures = prometheus(&page.text()?);
                match figures.is_empty() {
                    true => Err(say!("its response is not in the Prometheus text format")),
                    false => Ok(figures),
                }
            }
            Source::Shell(shell) => shell.ask(clock),
        }
    }
}

/// The samples of a text, unchanged.
fn prometheus(text: &str) -> Vec<Figure> {
    let read = exposition::read(text, |_, _| true);
    let figure = |sample: exposition::Sample<'_>| {
        let told = Figure::new(sample.name, sample.is_counter, sample.value);
        sample.labels.iter().fold(told, |told, (name, value)| told.with(name, value))
    };
    read.samples.into_iter().filter(|it| it.value.is_finite()).map(figure).collect()
}

/// The parameters of a polling thread.
struct Asking {
    name: String,
    source: Source,
    last: Arc<Mutex<Last>>,
    clock: Clock,
}

impl Asking {
    fn work(mut self, stopped: &Receiver<()>, read: &Mutex<Time>, tell: &dyn Fn(Said)) {
        let mut due = self.clock.now();
        loop {
            if self.clock.now().since(*lock(read)) <= READ_WITHIN {
                self.ask(tell);
            }
            due = (due + EVERY).max(self.clock.now());
            match stopped.recv_timeout(due - self.clock.now()) {
                Err(RecvTimeoutError::Timeout) => {}
                _ => return,
            }
        }
    }

    fn ask(&mut self, tell: &dyn Fn(Said)) {
        let at = self.clock.now();
        let told = self.source.ask(&self.clock);
        let mut last = lock(&self.last);
        let was_down = std::mem::replace(&mut last.is_down, told.is_err());
        let name = &self.name;
        match told {
            Ok(mut figures) => {
                figures.truncate(FIGURES_MAX);
                (last.at, last.figures) = (Some(at), figures);
                if was_down {
                    tell(say!("{name} can be read again"));
                }
            }
            Err(detail) if !was_down => {
                tell(say!(
                    "warning: {name} cannot be read: {detail}; all other values are \
                     available"
                ));
            }
            Err(_) => {}
        }
    }
}

/// The data stays valid after a panic of another thread.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
