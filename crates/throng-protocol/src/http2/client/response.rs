//! Builds a response from the frames of one stream (RFC 9113, 8).

use super::Client;
use super::incoming::{At, Call, Read};
use super::streams::{Phase, Stream};
use crate::http1::{BodyFraming, Event as Part, Head, Headers, HttpError, RequestKind};
use crate::http2::hpack::Refusal;
use crate::http2::section::{Noted, Section};
use crate::http2::{ErrorCode, Event, Limits, Malformed, Token, Violation};

impl Client {
    /// A complete header block: a head, or trailers.
    pub(super) fn head_block<'a>(
        &mut self,
        place: Option<usize>,
        (id, end): (u32, bool),
        block: &[u8],
        wire_bytes: usize,
        call: &mut Call<'a, '_>,
    ) -> Read<'a> {
        let Some(lines) = call.room.take() else { return Ok(None) };
        let phase = place.map(|place| self.streams.at(place).phase);
        let is_trailers = phase.is_some_and(|phase| phase != Phase::Head);
        let bytes_max = call.limits.head_bytes_max;
        let mut section = Section::new(lines, is_trailers, bytes_max);
        // Also if the stream is gone: the fields update the header table.
        self.decoder.decode(block, &mut section).map_err(|refusal| match refusal {
            Refusal::Broken(error) => Violation::Compression(error),
            Refusal::TooLarge if is_trailers => {
                Violation::Http(HttpError::TrailersTooLarge { bytes_max })
            }
            Refusal::TooLarge => Violation::Http(HttpError::HeadTooLarge { bytes_max }),
        })?;
        let noted = section.noted;
        let Some(place) = place else {
            call.room = Some(lines);
            let control_frames_max = call.limits.control_frames_max;
            let is_free = self.credit.spend(control_frames_max);
            return if is_free {
                Ok(None)
            } else {
                Err(Violation::Flood(super::FrameKind::HEADERS))
            };
        };
        self.credit.earn();
        let stream = self.streams.at(place);
        let part = match noted.fault {
            Some(fault) => Err(fault.into()),
            None if is_trailers => stream.trailers(end, lines),
            None => stream.head(end, noted, (lines, wire_bytes), call.limits),
        };
        let is_last = end || stream.too_large().is_some();
        Ok(Some(match part {
            // No trailers: only the end.
            Ok(Part::End) => self.complete(place, call.out),
            Ok(part) => {
                if is_last {
                    self.reading.at = At::End(id);
                }
                Event::Reply { token: Token(id), part }
            }
            Err(violation) => self.fail(place, violation, call.out),
        }))
    }

    /// The last part of a response was returned, or a head that announces too much.
    pub(super) fn end_stream(&mut self, id: u32, out: &mut Vec<u8>) -> Option<Event<'static>> {
        self.reading.at = At::Header;
        let place = self.streams.find(id)?;
        Some(match self.streams.at(place).too_large() {
            Some(violation) => self.fail(place, violation, out),
            None => self.complete(place, out),
        })
    }

    /// The response has ended. The unsent rest of the request is dropped (RFC 9113, 8.1).
    fn complete(&mut self, place: usize, out: &mut Vec<u8>) -> Event<'static> {
        let stream = self.streams.at(place);
        let token = Token(stream.id);
        if stream.sends {
            self.reset(place, ErrorCode::CANCEL, out);
        } else {
            self.forget(place);
        }
        Event::Reply { token, part: Part::End }
    }

    /// One response has failed; the connection can still be used.
    #[cold]
    pub(super) fn fail(
        &mut self,
        place: usize,
        violation: Violation,
        out: &mut Vec<u8>,
    ) -> Event<'static> {
        let token = Token(self.streams.at(place).id);
        self.reset(place, violation.error_code(), out);
        Event::Failed { token, violation }
    }
}

impl Stream {
    fn trailers<'a>(&self, end: bool, lines: &'a [u8]) -> Result<Part<'a>, Violation> {
        match (self.expected, self.received) {
            _ if !end => Err(Malformed::TrailersWithoutEnd.into()),
            (Some(expected), received) if expected != received => {
                Err(Malformed::LengthMismatch { expected, received }.into())
            }
            _ if lines.is_empty() => Ok(Part::End),
            _ => Ok(Part::Trailers(Headers::of_lines(lines))),
        }
    }

    fn head<'a>(
        &mut self,
        end: bool,
        noted: Noted,
        (lines, wire_bytes): (&'a [u8], usize),
        limits: &Limits,
    ) -> Result<Part<'a>, Violation> {
        let head = read_head(self.kind, end, noted, lines, wire_bytes)?;
        if head.status < 200 {
            let count_max = limits.informational_max;
            if self.informational == count_max {
                return Err(Violation::Http(HttpError::TooManyInformational { count_max }));
            }
            self.informational += 1;
            return Ok(Part::Informational(head));
        }
        let is_tunnel = self.kind == RequestKind::Connect && head.status < 300;
        self.phase = match head.framing {
            BodyFraming::None if !is_tunnel => Phase::NoBody,
            _ => Phase::Body,
        };
        if let BodyFraming::Length(length) = head.framing {
            self.expected = Some(length);
        }
        Ok(Part::Head(head))
    }

    /// A frame with `length` bytes of body starts.
    pub(super) fn expect_data(&mut self, length: u32, end: bool) -> Result<(), Violation> {
        let received = self.received + u64::from(length);
        let bytes_max = self.body_bytes_max;
        let differs = |expected| if end { received != expected } else { received > expected };
        match self.expected {
            _ if self.phase == Phase::Head => Err(Malformed::DataBeforeHead.into()),
            _ if self.phase == Phase::NoBody && length > 0 => {
                Err(Malformed::DataWithoutBody.into())
            }
            Some(expected) if differs(expected) => {
                Err(Malformed::LengthMismatch { expected, received }.into())
            }
            _ if received > bytes_max => {
                Err(Violation::Http(HttpError::BodyTooLarge { bytes_max }))
            }
            _ => {
                self.received = received;
                Ok(())
            }
        }
    }
}

/// Interprets the fields of a head.
#[inline]
fn read_head<'a>(
    kind: RequestKind,
    end: bool,
    noted: Noted,
    lines: &'a [u8],
    wire_bytes: usize,
) -> Result<Head<'a>, Violation> {
    let status = noted.status.ok_or(Malformed::NoStatus)?;
    if status == 101 {
        return Err(Malformed::SwitchingProtocols.into());
    }
    if status < 200 && end {
        return Err(Malformed::InformationalEnd.into());
    }
    let is_tunnel = kind == RequestKind::Connect && (200..300).contains(&status);
    let framing =
        if kind == RequestKind::Head || matches!(status, 100..200 | 204 | 304) || is_tunnel {
            BodyFraming::None
        } else {
            match noted.length.get().map_err(Violation::Http)? {
                Some(expected) if end && expected > 0 => {
                    return Err(Malformed::LengthMismatch { expected, received: 0 }.into());
                }
                Some(length) => BodyFraming::Length(length),
                None if end => BodyFraming::Length(0),
                None => BodyFraming::UntilClose,
            }
        };
    Ok(Head {
        status,
        version_major: 2,
        version_minor: 0,
        keep_alive: true,
        upgrade: false,
        has_set_cookie: noted.has_set_cookie,
        framing,
        headers: Headers::of_lines(lines),
        reason: &[],
        content_encoding: noted.encoding.map(|range| &lines[range]),
        bytes: wire_bytes,
    })
}
