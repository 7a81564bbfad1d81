//! The packets of declared protocols, to help write declarations: pure functions from bytes to
//! their meaning, and from a declaration to its drawing.
//!
//! - [`input`] is the input: [`hex`] reads pasted bytes, [`capture`] reads pcap and pcapng;
//!   [`streams`] reorders the segments of a capture.
//! - [`reading`] finds packets in bytes and matches replies with requests; [`telling`] prints the
//!   results, in readable form and as JSON.
//! - [`mod@decode`] combines them, from the input to text.
//! - [`command`]: `throng protocol`.
//! - [`page`] draws a declaration, using [`layout`].

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

/// The styling of text, and its maximum width.
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
