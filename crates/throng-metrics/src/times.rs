//! The table of times: each recorded histogram with its field, its name in the summary's JSON, the
//! first format with it, its exported metric and one line of documentation. Exports and the tables
//! of `docs/json.md` and `docs/run-directory.md` are generated from it.

use crate::connections::ResidenceInterval;
use crate::gauges::Exported;
use crate::histogram::Histogram;
use crate::interval::{GeneratorInterval, StageInterval, StepInterval, TcpSamples};
use crate::places::{InstanceInterval, SessionInterval, TargetInterval};

/// A histogram of `T` as a row of the table.
pub struct Times<T: 'static> {
    /// The recorded field.
    pub field: &'static str,
    /// The field in the summary's JSON.
    pub json: &'static str,
    /// The first format with this histogram.
    pub since: u32,
    pub export: Option<Exported>,
    pub of: fn(&T) -> &Histogram,
    doc: &'static str,
}

impl<T> Times<T> {
    /// What it measures, for `docs/json.md`.
    pub fn doc(&self) -> &'static str {
        self.doc.trim_start()
    }
}

/// A struct with histograms.
pub trait Timed: Sized + 'static {
    /// In the order of the table.
    const TIMES: &'static [Times<Self>];
}

macro_rules! times {
    ($(
        $name:ident {
            $(
                $(#[doc = $doc:literal])+
                $field:ident $(by $of:expr)? $(, since $since:literal)?
                $(, json $json:literal)?
                $(, export [$export:literal, $help:literal])?;
            )+
        }
    )+) => {
        $(impl Timed for $name {
            const TIMES: &'static [Times<$name>] = &[$(Times {
                field: stringify!($field),
                json: or!(stringify!($field) $(, $json)?),
                since: or!(1 $(, $since)?),
                export: or!(None $(, Some(Exported { name: $export, help: $help, state: None }))?),
                of: or!(|row| &row.$field $(, $of)?),
                doc: concat!($($doc),+),
            },)+];
        })+
    };
}

times! {
    StepInterval {
        /// response time: from the scheduled start of the last try to the last byte of its
        /// response; for a `rendezvous`, the waiting time; for a transaction, the duration without
        /// pauses (T)
        latency, export [
            "throng_response_time_seconds",
            "Response time by step, counted from the scheduled start."
        ];
        /// duration of a transaction, including pauses (T)
        with_pauses, json "latency_with_pauses";
        /// service time of `http`, `connect`, `request` and `total`: measured from sending the last
        /// request (with redirects, the first), without the wait for a free user, a connection or a
        /// stream. `null` for other steps and in older run directories
        service by StepInterval::service, since 5;
        /// time to the first byte; for a `connect` to an event stream, time to the first event
        first_byte;
    }

    StageInterval {
        /// duration of the stage for connections that completed it
        latency, export [
            "throng_stage_seconds",
            "Duration of the successful stages of opening a connection."
        ];
    }

    SessionInterval {
        /// duration of finished iterations from their scheduled start, including pauses; `null` for
        /// concurrent iterations of one user (`streams`)
        time, since 5;
    }

    TargetInterval {
        /// response time
        latency, since 5;
    }

    InstanceInterval {
        /// response time
        latency, since 5;
    }

    ResidenceInterval {
        /// from establishment to the end, one value per connection; 0 for a connect without a
        /// response
        time, since 5;
    }

    TcpSamples {
        /// smoothed round-trip time
        round_trip, since 3;
    }

    GeneratorInterval {
        /// delay of scheduled events, such as starts
        lateness, export [
            "throng_lateness_seconds",
            "How late throng started what was scheduled."
        ];
    }
}
