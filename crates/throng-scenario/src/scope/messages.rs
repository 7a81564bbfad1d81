//! The protocol of a connection, and its possible messages.

use std::sync::Arc;

use throng_base::Said;
use throng_program::{Extractor, Scheme};
use throng_protocol::framed::declaration::Transport;
use throng_protocol::framed::{FieldPath, MessageId, PathMistake, Protocol, Range};
use throng_protocol::protobuf::{MessageType, Method, MethodId, Schema};

use crate::native::{self, EVENTS, Headers, Native};
use crate::synonyms::did_you_mean;

/// The possible kinds of a message, which determine its fields.
#[derive(Clone, Debug)]
pub(crate) enum Kinds {
    /// One of these messages of a declared protocol; not empty.
    Declared { protocol: Arc<Protocol>, ids: Vec<MessageId> },
    /// This Protobuf message.
    Proto { schema: Arc<Schema>, message: MessageType },
}

impl Kinds {
    /// These messages of a protocol, or all if none is named.
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

    /// True if it selects the number of packets of a reply that can have several.
    pub(crate) fn counts_packets(&self, word: &str) -> bool {
        let Kinds::Declared { protocol, ids } = self else { return false };
        let of = word.strip_prefix("packets");
        let is_it = of.is_some_and(|of| of.is_empty() || of.starts_with('.'));
        is_it && ids.iter().any(|id| protocol.info(*id).may_go_on)
    }

    /// The path to a field, in each kind that has it.
    pub(crate) fn find(&self, path: &str) -> Result<Extractor, PathMistake> {
        let (protocol, ids) = match self {
            Kinds::Proto { schema, message } => {
                return schema.field(*message, path).map(Extractor::Proto);
            }
            Kinds::Declared { protocol, ids } => (protocol, ids),
        };
        // A push can have more packets.
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

    /// A suggestion for an unknown field.
    pub(crate) fn near(&self, word: &str) -> Option<String> {
        match self {
            // The mistake from the schema already contains it.
            Kinds::Proto { .. } => None,
            Kinds::Declared { protocol, ids } => ids.iter().find_map(|id| {
                let layout = protocol.layout(*id);
                let names = layout.iter().filter_map(|row| row.path.split(['.', '[']).next_back());
                did_you_mean(word, names).map(str::to_string)
            }),
        }
    }

    /// The possible values of a selected field, in each kind that has it.
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

/// A method with its declaration.
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

    /// The messages that the target sends.
    pub(crate) fn replies(&self) -> Kinds {
        Kinds::Proto { schema: self.schema.clone(), message: self.method().output }
    }
}

/// The protocol of a connection.
#[derive(Clone, Debug, Default)]
pub(crate) enum Spoken {
    /// Determined by the scheme: HTTP, WebSocket, bytes.
    #[default]
    Plain,
    /// A mistake makes it unknown.
    Unknown,
    Declared(Arc<Protocol>),
    /// Undeclared messages that end with these bytes.
    Records(Arc<[u8]>),
    /// Server-sent events, over HTTP.
    Events,
    /// The messages of a streaming call.
    Call(Called),
    /// A built-in protocol, named by a scheme or by `protocol`.
    Native(&'static Native),
}

impl Spoken {
    /// The built-in protocol, if it is not determined by the scheme alone.
    pub(crate) fn native(&self) -> Option<&'static Native> {
        match self {
            Spoken::Events => Some(&EVENTS),
            Spoken::Call(_) => Some(native::of_call()),
            Spoken::Native(native) => Some(native),
            Spoken::Plain | Spoken::Unknown | Spoken::Declared(_) | Spoken::Records(_) => None,
        }
    }

    /// True if this word of `protocol` names it.
    pub(crate) fn is(&self, word: &str) -> bool {
        let named = self.native().and_then(|native| native.by_name);
        named.is_some_and(|named| named.word == word)
    }

    /// The metadata of its messages.
    pub(crate) fn headers(&self) -> Headers {
        self.native().map_or(Headers::None, |native| native.headers)
    }

    pub(crate) fn has_headers(&self) -> bool {
        !matches!(self.headers(), Headers::None)
    }
}

/// The scheme of an address without one.
pub(crate) fn scheme_of(transport: Transport) -> Scheme {
    match transport {
        Transport::Tcp => Scheme::Tcp,
        Transport::Tls => Scheme::Tls,
        Transport::Udp => Scheme::Udp,
        Transport::WebSocket => Scheme::Ws,
        Transport::WebSocketTls => Scheme::Wss,
    }
}
