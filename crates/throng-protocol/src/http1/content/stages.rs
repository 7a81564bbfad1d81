//! Content codings: bytes in, bytes out, as much as there is room for.

use std::fmt;

use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};
use flate2::Decompress;

use super::gzip::Gzip;
use super::inflate::{Fault, Step, inflate};

#[derive(Debug)]
pub(super) enum Stage {
    Gzip(Box<Gzip>),
    Deflate(Deflate),
    Brotli(Box<Brotli>),
}

impl Stage {
    /// The stage for a coding's name in any case.
    pub(super) fn named(name: &[u8]) -> Option<Stage> {
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        if is("gzip") || is("x-gzip") {
            Some(Stage::Gzip(Box::new(Gzip::new())))
        } else if is("deflate") {
            Some(Stage::Deflate(Deflate::new()))
        } else if is("br") {
            Some(Stage::Brotli(Box::new(Brotli::new())))
        } else {
            None
        }
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            Stage::Gzip(_) => "gzip",
            Stage::Deflate(_) => "deflate",
            Stage::Brotli(_) => "br",
        }
    }

    /// Continues until `input` is used up or `output` is full.
    pub(super) fn step(&mut self, input: &[u8], output: &mut [u8]) -> Step {
        match self {
            Stage::Gzip(gzip) => gzip.step(input, output),
            Stage::Deflate(deflate) => deflate.step(input, output),
            Stage::Brotli(brotli) => brotli.step(input, output),
        }
    }

    /// True if the input may end here: at the end of the coded data, or before its start.
    pub(super) fn is_complete(&self) -> bool {
        match self {
            Stage::Gzip(gzip) => gzip.is_complete(),
            Stage::Deflate(deflate) => {
                matches!(deflate.state, DeflateState::Start | DeflateState::Done)
            }
            Stage::Brotli(brotli) => brotli.is_done || !brotli.is_begun,
        }
    }

    pub(super) fn reset(&mut self) {
        match self {
            Stage::Gzip(gzip) => gzip.reset(),
            Stage::Deflate(deflate) => deflate.state = DeflateState::Start,
            Stage::Brotli(brotli) => **brotli = Brotli::new(),
        }
    }
}

/// `deflate` should be zlib (RFC 1950), but some servers send raw deflate (RFC 1951). The first two
/// bytes show which.
#[derive(Debug)]
pub(super) struct Deflate {
    state: DeflateState,
    inflater: Decompress,
}

#[derive(Clone, Copy, Debug)]
enum DeflateState {
    Start,
    /// The first byte; the second has not arrived.
    Held(u8),
    Data,
    Done,
}

impl Deflate {
    fn new() -> Deflate {
        Deflate { state: DeflateState::Start, inflater: Decompress::new(true) }
    }

    fn step(&mut self, input: &[u8], output: &mut [u8]) -> Step {
        match (self.state, input) {
            (DeflateState::Start, [first, ..]) => {
                self.state = DeflateState::Held(*first);
                Ok((1, 0))
            }
            (DeflateState::Held(first), [second, ..]) => {
                let is_zlib = first & 0x0f == 8
                    && first >> 4 <= 7
                    && u16::from_be_bytes([first, *second]).is_multiple_of(31);
                self.inflater.reset(is_zlib);
                self.state = DeflateState::Data;
                // The first byte alone produces no output in either form, and neither ends there.
                match self.data(&[first], output)? {
                    (1, 0) => self.data(input, output),
                    _ => Err(Fault),
                }
            }
            (DeflateState::Data, _) => self.data(input, output),
            (DeflateState::Done, _) => zero_padding(input),
            (DeflateState::Start | DeflateState::Held(_), []) => Ok((0, 0)),
        }
    }

    fn data(&mut self, input: &[u8], output: &mut [u8]) -> Step {
        let (consumed, produced, is_end) = inflate(&mut self.inflater, input, output)?;
        if is_end {
            self.state = DeflateState::Done;
        }
        Ok((consumed, produced))
    }
}

/// Some servers pad their responses; anything but zeros is corruption.
fn zero_padding(input: &[u8]) -> Step {
    if input.iter().all(|byte| *byte == 0) { Ok((input.len(), 0)) } else { Err(Fault) }
}

type Decompressor = BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>;

/// RFC 7932.
pub(super) struct Brotli {
    state: Decompressor,
    is_begun: bool,
    is_done: bool,
}

impl Brotli {
    fn new() -> Brotli {
        let alloc = StandardAlloc::default;
        Brotli {
            state: Decompressor::new(alloc(), alloc(), alloc()),
            is_begun: false,
            is_done: false,
        }
    }

    fn step(&mut self, input: &[u8], output: &mut [u8]) -> Step {
        if self.is_done || (input.is_empty() && !self.is_begun) {
            return if input.is_empty() { Ok((0, 0)) } else { Err(Fault) };
        }
        self.is_begun = true;
        let (mut consumed, mut produced, mut total) = (0, 0, 0);
        let result = BrotliDecompressStream(
            &mut input.len(),
            &mut consumed,
            input,
            &mut output.len(),
            &mut produced,
            output,
            &mut total,
            &mut self.state,
        );
        match result {
            BrotliResult::ResultSuccess => self.is_done = true,
            BrotliResult::NeedsMoreInput | BrotliResult::NeedsMoreOutput => {}
            BrotliResult::ResultFailure => return Err(Fault),
        }
        Ok((consumed, produced))
    }
}

impl fmt::Debug for Brotli {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Brotli").field("is_done", &self.is_done).finish_non_exhaustive()
    }
}
