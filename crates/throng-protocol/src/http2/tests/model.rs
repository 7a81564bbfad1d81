//! Our client and the `h2` crate as a server, in one process, over a pipe: many concurrent
//! exchanges, bodies in both directions through small windows, trailers, resets, GOAWAY.

use std::collections::HashMap;

use bytes::Bytes;
use h2::server::SendResponse;
use http::{HeaderMap, Request, Response};
use throng_base::Random;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::runtime::Builder;
use tokio::task::LocalSet;

use super::*;

/// What the server is asked to do, by the path: `/what/size of its body`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// A body, by its length or until the stream ends.
    Sized,
    Streamed,
    Trailers,
    Early,
    Reset,
    /// The client cancels when the head has arrived.
    Cancelled,
}

const WHATS: [What; 6] =
    [What::Sized, What::Streamed, What::Trailers, What::Early, What::Reset, What::Cancelled];

/// Byte `at` of every body.
fn byte(at: usize) -> u8 {
    (at * 31 % 251) as u8
}

fn body(size: usize) -> Vec<u8> {
    (0..size).map(byte).collect()
}

/// Serves one exchange; responds with the size of the received body, and a checksum.
async fn serve(request: Request<h2::RecvStream>, mut respond: SendResponse<Bytes>) {
    let mut words = request.uri().path()[1..].split('/').map(str::to_owned);
    let (what, size) = (words.next().unwrap(), words.next().unwrap().parse::<usize>().unwrap());
    let method = request.method().clone();
    let token = request.headers().get("x-token").map(|value| value.to_str().unwrap().to_owned());
    let mut incoming = request.into_body();
    if what == "Early" {
        let early = Response::builder().status(103).header("link", "</x>").body(()).unwrap();
        respond.send_informational(early).unwrap();
    }
    let (mut count, mut is_right) = (0, true);
    while let Some(piece) = incoming.data().await {
        // The client has given up.
        let Ok(piece) = piece else { return };
        is_right &= piece.iter().enumerate().all(|(at, found)| *found == byte(count + at));
        count += piece.len();
        let _ = incoming.flow_control().release_capacity(piece.len());
    }
    let mut head = Response::builder()
        .status(200)
        .header("x-received", format!("{count} {is_right}"))
        .header("x-method", method.as_str());
    if let Some(token) = token {
        head = head.header("x-token", token);
    }
    if what != "Streamed" && what != "Trailers" {
        head = head.header("content-length", size);
    }
    let empty = size == 0 || method == "HEAD";
    let Ok(mut stream) = respond.send_response(head.body(()).unwrap(), empty) else { return };
    if empty {
        return;
    }
    let mut rest = Bytes::from(body(size));
    while !rest.is_empty() {
        if what == "Reset" && rest.len() < size / 2 {
            return stream.send_reset(h2::Reason::INTERNAL_ERROR);
        }
        stream.reserve_capacity(rest.len());
        let Some(Ok(room)) = std::future::poll_fn(|cx| stream.poll_capacity(cx)).await else {
            return;
        };
        let piece = rest.split_to(room.min(rest.len()));
        if stream.send_data(piece, rest.is_empty() && what != "Trailers").is_err() {
            return;
        }
    }
    if what == "Trailers" {
        let mut trailers = HeaderMap::new();
        trailers.insert("x-sum", size.to_string().parse().unwrap());
        let _ = stream.send_trailers(trailers);
    }
}

struct Windows {
    stream: u32,
    connection: u32,
    streams_max: u32,
    table: u32,
}

/// Serves a connection; sends GOAWAY after `requests` of them.
async fn server(pipe: DuplexStream, windows: Windows, requests: usize) {
    let mut builder = h2::server::Builder::new();
    builder
        .initial_window_size(windows.stream)
        .initial_connection_window_size(windows.connection)
        .max_concurrent_streams(windows.streams_max)
        .header_table_size(windows.table);
    let mut connection = builder.handshake::<_, Bytes>(pipe).await.unwrap();
    let mut count = 0;
    while let Some(accepted) = connection.accept().await {
        let Ok((request, respond)) = accepted else { return };
        tokio::task::spawn_local(serve(request, respond));
        count += 1;
        if count == requests {
            connection.graceful_shutdown();
        }
    }
}

/// An exchange as the client sees it.
#[derive(Debug)]
struct SeenExchange {
    what: What,
    method: &'static str,
    size: usize,
    upload: usize,
    /// Of the upload: what has been handed to the machine.
    handed: usize,
    token: Option<String>,
    early: bool,
    status: u16,
    received: usize,
    trailers: Option<String>,
    end: Option<String>,
}

/// What is read, written and kept between the two.
struct Driver {
    client: Client,
    limits: Limits,
    pipe: DuplexStream,
    out: Vec<u8>,
    seen: HashMap<Token, SeenExchange>,
    going: bool,
    open_max: usize,
}

impl Driver {
    fn ask(&mut self, random: &mut Random) -> bool {
        if self.client.room().is_err() {
            return false;
        }
        let what = WHATS[random.below(6) as usize];
        let size = random.below(100) * random.below(1_500);
        let methods = ["GET", "POST", "POST", "HEAD"];
        let method = methods[random.below(4) as usize];
        let upload = match method {
            "POST" => random.below(100) * random.below(1_500),
            _ => 0,
        };
        let token = (random.below(2) == 0)
            .then(|| "t".repeat(10) + &random.below(7).to_string().repeat(300));
        let mut block = Vec::new();
        let path = format!("/{what:?}/{size}");
        write_request(&mut block, method, "http", "a.example", &path);
        let bytes = body(upload as usize);
        let shared: Arc<[u8]> = bytes.as_slice().into();
        let opens = random.below(3) == 0 && upload > 0;
        let body = match random.below(2) {
            _ if opens => Body::Open,
            0 => Body::Bytes(&bytes),
            _ => Body::Shared(&shared),
        };
        let indexed: Vec<(&[u8], &[u8])> =
            token.iter().map(|token| (&b"x-token"[..], token.as_bytes())).collect();
        let kind = if method == "HEAD" { RequestKind::Head } else { RequestKind::Normal };
        let ask = Ask { kind, block: &block, indexed: &indexed, body, body_bytes_max: u64::MAX };
        let id = self.client.ask(&ask, &mut self.out).unwrap();
        let (size, upload) = (size as usize, upload as usize);
        let handed = if opens { 0 } else { upload };
        let seen = SeenExchange {
            what,
            method,
            size,
            upload,
            handed,
            token,
            early: false,
            status: 0,
            received: 0,
            trailers: None,
            end: None,
        };
        self.seen.insert(id, seen);
        self.open_max = self.open_max.max(self.client.open_streams());
        true
    }

    /// Hands on pieces of uploads that have no backlog.
    fn hand_on(&mut self, random: &mut Random) {
        for (token, seen) in &mut self.seen {
            if seen.handed == seen.upload || seen.end.is_some() {
                continue;
            }
            if self.client.backlog(*token) > 0 {
                continue;
            }
            let piece = (1 + random.below(60_000) as usize).min(seen.upload - seen.handed);
            let bytes = &body(seen.upload)[seen.handed..seen.handed + piece];
            seen.handed += piece;
            let last = seen.handed == seen.upload;
            self.client.send(*token, Body::Bytes(bytes), last, &mut self.out).unwrap();
        }
    }

    fn receive(&mut self, bytes: &[u8]) {
        let (seen, mut given_up, mut rest) = (&mut self.seen, Vec::new(), bytes);
        let (limits, out, mut room) = (&self.limits, &mut self.out, Vec::new());
        while let Some(event) =
            self.client.next(Time::ZERO, &mut rest, limits, &mut room, out).unwrap()
        {
            let (token, part) = match event {
                Event::Reply { token, part } => (token, part),
                Event::Reset { token, code, unprocessed } => {
                    let end = if unprocessed { "unprocessed".into() } else { code.to_string() };
                    seen.get_mut(&token).unwrap().end = Some(end);
                    continue;
                }
                Event::Failed { token, violation } => panic!("{token:?}: {violation}"),
                Event::GoAway { .. } => {
                    self.going = true;
                    continue;
                }
                Event::Settings { .. } | Event::Pong { .. } => continue,
            };
            let one = seen.get_mut(&token).unwrap();
            match part {
                Part::Informational(head) => {
                    assert_eq!((head.status, head.headers.get("link")), (103, Some(&b"</x>"[..])));
                    one.early = true;
                }
                Part::Head(head) => {
                    one.status = head.status;
                    let header = |name| head.headers.get(name).map(|value| value.to_vec());
                    let received = format!("{} true", one.upload);
                    assert_eq!(header("x-received"), Some(received.into_bytes()));
                    assert_eq!(header("x-method"), Some(one.method.into()));
                    assert_eq!(header("x-token"), one.token.clone().map(String::into_bytes));
                    if one.what == What::Cancelled && one.size > 0 && one.method != "HEAD" {
                        given_up.push(token);
                    }
                }
                Part::Body(bytes) => {
                    let right = (one.received..).zip(bytes).all(|(at, found)| *found == byte(at));
                    assert!(right, "{one:?}");
                    one.received += bytes.len();
                }
                Part::Trailers(headers) => {
                    let sum = headers.get("x-sum").unwrap();
                    one.trailers = Some(String::from_utf8(sum.to_vec()).unwrap());
                }
                Part::End => one.end = Some("end".to_owned()),
            }
        }
        for token in given_up {
            let seen = self.seen.get_mut(&token).unwrap();
            if seen.end.is_none() {
                self.client.cancel(token, ErrorCode::CANCEL, &mut self.out).unwrap();
                seen.end = Some("cancelled".to_owned());
            }
        }
    }

    /// Writes and reads, whichever is possible.
    async fn turn(&mut self) {
        let mut buffer = [0; 5_000];
        let read = if self.out.is_empty() {
            Some(self.pipe.read(&mut buffer).await.unwrap())
        } else {
            let (mut reading, mut writing) = tokio::io::split(&mut self.pipe);
            let read = std::pin::pin!(reading.read(&mut buffer));
            let write = std::pin::pin!(writing.write(&self.out));
            let (read, written) = either(read, write).await;
            self.out.drain(..written);
            read
        };
        match read {
            Some(0) => panic!("the server has closed"),
            Some(length) => self.receive(&buffer[..length]),
            None => {}
        }
        if self.out.is_empty() {
            self.client.drained(&mut self.out);
        }
    }
}

/// Whichever of the two is done first.
async fn either(
    mut read: std::pin::Pin<&mut impl Future<Output = std::io::Result<usize>>>,
    mut write: std::pin::Pin<&mut impl Future<Output = std::io::Result<usize>>>,
) -> (Option<usize>, usize) {
    std::future::poll_fn(|cx| {
        if let std::task::Poll::Ready(read) = read.as_mut().poll(cx) {
            return std::task::Poll::Ready((Some(read.unwrap()), 0));
        }
        write.as_mut().poll(cx).map(|written| (None, written.unwrap()))
    })
    .await
}

fn check(seen: &SeenExchange) {
    let whole = seen.received == if seen.method == "HEAD" { 0 } else { seen.size };
    let end = seen.end.as_deref();
    let has_body = seen.size > 0 && seen.method != "HEAD";
    match seen.what {
        _ if end == Some("unprocessed") => assert_eq!(seen.status, 0),
        What::Reset if has_body && seen.received < seen.size => {
            assert_eq!(end, Some("INTERNAL_ERROR"), "{seen:?}");
        }
        What::Cancelled if has_body => assert!(matches!(end, Some("cancelled" | "end"))),
        _ => assert!(end == Some("end") && whole && seen.status == 200, "{seen:?}"),
    }
    assert_eq!(seen.early, seen.what == What::Early && end != Some("unprocessed"));
    let trailers = seen.what == What::Trailers && has_body && end == Some("end");
    assert_eq!(seen.trailers, trailers.then(|| seen.size.to_string()), "{seen:?}");
}

/// As many concurrent requests as the server allows, until it has enough.
async fn exchange(seed: u64, requests: usize) {
    let mut random = Random::for_owner(99, seed);
    let (near, far) = duplex(1 + random.below(30_000) as usize);
    let windows = Windows {
        stream: 1_000 + random.below(70_000) as u32,
        connection: 65_535 + random.below(70_000) as u32,
        streams_max: 1 + random.below(40) as u32,
        table: random.below(5_000) as u32,
    };
    let streams_max = windows.streams_max as usize;
    tokio::task::spawn_local(server(far, windows, requests));
    let limits = Limits {
        stream_window_bytes: 1_000 + random.below(100_000) as u32,
        connection_window_bytes: 65_535 + random.below(100_000) as u32,
        header_table_bytes: random.below(4_000) as u16,
        ..Limits::default()
    };
    let mut client = Client::new(&limits);
    let mut out = Vec::new();
    client.open(&limits, &mut out);
    let seen = HashMap::new();
    let mut driver = Driver { client, limits, pipe: near, out, seen, going: false, open_max: 0 };
    while !driver.client.is_ready() {
        driver.turn().await;
    }
    while !driver.going || driver.client.open_streams() > 0 {
        while random.below(3) > 0 && driver.ask(&mut random) {}
        driver.hand_on(&mut random);
        // The server sends nothing as long as it is asked nothing.
        if driver.out.is_empty() && driver.client.open_streams() == 0 && !driver.going {
            continue;
        }
        driver.turn().await;
    }
    assert!(driver.seen.len() >= requests);
    assert!(driver.open_max <= streams_max);
    driver.seen.values().for_each(check);
    let kept = driver.client.heap_bytes();
    assert!(kept < 12_000, "{kept} bytes");
}

#[test]
fn fuzz_we_interoperate_with_the_h2_crate() {
    for case in throng_fuzz::cases(100) {
        let runtime = Builder::new_current_thread().build().unwrap();
        let seed = case.random().next_u64();
        case.try_on(b"", || LocalSet::new().block_on(&runtime, exchange(seed, 60)));
    }
}
