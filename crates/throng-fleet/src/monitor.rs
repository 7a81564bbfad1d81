//! The monitor of a host in the fleet: it replies to a reader's request with current readings. Both
//! use names that contain the monitor's own, so that no other machine of the fleet can reply for
//! it. Requests contain nothing that the host would execute.

use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use throng_base::{Said, random};
use throng_bus::{Bus, BusError, Link, Message};
use tokio::time::{Instant, timeout_at};

use crate::wire::{from_json, names, to_json};

/// Maximum size of an uncompressed text.
pub const TEXT_BYTES_MAX: usize = 16 << 20;
/// Fast, and compresses to a tenth.
const LEVEL: i32 = 3;

/// A reader's request: maxima are those of a window that ends now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// The number of the request, which starts the reply.
    number: u64,
    window_ms: u64,
}

impl Question {
    /// None if it is not a valid request.
    pub fn from_bytes(bytes: &[u8]) -> Option<Question> {
        from_json(bytes)
    }

    pub fn window(self) -> Duration {
        Duration::from_millis(self.window_ms)
    }

    /// The reply to the reader.
    pub fn answer(self, text: &str) -> Bytes {
        let mut bytes = self.number.to_be_bytes().to_vec();
        // Writing to memory does not fail.
        bytes.extend(zstd::bulk::compress(text.as_bytes(), LEVEL).unwrap_or_default());
        bytes.into()
    }

    /// The content, if it is the reply to this request; an error if it cannot be read.
    fn answered(self, bytes: &[u8]) -> Option<Result<String, Said>> {
        let packed = bytes.strip_prefix(&self.number.to_be_bytes())?;
        let text = zstd::bulk::decompress(packed, TEXT_BYTES_MAX).ok();
        let text = text.and_then(|text| String::from_utf8(text).ok());
        Some(text.filter(|text| !text.is_empty()).ok_or(say!("its response cannot be read")))
    }
}

/// The current readings of the monitor with this name.
pub async fn ask(
    bus: &impl Bus,
    name: &str,
    window: Duration,
    within: Duration,
) -> Result<String, Said> {
    let until = Instant::now() + within;
    let window_ms = u64::try_from(window.as_millis()).unwrap_or(u64::MAX);
    let question = Question { number: random::fresh(), window_ms };
    let answered = async {
        let mut told = bus.subscribe(&names::reading(name)).await?;
        bus.publish(&names::monitor(name), to_json(&question).into());
        while let Some(Message { payload, .. }) = told.recv().await {
            if let Some(answer) = question.answered(&payload) {
                return Ok(answer);
            }
        }
        Err(BusError::Cut)
    };
    let told = timeout_at(until, answered).await;
    let link = bus.link();
    let is_up = *link.borrow() == Link::Up;
    match told {
        Ok(Ok(answer)) => answer,
        Ok(Err(BusError::Refused(why))) => Err(why),
        _ if is_up => Err(say!(
            "no monitor with this name responds: start one with `throng monitor \
             --join` on that host"
        )),
        _ => Err(say!("the bus does not respond")),
    }
}

#[cfg(test)]
mod tests {
    use throng_bus::memory::{Faults, Memory};
    use tokio::task::LocalSet;

    use super::*;

    const WITHIN: Duration = Duration::from_secs(5);

    #[tokio::test(start_paused = true)]
    async fn each_reader_gets_the_reply_to_its_own_request() {
        let world = Memory::new(7, Faults::default());
        let (host, one, other) = (world.join("shop"), world.join("one"), world.join("other"));
        let answers = async move {
            let mut asked = host.subscribe(&names::monitor("shop")).await.unwrap();
            while let Some(message) = asked.recv().await {
                let question = Question::from_bytes(&message.payload).unwrap();
                let text = format!("window {}\n", question.window().as_secs());
                host.publish(&names::reading("shop"), question.answer(&text));
            }
        };
        let asks = async {
            // The host has subscribed by then.
            tokio::time::sleep(WITHIN).await;
            let second = |count| Duration::from_secs(count);
            tokio::join!(
                ask(&one, "shop", second(1), WITHIN),
                ask(&other, "shop", second(5), WITHIN),
                ask(&other, "nobody", second(1), WITHIN),
            )
        };
        let machines = LocalSet::new();
        machines.spawn_local(answers);
        let (one, other, nobody) = machines.run_until(asks).await;
        assert_eq!((one.as_deref(), other.as_deref()), (Ok("window 1\n"), Ok("window 5\n")));
        assert!(nobody.unwrap_err().english().starts_with("no monitor with this name responds"));
    }

    #[test]
    fn invalid_replies_are_refused() {
        let question = Question { number: 7, window_ms: 1_000 };
        let answer = question.answer("up 1\n");
        assert_eq!(question.answered(&answer), Some(Ok("up 1\n".to_string())));
        assert_eq!(Question { number: 8, ..question }.answered(&answer), None);
        assert!(question.answered(&answer[..9]).is_some_and(|told| told.is_err()));
        assert_eq!(question.answered(&answer[..7]), None);
        assert_eq!(Question::from_bytes(&to_json(&question)), Some(question));
        assert_eq!(Question::from_bytes(b"rm -rf"), None);
    }
}
