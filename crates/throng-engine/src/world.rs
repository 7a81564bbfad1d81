//! An in-memory world for tests: simulated time, connections that are queues of bytes, and servers
//! that are functions. The same seed gives the same world; nothing waits for real time.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use throng_base::{Clock, Random, StepId, Time};
use throng_metrics::Cause;
use throng_program::{Body, Check, Failing, Http, Parting, Statement, Text};

use crate::failure::Failure;
use crate::system::Received;

/// A request for `/`, the first step of a session.
pub(crate) fn get(timeout: Duration, checks: Vec<Check>) -> Statement {
    Statement::Http(Arc::new(Http {
        step: StepId(0),
        link: 0,
        method: "GET".into(),
        path: Text::literal("/"),
        headers: Vec::new(),
        cookies: Vec::new(),
        digest: None,
        body: Body::None,
        timeout,
        follow_redirects: false,
        checks,
        saves: Vec::new(),
        failing: Failing::default(),
    }))
}

/// The simulated clock, and the events that happen as it advances.
pub(crate) struct Hand {
    pub(crate) clock: Clock,
    events: RefCell<BinaryHeap<Reverse<Event>>>,
    /// A shard sleeps until then: what arrives is read afterwards.
    asleep: Cell<Time>,
    count: Cell<u64>,
    /// How often a bell rang, and for how many of its settings no event was pending.
    pub(crate) rung: Cell<u64>,
    pub(crate) set_in_the_past: Cell<u64>,
}

struct Event {
    time: Time,
    /// Events at the same time happen in the order they were created.
    order: u64,
    what: Box<dyn FnOnce()>,
}

impl PartialEq for Event {
    fn eq(&self, other: &Event) -> bool {
        (self.time, self.order) == (other.time, other.order)
    }
}

impl Eq for Event {}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Event) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Event {
    fn cmp(&self, other: &Event) -> std::cmp::Ordering {
        (self.time, self.order).cmp(&(other.time, other.order))
    }
}

impl Hand {
    pub(crate) fn new() -> Rc<Hand> {
        let clock = Clock::simulated();
        let (events, zero) = (RefCell::default(), || Cell::new(0));
        let (count, rung, set_in_the_past) = (zero(), zero(), zero());
        Rc::new(Hand { clock, events, asleep: Cell::default(), count, rung, set_in_the_past })
    }

    pub(crate) fn at(&self, time: Time, what: impl FnOnce() + 'static) {
        let order = self.count.get();
        self.count.set(order + 1);
        self.events.borrow_mut().push(Reverse(Event { time, order, what: Box::new(what) }));
    }

    /// Whether `time` has come; if not, the task is woken then.
    pub(crate) fn poll_passed(&self, cx: &Context<'_>, time: Time) -> bool {
        if self.clock.now() >= time {
            return true;
        }
        if time != Time::NEVER {
            let waker = cx.waker().clone();
            self.at(time, move || waker.wake());
        }
        false
    }

    /// Wakes a reader, or delays it until the shard wakes.
    fn wake(&self, reader: Option<Waker>) {
        let Some(reader) = reader else { return };
        match self.asleep.get() > self.clock.now() {
            true => self.at(self.asleep.get(), move || reader.wake()),
            false => reader.wake(),
        }
    }

    /// Runs the next event; false if there is none.
    pub(crate) fn advance(&self) -> bool {
        let Some(Reverse(event)) = self.events.borrow_mut().pop() else { return false };
        self.clock.set(event.time);
        (event.what)();
        true
    }

    /// Advances the clock whenever all tasks wait, until `done`.
    ///
    /// The runtime's own clock is paused: its sleep ends only when no task can continue, which
    /// shows that all tasks wait.
    pub(crate) async fn run(&self, done: &Cell<bool>) {
        while !done.get() {
            tokio::time::sleep(Duration::from_millis(1)).await;
            if !done.get() {
                assert!(self.advance(), "everybody waits for something that never comes");
            }
        }
    }
}

/// Wakes one task at one time, which may be set to an earlier one.
pub(crate) struct Bell {
    hand: Rc<Hand>,
    waker: RefCell<Option<Waker>>,
    /// The time for which an event exists.
    made: Cell<Time>,
}

impl Bell {
    pub(crate) fn new(hand: Rc<Hand>) -> Bell {
        Bell { hand, waker: RefCell::default(), made: Cell::new(Time::NEVER) }
    }

    /// Delays all readers until then.
    pub(crate) async fn nap(&self, until: Time) {
        self.hand.asleep.set(until);
        std::future::poll_fn(|cx| match self.hand.poll_passed(cx, until) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        })
        .await;
    }

    pub(crate) fn ring_at(&self, time: Time) {
        if time <= self.hand.clock.now() {
            self.hand.set_in_the_past.set(self.hand.set_in_the_past.get() + 1);
        }
        if let Some(waker) = self.waker.borrow().clone()
            && self.made.replace(time) != time
        {
            self.hand.at(time, move || waker.wake());
        }
    }

    /// Whether `time` has come; if not, the task is woken then.
    pub(crate) fn poll_rung(&self, cx: &Context<'_>, time: Time) -> bool {
        if self.hand.clock.now() >= time {
            self.hand.rung.set(self.hand.rung.get() + 1);
            return true;
        }
        *self.waker.borrow_mut() = Some(cx.waker().clone());
        if time != Time::NEVER {
            self.ring_at(time);
        }
        false
    }
}

/// What a server does next on a connection, after a delay.
#[derive(Clone, Debug)]
pub(crate) enum Deed {
    Say(Vec<u8>),
    Close,
    /// Closes without `close_notify`, which TLS does not trust.
    Cut,
    Reset,
}

/// A server: takes the bytes of one connection so far, and returns deeds. It removes the bytes that
/// it has answered.
pub(crate) type Server = Box<dyn Fn(&mut Vec<u8>, &mut Random) -> Vec<(Duration, Deed)>>;

pub(crate) struct World {
    pub(crate) hand: Rc<Hand>,
    random: RefCell<Random>,
    server: Server,
    /// Share of connections that are refused.
    refused: f64,
    /// The same for connections to these addresses.
    refusing: HashMap<SocketAddr, f64>,
    /// By address: accepted connections.
    accepted: RefCell<HashMap<SocketAddr, u64>>,
    /// Share of writes that the socket takes only in part.
    clogged: f64,
    /// Writes and messages are datagrams.
    datagrams: bool,
    pub(crate) open: Cell<i64>,
    /// The maximum number of open connections.
    pub(crate) most_open: Cell<i64>,
    /// How clients disconnected, as the server sees it: by an end, by a reset, or not at all.
    pub(crate) ended: Cell<u64>,
    pub(crate) resets: Cell<u64>,
    pub(crate) vanished: Cell<u64>,
    pub(crate) half_closed: Cell<u64>,
    /// Connections that received something after the server had closed them.
    pub(crate) unheard: Cell<u64>,
    /// Requests between the server's decision to close and the close: they are answered before it,
    /// or never.
    pub(crate) late: Cell<u64>,
    /// Bytes that clients read from sockets, and wrote to them.
    pub(crate) read: Cell<u64>,
    pub(crate) written: Cell<u64>,
}

impl World {
    pub(crate) fn new(hand: Rc<Hand>, seed: u64, server: Server) -> World {
        let random = RefCell::new(Random::new(seed));
        World {
            hand,
            random,
            server,
            refused: 0.0,
            refusing: HashMap::new(),
            accepted: RefCell::default(),
            clogged: 0.0,
            datagrams: false,
            open: Cell::new(0),
            most_open: Cell::new(0),
            ended: Cell::new(0),
            resets: Cell::new(0),
            vanished: Cell::new(0),
            half_closed: Cell::new(0),
            unheard: Cell::new(0),
            late: Cell::new(0),
            read: Cell::new(0),
            written: Cell::new(0),
        }
    }

    pub(crate) fn refuse(mut self, share: f64) -> World {
        self.refused = share;
        self
    }

    pub(crate) fn refuse_at(mut self, address: SocketAddr, share: f64) -> World {
        self.refusing.insert(address, share);
        self
    }

    /// Connections that this address has accepted.
    pub(crate) fn accepted(&self, address: SocketAddr) -> u64 {
        self.accepted.borrow().get(&address).copied().unwrap_or_default()
    }

    /// Connections that all addresses have accepted.
    pub(crate) fn accepted_at_all(&self) -> u64 {
        self.accepted.borrow().values().sum()
    }

    pub(crate) fn clog(mut self, share: f64) -> World {
        self.clogged = share;
        self
    }

    /// Each write is a datagram, and so is each message of the server.
    pub(crate) fn with_datagrams(mut self) -> World {
        self.datagrams = true;
        self
    }

    fn way(&self) -> Duration {
        Duration::from_nanos(20_000 + self.random.borrow_mut().below(80_000))
    }

    async fn travel(&self) {
        let arrival = self.hand.clock.now() + self.way();
        std::future::poll_fn(|cx| match self.hand.poll_passed(cx, arrival) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        })
        .await;
    }

    /// Bytes reach the server.
    fn arrive(&self, pipe: &Rc<RefCell<Pipe>>, bytes: &[u8]) {
        let now = self.hand.clock.now();
        let hear = |time: Time, deed: Deed| {
            let pipe = Rc::clone(pipe);
            let hand = Rc::clone(&self.hand);
            self.hand.at(time, move || {
                let reader = pipe.borrow_mut().hear(deed, time);
                hand.wake(reader);
            });
        };
        let leaves = pipe.borrow().leaves;
        if leaves.is_some_and(|leaves| leaves <= now) {
            // A closed socket answers with a reset.
            if !std::mem::replace(&mut pipe.borrow_mut().unheard, true) {
                self.unheard.set(self.unheard.get() + 1);
            }
            return hear(now + self.way(), Deed::Reset);
        }
        if leaves.is_some() {
            self.late.set(self.late.get() + 1);
        }
        pipe.borrow_mut().on_the_way -= bytes.len() as u64;
        let mut asked = std::mem::take(&mut pipe.borrow_mut().asked);
        asked.extend(bytes);
        let deeds = (self.server)(&mut asked, &mut self.random.borrow_mut());
        let mut pipe = pipe.borrow_mut();
        pipe.asked = asked;
        let mut time = now.max(pipe.last);
        for (after, deed) in deeds {
            time = time + after + self.way();
            if matches!(deed, Deed::Close | Deed::Cut | Deed::Reset) {
                pipe.leaves.get_or_insert(time);
            }
            hear(time, deed);
        }
    }

    pub(crate) async fn connect(
        self: &Rc<Self>,
        address: SocketAddr,
    ) -> Result<MemoryStream, Failure> {
        self.travel().await;
        let refused = self.refusing.get(&address).copied().unwrap_or(self.refused);
        if self.random.borrow_mut().chance(refused) {
            return Err(Failure::new(
                Cause::ConnectRefused,
                throng_base::Said::of_others("refused"),
            ));
        }
        *self.accepted.borrow_mut().entry(address).or_default() += 1;
        self.open.set(self.open.get() + 1);
        self.most_open.set(self.most_open.get().max(self.open.get()));
        let (world, pipe) = (Rc::clone(self), Rc::default());
        Ok(MemoryStream { world, pipe, parting: Parting::Fin })
    }
}

#[derive(Default)]
struct Pipe {
    /// To the client.
    bytes: VecDeque<u8>,
    /// The lengths of the datagrams in `bytes`.
    datagrams: VecDeque<usize>,
    closed: bool,
    cut: bool,
    reset: bool,
    reader: Option<Waker>,
    /// Arrival time of the last of `bytes`, as the kernel of this world knows it.
    heard: Time,
    /// The socket takes nothing until a wake-up that is already scheduled: one, like that of a
    /// reactor.
    full: bool,
    /// At the server, not answered yet.
    asked: Vec<u8>,
    /// Time of the server's last deed: deeds keep their order.
    last: Time,
    /// Bytes in flight to the server, which takes none once it has closed.
    on_the_way: u64,
    /// When the server closes, once it has decided to.
    leaves: Option<Time>,
    /// Something arrived after that.
    unheard: bool,
}

impl Pipe {
    /// Returns the waker of the waiting reader.
    fn hear(&mut self, deed: Deed, now: Time) -> Option<Waker> {
        self.heard = now;
        match deed {
            Deed::Say(bytes) if !self.closed => {
                self.datagrams.push_back(bytes.len());
                self.bytes.extend(bytes);
            }
            Deed::Say(_) => {}
            Deed::Close => self.closed = true,
            Deed::Cut => (self.closed, self.cut) = (true, true),
            Deed::Reset => self.reset = true,
        }
        self.reader.take()
    }
}

/// The client's end of a connection.
pub(crate) struct MemoryStream {
    world: Rc<World>,
    pipe: Rc<RefCell<Pipe>>,
    parting: Parting,
}

impl MemoryStream {
    pub(crate) fn reset(mut self) {
        self.parting = Parting::Reset;
    }

    pub(crate) fn vanish(mut self) {
        self.parting = Parting::Vanish;
    }

    pub(crate) fn half_close(mut self) {
        self.parting = Parting::HalfClose;
    }

    pub(crate) fn is_datagram(&self) -> bool {
        self.world.datagrams
    }

    pub(crate) fn unacknowledged(&self) -> u64 {
        self.pipe.borrow().on_the_way
    }

    pub(crate) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<Received>> {
        let mut pipe = self.pipe.borrow_mut();
        if pipe.reset {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        if pipe.cut && pipe.bytes.is_empty() {
            return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
        }
        let next = match self.world.datagrams {
            true => pipe.datagrams.pop_front(),
            false => (!pipe.bytes.is_empty() || pipe.closed).then_some(pipe.bytes.len()),
        };
        let Some(next) = next else {
            pipe.reader = Some(cx.waker().clone());
            return Poll::Pending;
        };
        let count = next.min(buffer.len());
        buffer.iter_mut().zip(pipe.bytes.drain(..count)).for_each(|(to, byte)| *to = byte);
        self.world.read.set(self.world.read.get() + count as u64);
        Poll::Ready(Ok(Received { bytes: count, stamp: pipe.heard.as_nanos() }))
    }

    pub(crate) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.pipe.borrow().reset {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        if self.pipe.borrow().full {
            return Poll::Pending;
        }
        let clogged = self.world.random.borrow_mut().chance(self.world.clogged);
        if clogged && (bytes.len() == 1 || self.world.datagrams) {
            self.pipe.borrow_mut().full = true;
            let (waker, pipe) = (cx.waker().clone(), Rc::clone(&self.pipe));
            self.world.hand.at(self.world.hand.clock.now() + self.world.way(), move || {
                pipe.borrow_mut().full = false;
                waker.wake();
            });
            return Poll::Pending;
        }
        let count = if clogged { bytes.len() / 2 } else { bytes.len() };
        let (world, pipe) = (Rc::clone(&self.world), Rc::clone(&self.pipe));
        let bytes = bytes[..count].to_vec();
        let arrival = self.world.hand.clock.now() + self.world.way();
        let arrival = arrival.max(self.pipe.borrow().last);
        self.pipe.borrow_mut().last = arrival;
        self.pipe.borrow_mut().on_the_way += count as u64;
        self.world.written.set(self.world.written.get() + count as u64);
        self.world.hand.at(arrival, move || world.arrive(&pipe, &bytes));
        Poll::Ready(Ok(count))
    }
}

impl Drop for MemoryStream {
    fn drop(&mut self) {
        let world = &self.world;
        world.open.set(world.open.get() - 1);
        let parted = match self.parting {
            Parting::Fin => &world.ended,
            Parting::Reset => &world.resets,
            Parting::Vanish => &world.vanished,
            Parting::HalfClose => &world.half_closed,
        };
        parted.set(parted.get() + 1);
    }
}
