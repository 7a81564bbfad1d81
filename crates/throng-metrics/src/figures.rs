//! The table of counts: each has its recorded field, its names in thresholds and in the summary's
//! JSON, the first format with it, the denominator of its share, and one line of documentation. The
//! recorded structs and their merging, the counters of thresholds, the objects of the summary, and
//! the tables of `docs/json.md` and `docs/run-directory.md` are generated from it.

use serde::{Deserialize, Serialize};

use crate::merge::{FIELDS_MAX, Merge};

/// A count as a row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figure {
    /// The recorded field, within its group.
    pub field: &'static str,
    /// The field in the summary's JSON.
    pub json: &'static str,
    /// The first format with this count.
    pub since: u32,
    doc: &'static str,
}

impl Figure {
    /// What it counts, for `docs/json.md`.
    pub fn doc(&self) -> &'static str {
        self.doc.trim_start()
    }
}

/// A group of counts in an interval and in a summary.
pub trait Counts: Merge {
    const FIGURES: &'static [Figure];

    /// In the order of the table.
    fn counts(&self) -> Vec<u64>;

    /// Each with its row of the table.
    fn rows(&self) -> impl Iterator<Item = (&'static Figure, u64)> {
        Self::FIGURES.iter().zip(self.counts())
    }

    /// The first format with all of these counts.
    fn since() -> u32 {
        Self::FIGURES.iter().map(|figure| figure.since).max().unwrap_or(1)
    }
}

/// A struct of counts: its fields are rows of the table, after the key of the struct.
macro_rules! group {
    (
        $(#[doc = $about:literal])+
        $name:ident [$($key:ident: $type:ty)?] since $group_since:literal {
            $(
                $(#[doc = $doc:literal])+ $(#[serde($($serde:tt)+)])?
                $field:ident $(json $json:literal)? $(since $since:literal)?;
            )+
        }
    ) => {
        merged! {
            $(#[doc = $about])+
            #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
            #[serde(default)]
            pub struct $name {
                $(
                    /// The key of the row.
                    pub $key: $type => Key,
                )?
                $(
                    $(#[doc = $doc])+
                    $(#[serde($($serde)+)])?
                    pub $field: u64 => Sum,
                )+
            }
        }

        $(keyed! { unsorted $name: $type, |row| row.$key; }

        impl $name {
            /// The row with a key in a list, which is added if it is missing.
            pub fn of(rows: &mut Vec<$name>, $key: $type) -> &mut $name {
                let index = rows.iter().position(|row| row.$key == $key).unwrap_or_else(|| {
                    rows.push($name { $key, ..$name::default() });
                    rows.len() - 1
                });
                &mut rows[index]
            }
        })?

        const _: () = assert!($name::FIGURES.len() <= FIELDS_MAX);

        impl Counts for $name {
            const FIGURES: &'static [Figure] = &[$(Figure {
                field: stringify!($field),
                json: or!(stringify!($field) $(, $json)?),
                since: or!($group_since $(, $since)?),
                doc: concat!($($doc),+),
            },)+];

            fn counts(&self) -> Vec<u64> {
                vec![$(self.$field,)+]
            }
        }
    };
}

/// The groups of an interval, and the counters of thresholds: counts with a word in these groups,
/// and single counts of the interval.
macro_rules! figures {
    (
        $(
            $(#[doc = $about:literal])+
            $group:ident: $name:ident since $group_since:literal {
                $(
                    $(#[doc = $doc:literal])+ $(#[serde($($serde:tt)+)])?
                    $field:ident $(json $json:literal)? $(since $since:literal)?
                    $(, $variant:ident $word:literal $(of |$sum:ident| $whole:expr)?)?;
                )+
            }
        )+
        alone { $($plain_variant:ident $plain_word:literal $plain:ident;)+ }
    ) => {
        $(group! {
            $(#[doc = $about])+ $name [] since $group_since {
                $(
                    $(#[doc = $doc])+ $(#[serde($($serde)+)])?
                    $field $(json $json)? $(since $since)?;
                )+
            }
        })+

        /// A struct with these groups: an interval.
        pub trait Groups {
            $(fn $group(&self) -> &$name;)+
            $(fn $plain(&self) -> u64;)+
        }

        /// A count that grows during a run. Its word is stable, because run directories and
        /// thresholds contain it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum Counter {
            $($($(#[serde(rename = $word)] $variant,)?)+)+
            $(#[serde(rename = $plain_word)] $plain_variant,)+
        }

        impl Counter {
            pub const ALL: &'static [Counter] =
                &[$($($(Counter::$variant,)?)+)+ $(Counter::$plain_variant,)+];

            /// The word of the language.
            pub fn word(self) -> &'static str {
                match self {
                    $($($(Counter::$variant => $word,)?)+)+
                    $(Counter::$plain_variant => $plain_word,)+
                }
            }

            /// Its value in the interval.
            pub fn of(self, interval: &impl Groups) -> u64 {
                match self {
                    $($($(Counter::$variant => interval.$group().$field,)?)+)+
                    $(Counter::$plain_variant => interval.$plain(),)+
                }
            }

            /// The denominator of its share; `None` if a share is meaningless.
            pub fn whole(self, sum: &impl Groups) -> Option<u64> {
                match self {
                    $($($($(Counter::$variant => {
                        let $sum = sum;
                        Some($whole)
                    })?)?)+)+
                    _ => None,
                }
            }
        }
    };
}

/// A row of the ledger, and the enum of its counters, whose words are those of the fields.
macro_rules! ledger {
    (
        $(#[doc = $about:literal])+
        $name:ident [$key:ident: $type:ty] $counter:ident since $group_since:literal {
            $(
                $(#[doc = $doc:literal])+ $(#[serde($($serde:tt)+)])?
                $field:ident $variant:ident $(of $whole:ident)? $(since $since:literal)?;
            )+
        }
    ) => {
        group! {
            $(#[doc = $about])+ $name [$key: $type] since $group_since {
                $($(#[doc = $doc])+ $(#[serde($($serde)+)])? $field $(since $since)?;)+
            }
        }

        /// A count of a row of the ledger. Its word is that of its field, and is stable.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum $counter {
            $($variant,)+
        }

        impl $counter {
            pub const ALL: &'static [$counter] = &[$($counter::$variant,)+];

            /// The word of the language.
            pub fn word(self) -> &'static str {
                match self { $($counter::$variant => stringify!($field),)+ }
            }

            pub fn of(self, row: &$name) -> u64 {
                match self { $($counter::$variant => row.$field,)+ }
            }

            /// The denominator of its share; `None` if it has none.
            pub fn whole(self, row: &$name) -> Option<u64> {
                match self {
                    $($($counter::$variant => Some(row.$whole),)?)+
                    _ => None,
                }
            }
        }
    };
}

figures! {
    /// Counters of users and of the schedule they follow.
    population: Population since 1 {
        /// users started
        started, UsersStarted "users.started";
        /// users that finished their session
        finished, UsersFinished "users.finished";
        /// iterations started
        iterations_started, IterationsStarted "iterations.started";
        /// iterations finished
        iterations_finished, Iterations "iterations";
        /// attempts cut off, in all steps; transactions and heartbeats are counted separately
        interrupted json "cut_off", Interrupted "interrupted";
        /// scheduled starts that never happened
        unmet json "starts_unmet", Unmet "unmet" of |sum| sum.population().due();
        /// starts that were delayed because every user was busy
        waited json "starts_waited", Waited "waited" of |sum| sum.population().due();
        /// starts that were dropped because no user was free, in loads with a `max`
        dropped json "starts_dropped" since 4, Dropped "dropped" of |sum| sum.population().due();
        /// scheduled starts, in loads with a rate: `starts_begun` plus unmet, dropped and withdrawn
        /// starts
        #[serde(skip_serializing_if = "is_zero")]
        wanted json "starts_wanted" since 5;
        /// starts that happened, in loads with a rate
        #[serde(skip_serializing_if = "is_zero")]
        begun json "starts_begun" since 5;
        /// starts that had been due for less than a second when the run was stopped
        #[serde(skip_serializing_if = "is_zero")]
        withdrawn json "starts_withdrawn" since 5;
        /// total duration of pauses in microseconds: `think`, and completed `stay` steps
        #[serde(skip_serializing_if = "is_zero")]
        paused_us since 5;
    }

    /// How connections began and how they ended. Every one that was established ends once, also if
    /// its TLS or upgrade failed and it was never `opened`: the side that ended it first counts.
    connections: Connections since 1 {
        /// connection attempts
        attempted, ConnectionsAttempted "connections.attempted";
        /// connection attempts by users that had lost a connection or deliberately disconnected
        reconnects since 3, ConnectionsReconnects "connections.reconnects";
        /// connections opened
        opened, ConnectionsOpened "connections.opened" of |sum| sum.connections().attempted;
        /// opened connections that use HTTP/2
        http2 since 4, ConnectionsHttp2 "connections.http2" of |sum| sum.connections().opened;
        /// HTTP/2 connections on which the target allows fewer concurrent streams than `streams`
        streams_limited since 5;
        /// average number of streams allowed on these connections
        streams_allowed since 5;
        /// connections whose first SYN was not answered
        #[serde(skip_serializing_if = "is_zero")]
        syn_resent since 5, ConnectionsSynResent "connections.syn_resent"
            of |sum| sum.connections().attempted;
        /// opened connections with a full TLS handshake
        #[serde(skip_serializing_if = "is_zero")]
        tls_full since 5;
        /// opened connections with a resumed TLS session
        #[serde(skip_serializing_if = "is_zero")]
        tls_resumed since 5;
        /// closed by throng (FIN or WebSocket close)
        closed_by_us, ConnectionsClosedByUs "connections.closed_by_us";
        /// closed by the target (FIN or WebSocket close)
        closed_by_target, ConnectionsClosedByTarget "connections.closed_by_target"
            of |sum| sum.connections().opened;
        /// reset by the target (RST)
        reset, ConnectionsReset "connections.reset" of |sum| sum.connections().opened;
        /// deliberately reset by throng (RST)
        reset_by_us since 3, ConnectionsResetByUs "connections.reset_by_us";
        /// deliberately dropped by throng, without FIN or RST
        vanished since 3, ConnectionsVanished "connections.vanished";
        /// deliberately half-closed by throng, and never closed by the target
        half_closed since 3, ConnectionsHalfClosed "connections.half_closed";
        /// timed out because no more data was received
        timed_out, ConnectionsTimedOut "connections.timed_out" of |sum| sum.connections().opened;
    }

    /// The lives of long-lived connections, from the first attempt to open one. A life that the end
    /// of the run cut off is neither complete nor broken.
    lifecycle: Lifecycle since 3 {
        /// long-lived connections begun
        begun, LifecycleBegun "lifecycle.begun";
        /// connections that were online and ended as the scenario intended
        complete, LifecycleComplete "lifecycle.complete" of |sum| sum.lifecycle().ended();
        /// connections that ended in any other way
        broken, LifecycleBroken "lifecycle.broken" of |sum| sum.lifecycle().ended();
    }

    /// Messages that are sent on a schedule of their own, and whether they were answered. Of a
    /// whole run `sent = answered + lost + interrupted + without_answer`.
    heartbeats: Heartbeats since 3 {
        /// heartbeats sent
        sent, HeartbeatsSent "heartbeats.sent";
        /// answered before the deadline
        answered, HeartbeatsAnswered "heartbeats.answered" of |sum| sum.heartbeats().sent;
        /// not answered before the deadline or the end of the connection
        lost, HeartbeatsLost "heartbeats.lost" of |sum| sum.heartbeats().sent;
        /// unknown: the user left or the run ended first
        interrupted, HeartbeatsInterrupted "heartbeats.interrupted" of |sum| sum.heartbeats().sent;
        /// sent without an expected reply: the scenario names none, or the heartbeat is a
        /// deliberate duplicate
        without_answer, HeartbeatsWithoutAnswer "heartbeats.without_answer"
            of |sum| sum.heartbeats().sent;
        /// not sent, because the generator was more than one period behind schedule
        skipped, HeartbeatsSkipped "heartbeats.skipped";
        /// deliberately sent late, duplicated or omitted
        faulty, HeartbeatsFaulty "heartbeats.faulty";
    }

    /// Tries of all steps that were not the last of their attempt.
    retries: Retries since 3 {
        /// failed tries that were retried
        retried, RetriesRetried "retries.retried";
        /// attempts that failed despite retries
        given_up, RetriesGivenUp "retries.given_up";
        /// retries after a response with `Retry-After`
        retry_after, RetriesRetryAfter "retries.retry_after";
        /// retries for which throng waited only one minute, although the response requested more
        retry_after_cut, RetriesRetryAfterCut "retries.retry_after_cut";
    }

    /// Messages of long-lived connections, and what the user was told to make of those that no step
    /// asked for.
    messages: Messages since 1 {
        /// messages received
        received, MessagesReceived "messages.received";
        /// messages sent
        sent, MessagesSent "messages.sent";
        /// unsolicited messages
        pushes, MessagesPushes "messages.pushes";
        /// pings from the target; throng answers them
        pings, MessagesPings "messages.pings";
        /// messages that violate the declared protocol; `errors` has the first one in hex
        broken since 3, MessagesBroken "messages.broken";
        /// replies without a waiting request
        unasked since 3, MessagesUnasked "messages.unasked";
        /// messages whose handler had not finished when the connection ended
        skipped since 3, MessagesSkipped "messages.skipped";
        /// messages that throng dropped because [too many were waiting for one user](limits.md);
        /// steps and handlers that miss them fail with the cause `messages-dropped`
        dropped since 3, MessagesDropped "messages.dropped";
        /// executions of `every` skipped because the previous one had not finished
        overdue since 3, MessagesOverdue "messages.overdue";
    }

    alone {
        BytesIn "bytes.in" bytes_in;
        BytesOut "bytes.out" bytes_out;
    }
}

group! {
    /// What the responses to one step's requests are like, where the requests differ: one of
    /// [`SAMPLED_OF`] is looked at.
    SampleInterval [step: u16] since 5 {
        /// responses sampled
        sampled;
        /// sampled responses with the same body as the first one
        same;
        /// sampled responses that came from a cache, according to the response (`Age` above 0,
        /// `X-Cache` or `CF-Cache-Status` with `HIT`)
        cached;
        /// requests after the first 409 or 422 of their step
        #[serde(default, skip_serializing_if = "is_zero")]
        followed;
        /// of these, requests with the path and body of an earlier request
        #[serde(default, skip_serializing_if = "is_zero")]
        repeated;
        /// `followed` requests with status 409 or 422
        #[serde(default, skip_serializing_if = "is_zero")]
        conflicts;
        /// requests counted in both `conflicts` and `repeated`
        #[serde(default, skip_serializing_if = "is_zero")]
        conflicts_repeated;
    }
}

group! {
    /// Packets on the networks of users.
    Packets [] since 5 {
        /// packets delivered
        carried;
        /// packets that the network lost, as `loss` says
        lost;
        /// packets dropped because the queue of a user's `rate` was full
        dropped;
        /// packets that throng dropped because it could not keep up
        overflowed;
        /// packets that throng delivered more than 10 ms late
        late;
    }
}

impl Packets {
    pub fn is_empty(&self) -> bool {
        *self == Packets::default()
    }

    /// A packet was dropped, or more than one in a hundred was late: the networks did not behave as
    /// the scenario specifies.
    pub fn are_untrue(&self) -> bool {
        self.overflowed > 0 || self.late * 100 > self.carried
    }
}

/// One in this many responses to differing requests is sampled.
pub const SAMPLED_OF: u32 = 64;

ledger! {
    /// What became of the messages of one row of the ledger. Every delivery that was expected is
    /// delivered, lost or excused in the end: `expected = delivered + lost + excused`.
    DeliveryInterval [step: u16] DeliveryCounter since 3 {
        /// messages sent successfully
        sent Sent;
        /// expected deliveries: one for each user in the audience when a message is sent
        expected Expected;
        /// deliveries that arrived, on time or late
        delivered Delivered of expected;
        /// deliveries that did not arrive within `lost_after`, although the receiver stayed online
        lost Lost of expected;
        /// undetermined: the receiver left or the run ended before the outcome was known
        excused Excused of expected;
        /// deliveries that took longer than `late_after`
        late Late of expected;
        /// duplicate deliveries
        twice Twice of expected;
        /// deliveries that arrived after a later message from the same sender
        out_of_order OutOfOrder of expected;
        /// deliveries that arrived after they were counted as lost
        after_lost AfterLost of expected;
        /// messages received by a user outside the audience, or by an excluded sender; not counted
        /// for users that came online or joined the audience after the message was sent
        stray Stray;
        /// received messages that no step of this run sent; not counted if several rows receive the
        /// same messages
        foreign Foreign;
        /// messages not tracked for all receivers, because the memory for them was full or the ID
        /// was reused; each message is counted once
        unwatched Unwatched;
        /// sent messages in which `match` found no ID (not counted in other fields)
        sent_without_id SentWithoutId;
        /// received messages in which `match` found no ID
        received_without_id ReceivedWithoutId;
        /// received messages with several records, of which throng reads at most the first
        #[serde(skip_serializing_if = "is_zero")]
        received_joined ReceivedJoined since 5;
    }
}

pub(crate) fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Lifecycle {
    pub fn ended(&self) -> u64 {
        self.complete + self.broken
    }
}

impl Population {
    /// Whether the counts of a whole run are consistent: every wanted start has a result.
    pub fn is_balanced(&self) -> bool {
        self.wanted == self.begun + self.unmet + self.dropped + self.withdrawn
    }

    /// Starts that were due: those that began, and those that never did.
    pub fn due(&self) -> u64 {
        self.iterations_started.max(self.started) + self.unmet + self.dropped
    }
}

impl Heartbeats {
    /// Whether the counts of a whole run are consistent: every sent heartbeat has a result.
    pub fn is_balanced(&self) -> bool {
        self.sent == self.answered + self.lost + self.interrupted + self.without_answer
    }
}

impl Connections {
    /// The mean number of concurrent streams that targets allow on a connection, where it is below
    /// the requested number; rounded down.
    pub fn streams_allowed(&self) -> Option<u64> {
        self.streams_allowed.checked_div(self.streams_limited)
    }
}

impl DeliveryCounter {
    /// Whether it is a share of expected deliveries.
    pub fn has_whole(self) -> bool {
        self.whole(&DeliveryInterval::default()).is_some()
    }
}
