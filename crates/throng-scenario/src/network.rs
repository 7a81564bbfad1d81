//! Targets, and the route to them.
//!
//! - [`target`]: addresses, TLS and connections; [`instance`]: identifies the instance behind one.
//! - [`lookup`], [`route`]: name resolution, and other routes for connections.
//! - [`source`]: source addresses; [`streams`]: concurrent iterations on one connection.
//! - [`users`]: the simulated network between users and targets.

pub(crate) mod instance;
pub(crate) mod lookup;
pub(crate) mod route;
pub(crate) mod source;
pub(crate) mod streams;
pub(crate) mod target;
pub(crate) mod users;
