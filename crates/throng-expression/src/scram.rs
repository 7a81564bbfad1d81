//! SCRAM (RFC 5802, RFC 7677) without channel binding: a client's answer to the challenge of a
//! server, and the proof that the server knows the password, too. For the functions `scram.*`, and
//! logins to databases.

use std::cell::RefCell;
use std::collections::HashMap;
use std::num::NonZeroU32;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::{digest, hmac, pbkdf2};
use throng_base::Said;

use crate::call::Call;
use crate::scope::Fault;
use crate::value::Value;

/// Deriving a key takes as long as its number of iterations, which the server chooses. 4,096 is
/// common.
const ITERATIONS_MAX: u32 = 100_000;

/// No channel binding.
const HEADER: &str = "n,,";

/// The hash of a mechanism: SCRAM-SHA-1, SCRAM-SHA-256.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hash {
    Sha1,
    Sha256,
}

impl Hash {
    fn bytes(self) -> usize {
        match self {
            Hash::Sha1 => digest::SHA1_OUTPUT_LEN,
            Hash::Sha256 => digest::SHA256_OUTPUT_LEN,
        }
    }

    fn of(self, bytes: &[u8]) -> digest::Digest {
        match self {
            Hash::Sha1 => digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, bytes),
            Hash::Sha256 => digest::digest(&digest::SHA256, bytes),
        }
    }

    fn sign(self, key: &[u8], bytes: &[u8]) -> hmac::Tag {
        let algorithm = match self {
            Hash::Sha1 => hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
            Hash::Sha256 => hmac::HMAC_SHA256,
        };
        hmac::sign(&hmac::Key::new(algorithm, key), bytes)
    }

    fn derive(self, iterations: NonZeroU32, salt: &[u8], password: &[u8], key: &mut [u8]) {
        let algorithm = match self {
            Hash::Sha1 => pbkdf2::PBKDF2_HMAC_SHA1,
            Hash::Sha256 => pbkdf2::PBKDF2_HMAC_SHA256,
        };
        pbkdf2::derive(algorithm, iterations, salt, password, key);
    }
}

/// Most keys that a thread keeps: an account per user, or one for all.
const KEYS_MAX: usize = 4096;

/// The salted passwords that a thread has derived, by a digest of their inputs.
#[derive(Debug, Default)]
struct Keys {
    all: HashMap<[u8; 32], [u8; 32]>,
    /// The digests in `all`.
    known: Vec<[u8; 32]>,
}

impl Keys {
    fn of(&mut self, hash: Hash, password: &[u8], challenge: &Challenge<'_>) -> [u8; 32] {
        let Challenge { salt, iterations, .. } = challenge;
        let (count, bytes) = (iterations.get().to_le_bytes(), salt.len().to_le_bytes());
        let from = [&[hash as u8][..], &count, &bytes, salt, password].concat();
        let mut name = [0; 32];
        name.copy_from_slice(Hash::Sha256.of(&from).as_ref());
        if let Some(key) = self.all.get(&name) {
            return *key;
        }
        let mut key = [0; 32];
        hash.derive(*iterations, salt, password, &mut key[..hash.bytes()]);
        if self.known.len() < KEYS_MAX {
            self.known.push(name);
        } else {
            // Replaces a random one: with the oldest, accounts that take turns would always miss.
            let at = usize::from(u16::from_le_bytes([name[0], name[1]])) % KEYS_MAX;
            self.all.remove(&std::mem::replace(&mut self.known[at], name));
        }
        self.all.insert(name, key);
        key
    }
}

thread_local! {
    static KEYS: RefCell<Keys> = RefCell::default();
}

/// The first message of a server.
struct Challenge<'a> {
    nonce: &'a str,
    salt: Vec<u8>,
    iterations: NonZeroU32,
}

impl Challenge<'_> {
    fn read<'a>(first: &str, challenge: &'a str) -> Result<Challenge<'a>, &'static Said> {
        let own = first.split(',').find_map(|part| part.strip_prefix("r=")).ok_or(&FIRST)?;
        let part = |key| challenge.split(',').find_map(|part: &str| part.strip_prefix(key));
        let (nonce, salt) = (part("r=").unwrap_or_default(), part("s=").unwrap_or_default());
        let salt = STANDARD.decode(salt).unwrap_or_default();
        let iterations = part("i=").and_then(|count| count.parse().ok());
        let (true, Some(iterations)) = (!salt.is_empty(), iterations) else {
            return Err(&CHALLENGE);
        };
        if !nonce.starts_with(own) || nonce == own {
            return Err(&NONCE);
        }
        if iterations > NonZeroU32::new(ITERATIONS_MAX).unwrap_or(NonZeroU32::MIN) {
            return Err(&ITERATIONS);
        }
        Ok(Challenge { nonce, salt, iterations })
    }
}

/// The last message of the client, and the expected answer of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    pub last: String,
    /// `v=…`
    pub signature: String,
}

/// The first message of a client. The nonce is printable and contains no comma.
pub fn first(user: &str, nonce: &str) -> String {
    let user = user.replace('=', "=3D").replace(',', "=2C");
    format!("{HEADER}n={user},r={nonce}")
}

/// Answers the server's challenge to the `first` message of a client.
pub fn answer(
    hash: Hash,
    first: &str,
    challenge: &str,
    password: &[u8],
) -> Result<Proof, &'static Said> {
    let read = Challenge::read(first, challenge)?;
    let bare = first.strip_prefix(HEADER).ok_or(&FIRST)?;
    let salted = KEYS.with_borrow_mut(|keys| keys.of(hash, password, &read));
    let salted = &salted[..hash.bytes()];
    let unproved = format!("c={},r={}", STANDARD.encode(HEADER), read.nonce);
    let signed = format!("{bare},{challenge},{unproved}");
    let client_key = hash.sign(salted, b"Client Key");
    let signature = hash.sign(hash.of(client_key.as_ref()).as_ref(), signed.as_bytes());
    let proof: Vec<u8> =
        client_key.as_ref().iter().zip(signature.as_ref()).map(|(a, b)| a ^ b).collect();
    let server_key = hash.sign(salted, b"Server Key");
    let expected = hash.sign(server_key.as_ref(), signed.as_bytes());
    Ok(Proof {
        last: format!("{unproved},p={}", STANDARD.encode(proof)),
        signature: format!("v={}", STANDARD.encode(expected)),
    })
}

pub(crate) fn first_message(call: &mut Call<'_>) -> Result<Value, Fault> {
    Ok(Value::from(first(call.text(0)?, call.text(1)?)))
}

macro_rules! functions {
    ($($last:ident $signature:ident $hash:ident;)*) => {$(
        pub(crate) fn $last(call: &mut Call<'_>) -> Result<Value, Fault> {
            prove(call, Hash::$hash).map(|proof| Value::from(proof.last))
        }

        pub(crate) fn $signature(call: &mut Call<'_>) -> Result<Value, Fault> {
            prove(call, Hash::$hash).map(|proof| Value::from(proof.signature))
        }
    )*};
}

functions! {
    sha1_last sha1_signature Sha1;
    sha256_last sha256_signature Sha256;
}

/// An iteration costs as much as reading this many bytes.
const ITERATION_BYTES: usize = 64;

fn prove(call: &mut Call<'_>, hash: Hash) -> Result<Proof, Fault> {
    let (first, challenge, password) = (call.text(0)?, call.text(1)?, call.octets(2)?);
    let read = Challenge::read(first, challenge).map_err(|why| Fault(why.clone()))?;
    call.charge(read.iterations.get() as usize * ITERATION_BYTES)?;
    answer(hash, first, challenge, password).map_err(|why| Fault(why.clone()))
}

static FIRST: Said = say!("the first SCRAM message is not from `scram.first`");
static CHALLENGE: Said = say!("the SCRAM challenge of the server is malformed");
static NONCE: Said = say!("the SCRAM challenge of the server has a different nonce");
static ITERATIONS: Said =
    say!("the SCRAM challenge of the server has more than 100,000 iterations");

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 5802, 5.
    const NONCE_SHA1: &str = "fyko+d2lbbFgONRv9qkxdawL";
    const CHALLENGE_SHA1: &str =
        "r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096";

    #[test]
    fn proofs_match_the_rfcs() {
        let first_sha1 = first("user", NONCE_SHA1);
        assert_eq!(first_sha1, "n,,n=user,r=fyko+d2lbbFgONRv9qkxdawL");
        let proof = answer(Hash::Sha1, &first_sha1, CHALLENGE_SHA1, b"pencil").unwrap();
        let last = "c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,\
                    p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=";
        assert_eq!((&*proof.last, &*proof.signature), (last, "v=rmF9pqV8S7suAoZWja4dJRkFsKQ="));
        // RFC 7677, 3.
        let challenge = "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                         s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
        let first_sha256 = first("user", "rOprNGfwEbeRWgbNEkqO");
        let proof = answer(Hash::Sha256, &first_sha256, challenge, b"pencil").unwrap();
        let last = "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                    p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
        let signature = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=";
        assert_eq!((&*proof.last, &*proof.signature), (last, signature));
        // A key is derived once for the same password, salt and hash.
        assert_eq!(KEYS.with_borrow(|keys| keys.all.len()), 2);
        let again = answer(Hash::Sha256, &first_sha256, challenge, b"pencil").unwrap();
        assert_eq!(again, proof);
        let other = answer(Hash::Sha256, &first_sha256, challenge, b"pen").unwrap();
        assert_ne!(other.last, proof.last);
        let other = answer(Hash::Sha1, &first_sha256, challenge, b"pen").unwrap();
        assert_ne!(other.signature, again.signature);
        assert_eq!(KEYS.with_borrow(|keys| keys.all.len()), 4);
    }

    #[test]
    fn kept_keys_equal_derived_ones_and_are_limited() {
        let (mut keys, salt) = (Keys::default(), b"salt".to_vec());
        let challenge = Challenge { nonce: "", salt, iterations: NonZeroU32::MIN };
        let accounts = KEYS_MAX + KEYS_MAX / 4;
        for _ in 0..3 {
            for account in 0..accounts {
                let password = account.to_le_bytes();
                let mut key = [0; 32];
                Hash::Sha256.derive(challenge.iterations, b"salt", &password, &mut key);
                assert_eq!(keys.of(Hash::Sha256, &password, &challenge), key);
            }
            assert_eq!((keys.all.len(), keys.known.len()), (KEYS_MAX, KEYS_MAX));
            assert!(keys.known.iter().all(|name| keys.all.contains_key(name)));
        }
    }

    #[test]
    fn an_invalid_challenge_is_rejected() {
        let said = |first: &str, challenge: &str| {
            let answer = answer(Hash::Sha1, first, challenge, b"pencil");
            answer.unwrap_err().english()
        };
        let own = first("user", "abc");
        assert!(said("n=user", "r=abcd,s=AAAA,i=1").contains("scram.first"));
        for broken in ["", "e=other-error", "r=abcd,s=,i=1", "r=abcd,s=AAAA", "r=abcd,s=*,i=1"] {
            assert!(said(&own, broken).contains("malformed"), "{broken}");
        }
        assert!(said(&own, "r=abcd,s=AAAA,i=0").contains("malformed"));
        assert!(said(&own, "r=xyz,s=AAAA,i=1").contains("different nonce"));
        assert!(said(&own, "r=abc,s=AAAA,i=1").contains("different nonce"));
        assert!(said(&own, "r=abcd,s=AAAA,i=100001").contains("100,000"));
        assert_eq!(first("a=b,c", "x"), "n,,n=a=3Db=2Cc,r=x");
    }

    #[test]
    fn fuzz_challenges_are_answered_or_rejected() {
        let own = first("user", NONCE_SHA1);
        throng_fuzz::mutations(&[CHALLENGE_SHA1.as_bytes()], |mutant, _| {
            let text = String::from_utf8_lossy(mutant);
            // Slow inputs are not the subject of this test.
            if Challenge::read(&own, &text).is_ok_and(|read| read.iterations.get() > 5_000) {
                return;
            }
            if let Ok(proof) = answer(Hash::Sha1, &own, &text, b"pencil") {
                assert!(proof.last.starts_with("c=biws,r=fyko"), "{text}");
            }
        });
    }
}
