//! The devices of the wire, and the thread that carries packets between them.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use throng_base::{Clock, Said, Time};
use throng_program::UserNetwork;

use crate::block::{BLOCKS, Block, PREFIX};
use crate::netlink::{Control, Scope, device_up, route};
use crate::queues::{Counts, Queues, Way};
use crate::system;

/// The namespaces of the thread that looks.
const NAMESPACE: &str = "/proc/thread-self/ns/net";
/// The device of the users, in their namespace.
const INNER: &str = "throng0";
/// Packets that may wait for the wire in a device; the kernel drops what comes beyond them.
const DEVICE_QUEUE: u32 = 8192;
/// Packets that are read from a device before those that are due are delivered.
const READ_AT_ONCE: usize = 64;
/// No packet of a device is larger: its MTU is 1,500 bytes.
const PACKET_BYTES_MAX: usize = 2048;
/// How long the wire waits at most before it looks whether it is to end.
const LOOK: Duration = Duration::from_millis(20);
/// How often the wire asks the kernel what it dropped.
const ASK: Duration = Duration::from_secs(1);
/// At the end: what no packet interrupts for so long is quiet.
const QUIET: Duration = Duration::from_millis(100);

/// A wire whose thread carries packets until it is dropped.
pub struct Wire {
    block: Block,
    /// Where users have their sockets, and where everything else is.
    users: File,
    host: File,
    is_over: Arc<AtomicBool>,
    counts: Arc<Mutex<Counts>>,
    thread: Option<JoinHandle<()>>,
}

impl Wire {
    /// A wire for users with these networks. Says in words why it cannot be.
    pub fn start(networks: &[UserNetwork], seed: u64) -> Result<Wire, Said> {
        let host = File::open(NAMESPACE).map_err(|error| cannot_set_up(&error))?;
        let (is_over, counts) = (Arc::new(AtomicBool::new(false)), Arc::default());
        let (sender, begun) = mpsc::channel();
        let work = {
            let (is_over, counts) = (Arc::clone(&is_over), Arc::clone(&counts));
            let networks = networks.to_vec();
            move || match Carrier::new(&networks, seed) {
                Ok((mut carrier, users)) => {
                    let block = carrier.block;
                    // The other end waits for it.
                    let _ = sender.send(Ok((block, users)));
                    carrier.work(&is_over, &counts);
                }
                Err(reason) => drop(sender.send(Err(reason))),
            }
        };
        let thread = std::thread::Builder::new().name("wire".into()).spawn(work);
        let thread = thread.map_err(|error| cannot_set_up(&error))?;
        let (block, users) = begun
            .recv()
            .unwrap_or_else(|_| Err(cannot_set_up(&io::ErrorKind::BrokenPipe.into())))?;
        Ok(Wire { block, users, host, is_over, counts, thread: Some(thread) })
    }

    /// Users of one network that have an address each.
    pub fn users_max(&self) -> u64 {
        self.block.users_max()
    }

    /// The source address of a user.
    pub fn address(&self, network: usize, user: u64) -> Ipv4Addr {
        self.block.address(network, user)
    }

    /// Makes a socket in the namespace of the users: it stays there.
    pub fn inside<T>(&self, make: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        system::enter(&self.users)?;
        let made = make();
        system::enter(&self.host)?;
        made
    }

    /// What became of the packets so far.
    pub fn counts(&self) -> Counts {
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Wire {
    /// Delivers what is on its way: the last packets of connections that were closed.
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What the thread of a wire has.
struct Carrier {
    block: Block,
    /// The name of the device on the host.
    outer_name: String,
    inner: File,
    outer: File,
    queues: Queues,
    clock: Clock,
    delay_max: Duration,
    /// What the kernel has dropped, and when it was asked.
    device_drops: u64,
    asked: Time,
}

impl Carrier {
    /// The devices, with the calling thread in the namespace of the users; and that namespace.
    fn new(networks: &[UserNetwork], seed: u64) -> Result<(Carrier, File), Said> {
        let (number, outer_name, outer) = claim()?;
        let block = Block::new(number, networks.len());
        let prefix = (block.first(), PREFIX);
        set_up(&outer_name, &[(prefix, Scope::Link)]).map_err(|error| cannot_set_up(&error))?;
        system::new_namespace().map_err(|error| cannot_set_up(&error))?;
        let made = || {
            let inner = system::tun(INNER)?;
            let anywhere = ((Ipv4Addr::UNSPECIFIED, 0), Scope::Link);
            set_up(INNER, &[(prefix, Scope::Local), anywhere])?;
            Ok((inner, File::open(NAMESPACE)?))
        };
        let (inner, users) = made().map_err(|error| cannot_set_up(&error))?;
        let carrier = Carrier {
            block,
            outer_name,
            inner,
            outer,
            queues: Queues::new(block, networks, seed),
            clock: Clock::start(),
            delay_max: networks.iter().map(|network| network.delay.1).max().unwrap_or_default(),
            device_drops: 0,
            asked: Time::ZERO,
        };
        Ok((carrier, users))
    }

    fn work(&mut self, is_over: &AtomicBool, counts: &Mutex<Counts>) {
        system::wait_exactly();
        system::go_first();
        let mut buffer = [0; PACKET_BYTES_MAX];
        let (mut quiet_since, mut over_since) = (Time::ZERO, None);
        loop {
            let now = self.clock.now();
            let came =
                self.read(Way::Up, &mut buffer, now) + self.read(Way::Down, &mut buffer, now);
            let went = self.deliver();
            self.count_drops(now);
            *counts.lock().unwrap_or_else(PoisonError::into_inner) = self.queues.counts;
            if came + went > 0 || self.queues.next_due().is_some() {
                quiet_since = now;
            }
            if is_over.load(Ordering::Relaxed) {
                let over_since = *over_since.get_or_insert(now);
                let longest = self.delay_max * 3 + QUIET * 10;
                if now - quiet_since >= QUIET || now - over_since >= longest {
                    return;
                }
            }
            if came == 0 {
                let now = self.clock.now();
                let due = self.queues.next_due().map_or(LOOK, |due| due - now);
                system::wait([&self.inner, &self.outer], due.min(LOOK));
            }
        }
    }

    /// Reads what has come from one side; how many packets.
    fn read(&mut self, way: Way, buffer: &mut [u8], now: Time) -> usize {
        let mut device = match way {
            Way::Up => &self.inner,
            Way::Down => &self.outer,
        };
        for count in 0..READ_AT_ONCE {
            // The device has no packet, or none that could be read.
            let Ok(bytes) = device.read(buffer) else { return count };
            self.queues.put(way, &buffer[..bytes], now);
        }
        READ_AT_ONCE
    }

    /// Delivers what is due; how many packets.
    fn deliver(&mut self) -> usize {
        let mut count = 0;
        while let Some((way, packet)) = self.queues.take(self.clock.now()) {
            let mut device = match way {
                Way::Up => &self.outer,
                Way::Down => &self.inner,
            };
            if device.write(&packet).is_err() {
                self.queues.counts.overflowed += 1;
            }
            count += 1;
            if count >= READ_AT_ONCE {
                break;
            }
        }
        count
    }

    /// Adds what the kernel dropped because the wire did not read it in time.
    fn count_drops(&mut self, now: Time) {
        if now - self.asked < ASK {
            return;
        }
        self.asked = now;
        let inner = drops("/proc/thread-self/net/dev", INNER);
        let drops = inner + drops("/proc/self/net/dev", &self.outer_name);
        self.queues.counts.overflowed += drops.saturating_sub(self.device_drops);
        self.device_drops = drops;
    }
}

/// The first block that no other process has: who has its device, has the block.
fn claim() -> Result<(u32, String, File), Said> {
    for number in 0..BLOCKS {
        let name = format!("throng{number}");
        match system::tun(&name) {
            Ok(device) => return Ok((number, name, device)),
            Err(error) if error.raw_os_error() == Some(system::EBUSY) => {}
            Err(error) => return Err(cannot_set_up(&error)),
        }
    }
    Err(say!(
        "{BLOCKS} processes on this host have users with a `network` already; wait until one of \
         them ends"
    ))
}

/// Puts a device of the calling thread's namespace into operation, with these routes.
fn set_up(name: &str, routes: &[((Ipv4Addr, u8), Scope)]) -> io::Result<()> {
    // Else the kernel would announce the device in IPv6; without IPv6 there is nothing to set.
    let _ = fs::write(format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6"), "1");
    // Targets may be on the loopback interface of the host, whose addresses no packet from another
    // device may have otherwise (ip-sysctl of the kernel).
    fs::write(format!("/proc/sys/net/ipv4/conf/{name}/route_localnet"), "1")?;
    let number = system::device_number(name)?;
    let mut control = Control::open()?;
    control.ask(&device_up(number, DEVICE_QUEUE))?;
    routes.iter().try_for_each(|(prefix, scope)| control.ask(&route(number, *prefix, *scope)))
}

/// Packets that a device could not hand over, as a table of devices has it (proc(5)).
fn drops(table: &str, device: &str) -> u64 {
    const SENT_DROPPED: usize = 11;
    let table = fs::read_to_string(table).unwrap_or_default();
    let own = |line: &str| {
        let numbers = line.trim_start().strip_prefix(device)?.strip_prefix(':')?;
        numbers.split_ascii_whitespace().nth(SENT_DROPPED)?.parse().ok()
    };
    table.lines().find_map(own).unwrap_or_default()
}

fn cannot_set_up(error: &io::Error) -> Said {
    match error.kind() {
        io::ErrorKind::PermissionDenied => say!(
            "`network` requires the capabilities CAP_NET_ADMIN and CAP_SYS_ADMIN: run as root, or \
             run `setcap cap_net_admin,cap_sys_admin+ep` on the program"
        ),
        io::ErrorKind::NotFound => say!(
            "`network` requires the device /dev/net/tun, which this host does not have; run \
             `modprobe tun`, or give the container the device (`--device /dev/net/tun`)"
        ),
        io::ErrorKind::Unsupported => say!("`network` requires Linux"),
        _ => say!("cannot set up the network of the users: {error}", error = Said::of_error(error)),
    }
}

/// Whether packets of users reach this address: it is of this host, or the host forwards them.
pub fn check_reachable(target: IpAddr) -> Result<(), Said> {
    let is_own = UdpSocket::bind((target, 0)).is_ok();
    let forwards = fs::read_to_string("/proc/sys/net/ipv4/ip_forward");
    match is_own || forwards.is_ok_and(|value| value.trim() != "0") {
        true => Ok(()),
        false => Err(say!(
            "`{target}` is on another host, and this host does not forward the packets of users \
             with a `network`; run `sysctl -w net.ipv4.ip_forward=1` and `iptables -t nat -A \
             POSTROUTING -s 198.18.0.0/15 -j MASQUERADE`"
        )),
    }
}

#[cfg(test)]
mod tests;
