//! A SCRAM-SHA-256 login in PostgreSQL's framing, and MD5 passwords.

use throng_base::Said;
use throng_expression::scram::{self, Hash};

use crate::sql::error::SqlError;

/// One login.
#[derive(Debug)]
pub(super) struct Scram {
    /// The first message. The user name is that of the startup message.
    first: String,
    /// The server's expected last message.
    signature: Option<String>,
}

impl Scram {
    pub(super) fn new(nonce: &str) -> Scram {
        Scram { first: scram::first("", nonce), signature: None }
    }

    /// The first message, after the name of the mechanism.
    pub(super) fn first(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.first.len() as u32).to_be_bytes());
        out.extend_from_slice(self.first.as_bytes());
    }

    /// Answers the challenge.
    pub(super) fn answer(
        &mut self,
        challenge: &[u8],
        password: &[u8],
    ) -> Result<Vec<u8>, SqlError> {
        let challenge = std::str::from_utf8(challenge).unwrap_or_default();
        let proof = scram::answer(Hash::Sha256, &self.first, challenge, password);
        let proof = proof.map_err(SqlError::Scram)?;
        self.signature = Some(proof.signature);
        Ok(proof.last.into_bytes())
    }

    /// The last message of the server proves that it knows the password, too.
    pub(super) fn check(&self, last: &[u8]) -> Result<(), SqlError> {
        match self.signature.as_ref().is_some_and(|signature| signature.as_bytes() == last) {
            true => Ok(()),
            false => Err(SqlError::Scram(&SIGNATURE)),
        }
    }
}

/// The answer to a request for an MD5 password.
pub(super) fn md5_password(user: &[u8], password: &[u8], salt: &[u8]) -> Vec<u8> {
    let inner = format!("{:x}", md5::compute([password, user].concat()));
    let outer = md5::compute([inner.as_bytes(), salt].concat());
    format!("md5{outer:x}").into_bytes()
}

static SIGNATURE: Said = say!("the server did not prove that it knows the password");
