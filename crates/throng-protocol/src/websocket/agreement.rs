//! Negotiation of permessage-deflate (RFC 7692, 7.1): our offer, and the parameters of the server's
//! response.

use super::refusal::{UpgradeError, shown};

/// The largest window, as the exponent of 2: the maximum of DEFLATE.
pub(super) const WINDOW_BITS_MAX: u8 = 15;

/// The compression offer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeflateOffer {
    #[default]
    Nothing,
    /// As browsers do: the server chooses whether to use context takeover.
    AsBrowsers,
    /// Both ends compress each message separately, so a connection keeps nothing between messages.
    NoContextTakeover,
}

impl DeflateOffer {
    /// The value of `Sec-WebSocket-Extensions`.
    pub(super) fn header(self) -> Option<&'static str> {
        match self {
            DeflateOffer::Nothing => None,
            DeflateOffer::AsBrowsers => Some("permessage-deflate; client_max_window_bits"),
            DeflateOffer::NoContextTakeover => Some(
                "permessage-deflate; client_no_context_takeover; server_no_context_takeover; \
                 client_max_window_bits",
            ),
        }
    }
}

/// The compression of messages on a connection. Ours never refer to earlier ones, which no server
/// has to accept (RFC 7692, 7.1.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deflate {
    /// The window of our messages, as the exponent of 2.
    pub own_window_bits: u8,
    /// The window in which messages of the peer may refer to its earlier ones, as the exponent of
    /// 2; `None` if each is compressed separately.
    pub peer_takeover_bits: Option<u8>,
}

impl Deflate {
    /// The peer's freedom if it answers a browser's offer without parameters.
    pub const CONTEXT_TAKEOVER: Deflate =
        Deflate { own_window_bits: WINDOW_BITS_MAX, peer_takeover_bits: Some(WINDOW_BITS_MAX) };

    /// How many bytes of earlier messages the peer may refer to.
    pub(super) fn history_bytes(self) -> usize {
        self.peer_takeover_bits.map_or(0, |bits| 1 << bits)
    }
}

/// The parameters of a response. Each may occur once.
#[derive(Default)]
pub(super) struct Parameters {
    server_no_context_takeover: bool,
    client_no_context_takeover: bool,
    server_max_window_bits: Option<u8>,
    client_max_window_bits: Option<u8>,
}

impl Parameters {
    pub(super) fn take(&mut self, name: &[u8], value: Option<&[u8]>) -> Result<(), UpgradeError> {
        let (section, is_valid, is_repeated) = match name {
            b"server_no_context_takeover" => {
                let was = std::mem::replace(&mut self.server_no_context_takeover, true);
                ("7.1.1.1", value.is_none(), was)
            }
            b"client_no_context_takeover" => {
                let was = std::mem::replace(&mut self.client_no_context_takeover, true);
                ("7.1.1.2", value.is_none(), was)
            }
            b"server_max_window_bits" => {
                let bits = value.and_then(window_bits);
                let was = std::mem::replace(&mut self.server_max_window_bits, bits);
                ("7.1.2.1", bits.is_some(), was.is_some())
            }
            b"client_max_window_bits" => {
                let bits = value.and_then(window_bits);
                let was = std::mem::replace(&mut self.client_max_window_bits, bits);
                ("7.1.2.2", bits.is_some(), was.is_some())
            }
            _ => return Err(UpgradeError::DeflateParameterUnknown(shown(name))),
        };
        if is_repeated {
            return Err(UpgradeError::DeflateParameterTwice(shown(name), section));
        }
        if !is_valid {
            let text = match value {
                Some(value) => shown(&[name, b"=", value].concat()),
                None => shown(name),
            };
            return Err(UpgradeError::DeflateParameter(text, section));
        }
        Ok(())
    }

    /// The result of the negotiation.
    pub(super) fn agreed(&self, offer: DeflateOffer) -> Result<Deflate, UpgradeError> {
        let keeps_context = !self.server_no_context_takeover;
        if keeps_context && offer == DeflateOffer::NoContextTakeover {
            return Err(UpgradeError::DeflateKeepsContext);
        }
        let server_bits = self.server_max_window_bits.unwrap_or(WINDOW_BITS_MAX);
        Ok(Deflate {
            own_window_bits: self.client_max_window_bits.unwrap_or(WINDOW_BITS_MAX),
            peer_takeover_bits: keeps_context.then_some(server_bits),
        })
    }
}

/// From 8 to 15, without leading zeros.
fn window_bits(value: &[u8]) -> Option<u8> {
    match value {
        [digit @ (b'8' | b'9')] => Some(digit - b'0'),
        [b'1', digit @ b'0'..=b'5'] => Some(10 + digit - b'0'),
        _ => None,
    }
}
