//! The protocols that throng supports without a declaration: a row for each, with the abilities of
//! its connections and its terms for messages. The compiler consults the row of a connection and
//! never compares protocols. Protocols with their own verbs have their rows in `builtin`.

use throng_base::Said;
use throng_program::Scheme;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Native {
    /// A connection: `a WebSocket`.
    pub(crate) one: &'static Said,
    /// The schemes that select the protocol.
    pub(crate) schemes: &'static [Scheme],
    /// If the key `protocol` can select it.
    pub(crate) by_name: Option<ByName>,
    /// It has its own verbs for sending.
    pub(crate) own: Option<Own>,
    /// The meaning of a target's URL.
    pub(crate) url: UrlSays,
    /// A step opens its connection itself; there is no `connect`.
    pub(crate) opens_itself: bool,
    /// For such a protocol: the user keeps the connection until `disconnect`.
    pub(crate) is_kept: bool,
    /// Received data consists of messages; it is not a stream of bytes.
    pub(crate) messages: bool,
    pub(crate) headers: Headers,
    /// The statuses of failures with this name, among those of all protocols.
    pub(crate) failures: fn(&str) -> Vec<u16>,
    /// It has its own pings.
    pub(crate) pings: bool,
    /// Its connections are opened with a path.
    pub(crate) paths: bool,
    /// It has methods that are called: `package.Service/Method`.
    pub(crate) methods: bool,
    /// It is a streaming call of such a method.
    pub(crate) is_call: bool,
    /// A `#` in the path of a URL is part of the path and does not end it.
    pub(crate) keeps_hash: bool,
    /// The keys of a `connect` step that opens it, and the label where it does not have them.
    pub(crate) opening: &'static [&'static str],
    pub(crate) only: &'static Said,
    /// Keys that it does not support: label and help instead of the usual ones.
    pub(crate) instead: &'static [(&'static str, &'static Said, &'static Said)],
    /// The flags of `throng bench` that it supports, of those that only some protocols support.
    pub(crate) flags: &'static [&'static str],
    /// What to write instead of `--body` if that flag is not supported.
    pub(crate) in_place_of_body: Option<&'static Said>,
    /// The verbs that require such a target, and the message without one.
    pub(crate) verbs: &'static [&'static str],
    pub(crate) needs: &'static Said,
    /// Messages for other verbs, instead of naming their requirement.
    pub(crate) refuses: &'static [(&'static str, &'static Said)],
    /// The start of a step with a path, before the `/`.
    pub(crate) step: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UrlSays {
    /// Only host and port.
    Place,
    /// Credentials, and the number of a database.
    Login,
    /// Credentials, a database, and parameters; the host can be omitted.
    Database,
}

/// A protocol with its own verbs for sending.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Own {
    /// Its name in messages.
    pub(crate) name: &'static str,
    /// What to write instead of `send` and `request`.
    pub(crate) sends: &'static Said,
}

/// A protocol that a scenario can name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ByName {
    /// The value of `protocol`.
    pub(crate) word: &'static str,
    /// The default path over WebSocket.
    pub(crate) path: &'static str,
    pub(crate) subprotocol: &'static str,
}

/// Metadata of messages, by name.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Headers {
    None,
    Texts,
    /// Numbers and booleans too. Some need no `header` before their name; each comes with the
    /// diagnostic for messages that do not have it.
    Values(&'static [(&'static str, &'static Said)]),
}

macro_rules! words {
    (words [] $($word:literal)*) => {
        /// The keywords of `protocol`, besides a file or a declaration.
        pub(crate) const WORDS: &[&str] = &["none", $($word),*];
    };
}

builtins! { words words }

macro_rules! rows {
    ($($name:ident)*) => {
        /// Checked in this order: the row that a key of `connect` belongs to.
        static ROWS: &[&[&Native]] =
            &[&[&WEBSOCKET, &EVENTS], $($name! { rows },)* &[&HTTP, &UDP, &BYTES]];
    };
}

builtins!(each rows);

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
    failures: |_| Vec::new(),
    pings: false,
    paths: false,
    methods: false,
    is_call: false,
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
    in_place_of_body: None,
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

static ONLY_WEBSOCKET: Said = say!("supported only with WebSocket");

/// The row of a scheme; an unknown scheme is a byte stream in both directions.
pub(crate) fn of_scheme(scheme: Option<Scheme>) -> &'static Native {
    find(|row| scheme.is_some_and(|scheme| row.schemes.contains(&scheme))).unwrap_or(&BYTES)
}

/// The row that `protocol` names.
pub(crate) fn of_word(word: &str) -> Option<&'static Native> {
    find(|row| row.by_name.is_some_and(|named| named.word == word))
}

/// The schemes that a flag of `throng bench` applies to.
pub fn schemes_with(flag: &str) -> Vec<Scheme> {
    let applies = |scheme: &Scheme| of_scheme(Some(*scheme)).flags.contains(&flag);
    Scheme::ALL.into_iter().filter(applies).collect()
}

/// The verbs of the targets that a flag of `throng bench` applies to.
pub(crate) fn verbs_with(flag: &str) -> Vec<&'static str> {
    all().filter(|row| row.flags.contains(&flag)).flat_map(|row| row.verbs).copied().collect()
}

/// Protocols whose connections a step opens and the user keeps.
pub(crate) fn kept() -> impl Iterator<Item = &'static Native> {
    all().filter(|row| row.is_kept)
}

/// The protocol with methods.
pub(crate) fn with_methods() -> &'static Native {
    find(|row| row.methods).unwrap_or(&BYTES)
}

/// A streaming call of a method.
pub(crate) fn of_call() -> &'static Native {
    find(|row| row.is_call).unwrap_or(&BYTES)
}

/// The statuses of failures with this name.
pub(crate) fn failures(text: &str) -> impl Iterator<Item = u16> {
    all().flat_map(move |row| (row.failures)(text))
}

pub(crate) fn of_verb(verb: &str) -> Option<&'static Native> {
    find(|row| row.verbs.contains(&verb))
}

/// The protocol that a key of `connect` opens.
pub(crate) fn of_key(key: &str) -> Option<&'static Native> {
    find(|row| row.opening.contains(&key))
}

/// The protocol whose messages have this word.
pub(crate) fn of_header(word: &str) -> Option<&'static Native> {
    find(|row| row.only_here(word).is_some())
}

fn find(is: impl Fn(&Native) -> bool) -> Option<&'static Native> {
    all().find(|row| is(row))
}

fn all() -> impl Iterator<Item = &'static Native> {
    ROWS.iter().copied().flatten().copied()
}

impl Native {
    /// True if connections of a scheme can use it: a named protocol also works over WebSocket.
    pub(crate) fn goes_over(&self, scheme: Scheme) -> bool {
        let over_websocket = self.by_name.is_some() && WEBSOCKET.schemes.contains(&scheme);
        self.schemes.contains(&scheme) || over_websocket
    }

    /// The diagnostic for messages of other protocols, for words that only this one has.
    pub(crate) fn only_here(&self, word: &str) -> Option<&'static Said> {
        let Headers::Values(words) = self.headers else { return None };
        words.iter().find(|(own, _)| *own == word).map(|(_, only)| *only)
    }

    /// The diagnostic for a verb without such a target.
    pub(crate) fn refusal(&self, verb: &str) -> &'static Said {
        let refused =
            |row: &Native| row.refuses.iter().find(|(one, _)| *one == verb).map(|it| it.1);
        let usual = || of_verb(verb).unwrap_or(&BYTES).needs;
        refused(self).or_else(|| refused(&HTTP)).unwrap_or_else(usual)
    }

    /// The message that such a connection does not support a key.
    pub(crate) fn has_no(&self, key: &str) -> Said {
        say!("{} has no `{key}`", self.one)
    }

    /// The message that a connection does not use this protocol.
    pub(crate) fn not_spoken(&self) -> Said {
        say!("the connection does not use {}", self.own.map_or("", |own| own.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_scheme_has_one_row_and_each_named_protocol_its_keyword() {
        for scheme in Scheme::ALL {
            let rows = all().filter(|row| row.schemes.contains(&scheme));
            assert_eq!(rows.count(), 1, "{scheme:?}");
        }
        let words = all().filter_map(|row| Some(row.by_name?.word));
        assert_eq!(["none"].into_iter().chain(words).collect::<Vec<_>>(), WORDS);
    }
}
