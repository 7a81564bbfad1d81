//! The login: the server's greeting, the response with the client's capabilities, and the
//! authentication methods.

use ring::digest::{Algorithm, SHA1_FOR_LEGACY_USE_ONLY as SHA1, SHA256, digest};
use throng_base::Said;

use super::packets::{Packet, write_packet};
use super::row::error_of;
use super::rsa::Key;
use crate::sql::ask::{Carrier, Login, push_counted};
use crate::sql::error::{ServerError, SqlError, shown};
use crate::sql::parts::Parts;

/// Capabilities (`CLIENT_…`).
const CONNECT_WITH_DB: u32 = 1 << 3;
const PROTOCOL_41: u32 = 1 << 9;
const SSL: u32 = 1 << 11;
const SECURE_CONNECTION: u32 = 1 << 15;
const PLUGIN_AUTH: u32 = 1 << 19;

/// The client's capabilities: among others long flags, transactions, multiple statements and
/// results. Without local files; results end with EOF packets.
const CAPABILITIES: u32 = 1 | 1 << 2 | PROTOCOL_41 | 1 << 13 | SECURE_CONNECTION | 0b111 << 16;

/// The longest packet that a client sends.
const PACKET_BYTES_MAX: u32 = 1 << 30;

/// utf8mb4_general_ci, which MySQL and MariaDB have.
const CHARSET: u8 = 45;

/// Maximum size of a greeting.
pub(super) const GREETING_BYTES_MAX: usize = 1024;

const SALT_BYTES: usize = 20;

/// Requests TLS after the server's greeting. The next packet has the next number.
pub const SSL_REQUEST: [u8; 36] = {
    let (mut request, flags) = ([0; 36], (CAPABILITIES | SSL | PLUGIN_AUTH).to_le_bytes());
    (request[0], request[3]) = (32, 1);
    let mut at = 0;
    while at < 4 {
        request[4 + at] = flags[at];
        request[8 + at] = PACKET_BYTES_MAX.to_le_bytes()[at];
        at += 1;
    }
    request[12] = CHARSET;
    request
};

/// Whether the server's greeting offers TLS; `None` if it is incomplete.
///
/// # Errors
/// It is not a MySQL greeting, or the server refuses the connection.
pub fn offers_tls(bytes: &[u8]) -> Result<Option<bool>, SqlError> {
    let Some((&[a, b, c, sequence], rest)) = bytes.split_first_chunk() else { return Ok(None) };
    let length = usize::from(a) | usize::from(b) << 8 | usize::from(c) << 16;
    if sequence != 0 || length > GREETING_BYTES_MAX {
        return Err(SqlError::NotMySql(a));
    }
    match rest.get(..length) {
        Some(body) => Greeting::read(body).map(|greeting| Some(greeting.flags & SSL != 0)),
        None => Ok(None),
    }
}

struct Greeting<'p> {
    flags: u32,
    salt: [u8; SALT_BYTES],
    plugin: &'p [u8],
}

impl<'p> Greeting<'p> {
    fn read(body: &'p [u8]) -> Result<Greeting<'p>, SqlError> {
        match body.first() {
            Some(10) => Greeting::of_10(&body[1..]).ok_or(SqlError::Packet(&GREETING)),
            Some(0xff) => Err(SqlError::Server(Box::new(ServerError::read(&error_of(body))))),
            Some(version) => Err(SqlError::Version(*version)),
            None => Err(SqlError::Packet(&GREETING)),
        }
    }

    fn of_10(body: &'p [u8]) -> Option<Greeting<'p>> {
        let mut parts = Parts(body);
        let _version = parts.text()?;
        let _thread = parts.take(4)?;
        let first = parts.take(8)?;
        let _filler = parts.byte()?;
        let low = parts.little(2)?;
        let _charset_and_status = parts.take(3)?;
        let high = parts.little(2)?;
        let flags = (low | high << 16) as u32;
        if flags & PROTOCOL_41 == 0 {
            return None;
        }
        let _salt_bytes_and_reserve = parts.take(11)?;
        let second = parts.take(12)?;
        let _nul = parts.byte()?;
        let mut salt = [0; SALT_BYTES];
        salt[..8].copy_from_slice(first);
        salt[8..].copy_from_slice(second);
        // Some servers do not terminate it.
        let plugin = parts.0.split(|byte| *byte == 0).next().unwrap_or_default();
        Some(Greeting { flags, salt, plugin })
    }
}

/// A login in progress.
#[derive(Debug)]
pub(super) struct LogIn {
    login: Login,
    stage: Stage,
    plugin: Plugin,
    salt: [u8; SALT_BYTES],
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Stage {
    /// Waits for the greeting.
    Begins,
    Responded,
    /// The server's key was requested.
    AsksForKey,
}

/// The authentication methods.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Plugin {
    Native,
    CachingSha2,
    Clear,
}

impl Plugin {
    const ALL: [(&str, Plugin); 3] = [
        ("mysql_native_password", Plugin::Native),
        ("caching_sha2_password", Plugin::CachingSha2),
        ("mysql_clear_password", Plugin::Clear),
    ];

    fn named(name: &[u8]) -> Option<(&'static str, Plugin)> {
        Plugin::ALL.into_iter().find(|(own, _)| own.as_bytes() == name)
    }
}

impl LogIn {
    pub(super) fn new(login: Login) -> LogIn {
        let (stage, plugin) = (Stage::Begins, Plugin::Native);
        LogIn { login, stage, plugin, salt: [0; SALT_BYTES] }
    }

    pub(super) fn begins(&self) -> bool {
        self.stage == Stage::Begins
    }

    /// Answers a message of the server; returns the sequence number of the answer, if any. OK and
    /// ERR are handled elsewhere.
    pub(super) fn came(
        &mut self,
        packet: &Packet<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Option<u8>, SqlError> {
        let (body, own) = (packet.body, packet.sequence.wrapping_add(1));
        match (self.stage, packet.first) {
            (Stage::Begins, _) => return self.greeted(packet, out).map(Some),
            (_, 0xfe) => {
                let mut parts = Parts(&body[1..]);
                // Servers before 4.1 send no name.
                let name = parts.text().unwrap_or(b"mysql_old_password");
                (_, self.plugin) = Plugin::named(name).ok_or(SqlError::Plugin(shown(name)))?;
                let salt = parts.take(SALT_BYTES).unwrap_or(&[0; SALT_BYTES]);
                self.salt.copy_from_slice(salt);
                let proof = self.proof()?;
                write_packet(own, out, |out| out.extend_from_slice(&proof));
            }
            (stage, 1) if self.plugin == Plugin::CachingSha2 => match (&body[1..], stage) {
                // The server had the password in its cache.
                ([3], _) => return Ok(None),
                ([4], _) => self.proves_all(own, out),
                (key, Stage::AsksForKey) => self.encrypts(key, own, out)?,
                _ => return Err(SqlError::Packet(&LOGIN)),
            },
            _ => return Err(SqlError::Packet(&LOGIN)),
        }
        Ok(Some(own))
    }

    fn greeted(&mut self, greeting: &Packet<'_>, out: &mut Vec<u8>) -> Result<u8, SqlError> {
        let Greeting { flags, salt, plugin } = Greeting::read(greeting.body)?;
        (self.stage, self.salt) = (Stage::Responded, salt);
        // If throng does not support it, the server switches if the user requires it.
        let (name, known) = Plugin::named(plugin).unwrap_or(Plugin::ALL[0]);
        self.plugin = if known == Plugin::Clear { Plugin::Native } else { known };
        let proof = self.proof()?;
        let Login { user, database, carrier, .. } = &self.login;
        let mut own = CAPABILITIES | flags & PLUGIN_AUTH;
        if !database.is_empty() {
            own |= CONNECT_WITH_DB;
        }
        let mut sequence = 1;
        if *carrier == Carrier::Tls {
            (own, sequence) = (own | SSL, 2);
        }
        write_packet(sequence, out, |out| {
            out.extend_from_slice(&own.to_le_bytes());
            out.extend_from_slice(&PACKET_BYTES_MAX.to_le_bytes());
            out.push(CHARSET);
            out.extend_from_slice(&[0; 23]);
            out.extend_from_slice(user.as_bytes());
            out.push(0);
            push_counted(&proof, out);
            for text in [&**database, name].into_iter().filter(|text| !text.is_empty()) {
                out.extend_from_slice(text.as_bytes());
                out.push(0);
            }
        });
        Ok(sequence)
    }

    fn password(&self) -> &[u8] {
        self.login.password.as_deref().unwrap_or_default().as_bytes()
    }

    /// The first message of the plugin.
    fn proof(&self) -> Result<Vec<u8>, SqlError> {
        Ok(match self.plugin {
            Plugin::Clear if self.login.carrier == Carrier::Plain => {
                return Err(SqlError::Cleartext);
            }
            Plugin::Clear => [self.password(), b"\0"].concat(),
            Plugin::Native => native_proof(self.password(), &self.salt),
            Plugin::CachingSha2 => caching_proof(self.password(), &self.salt),
        })
    }

    /// The server does not have the password in its cache, and needs the password itself.
    fn proves_all(&mut self, sequence: u8, out: &mut Vec<u8>) {
        let is_plain = self.login.carrier == Carrier::Plain;
        if is_plain {
            self.stage = Stage::AsksForKey;
        }
        write_packet(sequence, out, |out| match is_plain {
            true => out.push(2),
            false => out.extend_from_slice(&[self.password(), b"\0"].concat()),
        });
    }

    fn encrypts(&self, key: &[u8], sequence: u8, out: &mut Vec<u8>) -> Result<(), SqlError> {
        let mut hidden = [self.password(), b"\0"].concat();
        hidden.iter_mut().zip(self.salt.iter().cycle()).for_each(|(byte, salt)| *byte ^= salt);
        let seed = hash(&SHA1, &[self.login.nonce.as_bytes()]);
        let key = Key::read(key).ok_or(SqlError::Key)?;
        let encrypted = key.encrypt(&hidden, seed).ok_or(SqlError::Key)?;
        write_packet(sequence, out, |out| out.extend_from_slice(&encrypted));
        Ok(())
    }
}

fn hash<const BYTES: usize>(algorithm: &'static Algorithm, parts: &[&[u8]]) -> [u8; BYTES] {
    let hash = digest(algorithm, &parts.concat());
    std::array::from_fn(|at| hash.as_ref().get(at).copied().unwrap_or(0))
}

/// The response of `mysql_native_password`.
pub(super) fn native_proof(password: &[u8], salt: &[u8]) -> Vec<u8> {
    if password.is_empty() {
        return Vec::new();
    }
    let once: [u8; 20] = hash(&SHA1, &[password]);
    let twice: [u8; 20] = hash(&SHA1, &[&once]);
    let salted: [u8; 20] = hash(&SHA1, &[salt, &twice]);
    once.iter().zip(salted).map(|(a, b)| a ^ b).collect()
}

/// The first response of `caching_sha2_password`.
pub(super) fn caching_proof(password: &[u8], salt: &[u8]) -> Vec<u8> {
    if password.is_empty() {
        return Vec::new();
    }
    let once: [u8; 32] = hash(&SHA256, &[password]);
    let twice: [u8; 32] = hash(&SHA256, &[&once]);
    let salted: [u8; 32] = hash(&SHA256, &[&twice, salt]);
    once.iter().zip(salted).map(|(a, b)| a ^ b).collect()
}

static GREETING: Said = say!("the MySQL greeting of the server is malformed");
static LOGIN: Said = say!("the server sent an unexpected MySQL packet during the login");
