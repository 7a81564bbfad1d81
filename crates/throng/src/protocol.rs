//! `throng protocol`: how a tester gets the declaration of a private protocol right. Draws its
//! packets, decodes bytes and captures by it, encodes messages.

use std::io::IsTerminal as _;
use std::path::Path;
use std::sync::Arc;

use throng_base::{Diagnostic, Exit, Said, Source, plain};
use throng_packets::decode::{Sinks, decode};
use throng_packets::reading;
use throng_packets::telling::{How, Telling};
use throng_packets::{Ink, layout, page};
use throng_protocol::framed::declaration::{Declaration, Framing};
use throng_protocol::framed::{Decoded, MessageId, Protocol};
use throng_scenario::protocol::library;
use throng_scenario::protocol::{NoText, given, read_protocol, text_of};
use throng_scenario::{CompileOptions, RunOptions, SOURCE_BYTES_MAX, read_disk};
use throng_terminal::Screen;

use crate::Ended;
use crate::arguments::ProtocolArguments;
use crate::reflect::write_descriptors;

pub(crate) fn protocol(arguments: &ProtocolArguments) -> Ended {
    let screen = Screen::output(arguments.no_color);
    let errors = Screen::errors(arguments.no_color);
    let told = |error: Box<Diagnostic>| errors.refused(&error);
    if let Some(url) = &arguments.reflection.reflect {
        return write_descriptors(url, arguments, errors);
    }
    if arguments.list {
        list(arguments.json, screen);
        return Ok(Exit::Success);
    }
    if let Some(name) = &arguments.show {
        let name = name.strip_prefix(library::PREFIX).unwrap_or(name);
        let Some(shipped) = library::find(name) else {
            return Err(errors.refused(&library::unknown(name)));
        };
        screen.text(shipped.text);
        return Ok(Exit::Success);
    }
    // Without a URL there is a file.
    let file = arguments.file.as_deref().unwrap_or(Path::new(""));
    let protocol = load(file, errors)?;
    let only = arguments.message.as_deref().map(|name| named(&protocol, name)).transpose();
    let command = Command { arguments, protocol: &protocol, only: only.map_err(told)?, screen };
    let done = match (&arguments.decode, &arguments.encode) {
        (Some(input), _) => command.decode(input),
        (None, Some(text)) => command.encode(text),
        (None, None) => {
            command.draw();
            Ok(Exit::Success)
        }
    };
    done.map_err(told)
}

/// The protocols that come with throng: names, and what they describe.
fn list(is_json: bool, screen: Screen) {
    let width = library::ALL.iter().map(|one| one.name.len()).max().unwrap_or_default();
    for one in library::ALL {
        let name = format!("{}{}", library::PREFIX, one.name);
        screen.line(&match is_json {
            true => serde_json::json!({"name": name, "title": one.title()}).to_string(),
            false => {
                format!("{name:<width$}  {}", one.title(), width = width + library::PREFIX.len())
            }
        });
    }
}

/// Reads a declaration; what is wrong with it is told.
fn load(file: &Path, errors: Screen) -> Result<Arc<Protocol>, Exit> {
    let source = source(file, errors)?;
    let base = file.parent().unwrap_or(Path::new("")).to_path_buf();
    let env = |name: &str| std::env::var(name).ok();
    let run = RunOptions::default();
    let options = CompileOptions { set: Vec::new(), base, read_file: &read_disk, env: &env, run };
    let read = read_protocol(&source, &options);
    let (protocol, warnings) = read.map_err(|told| errors.refused_all(&told))?;
    errors.diagnostics(&warnings);
    Ok(protocol)
}

/// The text of a file, or of one that comes with throng.
fn source(file: &Path, errors: Screen) -> Result<Arc<Source>, Exit> {
    if let Some(name) = file.to_str().and_then(|name| name.strip_prefix(library::PREFIX)) {
        return library::find(name).map(|shipped| shipped.source()).ok_or_else(|| {
            errors.diagnostic(&library::unknown(name));
            Exit::Usage
        });
    }
    let text = match plain::read_given(file, SOURCE_BYTES_MAX + 1).map(text_of) {
        Ok(Ok(text)) => text,
        Ok(Err(NoText::TooLarge)) => {
            let error = Diagnostic::error(
                "file-too-large",
                say!("the protocol file is larger than 16 MiB"),
            );
            return Err(errors.refused(&error.help(say!("split the protocol into several files"))));
        }
        Ok(Err(NoText::NotUtf8)) => {
            return Err(unreadable(file, say!("it is not UTF-8 text"), errors));
        }
        Err(error) => return Err(unreadable(file, Said::of_error(&error), errors)),
    };
    Ok(Source::new(file.display().to_string(), text))
}

#[allow(clippy::needless_pass_by_value)] // A sentence is handed over to what says it.
fn unreadable(path: &Path, reason: Said, errors: Screen) -> Exit {
    let message = say!("cannot read the protocol {}: {reason}", path.display());
    let help =
        say!("give the path of a protocol file (YAML): `throng protocol chat.protocol.yaml`");
    errors.diagnostic(&Diagnostic::error("file-unreadable", message).help(help));
    Exit::Usage
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
    arguments: &'c ProtocolArguments,
    protocol: &'c Protocol,
    only: Option<MessageId>,
    screen: Screen,
}

impl Command<'_> {
    fn ink(&self) -> Ink {
        Ink { colour: self.screen.style.colour, width: self.screen.style.width }
    }

    fn declaration(&self) -> &Declaration {
        self.protocol.declaration()
    }

    fn draw(&self) {
        let name = self.only.map(|only| self.protocol.info(only).name.as_str());
        let mut messages = self.declaration().messages.iter();
        let only = name.and_then(|name| messages.find(|one| one.name.value == name));
        if self.arguments.json {
            return self.screen.line(&page::machine(self.declaration(), only).to_string());
        }
        let title: String =
            self.arguments.file.iter().map(|file| file.display().to_string()).collect();
        self.screen.text(&page::page(self.declaration(), &title, only, &self.ink()));
    }

    fn encode(&self, text: &str) -> Result<Exit, Box<Diagnostic>> {
        let arguments = self.arguments;
        let encoded = given::encode(self.protocol, text, arguments.seq.unwrap_or(0))?;
        let bytes = &encoded.bytes;
        if arguments.raw {
            throng_terminal::screen::output(bytes);
            return Ok(Exit::Success);
        }
        if !arguments.json {
            self.screen.line(&layout::hex_text(bytes));
        }
        if arguments.json || std::io::stdout().is_terminal() {
            self.show(encoded.message, bytes);
        }
        Ok(Exit::Success)
    }

    /// The packet that was encoded, decoded again.
    fn show(&self, message: MessageId, bytes: &[u8]) {
        let delimiter = match &self.declaration().framing {
            Framing::Delimiter { bytes, .. } => bytes.value.len(),
            Framing::Length | Framing::Fixed(_) | Framing::Fields { .. } => 0,
        };
        let packet = &bytes[..bytes.len().saturating_sub(delimiter)];
        let mut decoded = Decoded::default();
        // Where no field says which message it is, it is the one that was asked for.
        let Ok(read) = self.protocol.decode_as(message, packet, &mut decoded) else { return };
        let mut telling = self.telling();
        let exchange = reading::Exchange::Alone;
        let found =
            reading::Found::Packet { bytes: packet, decoded: &decoded, packet: read, exchange };
        self.screen.text(&telling.tell(reading::Place::default(), &found));
    }

    fn telling(&self) -> Telling<'_> {
        let arguments = self.arguments;
        let only = self.only.map(|only| self.protocol.info(only).name.clone());
        let how =
            How { json: arguments.json, full: arguments.full, only, summary: arguments.summary };
        Telling::new(self.protocol, how, self.ink())
    }

    fn decode(&self, input: &str) -> Result<Exit, Box<Diagnostic>> {
        let Command { arguments, protocol, screen, .. } = self;
        let errors = Screen::errors(arguments.no_color);
        let mut text = |text: &str| screen.text(text);
        let mut warn = |said| errors.say(said);
        let sinks = Sinks { text: &mut text, warn: &mut warn };
        let fits = decode(protocol, input, arguments.port, &mut self.telling(), sinks)?;
        Ok(if fits { Exit::Success } else { Exit::ThresholdsNotMet })
    }
}
