//! Event streams (HTML standard, section "Server-sent events"): numbered events at regular
//! intervals, with deliberate faults.
//!
//! `/events?every=10ms&count=100&size=64&event=price`, and one of `close_after=N`, `reset_after=N`
//! and `stall_after=N`: after N events on this connection. `retry=50ms` sets the client's
//! reconnection time. A request with `Last-Event-ID: N` gets the events from N + 1 on.

use std::io::Write as _;
use std::time::Duration;

use throng_base::units::{parse_duration, parse_size};

use super::{Head, Refusal, pairs};
use crate::output::Finish;

/// Maximum size of an event.
const SIZE_MAX: u64 = 1024 * 1024;
/// How long a stalled stream stays open.
const STALL: Duration = Duration::from_secs(86_400);

/// The rest of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Events {
    /// The IDs of the next and the last event.
    next: u64,
    last: u64,
    every: Duration,
    /// Minimum length of an event's data.
    size: usize,
    name: String,
    /// The reconnection time sent with the first event.
    retry: Option<Duration>,
    trouble: Option<(u64, Trouble)>,
    /// The client resumed a lost stream.
    pub(crate) resumed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    Close,
    Reset,
    Stall,
}

/// What follows the current event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// The next event, after this time.
    More(Duration),
    /// The stream is complete.
    Complete,
    Fault(Finish),
}

impl Events {
    pub(super) fn asked(head: &Head<'_>, query: &str) -> Result<Events, Refusal> {
        if head.minor == 0 {
            return Err(Refusal::new(505, "an event stream requires HTTP/1.1"));
        }
        let since = head.fields.get("last-event-id").and_then(|id| id.parse::<u64>().ok());
        let mut events = Events {
            next: since.unwrap_or(0).saturating_add(1),
            last: u64::MAX,
            every: Duration::from_secs(1),
            size: 0,
            name: "tick".into(),
            retry: None,
            trouble: None,
            resumed: since.is_some(),
        };
        for (key, value) in pairs(query) {
            let count = || value.parse::<u64>().ok();
            let known = match key {
                "every" => parse_duration(value).ok().map(|every| events.every = every),
                "count" => count().map(|count| events.last = count),
                "size" => parse_size(value)
                    .ok()
                    .filter(|size| *size <= SIZE_MAX)
                    .map(|size| events.size = size as usize),
                "event" => {
                    value.clone_into(&mut events.name);
                    Some(())
                }
                "retry" => parse_duration(value).ok().map(|retry| events.retry = Some(retry)),
                "close_after" => count().map(|n| events.trouble = Some((n, Trouble::Close))),
                "reset_after" => count().map(|n| events.trouble = Some((n, Trouble::Reset))),
                "stall_after" => count().map(|n| events.trouble = Some((n, Trouble::Stall))),
                _ => None,
            };
            known.ok_or(Refusal::bad(
                "a stream takes every=10ms, count=100, size=64, event=NAME, retry=50ms, and one \
                 of close_after=N, reset_after=N and stall_after=N",
            ))?;
        }
        Ok(events)
    }

    /// Writes the next event, if any. Returns the number of events written, and what follows.
    pub(crate) fn step(&mut self, out: &mut Vec<u8>) -> (u64, After) {
        if let Some((0, trouble)) = self.trouble {
            return (
                0,
                match trouble {
                    Trouble::Close => After::Fault(Finish::Close),
                    Trouble::Reset => After::Fault(Finish::Reset),
                    Trouble::Stall => After::More(STALL),
                },
            );
        }
        if self.next > self.last {
            return (0, After::Complete);
        }
        if let Some((left, _)) = &mut self.trouble {
            *left -= 1;
        }
        let number = self.next;
        self.next += 1;
        out.reserve(64 + self.size);
        // Writing to memory cannot fail.
        if let Some(retry) = self.retry.take() {
            let _ = writeln!(out, "retry: {}", retry.as_millis());
        }
        let _ = write!(out, "id: {number}\nevent: {}\ndata: {{\"n\":{number}", self.name);
        let data = format!("{{\"n\":{number}}}").len();
        let around = ",\"pad\":\"\"".len();
        if let Some(pad) = self.size.checked_sub(data + around) {
            let _ = write!(out, ",\"pad\":\"{}\"", "x".repeat(pad));
        }
        out.extend_from_slice(b"}\n\n");
        let is_last = self.next > self.last || matches!(self.trouble, Some((0, _)));
        (1, After::More(if is_last { Duration::ZERO } else { self.every }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::parse;

    fn asked(query: &str, fields: &str) -> Result<Events, Refusal> {
        let head = format!("GET /events HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
        Events::asked(&parse(head.as_bytes()).unwrap(), query)
    }

    /// The output of several steps, and what follows the last one.
    fn said(mut events: Events, steps: usize) -> (String, u64, After) {
        let (mut out, mut count, mut last) = (Vec::new(), 0, After::Complete);
        for _ in 0..steps {
            let step = events.step(&mut out);
            (count, last) = (count + step.0, step.1);
        }
        (String::from_utf8(out).unwrap(), count, last)
    }

    #[test]
    fn events_are_numbered_and_the_stream_ends() {
        let (text, count, after) = said(asked("every=5ms&count=2&size=30", "").unwrap(), 3);
        let data = |n| {
            format!("id: {n}\nevent: tick\ndata: {{\"n\":{n},\"pad\":\"{}\"}}\n\n", "x".repeat(14))
        };
        assert_eq!((text, count, after), ([1, 2].map(data).concat(), 2, After::Complete));
        let (text, ..) = said(asked("every=5ms&retry=1s&size=30", "").unwrap(), 2);
        assert_eq!(text, format!("retry: 1000\n{}{}", data(1), data(2)));
    }

    #[test]
    fn a_lost_stream_is_resumed() {
        let events = asked("count=9&event=price", "Last-Event-ID: 7\r\n").unwrap();
        assert!(events.resumed);
        let (text, count, after) = said(events, 1);
        assert_eq!((count, after), (1, After::More(Duration::from_secs(1))));
        assert!(text.contains("id: 8\nevent: price\ndata: {\"n\":8}\n\n"), "{text}");
        assert!(!asked("", "Last-Event-ID: x\r\n").unwrap().resumed);
    }

    #[test]
    fn faults_happen_after_the_given_number_of_events() {
        for (fault, want) in [
            ("close_after=2", After::Fault(Finish::Close)),
            ("reset_after=2", After::Fault(Finish::Reset)),
            ("stall_after=2", After::More(STALL)),
        ] {
            let (_, count, after) = said(asked(fault, "").unwrap(), 3);
            assert_eq!((count, after), (2, want), "{fault}");
        }
    }

    #[test]
    fn invalid_stream_queries_are_rejected() {
        for query in ["every=x", "count=-1", "size=2MiB", "close_after", "until=5"] {
            assert_eq!(asked(query, "").unwrap_err().status, 400, "{query}");
        }
        let head = parse(b"GET /events HTTP/1.0\r\n\r\n").unwrap();
        assert_eq!(Events::asked(&head, "").unwrap_err().status, 505);
    }
}
