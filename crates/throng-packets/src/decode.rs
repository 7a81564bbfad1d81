//! Bytes and captures as text, using a declaration: frames become streams, and streams become
//! packets.

use std::collections::BTreeSet;

use throng_base::{Diagnostic, Said};
use throng_protocol::framed::Protocol;
use throng_protocol::framed::declaration::Transport;

use crate::capture::{self, Carried, Frame, Passed};
use crate::hex::Pasted;
use crate::input::{Input, find};
use crate::reading::{Found, PacketPlace, Reading, Sink, Tally};
use crate::streams::Streams;
use crate::telling::Telling;

/// The maximum number of listed ports.
const PORTS_SHOWN_MAX: usize = 12;

/// Receivers of the output and of notes.
pub struct Sinks<'s> {
    pub text: &'s mut dyn FnMut(&str),
    pub warn: &'s mut dyn FnMut(Said),
}

/// Decodes the bytes or the file in `input`; of a capture, only this port. Returns whether all of
/// it matches the declaration.
///
/// # Errors
/// The input cannot be read, or has nothing to decode.
pub fn decode(
    protocol: &Protocol,
    input: &str,
    port: Option<u16>,
    telling: &mut Telling<'_>,
    sinks: Sinks<'_>,
) -> Result<bool, Box<Diagnostic>> {
    let Sinks { text, warn } = sinks;
    let mut sink = |place: PacketPlace, found: Found<'_>| text(&telling.tell(place, &found));
    let (tally, passed, repeated) = match find(input, protocol.declaration())? {
        Input::Pasted(Pasted::Bytes(bytes)) => {
            let mut reading = Reading::new(protocol);
            reading.bytes(&bytes, &mut sink);
            (reading.end(false, &mut sink), None, 0)
        }
        Input::Capture(input) => {
            let read = |sink: &mut dyn FnMut(Frame<'_>)| {
                capture::read(input, sink).map_err(|_| no_capture())
            };
            of_capture(protocol, port, (&mut sink, warn), read)?
        }
        Input::Pasted(Pasted::Frames(frames)) => {
            let read = |sink: &mut dyn FnMut(Frame<'_>)| {
                let mut passed = Passed::default();
                for frame in &frames {
                    if let Some(frame) = capture::read_packet(frame, &mut passed) {
                        sink(frame);
                    }
                }
                Ok(passed)
            };
            of_capture(protocol, port, (&mut sink, warn), read)?
        }
    };
    text(&telling.summary(&tally, passed.as_ref(), repeated));
    Ok(tally.fits())
}

/// Frames to streams to packets.
fn of_capture(
    protocol: &Protocol,
    port: Option<u16>,
    (sink, warn): (Sink<'_>, &mut dyn FnMut(Said)),
    read: impl FnOnce(&mut dyn FnMut(Frame<'_>)) -> Result<Passed, Box<Diagnostic>>,
) -> Result<(Tally, Option<Passed>, u64), Box<Diagnostic>> {
    let wants_datagrams = protocol.declaration().transport == Transport::Udp;
    let mut streams = Streams::new(port);
    let mut reading = Reading::new(protocol);
    let mut ports = BTreeSet::new();
    let mut carried = 0u64;
    let passed = read(&mut |frame| {
        if matches!(frame.carried, Carried::Datagram) != wants_datagrams {
            return;
        }
        if ports.len() < PORTS_SHOWN_MAX {
            ports.insert(frame.source.port().min(frame.target.port()));
        }
        streams.frame(&frame, &mut |event| {
            carried += 1;
            reading.event(event, sink);
        });
    })?;
    streams.end(&mut |event| {
        carried += 1;
        reading.event(event, sink);
    });
    if carried == 0 {
        return Err(nothing_carried(wants_datagrams, &ports));
    }
    let tally = reading.end(true, sink);
    if port.is_none() && ports.len() > 1 && !tally.fits() {
        warn(say!(
            "the capture has streams on several ports: {}; choose one with --port",
            listed(&ports)
        ));
    }
    Ok((tally, Some(passed), streams.repeated))
}

fn listed(ports: &BTreeSet<u16>) -> String {
    ports.iter().map(u16::to_string).collect::<Vec<_>>().join(", ")
}

fn no_capture() -> Box<Diagnostic> {
    let error = Diagnostic::error("bad-capture", say!("the file is not a readable capture"));
    Box::new(error.help(say!("write it with `tcpdump -w FILE`, or save it as pcap or pcapng")))
}

fn nothing_carried(wants_datagrams: bool, ports: &BTreeSet<u16>) -> Box<Diagnostic> {
    let message = match wants_datagrams {
        true => say!("the capture has no UDP datagrams to decode"),
        false => say!("the capture has no TCP data to decode"),
    };
    let error = Diagnostic::error("bad-capture", message);
    Box::new(match ports.is_empty() {
        true => error.help(say!("the protocol file sets the transport: `transport: udp`")),
        false => error
            .help(say!("choose one of the ports in the capture with `--port`: {}", listed(ports))),
    })
}
