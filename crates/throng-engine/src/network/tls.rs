//! The TLS configuration of a run: trusted authorities, client certificate, session resumption.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, InconsistentKeys, RootCertStore,
    SignatureScheme,
};
use throng_base::Said;
use throng_program::{HttpVersion, Tls};

use crate::network::pem::{certificates, private_key};

/// The configuration, or the reason why there is none.
///
/// # Errors
/// A file cannot be used, or no authority is trusted.
pub fn config(options: &Tls) -> Result<ClientConfig, Said> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| Said::of_others(error.to_string()))?;
    let given = match (options.verify, &options.ca) {
        (true, Some(path)) => certificates(path)?,
        (true, None) => rustls_native_certs::load_native_certs().certs,
        (false, _) => Vec::new(),
    };
    let verifier = Arc::new(Verifier::new(options, given, &provider)?);
    let builder = builder.dangerous().with_custom_certificate_verifier(verifier);
    let mut config = match &options.identity {
        None => builder.with_no_client_auth(),
        Some((chain, key)) => {
            let identity = identity(certificates(chain)?, private_key(key)?, &provider)?;
            builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(identity)))
        }
    };
    config.resumption = match options.resumption {
        true => Resumption::default(),
        false => Resumption::disabled(),
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// Protocols that a client offers by ALPN (RFC 7301; RFC 9113, 3.2).
pub(crate) type Offer = [&'static [u8]];
pub(crate) const HTTP1: &Offer = &[b"http/1.1"];
pub(crate) const HTTP2: &Offer = &[b"h2"];
pub(crate) const ANY_HTTP: &Offer = &[b"h2", b"http/1.1"];

/// What is offered for HTTP of this version.
pub(crate) fn offer_of(version: HttpVersion) -> &'static Offer {
    match version {
        HttpVersion::Http1 => HTTP1,
        HttpVersion::Http2 => HTTP2,
        HttpVersion::Auto => ANY_HTTP,
    }
}

/// The same configuration with this offer.
pub(crate) fn offering(config: &ClientConfig, offer: &Offer) -> ClientConfig {
    let mut config = config.clone();
    config.alpn_protocols = offer.iter().map(|one| one.to_vec()).collect();
    config
}

fn roots(options: &Tls, found: Vec<CertificateDer<'static>>) -> Result<RootCertStore, Said> {
    let mut store = RootCertStore::empty();
    // Some systems contain roots that have expired; the others are enough.
    let (trusted, _) = store.add_parsable_certificates(found);
    match (trusted, &options.ca) {
        (0, Some(path)) => Err(say!("{} does not contain a valid certificate", path.display())),
        (0, None) => Err(say!(
            "this system has no trusted root certificates; install the package \
                          ca-certificates, or name a file with `ca`"
        )),
        _ => Ok(store),
    }
}

/// The client certificate as given: the server decides whether to accept it. Only a key that
/// belongs to another certificate is rejected.
fn identity(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    provider: &CryptoProvider,
) -> Result<CertifiedKey, Said> {
    let unfit = |error| say!("the client certificate cannot be used: {error}");
    let key = provider.key_provider.load_private_key(key).map_err(unfit)?;
    let identity = CertifiedKey::new(chain, key);
    match identity.keys_match() {
        Err(error @ rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch)) => {
            Err(unfit(error))
        }
        _ => Ok(identity),
    }
}

/// What is wrong with a certificate, and the fix if there is one.
pub fn certificate_words(error: &CertificateError) -> Said {
    match error {
        CertificateError::UnknownIssuer => {
            say!(
                "the certificate is not signed by a trusted authority; trust this authority with \
                 --cacert FILE (in a scenario `tls: {{ca: FILE}}`), or skip the check with \
                 --insecure (`tls: {{verify: false}}`)"
            )
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            say!(
                "the certificate has expired; --insecure (in a scenario `tls: {{verify: false}}`) \
                 skips the check"
            )
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            say!("the certificate is not valid yet; check the clock of this machine")
        }
        CertificateError::NotValidForName => {
            say!(
                "the certificate is for a different name; set that name with --server-name NAME \
                 (in a scenario `tls: {{server_name: NAME}}`)"
            )
        }
        CertificateError::NotValidForNameContext { expected, presented } => {
            let names = match presented.is_empty() {
                true => say!("no name (subjectAltName is missing)"),
                false => Said::of_others(
                    presented.iter().map(|name| bare(name)).collect::<Vec<_>>().join(", "),
                ),
            };
            say!(
                "the certificate is valid for {names}, not for {}; set the expected name with \
                 --server-name NAME (in a scenario `tls: {{server_name: NAME}}`)",
                expected.to_str()
            )
        }
        CertificateError::Revoked => say!("the certificate was revoked"),
        CertificateError::BadEncoding => say!("the certificate is damaged"),
        CertificateError::BadSignature => say!("the signature of the certificate is not valid"),
        other if is_authority_alone(other) => {
            say!(
                "the certificate is a self-signed CA certificate; trust it with --cacert FILE \
                 (in a scenario `tls: {{ca: FILE}}`), or skip the check with --insecure \
                 (`tls: {{verify: false}}`)"
            )
        }
        other => {
            let reason = match other {
                CertificateError::Other(reason) => reason.to_string(),
                known => known.to_string(),
            };
            say!(
                "the certificate was rejected: {reason}; --insecure (in a scenario `tls: \
                 {{verify: false}}`) skips the check"
            )
        }
    }
}

/// A name without the wrapper of the library, such as `DnsName("a.test")`.
fn bare(name: &str) -> &str {
    let inner = name.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
    inner.unwrap_or(name).trim_matches('"')
}

/// Whether a server presented the certificate of an authority as its own. The library has no error
/// of its own for that.
fn is_authority_alone(error: &CertificateError) -> bool {
    let CertificateError::Other(other) = error else { return false };
    format!("{other:?}").contains("CaUsedAsEndEntity")
}

/// Verifies servers by trusted authorities, or accepts any certificate. Then the server's signature
/// is checked if its key can be used, which is not possible for certificates of version 1, with
/// unknown critical extensions, or with short keys.
///
/// If the authorities come from a file, a server may present one of these certificates as its own:
/// `openssl req -x509` creates a certificate that is both. Its name and time are still checked.
#[derive(Debug)]
struct Verifier {
    algorithms: WebPkiSupportedAlgorithms,
    /// `None` to accept any certificate.
    authorities: Option<Arc<WebPkiServerVerifier>>,
    /// The certificates of the file.
    given: Vec<CertificateDer<'static>>,
}

/// Whether the library can verify a signature by the key of this certificate.
fn is_usable(certificate: &CertificateDer<'_>) -> bool {
    /// rsaEncryption (RFC 8017, appendix A.1), as encoded in a certificate.
    const RSA: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01";
    /// Encoded length of a key of 2,048 bits, the shortest that is accepted.
    const RSA_BYTES_MIN: usize = 290;
    let Ok(parsed) = ParsedCertificate::try_from(certificate) else { return false };
    let key = parsed.subject_public_key_info();
    let is_rsa = key.windows(RSA.len()).take(16).any(|bytes| bytes == RSA);
    !is_rsa || key.len() >= RSA_BYTES_MIN
}

/// Verifies a signature of one version of TLS.
type Verify = fn(
    &[u8],
    &CertificateDer<'_>,
    &DigitallySignedStruct,
    &WebPkiSupportedAlgorithms,
) -> Result<HandshakeSignatureValid, rustls::Error>;

impl Verifier {
    fn new(
        options: &Tls,
        given: Vec<CertificateDer<'static>>,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Verifier, Said> {
        let algorithms = provider.signature_verification_algorithms;
        if !options.verify {
            return Ok(Verifier { algorithms, authorities: None, given });
        }
        let roots = Arc::new(roots(options, given.clone())?);
        let builder = WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(provider));
        let authorities = builder.build().map_err(|error| Said::of_others(error.to_string()))?;
        let given = if options.ca.is_some() { given } else { Vec::new() };
        Ok(Verifier { algorithms, authorities: Some(authorities), given })
    }

    fn verified(
        &self,
        verify: Verify,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        match self.authorities.is_some() || is_usable(certificate) {
            true => verify(message, certificate, signed, &self.algorithms),
            false => Ok(HandshakeSignatureValid::assertion()),
        }
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(authorities) = &self.authorities else {
            return Ok(ServerCertVerified::assertion());
        };
        match authorities.verify_server_cert(certificate, between, name, ocsp, now) {
            // Reported only after the time was found to be valid.
            Err(rustls::Error::InvalidCertificate(error))
                if is_authority_alone(&error) && self.given.contains(certificate) =>
            {
                verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
                Ok(ServerCertVerified::assertion())
            }
            verdict => verdict,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.verified(rustls::crypto::verify_tls12_signature, message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.verified(rustls::crypto::verify_tls13_signature, message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rustls::pki_types::pem::PemObject as _;

    use super::*;

    /// Two self-signed certificates of an authority for own.test, valid for a hundred years from
    /// 2026-11-21, made with `openssl req -x509`.
    const OWN: &str = "\
-----BEGIN CERTIFICATE-----\n\
MIIBcjCCARegAwIBAgIURqLtd1IoH2DDHoJ8LfgFojpUgKgwCgYIKoZIzj0EAwIw\n\
EzERMA8GA1UEAwwIb3duLnRlc3QwIBcNMjYxMTIxMTMzOTI4WhgPMjEyNjEwMjgx\n\
MzM5MjhaMBMxETAPBgNVBAMMCG93bi50ZXN0MFkwEwYHKoZIzj0CAQYIKoZIzj0D\n\
AQcDQgAE+Pkrw2L9yN3byxvVETGcY01u8Giwu3SsuCHLeClLJ0PIjbhRgwEDmSDD\n\
UeuF8IbA3VD+5U9GIVXtLaDVPhdOP6NHMEUwDwYDVR0TAQH/BAUwAwEB/zATBgNV\n\
HREEDDAKgghvd24udGVzdDAdBgNVHQ4EFgQUwlb92N+rB1h+kmLNjFZtHXKc0KEw\n\
CgYIKoZIzj0EAwIDSQAwRgIhAMBKPz2iCDS7iufPHP3b6Q6QXZSRCvHJdws1HaHz\n\
62pBAiEAiyWvAIzDknQVT36ADdUmQMrdxoijtzzYz+y06ce2wLY=\n\
-----END CERTIFICATE-----\n\
";
    const OTHER: &str = "\
-----BEGIN CERTIFICATE-----\n\
MIIBcTCCARegAwIBAgIUbUOYstxVoZcam2eL+cWYU+biuWAwCgYIKoZIzj0EAwIw\n\
EzERMA8GA1UEAwwIb3duLnRlc3QwIBcNMjYxMTIxMTMzOTI4WhgPMjEyNjEwMjgx\n\
MzM5MjhaMBMxETAPBgNVBAMMCG93bi50ZXN0MFkwEwYHKoZIzj0CAQYIKoZIzj0D\n\
AQcDQgAEgEaF+plqyCyREtvFAab2XEPq7xCGnwFlkLjYd5xp5UkdtO4z8P+0fwRO\n\
YaKtY8OzOPQTA4vxbUSKPmcogmdahqNHMEUwDwYDVR0TAQH/BAUwAwEB/zATBgNV\n\
HREEDDAKgghvd24udGVzdDAdBgNVHQ4EFgQU5PiC2epbam6oYUI8xR2bTtTKW0sw\n\
CgYIKoZIzj0EAwIDSAAwRQIhAJKNHtpDEHZhbslHOtKle1D85bO9Y3C0bWB6pW0w\n\
gN/MAiB4ZqGGMfGSY1e1Uvta848QhTHfwUFEAjHjSxdSFOuN2w==\n\
-----END CERTIFICATE-----\n\
";
    const IN_2030: u64 = 1_900_000_000;
    const IN_2020: u64 = 1_600_000_000;

    fn parsed(pem: &str) -> CertificateDer<'static> {
        CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()
    }

    /// The message when the server presents OWN and `given` is trusted.
    fn check(given: &str, name: &'static str, seconds: u64) -> String {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let given = vec![parsed(given)];
        let options = Tls { ca: Some("ca.pem".into()), ..Tls::default() };
        let verifier = Verifier::new(&options, given, &provider).unwrap();
        let now = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        let name = ServerName::try_from(name).unwrap();
        match verifier.verify_server_cert(&parsed(OWN), &[], &name, &[], now) {
            Ok(_) => "trusted".into(),
            Err(rustls::Error::InvalidCertificate(error)) => certificate_words(&error).english(),
            Err(other) => other.to_string(),
        }
    }

    #[test]
    fn a_given_certificate_is_trusted_as_the_servers_own() {
        assert_eq!(check(OWN, "own.test", IN_2030), "trusted");
        let elsewhere = check(OWN, "else.test", IN_2030);
        assert!(elsewhere.contains("is valid for own.test, not for else.test;"), "{elsewhere}");
        assert!(elsewhere.contains("`tls: {server_name: NAME}`"), "{elsewhere}");
        assert!(check(OWN, "own.test", IN_2020).contains("not valid yet"));
        assert!(check(OTHER, "own.test", IN_2030).contains(
            "the certificate is a self-signed CA certificate; trust it with --cacert FILE (in a \
             scenario `tls: {ca: FILE}`), or skip the check with --insecure"
        ));
    }

    #[test]
    fn certificate_errors_include_a_fix() {
        let words = certificate_words(&CertificateError::UnknownIssuer);
        assert!(words.english().contains("--cacert FILE"), "{words:?}");
        assert!(certificate_words(&CertificateError::Expired).english().contains("expired"));
        let presented = Vec::new();
        let expected = ServerName::try_from("a.test").unwrap();
        let nameless = CertificateError::NotValidForNameContext { expected, presented };
        assert!(certificate_words(&nameless).english().contains("subjectAltName is missing"));
        let library = std::io::Error::other("UnsupportedCertVersion");
        let old = CertificateError::Other(rustls::OtherError(Arc::new(library)));
        let told = certificate_words(&old).english();
        assert!(told.contains("rejected: UnsupportedCertVersion; --insecure"), "{told}");
    }
}
