//! The TLS configuration of a run: whom to trust, who we are, whether sessions are resumed.

use std::path::Path;
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use throng_program::Tls;

/// The configuration, or in words why there is none.
pub(crate) fn config(options: &Tls) -> Result<ClientConfig, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let builder = match options.verify {
        true => builder.with_root_certificates(roots(options)?),
        false => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(TrustAnybody { provider })),
    };
    let mut config = match &options.identity {
        None => builder.with_no_client_auth(),
        Some((chain, key)) => builder
            .with_client_auth_cert(certificates(chain)?, private_key(key)?)
            .map_err(|error| format!("the client certificate does not fit: {error}"))?,
    };
    config.resumption = match options.resumption {
        true => Resumption::default(),
        false => Resumption::disabled(),
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

fn roots(options: &Tls) -> Result<RootCertStore, String> {
    let mut store = RootCertStore::empty();
    let found = match &options.ca {
        Some(path) => certificates(path)?,
        None => rustls_native_certs::load_native_certs().certs,
    };
    // Some systems carry roots that are not valid any more; the others are enough.
    let (trusted, _) = store.add_parsable_certificates(found);
    match (trusted, &options.ca) {
        (0, Some(path)) => Err(format!("{} has no certificate to trust", path.display())),
        (0, None) => Err("this system has no trusted root certificates; install the package \
                          ca-certificates, or name a file with `ca`"
            .into()),
        _ => Ok(store),
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let unreadable = |error| format!("cannot read certificates from {}: {error}", path.display());
    let found = CertificateDer::pem_file_iter(path).map_err(unreadable)?;
    let found: Result<Vec<_>, _> = found.collect();
    let found = found.map_err(unreadable)?;
    match found.is_empty() {
        true => Err(format!("{} has no certificate (PEM)", path.display())),
        false => Ok(found),
    }
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, String> {
    PrivateKeyDer::from_pem_file(path)
        .map_err(|error| format!("cannot read the private key from {}: {error}", path.display()))
}

/// Accepts any certificate, but still holds the server to its signature.
#[derive(Debug)]
struct TrustAnybody {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for TrustAnybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
