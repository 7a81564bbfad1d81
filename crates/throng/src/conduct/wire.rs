//! What goes between the desk of a run and its posts: orders one way, messages the other. Within a
//! process they go over a channel; to a process of its own as lines of JSON.

use serde::{Deserialize, Serialize};
use throng_base::Said;
use throng_metrics::Interval;
use throng_results::Event;

/// What the desk tells a post.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Order {
    /// No new work; users finish their step and leave.
    Stop,
    /// Users leave at once.
    Abort,
}

/// What a post tells the desk.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Message {
    Interval(Box<Interval>),
    /// Without secrets.
    Event(Event),
    /// It has something to say about itself.
    Notice {
        at_ns: u64,
        text: Said,
    },
    /// The load is over. `whole` is false where a shard ended by a panic.
    Over {
        at_ns: u64,
        whole: bool,
    },
}
