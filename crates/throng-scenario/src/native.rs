//! What throng speaks without a declaration: a row for each protocol, with what its connections can
//! do and how sentences call it. Readers ask the row of a connection, and never which protocol it
//! is. Those with verbs of their own have their rows in `builtin`.

use throng_base::Said;
use throng_program::Scheme;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Native {
    /// A connection: `a WebSocket`.
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
    /// The statuses of failures with this name, among those of all protocols.
    pub(crate) failures: fn(&str) -> Vec<u16>,
    /// It has pings of its own.
    pub(crate) pings: bool,
    /// It is opened with a path.
    pub(crate) paths: bool,
    /// Methods are called there: `package.Service/Method`.
    pub(crate) methods: bool,
    /// It is a call of such a method that stays open.
    pub(crate) is_call: bool,
    /// A `#` in the path of a URL is a part of it, and does not end it.
    pub(crate) keeps_hash: bool,
    /// The keys of a `connect` step that opens it, and the label where it does not have them.
    pub(crate) opening: &'static [&'static str],
    pub(crate) only: &'static Said,
    /// Keys that it does not have: label and help instead of the usual ones.
    pub(crate) instead: &'static [(&'static str, &'static Said, &'static Said)],
    /// The flags of `throng bench` that apply to it, of those that do not apply to all protocols.
    pub(crate) flags: &'static [&'static str],
    /// What is written in place of `--body` where that is not one of them.
    pub(crate) in_place_of_body: Option<&'static Said>,
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

macro_rules! words {
    (words [] $($word:literal)*) => {
        /// What follows `protocol` in place of a file or a declaration.
        pub(crate) const WORDS: &[&str] = &["none", $($word),*];
    };
}

builtins! { words words }

macro_rules! rows {
    ($($name:ident)*) => {
        /// Before others: the row that a key of `connect` belongs to.
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

/// The verbs of the targets that a flag of `throng bench` applies to.
pub(crate) fn verbs_with(flag: &str) -> Vec<&'static str> {
    all().filter(|row| row.flags.contains(&flag)).flat_map(|row| row.verbs).copied().collect()
}

/// Those whose connections a step opens and the user keeps.
pub(crate) fn kept() -> impl Iterator<Item = &'static Native> {
    all().filter(|row| row.is_kept)
}

/// Where methods are called.
pub(crate) fn with_methods() -> &'static Native {
    find(|row| row.methods).unwrap_or(&BYTES)
}

/// A call of a method that stays open.
pub(crate) fn of_call() -> &'static Native {
    find(|row| row.is_call).unwrap_or(&BYTES)
}

/// The statuses of failures that protocols call so.
pub(crate) fn failures(text: &str) -> impl Iterator<Item = u16> {
    all().flat_map(move |row| (row.failures)(text))
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
    all().find(|row| is(row))
}

fn all() -> impl Iterator<Item = &'static Native> {
    ROWS.iter().copied().flatten().copied()
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

    /// That a connection does not go with a key.
    pub(crate) fn has_no(&self, key: &str) -> Said {
        say!("{} has no `{key}`", self.one)
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
            let rows = all().filter(|row| row.schemes.contains(&scheme));
            assert_eq!(rows.count(), 1, "{scheme:?}");
        }
        let words = all().filter_map(|row| Some(row.by_name?.word));
        assert_eq!(["none"].into_iter().chain(words).collect::<Vec<_>>(), WORDS);
    }
}
