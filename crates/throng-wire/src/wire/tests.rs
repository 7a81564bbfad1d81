//! With the kernel: these tests need root and /dev/net/tun.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, TcpStream};

use socket2::{Domain, Socket, Type};

use super::*;

fn wire(delay_ms: u64, loss: f64, rate: Option<u64>) -> Wire {
    let delay = Duration::from_millis(delay_ms);
    let network = UserNetwork { delay: (delay, delay), loss, rate };
    Wire::start(&[network], 7).expect("a host with /dev/net/tun, and root")
}

fn socket(wire: &Wire, kind: Type, user: u64) -> Socket {
    let socket = wire.inside(|| Socket::new(Domain::IPV4, kind, None)).unwrap();
    let address = SocketAddr::new(wire.address(0, user).into(), 0);
    socket.bind(&address.into()).unwrap();
    socket
}

/// A connection of a user over the wire, and the target's end of it.
fn connection(wire: &Wire, user: u64) -> (Socket, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let socket = socket(wire, Type::STREAM, user);
    socket.connect(&listener.local_addr().unwrap().into()).unwrap();
    (socket, listener.accept().unwrap().0)
}

#[test]
fn a_handshake_and_a_reply_take_a_round_trip_each() {
    let (wire, clock) = (wire(60, 0.0, None), Clock::start());
    let (mut user, mut target) = connection(&wire, 5);
    let connected = clock.now() - Time::ZERO;
    assert!(connected >= Duration::from_millis(60), "{connected:?}");
    assert_eq!(target.peer_addr().unwrap().ip(), wire.address(0, 5));
    user.write_all(b"ping").unwrap();
    let mut bytes = [0; 4];
    target.read_exact(&mut bytes).unwrap();
    target.write_all(b"pong").unwrap();
    user.read_exact(&mut bytes).unwrap();
    let replied = clock.now() - Time::ZERO - connected;
    assert!(&bytes == b"pong" && replied >= Duration::from_millis(60), "{replied:?}");
}

#[test]
fn data_of_a_closed_connection_arrives_before_the_wire_ends() {
    let wire = wire(80, 0.0, None);
    let (mut user, mut target) = connection(&wire, 1);
    user.write_all(b"last").unwrap();
    drop(user);
    drop(wire);
    let mut heard = Vec::new();
    target.set_nonblocking(true).unwrap();
    target.read_to_end(&mut heard).expect("the end has come");
    assert_eq!(heard, b"last");
}

#[test]
fn every_missing_packet_is_counted_as_lost() {
    const SENT: u64 = 4000;
    let wire = wire(2, 0.05, None);
    let target = UdpSocket::bind("127.0.0.1:0").unwrap();
    target.set_nonblocking(true).unwrap();
    let user = socket(&wire, Type::DGRAM, 9);
    user.connect(&target.local_addr().unwrap().into()).unwrap();
    let mut heard = 0;
    let mut hear = || match target.recv(&mut [0; 16]) {
        Ok(_) => heard += 1,
        Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
    };
    for sent in 1..=SENT {
        user.send(b"packet").unwrap();
        // No queue is ever long.
        loop {
            let counts = wire.counts();
            hear();
            if counts.carried + counts.lost + 50 > sent {
                break;
            }
        }
    }
    while wire.counts().carried + wire.counts().lost < SENT {
        hear();
    }
    (0..100).for_each(|_| hear());
    let counts = wire.counts();
    assert_eq!((counts.carried, counts.dropped, counts.overflowed), (heard, 0, 0));
    assert_eq!(counts.lost, SENT - heard);
    assert!(counts.lost > 100, "{counts:?}");
}

#[test]
fn a_stream_is_complete_despite_loss_and_limited_by_the_rate() {
    const BYTES: usize = 500_000;
    let (wire, clock) = (wire(10, 0.02, Some(20_000_000)), Clock::start());
    let (mut user, mut target) = connection(&wire, 1);
    let begun = clock.now();
    let sender = std::thread::spawn(move || target.write_all(&vec![b'x'; BYTES]));
    let mut heard = vec![0; BYTES];
    user.read_exact(&mut heard).unwrap();
    let took = clock.now() - begun;
    sender.join().unwrap().unwrap();
    assert!(heard.iter().all(|byte| *byte == b'x'));
    // 20 Mbit/s are 2.5 bytes in a microsecond.
    assert!(took >= Duration::from_millis(200), "{took:?}");
    assert!(wire.counts().lost > 0);
}

#[test]
fn a_target_on_this_host_is_reached_without_forwarding() {
    assert_eq!(check_reachable(Ipv4Addr::LOCALHOST.into()), Ok(()));
}

#[test]
fn drops_of_the_kernel_are_read_from_its_table() {
    assert_eq!(drops("/proc/self/net/dev", "none0"), 0);
    let file = "  lo: 1 2 3 4 5 6 7 8 9 10 11 12 13\nthrong0: 1 2 3 4 5 6 7 8 9 10 11 99 13\n";
    let folder = std::env::temp_dir().join(format!("throng-wire-{}", std::process::id()));
    fs::write(&folder, file).unwrap();
    assert_eq!(drops(folder.to_str().unwrap(), "throng0"), 99);
    fs::remove_file(&folder).unwrap();
}
