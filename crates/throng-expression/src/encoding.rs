//! `base64`, `hex`, `xor`, `json` and `url`: encodings that protocols use.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use crate::call::Call;
use crate::scope::Fault;
use crate::value::Value;

/// Reads base64 with or without padding.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

pub(crate) fn base64_encode(call: &mut Call<'_>) -> Result<Value, Fault> {
    Ok(Value::from(STANDARD.encode(call.octets(0)?)))
}

pub(crate) fn base64_url(call: &mut Call<'_>) -> Result<Value, Fault> {
    Ok(Value::from(URL_SAFE_NO_PAD.encode(call.octets(0)?)))
}

pub(crate) fn base64_decode(call: &mut Call<'_>) -> Result<Value, Fault> {
    let text = call.text(0)?;
    let standard: Vec<u8> = text
        .bytes()
        .filter(|byte| !byte.is_ascii_whitespace())
        .map(|byte| match byte {
            b'-' => b'+',
            b'_' => b'/',
            other => other,
        })
        .collect();
    let decoded = LENIENT.decode(standard);
    decoded.map(Value::from).map_err(|_| Fault(say!("the text is not base64")))
}

pub(crate) fn hex_encode(call: &mut Call<'_>) -> Result<Value, Fault> {
    Ok(Value::from(hex_of(call.octets(0)?)))
}

pub(crate) fn hex_of(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

pub(crate) fn hex_decode(call: &mut Call<'_>) -> Result<Value, Fault> {
    let digits = call.text(0)?.as_bytes();
    let pair = |pair: &[u8]| match pair {
        [high, low] => Some(nibble(*high)? << 4 | nibble(*low)?),
        _ => None,
    };
    let bytes: Option<Vec<u8>> = digits.chunks(2).map(pair).collect();
    bytes
        .map(Value::from)
        .ok_or_else(|| Fault(say!("the text must consist of pairs of hexadecimal digits")))
}

fn nibble(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}

pub(crate) fn xor(call: &mut Call<'_>) -> Result<Value, Fault> {
    let (one, other) = (call.octets(0)?, call.octets(1)?);
    if one.len() != other.len() {
        let lengths = (one.len(), other.len());
        return Err(Fault(say!(
            "`xor` requires two values of the same length, not {} and {} bytes",
            lengths.0,
            lengths.1
        )));
    }
    let bytes: Vec<u8> = one.iter().zip(other).map(|(one, other)| one ^ other).collect();
    Ok(Value::from(bytes))
}

pub(crate) fn json_encode(call: &mut Call<'_>) -> Result<Value, Fault> {
    let mut out = Vec::new();
    call.value(0).write_json(&mut out);
    call.charge(out.len())?;
    as_text(out)
}

pub(crate) fn json_parse(call: &mut Call<'_>) -> Result<Value, Fault> {
    let text = call.octets(0)?;
    call.charge(text.len() * 4)?;
    Value::parse_json(text).map_err(|error| Fault(say!("the text is not JSON: {error}")))
}

pub(crate) fn url_encode(call: &mut Call<'_>) -> Result<Value, Fault> {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let octets = call.octets(0)?;
    let mut out = String::with_capacity(octets.len());
    for byte in octets {
        // RFC 3986, section 2.3.
        if byte.is_ascii_alphanumeric() || b"-._~".contains(byte) {
            out.push(char::from(*byte));
        } else {
            let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble)]);
            out.extend(['%', digit(byte >> 4), digit(byte & 15)]);
        }
    }
    Ok(Value::from(out))
}

pub(crate) fn url_decode(call: &mut Call<'_>) -> Result<Value, Fault> {
    let text = call.text(0)?.as_bytes();
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        if text[at] != b'%' {
            out.push(text[at]);
            at += 1;
            continue;
        }
        let byte = match text.get(at + 1..at + 3) {
            Some([high, low]) => nibble(*high).zip(nibble(*low)),
            _ => None,
        };
        let (high, low) = byte.ok_or_else(|| {
            Fault(say!("the text has a `%` without two hexadecimal digits after it"))
        })?;
        out.push(high << 4 | low);
        at += 3;
    }
    as_text(out)
}

/// A function always returns the same type, whatever its argument contains: otherwise a comparison
/// with its result would hold for some users and not for others.
fn as_text(bytes: Vec<u8>) -> Result<Value, Fault> {
    String::from_utf8(bytes)
        .map(Value::from)
        .map_err(|_| Fault(say!("the decoded bytes are not UTF-8 text")))
}
