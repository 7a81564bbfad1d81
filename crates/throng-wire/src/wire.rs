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

/// The namespaces of the calling thread.
const NAMESPACE: &str = "/proc/thread-self/ns/net";
/// The device of the users, in their namespace.
const INNER: &str = "throng0";
/// Maximum number of packets in a device that the wire has not read; the kernel drops more.
const DEVICE_QUEUE: u32 = 8192;
/// Maximum number of packets read from a device before due packets are delivered.
const READ_AT_ONCE: usize = 64;
/// Maximum size of a packet: the MTU of the devices is 1,500 bytes.
const PACKET_BYTES_MAX: usize = 2048;
/// Maximum wait before the thread checks whether it must stop.
const LOOK: Duration = Duration::from_millis(20);
/// How often the thread reads how many packets the kernel dropped.
const ASK: Duration = Duration::from_secs(1);
/// At the end, the wire is idle after this time without a packet.
const QUIET: Duration = Duration::from_millis(100);

/// A wire whose thread carries packets until it is dropped.
pub struct Wire {
    block: Block,
    /// The namespace of the users' sockets, and that of everything else.
    users: File,
    host: File,
    is_over: Arc<AtomicBool>,
    counts: Arc<Mutex<Counts>>,
    thread: Option<JoinHandle<()>>,
}

impl Wire {
    /// A wire for users with these networks.
    ///
    /// # Errors
    /// Says why there can be none on this host.
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
                    // The caller waits for this result.
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

    /// The number of users of one network that have an address of their own.
    pub fn users_max(&self) -> u64 {
        self.block.users_max()
    }

    /// The source address of a user.
    pub fn address(&self, network: usize, user: u64) -> Ipv4Addr {
        self.block.address(network, user)
    }

    /// Creates a socket in the namespace of the users. A socket stays in its namespace.
    pub fn inside<T>(&self, make: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        system::enter(&self.users)?;
        let made = make();
        system::enter(&self.host)?;
        made
    }

    /// Counts of all packets so far.
    pub fn counts(&self) -> Counts {
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Wire {
    /// Delivers the packets in flight: the last ones of closed connections.
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The state of the wire's thread.
struct Carrier {
    block: Block,
    /// The name of the device on the host.
    outer_name: String,
    inner: File,
    outer: File,
    queues: Queues,
    clock: Clock,
    delay_max: Duration,
    /// Packets that the kernel dropped, and when this was last read.
    device_drops: u64,
    asked: Time,
}

impl Carrier {
    /// Creates the devices, moves the calling thread into the namespace of the users, and returns
    /// that namespace.
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

    /// Reads packets from one side, and returns their number.
    fn read(&mut self, way: Way, buffer: &mut [u8], now: Time) -> usize {
        let mut device = match way {
            Way::Up => &self.inner,
            Way::Down => &self.outer,
        };
        for count in 0..READ_AT_ONCE {
            // The device has no packet, or reading failed.
            let Ok(bytes) = device.read(buffer) else { return count };
            self.queues.put(way, &buffer[..bytes], now);
        }
        READ_AT_ONCE
    }

    /// Delivers the packets that are due, and returns their number.
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

    /// Counts packets that the kernel dropped because the wire did not read them in time.
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

/// Takes the first free block. The process that owns a block's device owns the block.
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

/// Brings a device in the calling thread's namespace up, with these routes.
fn set_up(name: &str, routes: &[((Ipv4Addr, u8), Scope)]) -> io::Result<()> {
    // Otherwise the kernel would send IPv6 announcements. Without IPv6 there is nothing to set.
    let _ = fs::write(format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6"), "1");
    // Targets may be on the host's loopback interface; by default the kernel drops packets from
    // other devices to its addresses (ip-sysctl in the kernel's documentation).
    fs::write(format!("/proc/sys/net/ipv4/conf/{name}/route_localnet"), "1")?;
    let number = system::device_number(name)?;
    let mut control = Control::open()?;
    control.ask(&device_up(number, DEVICE_QUEUE))?;
    routes.iter().try_for_each(|(prefix, scope)| control.ask(&route(number, *prefix, *scope)))
}

/// The dropped packets of a device, from `/proc/net/dev` (proc(5)).
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

/// Whether packets of users reach this address: the host has it, or forwards packets.
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
