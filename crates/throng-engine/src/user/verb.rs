//! What the verbs do, each in a module of its own.

mod control;
pub(super) mod grpc;
pub(super) mod http;
mod opening;
pub(super) mod sql;
mod stay;
pub(super) mod talk;
mod unanswered;
