//! Responses that are valid, but rare.

use crate::faulty::Faulty;
use crate::run::{Run, throng};

/// A server that sends each of the responses in turn on a connection, and then closes it.
fn server(answers: &'static [&'static str]) -> Faulty {
    Faulty::start(move |mut peer| {
        for answer in answers {
            if peer.request().is_none() {
                return;
            }
            peer.says(answer.as_bytes());
        }
        peer.closes();
    })
}

fn bench(server: &Faulty, line: &str) -> Run {
    let url = server.url("http");
    throng(&format!("bench {url} -n 12 -c 3 --timeout 5s {line} --json")).run()
}

#[track_caller]
fn succeeds(answers: &'static [&'static str], line: &str) {
    bench(&server(answers), line).succeeds(12);
}

#[test]
fn bodies_end_in_every_way() {
    succeeds(&["HTTP/1.1 200 OK\r\n\r\nuntil the end"], "--expect-text end");
    succeeds(&["HTTP/1.0 200 OK\r\n\r\nuntil the end"], "--expect-text end");
    succeeds(&["HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi"], "");
    succeeds(&["HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi"], "--expect-text hi");
    succeeds(&["HTTP/1.1 200\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"], "");
    succeeds(&["HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"], "--expect-status 204");
    succeeds(&["HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\nConnection: close\r\n\r\n"], "");
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 99999\r\nConnection: close\r\n\r\n";
    bench(&Faulty::says(head), "-m HEAD").succeeds(12);
}

#[test]
fn chunks_have_extensions_and_trailers() {
    succeeds(
        &["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n\
           3;name=value\r\nnee\r\n003\r\ndle\r\n0\r\nX-Trailer: yes\r\n\r\n"],
        "--expect-text needle",
    );
}

#[test]
fn interim_responses_are_skipped() {
    succeeds(
        &["HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n\
           HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nreal"],
        "--expect-text real",
    );
}

#[test]
fn a_kept_connection_may_end_between_requests() {
    // Three responses, then an unannounced close: the next request finds the connection closed.
    let answers = &["HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"; 3];
    let server = server(answers);
    let run = bench(&server, "--think 50ms").succeeds(12);
    run.within("/connections/opened", 4.0, 12.0);
}

#[test]
fn a_response_may_arrive_byte_by_byte() {
    let server = Faulty::start(|mut peer| {
        let answer =
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nneedle\r\n0\r\n\r\n";
        while peer.request().is_some() {
            for byte in answer.as_bytes() {
                peer.says(&[*byte]);
            }
        }
    });
    bench(&server, "--expect-text needle").succeeds(12);
}
