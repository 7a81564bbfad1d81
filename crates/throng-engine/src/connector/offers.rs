//! What both ends of TLS offer, where they agree on nothing.

use rustls::{AlertDescription as Alert, Error, PeerIncompatible as Peer};
use throng_base::Said;

/// In words, if that is why a handshake failed. `heard` is what the target said first, `protocols`
/// what was offered by ALPN (RFC 7301).
pub(super) fn disagreement(error: &Error, heard: &[u8], protocols: &[Vec<u8>]) -> Option<Said> {
    match error {
        Error::AlertReceived(Alert::NoApplicationProtocol) | Error::NoApplicationProtocol => {
            let offered = protocols.iter().map(|one| String::from_utf8_lossy(one));
            let offered = offered.collect::<Vec<_>>().join(", ");
            Some(say!(
                "throng offers {offered} (ALPN), but the target supports none of them; set \
                 `http_version`"
            ))
        }
        Error::AlertReceived(Alert::ProtocolVersion)
        | Error::PeerIncompatible(
            Peer::ServerDoesNotSupportTls12Or13 | Peer::ServerTlsVersionIsDisabledByOurConfig,
        ) => Some(match chosen(heard) {
            Some(version) => say!("throng offers TLS 1.2 and 1.3, but the target chose {version}"),
            None => say!("throng offers TLS 1.2 and 1.3, but the target supports neither"),
        }),
        // Behind a ServerHello it is something else that the target misses: a certificate of ours.
        Error::AlertReceived(Alert::HandshakeFailure | Alert::InsufficientSecurity)
            if heard.first() == Some(&ALERT) =>
        {
            Some(say!(
                "throng offers TLS 1.2 and 1.3 with AES-GCM and ChaCha20, but the target \
                 supports none of these"
            ))
        }
        _ => None,
    }
}

/// The kind of a TLS record (RFC 8446, 5.1).
const ALERT: u8 = 21;

/// The version of a ServerHello (RFC 5246, 7.4.1.3), behind the head of its record and its own.
fn chosen(heard: &[u8]) -> Option<&'static str> {
    match heard {
        [22, _, _, _, _, 2, _, _, _, 3, minor, ..] => match minor {
            0 => Some("SSL 3.0"),
            1 => Some("TLS 1.0"),
            2 => Some("TLS 1.1"),
            _ => None,
        },
        _ => None,
    }
}
