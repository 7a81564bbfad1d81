//! Long bodies that all users share: they are stored once, and arrive complete whatever the socket
//! takes at a time.

use std::cell::RefCell;

use throng_program::Slow;

use super::values::text_with;
use super::*;
use crate::trace::What;

/// Bytes without any repetition.
fn long_body() -> Vec<u8> {
    let mut random = Random::new(7);
    (0..40_000).map(|_| random.below(256) as u8).collect()
}

/// Head and body of each request.
type Heard = Rc<RefCell<Vec<(String, Vec<u8>)>>>;

/// A server that waits for complete requests, and answers them as `answer` says for their head.
fn reading(answer: impl Fn(&str) -> Vec<u8> + 'static) -> (Server, Heard) {
    let heard = Heard::default();
    let all = Rc::clone(&heard);
    let server = move |asked: &mut Vec<u8>, _: &mut Random| {
        let Some(end) = memchr::memmem::find(asked, b"\r\n\r\n") else { return Vec::new() };
        let head = String::from_utf8(asked[..end + 4].to_vec()).unwrap();
        let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
        let whole = end + 4 + length.map_or(0, |length| length.parse().unwrap());
        if asked.len() < whole {
            return Vec::new();
        }
        let deeds = vec![(MS, Deed::Say(answer(&head)))];
        all.borrow_mut().push((head, asked[end + 4..whole].to_vec()));
        asked.drain(..whole);
        deeds
    };
    (Box::new(server), heard)
}

fn post(change: impl FnOnce(&mut Http)) -> Statement {
    let mut request = get(Vec::new());
    if let Statement::Http(http) = &mut request {
        let http = Arc::make_mut(http);
        http.method = "POST".into();
        http.body = Body::Text(Text::literal(long_body()));
        http.timeout = 3600 * S;
        change(http);
    }
    request
}

fn uploads(code: Block, times: u64) -> Program {
    program(Scheme::Http, vec![session(code, 0)], HTTP, iterations(5, times))
}

/// One for each way a request is written, and what changes its head.
fn ways() -> Vec<Block> {
    let header = |http: &mut Http| {
        http.headers.push(("X-Number".into(), text_with("${random.u64()}", Escape::None)));
    };
    let slow = Slow { write: Some(100_000), ..Slow::default() };
    vec![
        vec![post(|_| {})],
        vec![post(header)],
        vec![get(Vec::new()), Statement::Slow { link: 0, slow }, post(|_| {}), post(header)],
    ]
}

fn is_post(statement: &Statement) -> bool {
    matches!(statement, Statement::Http(http) if http.method == "POST")
}

fn comes_whole(code: &[Statement], clogged: f64, traced: bool) {
    // The first response sets a cookie, which all later requests send.
    let cookie = b"HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\nContent-Length: 0\r\n\r\n";
    let (server, heard) = reading(move |_| cookie.to_vec());
    let play = Play { traced, ..Play::new(uploads(code.to_vec(), 20), 3) };
    let outcome = play.run(|world| world.clog(clogged), server);
    outcome.is_sound(3);
    let total = outcome.sum.total();
    assert_eq!(total.ok, total.count, "{:?}", total.errors);
    let (heard, body) = (heard.take(), long_body());
    let posted: Vec<_> = heard.iter().filter(|one| one.0.starts_with("POST ")).collect();
    assert_eq!(posted.len(), 20 * code.iter().filter(|one| is_post(one)).count());
    assert!(posted.iter().all(|one| one.1 == body && one.0.contains("Length: 40000\r\n")));
    assert!(posted.iter().any(|one| one.0.contains("Cookie: a=1")));
    let bytes: usize = heard.iter().map(|one| one.0.len() + one.1.len()).sum();
    assert_eq!((outcome.written, outcome.sum.traffic.bytes_out), (bytes as u64, bytes as u64));
    let is_whole = |one: &Trace| matches!(&one.what, What::Sent(sent) if sent.length > 40_000);
    assert_eq!(outcome.traces.iter().any(is_whole), traced);
}

#[test]
fn a_long_body_arrives_byte_for_byte_whatever_the_socket_takes() {
    for code in ways() {
        for clogged in [0.0, 0.5, 0.9] {
            comes_whole(&code, clogged, false);
            comes_whole(&code, clogged, true);
        }
    }
}

#[test]
fn a_redirect_repeats_or_drops_a_long_body() {
    for (status, method, length) in [(307, "POST", 40_000), (302, "GET", 0)] {
        let (server, heard) = reading(move |head| match head.contains(" /new ") {
            true => HELLO.to_vec(),
            false => {
                let head = format!("HTTP/1.1 {status} Moved\r\nLocation: /new\r\n");
                format!("{head}Content-Length: 0\r\n\r\n").into()
            }
        });
        let code = vec![post(|http| http.follow_redirects = true)];
        let outcome = run(uploads(code, 20), 4, |world| world.clog(0.5), server);
        outcome.is_sound(4);
        assert_eq!(outcome.sum.total().ok, 20);
        let heard = heard.take();
        let followed: Vec<_> = heard.iter().filter(|one| one.0.contains(" /new ")).collect();
        assert_eq!((heard.len(), followed.len()), (40, 20));
        let body = &long_body()[..length];
        assert!(followed.iter().all(|one| one.0.starts_with(method) && one.1 == body));
    }
}

#[test]
fn a_resent_request_has_its_body() {
    let kept = 50 * MS;
    let think = Pause::Uniform { low: kept - MS / 5, high: kept + MS / 5 };
    let code = vec![post(|http| http.method = "PUT".into()), Statement::Think(think)];
    let (reads, heard) = reading(|_| HELLO.to_vec());
    let server: Server = Box::new(move |asked, random| {
        let mut deeds = reads(asked, random);
        if !deeds.is_empty() {
            deeds.push((kept, Deed::Close));
        }
        deeds
    });
    let outcome = run(uploads(code, 300), 1, |world| world, server);
    outcome.is_sound(1);
    assert!(outcome.sum.total().resent > 3, "{}", outcome.sum.total().resent);
    assert!(heard.take().iter().all(|one| one.1 == long_body()));
}

#[test]
fn a_failure_reports_the_length_of_the_request() {
    let (server, heard) = reading(|_| b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n".to_vec());
    let outcome = run(uploads(vec![post(|_| {})], 5), 1, |world| world, server);
    outcome.is_sound(1);
    let sent = outcome.examples[0].evidence.as_ref().and_then(|one| one.exchange.sent.clone());
    let (head, body) = heard.take().swap_remove(0);
    let whole = [head.as_bytes(), &body].concat();
    let sent = sent.unwrap();
    assert_eq!(sent.length, whole.len() as u64);
    assert!(!sent.bytes.is_empty() && whole.starts_with(&sent.bytes));
}

/// A request to a target that hardly reads waits for as long as the step says.
#[test]
fn a_send_waits_no_longer_than_its_timeout() {
    let large = Message::plain(MessageKind::Text, Text::literal(vec![b'x'; 1 << 20]));
    let send = Statement::Send(Arc::new(throng_program::Send {
        step: StepId(1),
        link: 0,
        message: large,
        timeout: 2 * S,
        failing: Failing::default(),
    }));
    let drive = Drive::Iterations(Iterations::new(3, None, Some(3)));
    let steps = [StepKind::Connect, StepKind::Send];
    let slow = Slow { write: Some(1000), ..Slow::default() };
    let code = vec![connect(), Statement::Slow { link: 0, slow }, send];
    let program = program(Scheme::Tcp, vec![session(code, 2)], &steps, phase(drive, None));
    let outcome = run(program, 72, |world| world, Box::new(|_, _| Vec::new()));
    outcome.is_sound(72);
    assert_eq!(outcome.step(1).errors, [(Cause::Timeout, 3)]);
    assert!(outcome.end < Time::from_secs(4), "{:?}", outcome.end);
}
