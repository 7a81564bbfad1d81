//! Layers around the content of a field: compressed in the packet, plain for scenarios.

use std::cell::Cell;
use std::io::{self, Write as _};

use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use flate2::{Compression, Decompress, FlushDecompress, Status};

use throng_base::Said;

use super::declaration::Layer;
use crate::http1::{ContentDecoder, ContentError};

/// Maximum size of all unpacked layers of a packet together.
pub(super) const UNPACKED_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Bytes unpacked per step.
const STEP_BYTES: usize = 16 * 1024;

thread_local! {
    /// One decoder each for gzip and brotli, which are large; taken out and put back.
    static DECODERS: [Cell<Option<Box<ContentDecoder>>>; 2] =
        const { [const { Cell::new(None) }; 2] };
}

impl Layer {
    pub const WORDS: [(&'static str, Layer); 4] = [
        ("zlib", Layer::Zlib),
        ("gzip", Layer::Gzip),
        ("deflate", Layer::Deflate),
        ("brotli", Layer::Brotli),
    ];

    pub fn word(self) -> &'static str {
        Layer::WORDS[self as usize].0
    }

    /// Appends the unpacked bytes; afterwards `out` has at most [`UNPACKED_BYTES_MAX`] bytes.
    pub(super) fn unpack(self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), Said> {
        match self {
            Layer::Zlib => self.inflate(Decompress::new(true), bytes, out),
            Layer::Deflate => self.inflate(Decompress::new(false), bytes, out),
            Layer::Gzip => self.decode(0, b"gzip", bytes, out),
            Layer::Brotli => self.decode(1, b"br", bytes, out),
        }
    }

    fn inflate(self, mut raw: Decompress, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), Said> {
        loop {
            let room = (UNPACKED_BYTES_MAX + 1).saturating_sub(out.len()).min(STEP_BYTES);
            let (used, before) = (raw.total_in() as usize, raw.total_out());
            let had = out.len();
            out.resize(had + room, 0);
            let read = raw.decompress(&bytes[used..], &mut out[had..], FlushDecompress::None);
            let used_now = raw.total_in() as usize;
            out.truncate(had + (raw.total_out() - before) as usize);
            match read {
                Err(_) => return Err(self.corrupt()),
                Ok(Status::StreamEnd) => {
                    // Fields of a fixed size are padded with zeros.
                    let is_padding = bytes[used_now..].iter().all(|byte| *byte == 0);
                    return if is_padding { Ok(()) } else { Err(self.corrupt()) };
                }
                Ok(_) if out.len() > UNPACKED_BYTES_MAX => return Err(too_large()),
                Ok(_) if used_now == used && out.len() == had => return Err(self.cut_off()),
                Ok(_) => {}
            }
        }
    }

    fn decode(
        self,
        index: usize,
        coding: &[u8],
        bytes: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Said> {
        let made = || ContentDecoder::new(coding, UNPACKED_BYTES_MAX as u64).ok().flatten();
        let kept = DECODERS.with(|decoders| decoders[index].take());
        let Some(mut decoder) = kept.or_else(|| made().map(Box::new)) else { return Ok(()) };
        let read = decoder.write(bytes, &mut |piece: &[u8]| {
            if out.len() + piece.len() > UNPACKED_BYTES_MAX {
                return Err(ContentError::TooLarge { bytes_max: UNPACKED_BYTES_MAX as u64 });
            }
            out.extend_from_slice(piece);
            Ok(())
        });
        let read = read.and_then(|()| decoder.finish());
        decoder.reset();
        DECODERS.with(|decoders| decoders[index].set(Some(decoder)));
        read.map_err(|error| match error {
            ContentError::TooLarge { .. } => too_large(),
            ContentError::CutOff { .. } => self.cut_off(),
            _ => self.corrupt(),
        })
    }

    /// Packs the contents of `out` from `begin` on.
    pub(super) fn pack(self, begin: usize, out: &mut Vec<u8>) -> Result<(), Said> {
        let level = Compression::default();
        let plain = out.split_off(begin);
        let packed = |all: io::Result<()>| all.map_err(|error| Said::of_error(&error));
        match self {
            Layer::Zlib => {
                let mut encoder = ZlibEncoder::new(&mut *out, level);
                packed(encoder.write_all(&plain).and_then(|()| encoder.try_finish()))
            }
            Layer::Gzip => {
                let mut encoder = GzEncoder::new(&mut *out, level);
                packed(encoder.write_all(&plain).and_then(|()| encoder.try_finish()))
            }
            Layer::Deflate => {
                let mut encoder = DeflateEncoder::new(&mut *out, level);
                packed(encoder.write_all(&plain).and_then(|()| encoder.try_finish()))
            }
            Layer::Brotli => Err(say!("throng does not compress with brotli")),
        }
    }

    fn corrupt(self) -> Said {
        say!("this is not valid {} data", self.word())
    }

    fn cut_off(self) -> Said {
        say!("the {} data is incomplete", self.word())
    }
}

fn too_large() -> Said {
    say!("it unpacks to more than {UNPACKED_BYTES_MAX} bytes")
}
