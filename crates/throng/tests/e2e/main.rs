//! The integration tests: the binary as a person runs it, against real servers, on loopback.
//! It is the one of the environment's THRONG_BIN, or the one that cargo has built.

mod clock;
mod docs;
mod faulty;
mod http;
mod loads;
mod machines;
mod pages;
mod protocols;
mod results;
mod run;
mod scenarios;
mod scribe;
mod servers;
mod service;
mod sessions;
mod showcase;
mod write;
