//! What frames of one stream make together: a response (RFC 9113, 8).

use super::Client;
use super::incoming::Call;
use super::streams::Phase;
use crate::http1::{BodyFraming, Head, Headers, HttpError, RequestKind};
use crate::http2::hpack::Refusal;
use crate::http2::section::{Noted, Section};
use crate::http2::{ErrorCode, Event, Malformed, Token, Violation};

impl Client {
    /// A whole header block: a head, or trailers.
    pub(super) fn head_block<S: FnMut(Event<'_>) + ?Sized>(
        &mut self,
        id: u32,
        end: bool,
        block: &[u8],
        wire_bytes: usize,
        call: &mut Call<'_, S>,
    ) -> Result<(), Violation> {
        let place = self.streams.find(id);
        let phase = place.map(|place| self.streams.at(place).phase);
        let is_trailers = phase.is_some_and(|phase| phase != Phase::Head);
        let bytes_max = call.limits.head_bytes_max;
        let mut section = Section::new(call.lines, is_trailers, bytes_max);
        // Also when nobody waits for it any more: its fields are in the table from now on.
        self.decoder.decode(block, &mut section).map_err(|refusal| match refusal {
            Refusal::Broken(error) => Violation::Compression(error),
            Refusal::TooLarge if is_trailers => {
                Violation::Http(HttpError::TrailersTooLarge { bytes_max })
            }
            Refusal::TooLarge => Violation::Http(HttpError::HeadTooLarge { bytes_max }),
        })?;
        let noted = section.noted;
        let Some(place) = place else {
            let control_frames_max = call.limits.control_frames_max;
            let is_free = self.credit.spend(control_frames_max);
            return if is_free { Ok(()) } else { Err(Violation::Flood(super::Kind::Headers)) };
        };
        self.credit.earn();
        if let Some(fault) = noted.fault {
            self.fail(place, fault.into(), call);
        } else if is_trailers {
            self.trailers(place, end, call);
        } else {
            self.head(place, end, &noted, wire_bytes, call);
        }
        Ok(())
    }

    fn trailers<S: FnMut(Event<'_>) + ?Sized>(
        &mut self,
        place: usize,
        end: bool,
        call: &mut Call<'_, S>,
    ) {
        if !end {
            return self.fail(place, Malformed::TrailersWithoutEnd.into(), call);
        }
        if let Err(violation) = self.check_length(place) {
            return self.fail(place, violation, call);
        }
        if !call.lines.is_empty() {
            let token = Token(self.streams.at(place).id);
            let headers = Headers::of_lines(call.lines);
            (call.sink)(Event::Trailers { token, headers });
        }
        self.complete(place, call);
    }

    fn head<S: FnMut(Event<'_>) + ?Sized>(
        &mut self,
        place: usize,
        end: bool,
        noted: &Noted,
        wire_bytes: usize,
        call: &mut Call<'_, S>,
    ) {
        let stream = self.streams.at(place);
        let token = Token(stream.id);
        let head = match read_head(stream.kind, end, noted, call.lines, wire_bytes) {
            Ok(head) => head,
            Err(violation) => return self.fail(place, violation, call),
        };
        if head.status < 200 {
            let count_max = call.limits.informational_max;
            if stream.informational == count_max {
                let many = HttpError::TooManyInformational { count_max };
                return self.fail(place, Violation::Http(many), call);
            }
            stream.informational += 1;
            return (call.sink)(Event::Informational { token, head });
        }
        let is_tunnel = stream.kind == RequestKind::Connect && head.status < 300;
        stream.phase = match head.framing {
            BodyFraming::None if !is_tunnel => Phase::NoBody,
            _ => Phase::Body,
        };
        if let BodyFraming::Length(length) = head.framing {
            stream.expected = Some(length);
        }
        let (framing, bytes_max) = (head.framing, stream.body_bytes_max);
        (call.sink)(Event::Head { token, head });
        match framing {
            BodyFraming::Length(length) if length > bytes_max => {
                let too_large = HttpError::BodyTooLarge { bytes_max };
                self.fail(place, Violation::Http(too_large), call);
            }
            _ if end => self.complete(place, call),
            _ => {}
        }
    }

    /// A frame with `length` bytes of body begins. False when nobody waits for them, perhaps
    /// because they are wrong.
    pub(super) fn expect_data<S: FnMut(Event<'_>) + ?Sized>(
        &mut self,
        id: u32,
        length: u32,
        end: bool,
        call: &mut Call<'_, S>,
    ) -> bool {
        let Some(place) = self.streams.find(id) else { return false };
        let stream = self.streams.at(place);
        let received = stream.received + u64::from(length);
        let bytes_max = stream.body_bytes_max;
        let differs = |expected| if end { received != expected } else { received > expected };
        let violation = match stream.expected {
            _ if stream.phase == Phase::Head => Malformed::DataBeforeHead.into(),
            _ if stream.phase == Phase::NoBody && length > 0 => Malformed::DataWithoutBody.into(),
            Some(expected) if differs(expected) => {
                Malformed::LengthMismatch { expected, received }.into()
            }
            _ if received > bytes_max => Violation::Http(HttpError::BodyTooLarge { bytes_max }),
            _ => {
                stream.received = received;
                return true;
            }
        };
        self.fail(place, violation, call);
        false
    }

    fn check_length(&mut self, place: usize) -> Result<(), Violation> {
        let stream = self.streams.at(place);
        match (stream.expected, stream.received) {
            (Some(expected), received) if expected != received => {
                Err(Malformed::LengthMismatch { expected, received }.into())
            }
            _ => Ok(()),
        }
    }

    /// The response has ended. What of the request has not been sent is of no use any more
    /// (RFC 9113, 8.1).
    pub(super) fn complete<S: FnMut(Event<'_>) + ?Sized>(
        &mut self,
        place: usize,
        call: &mut Call<'_, S>,
    ) {
        let stream = self.streams.at(place);
        let token = Token(stream.id);
        if stream.sends {
            self.reset(place, ErrorCode::CANCEL, call.out);
        } else {
            self.forget(place);
        }
        (call.sink)(Event::End { token });
    }

    /// One response is of no use; the connection is.
    #[cold]
    pub(super) fn fail<S: FnMut(Event<'_>) + ?Sized>(
        &mut self,
        place: usize,
        violation: Violation,
        call: &mut Call<'_, S>,
    ) {
        let token = Token(self.streams.at(place).id);
        self.reset(place, violation.error_code(), call.out);
        (call.sink)(Event::Failed { token, violation });
    }
}

/// What the fields of a head mean.
#[inline]
fn read_head<'a>(
    kind: RequestKind,
    end: bool,
    noted: &Noted,
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
        content_encoding: noted.encoding.clone().map(|range| &lines[range]),
        bytes: wire_bytes,
    })
}
