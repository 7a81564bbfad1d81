//! The proxy's certificate authority: created once, in a folder of the user, and trusted only by
//! clients that the user configures. It signs a certificate for each recorded host.

use std::collections::HashMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    CertificateParams, DnType, ExtendedKeyUsagePurpose, Issuer, KeyUsagePurpose,
    PublicKeyData as _, SanType,
};
use ring::digest::{SHA256, digest};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use throng_base::Said;
use throng_base::clock::wall_now;
use throng_base::private::{make_folder, pem, read, write};
use throng_certificates::{Key, authority, dated, not_made};

const DAY: Duration = Duration::from_secs(24 * 3600);
const OWN_TIME: Duration = Duration::from_secs(10 * 365 * 24 * 3600);
/// Apple's clients refuse more than 825 days. A recording takes hours.
const HOST_TIME: Duration = Duration::from_secs(30 * 24 * 3600);
/// Maximum number of hosts whose certificates are cached.
const HOSTS_MAX: usize = 10_000;

/// See the module's description.
pub struct Authority {
    certificate: CertificateDer<'static>,
    file: PathBuf,
    key: Key,
    /// One key for all hosts, new for each recording.
    host_key: Key,
    hosts: Mutex<HashMap<String, Arc<ServerConfig>>>,
    is_new: bool,
}

impl Authority {
    /// Opens the authority in a folder, or creates it.
    ///
    /// # Errors The files cannot be read or written, or do not match.
    pub fn open(folder: &Path) -> Result<Authority, Said> {
        let (file, key_file) = (folder.join("ca.pem"), folder.join("ca.key"));
        let is_new = !file.exists() || !key_file.exists();
        let (certificate, key) = match is_new {
            true => create(folder, &file, &key_file)?,
            false => {
                let certificate = CertificateDer::from_pem_slice(read(&file)?.as_bytes());
                let der = PrivatePkcs8KeyDer::from_pem_slice(read(&key_file)?.as_bytes());
                let key = der.ok().and_then(|der| Key::from_pkcs8(der.secret_pkcs8_der()).ok());
                match (certificate, key) {
                    (Ok(certificate), Some(key)) if is_of(&certificate, &key) => (certificate, key),
                    _ => return Err(say!("the files in `{}` are damaged", folder.display())),
                }
            }
        };
        let host_key = Key::generate()?;
        Ok(Authority { certificate, file, key, host_key, hosts: Mutex::default(), is_new })
    }

    /// The certificate that clients have to trust, as PEM.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The same as PEM text.
    pub(crate) fn pem(&self) -> String {
        pem("CERTIFICATE", &self.certificate)
    }

    /// The hash of its public key, with which Chromium can be started to trust it once.
    pub fn key_hash(&self) -> String {
        STANDARD.encode(digest(&SHA256, &self.key.subject_public_key_info()))
    }

    /// It was just created, so no client trusts it yet.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// The TLS configuration for acting as a host.
    pub(crate) fn host(&self, host: &str) -> Result<Arc<ServerConfig>, Said> {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = hosts.get(host) {
            return Ok(Arc::clone(known));
        }
        let certificate = self.certificate_of(host)?;
        let key = PrivatePkcs8KeyDer::from(self.host_key.pkcs8().to_vec());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|builder| {
                let chain = vec![certificate, self.certificate.clone()];
                builder.with_no_client_auth().with_single_cert(chain, PrivateKeyDer::Pkcs8(key))
            });
        let mut config = config.map_err(|error| not_made(&error))?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let config = Arc::new(config);
        if hosts.len() >= HOSTS_MAX {
            hosts.clear();
        }
        hosts.insert(host.to_string(), Arc::clone(&config));
        Ok(config)
    }

    fn certificate_of(&self, host: &str) -> Result<CertificateDer<'static>, Said> {
        let (from, until) = validity(HOST_TIME);
        let mut wanted = dated(from, until)?;
        wanted.subject_alt_names = vec![match host.parse::<IpAddr>() {
            Ok(address) => SanType::IpAddress(address),
            Err(_) => {
                SanType::DnsName(host.try_into().map_err(|error: rcgen::Error| not_made(&error))?)
            }
        }];
        // A common name has at most 64 characters (RFC 5280, appendix A.1).
        let name: String = host.chars().take(64).collect();
        wanted.distinguished_name.push(DnType::CommonName, name);
        wanted.use_authority_key_identifier_extension = true;
        wanted.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        wanted.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let authority = params(&self.key)?;
        let issuer = Issuer::from_params(&authority, &self.key);
        let made = wanted.signed_by(&self.host_key, &issuer).map_err(|error| not_made(&error))?;
        Ok(made.der().clone())
    }
}

fn create(
    folder: &Path,
    file: &Path,
    key_file: &Path,
) -> Result<(CertificateDer<'static>, Key), Said> {
    make_folder(folder)?;
    let key = Key::generate()?;
    let made = params(&key)?.self_signed(&key).map_err(|error| not_made(&error))?;
    write(key_file, &pem("PRIVATE KEY", key.pkcs8()))?;
    write(file, &pem("CERTIFICATE", made.der()))?;
    Ok((made.der().clone(), key))
}

/// Parameters of the authority itself. Its name contains a part of its key, so that a browser that
/// trusts several can distinguish them. Its dates do not matter when it signs.
fn params(key: &Key) -> Result<CertificateParams, Said> {
    let id: String = key.der_bytes().iter().skip(1).take(4).map(|b| format!("{b:02x}")).collect();
    authority(key, &format!("throng record {id}"), validity(OWN_TIME))
}

/// The validity period; it starts early because clients' clocks may be slow by a day.
fn validity(time: Duration) -> (Duration, Duration) {
    let now = wall_now();
    (now.saturating_sub(DAY), now + time)
}

fn is_of(certificate: &[u8], key: &Key) -> bool {
    let public = key.der_bytes();
    certificate.windows(public.len()).any(|part| part == public)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use rustls::RootCertStore;
    use rustls::client::WebPkiServerVerifier;
    use rustls::client::danger::ServerCertVerifier as _;
    use rustls::pki_types::{ServerName, UnixTime};

    use super::*;

    #[test]
    fn a_client_that_trusts_it_accepts_its_hosts() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("a/b");
        let authority = Authority::open(&folder).unwrap();
        let again = Authority::open(&folder).unwrap();
        assert!(authority.is_new() && !again.is_new());
        assert_eq!(authority.pem(), again.pem());
        let mut roots = RootCertStore::empty();
        roots.add(authority.certificate.clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
        let verifier = verifier.build().unwrap();
        let long = format!("{}.example", "a".repeat(63));
        for host in ["shop.example", "127.0.0.1", "::1", &long] {
            let certificate = again.certificate_of(host).unwrap();
            let name = ServerName::try_from(host).unwrap();
            let now = UnixTime::since_unix_epoch(wall_now());
            verifier.verify_server_cert(&certificate, &[], &name, &[], now).unwrap();
            again.host(host).unwrap();
        }
    }

    #[test]
    fn its_key_is_private_and_damage_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let open = || Authority::open(folder.path());
        open().unwrap();
        let key = folder.path().join("ca.key");
        let mode = std::fs::metadata(&key).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let other = Key::generate().unwrap();
        write(&key, &pem("PRIVATE KEY", other.pkcs8())).unwrap();
        assert!(open().err().unwrap().english().contains("are damaged"));
        write(&key, "x").unwrap();
        assert!(open().err().unwrap().english().contains("are damaged"));
    }
}
