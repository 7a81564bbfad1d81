//! The fleet's own certificate authority: it signs the certificates of the bus and of all who
//! come to it, and nobody else trusts it.

use std::net::IpAddr;
use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType, date_time_ymd,
};
use throng_base::Said;

/// Clocks of machines may be behind by so much.
const BEHIND: Duration = Duration::from_secs(3600);
const NAME: &str = "throng fleet";

/// A certificate and its key, as DER.
pub(super) struct Signed {
    pub(super) certificate: Vec<u8>,
    pub(super) key: Vec<u8>,
}

pub(super) struct Authority {
    pub(super) certificate: Vec<u8>,
    key: KeyPair,
}

/// Whom a certificate is for.
#[derive(Clone, Copy)]
pub(super) enum Holder<'a> {
    Server(&'a [IpAddr]),
    Machine(&'a str),
}

impl Authority {
    pub(super) fn new(now: Duration, until: Duration) -> Result<Authority, Said> {
        let key = KeyPair::generate().map_err(|error| not_made(&error))?;
        let made = params(now, until).self_signed(&key).map_err(|error| not_made(&error))?;
        Ok(Authority { certificate: made.der().to_vec(), key })
    }

    pub(super) fn from_der(certificate: Vec<u8>, key: &[u8]) -> Result<Authority, Said> {
        let key = KeyPair::try_from(key).map_err(|error| not_made(&error))?;
        Ok(Authority { certificate, key })
    }

    pub(super) fn key(&self) -> Vec<u8> {
        self.key.serialize_der()
    }

    pub(super) fn sign(
        &self,
        holder: Holder<'_>,
        now: Duration,
        until: Duration,
    ) -> Result<Signed, Said> {
        let key = KeyPair::generate().map_err(|error| not_made(&error))?;
        let mut wanted = dated(now, until);
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
        let authority = params(now, until);
        let issuer = Issuer::from_params(&authority, &self.key);
        let made = wanted.signed_by(&key, &issuer).map_err(|error| not_made(&error))?;
        Ok(Signed { certificate: made.der().to_vec(), key: key.serialize_der() })
    }
}

/// Of the authority itself. Whom it is called decides; its dates do not matter when it signs.
fn params(now: Duration, until: Duration) -> CertificateParams {
    let mut params = dated(now, until);
    params.distinguished_name.push(DnType::CommonName, NAME);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

fn dated(now: Duration, until: Duration) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.not_before = date_time_ymd(1970, 1, 1) + now.saturating_sub(BEHIND);
    params.not_after = date_time_ymd(1970, 1, 1) + until;
    params
}

fn not_made(error: &rcgen::Error) -> Said {
    let error = Said::of_others(error.to_string());
    say!("cannot create a certificate: {error}")
}
