//! Why nothing was started.

use std::net::IpAddr;

use throng_base::Said;
use throng_data::DataError;

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StartError {
    /// A target's name has no address.
    Resolve { host: String, reason: Said },
    /// A list does not allow an address of a target.
    NotAllowed { host: String, address: IpAddr, list: String },
    /// A list does not allow what listens on this host alone.
    NotAllowedSocket { socket: String, list: String },
    /// A certificate or key of the scenario cannot be used.
    Tls(Said),
    /// A source of data cannot be read.
    Data(Box<DataError>),
    /// This host does not give what a shard needs.
    Host(Said),
    /// Connections cannot come from where they are to.
    Sources(Said),
}
