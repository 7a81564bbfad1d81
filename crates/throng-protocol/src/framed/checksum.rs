//! Checksums of packets.

use super::declaration::Checksum;

const CRC32: [u32; 256] = table32(0xedb8_8320);
const CRC32C: [u32; 256] = table32(0x82f6_3b78);
const CRC16: [u16; 256] = table16_reflected();
const XMODEM: [u16; 256] = table16();

const ADLER: u32 = 65_521;
/// Bytes that are summed before the 32-bit sums could overflow.
const ADLER_BYTES: usize = 5_552;

/// Over the bytes of all parts in order.
pub(super) fn checksum<'a>(
    algorithm: Checksum,
    width: u8,
    parts: impl Iterator<Item = &'a [u8]>,
) -> u64 {
    match algorithm {
        Checksum::Crc32 => crc32(&CRC32, parts),
        Checksum::Crc32C => crc32(&CRC32C, parts),
        Checksum::Crc16 => crc16(0, parts),
        Checksum::Crc16Modbus => crc16(u16::MAX, parts),
        Checksum::Crc16Xmodem => ccitt(0, parts),
        Checksum::Crc16Ccitt => ccitt(u16::MAX, parts),
        Checksum::Adler32 => adler32(parts),
        Checksum::Sum => {
            let sum = parts.flatten().fold(0u64, |sum, byte| sum.wrapping_add(u64::from(*byte)));
            sum & (u64::MAX >> (64 - 8 * u32::from(width)))
        }
        Checksum::Xor => u64::from(parts.flatten().fold(0u8, |all, byte| all ^ byte)),
    }
}

/// Width of a checksum field in bytes; `None`: any.
pub(super) fn checksum_width(algorithm: Checksum) -> Option<u8> {
    match algorithm {
        Checksum::Crc32 | Checksum::Crc32C | Checksum::Adler32 => Some(4),
        Checksum::Crc16 | Checksum::Crc16Modbus | Checksum::Crc16Xmodem | Checksum::Crc16Ccitt => {
            Some(2)
        }
        Checksum::Xor => Some(1),
        Checksum::Sum => None,
    }
}

fn crc32<'a>(table: &[u32; 256], parts: impl Iterator<Item = &'a [u8]>) -> u64 {
    let step = |crc: u32, byte: &u8| crc >> 8 ^ table[usize::from(crc as u8 ^ byte)];
    u64::from(!parts.flatten().fold(u32::MAX, step))
}

fn crc16<'a>(start: u16, parts: impl Iterator<Item = &'a [u8]>) -> u64 {
    let step = |crc: u16, byte: &u8| crc >> 8 ^ CRC16[usize::from(crc as u8 ^ byte)];
    u64::from(parts.flatten().fold(start, step))
}

fn ccitt<'a>(start: u16, parts: impl Iterator<Item = &'a [u8]>) -> u64 {
    let step = |crc: u16, byte: &u8| crc << 8 ^ XMODEM[usize::from((crc >> 8) as u8 ^ byte)];
    u64::from(parts.flatten().fold(start, step))
}

fn adler32<'a>(parts: impl Iterator<Item = &'a [u8]>) -> u64 {
    let (mut low, mut high) = (1u32, 0u32);
    for chunk in parts.flat_map(|part| part.chunks(ADLER_BYTES)) {
        for byte in chunk {
            low += u32::from(*byte);
            high += low;
        }
        low %= ADLER;
        high %= ADLER;
    }
    u64::from(high << 16 | low)
}

const fn table32(polynomial: u32) -> [u32; 256] {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let mut crc = index as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ polynomial } else { crc >> 1 };
            bit += 1;
        }
        table[index] = crc;
        index += 1;
    }
    table
}

const fn table16_reflected() -> [u16; 256] {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let mut crc = index as u16;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0xa001 } else { crc >> 1 };
            bit += 1;
        }
        table[index] = crc;
        index += 1;
    }
    table
}

const fn table16() -> [u16; 256] {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let mut crc = (index as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 != 0 { crc << 1 ^ 0x1021 } else { crc << 1 };
            bit += 1;
        }
        table[index] = crc;
        index += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The check values of the catalogue of parametrised CRC algorithms, and of RFC 1950.
    #[test]
    fn checksums_match_their_published_check_values() {
        let cases = [
            (Checksum::Crc32, 4, 0xcbf4_3926),
            (Checksum::Crc32C, 4, 0xe306_9283),
            (Checksum::Crc16, 2, 0xbb3d),
            (Checksum::Crc16Modbus, 2, 0x4b37),
            (Checksum::Crc16Xmodem, 2, 0x31c3),
            (Checksum::Crc16Ccitt, 2, 0x29b1),
            (Checksum::Adler32, 4, 0x091e_01de),
            (Checksum::Sum, 1, 0xdd),
            (Checksum::Sum, 2, 0x1dd),
            (Checksum::Xor, 1, 0x31),
        ];
        for (algorithm, width, expected) in cases {
            let parts = [&b"1234"[..], b"", b"56789"];
            let sum = checksum(algorithm, width, parts.into_iter());
            assert_eq!(sum, expected, "{algorithm:?}");
        }
        let long = vec![0xff; 100_000];
        let whole = checksum(Checksum::Adler32, 4, std::iter::once(&long[..]));
        assert_eq!(whole, checksum(Checksum::Adler32, 4, long.chunks(777)));
    }
}
