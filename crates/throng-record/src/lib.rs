//! A proxy that records what passes it as a HAR file, which `throng-import` makes a scenario of.
//!
//! - [`authority`]: the proxy's own certificate authority. Browsers that trust it can be recorded
//!   over TLS.
//! - [`command`]: `throng record`, up to the scenario.
//! - [`har`]: the file. It is a whole HAR file after each request, however the recording ends.
//! - `exchange`: a request and its response while they pass; it enters the file when both ended.
//!   `entry`: what is known of them.
//! - `headers`: what a proxy changes in a head. `sockets`: the messages of a WebSocket.
//! - `upstream`: connections to the services. `proxy`: the connections of the browser.
//!
//! Bodies are passed on as they come and kept up to a limit. Nothing is printed here.

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

/// What to do with requests to a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Record,
    /// Passed on without a look at it.
    Pass,
    /// By a list with this name.
    Refuse(String),
}

/// What a recording needs.
pub struct Setup {
    pub authority: Authority,
    /// How services are verified.
    pub tls: rustls::ClientConfig,
    /// What is wrong with the certificate of a service, in words.
    pub certificate_words: fn(&rustls::CertificateError) -> Said,
    /// Judges a host by its name and its addresses, of which there are none if the name is not
    /// found.
    pub judge: Judge,
    /// Is told what happens while it happens.
    pub tell: Box<dyn Fn(&Event) + Send + Sync>,
}

/// What to do with a host of this name and these addresses.
pub type Judge = Box<dyn Fn(&str, &[SocketAddr]) -> Verdict + Send + Sync>;

/// What happens during a recording. What holds for a host is told once.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// The head of a response has come, or no response will come.
    Request(Passed),
    /// The judge refuses a host.
    Refused { host: String, list: String },
    /// What is sent to a host is passed on without a look at it.
    Tunnelled(String),
    /// A client does not trust the authority, so it sends no request to the host.
    Untrusted(String),
}

/// A request that was passed on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Passed {
    pub method: String,
    /// Without the query, which may have secrets.
    pub url: String,
    pub status: u16,
    /// Until the head of the response came.
    pub took: Duration,
    /// Why the service did not respond.
    pub error: Option<String>,
}
