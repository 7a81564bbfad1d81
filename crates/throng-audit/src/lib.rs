//! Audits: compares the target's view of its users and its counts with what the generator knows.
//!
//! - [`judge`]: compares readings with the presence of users, as a pure function.
//! - [`views`]: reads the users that the target lists as online; [`books`]: reads a count. Both use
//!   `redis` or HTTP.
//! - [`worker`]: a thread for each audit, which reads, judges and reports.

#![forbid(unsafe_code)]

#[macro_use]
extern crate throng_base;

pub mod books;
pub mod judge;
mod listed;
mod redis;
pub mod views;
pub mod worker;

pub use views::Own;
pub use worker::{Ask, Audits, Found, Heard};
