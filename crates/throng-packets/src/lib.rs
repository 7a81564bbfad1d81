//! The packets of declared protocols, for the person who writes the declaration: pure functions
//! from bytes to what they mean, and from a declaration to its drawing.
//!
//! - [`input`] is what was given: [`hex`] reads bytes as people paste them, [`capture`] reads pcap
//!   and pcapng; [`streams`] puts the segments of a capture into order.
//! - [`reading`] finds packets in bytes and matches replies with requests; [`telling`] says what it
//!   found, for people and as JSON.
//! - [`mod@decode`] goes the whole way, from what was given to text.
//! - [`command`]: `throng protocol`.
//! - [`page`] draws a declaration, by [`layout`].

#![forbid(unsafe_code)]

#[macro_use]
extern crate throng_base;

pub mod capture;
pub mod command;
pub mod decode;
mod diagram;
pub mod hex;
pub mod input;
pub mod layout;
pub mod page;
pub mod reading;
pub mod streams;
pub mod telling;

#[cfg(test)]
mod tests;

/// How text is painted, and how wide it may be.
#[derive(Clone, Copy, Debug)]
pub struct Ink {
    pub colour: bool,
    pub width: usize,
}

impl Ink {
    fn paint(&self, code: &str, text: &str) -> String {
        throng_base::columns::paint(self.colour, code, text)
    }

    fn bold(&self, text: &str) -> String {
        self.paint("1", text)
    }

    fn dim(&self, text: &str) -> String {
        self.paint("2", text)
    }

    fn good(&self, text: &str) -> String {
        self.paint("32", text)
    }

    fn bad(&self, text: &str) -> String {
        self.paint("31", text)
    }

    fn warn(&self, text: &str) -> String {
        self.paint("33", text)
    }
}
