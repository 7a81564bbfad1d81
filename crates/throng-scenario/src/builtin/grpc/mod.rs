//! gRPC: calls that are a step, and calls that `connect` opens.

#[macro_use]
mod keys;
mod bench;
mod outline;
mod status;
mod step;

use super::{Builtin, PLAIN};

pub use bench::to_reflect;
pub(crate) use step::{find_method, read_call, read_message_of_call};

pub(super) static BUILTIN: Builtin = Builtin {
    verb: "grpc",
    opens: step::open,
    line: outline::line,
    connects: outline::connect_line,
    session: bench::write_session,
    ..PLAIN
};

#[cfg(test)]
mod tests;
