//! Why a connection fails: connects without the client, and reports only what is certain. A bus
//! that is unreachable or silent may come back; one with a wrong certificate will not.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{AlertDescription as Alert, CertificateError as Bad, Error};
use throng_base::Said;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::identity::Identity;

const STEP_TIME: Duration = Duration::from_secs(5);

/// Why it can never succeed; None if it may.
pub(super) async fn probe(identity: &Identity) -> Option<Said> {
    let config = match identity.tls.as_ref()?.client() {
        Ok(config) => config,
        Err(said) => return Some(said),
    };
    let name = ServerName::IpAddress(identity.address.ip().into());
    let stream = timeout(STEP_TIME, TcpStream::connect(identity.address)).await.ok()?.ok()?;
    let connector = TlsConnector::from(Arc::new(config));
    let mut stream = match timeout(STEP_TIME, connector.connect(name, stream)).await.ok()? {
        Ok(stream) => stream,
        Err(error) => return judge(&error, identity),
    };
    // The reaction of the bus to our certificate arrives with its first bytes.
    let mut first = [0];
    match timeout(STEP_TIME, stream.read(&mut first)).await.ok()? {
        Ok(_) => None,
        Err(error) => judge(&error, identity),
    }
}

fn judge(error: &io::Error, identity: &Identity) -> Option<Said> {
    let address = identity.address;
    let error = error.get_ref()?.downcast_ref::<Error>()?;
    Some(match error {
        Error::InvalidCertificate(Bad::UnknownIssuer | Bad::BadSignature) => {
            say!("the server at {address} did not present a certificate of this fleet")
        }
        Error::InvalidCertificate(Bad::Expired | Bad::ExpiredContext { .. }) => {
            say!(
                "the certificate of the bus at {address} has expired, or the clock of this \
                 machine is wrong"
            )
        }
        Error::InvalidCertificate(Bad::NotValidYet | Bad::NotValidYetContext { .. }) => {
            say!(
                "the certificate of the bus at {address} is not valid yet, or the clock of this \
                 machine is wrong"
            )
        }
        Error::InvalidCertificate(Bad::NotValidForName | Bad::NotValidForNameContext { .. }) => {
            say!("the certificate of the bus was not issued for the address {address}")
        }
        Error::InvalidCertificate(other) => {
            let other = Said::of_others(other.to_string());
            say!("the certificate of the bus at {address} is not valid: {other}")
        }
        Error::AlertReceived(Alert::CertificateExpired) => expired(identity),
        Error::AlertReceived(Alert::UnknownCA | Alert::BadCertificate) => {
            say!("the bus at {address} does not trust the issuer of this machine's certificate")
        }
        Error::AlertReceived(alert) => {
            let alert = Said::of_others(format!("{alert:?}"));
            say!("the bus at {address} rejects this machine's certificate: {alert}")
        }
        Error::InvalidMessage(_) => {
            say!(
                "the server at {address} does not start its connections with TLS, so it is not a \
                 throng bus"
            )
        }
        _ => return None,
    })
}

fn expired(identity: &Identity) -> Said {
    let name = &identity.name;
    say!("the certificate of `{name}` has expired, or the clock of the bus is wrong")
}
