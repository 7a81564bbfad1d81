//! Length-prefixed messages, statuses and deadlines.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::time::Duration;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use http::{HeaderMap, HeaderValue};
use prost::Message;
use throng_base::grpc::Code;

use super::MESSAGE_BYTES_MAX;

/// Length of the prefix: the flag and the length.
const PREFIX_BYTES: usize = 5;

/// The compression of a call's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Identity,
    Gzip,
}

impl Encoding {
    /// From the value of `grpc-encoding`.
    pub(crate) fn named(name: Option<&HeaderValue>) -> Result<Encoding, Status> {
        match name.map_or(&b"identity"[..], HeaderValue::as_bytes) {
            b"identity" => Ok(Encoding::Identity),
            b"gzip" => Ok(Encoding::Gzip),
            _ => Err(Status::new(Code::Unimplemented, "supported encodings are identity and gzip")),
        }
    }
}

/// The final status of a call: a number, which may be unknown, and a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Status {
    pub(crate) number: u32,
    pub(crate) message: String,
}

impl Status {
    pub(crate) fn new(code: Code, message: &str) -> Status {
        Status { number: u32::from(code.number()), message: message.to_owned() }
    }

    pub(crate) fn ok() -> Status {
        Status::new(Code::Ok, "")
    }

    /// The name under which it is counted.
    pub(crate) fn name(&self) -> &'static str {
        let code = u8::try_from(self.number).ok().and_then(Code::of_number);
        code.unwrap_or(Code::Unknown).name()
    }

    /// Adds the trailers of the status.
    pub(crate) fn write(&self, trailers: &mut HeaderMap) {
        trailers.insert("grpc-status", HeaderValue::from(self.number));
        if self.message.is_empty() {
            return;
        }
        let mut text = String::with_capacity(self.message.len());
        for byte in self.message.bytes() {
            match byte {
                b' '..=b'~' if byte != b'%' => text.push(char::from(byte)),
                // Writing to memory cannot fail.
                _ => drop(write!(text, "%{byte:02X}")),
            }
        }
        if let Ok(value) = HeaderValue::try_from(text) {
            trailers.insert("grpc-message", value);
        }
    }
}

/// The value of `grpc-timeout`: at most eight digits and a unit.
pub(crate) fn timeout(value: &HeaderValue) -> Result<Duration, Status> {
    let wrong = || Status::new(Code::Internal, "grpc-timeout is malformed");
    let text = value.to_str().map_err(|_| wrong())?;
    let (digits, unit) = text.split_at_checked(text.len().saturating_sub(1)).ok_or_else(wrong)?;
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    if !(1..=8).contains(&digits.len()) || !is_number {
        return Err(wrong());
    }
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    Ok(match unit {
        "n" => Duration::from_nanos(number),
        "u" => Duration::from_micros(number),
        "m" => Duration::from_millis(number),
        "S" => Duration::from_secs(number),
        "M" => Duration::from_secs(number * 60),
        "H" => Duration::from_secs(number * 3600),
        _ => return Err(wrong()),
    })
}

/// A message with its prefix.
pub(crate) fn write_message(encoding: Encoding, message: &impl Message) -> Vec<u8> {
    let plain = message.encode_to_vec();
    let mut out = vec![0; PREFIX_BYTES];
    match encoding {
        Encoding::Identity => out.extend_from_slice(&plain),
        Encoding::Gzip => {
            let mut encoder = GzEncoder::new(out, Compression::fast());
            // Writing to memory cannot fail.
            let _ = encoder.write_all(&plain);
            out = encoder.finish().unwrap_or_default();
            out[0] = 1;
        }
    }
    let length = (out.len() - PREFIX_BYTES) as u32;
    out[1..PREFIX_BYTES].copy_from_slice(&length.to_be_bytes());
    out
}

/// Splits the received bytes of a call into messages.
#[derive(Debug)]
pub(crate) struct Messages {
    encoding: Encoding,
    /// Received bytes; those from `from` on have not been taken.
    held: Vec<u8>,
    from: usize,
}

impl Messages {
    pub(crate) fn new(encoding: Encoding) -> Messages {
        Messages { encoding, held: Vec::new(), from: 0 }
    }

    pub(crate) fn receive(&mut self, bytes: &[u8]) {
        self.held.drain(..self.from);
        self.from = 0;
        self.held.extend_from_slice(bytes);
    }

    /// The next message as protobuf bytes, if it is complete.
    pub(crate) fn take(&mut self) -> Result<Option<Vec<u8>>, Status> {
        let rest = &self.held[self.from..];
        let Some(([flag, length @ ..], behind)) = rest.split_first_chunk::<PREFIX_BYTES>() else {
            return Ok(None);
        };
        let length = u32::from_be_bytes(*length) as usize;
        if *flag > 1 {
            return Err(Status::new(Code::Internal, "the flag of a message must be 0 or 1"));
        }
        if length > MESSAGE_BYTES_MAX {
            return Err(too_long());
        }
        let Some(packed) = behind.get(..length) else { return Ok(None) };
        let content = match (*flag, self.encoding) {
            (0, _) => packed.to_vec(),
            (_, Encoding::Gzip) => unpacked(packed)?,
            _ => return Err(Status::new(Code::Internal, "compressed without grpc-encoding")),
        };
        self.from += PREFIX_BYTES + length;
        Ok(Some(content))
    }

    /// Whether no incomplete message is buffered.
    pub(crate) fn is_empty(&self) -> bool {
        self.from == self.held.len()
    }
}

fn too_long() -> Status {
    Status::new(Code::ResourceExhausted, "a message is longer than 4 MiB")
}

fn unpacked(packed: &[u8]) -> Result<Vec<u8>, Status> {
    let mut message = Vec::new();
    let mut decoder = GzDecoder::new(packed).take(MESSAGE_BYTES_MAX as u64 + 1);
    match decoder.read_to_end(&mut message) {
        Ok(length) if length <= MESSAGE_BYTES_MAX => Ok(message),
        Ok(_) => Err(too_long()),
        Err(_) => Err(Status::new(Code::Internal, "a message is not valid gzip")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grpc::SayRequest;

    fn say(text: &str) -> SayRequest {
        SayRequest { text: text.to_owned(), repeat: 2, code: 0 }
    }

    fn all(messages: &mut Messages) -> Vec<Vec<u8>> {
        std::iter::from_fn(|| messages.take().unwrap()).collect()
    }

    #[test]
    fn messages_can_be_split_anywhere() {
        for encoding in [Encoding::Identity, Encoding::Gzip] {
            let texts = ["", "a", "a longer text that is the same twice"];
            let wanted: Vec<_> = texts.iter().map(|text| say(text).encode_to_vec()).collect();
            let bytes: Vec<u8> =
                texts.iter().flat_map(|text| write_message(encoding, &say(text))).collect();
            for size in 1..=bytes.len() {
                let mut messages = Messages::new(encoding);
                let mut got = Vec::new();
                for piece in bytes.chunks(size) {
                    messages.receive(piece);
                    got.extend(all(&mut messages));
                }
                assert!(messages.is_empty() && got == wanted, "{encoding:?} {size}");
            }
        }
    }

    #[test]
    fn invalid_messages_are_rejected() {
        let refused = |encoding, bytes: &[u8]| {
            let mut messages = Messages::new(encoding);
            messages.receive(bytes);
            messages.take().unwrap_err().name()
        };
        assert_eq!(refused(Encoding::Gzip, &[2, 0, 0, 0, 0]), "INTERNAL");
        assert_eq!(refused(Encoding::Gzip, &[1, 0, 0, 0, 1, 7]), "INTERNAL");
        assert_eq!(refused(Encoding::Identity, &[1, 0, 0, 0, 0]), "INTERNAL");
        assert_eq!(refused(Encoding::Identity, &[0, 0, 64, 0, 1]), "RESOURCE_EXHAUSTED");
        // Short when compressed, too long when uncompressed.
        let bomb = SayRequest { text: "x".repeat(MESSAGE_BYTES_MAX), ..SayRequest::default() };
        let bomb = write_message(Encoding::Gzip, &bomb);
        assert!(bomb.len() < 64 * 1024);
        assert_eq!(refused(Encoding::Gzip, &bomb), "RESOURCE_EXHAUSTED");
    }

    #[test]
    fn fuzz_messages() {
        let plain = write_message(Encoding::Identity, &say("abc"));
        let packed = write_message(Encoding::Gzip, &say("abcabcabc"));
        throng_fuzz::mutations(&[&plain, &packed], |input, random| {
            let cut = random.below(input.len() as u64 + 1) as usize;
            let mut messages = Messages::new(Encoding::Gzip);
            for piece in [&input[..cut], &input[cut..]] {
                messages.receive(piece);
                while let Ok(Some(message)) = messages.take() {
                    assert!(message.len() <= MESSAGE_BYTES_MAX);
                }
            }
        });
    }

    #[test]
    fn timeouts_have_a_unit() {
        let read = |text: &str| timeout(&HeaderValue::from_str(text).unwrap());
        for (text, nanos) in [
            ("1n", 1),
            ("20u", 20_000),
            ("99999999m", 99_999_999_000_000),
            ("3S", 3_000_000_000),
            ("2M", 120_000_000_000),
            ("1H", 3_600_000_000_000),
        ] {
            assert_eq!(read(text), Ok(Duration::from_nanos(nanos)), "{text}");
        }
        for text in ["", "1", "S", "123456789S", "1s", "+1S", "-1S", "1 S"] {
            assert_eq!(read(text).unwrap_err().name(), "INTERNAL", "{text}");
        }
    }

    #[test]
    fn status_messages_are_escaped() {
        let mut trailers = HeaderMap::new();
        Status { number: 99, message: "50 % é\n".to_owned() }.write(&mut trailers);
        assert_eq!(trailers["grpc-status"], "99");
        assert_eq!(trailers["grpc-message"], "50 %25 %C3%A9%0A");
    }
}
