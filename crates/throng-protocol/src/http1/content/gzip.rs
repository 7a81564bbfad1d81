//! gzip (RFC 1952): any number of members, optionally followed by zeros.

use flate2::{Crc, Decompress};

use super::inflate::{Fault, Step, inflate};

const FLAG_HEADER_CRC: u8 = 0x02;
const FLAG_EXTRA: u8 = 0x04;
const FLAG_NAME: u8 = 0x08;
const FLAG_COMMENT: u8 = 0x10;
const FLAGS_RESERVED: u8 = 0xe0;

#[derive(Debug)]
pub(super) struct Gzip {
    part: Part,
    flags: u8,
    /// A number that is being read, lowest byte first.
    number: u64,
    crc: Crc,
    inflater: Decompress,
    members: u64,
}

/// What the next byte belongs to, with how many bytes of that have arrived, or are missing for
/// `Extra`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Fixed(u8),
    ExtraLength(u8),
    Extra(u16),
    Name,
    Comment,
    HeaderCrc(u8),
    Data,
    Trailer(u8),
    Padding,
}

impl Gzip {
    pub(super) fn new() -> Gzip {
        Gzip {
            part: Part::Fixed(0),
            flags: 0,
            number: 0,
            crc: Crc::new(),
            inflater: Decompress::new(false),
            members: 0,
        }
    }

    pub(super) fn reset(&mut self) {
        self.members = 0;
        self.begin_member(0);
    }

    fn begin_member(&mut self, bytes_read: u8) {
        self.part = Part::Fixed(bytes_read);
        self.crc.reset();
        self.inflater.reset(false);
    }

    pub(super) fn is_complete(&self) -> bool {
        match self.part {
            Part::Padding => true,
            Part::Fixed(0) => self.members == 0,
            _ => false,
        }
    }

    pub(super) fn step(&mut self, input: &[u8], output: &mut [u8]) -> Step {
        let (mut consumed, mut produced) = (0, 0);
        loop {
            if self.part == Part::Data {
                let (read, written, is_end) =
                    inflate(&mut self.inflater, &input[consumed..], &mut output[produced..])?;
                self.crc.update(&output[produced..produced + written]);
                consumed += read;
                produced += written;
                if !is_end {
                    return Ok((consumed, produced));
                }
                self.part = Part::Trailer(0);
                self.number = 0;
            }
            let Some(byte) = input.get(consumed) else { return Ok((consumed, produced)) };
            self.around_data(*byte)?;
            consumed += 1;
        }
    }

    /// Takes one byte of a member's header or trailer, or between members.
    fn around_data(&mut self, byte: u8) -> Result<(), Fault> {
        self.part = match self.part {
            Part::Fixed(at) => self.fixed(at, byte)?,
            Part::ExtraLength(0) => {
                self.number = u64::from(byte);
                Part::ExtraLength(1)
            }
            Part::ExtraLength(_) => match u16::from_le_bytes([self.number as u8, byte]) {
                0 => self.after(FLAG_EXTRA),
                length => Part::Extra(length),
            },
            Part::Extra(1) => self.after(FLAG_EXTRA),
            Part::Extra(left) => Part::Extra(left - 1),
            Part::Name if byte == 0 => self.after(FLAG_NAME),
            Part::Comment if byte == 0 => self.after(FLAG_COMMENT),
            Part::HeaderCrc(0) => Part::HeaderCrc(1),
            Part::HeaderCrc(_) => Part::Data,
            Part::Trailer(at) => self.trailer(at, byte)?,
            Part::Padding => match byte {
                0 => Part::Padding,
                0x1f => {
                    self.begin_member(1);
                    self.part
                }
                _ => return Err(Fault),
            },
            same @ (Part::Name | Part::Comment | Part::Data) => same,
        };
        Ok(())
    }

    /// Magic, method, flags; time, level and system do not matter.
    fn fixed(&mut self, at: u8, byte: u8) -> Result<Part, Fault> {
        let is_right = match at {
            0 => byte == 0x1f,
            1 => byte == 0x8b,
            2 => byte == 8,
            3 => {
                self.flags = byte;
                byte & FLAGS_RESERVED == 0
            }
            _ => true,
        };
        match (is_right, at) {
            (false, _) => Err(Fault),
            (true, 9) => Ok(self.after(0)),
            (true, _) => Ok(Part::Fixed(at + 1)),
        }
    }

    /// The header part after the one with this flag.
    fn after(&self, flag: u8) -> Part {
        let follows = [
            (FLAG_EXTRA, Part::ExtraLength(0)),
            (FLAG_NAME, Part::Name),
            (FLAG_COMMENT, Part::Comment),
            (FLAG_HEADER_CRC, Part::HeaderCrc(0)),
        ];
        let passed = follows.iter().position(|(own, _)| *own == flag).map_or(0, |at| at + 1);
        let next = follows[passed..].iter().find(|(own, _)| self.flags & own != 0);
        next.map_or(Part::Data, |(_, part)| *part)
    }

    /// Checksum and length of the output, 32 bits each.
    fn trailer(&mut self, at: u8, byte: u8) -> Result<Part, Fault> {
        self.number |= u64::from(byte) << (8 * u32::from(at));
        if at < 7 {
            return Ok(Part::Trailer(at + 1));
        }
        let length = self.inflater.total_out() as u32;
        let expected = u64::from(length) << 32 | u64::from(self.crc.sum());
        if self.number != expected {
            return Err(Fault);
        }
        self.members += 1;
        Ok(Part::Padding)
    }
}
