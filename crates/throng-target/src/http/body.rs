//! Reads a request body piece by piece.

use super::Refusal;

/// Maximum length of a chunk's size line, including extensions.
const CHUNK_LINE_BYTES_MAX: u32 = 4096;
/// Maximum length of all trailer lines together.
const TRAILER_BYTES_MAX: u32 = 16 * 1024;

/// The rest of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    /// This many bytes.
    Length(u64),
    Chunked(Chunked),
}

/// Chunked coding (RFC 9112, section 7.1).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Chunked {
    awaits: Awaits,
    size: u64,
    /// Length of the current line, or of the trailers.
    line: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Awaits {
    #[default]
    FirstDigit,
    Size,
    Extension,
    SizeEnd,
    Data,
    DataReturn,
    DataEnd,
    /// A trailer line, or the empty line that ends the body.
    Trailer,
    TrailerLine,
    TrailerEnd,
    LastEnd,
    Nothing,
}

impl Body {
    pub(crate) fn is_complete(&self) -> bool {
        match self {
            Body::Length(left) => *left == 0,
            Body::Chunked(chunked) => chunked.awaits == Awaits::Nothing,
        }
    }

    /// Reads the part of `input` that belongs to the body, and returns its length. `hear` receives
    /// the content.
    pub(crate) fn read(
        &mut self,
        input: &[u8],
        mut hear: impl FnMut(&[u8]),
    ) -> Result<usize, Refusal> {
        match self {
            Body::Length(left) => {
                let taken = input.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                hear(&input[..taken]);
                *left -= taken as u64;
                Ok(taken)
            }
            Body::Chunked(chunked) => {
                let mut at = 0;
                while at < input.len() && chunked.awaits != Awaits::Nothing {
                    if chunked.awaits == Awaits::Data {
                        let left = usize::try_from(chunked.size).unwrap_or(usize::MAX);
                        let taken = left.min(input.len() - at);
                        hear(&input[at..at + taken]);
                        chunked.took(taken as u64);
                        at += taken;
                    } else {
                        chunked.byte(input[at])?;
                        at += 1;
                    }
                }
                Ok(at)
            }
        }
    }
}

impl Chunked {
    fn took(&mut self, bytes: u64) {
        self.size -= bytes;
        if self.size == 0 {
            self.awaits = Awaits::DataReturn;
        }
    }

    /// Reads a byte of chunk framing.
    fn byte(&mut self, byte: u8) -> Result<(), Refusal> {
        self.line += 1;
        self.awaits = match (self.awaits, byte) {
            (Awaits::FirstDigit | Awaits::Size, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                let digit = (byte as char).to_digit(16).unwrap_or(0);
                if self.size >= 1 << 56 {
                    return Err(Refusal::bad("the size of a chunk is too large"));
                }
                self.size = self.size * 16 + u64::from(digit);
                Awaits::Size
            }
            (Awaits::Size | Awaits::Extension, b'\r') => Awaits::SizeEnd,
            (Awaits::Size, b';' | b' ' | b'\t') => Awaits::Extension,
            (Awaits::Extension, byte) if byte != b'\n' => Awaits::Extension,
            (Awaits::SizeEnd, b'\n') if self.size == 0 => self.next_line(Awaits::Trailer),
            (Awaits::SizeEnd, b'\n') => self.next_line(Awaits::Data),
            (Awaits::DataReturn, b'\r') => Awaits::DataEnd,
            (Awaits::DataEnd, b'\n') => self.next_line(Awaits::FirstDigit),
            (Awaits::Trailer, b'\r') => Awaits::LastEnd,
            (Awaits::TrailerLine, b'\r') => Awaits::TrailerEnd,
            (Awaits::Trailer | Awaits::TrailerLine, byte) if byte != b'\n' => Awaits::TrailerLine,
            (Awaits::TrailerEnd, b'\n') => Awaits::Trailer,
            (Awaits::LastEnd, b'\n') => Awaits::Nothing,
            _ => return Err(Refusal::bad("the body is not in chunked coding")),
        };
        let trailers =
            matches!(self.awaits, Awaits::Trailer | Awaits::TrailerLine | Awaits::TrailerEnd);
        let line_max = if trailers { TRAILER_BYTES_MAX } else { CHUNK_LINE_BYTES_MAX };
        if self.line > line_max {
            return Err(Refusal::bad("a line of the chunked coding is too long"));
        }
        Ok(())
    }

    fn next_line(&mut self, awaits: Awaits) -> Awaits {
        self.line = 0;
        awaits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunked() -> Body {
        Body::Chunked(Chunked::default())
    }

    /// The content, and the bytes after the body; or the error.
    fn read(mut body: Body, parts: &[&[u8]]) -> Result<(Vec<u8>, Vec<u8>, bool), Refusal> {
        let (mut content, mut rest) = (Vec::new(), Vec::new());
        for part in parts {
            let used = body.read(part, |piece| content.extend_from_slice(piece))?;
            rest.extend_from_slice(&part[used..]);
        }
        Ok((content, rest, body.is_complete()))
    }

    const CODED: &[u8] =
        b"5\r\nhello\r\n00a ; x=\"y\"\r\n, chunked \r\n1;a\r\n!\r\n0\r\nT: v\r\nU: w\r\n\r\nGET /";

    #[test]
    fn bodies_can_be_split_anywhere() {
        throng_fuzz::splits(CODED, |parts| {
            let (content, rest, complete) = read(chunked(), parts).unwrap();
            assert_eq!(content, b"hello, chunked !");
            assert_eq!((&rest[..], complete), (&b"GET /"[..], true));
        });
        throng_fuzz::splits(b"helloGET /", |parts| {
            let (content, rest, complete) = read(Body::Length(5), parts).unwrap();
            assert_eq!((&content[..], &rest[..], complete), (&b"hello"[..], &b"GET /"[..], true));
        });
        assert!(Body::Length(0).is_complete());
        assert!(!read(chunked(), &[b"0\r\n"]).unwrap().2);
    }

    #[test]
    fn invalid_chunked_coding_is_rejected() {
        let long = [b"1;".as_slice(), &[b'x'; 5000]].concat();
        let trailers = [b"0\r\n".as_slice(), &b"A: b\r\n".repeat(3000)].concat();
        for input in [
            b"\r\n".as_slice(),
            b"g\r\n",
            b"5\nhello",
            b"5\r\nhello world",
            b"-1\r\n",
            b"fffffffffffffffff\r\n",
            b"0\r\n\n",
            &long,
            &trailers,
        ] {
            assert_eq!(read(chunked(), &[input]).unwrap_err().status, 400, "{input:?}");
        }
    }

    #[test]
    fn fuzz_chunked_coding() {
        throng_fuzz::mutations(&[CODED, b"0\r\n\r\n"], |input, random| {
            let (first, second) = input.split_at(random.below(input.len() as u64 + 1) as usize);
            assert_eq!(read(chunked(), &[first, second]), read(chunked(), &[input]));
        });
    }
}
