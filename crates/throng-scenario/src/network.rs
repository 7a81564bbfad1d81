//! What is loaded, and the way there.
//!
//! - [`target`]: addresses, TLS and connections; [`instance`]: what names the instance behind one.
//! - [`lookup`], [`route`]: what the name of a target resolves to, and where else connections go.
//! - [`source`]: where connections come from; [`streams`]: how many iterations share one.
//! - [`users`]: the network between users and their targets.

pub(crate) mod instance;
pub(crate) mod lookup;
pub(crate) mod route;
pub(crate) mod source;
pub(crate) mod streams;
pub(crate) mod target;
pub(crate) mod users;
