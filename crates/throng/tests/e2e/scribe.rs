//! An HTTP server that writes down every request: what was asked, on which connection, and when.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use throng_base::{Clock, Time};

use crate::faulty::Faulty;

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) at: Time,
    pub(crate) connection: u64,
    /// Method and path: `GET /`.
    pub(crate) what: String,
    head: String,
    pub(crate) body: String,
}

impl Asked {
    /// The value of a header; its name in small letters.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.into_iter().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

pub(crate) struct Scribe {
    faulty: Faulty,
    book: Arc<Mutex<Vec<Asked>>>,
}

impl Scribe {
    /// Answers 200 with `{"n":N}`, N being the number of the request, counted from 1.
    pub(crate) fn start() -> Scribe {
        Scribe::on("127.0.0.1:0", |_, number| ok(&format!("{{\"n\":{number}}}")))
    }

    /// The same, where nobody else connects: other tests take ports of 127.0.0.1 for closed that
    /// are free for a moment.
    pub(crate) fn apart() -> Scribe {
        Scribe::on("127.0.0.30:0", |_, number| ok(&format!("{{\"n\":{number}}}")))
    }

    /// Answers as the test says: the request, and its number.
    pub(crate) fn answering(
        answer: impl Fn(&Asked, u64) -> String + Send + Sync + 'static,
    ) -> Scribe {
        Scribe::on("127.0.0.1:0", answer)
    }

    pub(crate) fn on(
        address: &str,
        answer: impl Fn(&Asked, u64) -> String + Send + Sync + 'static,
    ) -> Scribe {
        let book: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let (pages, connections) = (Arc::clone(&book), AtomicU64::new(0));
        let clock = Clock::start();
        let faulty = Faulty::start_on(address, move |mut peer| {
            let connection = connections.fetch_add(1, Ordering::SeqCst);
            while let Some(text) = peer.request() {
                let at = clock.now();
                let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
                let what = head.split(" HTTP/").next().unwrap_or_default().to_string();
                let (head, body) = (head.to_string(), body.to_string());
                let asked = Asked { at, connection, what, head, body };
                let number = {
                    let mut pages = pages.lock().unwrap_or_else(PoisonError::into_inner);
                    pages.push(asked.clone());
                    pages.len() as u64
                };
                if !peer.says(answer(&asked, number).as_bytes()) {
                    return;
                }
            }
        });
        Scribe { faulty, book }
    }

    /// As the target of a scenario.
    pub(crate) fn target(&self) -> String {
        format!("http://{}", self.faulty.address)
    }

    /// From now on, connections are refused.
    pub(crate) fn refuse(&mut self) {
        self.faulty.refuse();
    }

    pub(crate) fn accepted(&self) -> u64 {
        self.faulty.accepted()
    }

    /// All that was asked until now.
    pub(crate) fn book(&self) -> Vec<Asked> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Methods and paths, in the order in which they came.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.book().into_iter().map(|asked| asked.what).collect()
    }

    /// How often this was asked.
    pub(crate) fn count(&self, what: &str) -> usize {
        self.asked().iter().filter(|asked| *asked == what).count()
    }
}

/// A good answer with this body.
pub(crate) fn ok(body: &str) -> String {
    answer("200 OK", "", body)
}

/// `headers` are whole lines, each with its end.
pub(crate) fn answer(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len())
}
