//! The content of messages in steps, independent of the connection.
//!
//! - [`body`], [`headers`]: the content of an HTTP request.
//! - [`declared`], [`fields`], [`proto`]: messages with fields, of declared protocols and Protobuf.
//! - Replies of several packets: [`packets`].
//! - [`json`]: JSON written as YAML.
//! - [`answer`]: what is looked at. [`checks`], [`save`]: what an answer has to be, and what is
//!   kept of it; [`matchers`]: values, comparisons and what finds them.

pub(crate) mod answer;
pub(crate) mod body;
pub(crate) mod checks;
pub(crate) mod declared;
pub(crate) mod fields;
pub(crate) mod headers;
pub(crate) mod json;
pub(crate) mod matchers;
pub(crate) mod packets;
pub(crate) mod proto;
pub(crate) mod save;
