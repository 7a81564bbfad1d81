//! Why the response to an upgrade request is refused.

use std::fmt;

/// How much of a server's text an error shows.
const SHOWN_BYTES_MAX: usize = 40;

/// Why the response to an upgrade request is refused. The server is at fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpgradeError {
    Status(u16),
    UpgradeMissing,
    UpgradeOther(Box<str>),
    ConnectionMissing,
    AcceptMissing,
    AcceptWrong,
    ProtocolNotOffered(Box<str>),
    ProtocolTwice,
    ExtensionNotOffered(Box<str>),
    ExtensionSyntax(Box<str>),
    DeflateTwice,
    DeflateKeepsContext,
    DeflateParameterUnknown(Box<str>),
    /// A parameter, and the section of RFC 7692 that defines it.
    DeflateParameterTwice(Box<str>, &'static str),
    /// A parameter with an invalid value, and the section that defines it.
    DeflateParameter(Box<str>, &'static str),
}

impl fmt::Display for UpgradeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UpgradeError::Status(status) => {
                write!(f, "the upgrade got status {status} instead of 101")
            }
            UpgradeError::UpgradeMissing => f.write_str("the response has no `Upgrade` header"),
            UpgradeError::UpgradeOther(text) => {
                write!(f, "the server upgraded to `{text}`, not to `websocket`")
            }
            UpgradeError::ConnectionMissing => {
                f.write_str("the response has no `Connection: Upgrade`")
            }
            UpgradeError::AcceptMissing => {
                f.write_str("the response has no `Sec-WebSocket-Accept` header")
            }
            UpgradeError::AcceptWrong => {
                f.write_str("`Sec-WebSocket-Accept` does not match the key that was sent")
            }
            UpgradeError::ProtocolNotOffered(text) => {
                write!(f, "the server chose the sub-protocol `{text}`, which was not offered")
            }
            UpgradeError::ProtocolTwice => {
                f.write_str("the response has more than one `Sec-WebSocket-Protocol` header")
            }
            UpgradeError::ExtensionNotOffered(text) => {
                write!(f, "the server chose the extension `{text}`, which was not offered")
            }
            UpgradeError::ExtensionSyntax(text) => {
                write!(f, "`Sec-WebSocket-Extensions` is not valid: `{text}`")
            }
            UpgradeError::DeflateTwice => {
                f.write_str("the server chose `permessage-deflate` more than once")
            }
            UpgradeError::DeflateKeepsContext => f.write_str(
                "the server ignored `server_no_context_takeover` of the offer (RFC 7692, 7.1.1.1)",
            ),
            UpgradeError::DeflateParameterUnknown(text) => {
                write!(f, "`{text}` is not a parameter of `permessage-deflate` (RFC 7692, 7)")
            }
            UpgradeError::DeflateParameterTwice(text, section) => {
                write!(f, "the server sent `{text}` twice (RFC 7692, {section})")
            }
            UpgradeError::DeflateParameter(text, section) => {
                write!(f, "the server's `{text}` is not valid (RFC 7692, {section})")
            }
        }
    }
}

impl std::error::Error for UpgradeError {}

/// The start of a text from the server, safe to print.
pub(super) fn shown(bytes: &[u8]) -> Box<str> {
    let mut text = String::new();
    for byte in bytes {
        if text.len() >= SHOWN_BYTES_MAX {
            text.push('…');
            break;
        }
        match byte {
            b' '..=b'~' => text.push(char::from(*byte)),
            _ => text.extend(byte.escape_ascii().map(char::from)),
        }
    }
    text.into()
}
