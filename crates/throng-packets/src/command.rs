//! `throng protocol`: draws the packets of a declared protocol, decodes bytes and captures, and
//! encodes messages.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use throng_base::{Diagnostic, Said, Source, plain};
use throng_protocol::framed::declaration::{Declaration, Framing};
use throng_protocol::framed::{Decoded, MessageId, Protocol};
use throng_scenario::protocol::library;
use throng_scenario::protocol::{NoText, given, read_protocol, text_of};
use throng_scenario::{CompileOptions, RunOptions, SOURCE_BYTES_MAX, read_disk};

use crate::decode::{Sinks, decode};
use crate::telling::{How, Telling};
use crate::{Ink, layout, page, reading};

/// What is shown of a protocol.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n\
         \x20 throng protocol chat.yaml                           packet layouts as diagrams and \
         tables\n\
         \x20 throng protocol chat.yaml --decode 'c4 a7 00 00'    bytes; output of xxd and tcpdump \
         works too\n\
         \x20 throng protocol chat.yaml --decode load.pcap --port 9000\n\
         \x20 throng protocol chat.yaml --encode 'join: {room: 42, user: 7, token: t-7}' --seq 1\n\
         \x20 throng protocol --reflect grpc://127.0.0.1:50051 -o shop.desc\n\
         \n\
         Exit codes: 0 all bytes match the declaration, 1 some do not, 2 usage or declaration \
         error, 4 no server reflection.")]
pub struct ProtocolOptions {
    /// Protocol file (YAML), or one that comes with throng: `throng:NAME`
    #[arg(
        required_unless_present_any = ["reflect", "list", "show"],
        conflicts_with_all = ["reflect", "list", "show"]
    )]
    pub file: Option<PathBuf>,
    /// List the protocols that come with throng
    #[arg(long, conflicts_with_all = ["decode", "encode", "message", "show", "reflect"])]
    pub list: bool,
    /// Print a protocol file that comes with throng
    #[arg(
        long,
        value_name = "NAME",
        conflicts_with_all = ["decode", "encode", "message", "reflect"]
    )]
    pub show: Option<String>,
    /// Decode bytes: hex, a file with hex or bytes, a capture (pcap, pcapng), or `-`
    #[arg(long, value_name = "HEX|FILE", conflicts_with = "encode", allow_hyphen_values = true)]
    pub decode: Option<String>,
    /// Encode a message, written as in a scenario: `join: {room: 42}`
    #[arg(long, value_name = "MESSAGE")]
    pub encode: Option<String>,
    #[command(flatten)]
    pub reflection: ReflectionOptions,
    /// Show only this message
    #[arg(long, value_name = "NAME", conflicts_with = "encode")]
    pub message: Option<String>,
    /// Use only connections to this server port
    #[arg(long, value_name = "N", requires = "decode")]
    pub port: Option<u16>,
    /// Value of the field that correlates requests and replies; 0 by default
    #[arg(long, value_name = "N", requires = "encode")]
    pub seq: Option<u64>,
    /// Write the encoded message as raw bytes
    #[arg(long, requires = "encode", conflicts_with = "json")]
    pub raw: bool,
    /// Do not shorten fields and values
    #[arg(long)]
    pub full: bool,
    /// Print only the summary of decoded packets
    #[arg(long, requires = "decode")]
    pub summary: bool,
    /// Print JSON, with one line per decoded packet
    #[arg(long)]
    pub json: bool,
    /// Do not use colors; the environment variable NO_COLOR does the same
    #[arg(long)]
    pub no_color: bool,
}

/// A gRPC server with reflection, which `throng-run` queries.
#[derive(Args, Debug)]
pub struct ReflectionOptions {
    /// Query a gRPC server (grpc://HOST:PORT or grpcs://HOST) by server reflection and write a
    /// descriptor set of its services, for `proto` in scenarios
    #[arg(long, value_name = "URL", conflicts_with_all = ["decode", "encode", "message"])]
    pub reflect: Option<String>,
    /// Write the descriptor set to this file; by default to standard output
    #[arg(short = 'o', long, value_name = "FILE", requires = "reflect")]
    pub output: Option<PathBuf>,
    /// Request metadata, `name: value`; may be given more than once
    #[arg(
        short = 'H',
        long = "header",
        value_name = "HEADER",
        requires = "reflect",
        allow_hyphen_values = true
    )]
    pub headers: Vec<String>,
    /// Accept any server certificate
    #[arg(long, requires = "reflect")]
    pub insecure: bool,
    /// Trust the certificates in this file instead of the system certificates
    #[arg(long, value_name = "FILE", requires = "reflect")]
    pub cacert: Option<PathBuf>,
}

/// Why nothing was shown.
pub enum Failure {
    Refused(Box<Diagnostic>),
    /// All errors in a declaration.
    Mistakes(Vec<Diagnostic>),
}

impl From<Box<Diagnostic>> for Failure {
    fn from(diagnostic: Box<Diagnostic>) -> Failure {
        Failure::Refused(diagnostic)
    }
}

/// The result after everything was shown.
pub struct Shown {
    /// All bytes match the declaration.
    pub fits: bool,
    /// A message to write as raw bytes.
    pub raw: Option<Vec<u8>>,
}

/// Shows what the options request. `warned` receives the warnings about the declaration.
///
/// # Errors
/// The declaration or the input is not valid.
pub fn show(
    options: &ProtocolOptions,
    ink: Ink,
    sinks: Sinks<'_>,
    warned: impl FnOnce(&[Diagnostic]),
) -> Result<Shown, Failure> {
    let mut shown = Shown { fits: true, raw: None };
    if options.list {
        list(options.json, sinks.text);
        return Ok(shown);
    }
    if let Some(name) = &options.show {
        let name = name.strip_prefix(library::PREFIX).unwrap_or(name);
        let shipped = library::find(name).ok_or_else(|| Box::new(library::unknown(name)))?;
        (sinks.text)(shipped.text);
        return Ok(shown);
    }
    // Without a URL, the file is set.
    let file = options.file.as_deref().unwrap_or(Path::new(""));
    let protocol = load(file, warned)?;
    let only = options.message.as_deref().map(|name| named(&protocol, name)).transpose()?;
    let command = Command { options, protocol: &protocol, only, ink };
    match (&options.decode, &options.encode) {
        (Some(input), _) => {
            let telling = &mut command.telling();
            shown.fits = decode(&protocol, input, options.port, telling, sinks)?;
        }
        (None, Some(text)) => shown.raw = command.encode(text, sinks.text)?,
        (None, None) => (sinks.text)(&command.drawn()),
    }
    Ok(shown)
}

/// The built-in protocols: names, and descriptions.
fn list(is_json: bool, out: &mut dyn FnMut(&str)) {
    let width = library::ALL.iter().map(|one| one.name.len()).max().unwrap_or_default();
    for one in library::ALL {
        let name = format!("{}{}", library::PREFIX, one.name);
        let line = match is_json {
            true => serde_json::json!({"name": name, "title": one.title()}).to_string(),
            false => {
                format!("{name:<width$}  {}", one.title(), width = width + library::PREFIX.len())
            }
        };
        out(&format!("{line}\n"));
    }
}

/// Reads a declaration.
fn load(file: &Path, warned: impl FnOnce(&[Diagnostic])) -> Result<Arc<Protocol>, Failure> {
    let source = source(file)?;
    let base = file.parent().unwrap_or(Path::new("")).to_path_buf();
    let env = |name: &str| std::env::var(name).ok();
    let run = RunOptions::default();
    let options = CompileOptions { set: Vec::new(), base, read_file: &read_disk, env: &env, run };
    let read = read_protocol(&source, &options);
    let (protocol, warnings) = read.map_err(Failure::Mistakes)?;
    warned(&warnings);
    Ok(protocol)
}

/// The text of a file, or of a built-in one.
fn source(file: &Path) -> Result<Arc<Source>, Box<Diagnostic>> {
    if let Some(name) = file.to_str().and_then(|name| name.strip_prefix(library::PREFIX)) {
        let shipped = library::find(name).ok_or_else(|| Box::new(library::unknown(name)))?;
        return Ok(shipped.source());
    }
    let text = match plain::read_given(file, SOURCE_BYTES_MAX + 1).map(text_of) {
        Ok(Ok(text)) => text,
        Ok(Err(NoText::TooLarge)) => {
            let message = say!("the protocol file is larger than 16 MiB");
            let error = Diagnostic::error("file-too-large", message);
            return Err(error.help(say!("split the protocol into several files")).into());
        }
        Ok(Err(NoText::NotUtf8)) => return Err(unreadable(file, &say!("it is not UTF-8 text"))),
        Err(error) => return Err(unreadable(file, &Said::of_error(&error))),
    };
    Ok(Source::new(file.display().to_string(), text))
}

fn unreadable(path: &Path, reason: &Said) -> Box<Diagnostic> {
    let message = say!("cannot read the protocol {}: {reason}", path.display());
    let help =
        say!("give the path of a protocol file (YAML): `throng protocol chat.protocol.yaml`");
    Box::new(Diagnostic::error("file-unreadable", message).help(help))
}

fn named(protocol: &Protocol, name: &str) -> Result<MessageId, Box<Diagnostic>> {
    protocol.message(name).ok_or_else(|| {
        let names: Vec<&str> = protocol.messages().map(|(_, info)| info.name.as_str()).collect();
        let message = say!("the protocol has no message `{name}`");
        let error = Diagnostic::error("unknown-message", message);
        Box::new(match throng_base::diagnostic::did_you_mean(name, names.iter().copied()) {
            Some(near) => error.help(say!("did you mean `{near}`?")),
            None => error.help(say!("`throng protocol FILE` shows all messages")),
        })
    })
}

struct Command<'c> {
    options: &'c ProtocolOptions,
    protocol: &'c Protocol,
    only: Option<MessageId>,
    ink: Ink,
}

impl Command<'_> {
    fn declaration(&self) -> &Declaration {
        self.protocol.declaration()
    }

    fn drawn(&self) -> String {
        let name = self.only.map(|only| self.protocol.info(only).name.as_str());
        let mut messages = self.declaration().messages.iter();
        let only = name.and_then(|name| messages.find(|one| one.name.value == name));
        if self.options.json {
            return format!("{}\n", page::machine(self.declaration(), only));
        }
        let title: String =
            self.options.file.iter().map(|file| file.display().to_string()).collect();
        page::page(self.declaration(), &title, only, &self.ink)
    }

    /// Shows a message as bytes, or returns them raw.
    fn encode(
        &self,
        text: &str,
        out: &mut dyn FnMut(&str),
    ) -> Result<Option<Vec<u8>>, Box<Diagnostic>> {
        let options = self.options;
        let encoded = given::encode(self.protocol, text, options.seq.unwrap_or(0))?;
        if options.raw {
            return Ok(Some(encoded.bytes));
        }
        if !options.json {
            out(&format!("{}\n", layout::hex_text(&encoded.bytes)));
        }
        if options.json || std::io::stdout().is_terminal() {
            out(&self.decoded(encoded.message, &encoded.bytes));
        }
        Ok(None)
    }

    /// The packet that was encoded, decoded again.
    fn decoded(&self, message: MessageId, bytes: &[u8]) -> String {
        let delimiter = match &self.declaration().framing {
            Framing::Delimiter { bytes, .. } => bytes.value.len(),
            _ => 0,
        };
        let packet = &bytes[..bytes.len().saturating_sub(delimiter)];
        let mut decoded = Decoded::default();
        // If no field identifies the message, it is the requested one.
        let Ok(read) = self.protocol.decode_as(message, packet, &mut decoded) else {
            return String::new();
        };
        let exchange = reading::Exchange::Alone;
        let found =
            reading::Found::Packet { bytes: packet, decoded: &decoded, packet: read, exchange };
        self.telling().tell(reading::PacketPlace::default(), &found)
    }

    fn telling(&self) -> Telling<'_> {
        let ProtocolOptions { json, full, summary, .. } = *self.options;
        let only = self.only.map(|only| self.protocol.info(only).name.clone());
        Telling::new(self.protocol, How { json, full, only, summary }, self.ink)
    }
}
