//! What throng speaks without a declaration: a row for each protocol, with what its connections can
//! do and how sentences call it. Readers ask the row of a connection, and never which protocol it
//! is. A new protocol adds its row to [`ROWS`].

use throng_base::Said;
use throng_program::Scheme;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Native {
    /// A connection: `an MQTT connection`.
    pub(crate) one: &'static Said,
    /// Those that say what is spoken.
    pub(crate) schemes: &'static [Scheme],
    /// Where `protocol` says it.
    pub(crate) by_name: Option<ByName>,
    /// It has its own way to send.
    pub(crate) own: Option<Own>,
    /// What the URL of a target says.
    pub(crate) url: UrlSays,
    /// A step opens its connection itself; there is no `connect`.
    pub(crate) opens_itself: bool,
    /// Of such a connection: the user keeps it, and `disconnect` ends it.
    pub(crate) is_kept: bool,
    /// What comes is cut into messages, and is not bytes without ends.
    pub(crate) messages: bool,
    pub(crate) headers: Headers,
    /// It has pings of its own.
    pub(crate) pings: bool,
    /// It is opened with a path.
    pub(crate) paths: bool,
    /// Methods are called there: `package.Service/Method`.
    pub(crate) methods: bool,
    /// A `#` in the path of a URL is a part of it, and does not end it.
    pub(crate) keeps_hash: bool,
    /// The keys of a `connect` step that opens it, and the label where it does not have them.
    pub(crate) opening: &'static [&'static str],
    pub(crate) only: &'static Said,
    /// Keys that it does not have: label and help instead of the usual ones.
    pub(crate) instead: &'static [(&'static str, &'static Said, &'static Said)],
    /// The flags of `throng bench` that apply to it, of those that do not apply to all protocols.
    pub(crate) flags: &'static [&'static str],
    /// The verbs that need such a target, and what is said where there is none.
    pub(crate) verbs: &'static [&'static str],
    pub(crate) needs: &'static Said,
    /// What is said there of other verbs instead of what these need.
    pub(crate) refuses: &'static [(&'static str, &'static Said)],
    /// The beginning of the step where a path is written, without the `/` in front of it.
    pub(crate) step: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UrlSays {
    /// No more than host and port.
    Place,
    /// Who logs in, and the number of a database.
    Login,
    /// Who logs in, a database, and parameters; the host may be left out.
    Database,
}

/// Of a protocol that has its own way to send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Own {
    /// In sentences.
    pub(crate) name: &'static str,
    /// What is written in place of `send` and `request`.
    pub(crate) sends: &'static Said,
}

/// Of a protocol that a scenario can name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ByName {
    /// Behind `protocol`.
    pub(crate) word: &'static str,
    /// Over WebSocket, if the step does not say it.
    pub(crate) path: &'static str,
    pub(crate) subprotocol: &'static str,
}

/// What a message says of itself beside its content, by name.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Headers {
    None,
    Texts,
    /// Numbers and truth values too. Some need no `header` in front of them; with each of these,
    /// what is said of messages that do not have it.
    Values(&'static [(&'static str, &'static Said)]),
}

/// What follows `protocol` in place of a file or a declaration.
pub(crate) const WORDS: &[&str] = &["none", "mqtt"];

/// Before others: the row that a key of `connect` belongs to.
static ROWS: [&Native; 10] =
    [&WEBSOCKET, &EVENTS, &CALL, &MQTT, &REDIS, &HTTP, &GRPC, &SQL, &UDP, &BYTES];

static BYTES: Native = Native {
    one: &say!("a TCP connection"),
    schemes: &[Scheme::Tcp, Scheme::Tls],
    by_name: None,
    own: None,
    url: UrlSays::Place,
    opens_itself: false,
    is_kept: false,
    messages: false,
    headers: Headers::None,
    pings: false,
    paths: false,
    methods: false,
    keeps_hash: false,
    opening: &[],
    only: &ONLY_WEBSOCKET,
    instead: &[],
    flags: &[
        "--delimiter",
        "--length",
        "--pattern",
        "--hex",
        "--heartbeat",
        "--heartbeat-body",
        "--expect-text",
        "--expect-json",
    ],
    verbs: &[],
    needs: &say!("a target with `ws://`, `wss://`, `tcp://` or `tls://` is required"),
    refuses: &[],
    step: "http: GET /",
};

static UDP: Native = Native {
    schemes: &[Scheme::Udp],
    messages: true,
    flags: &["--hex", "--heartbeat", "--heartbeat-body", "--expect-text", "--expect-json"],
    ..BYTES
};

pub(crate) static HTTP: Native = Native {
    schemes: &[Scheme::Http, Scheme::Https],
    opens_itself: true,
    paths: true,
    flags: &[
        "--method",
        "--auth",
        "--header",
        "--content-type",
        "--digest",
        "--follow",
        "--http2",
        "--http-version",
        "--streams",
        "--expect-status",
        "--expect-text",
        "--expect-json",
    ],
    verbs: &["http"],
    needs: &say!("an `http` step requires a target with `http://` or `https://`"),
    refuses: &[
        (
            "connect",
            &say!(
                "remove it: HTTP connections are opened on demand; for an event stream, write \
                 `events: true`; for WebSocket, use a `ws://` target"
            ),
        ),
        (
            "disconnect",
            &say!(
                "remove it: HTTP connections are opened on demand; for WebSocket, use a `ws://` \
                 target"
            ),
        ),
    ],
    ..BYTES
};

pub(crate) static GRPC: Native = Native {
    schemes: &[Scheme::Grpc, Scheme::Grpcs],
    opens_itself: true,
    paths: true,
    methods: true,
    flags: &["--auth", "--header", "--streams", "--proto", "--expect-status"],
    verbs: &["grpc"],
    needs: &say!("a `grpc` step requires a target with `grpc://` or `grpcs://`"),
    refuses: &[(
        "http",
        &say!("call a gRPC method of this target: `- grpc: package.Service/Method`"),
    )],
    step: "grpc: ",
    ..BYTES
};

pub(crate) static WEBSOCKET: Native = Native {
    one: &say!("a WebSocket"),
    schemes: &[Scheme::Ws, Scheme::Wss],
    messages: true,
    pings: true,
    paths: true,
    opening: &["connect", "headers", "protocols", "auth"],
    flags: &[
        "--auth",
        "--header",
        "--subprotocol",
        "--deflate",
        "--hex",
        "--heartbeat",
        "--heartbeat-body",
        "--expect-text",
        "--expect-json",
    ],
    step: "connect: /",
    ..BYTES
};

/// Server-sent events, over HTTP.
pub(crate) static EVENTS: Native = Native {
    one: &say!("an event stream"),
    schemes: &[],
    messages: true,
    headers: Headers::Texts,
    opening: &["connect", "headers", "auth", "json", "form", "body"],
    only: &say!("only event stream requests support it"),
    verbs: &["events"],
    needs: &say!("an event stream requires a target with `http://` or `https://`"),
    ..BYTES
};

/// The messages of a gRPC call that stays open.
pub(crate) static CALL: Native = Native {
    one: &say!("a gRPC call"),
    schemes: &[],
    messages: true,
    opening: &["connect", "metadata", "compress", "message"],
    only: &say!("only gRPC calls support it"),
    instead: &[
        ("headers", &ONLY_WEBSOCKET, &METADATA),
        ("protocols", &ONLY_WEBSOCKET, &METADATA),
        ("auth", &ONLY_WEBSOCKET, &METADATA),
    ],
    ..BYTES
};

/// On a stream of bytes or in the messages of a WebSocket.
static MQTT: Native = Native {
    one: &say!("an MQTT connection"),
    schemes: &[Scheme::Mqtt, Scheme::Mqtts],
    by_name: Some(ByName { word: "mqtt", path: "/mqtt", subprotocol: "mqtt" }),
    own: Some(Own {
        name: "MQTT",
        sends: &say!("write `- publish: TOPIC` with `text`, `json`, `hex` or `file`"),
    }),
    messages: true,
    headers: Headers::Values(&[("topic", &say!("only MQTT messages have a topic"))]),
    pings: true,
    keeps_hash: true,
    opening: &["mqtt"],
    only: &say!("only MQTT connections support this"),
    instead: &[(
        "auth",
        &say!("MQTT has separate keys for the user and the password"),
        &say!("write `mqtt: {{user: name, password: word}}`"),
    )],
    flags: &["--auth", "--hex", "--heartbeat", "--qos", "--retain", "--client-id", "--mqtt-3"],
    verbs: &["publish", "subscribe", "unsubscribe"],
    needs: &say!("write the target as `mqtt://…`; for `ws://…`, add `protocol: mqtt`"),
    step: "publish: ",
    ..BYTES
};

static REDIS: Native = Native {
    one: &say!("a Redis connection"),
    schemes: &[Scheme::Redis, Scheme::Rediss],
    own: Some(Own { name: "Redis", sends: &say!("write `- redis: GET key`") }),
    url: UrlSays::Login,
    messages: true,
    headers: Headers::Values(&[
        ("value", &say!("only Redis replies have a value")),
        ("error", &say!("only Redis replies have an error")),
        ("channel", &say!("only Redis messages have a channel")),
    ]),
    instead: &[(
        "auth",
        &say!("Redis reads the login from the target URL"),
        &say!("write `target: redis://user:password@host`, or `- redis: AUTH user password`"),
    )],
    flags: &["--auth", "--command", "--pipeline", "--expect-text", "--expect-json"],
    verbs: &["redis"],
    needs: &say!("write the target as `redis://…` or `rediss://…`"),
    step: "redis: ",
    ..BYTES
};

static SQL: Native = Native {
    one: &say!("a database connection"),
    schemes: &[Scheme::Postgres, Scheme::MySql],
    url: UrlSays::Database,
    opens_itself: true,
    is_kept: true,
    flags: &["--sql"],
    verbs: &["sql"],
    needs: &say!("a `sql` step requires a target with `postgres://` or `mysql://`"),
    refuses: &[(
        "connect",
        &say!("remove it: the first `sql` step of a user opens its connection"),
    )],
    step: "sql: ",
    ..BYTES
};

static ONLY_WEBSOCKET: Said = say!("supported only with WebSocket");

static METADATA: Said = say!("write `metadata: {{…}}`");

/// What a scheme says; of one that is not known, no more than that bytes go both ways.
pub(crate) fn of_scheme(scheme: Option<Scheme>) -> &'static Native {
    find(|row| scheme.is_some_and(|scheme| row.schemes.contains(&scheme))).unwrap_or(&BYTES)
}

/// What `protocol` names.
pub(crate) fn of_word(word: &str) -> Option<&'static Native> {
    find(|row| row.by_name.is_some_and(|named| named.word == word))
}

/// The schemes that a flag of `throng bench` applies to.
pub fn schemes_with(flag: &str) -> Vec<Scheme> {
    let applies = |scheme: &Scheme| of_scheme(Some(*scheme)).flags.contains(&flag);
    Scheme::ALL.into_iter().filter(applies).collect()
}

/// Those whose connections a step opens and the user keeps.
pub(crate) fn kept() -> impl Iterator<Item = &'static Native> {
    ROWS.into_iter().filter(|row| row.is_kept)
}

pub(crate) fn of_verb(verb: &str) -> Option<&'static Native> {
    find(|row| row.verbs.contains(&verb))
}

/// What a key of `connect` opens.
pub(crate) fn of_key(key: &str) -> Option<&'static Native> {
    find(|row| row.opening.contains(&key))
}

/// What says this word of its messages.
pub(crate) fn of_header(word: &str) -> Option<&'static Native> {
    find(|row| row.only_here(word).is_some())
}

fn find(is: impl Fn(&Native) -> bool) -> Option<&'static Native> {
    ROWS.into_iter().find(|row| is(row))
}

impl Native {
    /// Whether connections of a scheme can speak it: one that is named goes over WebSocket too.
    pub(crate) fn goes_over(&self, scheme: Scheme) -> bool {
        let over_websocket = self.by_name.is_some() && WEBSOCKET.schemes.contains(&scheme);
        self.schemes.contains(&scheme) || over_websocket
    }

    /// What is said of messages of others, where its own say this of themselves.
    pub(crate) fn only_here(&self, word: &str) -> Option<&'static Said> {
        let Headers::Values(words) = self.headers else { return None };
        words.iter().find(|(own, _)| *own == word).map(|(_, only)| *only)
    }

    /// What is said of a verb that has no such target.
    pub(crate) fn refusal(&self, verb: &str) -> &'static Said {
        let refused =
            |row: &Native| row.refuses.iter().find(|(one, _)| *one == verb).map(|it| it.1);
        let usual = || of_verb(verb).unwrap_or(&BYTES).needs;
        refused(self).or_else(|| refused(&HTTP)).unwrap_or_else(usual)
    }

    /// That a connection does not speak it.
    pub(crate) fn not_spoken(&self) -> Said {
        say!("the connection does not use {}", self.own.map_or("", |own| own.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scheme_has_one_row_and_every_named_protocol_its_word() {
        for scheme in Scheme::ALL {
            let rows = ROWS.iter().filter(|row| row.schemes.contains(&scheme));
            assert_eq!(rows.count(), 1, "{scheme:?}");
        }
        let words = ROWS.iter().filter_map(|row| Some(row.by_name?.word));
        assert_eq!(["none"].into_iter().chain(words).collect::<Vec<_>>(), WORDS);
    }
}
