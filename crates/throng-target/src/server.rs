//! A running server: its threads, what they share, and how it is started and stopped.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use throng_base::{Clock, Time};
use tokio::runtime::Builder;

use crate::board::{Board, Stats, lock};
use crate::http;
use crate::options::{Kind, Options, Seats};
use crate::session::Role;
use crate::stream;
use crate::system::{self, Bell};
use crate::worker::{self, Seat};

/// What all workers of a server share.
pub(crate) struct Setup {
    pub(crate) kind: Kind,
    pub(crate) options: Options,
    pub(crate) clock: Clock,
    pub(crate) board: Board,
    /// The answer to a plain GET, ready made; empty when it is too large for that.
    pub(crate) default_answer: Vec<u8>,
    pub(crate) tls: Option<Arc<rustls::ServerConfig>>,
    /// Wakes each worker, the admin's last. Dropped by the thread that made them.
    pub(crate) bells: Vec<Bell>,
    /// What each worker has still to broadcast.
    mail: Vec<Mutex<Vec<Mail>>>,
    /// How many broadcasts were posted.
    posted: AtomicU64,
    stopped: AtomicBool,
    shortage_told: AtomicBool,
}

/// The number and the body of a broadcast.
type Mail = (u64, Arc<[u8]>);

/// A server that runs until it is stopped or dropped.
pub struct Running {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Where it tells its statistics, if that was asked for.
    pub admin: Option<SocketAddr>,
    setup: Arc<Setup>,
    threads: Vec<JoinHandle<()>>,
}

/// Starts a server. It listens when this returns.
///
/// # Errors
/// Impossible options, an address that cannot be bound, a limit of the system.
pub fn start(kind: Kind, options: Options) -> io::Result<Running> {
    options.check(kind)?;
    worker::check_free(options.listen)?;
    let cores = thread::available_parallelism()?.get();
    let seats = Seats::new(&options, cores, system::raise_descriptor_limit()?);
    if seats.own_tables {
        make_global_descriptors()?;
    }
    let setup = Arc::new(Setup::new(kind, options, seats.workers)?);
    let mut running =
        Running { listen: setup.options.listen, admin: None, setup, threads: Vec::new() };
    let role = match kind {
        Kind::Http => Role::Http,
        Kind::Echo => Role::Echo,
        Kind::Im { .. } => Role::Im,
    };
    for index in 0..seats.workers {
        running.listen = running.seat(index, role, running.listen, seats)?;
    }
    if let Some(address) = running.setup.options.admin {
        // The admin's thread keeps the table of the thread that made the bells, and rings them.
        let alone = Seats { workers: 1, own_tables: false };
        running.admin = Some(running.seat(seats.workers, Role::Admin, address, alone)?);
    }
    Ok(running)
}

impl Running {
    /// What was served so far.
    pub fn stats(&self) -> Stats {
        self.setup.board.stats()
    }

    /// Sets all counts back; what is open stays open.
    pub fn reset(&self) {
        self.setup.board.reset();
    }

    /// The age of the server; its stalls are counted from its start.
    pub fn age(&self) -> Duration {
        self.setup.clock.now() - Time::ZERO
    }

    /// How many threads serve.
    pub fn workers(&self) -> usize {
        self.setup.bells.len() - 1
    }

    /// Sends a message to all who are logged in to an `im` server.
    pub fn broadcast(&self, body: &[u8]) {
        self.setup.broadcast(body);
    }

    /// Closes all connections, waits for the threads and tells what was served.
    pub fn stop(mut self) -> Stats {
        self.end();
        self.stats()
    }

    /// Starts a worker and waits until it listens.
    fn seat(
        &mut self,
        index: usize,
        role: Role,
        address: SocketAddr,
        seats: Seats,
    ) -> io::Result<SocketAddr> {
        let (ready, listens) = mpsc::sync_channel(1);
        let seat = Seat {
            setup: Arc::clone(&self.setup),
            index,
            role,
            address,
            own_table: seats.own_tables,
            shared_address: seats.workers > 1,
        };
        let name = format!("target-{index}");
        let thread = thread::Builder::new().name(name).spawn(move || worker::run(seat, &ready))?;
        self.threads.push(thread);
        listens.recv().map_err(|_| io::Error::other("a worker ended before it listened"))?
    }

    fn end(&mut self) {
        self.setup.stopped.store(true, Ordering::Release);
        self.setup.bells.iter().for_each(Bell::ring);
        for thread in self.threads.drain(..) {
            // A worker that panicked has said so; the others have still to be waited for.
            let _ = thread.join();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running")
            .field("kind", &self.setup.kind)
            .field("listen", &self.listen)
            .field("admin", &self.admin)
            .finish_non_exhaustive()
    }
}

impl Setup {
    pub(crate) fn new(kind: Kind, options: Options, workers: usize) -> io::Result<Setup> {
        let names = vec!["localhost".to_owned(), options.listen.ip().to_string()];
        Ok(Setup {
            kind,
            tls: options.tls.then(|| stream::self_signed(names)).transpose()?,
            clock: Clock::start(),
            board: Board::new(workers),
            default_answer: http::default_answer(options.body),
            options,
            bells: (0..=workers).map(|_| Bell::new()).collect::<io::Result<_>>()?,
            mail: (0..=workers).map(|_| Mutex::default()).collect(),
            posted: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
            shortage_told: AtomicBool::new(false),
        })
    }

    /// Posts a broadcast to all workers. Only for threads with the table in which the bells were
    /// made: the starter's and the admin's.
    pub(crate) fn broadcast(&self, body: &[u8]) {
        let number = self.posted.fetch_add(1, Ordering::Relaxed) + 1;
        let body: Arc<[u8]> = body.into();
        for (mail, bell) in self.mail.iter().zip(&self.bells) {
            lock(mail).push((number, Arc::clone(&body)));
            bell.ring();
        }
    }

    pub(crate) fn take_mail(&self, worker: usize) -> Vec<Mail> {
        std::mem::take(&mut *lock(&self.mail[worker]))
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    pub(crate) fn tell(&self, message: &str) {
        if let Some(told) = &self.options.told {
            told(message);
        }
    }

    /// Tells once that connections cannot be accepted.
    pub(crate) fn tell_shortage(&self, error: &io::Error) {
        if !self.shortage_told.swap(true, Ordering::Relaxed) {
            self.tell(&format!(
                "connections wait to be accepted, because a worker is at a limit of this host: \
                 {error}; start with room for more connections, or raise the limit"
            ));
        }
    }
}

/// Where tokio's signals are compiled in, every runtime needs a descriptor that the first runtime
/// of the process makes. It must be there before tables part. On a thread of its own, because a
/// runtime cannot be dropped inside another.
fn make_global_descriptors() -> io::Result<()> {
    let maker = thread::spawn(|| Builder::new_current_thread().enable_io().build().map(drop));
    maker.join().unwrap_or_else(|_| Err(io::Error::other("no runtime can be made")))
}
