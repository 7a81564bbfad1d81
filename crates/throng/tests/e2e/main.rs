//! The integration tests: the binary as a person runs it, against real servers, on loopback.
//! It is the one of the environment's THRONG_BIN, or the one that cargo has built.

mod answers;
mod bench_http;
mod command_line;
mod curl;
mod examples;
mod explain;
mod faults;
mod faulty;
mod limits;
mod record;
mod run;
mod screen;
mod servers;
mod tcp;
mod tls;
mod truth;
mod websocket;
