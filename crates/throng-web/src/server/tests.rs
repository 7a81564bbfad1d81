//! Clients that send invalid, excessive, incomplete or no data, and viewers that do not read.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use super::*;
use crate::Hub;

fn started() -> (Running, SocketAddr) {
    let server = Server::bind("127.0.0.1:0").unwrap();
    let address = server.address();
    let answer = |request: &Request| {
        Reply::text(200, format!("{} {} {:?}", request.method, request.path, request.body))
    };
    (server.run("test", answer).unwrap(), address)
}

fn connected(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

/// Everything that the server sends until it closes the connection.
fn said(address: SocketAddr, request: &[u8]) -> String {
    let mut stream = connected(address);
    // The server may disconnect before it has received everything.
    let _ = stream.write_all(request);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn a_request_gets_a_response_and_its_connection_is_closed() {
    let (_running, address) = started();
    let answer = said(address, b"POST /x?y=1 HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nab");
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    assert!(answer.ends_with("POST /x b\"ab\""), "{answer}");
    for header in ["connection: close", "cache-control: no-store", "x-frame-options: DENY"] {
        assert!(answer.contains(header), "{answer}");
    }
}

#[test]
fn a_file_name_cannot_break_the_header() {
    let server = Server::bind("127.0.0.1:0").unwrap();
    let address = server.address();
    let name = "20261127-shop \"é\"\r\nX: y.csv";
    let _running = server.run("test", |_| Reply::text(200, "a,b").attachment(name)).unwrap();
    let answer = said(address, b"GET / HTTP/1.1\r\n\r\n");
    let wanted = "content-disposition: attachment; filename=\"20261127-shop______X__y.csv\"\r\n";
    assert!(answer.contains(wanted), "{answer}");
}

#[test]
fn oversized_or_invalid_requests_are_refused() {
    let (_running, address) = started();
    let long = format!("GET / HTTP/1.1\r\nA: {}\r\n\r\n", "a".repeat(1 << 20));
    let answer = said(address, long.as_bytes());
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{answer}");
    let many = "A: b\r\n".repeat(HEADERS_MAX + 1);
    let answer = said(address, format!("GET / HTTP/1.1\r\n{many}\r\n").as_bytes());
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{answer}");
    let body = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n100000\r\n";
    let answer = said(address, &[&body[..], &vec![b'a'; 1 << 20]].concat());
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 413"), "{answer}");
    for nonsense in [&b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n"[..], b"GET\r\n\r\n", b"\r\n\r\n\r\n"]
    {
        assert!(!said(address, nonsense).starts_with("HTTP/1.1 200"));
    }
    assert!(said(address, b"GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200"));
}

#[test]
fn a_thousand_silent_clients_do_not_block_others() {
    let (_running, address) = started();
    let silent: Vec<TcpStream> = (0..1_000).map(|_| connected(address)).collect();
    let answer = said(address, b"GET /in HTTP/1.1\r\n\r\n");
    assert!(answer.ends_with("GET /in b\"\""), "{answer}");
    // The oldest are closed first; the last of them may still be closing.
    for mut stream in &silent[..1_000 - CONNECTIONS_MAX] {
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let end = stream.read(&mut [0]);
        let is_open = |error: &io::Error| error.kind() == io::ErrorKind::WouldBlock;
        assert!(!end.as_ref().is_err_and(is_open), "it is still there: {end:?}");
    }
}

#[test]
fn a_slow_client_is_disconnected() {
    let (_running, address) = started();
    let mut stream = connected(address);
    stream.write_all(b"GET / HTTP/1.1\r\nHost:").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    assert!(!String::from_utf8_lossy(&answer).starts_with("HTTP/1.1 200"));
}

#[test]
fn a_viewer_that_does_not_read_is_dropped_without_affecting_others() {
    const MESSAGES: usize = 4_000;
    let server = Server::bind("127.0.0.1:0").unwrap();
    let address = server.address();
    let (ready, both) = std::sync::mpsc::channel();
    let worker = std::thread::spawn(move || {
        let hub = Rc::new(RefCell::new(Hub::new(1)));
        let joined = Rc::clone(&hub);
        let answer = move |request: Request| {
            let reply =
                joined.borrow_mut().join(None, &request.connection, |hub| hub.message("all", "-"));
            std::future::ready(reply)
        };
        in_thread(async move {
            let connections = Connections::default();
            let work = async {
                while hub.borrow_mut().viewers() < 2 {
                    tokio::task::yield_now().await;
                }
                ready.send(()).unwrap();
                let text = "x".repeat(10_000);
                // As fast as the reading viewer accepts it.
                for _ in 0..MESSAGES {
                    hub.borrow_mut().tell("second", &text);
                    tokio::time::sleep(Duration::from_micros(200)).await;
                }
                assert_eq!(hub.borrow_mut().viewers(), 1, "one is there");
                assert_eq!(hub.borrow().dropped(), 1);
                hub.borrow_mut().close();
                while connections.busy() > 0 {
                    tokio::task::yield_now().await;
                }
            };
            tokio::select! {
                () = work => {}
                _ = server.serve(connections.clone(), answer) => {}
            }
        });
    });
    let get = b"GET / HTTP/1.1\r\n\r\n";
    let mut deaf = connected(address);
    deaf.write_all(get).unwrap();
    let mut viewer = connected(address);
    viewer.write_all(get).unwrap();
    both.recv_timeout(Duration::from_secs(20)).unwrap();
    let mut told = Vec::new();
    viewer.read_to_end(&mut told).unwrap();
    worker.join().unwrap();
    let told = String::from_utf8_lossy(&told);
    assert_eq!(told.matches("event: second\n").count(), MESSAGES);
    assert!(told.contains(&format!("id: 1-{MESSAGES}\n")));
}
