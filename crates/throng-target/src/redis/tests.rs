//! The mirror against a small server that behaves like Redis, and that fails and recovers.

use std::collections::{BTreeSet, HashMap};
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

/// The timeout of every wait in these tests.
const PATIENCE_S: f64 = 20.0;

pub(crate) type Sets = HashMap<String, BTreeSet<String>>;

/// A Redis with only sets. Its data survives its failure.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) sets: Arc<Mutex<Sets>>,
    /// Does not read or reply.
    stuck: Arc<AtomicBool>,
    streams: Arc<Mutex<Vec<TcpStream>>>,
    dead: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

impl Server {
    pub(crate) fn start(address: SocketAddr, sets: Arc<Mutex<Sets>>) -> Server {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        let streams: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
        let dead: Arc<AtomicBool> = Arc::default();
        let stuck: Arc<AtomicBool> = Arc::default();
        let (held, ended) = (Arc::clone(&streams), Arc::clone(&dead));
        let (kept, still) = (Arc::clone(&sets), Arc::clone(&stuck));
        let accepting = thread::spawn(move || {
            for stream in listener.incoming() {
                let stream = stream.unwrap();
                if ended.load(Ordering::SeqCst) {
                    return;
                }
                held.lock().unwrap().push(stream.try_clone().unwrap());
                let (sets, stuck) = (Arc::clone(&kept), Arc::clone(&still));
                thread::spawn(move || serve(stream, &sets, &stuck));
            }
        });
        Server { address, sets, stuck, streams, dead, accepting: Some(accepting) }
    }

    /// Fails like a killed process: the listener and all connections are closed.
    pub(crate) fn kill(&mut self) {
        self.dead.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
        self.accepting.take().unwrap().join().unwrap();
        for stream in self.streams.lock().unwrap().drain(..) {
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
    }
}

/// Serves one connection until its end.
fn serve(stream: TcpStream, sets: &Mutex<Sets>, stuck: &AtomicBool) -> Option<()> {
    let mut out = stream.try_clone().ok()?;
    let mut input = BufReader::new(stream);
    loop {
        let words = command(&mut input)?;
        while stuck.load(Ordering::SeqCst) {
            thread::yield_now();
        }
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let sets = &mut *sets.lock().unwrap();
        let reply = match words[..] {
            ["PING"] => "+PONG\r\n",
            ["SADD", key, ..] => {
                let names = words[2..].iter().map(|name| (*name).to_owned());
                sets.entry(key.to_owned()).or_default().extend(names);
                ":1\r\n"
            }
            ["SREM", key, name] => {
                sets.get_mut(key).map(|set| set.remove(name));
                ":1\r\n"
            }
            ["DEL", key] => {
                sets.remove(key);
                ":1\r\n"
            }
            ["RENAME", from, to] => match sets.remove(from) {
                None => "-ERR no such key\r\n",
                Some(set) => {
                    sets.insert(to.to_owned(), set);
                    "+OK\r\n"
                }
            },
            _ => "-ERR unknown command\r\n",
        };
        out.write_all(reply.as_bytes()).ok()?;
    }
}

fn command(input: &mut impl BufRead) -> Option<Vec<String>> {
    let count = |input: &mut dyn BufRead, mark: char| -> Option<usize> {
        let mut line = String::new();
        input.read_line(&mut line).ok()?;
        line.trim_end().strip_prefix(mark)?.parse().ok()
    };
    let words = count(input, '*')?;
    let mut read = Vec::new();
    for _ in 0..words {
        let mut bytes = vec![0; count(input, '$')? + 2];
        input.read_exact(&mut bytes).ok()?;
        bytes.truncate(bytes.len() - 2);
        read.push(String::from_utf8(bytes).ok()?);
    }
    Some(read)
}

struct Bench {
    presence: Arc<Presence>,
    mirror: Mirror,
    thread: Option<JoinHandle<()>>,
    confirmed: Arc<Mutex<Vec<u32>>>,
    told: Arc<Mutex<Vec<String>>>,
}

fn address(place: u32) -> Address {
    Address { worker: 0, generation: 0, place }
}

impl Bench {
    fn new(server: SocketAddr, patience: Duration) -> Bench {
        let presence = Arc::new(Presence::default());
        let mirror = Mirror::new(Clock::start());
        let confirmed: Arc<Mutex<Vec<u32>>> = Arc::default();
        let told: Arc<Mutex<Vec<String>>> = Arc::default();
        let (confirms, tells) = (Arc::clone(&confirmed), Arc::clone(&told));
        let options = MirrorOptions {
            address: format!("redis://{server}").parse().unwrap(),
            patience,
            presence: Arc::clone(&presence),
            confirm: Box::new(move |tickets| {
                confirms.lock().unwrap().extend(tickets.iter().map(|ticket| ticket.seq));
            }),
            tell: Box::new(move |text| tells.lock().unwrap().push(text.to_owned())),
        };
        let thread = Some(mirror.start(options).unwrap());
        Bench { presence, mirror, thread, confirmed, told }
    }

    fn enter(&self, number: u64) {
        self.presence.enter(&Device::Number(number), address(1));
        self.mirror.changed(Device::Number(number), None);
    }

    fn leave(&self, number: u64) {
        self.presence.leave(&Device::Number(number), address(1));
        self.mirror.changed(Device::Number(number), None);
    }

    /// Waits until the mirror is as wanted.
    fn until(&self, wanted: impl Fn(&RedisStats) -> bool) -> RedisStats {
        let clock = Clock::start();
        loop {
            let stats = self.mirror.stats();
            if wanted(&stats) {
                return stats;
            }
            assert!(clock.now().as_secs_f64() < PATIENCE_S, "waited in vain: {stats:?}");
            thread::yield_now();
        }
    }

    /// Waits until the mirror has written all changes, and compares.
    fn check(&self, server: &Server) {
        self.until(|stats| stats.connected && !stats.stale && stats.pending == 0);
        let mut names = BTreeSet::new();
        self.presence.each(|device| {
            device.with_name(|name| names.insert(name.to_owned()));
        });
        let sets = server.sets.lock().unwrap();
        assert_eq!(sets.get("presence").cloned().unwrap_or_default(), names);
        assert_eq!(sets.get("presence:next"), None);
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.mirror.stop();
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn loopback() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

#[test]
fn changes_arrive_in_pipelines() {
    let stale = HashMap::from([("presence".to_owned(), BTreeSet::from(["d99".to_owned()]))]);
    let server = Server::start(loopback(), Arc::new(Mutex::new(stale)));
    let bench = Bench::new(server.address, Duration::from_secs(5));
    bench.check(&server);
    (0..5000).for_each(|number| bench.enter(number));
    (0..5000).step_by(3).for_each(|number| bench.leave(number));
    bench.presence.enter(&Device::new("phone é"), address(1));
    bench.mirror.changed(Device::new("phone é"), None);
    bench.check(&server);
    let stats = bench.mirror.stats();
    assert_eq!((stats.written, stats.lag_ms), (5000 + 1667 + 1, 0));
    assert!(stats.pipelines < 1000, "{stats:?}");
    assert_eq!((stats.rewrites, stats.rewritten, stats.reconnects, stats.errors), (1, 0, 0, 0));
}

#[test]
fn a_recovered_redis_gets_the_whole_set() {
    let mut server = Server::start(loopback(), Arc::default());
    let bench = Bench::new(server.address, Duration::from_secs(5));
    (0..2500).for_each(|number| bench.enter(number));
    bench.check(&server);
    server.kill();
    bench.until(|stats| !stats.connected);
    (2000..4000).for_each(|number| bench.enter(number));
    (0..1000).for_each(|number| bench.leave(number));
    let stats = bench.until(|stats| stats.lag_ms >= 20);
    assert_eq!((stats.stale, stats.pending), (true, 0), "what waits is not queued");
    // The data on the disk of Redis was even older.
    server.sets.lock().unwrap().entry("presence".into()).or_default().insert("d77777".into());
    let server = Server::start(server.address, Arc::clone(&server.sets));
    bench.check(&server);
    bench.leave(3999);
    bench.check(&server);
    let stats = bench.mirror.stats();
    assert_eq!((stats.reconnects, stats.rewrites), (1, 2));
    assert!(stats.errors >= 1);
    let told = bench.told.lock().unwrap();
    assert!(
        told.len() == 2 && told[0].contains("is unreachable") && told[1].contains("is back"),
        "{told:?}"
    );
}

fn ticket(address: Address, seq: u32) -> Ticket {
    Ticket { address, seq, arrived: Time::ZERO }
}

#[test]
fn a_hanging_redis_is_dropped_and_waiters_are_confirmed_later() {
    let server = Server::start(loopback(), Arc::default());
    let bench = Bench::new(server.address, Duration::from_millis(100));
    bench.check(&server);
    let wait = |seq| {
        bench.presence.enter(&Device::Number(u64::from(seq)), address(seq));
        let ticket = ticket(address(seq), seq);
        bench.mirror.changed(Device::Number(u64::from(seq)), Some(ticket));
    };
    wait(1);
    bench.until(|_| *bench.confirmed.lock().unwrap() == [1]);
    server.stuck.store(true, Ordering::SeqCst);
    wait(2);
    bench.until(|stats| stats.stale);
    wait(3);
    assert_eq!(*bench.confirmed.lock().unwrap(), [1]);
    server.stuck.store(false, Ordering::SeqCst);
    bench.until(|_| bench.confirmed.lock().unwrap().len() == 3);
    assert_eq!(*bench.confirmed.lock().unwrap(), [1, 2, 3]);
    bench.check(&server);
}

#[test]
fn too_many_changes_are_not_queued() {
    // Nothing is written: the mirror is not started.
    let mirror = Mirror::new(Clock::start());
    mirror.0.lock().stale = None;
    for number in 0..QUEUE_MAX as u64 {
        mirror.changed(Device::Number(number), None);
    }
    assert_eq!((mirror.stats().pending, mirror.stats().stale), (QUEUE_MAX as u64, false));
    let first = ticket(address(0), 1);
    mirror.changed(Device::Number(0), Some(first));
    assert_eq!((mirror.stats().pending, mirror.stats().stale), (0, true));
    assert_eq!(mirror.0.lock().waiters, [first]);
    for seq in 0..WAITERS_MAX as u32 + 5 {
        mirror.changed(Device::Number(0), Some(ticket(address(0), seq)));
    }
    assert_eq!(mirror.0.lock().waiters.len(), WAITERS_MAX);
}

#[test]
fn fuzz_a_server_that_says_anything() {
    let corpus: [&[u8]; 2] = [b"+PONG\r\n:1\r\n+OK\r\n", b"-LOADING\r\n"];
    let listener = TcpListener::bind(loopback()).unwrap();
    let bench = Bench::new(listener.local_addr().unwrap(), Duration::from_millis(50));
    let mut tried = 0;
    throng_fuzz::mutations(&corpus, |input, _| {
        tried += 1;
        if tried > 5 {
            return;
        }
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.write_all(input);
    });
    drop(listener);
    bench.until(|stats| stats.errors > 0 && !stats.connected);
}
