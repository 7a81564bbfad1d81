//! Digests of bodies, as lower-case hexadecimal digits.

use std::fmt;

use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY, SHA256, SHA512};

/// A digest algorithm, by its name in scenarios.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Digest {
    Md5,
    Sha1,
    Sha256,
    Sha512,
    Crc32,
}

impl Digest {
    pub const ALL: [Digest; 5] =
        [Digest::Md5, Digest::Sha1, Digest::Sha256, Digest::Sha512, Digest::Crc32];

    /// `md5`, `sha1`, `sha256`, `sha512` or `crc32`.
    pub fn parse(text: &str) -> Option<Digest> {
        Digest::ALL.into_iter().find(|digest| digest.name() == text)
    }

    pub fn name(self) -> &'static str {
        match self {
            Digest::Md5 => "md5",
            Digest::Sha1 => "sha1",
            Digest::Sha256 => "sha256",
            Digest::Sha512 => "sha512",
            Digest::Crc32 => "crc32",
        }
    }

    /// How many hexadecimal digits it has.
    pub fn digits(self) -> usize {
        Hasher::new(self).digits().len()
    }

    pub fn of(self, bytes: &[u8]) -> String {
        let mut hasher = Hasher::new(self);
        hasher.update(bytes);
        hasher.digits()
    }
}

/// A digest of bytes that arrive in pieces.
#[derive(Clone)]
pub struct Hasher(DigestState);

#[derive(Clone)]
enum DigestState {
    Md5(md5::Context),
    Sha(Context),
    Crc32(crc32fast::Hasher),
}

impl Hasher {
    pub fn new(digest: Digest) -> Hasher {
        Hasher(match digest {
            Digest::Md5 => DigestState::Md5(md5::Context::new()),
            Digest::Sha1 => DigestState::Sha(Context::new(&SHA1_FOR_LEGACY_USE_ONLY)),
            Digest::Sha256 => DigestState::Sha(Context::new(&SHA256)),
            Digest::Sha512 => DigestState::Sha(Context::new(&SHA512)),
            Digest::Crc32 => DigestState::Crc32(crc32fast::Hasher::new()),
        })
    }

    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.0 {
            DigestState::Md5(state) => state.consume(bytes),
            DigestState::Sha(state) => state.update(bytes),
            DigestState::Crc32(state) => state.update(bytes),
        }
    }

    /// The digest of the bytes so far.
    pub fn digits(&self) -> String {
        match self.0.clone() {
            DigestState::Md5(state) => hex(&*state.finalize()),
            DigestState::Sha(state) => hex(state.finish().as_ref()),
            DigestState::Crc32(state) => format!("{:08x}", state.finalize()),
        }
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_match_their_standards() {
        for (name, want) in [
            ("md5", "900150983cd24fb0d6963f7d28e17f72"),
            ("sha1", "a9993e364706816aba3e25717850c26c9cd0d89d"),
            ("sha256", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            (
                "sha512",
                "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a\
                 2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
            ),
            ("crc32", "352441c2"),
        ] {
            let digest = Digest::parse(name).unwrap();
            assert_eq!(digest.of(b"abc"), want, "{name}");
            assert_eq!(digest.of(b"").len(), digest.digits(), "{name}");
            assert_eq!(digest.to_string(), name);
            let mut hasher = Hasher::new(digest);
            b"abc".chunks(1).for_each(|piece| hasher.update(piece));
            assert_eq!(hasher.digits(), want, "{name}");
        }
        assert_eq!(Digest::Crc32.of(b""), "00000000");
        for name in ["", "SHA256", "sha-256", "sha3"] {
            assert_eq!(Digest::parse(name), None, "{name}");
        }
    }
}
