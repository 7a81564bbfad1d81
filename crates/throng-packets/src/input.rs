//! The input to decode, as given on the command line: a file, standard input, or the bytes
//! themselves.

use std::io::{Cursor, Read};
use std::path::Path;

use throng_base::{Diagnostic, Said, Source, Span};
use throng_protocol::framed::declaration::{Declaration, Format, Framing};

use crate::capture;
use crate::hex::{self, HexMistake, HexMistakeKind, Pasted};

/// The maximum size of a file of bytes that is not a capture.
const FILE_BYTES_MAX: u64 = 256 << 20;
/// The name of a command line text in messages.
const COMMAND_LINE: &str = "command line";

/// The input to decode.
pub enum Input {
    Pasted(Pasted),
    Capture(Box<dyn Read + Send>),
}

/// A file, standard input, or the bytes themselves.
pub fn find(input: &str, declaration: &Declaration) -> Result<Input, Box<Diagnostic>> {
    let path = Path::new(input);
    let is_folder = path.is_dir();
    if input != "-" && (is_folder || !path.exists()) {
        return match hex::read(input) {
            Ok(pasted) => Ok(Input::Pasted(pasted)),
            Err(_) if is_folder => Err(no_file(input, &say!("it is a directory"))),
            Err(mistake) => {
                let looks_like_hex = matches!(mistake.kind, HexMistakeKind::OddDigits);
                let is_path = input.contains(['/', '.']) && !looks_like_hex;
                Err(match is_path {
                    true => no_file(input, &say!("there is no such file")),
                    false => bad_hex(COMMAND_LINE, input, &mistake),
                })
            }
        };
    }
    let opened: std::io::Result<Box<dyn Read + Send>> = match input {
        "-" => Ok(Box::new(std::io::stdin())),
        path => std::fs::File::open(path).map(|file| Box::new(file) as Box<dyn Read + Send>),
    };
    let mut opened = opened.map_err(|error| no_file(input, &Said::of_error(&error)))?;
    let mut first = Vec::new();
    let head = opened.by_ref().take(4).read_to_end(&mut first);
    head.map_err(|error| no_file(input, &Said::of_error(&error)))?;
    if capture::is_capture(&first) {
        return Ok(Input::Capture(Box::new(Cursor::new(first).chain(opened))));
    }
    let rest = opened.take(FILE_BYTES_MAX).read_to_end(&mut first);
    rest.map_err(|error| no_file(input, &Said::of_error(&error)))?;
    if first.len() as u64 > FILE_BYTES_MAX {
        return Err(no_file(input, &say!("it is larger than 256 MiB")));
    }
    whole(input, first, declaration).map(Input::Pasted)
}

/// A file that is not a capture: bytes, or text that encodes bytes.
fn whole(name: &str, bytes: Vec<u8>, declaration: &Declaration) -> Result<Pasted, Box<Diagnostic>> {
    let ends_with = |end: &str| name.to_ascii_lowercase().ends_with(end);
    if ends_with(".bin") {
        return Ok(Pasted::Bytes(bytes));
    }
    let Ok(text) = std::str::from_utf8(&bytes) else {
        return Ok(Pasted::Bytes(bytes));
    };
    match hex::read(text) {
        Ok(pasted) => Ok(pasted),
        // Packets of a line protocol are text themselves.
        Err(mistake) => {
            let is_text = match declaration.framing {
                Framing::Delimiter { .. } => true,
                Framing::Document { .. } => !declaration.format.is_some_and(Format::is_binary),
                _ => false,
            };
            match is_text {
                true if !ends_with(".hex") => Ok(Pasted::Bytes(bytes)),
                _ => Err(bad_hex(name, text, &mistake)),
            }
        }
    }
}

fn no_file(name: &str, reason: &Said) -> Box<Diagnostic> {
    let message = say!("cannot read {name}: {reason}");
    let help =
        say!("give bytes in hex, a file with bytes or hex, a capture (pcap, pcapng), or `-`");
    Box::new(Diagnostic::error("file-unreadable", message).help(help))
}

fn bad_hex(name: &str, text: &str, mistake: &HexMistake) -> Box<Diagnostic> {
    let message = match mistake.kind {
        HexMistakeKind::Empty => say!("the input contains no bytes"),
        HexMistakeKind::NoDigit(found) => say!("`{found}` is not a hexadecimal digit"),
        HexMistakeKind::OddDigits => {
            say!("a byte requires two hexadecimal digits, but one is missing here")
        }
        HexMistakeKind::TooLong => say!("the input is larger than 64 MiB"),
    };
    let source = Source::new(name, text);
    let span = Span { source, start: mistake.place.start, end: mistake.place.end };
    let error = Diagnostic::error("bad-hex", message).at(span);
    Box::new(
        error.help(say!("write pairs of the digits 0-9 and a-f: `c4 a7 00`, or give a .bin file")),
    )
}
