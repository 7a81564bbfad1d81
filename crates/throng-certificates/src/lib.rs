//! Keys and certificates that throng creates: for fleets, for recordings and for reference targets.
//! `ring` creates keys and signs, `rcgen` encodes certificates. The keys of rcgen are not used,
//! because their feature locks a parser of X.509 with 14 packages that is never compiled.

#![forbid(unsafe_code)]

#[macro_use]
extern crate throng_base;

use std::fmt::{self, Display};
use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, Error, IsCa, KeyIdMethod,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, PublicKeyData, SerialNumber, SignatureAlgorithm,
    SigningKey, date_time_ymd,
};
use ring::digest::{SHA256, digest};
use ring::rand::{SystemRandom, generate};
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _};
use throng_base::Said;

/// The end of a certificate that nobody renews: 1,000 years after the Unix epoch.
const FOREVER: Duration = Duration::from_secs(1_000 * 365 * 24 * 3600);

/// A private key: ECDSA on the curve P-256.
pub struct Key {
    pair: EcdsaKeyPair,
    pkcs8: Vec<u8>,
}

impl Key {
    /// A new key.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn generate() -> Result<Key, Said> {
        let pkcs8 =
            EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &SystemRandom::new());
        Key::from_pkcs8(pkcs8.map_err(|error| not_made(&error))?.as_ref())
    }

    /// A stored key.
    ///
    /// # Errors
    /// The bytes are not such a key.
    pub fn from_pkcs8(pkcs8: &[u8]) -> Result<Key, Said> {
        let random = SystemRandom::new();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, pkcs8, &random);
        Ok(Key { pair: pair.map_err(|error| not_made(&error))?, pkcs8: pkcs8.to_vec() })
    }

    pub fn pkcs8(&self) -> &[u8] {
        &self.pkcs8
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Never the key.
        f.write_str("Key")
    }
}

impl PublicKeyData for Key {
    fn der_bytes(&self) -> &[u8] {
        self.pair.public_key().as_ref()
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        &PKCS_ECDSA_P256_SHA256
    }
}

impl SigningKey for Key {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        let signature = self.pair.sign(&SystemRandom::new(), message);
        signature.map(|it| it.as_ref().to_vec()).map_err(|_| Error::RemoteKeyError)
    }
}

/// A certificate without names that is valid between these times since the Unix epoch. Its serial
/// number is random, as two certificates of one authority must not share one (RFC 5280, 4.1.2.2).
///
/// # Errors
/// The system has no random numbers.
pub fn dated(from: Duration, until: Duration) -> Result<CertificateParams, Said> {
    let mut serial =
        generate::<[u8; 16]>(&SystemRandom::new()).map_err(|error| not_made(&error))?.expose();
    // A serial number is positive, and its encoding does not begin with zeros.
    serial[0] = (serial[0] & 0x7f) | 0x40;
    let mut params = CertificateParams::default();
    params.serial_number = Some(SerialNumber::from_slice(&serial));
    params.distinguished_name = DistinguishedName::new();
    params.not_before = date_time_ymd(1970, 1, 1) + from;
    params.not_after = date_time_ymd(1970, 1, 1) + until;
    Ok(params)
}

/// The certificate of an authority with this key, which signs no other authorities.
///
/// # Errors
/// As [`dated`].
pub fn authority(
    key: &Key,
    name: &str,
    (from, until): (Duration, Duration),
) -> Result<CertificateParams, Said> {
    let mut params = dated(from, until)?;
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let id = digest(&SHA256, &key.subject_public_key_info()).as_ref()[..20].to_vec();
    params.key_identifier_method = KeyIdMethod::PreSpecified(id);
    Ok(params)
}

/// A certificate for these host names and addresses that its own key signs, and this key.
///
/// # Errors
/// As [`dated`], or a name is none of a host.
pub fn self_signed(names: Vec<String>) -> Result<(Vec<u8>, Key), Said> {
    let key = Key::generate()?;
    let mut params = dated(Duration::ZERO, FOREVER)?;
    let named = CertificateParams::new(names).map_err(|error| not_made(&error))?;
    params.subject_alt_names = named.subject_alt_names;
    params.distinguished_name.push(DnType::CommonName, "throng");
    let made = params.self_signed(&key).map_err(|error| not_made(&error))?;
    Ok((made.der().to_vec(), key))
}

/// Why a key or a certificate could not be created or read.
pub fn not_made(error: &dyn Display) -> Said {
    let error = Said::of_others(error.to_string());
    say!("cannot create a certificate: {error}")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rcgen::{Issuer, SanType};
    use rustls::RootCertStore;
    use rustls::client::WebPkiServerVerifier;
    use rustls::client::danger::ServerCertVerifier as _;
    use rustls::pki_types::{ServerName, UnixTime};

    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 3600);

    #[test]
    fn a_certificate_of_an_authority_is_valid_in_its_time() {
        let (key, host_key) = (Key::generate().unwrap(), Key::generate().unwrap());
        let key = Key::from_pkcs8(key.pkcs8()).unwrap();
        let params = authority(&key, "ours", (DAY, 9 * DAY)).unwrap();
        let root = params.self_signed(&key).unwrap();
        let issuer = Issuer::from_params(&params, &key);
        let mut host = dated(2 * DAY, 3 * DAY).unwrap();
        host.subject_alt_names = vec![SanType::DnsName("a.test".try_into().unwrap())];
        host.use_authority_key_identifier_extension = true;
        let made = host.signed_by(&host_key, &issuer).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(root.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
        let verifier = verifier.build().unwrap();
        let name = ServerName::try_from("a.test").unwrap();
        let verify = |at: Duration| {
            let now = UnixTime::since_unix_epoch(at);
            verifier.verify_server_cert(made.der(), &[], &name, &[], now).is_ok()
        };
        assert_eq!([1, 2, 4].map(|day| verify(day * DAY + DAY / 2)), [false, true, false]);
    }

    #[test]
    fn serial_numbers_differ_and_broken_keys_are_refused() {
        let serial = || dated(DAY, DAY).unwrap().serial_number;
        assert_ne!(serial(), serial());
        let said = Key::from_pkcs8(b"x").unwrap_err();
        assert!(said.english().starts_with("cannot create a certificate: "), "{said:?}");
    }
}
