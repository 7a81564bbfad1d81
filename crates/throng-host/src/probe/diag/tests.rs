//! Responses recorded on Linux 6.18, and the kernel of this host.

use std::net::{TcpListener, TcpStream};

use super::*;

/// A message of `inet_diag_msg` with these facts, as the kernel lays it out.
fn message(sequence: u32, port: u16, queue: u32, limit: u32, drops: u32) -> Vec<u8> {
    let mut body = vec![FAMILIES[0], 10, 0, 0];
    body.extend(port.to_be_bytes());
    body.extend([0, 0]);
    body.extend([127, 0, 0, 1]);
    body.resize(56, 0);
    for number in [queue, limit, 1000, 77] {
        body.extend(number.to_ne_bytes());
    }
    // An attribute of one byte with its padding, and the requested one.
    body.extend([5, 0, 8, 0, 3, 0, 0, 0, 40, 0, 7, 0]);
    for number in [0, 0, 0, 0, 0, 0, 0, 0, drops] {
        body.extend(number.to_ne_bytes());
    }
    let mut bytes = ((HEADER_BYTES + body.len()) as u32).to_ne_bytes().to_vec();
    bytes.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes.extend([2, 0]);
    bytes.extend(sequence.to_ne_bytes());
    bytes.extend([0; 4]);
    bytes.extend(body);
    bytes
}

fn ended(sequence: u32, kind: u16, code: i32) -> Vec<u8> {
    let mut bytes = 20u32.to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend([2, 0]);
    bytes.extend(sequence.to_ne_bytes());
    bytes.extend([0; 4]);
    bytes.extend(code.to_ne_bytes());
    bytes
}

fn all(bytes: &[u8]) -> (Vec<Found>, End) {
    let mut found = Vec::new();
    let end = answer(bytes, 7, |one| found.push(one));
    (found, end)
}

#[test]
fn only_the_response_to_the_request_is_read() {
    let bytes = [message(7, 8080, 129, 128, 3), message(6, 1, 0, 0, 0), ended(7, 3, 0)].concat();
    let (found, end) = all(&bytes);
    let expected = Found {
        state: 10,
        address: "127.0.0.1".parse().expect("an address"),
        port: 8080,
        queue: 129,
        queue_limit: 128,
        inode: 77,
        drops: Some(3),
    };
    assert_eq!((found, end), (vec![expected], End::Done));
    assert_eq!(all(&ended(7, 2, -2)).1, End::Failed(2));
}

#[test]
fn a_truncated_response_gives_only_complete_sockets() {
    let bytes = [message(7, 8080, 129, 128, 3), message(7, 81, 0, 5, 0)].concat();
    let whole = all(&bytes).0;
    for end in 0..bytes.len() {
        let found = all(&bytes[..end]).0;
        assert!(whole.starts_with(&found), "{end}");
        assert_eq!(found.len(), end / (bytes.len() / 2), "{end}");
    }
}

#[test]
fn fuzz_answers_of_the_kernel() {
    let answers = [message(7, 8080, 129, 128, 3), ended(7, 3, 0), ended(7, 2, -13)];
    let corpus: Vec<&[u8]> = answers.iter().map(Vec::as_slice).collect();
    throng_fuzz::mutations(&corpus, |bytes, _| drop(all(bytes)));
}

#[test]
fn the_kernel_reports_a_listener_and_its_connections() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let clients: Vec<TcpStream> =
        (0..3).map(|_| TcpStream::connect(address).expect("connected")).collect();
    let mut diag = Diag::open().expect("a socket");
    let mut queue = None;
    diag.ask(
        |number| listening(FAMILIES[0], number),
        |found| {
            if found.port == address.port() {
                queue = Some((found.queue, found.drops));
            }
        },
    )
    .expect("an answer");
    assert_eq!(queue, Some((3, Some(0))));
    let mut states = Vec::new();
    let ask = |number| connections(FAMILIES[0], address.port(), number);
    diag.ask(ask, |found| states.push((found.port, STATES[usize::from(found.state)])))
        .expect("an answer");
    assert_eq!(states, [(address.port(), "established"); 3]);
    drop(clients);
}
