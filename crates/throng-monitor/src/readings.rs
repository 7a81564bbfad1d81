//! The readings of this host for clients: `throng monitor`. Queues are read on a separate thread;
//! the rest is read for each client, so figures are current.

use std::io;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use throng_base::{Clock, Said, Time};
use throng_host::Root;
use throng_host::probe::listeners::{LOOK_EVERY, Listeners};
use throng_host::probe::{Figures, Format, Probe, Wanted};

use crate::services::{Service, Services};

/// Clients within this time of each other get the same figures, so that several cost no more than
/// one.
const SHARED_FOR: Duration = Duration::from_millis(400);

/// What is read in addition to the host itself.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    pub processes: Vec<Wanted>,
    /// The ports whose queues are read; all if empty.
    pub ports: Vec<u16>,
    pub services: Vec<Service>,
}

/// A host that is monitored until this is dropped.
pub struct Readings {
    clock: Clock,
    host: Mutex<HostReadings>,
    listeners: Option<Arc<Mutex<Listeners>>>,
    services: Services,
    _stop: Sender<()>,
}

struct HostReadings {
    probe: Probe,
    last: Option<(Time, Figures)>,
    count: u64,
}

impl Readings {
    /// Starts monitoring. If the kernel does not report its sockets, everything else is read, and
    /// the second value is the reason. `tell` receives state changes of services, from other
    /// threads.
    pub fn begin(
        asked: Asked,
        clock: &Clock,
        throng_version: &str,
        tell: impl Fn(Said) + Send + Sync + 'static,
    ) -> (Readings, Option<Said>) {
        let probe = Probe::new(Root::default(), throng_version, asked.processes);
        let (stop, stopped) = channel::<()>();
        let listeners = Listeners::open(Root::default(), clock.clone(), asked.ports);
        let (listeners, trouble) = match listeners.and_then(first_look) {
            Ok(listeners) => (Some(Arc::new(Mutex::new(listeners))), None),
            Err(error) => (None, Some(Said::of_error(&error))),
        };
        if let Some(listeners) = listeners.clone() {
            let clock = clock.clone();
            let work = move || {
                let mut due = clock.now() + LOOK_EVERY;
                while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(due - clock.now()) {
                    // A missing response is a missed reading, which is counted.
                    drop(lock(&listeners).look());
                    due = (due + LOOK_EVERY).max(clock.now());
                }
            };
            drop(std::thread::Builder::new().name("listeners".into()).spawn(work));
        }
        let host = HostReadings { probe, last: None, count: 0 };
        let services = Services::begin(asked.services, clock, tell);
        let (clock, host) = (clock.clone(), Mutex::new(host));
        (Readings { clock, host, listeners, services, _stop: stop }, trouble)
    }

    /// All current values; maxima are those of a window that ends now.
    pub fn text(&self, window: Duration, format: Format) -> String {
        let mut figures = lock(&self.host).figures(&self.clock);
        if let Some(listeners) = &self.listeners {
            lock(listeners).tell(window, &mut figures);
        }
        self.services.tell(&mut figures);
        figures.text(format, &self.services.text(format))
    }
}

fn first_look(mut listeners: Listeners) -> io::Result<Listeners> {
    listeners.look()?;
    Ok(listeners)
}

impl HostReadings {
    fn figures(&mut self, clock: &Clock) -> Figures {
        let now = clock.now();
        if let Some((at, figures)) = &self.last
            && now.since(*at) < SHARED_FOR
        {
            return figures.clone();
        }
        let mut figures = self.probe.read();
        self.count += 1;
        figures.add("throng_monitor_readings_total", &[], self.count as f64);
        self.last = Some((now, figures.clone()));
        figures
    }
}

/// The data stays valid after a panic of another thread.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use crate::exposition::read;

    #[test]
    fn readings_are_parsed_back_and_shared_by_readers() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let asked = Asked {
            processes: vec!["1".parse().expect("a number")],
            ports: vec![port],
            services: Vec::new(),
        };
        let (readings, trouble) = Readings::begin(asked, &Clock::simulated(), "0.1.0", drop);
        assert_eq!(trouble, None);
        for format in [Format::Text, Format::OpenMetrics] {
            let text = readings.text(Duration::from_secs(5), format);
            let read = read(&text, |_, _| true);
            assert_eq!(read.unreadable, 0, "{text}");
            assert!(text.ends_with("# EOF\n"));
            let sample = |name: &str| {
                let found = read.samples.iter().find(|sample| sample.name == name);
                found.unwrap_or_else(|| panic!("no {name}: {text}"))
            };
            assert!(sample("throng_listen_drops_total").is_counter);
            assert!(sample("node_netstat_TcpExt_ListenOverflows").is_counter);
            assert!(!sample("node_netstat_Tcp_CurrEstab").is_counter);
            assert!(sample("throng_listen_queue_limit").value >= 1.0);
            assert_eq!(sample("throng_monitor_readings_total").value, 1.0, "shared");
        }
    }
}
