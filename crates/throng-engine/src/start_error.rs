//! Why a run did not start.

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
    /// A list does not allow targets that are only reachable from this host.
    NotAllowedSocket { socket: String, list: String },
    /// A certificate or key of the scenario cannot be used.
    Tls(Said),
    /// A data source cannot be read.
    Data(Box<DataError>),
    /// This host lacks a resource that a shard needs.
    Host(Said),
    /// The requested source addresses or ports cannot be used.
    Sources(Said),
}
