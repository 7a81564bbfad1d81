//! Audits: what the target says of its users and of its books, compared with what the generator
//! knows.
//!
//! - [`judge`]: decides who is right, as a pure function of readings and the presence of users.
//! - [`views`]: reads the users that the target lists as online; [`books`]: reads a number.
//!   `redis` is one way to do so; the other is HTTP.
//! - [`worker`]: a thread for each audit, which reads, judges and tells.

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
