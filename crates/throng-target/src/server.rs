//! A running server: its threads, their shared state, and how it starts and stops.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use throng_base::{Clock, Time};
use tokio::runtime::Builder;

use crate::chat;
use crate::door::Door;
use crate::faults::Faults;
use crate::http;
use crate::mail::{Envelope, Mailboxes};
use crate::mqtt::Broker;
use crate::options::{Options, TargetKind, Workers};
use crate::push::{self, post_by_worker};
use crate::queue::Capacity;
use crate::redis::{MirrorOptions, Ticket};
use crate::session::Role;
use crate::setup::Setup;
use crate::stats::{Stats, WorkerStats};
use crate::stream;
use crate::system;
use crate::worker::{self, WorkerPlace};

/// A server that runs until it is stopped or dropped.
pub struct Running {
    /// The address it listens on.
    pub listen: SocketAddr,
    /// The address for statistics, if requested.
    pub admin: Option<SocketAddr>,
    setup: Arc<Setup>,
    threads: Vec<JoinHandle<()>>,
}

/// Starts a server. It is listening when this returns.
///
/// # Errors
/// Options that are not valid, an address that cannot be bound, a system limit.
pub fn start(kind: TargetKind, options: Options) -> io::Result<Running> {
    options.check(kind)?;
    worker::check_free(options.listen)?;
    let cores = thread::available_parallelism()?.get();
    let descriptors = system::raise_descriptor_limit()?;
    let mut workers = Workers::new(&options, cores, descriptors);
    let parted = match workers.own_tables {
        true => prepare_own_tables()?,
        false => Ok(()),
    };
    workers.own_tables &= parted.is_ok();
    let setup = Arc::new(Setup::new(kind, options, workers.workers)?);
    let mut running =
        Running { listen: setup.options.listen, admin: None, setup, threads: Vec::new() };
    let role = match &running.setup.kind {
        TargetKind::Http => Role::Http,
        TargetKind::Echo => Role::Echo,
        TargetKind::Im => Role::Im,
        TargetKind::Chat => Role::Chat,
        TargetKind::Push => Role::Push,
        TargetKind::Mqtt => Role::Mqtt,
    };
    for index in 0..workers.workers {
        running.listen = running.place(index, role, running.listen, workers)?;
    }
    if let Some(address) = running.setup.options.admin {
        let alone = Workers { workers: 1, own_tables: false };
        running.admin = Some(running.place(workers.workers, Role::Admin, address, alone)?);
    }
    if let Err(error) = parted {
        running.setup.tell(&format!(
            "all connections share one table of {descriptors} descriptors, because unshare(2) \
             is not allowed here: {error}; raise `ulimit -n`, or allow unshare in the sandbox"
        ));
    }
    let threads = start_push(&running.setup)?;
    running.threads.extend(threads);
    Ok(running)
}

impl Running {
    /// What the server has served so far.
    pub fn stats(&self) -> Stats {
        self.setup.stats()
    }

    /// Resets all counts; connections stay open.
    pub fn reset(&self) {
        self.setup.reset();
    }

    /// The age of the server; its stalls are measured from its start.
    pub fn age(&self) -> Duration {
        self.setup.clock.now() - Time::ZERO
    }

    /// The number of threads.
    pub fn workers(&self) -> usize {
        self.setup.mailboxes.workers()
    }

    /// Sends a message to all users that are logged in to an `im` server.
    pub fn broadcast(&self, body: &[u8]) {
        self.setup.broadcast(body);
    }

    /// Closes all connections, waits for the threads and returns what was served.
    pub fn stop(mut self) -> Stats {
        self.end();
        self.stats()
    }

    /// Starts a worker and waits until it listens.
    fn place(
        &mut self,
        index: usize,
        role: Role,
        address: SocketAddr,
        workers: Workers,
    ) -> io::Result<SocketAddr> {
        let (ready, listens) = mpsc::sync_channel(1);
        let place = WorkerPlace {
            setup: Arc::clone(&self.setup),
            index,
            role,
            address,
            own_table: workers.own_tables,
            shared_address: workers.workers > 1,
        };
        let name = format!("target-{index}");
        let thread = thread::Builder::new().name(name).spawn(move || worker::run(place, &ready))?;
        self.threads.push(thread);
        listens.recv().map_err(|_| io::Error::other("a worker ended before it listened"))?
    }

    fn end(&mut self) {
        self.setup.stopped.store(true, Ordering::Release);
        self.setup.mailboxes.ring_all();
        self.setup.push.iter().for_each(push::Service::stop);
        for thread in self.threads.drain(..) {
            // A worker that panicked has reported it; the others must still be joined.
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
    pub(crate) fn new(kind: TargetKind, options: Options, workers: usize) -> io::Result<Setup> {
        let names = vec!["localhost".to_owned(), options.listen.ip().to_string()];
        let push = (kind == TargetKind::Push).then(|| push::Service::new(&options.push));
        let mqtt = (kind == TargetKind::Mqtt).then(Broker::default);
        let protocols: &[&[u8]] = match &kind {
            TargetKind::Http => &[b"h2", b"http/1.1"],
            _ => &[],
        };
        let capacity =
            options.capacity.any().then(|| Capacity::new(&options.capacity, options.seed, workers));
        let door = Door::new(options.connections_max, options.accept_per_s);
        Ok(Setup {
            kind,
            tls: options.tls.then(|| stream::self_signed(names, protocols)).transpose()?,
            clock: Clock::start(),
            worker_stats: WorkerStats::new(workers),
            default_answer: http::default_answer(options.body),
            faults: Faults::new(options.faults),
            options,
            mailboxes: Mailboxes::new(workers)?,
            rooms: chat::Rooms::default(),
            capacity,
            door,
            push,
            mqtt,
            posted: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
            shortage_told: AtomicBool::new(false),
        })
    }
}

/// Starts the push and mirror threads of a push service. They end when it stops.
fn start_push(setup: &Arc<Setup>) -> io::Result<Vec<JoinHandle<()>>> {
    let Some(service) = &setup.push else { return Ok(Vec::new()) };
    let mut threads = Vec::new();
    let pushing = Arc::clone(setup);
    let run = move || {
        if let Some(service) = &pushing.push {
            service.pusher.run(&pushing.mailboxes, &service.presence);
        }
    };
    threads.push(thread::Builder::new().name("target-push".into()).spawn(run)?);
    if let (Some(mirror), Some(address)) = (&service.mirror, &service.options.redis) {
        let (confirming, telling) = (Arc::clone(setup), Arc::clone(setup));
        let confirm = move |tickets: &[Ticket]| {
            post_by_worker(
                tickets,
                |ticket| ticket.address.worker,
                |worker, tickets| {
                    confirming.mailboxes.send(worker, Envelope::Bound(tickets.into(), true));
                },
            );
        };
        threads.push(mirror.start(MirrorOptions {
            address: address.clone(),
            patience: service.options.redis_timeout,
            presence: Arc::clone(&service.presence),
            confirm: Box::new(confirm),
            tell: Box::new(move |message| telling.tell(message)),
        })?);
    }
    Ok(threads)
}

/// Prepares separate descriptor tables; the inner error is that of a sandbox that forbids them. If
/// tokio's signals are compiled in, every runtime needs a descriptor that the first runtime of the
/// process creates, so it must exist before. This runs on its own thread, because a runtime cannot
/// be dropped inside another, and a thread with a separate table keeps it.
fn prepare_own_tables() -> io::Result<io::Result<()>> {
    let prepare = || {
        Builder::new_current_thread().enable_io().build()?;
        Ok(system::part_descriptor_table())
    };
    let prepared = thread::spawn(prepare).join();
    prepared.unwrap_or_else(|_| Err(io::Error::other("no runtime can be made")))
}
