//! Certificates and keys in PEM (RFC 7468), in one file or two, in any order.

use std::io;
use std::path::Path;

use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use throng_base::clean::bytes_without_mark;
use throng_base::{Said, plain};

/// Files with certificates or keys may not be larger.
const PEM_BYTES_MAX: usize = 16 << 20;

/// All certificates of a file, in order.
pub fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Said> {
    let unreadable =
        |error: Said| say!("cannot read certificates from {}: {error}", path.display());
    let text = read(path).map_err(unreadable)?;
    let found = CertificateDer::pem_slice_iter(bytes_without_mark(&text));
    let found: Result<Vec<_>, _> = found.collect();
    let found = found.map_err(|error| unreadable(Said::of_others(error.to_string())))?;
    match found.is_empty() {
        true => Err(say!("{} does not contain a PEM certificate", path.display())),
        false => Ok(found),
    }
}

/// The key of a file, which may contain certificates, too.
pub fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, Said> {
    let unreadable =
        |error: Said| say!("cannot read the private key from {}: {error}", path.display());
    let text = read(path).map_err(unreadable)?;
    let text = bytes_without_mark(&text);
    if is_encrypted(text) {
        let name = path.display();
        return Err(say!(
            "the private key in {name} is encrypted: decrypt it, for example with `openssl pkey \
             -in {name} -out key.pem`"
        ));
    }
    PrivateKeyDer::from_pem_slice(text).map_err(|error| match error {
        pem::Error::NoItemsFound => say!("{} does not contain a PEM private key", path.display()),
        error => unreadable(Said::of_others(error.to_string())),
    })
}

fn read(path: &Path) -> Result<Vec<u8>, Said> {
    plain::read(path, PEM_BYTES_MAX).map_err(|error: io::Error| Said::of_error(&error))
}

/// In PKCS #8 (RFC 5958) and in OpenSSL's older format (RFC 1421).
fn is_encrypted(text: &[u8]) -> bool {
    let has = |words: &[u8]| text.windows(words.len()).any(|bytes| bytes == words);
    has(b"-----BEGIN ENCRYPTED PRIVATE KEY-----") || has(b"Proc-Type: 4,ENCRYPTED")
}

#[cfg(test)]
mod tests {
    use super::*;

    const CERTIFICATE: &str = "\
-----BEGIN CERTIFICATE-----\n\
MIIBcjCCARegAwIBAgIURqLtd1IoH2DDHoJ8LfgFojpUgKgwCgYIKoZIzj0EAwIw\n\
EzERMA8GA1UEAwwIb3duLnRlc3QwIBcNMjYxMTIxMTMzOTI4WhgPMjEyNjEwMjgx\n\
-----END CERTIFICATE-----\n\
";
    const KEY: &str = "-----BEGIN PRIVATE KEY-----\nMAA=\n-----END PRIVATE KEY-----\n";

    /// Runs `look` on a file with this content.
    fn with<T>(content: &str, look: impl FnOnce(&Path) -> T) -> T {
        let name = format!("throng-pem-{}-{}", std::process::id(), content.len());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, content).unwrap();
        let seen = look(&path);
        std::fs::remove_file(&path).unwrap();
        seen
    }

    #[test]
    fn certificates_and_a_key_may_be_in_one_file_in_any_order() {
        for both in [format!("{CERTIFICATE}{KEY}"), format!("\u{feff}{KEY}{CERTIFICATE}")] {
            with(&both, |path| {
                assert_eq!(certificates(path).unwrap().len(), 1);
                assert!(private_key(path).is_ok());
            });
        }
        let told = with(CERTIFICATE, |path| private_key(path).unwrap_err().english());
        assert!(told.contains("does not contain a PEM private key"), "{told}");
    }

    #[test]
    fn a_byte_order_mark_before_a_certificate_is_ignored() {
        let found = with(&format!("\u{feff}{CERTIFICATE}{CERTIFICATE}"), certificates);
        assert_eq!(found.map(|found| found.len()), Ok(2));
    }

    #[test]
    fn an_encrypted_key_is_reported_as_encrypted() {
        let ours =
            "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMAA=\n-----END ENCRYPTED PRIVATE KEY-----\n";
        let older = "-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nMAA=\n";
        for text in [ours, older] {
            let told = with(text, |path| private_key(path).unwrap_err().english());
            assert!(
                told.contains("is encrypted: decrypt it, for example with `openssl pkey -in"),
                "{told}"
            );
        }
    }
}
