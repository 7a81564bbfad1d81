//! A proxy that records its traffic as a HAR file, which `throng-import` converts to a scenario.
//!
//! - [`authority`]: the proxy's own certificate authority. Browsers that trust it can be recorded
//!   over TLS.
//! - [`command`]: `throng record`, including the conversion.
//! - [`har`]: the file. It is a complete HAR file after each request, however the recording ends.
//! - `exchange`: a request and its response while they are forwarded; `entry`: their data.
//! - `headers`: changes to headers. `sockets`: the messages of a WebSocket.
//! - `upstream`: connections to the services. `proxy`: the connections of the browser.
//!
//! Bodies are forwarded immediately and recorded up to a limit. Nothing is printed here.

#![forbid(unsafe_code)]

#[macro_use]
extern crate throng_base;

pub mod authority;
pub mod command;
mod entry;
mod exchange;
pub mod har;
mod headers;
mod proxy;
mod sockets;
mod upstream;

use std::net::SocketAddr;
use std::time::Duration;

use throng_base::Said;

pub use authority::Authority;
pub use entry::BODY_BYTES_MAX;
pub use har::Har;
pub use proxy::record;

/// The verdict on requests to a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Record,
    /// Forwarded without decryption or recording.
    Pass,
    /// Refused by a list with this name.
    Refuse(String),
}

/// The setup of a recording.
pub struct Setup {
    pub authority: Authority,
    /// The verification of services.
    pub tls: rustls::ClientConfig,
    /// The description of a service's invalid certificate.
    pub certificate_words: fn(&rustls::CertificateError) -> Said,
    /// Checks a host by its name and addresses; there are no addresses if the name is not found.
    pub judge: Judge,
    /// Receives events as they happen.
    pub tell: Box<dyn Fn(&Event) + Send + Sync>,
}

/// The verdict on a host with this name and these addresses.
pub type Judge = Box<dyn Fn(&str, &[SocketAddr]) -> Verdict + Send + Sync>;

/// An event during a recording. Events about a host are reported once.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// The head of a response has arrived, or there will be no response.
    Request(Passed),
    /// A host is refused.
    Refused { host: String, list: String },
    /// Traffic to a host is forwarded without recording.
    Tunnelled(String),
    /// A client does not trust the authority, so it sends no request to the host.
    Untrusted(String),
}

/// A request that was forwarded.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Passed {
    pub method: String,
    /// Without the query, which may contain secrets.
    pub url: String,
    pub status: u16,
    /// The time until the head of the response.
    pub took: Duration,
    /// Why the service did not respond.
    pub error: Option<String>,
}
