//! The pending output of a connection, in order, without large bodies in memory.

use std::collections::VecDeque;
use std::io;

use throng_base::Time;

/// How a connection ends after all output is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finish {
    /// Closed immediately. No further input is expected.
    Close,
    /// Half-closed, then read until the client closes, too: closing with unread input would reset
    /// the connection and could discard the last response.
    Linger,
    /// Reset.
    Reset,
}

/// A part of the output, or an action.
#[derive(Debug)]
pub(crate) enum Segment {
    Bytes {
        data: Vec<u8>,
        at: usize,
    },
    /// This many bytes of filler.
    Filler(u64),
    /// This many bytes of filler in chunked coding, including its end.
    Chunked(u64),
    /// The response to the request that arrived at this time is complete.
    Served(Time),
    Finish(Finish),
}

/// The result of writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    All,
    /// The socket accepts no more data now.
    Blocked,
    /// The limit for one turn is reached; other connections also need the worker.
    Enough,
    Finished(Finish),
}

/// Maximum number of bytes that a connection writes per turn.
const TURN_BYTES_MAX: usize = 512 * 1024;
/// Size of the chunks of filler.
const CHUNK_BYTES: u64 = 16 * 1024;
/// The repeated content of a body.
static FILLER: [u8; 64 * 1024] = [b'x'; 64 * 1024];

#[derive(Debug, Default)]
pub(crate) struct Output {
    segments: VecDeque<Segment>,
}

impl Output {
    pub(crate) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    pub(crate) fn push(&mut self, segment: Segment) {
        self.segments.push_back(segment);
    }

    pub(crate) fn push_bytes(&mut self, bytes: &[u8]) {
        match self.segments.back_mut() {
            Some(Segment::Bytes { data, at }) => {
                // Release memory of written data.
                if *at > data.len() / 2 {
                    data.drain(..*at);
                    *at = 0;
                }
                data.extend_from_slice(bytes);
            }
            _ => self.push(Segment::Bytes { data: bytes.to_vec(), at: 0 }),
        }
    }

    /// Bytes in memory.
    pub(crate) fn held(&self) -> usize {
        let held = |segment: &Segment| match segment {
            Segment::Bytes { data, at } => data.len() - at,
            _ => 0,
        };
        self.segments.iter().map(held).sum()
    }

    /// Responses that are not completely written.
    pub(crate) fn unserved(&self) -> u64 {
        self.segments.iter().filter(|s| matches!(s, Segment::Served(_))).count() as u64
    }

    /// Writes until everything is written or `write` accepts no more. `count` receives the number
    /// of bytes written, and `served` the arrival times of completed responses.
    pub(crate) fn write(
        &mut self,
        mut write: impl FnMut(&[u8]) -> io::Result<usize>,
        mut count: impl FnMut(usize),
        mut served: impl FnMut(Time),
    ) -> io::Result<Written> {
        let mut turn = 0;
        while let Some(segment) = self.segments.front_mut() {
            let bytes = match segment {
                Segment::Bytes { data, at } => &data[*at..],
                Segment::Filler(left) => &FILLER[..FILLER.len().min(*left as usize)],
                Segment::Chunked(left) => {
                    let (left, data) = next_chunk(*left);
                    if let Some(left) = left {
                        *segment = Segment::Chunked(left);
                    } else {
                        self.segments.pop_front();
                    }
                    self.segments.push_front(Segment::Bytes { data, at: 0 });
                    continue;
                }
                Segment::Served(arrived) => {
                    served(*arrived);
                    self.segments.pop_front();
                    continue;
                }
                Segment::Finish(finish) => {
                    let finish = *finish;
                    self.segments.clear();
                    return Ok(Written::Finished(finish));
                }
            };
            if bytes.is_empty() {
                self.segments.pop_front();
                continue;
            }
            if turn >= TURN_BYTES_MAX {
                return Ok(Written::Enough);
            }
            match write(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => {
                    turn += n;
                    count(n);
                    advance(segment, n);
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(Written::Blocked),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(Written::All)
    }
}

fn advance(segment: &mut Segment, n: usize) {
    match segment {
        Segment::Bytes { at, .. } => *at += n,
        Segment::Filler(left) => *left -= n as u64,
        _ => {}
    }
}

/// The next chunk of `left` bytes of filler, and the number of bytes left; `None` after the last.
fn next_chunk(left: u64) -> (Option<u64>, Vec<u8>) {
    let size = left.min(CHUNK_BYTES);
    let mut data = Vec::new();
    write_chunk(&mut data, &FILLER[..size as usize]);
    if left > size {
        return (Some(left - size), data);
    }
    data.extend_from_slice(LAST_CHUNK);
    (None, data)
}

pub(crate) const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// A chunk; nothing if it would be empty, because that would end the body.
pub(crate) fn write_chunk(out: &mut Vec<u8>, content: &[u8]) {
    if !content.is_empty() {
        out.extend_from_slice(format!("{:x}\r\n", content.len()).as_bytes());
        out.extend_from_slice(content);
        out.extend_from_slice(b"\r\n");
    }
}

pub(crate) fn write_filler(out: &mut Vec<u8>, size: usize) {
    out.resize(out.len() + size, b'x');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(output: &mut Output, steps: usize) -> (Vec<u8>, Vec<Time>, Written) {
        let (mut bytes, mut times) = (Vec::new(), Vec::new());
        loop {
            let mut blocks = false;
            let write = |data: &[u8]| {
                if blocks {
                    return Err(io::ErrorKind::WouldBlock.into());
                }
                blocks = true;
                let n = data.len().min(steps);
                bytes.extend_from_slice(&data[..n]);
                Ok(n)
            };
            let result = output.write(write, |_| (), |time| times.push(time)).unwrap();
            if !matches!(result, Written::Blocked | Written::Enough) {
                return (bytes, times, result);
            }
        }
    }

    #[test]
    fn segments_are_written_in_order_for_any_socket() {
        for steps in [1, 7, 1000, 1 << 20] {
            let mut output = Output::default();
            output.push_bytes(b"head");
            output.push_bytes(b" more");
            output.push(Segment::Filler(70_000));
            output.push(Segment::Served(Time(1)));
            output.push(Segment::Chunked(20_000));
            output.push(Segment::Served(Time(2)));
            output.push(Segment::Finish(Finish::Close));
            assert_eq!((output.held(), output.unserved()), (9, 2));
            let (bytes, times, result) = written(&mut output, steps);
            let mut expected = b"head more".to_vec();
            write_filler(&mut expected, 70_000);
            write_chunk(&mut expected, &FILLER[..16_384]);
            write_chunk(&mut expected, &FILLER[..20_000 - 16_384]);
            expected.extend_from_slice(LAST_CHUNK);
            assert!(bytes == expected);
            assert_eq!(times, [Time(1), Time(2)]);
            assert_eq!(result, Written::Finished(Finish::Close));
            assert!(output.is_empty());
        }
    }

    #[test]
    fn an_empty_chunked_body_is_only_the_end() {
        let mut output = Output::default();
        output.push(Segment::Chunked(0));
        assert_eq!(written(&mut output, 100).0, LAST_CHUNK);
    }

    #[test]
    fn a_turn_has_a_limit() {
        let mut output = Output::default();
        output.push(Segment::Filler(1 << 40));
        let result = output.write(|data| Ok(data.len()), |_| (), |_| ()).unwrap();
        assert_eq!(result, Written::Enough);
    }
}
