//! The fleet's own certificate authority: it signs the certificates of the bus and of all its
//! clients, and only they trust it.

use std::net::IpAddr;
use std::time::Duration;

use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, Issuer, KeyUsagePurpose, SanType};
use throng_base::Said;
use throng_certificates::{Key, authority, dated, not_made};

/// Tolerance for slow clocks.
const BEHIND: Duration = Duration::from_secs(3600);
const NAME: &str = "throng fleet";

/// A certificate and its key, as DER.
pub(super) struct Signed {
    pub(super) certificate: Vec<u8>,
    pub(super) key: Vec<u8>,
}

pub(super) struct Authority {
    pub(super) certificate: Vec<u8>,
    key: Key,
}

/// The owner of a certificate.
#[derive(Clone, Copy)]
pub(super) enum Holder<'a> {
    Server(&'a [IpAddr]),
    Machine(&'a str),
}

impl Authority {
    pub(super) fn new(now: Duration, until: Duration) -> Result<Authority, Said> {
        let key = Key::generate()?;
        let made = params(&key, now, until)?.self_signed(&key).map_err(|error| not_made(&error))?;
        Ok(Authority { certificate: made.der().to_vec(), key })
    }

    pub(super) fn from_der(certificate: Vec<u8>, key: &[u8]) -> Result<Authority, Said> {
        Ok(Authority { certificate, key: Key::from_pkcs8(key)? })
    }

    pub(super) fn key(&self) -> Vec<u8> {
        self.key.pkcs8().to_vec()
    }

    pub(super) fn sign(
        &self,
        holder: Holder<'_>,
        now: Duration,
        until: Duration,
    ) -> Result<Signed, Said> {
        let key = Key::generate()?;
        let mut wanted = dated(now.saturating_sub(BEHIND), until)?;
        wanted.use_authority_key_identifier_extension = true;
        let (name, usage) = match holder {
            Holder::Server(addresses) => {
                wanted.subject_alt_names =
                    addresses.iter().copied().map(SanType::IpAddress).collect();
                ("bus", ExtendedKeyUsagePurpose::ServerAuth)
            }
            Holder::Machine(name) => (name, ExtendedKeyUsagePurpose::ClientAuth),
        };
        wanted.distinguished_name.push(DnType::CommonName, name);
        wanted.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        wanted.extended_key_usages = vec![usage];
        let authority = params(&self.key, now, until)?;
        let issuer = Issuer::from_params(&authority, &self.key);
        let made = wanted.signed_by(&key, &issuer).map_err(|error| not_made(&error))?;
        Ok(Signed { certificate: made.der().to_vec(), key: key.pkcs8().to_vec() })
    }
}

/// Parameters of the authority itself. Only its name matters for signing, not its dates.
fn params(key: &Key, now: Duration, until: Duration) -> Result<CertificateParams, Said> {
    authority(key, NAME, (now.saturating_sub(BEHIND), until))
}
