//! What a session talks to: its targets, the scheme they share, and the protocol that is spoken.
//! The scenario says it for all sessions, and each of them may say it for itself.

use std::collections::HashMap;
use std::sync::Arc;

use throng_program::{Scheme, Target};
use throng_protocol::framed::Protocol;
use throng_protocol::framed::declaration::Transport;

use crate::protocol::load_protocol;
use crate::read::{Context, Fields};
use crate::syntax::{Kind, Node};
use crate::target::read_targets;

/// The protocol of a connection.
#[derive(Clone, Debug, Default)]
pub(crate) enum Spoken {
    /// What the scheme says: HTTP, WebSocket, bytes.
    #[default]
    Plain,
    /// There is one, and a mistake keeps it from being known.
    Unknown,
    Declared(Arc<Protocol>),
}

/// What one session talks to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reach {
    /// The numbers of its targets.
    pub(crate) targets: Box<[u16]>,
    /// None where a mistake keeps it from being known.
    pub(crate) scheme: Option<Scheme>,
    /// The number of its protocol.
    pub(crate) protocol: Option<u16>,
    pub(crate) spoken: Spoken,
}

impl Reach {
    pub(crate) fn is_http(&self) -> bool {
        matches!(self.scheme, Some(Scheme::Http | Scheme::Https))
    }

    pub(crate) fn is_websocket(&self) -> bool {
        matches!(self.scheme, Some(Scheme::Ws | Scheme::Wss))
    }

    pub(crate) fn declared(&self) -> Option<&Arc<Protocol>> {
        match &self.spoken {
            Spoken::Declared(protocol) => Some(protocol),
            _ => None,
        }
    }
}

/// What all sessions talk to.
#[derive(Default)]
pub(crate) struct Reaches {
    pub(crate) targets: Vec<Target>,
    pub(crate) protocols: Vec<Arc<Protocol>>,
    /// For sessions that say nothing themselves.
    common: Reach,
    own: HashMap<String, Reach>,
    /// Files that were read: several sessions may name the same.
    files: HashMap<String, (Option<u16>, Spoken)>,
}

const TARGET_HELP: &str = "write `target: http://127.0.0.1:8080`";

impl Reaches {
    pub(crate) fn read(cx: &mut Context<'_>, fields: &Fields<'_>) -> Reaches {
        let mut reaches = Reaches::default();
        let (number, spoken) = match fields.get("protocol") {
            Some(node) => reaches.load(cx, node),
            None => (None, Spoken::Plain),
        };
        let sessions = fields.get("sessions").map_or(&[][..], |node| match &node.kind {
            Kind::Map(entries) => entries.as_slice(),
            _ => &[],
        });
        let own = |session: &'_ Node, name: &str| match &session.kind {
            Kind::Map(entries) => {
                entries.iter().find(|(key, _)| key.text == name).map(|(_, node)| node.clone())
            }
            _ => None,
        };
        let all_have_one = !sessions.is_empty()
            && sessions.iter().all(|(_, session)| own(session, "target").is_some());
        let node = match all_have_one {
            true => fields.get("target"),
            false => fields.need(cx, "target", TARGET_HELP),
        };
        reaches.common = Reach { protocol: number, spoken, ..Reach::default() };
        if let Some(node) = node {
            let common = reaches.common.clone();
            reaches.common = reaches.at(cx, node, common);
            if all_have_one {
                let message = "every session has a target of its own".to_string();
                let warning = cx.warning("never-runs", message, node.place);
                cx.note(warning.label("nobody goes there").help("remove this one, or theirs"));
            }
            let spoken = reaches.common.spoken.clone();
            check_transport(cx, node, reaches.common.scheme, &spoken);
        }
        for (key, session) in sessions {
            let (target, protocol) = (own(session, "target"), own(session, "protocol"));
            if target.is_some() || protocol.is_some() {
                let reach = reaches.of_session(cx, target.as_ref(), protocol.as_ref());
                reaches.own.entry(key.text.clone()).or_insert(reach);
            }
        }
        reaches
    }

    pub(crate) fn of(&self, session: &str) -> &Reach {
        self.own.get(session).unwrap_or(&self.common)
    }

    /// What the sessions talk to; that of the scenario where there is none.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Reach> {
        let common =
            (!self.common.targets.is_empty() || self.own.is_empty()).then_some(&self.common);
        common.into_iter().chain(self.own.values())
    }

    /// Whether nobody has a connection that stays, as far as that is known.
    pub(crate) fn http_only(&self) -> Option<Scheme> {
        let scheme = self.common.scheme.or_else(|| self.own.values().find_map(|one| one.scheme));
        scheme.filter(|_| self.all().all(Reach::is_http))
    }

    fn of_session(
        &mut self,
        cx: &mut Context<'_>,
        target: Option<&Node>,
        protocol: Option<&Node>,
    ) -> Reach {
        let is_none =
            |node: &Node| matches!(&node.kind, Kind::Scalar { text, .. } if text == "none");
        let mut reach = Reach { targets: Box::default(), ..self.common.clone() };
        match protocol {
            Some(node) if is_none(node) => (reach.protocol, reach.spoken) = (None, Spoken::Plain),
            Some(node) => (reach.protocol, reach.spoken) = self.load(cx, node),
            None => {}
        }
        match target {
            Some(node) => {
                reach.scheme = None;
                let mut reach = self.at(cx, node, reach);
                if protocol.is_none() && !goes_with(&reach.spoken, reach.scheme) {
                    // The protocol of the scenario is that of another target.
                    (reach.protocol, reach.spoken) = (None, Spoken::Plain);
                }
                check_transport(cx, protocol.unwrap_or(node), reach.scheme, &reach.spoken);
                reach
            }
            None => {
                reach.targets = self.common.targets.clone();
                if let Some(node) = protocol {
                    check_transport(cx, node, reach.scheme, &reach.spoken);
                }
                reach
            }
        }
    }

    /// Adds the targets of a node; addresses without a scheme take that of the protocol.
    fn at(&mut self, cx: &mut Context<'_>, node: &Node, reach: Reach) -> Reach {
        let before = std::mem::replace(&mut cx.spoken, reach.spoken.clone());
        let targets = read_targets(cx, node);
        cx.spoken = before;
        let first = self.targets.len();
        let scheme = targets.first().map(|target| target.scheme);
        self.targets.extend(targets);
        let numbers = first..self.targets.len();
        if self.targets.len() > usize::from(u16::MAX) {
            let message = "more than 65,535 addresses".to_string();
            let error = cx.error("too-many", message, node.place).label("too many");
            cx.note(error.help("one address of a load balancer stands for many"));
            return reach;
        }
        Reach { targets: numbers.map(|number| number as u16).collect(), scheme, ..reach }
    }

    fn load(&mut self, cx: &mut Context<'_>, node: &Node) -> (Option<u16>, Spoken) {
        let file = match &node.kind {
            Kind::Scalar { text, .. } => Some(text.clone()),
            _ => None,
        };
        if let Some(known) = file.as_ref().and_then(|file| self.files.get(file)) {
            return known.clone();
        }
        let loaded = match load_protocol(cx, node) {
            Some(protocol) => {
                self.protocols.push(protocol.clone());
                (Some((self.protocols.len() - 1) as u16), Spoken::Declared(protocol))
            }
            None => (None, Spoken::Unknown),
        };
        if let Some(file) = file {
            self.files.insert(file, loaded.clone());
        }
        loaded
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

/// Whether the protocol can be spoken there: with or without TLS it is the same.
fn goes_with(spoken: &Spoken, scheme: Option<Scheme>) -> bool {
    let (Spoken::Declared(protocol), Some(scheme)) = (spoken, scheme) else { return true };
    let bare = |scheme| match scheme {
        Scheme::Tls => Scheme::Tcp,
        Scheme::Wss => Scheme::Ws,
        Scheme::Https => Scheme::Http,
        other => other,
    };
    bare(scheme_of(protocol.declaration().transport)) == bare(scheme)
}

fn check_transport(cx: &mut Context<'_>, node: &Node, scheme: Option<Scheme>, spoken: &Spoken) {
    if goes_with(spoken, scheme) {
        return;
    }
    let (Spoken::Declared(protocol), Some(scheme)) = (spoken, scheme) else { return };
    let transport = scheme_of(protocol.declaration().transport).word();
    let message =
        format!("the protocol goes over `{transport}`, the target is `{}`", scheme.word());
    let error = cx.error("scheme-mismatch", message, node.place).label("they do not go together");
    let help = match scheme {
        Scheme::Http | Scheme::Https => format!("write the target as `{transport}://…`"),
        other => format!(
            "write the target as `{transport}://…`, or `transport: {}` in the protocol",
            other.word()
        ),
    };
    cx.note(error.help(help));
}
