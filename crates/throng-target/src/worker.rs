//! One thread of a server: its runtime, its listener, its timer and its connections.

mod broker;
mod connection;
mod places;
mod queued;
mod timer;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::rc::{Rc, Weak};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, MutexGuard};
use std::task::Waker;
use std::time::Duration;

use socket2::{Domain, Protocol, SockRef, Socket, Type};
use throng_base::{Clock, Random, Time, clock};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, LocalOptions};
use tokio::task::spawn_local;

use crate::address::Address;
use crate::arrival::{Arrival, Arrivals};
use crate::chat::Room;
use crate::im;
use crate::mail::Envelope;
use crate::mail::Stamped;
use crate::queue::Orders;
use crate::session::Role;
use crate::setup::Setup;
use crate::stats::{DeliveryStats, Figures, Stats};
use crate::stream::Stream;
use crate::sums::Sums;
use crate::system;
use crate::turn::Turn;
use crate::websocket::{self, Opcode};

use connection::{Connection, Parcel, Serve};

use places::Places;
pub(crate) use queued::QueuePlace;
use queued::Queued;
use timer::Timer;

/// Bytes read per call. All connections of a worker share one buffer.
const READ_BYTES: usize = 64 * 1024;
/// Connections that may wait to be accepted; the kernel has its own limit.
const BACKLOG: i32 = 65_535;
/// The pause before a worker with a full descriptor table accepts again.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// A larger scratch buffer is freed after use.
const SCRATCH_BYTES_MAX: usize = 512 * 1024;

/// Checks for idle devices per idle timeout.
const IDLE_LOOKS: u32 = 8;
/// Messages to a room that are written together.
const PARCEL_FRAMES_MAX: usize = 256;

/// Work that is due at a certain time.
pub(crate) enum Due {
    /// The first response in the queue of this connection.
    Answer(Weak<Connection>),
    /// The end of this connection, because of its age or because its peer does not close it.
    Close(Weak<Connection>),
    /// The message with this number to all logged-in users.
    Broadcast(u64),
    /// The messages that were batched for the worker.
    Mail,
    /// Check for devices that were silent for too long.
    Idle,
    /// Check for silent clients of the broker, and for due wills and sessions.
    Sweep,
    /// A delivery that a fault delayed.
    Late(Weak<Connection>, Arc<[u8]>),
    /// A swapped delivery has waited long enough for the next one.
    Overtaken(Weak<Connection>),
    /// Requests of the server's queue depart.
    Queue,
    /// Wakes a future of the worker.
    Wake(Waker),
}

/// The configuration of a worker.
pub(crate) struct WorkerPlace {
    pub(crate) setup: Arc<Setup>,
    pub(crate) index: usize,
    pub(crate) role: Role,
    pub(crate) address: SocketAddr,
    pub(crate) own_table: bool,
    /// Whether other workers listen on the same address.
    pub(crate) shared_address: bool,
}

pub(crate) struct Worker {
    pub(crate) setup: Arc<Setup>,
    index: usize,
    pub(crate) role: Role,
    pub(crate) clock: Clock,
    pub(crate) arrivals: Arrivals,
    pub(crate) timer: Timer,
    pub(crate) random: RefCell<Random>,
    buffer: Cell<Vec<u8>>,
    scratch: Cell<(Vec<u8>, Vec<Time>)>,
    /// The connections that receive deliveries.
    pub(crate) places: Places,
    pub(crate) held_back: HeldBack,
    queued: Queued,
}

/// The bytes of a message, shared by all receivers.
type Frame = Arc<[u8]>;

/// Deliveries that faults hold back.
#[derive(Default)]
pub(crate) struct HeldBack {
    /// The number of delayed deliveries.
    pub(crate) late: Cell<usize>,
    /// Deliveries to be swapped with the next, by the slot of their connection.
    pub(crate) swaps: RefCell<HashMap<u32, Arc<[u8]>>>,
}

/// Serves until the server stops. `ready` receives the address that the worker listens on, or the
/// error.
pub(crate) fn run(place: WorkerPlace, ready: &SyncSender<io::Result<SocketAddr>>) {
    let send = |result| drop(ready.send(result));
    // The table must be separated before the runtime creates its descriptors.
    let parted = if place.own_table { system::own_descriptor_table() } else { Ok(()) };
    let runtime = parted.and_then(|()| {
        Builder::new_current_thread().enable_io().build_local(LocalOptions::default())
    });
    match runtime {
        Err(e) => send(Err(e)),
        Ok(runtime) => runtime.block_on(async {
            match open(place).await {
                Err(e) => send(Err(e)),
                Ok((worker, listener, bell)) => {
                    send(listener.local_addr());
                    worker.serve(listener, bell).await;
                }
            }
        }),
    }
}

async fn open(place: WorkerPlace) -> io::Result<(Rc<Worker>, TcpListener, system::HungBell)> {
    let socket = listen(place.address, place.shared_address)?;
    // Once for the group, by its first member.
    if place.setup.options.by_source && place.shared_address && place.index == 0 {
        let workers = place.setup.mailboxes.workers() as u32;
        system::spread_by_source(&socket, place.address.is_ipv6(), workers)?;
    }
    if let Err(error) = system::stamp_arrivals(&socket)
        && place.index == 0
    {
        place.setup.tell(&format!(
            "service times are counted from reading a request, because the kernel does not report \
             when it arrived: {error}"
        ));
    }
    let listener = TcpListener::from_std(socket.into())?;
    let bell = place.setup.mailboxes.bell(place.index).hung()?;
    let clock = place.setup.clock.clone();
    let worker = Rc::new(Worker {
        index: place.index,
        role: place.role,
        timer: Timer::new(clock.clone())?,
        arrivals: Arrivals::new(clock.clone()),
        clock,
        random: RefCell::new(Random::for_owner(place.setup.options.seed, place.index as u64)),
        buffer: Cell::default(),
        scratch: Cell::default(),
        places: Places::default(),
        held_back: HeldBack::default(),
        queued: Queued::default(),
        setup: place.setup,
    });
    Ok((worker, listener, bell))
}

fn listen(address: SocketAddr, shared: bool) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    system::share_port(&socket, shared)?;
    // Accepted sockets inherit it.
    socket.set_tcp_nodelay(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket)
}

/// Fails if another program listens on this address; with a shared address, the kernel would give
/// each of them some of the connections.
pub(crate) fn check_free(address: SocketAddr) -> io::Result<()> {
    if address.port() == 0 {
        return Ok(());
    }
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())
}

impl Worker {
    async fn serve(self: Rc<Self>, listener: TcpListener, bell: system::HungBell) {
        let accepting = Rc::clone(&self);
        spawn_local(async move { accepting.accept(listener).await });
        let timing = Rc::clone(&self);
        spawn_local(async move {
            if let Err(e) = timing.timer.run(|due, now| timing.due(due, now)).await {
                timing.setup.tell(&format!("a timer failed, responses are late: {e}"));
            }
        });
        if let Some(every) = self.setup.options.broadcast_every
            && self.role == Role::Im
        {
            let passed = self.clock.now().as_nanos() / every.as_nanos().max(1) as u64;
            self.next_broadcast(passed + 1, every);
        }
        match self.role {
            Role::Push => self.look_for_idle(),
            Role::Mqtt => self.sweep(),
            _ => {}
        }
        while !self.setup.is_stopped() {
            if bell.rung().await.is_err() {
                break;
            }
            self.look_at_queue();
            match self.setup.options.batch.unwrap_or_default() {
                Duration::ZERO => self.open_mail(),
                batch => self.timer.at(self.clock.now() + batch, Due::Mail),
            }
        }
        self.places.clear();
    }

    async fn accept(self: Rc<Self>, listener: TcpListener) {
        let slow = self.setup.options.slow_accept.filter(|_| self.role != Role::Admin);
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    if self.role != Role::Admin {
                        let wait = self.setup.door.wait(self.clock.now());
                        if !wait.is_zero() {
                            self.timer.sleep(wait).await;
                        }
                    }
                    self.welcome(stream);
                    if let Some(pause) = slow {
                        self.timer.sleep(pause).await;
                    }
                }
                Err(e) => {
                    self.figures().counts.connections.accept_errors += 1;
                    if is_shortage(&e) {
                        self.setup.tell_shortage(&e);
                        self.timer.sleep(ACCEPT_PAUSE).await;
                    }
                }
            }
        }
    }

    fn welcome(self: &Rc<Self>, stream: TcpStream) {
        if self.role != Role::Admin && !self.setup.door.enter() {
            self.figures().counts.connections.refused += 1;
            // If it cannot be reset, it is closed.
            let _ = SockRef::from(&stream).set_linger(Some(Duration::ZERO));
            return;
        }
        {
            let connections = &mut self.figures().counts.connections;
            connections.accepted += 1;
            connections.open += 1;
        }
        let config = self.setup.tls.as_ref().filter(|_| self.role != Role::Admin);
        let stream = match Stream::new(stream, config) {
            Ok(stream) => stream,
            Err(error) => {
                self.figures().counts.connections.open -= 1;
                self.setup.door.leave();
                return self.setup.tell(&format!("TLS cannot start: {error}"));
            }
        };
        let serve = Serve::new(Rc::clone(self), stream, self.role);
        if let Some(age) = self.setup.options.close_after.filter(|_| self.role != Role::Admin) {
            serve.end_at(self.clock.now() + age);
        }
        spawn_local(serve);
    }

    fn due(&self, due: Due, now: Time) {
        let upgrade = |connection: Weak<Connection>| connection.upgrade();
        match due {
            Due::Answer(connection) => {
                upgrade(connection).iter().for_each(|connection| connection.answer_due(now));
            }
            Due::Close(connection) => {
                upgrade(connection).iter().for_each(|connection| connection.time_over());
            }
            Due::Wake(waker) => waker.wake(),
            Due::Queue => self.look_at_queue(),
            Due::Mail => self.open_mail(),
            Due::Idle => self.look_for_idle(),
            Due::Sweep => self.sweep(),
            Due::Late(connection, frame) => self.late(upgrade(connection), &frame),
            Due::Overtaken(connection) => {
                upgrade(connection).iter().for_each(|connection| connection.not_overtaken());
            }
            Due::Broadcast(number) => {
                if let Some(every) = self.setup.options.broadcast_every {
                    self.broadcast(&im::broadcast("clock", number, sent_ns(), None));
                    self.next_broadcast(number + 1, every);
                }
            }
        }
    }

    /// The same number is due at the same time on all workers.
    fn next_broadcast(&self, number: u64, every: Duration) {
        let at = Time((every.as_nanos() as u64).saturating_mul(number));
        self.timer.at(at, Due::Broadcast(number));
    }

    fn broadcast(&self, text: &[u8]) {
        let mut frame = Vec::new();
        websocket::write_frame(&mut frame, Opcode::Text, text);
        let frames = [frame.into()];
        let parcel = Parcel::new(&frames);
        if self.index == 0 {
            self.figures().counts.broadcasts += 1;
        }
        self.places.all(|member| member.tell(&parcel));
    }

    pub(crate) fn figures(&self) -> MutexGuard<'_, Figures> {
        self.setup.worker_stats.figures(self.index)
    }

    pub(crate) fn turn<'a>(
        &'a self,
        random: &'a mut Random,
        arrival: Arrival,
        address: Address,
        waiting: usize,
        last_due: Time,
    ) -> Turn<'a> {
        let (out, served) = self.scratch.take();
        Turn {
            setup: &self.setup,
            worker_stats: &self.setup.worker_stats,
            address,
            random,
            arrival,
            out,
            served,
            later: Vec::new(),
            worker: self.index as u16,
            waiting,
            last_due,
            ticket: None,
            orders: Orders::default(),
            counts: Stats::default(),
            finish: None,
            deaf: false,
            room: None,
        }
    }

    pub(crate) fn return_scratch(&self, mut out: Vec<u8>, mut served: Vec<Time>) {
        if out.capacity() <= SCRATCH_BYTES_MAX {
            out.clear();
            served.clear();
            self.scratch.set((out, served));
        }
    }

    pub(crate) fn take_buffer(&self) -> Vec<u8> {
        let buffer = self.buffer.take();
        if buffer.is_empty() { vec![0; READ_BYTES] } else { buffer }
    }

    pub(crate) fn return_buffer(&self, buffer: Vec<u8>) {
        self.buffer.set(buffer);
    }

    /// A slot for a connection that receives deliveries.
    pub(crate) fn place(&self, connection: &Rc<Connection>) -> Address {
        self.places.enter(self.index as u16, connection)
    }

    /// Handles the received messages. Messages to one room are delivered together; all rooms
    /// precede the rest, so a user that is disconnected has received all earlier messages.
    fn open_mail(&self) {
        let mut rooms: Vec<(Arc<Room>, Vec<Frame>)> = Vec::new();
        let mut known: HashMap<u64, usize> = HashMap::new();
        let mut rest = Vec::new();
        for envelope in self.setup.mailboxes.take(self.index) {
            match envelope {
                Envelope::Room(room, frame) => {
                    let index = *known.entry(room.id).or_insert(rooms.len());
                    if index == rooms.len() {
                        rooms.push((room, Vec::new()));
                    }
                    rooms[index].1.push(frame);
                }
                envelope => rest.push(envelope),
            }
        }
        for (room, frames) in rooms {
            // A bounded number at a time.
            frames.chunks(PARCEL_FRAMES_MAX).for_each(|frames| self.deliver_room(&room, frames));
        }
        rest.into_iter().for_each(|envelope| self.open(envelope));
    }

    fn open(&self, envelope: Envelope) {
        match envelope {
            Envelope::Push(addresses, frame) => self.push(&addresses, &frame),
            Envelope::Mqtt(targets, message) => self.distribute(targets, &message),
            Envelope::MqttRoom(client) => self.send_waiting(&client),
            Envelope::Bound(tickets, confirmed) => {
                for ticket in tickets {
                    let connection = self.places.find(ticket.address);
                    connection.iter().for_each(|c| c.bound(ticket, confirmed));
                }
            }
            Envelope::Room(room, frame) => self.deliver_room(&room, &[frame]),
            Envelope::End(address) => {
                self.places.find(address).iter().for_each(Connection::send_away);
            }
            Envelope::Broadcast(number, body) => {
                self.broadcast(&im::broadcast("admin", number, sent_ns(), Some(&body)));
            }
        }
    }

    fn deliver_room(&self, room: &Room, frames: &[Arc<[u8]>]) {
        let parcel = Parcel::new(frames);
        let mut done = DeliveryStats::default();
        let figures = &mut *self.figures();
        self.places.in_room(room.id, |member| {
            done.add(&member.deliver(&parcel, &mut figures.counts.bytes_out));
        });
        room.delivered(&done);
        figures.deliveries.add(&done);
    }

    /// Delivers a push to each of these, with the time of writing.
    fn push(&self, addresses: &[Address], push: &Stamped) {
        let mut stamped = Vec::with_capacity(push.len());
        let figures = &mut *self.figures();
        for address in addresses {
            push.stamp(sent_ns(), &mut stamped);
            self.deliver(figures, *address, stamped.as_slice().into());
        }
    }

    /// Disconnects devices that were silent for too long, and schedules the next check.
    fn look_for_idle(&self) {
        let Some(push) = &self.setup.push else { return };
        let Some(timeout) = push.idle_timeout() else { return };
        let now = self.clock.now();
        let since = Time(now.as_nanos().saturating_sub(timeout.as_nanos() as u64));
        self.send_away(
            |connection| connection.is_silent_since(since),
            |address| push.count_idle(address),
        );
        self.timer.at(now + timeout / IDLE_LOOKS, Due::Idle);
    }

    /// Disconnects and counts some of the connections that receive deliveries.
    fn send_away(&self, which: impl Fn(&Connection) -> bool, count: impl Fn(Address)) {
        let mut found = Vec::new();
        self.places.all(|one| found.extend(which(one).then(|| Rc::clone(one))));
        for connection in found {
            count(connection.address());
            connection.send_away();
        }
    }

    /// Delivers to a connection, if it is still there.
    fn deliver(&self, figures: &mut Figures, address: Address, frame: Frame) {
        match self.places.find(address) {
            None => figures.deliveries.gone += 1,
            Some(connection) => {
                let bytes_out = &mut figures.counts.bytes_out;
                let done = connection.deliver(&Parcel::new(&[frame]), bytes_out);
                figures.deliveries.add(&done);
            }
        }
    }

    /// Makes a delivery that a fault delayed.
    fn late(&self, connection: Option<Rc<Connection>>, frame: &Arc<[u8]>) {
        self.held_back.late.set(self.held_back.late.get() - 1);
        let figures = &mut *self.figures();
        let parcel = Parcel::new(std::slice::from_ref(frame));
        let done = connection.map(|c| c.deliver_late(&parcel, &mut figures.counts.bytes_out));
        let unsent = || DeliveryStats { late_unsent: 1, ..DeliveryStats::default() };
        figures.deliveries.add(&done.unwrap_or_else(unsent));
    }
}

fn sent_ns() -> u64 {
    u64::try_from(clock::wall_now().as_nanos()).unwrap_or(u64::MAX)
}

/// True if accepting failed for lack of a resource that is released when connections close.
fn is_shortage(error: &io::Error) -> bool {
    let shortages = [libc::EMFILE, libc::ENFILE, libc::ENOBUFS, libc::ENOMEM, libc::ENOSPC];
    error.raw_os_error().is_some_and(|code| shortages.contains(&code))
}

#[cfg(test)]
pub(crate) mod tests {
    use std::io::Write;

    use rustls::DigitallySignedStruct;
    use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
    use rustls::pki_types::{CertificateDer, ServerName, UnixTime};

    use super::*;
    use crate::tests::PATIENCE;
    use crate::{Latency, Options, TargetKind};

    const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    const WAIT: Duration = Duration::from_millis(30);

    /// A worker that only runs while the test lets it.
    struct Bench {
        worker: Rc<Worker>,
        listener: TcpListener,
    }

    fn by_hand(options: Options, test: impl AsyncFnOnce(Bench)) {
        let setup = Arc::new(Setup::new(TargetKind::Http, options, 1).unwrap());
        let address = setup.options.listen;
        let (index, role, own_table, shared_address) = (0, Role::Http, false, false);
        let place = WorkerPlace { setup, index, role, address, own_table, shared_address };
        let runtime = Builder::new_current_thread().enable_io().build_local(Default::default());
        runtime.unwrap().block_on(async {
            let (worker, listener, _) = open(place).await.unwrap();
            test(Bench { worker, listener }).await;
        });
    }

    impl Bench {
        fn connect(&self) -> std::net::TcpStream {
            let client = std::net::TcpStream::connect(self.listener.local_addr().unwrap()).unwrap();
            client.set_nodelay(true).unwrap();
            client
        }

        async fn accept(&self) {
            let (stream, _) = self.listener.accept().await.unwrap();
            self.worker.welcome(stream);
        }

        /// Lets the worker run until its counts are as wanted.
        async fn until(&self, mut wanted: impl FnMut(&Figures) -> bool) {
            let begun = self.worker.clock.now();
            while !wanted(&self.worker.figures()) {
                assert!(self.worker.clock.now() - begun < PATIENCE, "waited in vain");
                tokio::task::yield_now().await;
            }
        }

        /// The worker does nothing for this long.
        fn pause(&self) {
            let begun = self.worker.clock.now();
            while self.worker.clock.now() - begun < WAIT {
                std::thread::yield_now();
            }
        }

        /// The longest service time, once this many requests are served.
        async fn served(&self, count: u64) -> Duration {
            self.until(|figures| figures.service.count() == count).await;
            Duration::from_nanos(self.worker.figures().service.max())
        }
    }

    #[test]
    fn time_in_the_socket_counts_as_service() {
        by_hand(Options::default(), async |bench| {
            let mut client = bench.connect();
            bench.accept().await;
            client.write_all(REQUEST).unwrap();
            bench.pause();
            assert!(bench.served(1).await >= WAIT);
            // The same on a connection that was read before.
            bench.worker.setup.reset();
            client.write_all(REQUEST).unwrap();
            bench.pause();
            assert!(bench.served(1).await >= WAIT);
        });
    }

    #[test]
    fn a_request_arrives_with_its_last_byte() {
        let (first, rest) = REQUEST.split_at(10);
        for read_between in [false, true] {
            by_hand(Options::default(), async |bench| {
                let mut client = bench.connect();
                bench.accept().await;
                client.write_all(first).unwrap();
                if read_between {
                    bench.until(|figures| figures.counts.bytes_in == 10).await;
                }
                bench.pause();
                let complete_from = bench.worker.clock.now();
                client.write_all(rest).unwrap();
                let served = bench.served(1).await;
                assert!(served <= bench.worker.clock.now() - complete_from, "{read_between}");
            });
        }
    }

    #[test]
    fn encrypted_bytes_in_the_socket_count_as_service() {
        by_hand(Options { tls: true, ..Options::default() }, async |bench| {
            let socket = bench.connect();
            socket.set_nonblocking(true).unwrap();
            bench.accept().await;
            let mut client = trusting_client();
            bench
                .until(|_| {
                    let _ = client.complete_io(&mut &socket);
                    !client.is_handshaking()
                })
                .await;
            client.writer().write_all(REQUEST).unwrap();
            while client.wants_write() {
                client.write_tls(&mut &socket).unwrap();
            }
            bench.pause();
            assert!(bench.served(1).await >= WAIT);
        });
    }

    #[test]
    fn latency_is_measured_from_the_arrival() {
        // No timer runs here: a response that is not due when its request is read is never sent.
        by_hand(Options { latency: Latency::Fixed(WAIT), ..Options::default() }, async |bench| {
            let mut client = bench.connect();
            bench.accept().await;
            client.write_all(REQUEST).unwrap();
            bench.pause();
            bench.served(1).await;
        });
    }

    fn trusting_client() -> rustls::ClientConnection {
        trusting_client_that_offers(&[])
    }

    /// A client that offers these protocols with ALPN.
    pub(crate) fn trusting_client_that_offers(protocols: &[&[u8]]) -> rustls::ClientConnection {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Trusting))
            .with_no_client_auth();
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        let name = ServerName::try_from("localhost").unwrap();
        rustls::ClientConnection::new(Arc::new(config), name).unwrap()
    }

    /// Accepts any certificate.
    #[derive(Debug)]
    struct Trusting;

    impl ServerCertVerifier for Trusting {
        fn verify_server_cert(
            &self,
            _: &CertificateDer<'_>,
            _: &[CertificateDer<'_>],
            _: &ServerName<'_>,
            _: &[u8],
            _: UnixTime,
        ) -> Result<ServerCertVerified, rustls::Error> {
            Ok(ServerCertVerified::assertion())
        }

        fn verify_tls12_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, rustls::Error> {
            Ok(HandshakeSignatureValid::assertion())
        }

        fn verify_tls13_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, rustls::Error> {
            Ok(HandshakeSignatureValid::assertion())
        }

        fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
            let provider = rustls::crypto::ring::default_provider();
            provider.signature_verification_algorithms.supported_schemes()
        }
    }

    #[test]
    fn accepted_sockets_have_nodelay() {
        let listener = listen(SocketAddr::from(([127, 0, 0, 1], 0)), true).unwrap();
        let address = listener.local_addr().unwrap().as_socket().unwrap();
        let _client = std::net::TcpStream::connect(address).unwrap();
        assert!(listener.accept().unwrap().0.tcp_nodelay().unwrap());
    }
}
