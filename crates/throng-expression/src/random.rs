//! `random.*`: values from the user's own random stream, so that a seed replays a run.
//!
//! How many 64-bit numbers each function draws is part of the guarantee of a seed: one for `int`,
//! `u64`, `float`, `bool`, `choice` and `exponential`; two for `uuid` and `normal`; one per
//! character for `string`; one per 16 digits for `hex`; one per 8 bytes for `bytes`.

use crate::call::Call;
use crate::scope::Fault;
use crate::value::Value;

const LETTERS_AND_DIGITS: &[u8; 62] =
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

pub(crate) fn int(call: &mut Call<'_>) -> Result<Value, Fault> {
    let (low, high) = (call.whole(0)?, call.whole(1)?);
    if low > high {
        return Err(Fault(say!("the range of `random.int` from {low} to {high} is empty")));
    }
    let count = (high.wrapping_sub(low) as u64).wrapping_add(1);
    let offset = match count {
        // All 64 bits: the count itself does not fit.
        0 => call.random().next_u64(),
        count => call.random().below(count),
    };
    Ok(Value::Int(low.wrapping_add(offset as i64)))
}

pub(crate) fn u64(call: &mut Call<'_>) -> Result<Value, Fault> {
    Ok(Value::from(call.random().next_u64()))
}

pub(crate) fn float(call: &mut Call<'_>) -> Result<Value, Fault> {
    let (low, high) = match call.arguments.len() {
        0 => (0.0, 1.0),
        1 => (0.0, call.number(0)?),
        _ => (call.number(0)?, call.number(1)?),
    };
    if !(low <= high && low.is_finite() && high.is_finite()) {
        let message = say!("the range of `random.float` from {low} to {high} is empty");
        return Err(Fault(message));
    }
    Ok(Value::Float(call.random().uniform(low, high)))
}

pub(crate) fn bool(call: &mut Call<'_>) -> Result<Value, Fault> {
    Ok(Value::Bool(call.random().next_u64() >> 63 == 1))
}

pub(crate) fn string(call: &mut Call<'_>) -> Result<Value, Fault> {
    let length = call.length(0)?;
    call.charge(length * 4)?;
    if call.arguments.len() == 1 {
        let random = call.random();
        let mut letter = || char::from(LETTERS_AND_DIGITS[random.below(62) as usize]);
        return Ok(Value::from((0..length).map(|_| letter()).collect::<String>()));
    }
    let alphabet: Vec<char> = call.text(1)?.chars().collect();
    if alphabet.is_empty() {
        return Err(Fault(say!("the alphabet of `random.string` is empty")));
    }
    let random = call.random();
    let mut letter = || alphabet[random.below(alphabet.len() as u64) as usize];
    Ok(Value::from((0..length).map(|_| letter()).collect::<String>()))
}

pub(crate) fn hex(call: &mut Call<'_>) -> Result<Value, Fault> {
    let length = call.length(0)?;
    let mut text = String::with_capacity(length + 16);
    while text.len() < length {
        text.push_str(&format!("{:016x}", call.random().next_u64()));
    }
    text.truncate(length);
    Ok(Value::from(text))
}

pub(crate) fn bytes(call: &mut Call<'_>) -> Result<Value, Fault> {
    let length = call.length(0)?;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        bytes.extend_from_slice(&call.random().next_u64().to_be_bytes());
    }
    bytes.truncate(length);
    Ok(Value::Bytes(bytes.into()))
}

/// RFC 9562, section 5.4.
pub(crate) fn uuid(call: &mut Call<'_>) -> Result<Value, Fault> {
    let high = call.random().next_u64() & 0xffff_ffff_ffff_0fff | 0x4000;
    let low = call.random().next_u64() & 0x3fff_ffff_ffff_ffff | 0x8000_0000_0000_0000;
    Ok(Value::from(format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        high >> 32,
        high >> 16 & 0xffff,
        high & 0xffff,
        low >> 48,
        low & 0xffff_ffff_ffff
    )))
}

pub(crate) fn choice(call: &mut Call<'_>) -> Result<Value, Fault> {
    let Value::List(items) = call.value(0) else {
        return Err(call.unsuited(0, call.value(0)));
    };
    let index = call.random().below(items.len() as u64) as usize;
    let item = items.get(index).cloned();
    item.ok_or_else(|| Fault(say!("`random.choice` cannot choose from an empty list")))
}

/// Box and Muller: "A note on the generation of random normal deviates" (1958).
pub(crate) fn normal(call: &mut Call<'_>) -> Result<Value, Fault> {
    let (mean, deviation) = (call.number(0)?, call.number(1)?);
    let random = call.random();
    // The logarithm requires a positive number.
    let radius = (-2.0 * (1.0 - random.unit()).ln()).sqrt();
    let angle = std::f64::consts::TAU * random.unit();
    Ok(Value::Float(mean + deviation * radius * angle.cos()))
}

pub(crate) fn exponential(call: &mut Call<'_>) -> Result<Value, Fault> {
    let mean = call.number(0)?;
    Ok(Value::Float(call.random().exponential(mean)))
}
