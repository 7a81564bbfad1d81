//! The keys of every map of the language, each with its one-line meaning: read by the reader, shown
//! in messages, and the source of the JSON Schema.

/// A kind of map and what may stand in it.
#[derive(Debug)]
pub struct MapKind {
    /// As in "`x` is not a key of …".
    pub what: &'static str,
    pub keys: &'static [KeyDoc],
}

/// A key of a map.
#[derive(Debug)]
pub struct KeyDoc {
    pub name: &'static str,
    pub doc: &'static str,
    /// Known to the language, but not in this version.
    pub later: bool,
}

impl MapKind {
    pub fn find(&self, name: &str) -> Option<&'static KeyDoc> {
        self.keys.iter().find(|key| key.name == name)
    }

    /// Whether a private protocol adds keys of its own: its messages and their fields.
    pub(crate) fn of_protocol(&self) -> bool {
        [MESSAGE.what, EXPECTATION.what, CHECK.what].contains(&self.what)
    }

    /// The keys that can be used now.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.keys.iter().filter(|key| !key.later).map(|key| key.name)
    }
}

const fn now(name: &'static str, doc: &'static str) -> KeyDoc {
    KeyDoc { name, doc, later: false }
}

const fn later(name: &'static str, doc: &'static str) -> KeyDoc {
    KeyDoc { name, doc, later: true }
}

macro_rules! map_kinds {
    ($($name:ident = $what:literal [$($key:expr,)*];)*) => {
        $(pub static $name: MapKind = MapKind { what: $what, keys: &[$($key,)*] };)*

        /// All kinds of maps.
        pub static MAP_KINDS: &[(&str, &MapKind)] = &[$((stringify!($name), &$name),)*];
    };
}

map_kinds! {
    SCENARIO = "a scenario" [
        now("name", "What the run is called in reports."),
        now("target", "The service: a URL without a path, or `{addresses: [...]}`."),
        now("tls", "How TLS is spoken with https, wss and tls targets."),
        now("connection", "How connections are opened and kept."),
        now("defaults", "Headers and time limits of all steps."),
        now("limits", "What a target may make us hold."),
        now("seed", "The same seed gives the same users."),
        now("vars", "Values for `${vars.name}`; `--set name=value` overrides them."),
        now("sessions", "What users do, by name."),
        now("load", "The phases of the run, one after another."),
        now("graceful_stop", "How long users may finish after the last phase."),
        now("thresholds", "Goals, such as `http p99 < 50ms`."),
        now("source", "Local addresses to come from: `{addresses: [127.0.0.2]}`."),
        now("outputs", "Other places to write the figures to."),
        later("protocol", "A private protocol, declared in a file."),
        later("data", "Rows for users from CSV or JSON lines."),
        later("deliveries", "The ledger of messages: who should have got what, and when."),
        later("audit", "Comparing what the target believes with what is true."),
        later("events", "Commands that run at a time of the run."),
        later("monitor", "Agents that watch the target's hosts."),
        later("trace", "Trace headers, to find slow requests in tracing."),
        later("parts", "Steps shared by name."),
        later("include", "Parts from other files."),
    ];
    TARGET = "a target" [
        now("addresses", "The addresses of the service; users are spread over them."),
    ];
    ADDRESS = "an address" [
        now("url", "The URL of this address, without a path."),
        now("weight", "How many users it gets in proportion to the others; 1 if left out."),
    ];
    TLS = "`tls`" [
        now("verify", "`false` accepts any certificate."),
        now("ca", "A PEM file of certificates that are trusted instead of the system's."),
        now("certificate", "A PEM file with the client's certificate chain."),
        now("key", "A PEM file with the key of the client's certificate."),
        now("server_name", "Sent and verified instead of the host of the target."),
        now("resumption", "`true` lets users who come back resume their TLS session."),
    ];
    CONNECTION = "`connection`" [
        now("keep_alive", "`false` opens a connection for every HTTP request."),
        now("timeout", "What resolve, TCP, TLS and upgrade may take together."),
        now("sources", "Local addresses to come from, used in turn."),
        now("family", "`v4`, `v6` or `any`."),
        now("deflate", "`true` offers compression on WebSocket connections."),
        now("cookies", "`false` forgets the cookies that the target sets."),
    ];
    DEFAULTS = "`defaults`" [
        now("headers", "Headers of every HTTP request and WebSocket upgrade."),
        now("timeout", "How long a step may take when it does not say so itself."),
        later("on_error", "What a user does when a step fails."),
        later("cookies", "Cookies that every user begins with."),
    ];
    LIMITS = "`limits`" [
        now("head", "The largest head of an answer."),
        now("body", "The largest body that is kept for a check."),
        now("message", "The largest message on a long-lived connection."),
        now("redirects", "How many redirects in a row are followed."),
    ];
    SOURCE = "`source`" [
        now("addresses", "Local addresses to come from, used in turn."),
    ];
    SESSION = "a session" [
        now("weight", "How many users do it in proportion to the other sessions; 1 if left out."),
        now("before", "Steps done once, when the user comes."),
        now("steps", "The steps of an iteration."),
        now("after", "Steps done once, when the user leaves."),
        later("on_error", "What a user does when a step fails."),
    ];
    HTTP = "an `http` step" [
        now("http", "Method and path: `GET /`."),
        now("name", "Its row in reports; what stands behind `http:` if left out."),
        now("headers", "Headers of the request."),
        now("json", "A JSON body, written as YAML."),
        now("form", "A form as browsers send it, url-encoded."),
        now("body", "The body: a text, `{file: path}` or `{hex: bytes}`."),
        now("multipart", "The parts of a form with files."),
        now("auth", "Basic authentication: `{user: name, password: word}`."),
        now("check", "What the answer has to be."),
        now("timeout", "From the time it is due to the last byte."),
        now("redirects", "`follow`, or how many in a row are followed."),
        later("save", "Values kept from the answer."),
        later("on_error", "What the user does when the step fails."),
        later("retry", "Tries again when the step fails."),
    ];
    CONNECT = "a `connect` step" [
        now("connect", "Opens the connection; the path of a WebSocket upgrade."),
        now("name", "Its row in reports; `connect` if left out."),
        now("headers", "Headers of the WebSocket upgrade."),
        now("protocols", "WebSocket sub-protocols to offer."),
        now("auth", "Basic authentication of the upgrade."),
        now("timeout", "How long opening may take."),
        later("retry", "Tries again when the connection fails."),
        later("check", "What the answer to the upgrade has to be."),
        later("save", "Values kept from the answer."),
        later("on_error", "What the user does when the step fails."),
    ];
    DISCONNECT = "a `disconnect` step" [
        now("disconnect", "Ends the connection in order."),
    ];
    SEND = "a `send` step" [
        now("send", "A message: `{text: …}`, `{json: …}`, `{hex: …}` or `{file: …}`."),
        now("name", "Its row in reports; `send` if left out."),
        later("on_error", "What the user does when the step fails."),
    ];
    EXPECT = "an `expect` step" [
        now("expect", "The message that has to come: `any`, or what it has to be."),
        now("name", "Its row in reports; `expect` if left out."),
        now("check", "What the message has to be."),
        now("timeout", "How long it may take."),
        later("save", "Values kept from the message."),
        later("on_error", "What the user does when the step fails."),
    ];
    REQUEST = "a `request` step" [
        now("request", "The message that is sent; its answer is waited for."),
        now("name", "Its row in reports; `request` if left out."),
        now("expect", "Where the answer ends and what it has to be."),
        now("check", "What the answer has to be."),
        now("timeout", "From the time it is due to the end of the answer."),
        later("save", "Values kept from the answer."),
        later("on_error", "What the user does when the step fails."),
    ];
    THINK = "a `think` step" [
        now("think", "A pause: `2s`, or one from a range: `1s..5s`."),
    ];
    STAY = "a `stay` step" [
        now("stay", "Stays and listens: `10m` or `forever`."),
        now("name", "Its row in reports; `stay` if left out."),
        later("heartbeat", "A message sent again and again, and its answer."),
        later("on", "What is done when the target says something."),
        later("every", "What is done again and again."),
    ];
    REPEAT = "a `repeat` step" [
        now("repeat", "How often: `3`, `3..10` or `forever`."),
        now("steps", "The steps that are repeated."),
    ];
    AUTH = "`auth`" [
        now("user", "The name of the user."),
        now("password", "The password."),
    ];
    BODY = "a body" [
        now("file", "The bytes of a file; its path counts from the scenario file."),
        now("hex", "Bytes in hexadecimal digits."),
    ];
    PART = "a part" [
        now("name", "The name of the form field."),
        now("value", "Its text."),
        now("file", "Its bytes, from a file."),
        now("filename", "The name that is sent for the file; the last of its path if left out."),
        now("type", "Its Content-Type."),
    ];
    MESSAGE = "a message" [
        now("text", "A text message."),
        now("json", "A JSON message, written as YAML."),
        now("hex", "A binary message in hexadecimal digits."),
        now("binary", "The same as `hex`."),
        now("file", "The bytes of a file: a text message if they are UTF-8, else binary."),
    ];
    EXPECTATION = "an expectation" [
        now("any", "`true`: whatever comes first."),
        now("length", "The answer has so many bytes."),
        now("delimiter", "The answer ends with these characters: `\"\\r\\n\"`."),
        now("pattern", "The answer ends where this regular expression matches."),
        now("text", "The answer contains this text."),
        now("json", "Fields of the JSON answer."),
    ];
    CHECK = "a check" [
        now("status", "`200`, `2xx`, `200..299` or a list of them."),
        now("header", "Headers of the answer: `{content-type: text/plain}`."),
        now("text", "The answer contains this text."),
        now("body", "The same as `text`."),
        now("json", "Fields of the JSON answer: `{data.code: 0}`; also `json.data.code: 0`."),
        now("time", "The whole answer came in time: `< 500ms`."),
        later("size", "The size of the answer."),
        later("xpath", "Parts of an XML answer."),
        later("css", "Parts of an HTML answer."),
        later("digest", "The digest of the answer."),
    ];
    TEXT_CHECK = "a text check" [
        now("contains", "It contains this text."),
        now("equals", "It is this text."),
        now("matches", "This regular expression matches somewhere in it."),
    ];
    PHASE = "a phase" [
        now("name", "What reports and thresholds call it."),
        now("users", "How many users are online: `100`, or `{to: 100, rate: 50/s}`."),
        now("arrivals", "New users per second: `900/s`, or `{from: 10/s, to: 900/s}`."),
        now("iterations", "Starts per second (`500/s`) or in all (`10_000`) on users who stay."),
        now("for", "How long the phase takes."),
        now("measured", "`false` keeps it out of the summary, as a warm-up."),
        later("churn", "Users who leave and come back."),
        later("at_once", "All users in the same moment."),
    ];
    USERS = "`users`" [
        now("to", "How many users there are at the end."),
        now("rate", "Users per second on the way there; all at once if left out."),
        later("step", "How many more at a time."),
        later("every", "The time between two steps."),
    ];
    ARRIVALS = "`arrivals`" [
        now("from", "The rate at the begin of the phase; 0 if left out."),
        now("to", "The rate at its end."),
    ];
    ITERATIONS = "`iterations`" [
        now("total", "How many iterations in all."),
        now("rate", "How many begin per second; as many as the users can if left out."),
    ];
}

/// The verbs of steps and the maps they make.
pub static VERBS: &[(&str, &MapKind)] = &[
    ("http", &HTTP),
    ("connect", &CONNECT),
    ("disconnect", &DISCONNECT),
    ("send", &SEND),
    ("expect", &EXPECT),
    ("request", &REQUEST),
    ("think", &THINK),
    ("stay", &STAY),
    ("repeat", &REPEAT),
];

/// Verbs of the language that are not in this version.
pub static VERBS_LATER: &[&str] = &[
    "grpc",
    "publish",
    "subscribe",
    "during",
    "while",
    "choose",
    "if",
    "for_each",
    "transaction",
    "rendezvous",
    "set",
    "log",
    "stop",
    "use",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_unique_and_documented() {
        for (_, kind) in MAP_KINDS {
            for (i, key) in kind.keys.iter().enumerate() {
                assert!(key.doc.ends_with('.'), "{}", key.name);
                assert!(kind.keys[..i].iter().all(|other| other.name != key.name), "{}", key.name);
            }
        }
        assert!(VERBS.iter().all(|(verb, kind)| kind.find(verb).is_some()));
    }
}
