//! Who a machine is to the bus: where it dials, whom it trusts, and what it shows of itself. All
//! of it is in memory; where it lies on a disk is the business of [`crate::keys`].

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ClientConfig, RootCertStore};
use throng_base::Said;

/// What a machine has to join with.
#[derive(Clone, PartialEq, Eq)]
pub struct Identity {
    /// One word of a name of the bus: what this machine is called there.
    pub name: String,
    pub address: SocketAddr,
    /// None on a bus that speaks plainly, which only one on the loopback may.
    pub tls: Option<Certificates>,
    /// The seed of the key by which the bus knows it; none where it knows nobody.
    pub seed: Option<String>,
}

/// Certificates and a key, as DER.
#[derive(Clone, PartialEq, Eq)]
pub struct Certificates {
    /// Who has signed the certificate of the bus.
    pub authority: Vec<u8>,
    pub own: Vec<u8>,
    /// The key of the machine's own certificate, as PKCS #8.
    pub key: Vec<u8>,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Never the keys.
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

    /// What a TLS client that trusts nobody else makes of them.
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
