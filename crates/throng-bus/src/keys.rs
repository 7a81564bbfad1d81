//! The keys of a fleet, in their own folder: the signing keys, the rights, and the configuration
//! file of the bus server. A machine joins with a [`Token`], which has the only copy of the private
//! half of its keys.

mod authority;
mod rights;
mod token;

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use nkeys::KeyPair;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use serde::{Deserialize, Serialize};
use throng_base::Said;
use throng_base::private::{self as files, pem};

use crate::identity::{Certificates, Identity};
use crate::nats::names::DOMAIN;
use crate::{MESSAGE_BYTES_MAX, is_word};
use authority::{Authority, Holder, Signed};
use rights::Rights;

pub use token::Token;

/// The account of the fleet, which appears in the server's events.
pub const ACCOUNT: &str = "THR";
const CONTROLLER: &str = "controller";
const SYSTEM: &str = "system";
/// Validity of the authority, the server and the controller.
const OWN_TIME: Duration = Duration::from_secs(10 * 365 * 24 * 3600);
/// Maximum disk space for everything that the bus stores.
const STORE_GB: u32 = 20;
const ABOUT: &str = "fleet.json";
const AUTHORITY: &str = "authority";
const OPERATOR: &str = "operator.seed";

/// A fleet's folder.
#[derive(Debug)]
pub struct Keys {
    folder: PathBuf,
    about: About,
}

/// Facts about the fleet besides its keys.
#[derive(Debug, Serialize, Deserialize)]
struct About {
    /// Where its machines connect.
    addresses: Vec<IpAddr>,
    port: u16,
    /// The public key of the operator.
    operator: String,
    controller: String,
    system: String,
    agents: Vec<Admitted>,
}

/// An agent that the bus knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Admitted {
    pub name: String,
    /// The public half of its key.
    pub key: String,
    /// End of the validity of its certificate, in seconds since the Unix epoch.
    pub until_s: u64,
}

impl Keys {
    /// Creates the keys of a new fleet whose bus is reached at these addresses; `now` is the time
    /// since the Unix epoch.
    pub fn create(
        folder: &Path,
        addresses: &[IpAddr],
        port: u16,
        now: Duration,
    ) -> Result<Keys, Said> {
        if folder.join(ABOUT).exists() {
            let folder = folder.display();
            return Err(say!("there is already a fleet in `{folder}`"));
        }
        if addresses.is_empty() || addresses.iter().any(IpAddr::is_unspecified) {
            return Err(say!(
                "a fleet requires an address that its machines can connect to, such as `10.0.0.5`"
            ));
        }
        files::make_folder(folder)?;
        let until = now + OWN_TIME;
        let authority = Authority::new(now, until)?;
        let own = Signed { certificate: authority.certificate.clone(), key: authority.key() };
        let (controller, system) = (KeyPair::new_user(), KeyPair::new_user());
        let operator = KeyPair::new_operator();
        let about = About {
            addresses: addresses.to_vec(),
            port,
            operator: operator.public_key(),
            controller: controller.public_key(),
            system: system.public_key(),
            agents: Vec::new(),
        };
        let keys = Keys { folder: folder.to_path_buf(), about };
        keys.put(AUTHORITY, &own)?;
        keys.put("server", &authority.sign(Holder::Server(addresses), now, until)?)?;
        for (name, key) in [(CONTROLLER, &controller), (SYSTEM, &system)] {
            keys.put(name, &authority.sign(Holder::Machine(name), now, until)?)?;
            files::write(&folder.join(format!("{name}.seed")), &seed(key)?)?;
        }
        files::write(&folder.join(OPERATOR), &seed(&operator)?)?;
        keys.save()?;
        Ok(keys)
    }

    /// Opens the keys of an existing fleet.
    pub fn open(folder: &Path) -> Result<Keys, Said> {
        let path = folder.join(ABOUT);
        if !path.exists() {
            let folder = folder.display();
            return Err(say!("there is no fleet in `{folder}`: `throng fleet init` creates one"));
        }
        let read = serde_json::from_str(&files::read(&path)?);
        let about = read.map_err(|error| {
            let (path, error) = (path.display(), Said::of_others(error.to_string()));
            say!("`{path}`: {error}")
        })?;
        Ok(Keys { folder: folder.to_path_buf(), about })
    }

    /// Creates the keys of an agent, or replaces them; the old ones become invalid. The server must
    /// then reload its file ([`crate::server::Server::reload`]).
    pub fn admit(&mut self, name: &str, now: Duration, good_for: Duration) -> Result<Token, Said> {
        if !is_word(name) || [CONTROLLER, SYSTEM].contains(&name) {
            return Err(say!(
                "`{name}` is not a valid agent name: use at most 64 letters, digits, `-` and `_`"
            ));
        }
        let until = now + good_for;
        let signed = self.authority()?.sign(Holder::Machine(name), now, until)?;
        let key = KeyPair::new_user();
        let identity = self.identity(name, signed, seed(&key)?)?;
        let until_s = until.as_secs();
        let admitted = Admitted { name: name.to_string(), key: key.public_key(), until_s };
        self.about.agents.retain(|agent| agent.name != name);
        self.about.agents.push(admitted);
        self.save()?;
        Ok(Token { identity, operator: self.about.operator.clone(), until_s })
    }

    /// Removes an agent; true if it was known.
    pub fn dismiss(&mut self, name: &str) -> Result<bool, Said> {
        let before = self.about.agents.len();
        self.about.agents.retain(|agent| agent.name != name);
        self.save()?;
        Ok(self.about.agents.len() < before)
    }

    pub fn agents(&self) -> &[Admitted] {
        &self.about.agents
    }

    /// The identity of the controller.
    pub fn controller(&self) -> Result<Identity, Said> {
        self.own(CONTROLLER)
    }

    /// The identity that queries the server about itself.
    pub fn system(&self) -> Result<Identity, Said> {
        self.own(SYSTEM)
    }

    /// The public key of the operator.
    pub fn operator(&self) -> &str {
        &self.about.operator
    }

    /// The key of the operator, which signs instructions to agents.
    pub fn signer(&self) -> Result<Signer, Said> {
        let path = self.folder.join(OPERATOR);
        let key = KeyPair::from_seed(files::read(&path)?.trim());
        key.map(Signer).map_err(|error| not_made(&error))
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The configuration file of the server.
    pub fn server_file(&self) -> PathBuf {
        self.folder.join("server.conf")
    }

    /// The log of the server.
    pub fn server_log(&self) -> PathBuf {
        self.folder.join("server.log")
    }

    /// The address of the bus on the same machine.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::new(self.about.addresses[0], self.about.port)
    }

    fn authority(&self) -> Result<Authority, Said> {
        let Signed { certificate, key } = self.signed(AUTHORITY)?;
        Authority::from_der(certificate, &key)
    }

    fn own(&self, name: &str) -> Result<Identity, Said> {
        let seed = files::read(&self.folder.join(format!("{name}.seed")))?;
        self.identity(name, self.signed(name)?, seed.trim().to_string())
    }

    fn identity(&self, name: &str, signed: Signed, seed: String) -> Result<Identity, Said> {
        let authority = self.signed(AUTHORITY)?.certificate;
        let tls = Certificates { authority, own: signed.certificate, key: signed.key };
        let (name, address) = (name.to_string(), self.address());
        Ok(Identity { name, address, tls: Some(tls), seed: Some(seed) })
    }

    fn put(&self, name: &str, signed: &Signed) -> Result<(), Said> {
        let certificate = pem("CERTIFICATE", &signed.certificate);
        files::write(&self.folder.join(format!("{name}.pem")), &certificate)?;
        files::write(&self.folder.join(format!("{name}.key")), &pem("PRIVATE KEY", &signed.key))
    }

    fn signed(&self, name: &str) -> Result<Signed, Said> {
        let text = |end: &str| files::read(&self.folder.join(format!("{name}.{end}")));
        let certificate = CertificateDer::from_pem_slice(text("pem")?.as_bytes());
        let key = PrivatePkcs8KeyDer::from_pem_slice(text("key")?.as_bytes());
        let certificate = certificate.map_err(|error| not_made(&error))?.to_vec();
        let key = key.map_err(|error| not_made(&error))?.secret_pkcs8_der().to_vec();
        Ok(Signed { certificate, key })
    }

    fn save(&self) -> Result<(), Said> {
        files::write(&self.server_file(), &self.server_text())?;
        let about = serde_json::to_string_pretty(&self.about).unwrap_or_default();
        files::write(&self.folder.join(ABOUT), &(about + "\n"))
    }

    /// The configuration of the server. Its only external input is names, which are words.
    fn server_text(&self) -> String {
        let About { addresses, port, controller, system, agents, .. } = &self.about;
        let listen = SocketAddr::new(listening(addresses), *port);
        let place = |name: &str| quoted(&self.folder.join(name));
        let mut users = String::new();
        let known = agents.iter().map(|agent| (&agent.key, Rights::of_agent(&agent.name)));
        for (key, rights) in [(controller, Rights::of_controller())].into_iter().chain(known) {
            let _ = writeln!(users, "    {{ nkey: {key}, {} }}", rights.text());
        }
        format!(
            "# Written by throng, which rewrites it when an agent is admitted or dismissed.\n\
             listen: \"{listen}\"\nserver_name: {DOMAIN}\n\
             ping_interval: \"2s\"\nping_max: 2\nwrite_deadline: \"10s\"\n\
             max_payload: {MESSAGE_BYTES_MAX}\n\
             log_file: {log}\nlog_size_limit: 16MB\npid_file: {pid}\n\
             jetstream {{ domain: {DOMAIN}, store_dir: {store}, max_mem: 64MB, \
             max_file: {STORE_GB}GB, sync_interval: always }}\n\
             tls {{ cert_file: {certificate}, key_file: {key}, ca_file: {authority}, \
             verify: true, handshake_first: true }}\n\
             accounts {{\n  SYS: {{ users: [ {{ nkey: {system} }} ] }}\n  \
             {ACCOUNT}: {{ jetstream: enabled, users: [\n{users}  ] }}\n}}\nsystem_account: SYS\n",
            log = quoted(&self.server_log()),
            pid = place("server.pid"),
            store = place("store"),
            certificate = place("server.pem"),
            key = place("server.key"),
            authority = place("authority.pem"),
        )
    }
}

/// The address that the server listens on: any, unless the fleet is only on this machine.
fn listening(addresses: &[IpAddr]) -> IpAddr {
    match addresses {
        all if all.iter().all(IpAddr::is_loopback) => all[0],
        all if all.iter().any(IpAddr::is_ipv6) => Ipv6Addr::UNSPECIFIED.into(),
        _ => Ipv4Addr::UNSPECIFIED.into(),
    }
}

/// The private key of an operator.
pub struct Signer(KeyPair);

impl Signer {
    /// The operator's signature of a text.
    pub fn sign(&self, text: &[u8]) -> Result<String, Said> {
        let signature = self.0.sign(text).map_err(|error| not_made(&error))?;
        Ok(URL_SAFE_NO_PAD.encode(signature))
    }
}

/// Quotes a path for the server's file.
fn quoted(path: &Path) -> String {
    format!("\"{}\"", path.display().to_string().replace('\\', "\\\\").replace('"', "\\\""))
}

fn seed(key: &KeyPair) -> Result<String, Said> {
    key.seed().map_err(|error| not_made(&error))
}

/// True if the operator with this public key has signed the text.
pub fn is_signed(operator: &str, text: &[u8], signature: &str) -> bool {
    let Ok(signature) = URL_SAFE_NO_PAD.decode(signature) else { return false };
    KeyPair::from_public_key(operator).is_ok_and(|key| key.verify(text, &signature).is_ok())
}

fn not_made(error: &dyn std::fmt::Display) -> Said {
    let error = Said::of_others(error.to_string());
    say!("cannot create or read a key of the fleet: {error}")
}

#[cfg(test)]
mod tests;
