//! What is spoken on a connection, and what its messages may be.

use std::sync::Arc;

use throng_base::Said;
use throng_program::{Extractor, Scheme};
use throng_protocol::framed::declaration::Transport;
use throng_protocol::framed::{FieldPath, MessageId, PathMistake, Protocol, Range};
use throng_protocol::protobuf::{MessageType, Method, MethodId, Schema};

use crate::native::{self, EVENTS, Headers, Native};
use crate::synonyms::did_you_mean;

/// What a message may be, and so which fields it has.
#[derive(Clone, Debug)]
pub(crate) enum Kinds {
    /// One of these of a declared protocol; there is one at least.
    Declared { protocol: Arc<Protocol>, ids: Vec<MessageId> },
    /// This one of protobuf.
    Proto { schema: Arc<Schema>, message: MessageType },
}

impl Kinds {
    /// These messages of a protocol, or all when none is named.
    pub(crate) fn declared(protocol: &Arc<Protocol>, ids: &[MessageId]) -> Kinds {
        let ids = match ids {
            [] => protocol.messages().map(|(id, _)| id).collect(),
            ids => ids.to_vec(),
        };
        Kinds::Declared { protocol: protocol.clone(), ids }
    }

    /// The messages of a declared protocol.
    pub(crate) fn ids(&self) -> &[MessageId] {
        match self {
            Kinds::Declared { ids, .. } => ids,
            Kinds::Proto { .. } => &[],
        }
    }

    /// Whether it asks for the number of packets of a reply, which may have several.
    pub(crate) fn counts_packets(&self, word: &str) -> bool {
        let Kinds::Declared { protocol, ids } = self else { return false };
        let of = word.strip_prefix("packets");
        let is_it = of.is_some_and(|of| of.is_empty() || of.starts_with('.'));
        is_it && ids.iter().any(|id| protocol.info(*id).may_go_on)
    }

    /// The way to a field, in every kind that has it.
    pub(crate) fn find(&self, path: &str) -> Result<Extractor, PathMistake> {
        let (protocol, ids) = match self {
            Kinds::Proto { schema, message } => {
                return schema.field(*message, path).map(Extractor::Proto);
            }
            Kinds::Declared { protocol, ids } => (protocol, ids),
        };
        // A push may have more packets.
        let parts = ids.iter().flat_map(|id| protocol.parts_of_push(*id));
        let found: Vec<Result<FieldPath, PathMistake>> =
            ids.iter().copied().chain(parts).map(|id| protocol.field(id, path)).collect();
        match found.iter().any(Result::is_ok) {
            true => Ok(Extractor::Field(found.into_iter().flatten().collect())),
            false => {
                let first = found.into_iter().find_map(Result::err);
                Err(first.unwrap_or_else(|| PathMistake {
                    message: Said::of_others(String::new()),
                    part: path.into(),
                    help: Said::of_others(String::new()),
                }))
            }
        }
    }

    pub(crate) fn has(&self, path: &str) -> bool {
        self.find(path).is_ok()
    }

    /// The field that was perhaps meant.
    pub(crate) fn near(&self, word: &str) -> Option<String> {
        match self {
            // What the schema says of a mistake has it already.
            Kinds::Proto { .. } => None,
            Kinds::Declared { protocol, ids } => ids.iter().find_map(|id| {
                let layout = protocol.layout(*id);
                let names = layout.iter().filter_map(|row| row.path.split(['.', '[']).next_back());
                did_you_mean(word, names).map(str::to_string)
            }),
        }
    }

    /// The values that what is picked may have, in every kind that has it.
    pub(crate) fn ranges(&self, extractor: &Extractor) -> Vec<Range> {
        match (self, extractor) {
            (Kinds::Declared { protocol, .. }, Extractor::Field(paths)) => {
                paths.iter().map(|path| protocol.range(path)).collect()
            }
            (Kinds::Proto { schema, .. }, Extractor::Proto(path)) => vec![schema.range(path)],
            _ => vec![Range::Any],
        }
    }
}

/// A method, and what declares it.
#[derive(Clone, Debug)]
pub(crate) struct Called {
    pub(crate) schema: Arc<Schema>,
    pub(crate) id: MethodId,
}

impl Called {
    pub(crate) fn method(&self) -> &Method {
        self.schema.method(self.id)
    }

    /// `package.Service/Method`
    pub(crate) fn name(&self) -> &str {
        self.method().path.trim_start_matches('/')
    }

    /// What the target says.
    pub(crate) fn replies(&self) -> Kinds {
        Kinds::Proto { schema: self.schema.clone(), message: self.method().output }
    }
}

/// The protocol of a connection.
#[derive(Clone, Debug, Default)]
pub(crate) enum Spoken {
    /// What the scheme says: HTTP, WebSocket, bytes.
    #[default]
    Plain,
    /// There is one, and a mistake keeps it from being known.
    Unknown,
    Declared(Arc<Protocol>),
    /// Messages that nothing declares, each of which ends with these bytes.
    Records(Arc<[u8]>),
    /// Server-sent events, over HTTP.
    Events,
    /// The messages of a call that stays open.
    Call(Called),
    /// What a scheme or `protocol` names.
    Native(&'static Native),
}

impl Spoken {
    /// What throng knows of it beyond what the scheme says.
    pub(crate) fn native(&self) -> Option<&'static Native> {
        match self {
            Spoken::Events => Some(&EVENTS),
            Spoken::Call(_) => Some(native::of_call()),
            Spoken::Native(native) => Some(native),
            Spoken::Plain | Spoken::Unknown | Spoken::Declared(_) | Spoken::Records(_) => None,
        }
    }

    /// Whether it is what `protocol` calls so.
    pub(crate) fn is(&self, word: &str) -> bool {
        let named = self.native().and_then(|native| native.by_name);
        named.is_some_and(|named| named.word == word)
    }

    /// What a message says of itself beside its content.
    pub(crate) fn headers(&self) -> Headers {
        self.native().map_or(Headers::None, |native| native.headers)
    }

    pub(crate) fn has_headers(&self) -> bool {
        !matches!(self.headers(), Headers::None)
    }
}

/// The scheme that an address without one has.
pub(crate) fn scheme_of(transport: Transport) -> Scheme {
    match transport {
        Transport::Tcp => Scheme::Tcp,
        Transport::Tls => Scheme::Tls,
        Transport::Udp => Scheme::Udp,
        Transport::WebSocket => Scheme::Ws,
        Transport::WebSocketTls => Scheme::Wss,
    }
}
