//! The identity of a machine on the bus: where it connects, which authority it trusts, and its
//! credentials. Everything is in memory; [`crate::keys`] stores it on disk.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ClientConfig, RootCertStore};
use throng_base::Said;

/// The credentials for joining.
#[derive(Clone, PartialEq, Eq)]
pub struct Identity {
    /// The machine's name on the bus, a single word.
    pub name: String,
    pub address: SocketAddr,
    /// None for a bus without TLS, which is allowed only on loopback.
    pub tls: Option<Certificates>,
    /// The seed of the key that identifies it to the bus; None without authentication.
    pub seed: Option<String>,
}

/// Certificates and a key, as DER.
#[derive(Clone, PartialEq, Eq)]
pub struct Certificates {
    /// The issuer of the certificate of the bus.
    pub authority: Vec<u8>,
    pub own: Vec<u8>,
    /// The key of the machine's own certificate, as PKCS #8.
    pub key: Vec<u8>,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Keys are never shown.
        write!(f, "{} at {}", self.name, self.address)
    }
}

impl Certificates {
    /// From texts in PEM.
    pub fn from_pem(authority: &str, own: &str, key: &str) -> Result<Certificates, Said> {
        let certificate = |text: &str| {
            let read = CertificateDer::from_pem_slice(text.as_bytes());
            read.map(|read| read.to_vec()).map_err(|error| unreadable(&error))
        };
        let key = PrivatePkcs8KeyDer::from_pem_slice(key.as_bytes());
        let key = key.map_err(|error| unreadable(&error))?.secret_pkcs8_der().to_vec();
        Ok(Certificates { authority: certificate(authority)?, own: certificate(own)?, key })
    }

    /// The configuration of a TLS client that trusts only this authority.
    pub(crate) fn client(&self) -> Result<ClientConfig, Said> {
        let mut roots = RootCertStore::empty();
        roots.add(self.authority.clone().into()).map_err(|error| unreadable(&error))?;
        let key = PrivateKeyDer::Pkcs8(self.key.clone().into());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map(|builder| builder.with_root_certificates(roots))
            .and_then(|builder| builder.with_client_auth_cert(vec![self.own.clone().into()], key))
            .map_err(|error| unreadable(&error))
    }
}

fn unreadable(error: &dyn fmt::Display) -> Said {
    let error = Said::of_others(error.to_string());
    say!("a certificate or key for the bus cannot be used: {error}")
}
