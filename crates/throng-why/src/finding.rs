//! Findings, and the reasons that a rule cannot be evaluated.

use std::time::Duration;

use throng_base::Said;
use throng_base::units::format_duration;

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $name:ident new($word:literal, $title:literal);)+) => {
        /// The subject of a finding. The word is stable: JSON and `throng explain` use it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Code {
            pub const ALL: &'static [Code] = &[$(Code::$name,)+];

            pub fn word(self) -> &'static str {
                match self { $(Code::$name => $word,)+ }
            }

            /// In a few words.
            pub fn title(self) -> Said {
                match self { $(Code::$name => say!($title),)+ }
            }
        }
    };
}

// In the order of evaluation: generator, network and kernel, limits of the target, its code.
codes! {
    /// throng or its host could not generate the load.
    GeneratorBound new("generator-bound", "throng itself limits the result");
    /// All source ports were in use.
    PortsExhausted new("ports-exhausted", "source ports ran out");
    /// All file descriptors were in use, on this host or at the target.
    DescriptorLimit new("descriptor-limit", "a limit on file descriptors was reached");
    /// A firewall's table of connections was full.
    ConntrackFull new("conntrack-full", "a table of tracked connections was full");
    /// SYNs were lost: connects took one, two or three seconds longer.
    SynLost new("syn-lost", "connection requests (SYN) were lost");
    /// The listener accepted too slowly.
    AcceptQueueFull new("accept-queue-full", "the accept queue of a listener was full");
    /// Processes of the target were killed due to lack of memory, or waited for it.
    MemoryShort new("memory-short", "the target's host ran short of memory");
    /// Most connections ended at the same time, and new ones opened later.
    TargetRestarted new("target-restarted", "the target stopped or was restarted");
    /// One address is slower than the others, or fails.
    OneBadAddress new("one-bad-address",
        "one address of the target performs worse than the others");
    /// Connections are unevenly spread over addresses.
    Unbalanced new("unbalanced", "connections are unevenly spread over addresses");
    /// Open connections settle at rate × residence.
    PlateauResidence new("plateau-residence",
        "a timeout at the target limits the number of open connections");
    /// The target closes connections that it should keep open.
    ClosesFirst new("closes-first", "the target closes connections first");
    /// Each lost connection causes many attempts to reconnect.
    ReconnectStorm new("reconnect-storm", "lost connections cause a storm of reconnects");
    /// A request limit: 429, or 503 at a constant rate.
    RateLimited new("rate-limited", "a rate limit of the target was reached");
    /// The target waited for its disks.
    DiskBound new("disk-bound", "the disks of the target's host are the bottleneck");
    /// The load exceeded what the target can serve.
    Saturated new("saturated", "the load exceeds what the target can serve");
    /// Only TLS handshakes become slower.
    TlsBound new("tls-bound", "TLS handshakes are the bottleneck");
    /// Users reuse connections that real users would open.
    TlsHidden new("tls-hidden", "reused connections hide the cost of TLS handshakes");
    /// More users, not a faster target, would increase the rate.
    ThinkBound new("think-bound", "think time limits the rate");
    /// A cache responds, or all responses are equal.
    TooGood new("too-good", "the responses may be cached or identical");
    /// Requests were sent more than once.
    Amplified new("amplified", "retries multiply the load");
    /// Repeated requests cause conflicts.
    OwnDuplicates new("own-duplicates", "repeated requests in the scenario conflict");
    /// Streams of one HTTP/2 connection wait for each other.
    HeadOfLine new("head-of-line", "streams of one HTTP/2 connection wait for each other");
    /// Stalls at regular intervals.
    PeriodicStall new("periodic-stall", "the target stalls at regular intervals");
    /// Response times have two peaks.
    TwoPeaks new("two-peaks", "response times have two peaks");
    /// The first minutes are slower than the rest.
    WarmUp new("warm-up", "the target was slower at the beginning");
    /// Response times grow at a constant load.
    Drift new("drift", "response times grow although the load does not");
    /// Errors start at a load or a time.
    RisingErrors new("rising-errors", "errors begin during the run");
    /// The number of users differs from what their responses and pauses add up to.
    TimeUnaccounted new("time-unaccounted",
        "response times and pauses do not match the number of users");
    /// One step causes most of the additional time.
    SlowStep new("slow-step", "one step causes most of the slowdown");
}

words! {
    /// The certainty of a finding, most certain first.
    Level {
        /// It was counted.
        Certain, "certain", "certain";
        /// Its rule matches, and alternative causes are excluded.
        Likely, "likely", "likely";
        /// Something else may be the cause.
        Hint, "hint", "hint";
    }
}

/// A part of the run, in seconds since its start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    pub from_s: f64,
    pub to_s: f64,
}

impl Span {
    pub fn new(from_s: f64, to_s: f64) -> Span {
        Span { from_s, to_s }
    }

    pub fn overlaps(self, other: Span) -> bool {
        self.from_s < other.to_s && other.from_s < self.to_s
    }
}

/// A value that supports a finding, and its time span.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    pub text: Said,
    pub when: Span,
}

/// An alternative cause with similar symptoms, and how it was excluded.
#[derive(Clone, Debug, PartialEq)]
pub struct Rival {
    pub cause: Said,
    pub how: Said,
}

/// See the description of the crate.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    pub code: Code,
    pub level: Level,
    /// The finding in one sentence with its main values.
    pub text: Said,
    pub when: Span,
    /// The curves of the report that show it, by name.
    pub series: &'static [&'static str],
    pub evidence: Vec<Figure>,
    pub excluded: Vec<Rival>,
    /// What to do next, with a command.
    pub next: Said,
}

impl Finding {
    pub(crate) fn new(code: Code, level: Level, text: Said, when: Span) -> Finding {
        let (series, evidence, excluded) = (&[][..], Vec::new(), Vec::new());
        Finding { code, level, text, when, series, evidence, excluded, next: Said::default() }
    }

    pub(crate) fn on(mut self, series: &'static [&'static str]) -> Finding {
        self.series = series;
        self
    }

    pub(crate) fn figure(mut self, text: Said) -> Finding {
        let when = self.when;
        self.evidence.push(Figure { text, when });
        self
    }

    pub(crate) fn figure_at(mut self, when: Span, text: Said) -> Finding {
        self.evidence.push(Figure { text, when });
        self
    }

    pub(crate) fn not(mut self, cause: Said, how: Said) -> Finding {
        self.excluded.push(Rival { cause, how });
        self
    }

    pub(crate) fn then(mut self, next: Said) -> Finding {
        self.next = next;
        self
    }
}

/// Why a rule was not evaluated.
#[derive(Clone, Debug, PartialEq)]
pub enum Unknown {
    /// It needs this many seconds at the same load.
    TooShort { needs_s: u64 },
    /// A finding explains the data that the rule would use.
    ExplainedBy { code: Code },
    /// The run is so long that a point covers more time than the rule can use.
    TooCoarse { point_s: u64 },
    /// The run directory lacks the data that the rule uses.
    NotRecorded { needs: Needs },
}

/// Required data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// A monitor of the target's host.
    Monitor,
    /// A version of throng that writes at least this format.
    Format(u32),
}

/// The result of a rule.
pub type Judgement = Result<Vec<Finding>, Unknown>;

/// Formats seconds.
pub(crate) fn seconds(seconds: f64) -> String {
    format_duration(Duration::from_secs_f64(seconds.clamp(0.0, 1e12)))
}

/// Formats nanoseconds.
pub(crate) fn time(nanos: f64) -> String {
    seconds(nanos / 1e9)
}

/// A number per second.
pub(crate) fn rate(per_s: f64) -> String {
    match per_s {
        few if few < 10.0 => format!("{few:.2}/s"),
        some if some < 100.0 => format!("{some:.1}/s"),
        many => format!("{}/s", count(many)),
    }
}

pub(crate) fn count(count: f64) -> String {
    throng_base::units::format_count(count.max(0.0).round() as u64)
}

/// A share of one, in percent.
pub(crate) fn percent(share: f64) -> String {
    match share * 100.0 {
        none if none <= 0.0 => "0 %".into(),
        few if few < 0.1 => "<0.1 %".into(),
        some if some < 10.0 => format!("{some:.1} %"),
        many => format!("{many:.0} %"),
    }
}
