//! Explains TLS handshakes that fail because client and server have no version, cipher suite or
//! protocol in common.

use rustls::{AlertDescription as Alert, Error, PeerIncompatible as Peer};
use throng_base::Said;

/// The explanation, if this is why a handshake failed. `heard` are the first bytes from the target,
/// `protocols` the offered ALPN protocols (RFC 7301).
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
        // After a ServerHello, the target is missing something else: a client certificate.
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

/// The type of a TLS record (RFC 8446, 5.1).
const ALERT: u8 = 21;

/// The version of a ServerHello (RFC 5246, 7.4.1.3), after the record header and its own header.
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
