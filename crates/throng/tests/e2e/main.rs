//! The integration tests: the binary as a person runs it, against real servers, on loopback.
//! It is the one of the environment's THRONG_BIN, or the one that cargo has built.

mod answers;
mod attempt;
mod bench_http;
mod check;
mod chinese;
mod command_line;
mod curl;
mod data;
mod doctor;
mod examples;
mod explain;
mod faults;
mod faulty;
mod flow;
mod goals;
mod held;
mod init;
mod language;
mod limits;
mod meeting;
mod mistakes;
mod plan;
mod protocol;
mod record;
mod run;
mod scenarios;
mod schema;
mod screen;
mod scribe;
mod servers;
mod tcp;
mod tls;
mod truth;
mod verify;
mod websocket;
