//! SCRAM-SHA-256 (RFC 5802, RFC 7677) without channel binding, and MD5 passwords.

use std::num::NonZeroU32;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use md5::{Digest as _, Md5};
use ring::{digest, hmac, pbkdf2};
use throng_base::Said;

use crate::sql::error::SqlError;

/// Deriving a key takes as long as its iterations; the server says how many. Its default is 4,096.
const ITERATIONS_MAX: u32 = 100_000;

/// No channel binding, and the name of the user is that of the startup message.
const HEADER: &str = "n,,";

/// What clients of a thread share: all users of a role have the same key.
#[derive(Debug, Default)]
pub struct Room(Option<Salted>);

#[derive(Debug)]
struct Salted {
    password: Box<[u8]>,
    salt: Box<[u8]>,
    iterations: u32,
    key: [u8; digest::SHA256_OUTPUT_LEN],
}

impl Room {
    fn key(&mut self, password: &[u8], salt: &[u8], iterations: NonZeroU32) -> [u8; 32] {
        let count = iterations.get();
        let is_same = |known: &&Salted| {
            *known.password == *password && *known.salt == *salt && known.iterations == count
        };
        if let Some(known) = self.0.as_ref().filter(is_same) {
            return known.key;
        }
        let mut key = [0; digest::SHA256_OUTPUT_LEN];
        pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, iterations, salt, password, &mut key);
        let (password, salt) = (password.into(), salt.into());
        self.0 = Some(Salted { password, salt, iterations: count, key });
        key
    }
}

/// One login.
#[derive(Debug)]
pub(super) struct Scram {
    nonce: String,
    /// The signature that the server has to have.
    signature: Option<Vec<u8>>,
}

impl Scram {
    pub(super) fn new(nonce: &str) -> Scram {
        Scram { nonce: nonce.into(), signature: None }
    }

    /// The first message, behind the name of the mechanism.
    pub(super) fn first(&self, out: &mut Vec<u8>) {
        let message = format!("{HEADER}n=,r={}", self.nonce);
        out.extend_from_slice(&(message.len() as u32).to_be_bytes());
        out.extend_from_slice(message.as_bytes());
    }

    /// Answers the challenge.
    pub(super) fn answer(
        &mut self,
        challenge: &[u8],
        password: &[u8],
        room: &mut Room,
    ) -> Result<Vec<u8>, SqlError> {
        let challenge = std::str::from_utf8(challenge).unwrap_or_default();
        let part = |key| challenge.split(',').find_map(|part: &str| part.strip_prefix(key));
        let (nonce, salt) = (part("r=").unwrap_or_default(), part("s=").unwrap_or_default());
        let salt = STANDARD.decode(salt).unwrap_or_default();
        let iterations = part("i=").and_then(|count| count.parse().ok());
        let (true, Some(iterations)) = (!salt.is_empty(), iterations) else {
            return Err(SqlError::Scram(&CHALLENGE));
        };
        if !nonce.starts_with(&self.nonce) || nonce == self.nonce {
            return Err(SqlError::Scram(&NONCE));
        }
        if iterations > NonZeroU32::new(ITERATIONS_MAX).unwrap_or(NonZeroU32::MIN) {
            return Err(SqlError::Scram(&ITERATIONS));
        }
        let salted = room.key(password, &salt, iterations);
        let unproved = format!("c={},r={nonce}", STANDARD.encode(HEADER));
        let signed = format!("n=,r={},{challenge},{unproved}", self.nonce);
        let client_key = sign(&salted, b"Client Key");
        let stored_key = digest::digest(&digest::SHA256, client_key.as_ref());
        let signature = sign(stored_key.as_ref(), signed.as_bytes());
        let pairs = client_key.as_ref().iter().zip(signature.as_ref());
        let proof: Vec<u8> = pairs.map(|(a, b)| a ^ b).collect();
        let server_key = sign(&salted, b"Server Key");
        let expected = sign(server_key.as_ref(), signed.as_bytes());
        self.signature = Some(expected.as_ref().to_vec());
        Ok(format!("{unproved},p={}", STANDARD.encode(proof)).into_bytes())
    }

    /// The last message of the server proves that it knows the password, too.
    pub(super) fn check(&self, last: &[u8]) -> Result<(), SqlError> {
        let said = last.strip_prefix(b"v=").and_then(|said| STANDARD.decode(said).ok());
        match said.is_some() && said == self.signature {
            true => Ok(()),
            false => Err(SqlError::Scram(&SIGNATURE)),
        }
    }
}

fn sign(key: &[u8], bytes: &[u8]) -> hmac::Tag {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), bytes)
}

/// The answer to a request for an MD5 password.
pub(super) fn md5_password(user: &[u8], password: &[u8], salt: &[u8]) -> Vec<u8> {
    let inner = hex(&[password, user].concat());
    let outer = hex(&[inner.as_bytes(), salt].concat());
    format!("md5{outer}").into_bytes()
}

fn hex(bytes: &[u8]) -> String {
    Md5::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

static CHALLENGE: Said = say!("the SCRAM challenge of the server is malformed");
static NONCE: Said = say!("the SCRAM challenge of the server has a different nonce");
static ITERATIONS: Said =
    say!("the SCRAM challenge of the server has more than 100,000 iterations");
static SIGNATURE: Said = say!("the server did not prove that it knows the password");
