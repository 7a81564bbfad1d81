//! The state of a connection, from the client's events, and which pending operations the bus has
//! refused: it reports refusals separately, and the reply then never arrives.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use async_nats::{Client, ClientError, Event, ServerError};
use throng_base::Said;
use tokio::sync::{oneshot, watch};

use super::probe::probe;
use crate::identity::Identity;
use crate::{Link, Version};

/// The reply of a bus to an unknown key.
const UNKNOWN: &str = "authorization violation";
/// The start of the message about a missing right; the name follows in quotation marks.
const FORBIDDEN: &str = "Permissions Violation for ";

pub(super) struct NatsState {
    pub(super) link: watch::Sender<Link>,
    /// True if the connection is closed permanently, so that its thread ends.
    pub(super) over: watch::Sender<bool>,
    pub(super) client: OnceLock<Client>,
    identity: Identity,
    claims: Mutex<Vec<Claim>>,
    is_probing: AtomicBool,
}

/// A pending operation, with parts of the names for which it needs rights.
struct Claim {
    parts: Arc<[String]>,
    refused: oneshot::Sender<Said>,
}

impl NatsState {
    pub(super) fn new(identity: Identity) -> NatsState {
        NatsState {
            link: watch::Sender::new(Link::Begun),
            over: watch::Sender::new(false),
            client: OnceLock::new(),
            identity,
            claims: Mutex::default(),
            is_probing: AtomicBool::new(false),
        }
    }

    /// Receives the refusal if the bus forbids a name with one of these parts.
    pub(super) fn claim(&self, parts: Arc<[String]>) -> oneshot::Receiver<Said> {
        let (refused, said) = oneshot::channel();
        let mut claims = self.claims();
        claims.retain(|claim| !claim.refused.is_closed());
        claims.push(Claim { parts, refused });
        said
    }

    fn claims(&self) -> MutexGuard<'_, Vec<Claim>> {
        self.claims.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Handles an event of the connection for messages.
    pub(super) fn happened(self: &Arc<Self>, event: &Event) {
        match event {
            Event::Connected => self.connected(),
            Event::Disconnected => self.becomes(Link::Cut),
            Event::ServerError(ServerError::AuthorizationViolation) => self.unknown(),
            Event::ServerError(error) => self.server_says(&error.to_string()),
            Event::ClientError(ClientError::Other(text)) if text.starts_with(UNKNOWN) => {
                self.unknown();
            }
            Event::ClientError(_) => self.look(),
            _ => {}
        }
    }

    /// Handles a message from the server on any of the connections.
    pub(super) fn server_says(&self, text: &str) {
        if text.to_lowercase().contains("authentication revoked") {
            return self.unknown();
        }
        let Some(at) = text.find(FORBIDDEN) else { return };
        let what = &text[at + FORBIDDEN.len()..];
        let name = what.split('"').nth(1).unwrap_or(what);
        let said = say!("the bus does not allow this machine to use `{name}`");
        let mut claims = self.claims();
        let mut is_claimed = false;
        let (own, others) = std::mem::take(&mut *claims)
            .into_iter()
            .partition(|claim| claim.parts.iter().any(|part| name.contains(part.as_str())));
        *claims = others;
        let own: Vec<Claim> = own;
        for claim in own {
            is_claimed |= claim.refused.send(said.clone()).is_ok();
        }
        drop(claims);
        // No operation waits for a published message, so its refusal is reported this way.
        if !is_claimed {
            self.becomes(Link::Refused(said));
        }
    }

    fn connected(&self) {
        let info = self.client.get().and_then(Client::try_server_info);
        let version = info.as_ref().and_then(|info| Version::parse(&info.version));
        match version {
            Some(version) if version < Version::NEEDED => {
                let needed = Version::NEEDED;
                self.refuse(say!(
                    "the bus runs nats-server {version}, but throng requires {needed} or later"
                ));
            }
            _ => self.becomes(Link::Up),
        }
    }

    fn unknown(&self) {
        self.refuse(say!(
            "the bus rejects the key of `{}`: check that the bus server has reloaded its \
             configuration file since the key was created",
            self.identity.name
        ));
    }

    /// The client reports that connecting failed, but not why: probes the bus.
    fn look(self: &Arc<Self>) {
        if self.is_probing.swap(true, Ordering::Relaxed) {
            return;
        }
        let state = Arc::clone(self);
        tokio::spawn(async move {
            if let Some(said) = probe(&state.identity).await {
                state.refuse(said);
            }
            state.is_probing.store(false, Ordering::Relaxed);
        });
    }

    /// It can never succeed, and is not retried.
    fn refuse(&self, said: Said) {
        self.becomes(Link::Refused(said));
        self.over.send_replace(true);
    }

    /// A refusal is final.
    fn becomes(&self, next: Link) {
        self.link.send_if_modified(|link| {
            let is_new = !matches!(link, Link::Refused(_)) && *link != next;
            if is_new {
                *link = next;
            }
            is_new
        });
    }
}
