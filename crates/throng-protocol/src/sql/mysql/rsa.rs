//! Encrypts a password with a server's RSA key (RFC 8017: RSAES-OAEP with SHA-1). Only the public
//! operation: apart from the password, there is nothing that a timing attack could reveal.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};

/// Maximum key size. A longer key would block a thread.
const KEY_BYTES_MAX: usize = 512;

const HASH_BYTES: usize = 20;

/// A public key.
pub(super) struct Key {
    modulus: Vec<u64>,
    exponent: Vec<u8>,
    bytes: usize,
}

impl Key {
    /// Reads a `PUBLIC KEY` in PEM (RFC 5280, SubjectPublicKeyInfo).
    pub(super) fn read(pem: &[u8]) -> Option<Key> {
        let pem = std::str::from_utf8(pem).ok()?;
        let (_, pem) = pem.split_once("-----BEGIN PUBLIC KEY-----")?;
        let (body, _) = pem.split_once("-----END")?;
        let body: String = body.split_whitespace().collect();
        let der = STANDARD.decode(body).ok()?;
        let mut info = element(&mut &der[..], 0x30)?;
        element(&mut info, 0x30)?;
        let mut key = element(&mut info, 0x03)?.strip_prefix(&[0])?;
        let mut key = element(&mut key, 0x30)?;
        let modulus = unpadded(element(&mut key, 0x02)?);
        let exponent = unpadded(element(&mut key, 0x02)?).to_vec();
        let is_odd = modulus.last().is_some_and(|byte| byte % 2 == 1);
        if !is_odd || modulus.len() > KEY_BYTES_MAX || !(1..=8).contains(&exponent.len()) {
            return None;
        }
        Some(Key { modulus: limbs(modulus), exponent, bytes: modulus.len() })
    }

    /// `None` if the message is too long for the key. The seed must be random.
    pub(super) fn encrypt(&self, message: &[u8], seed: [u8; HASH_BYTES]) -> Option<Vec<u8>> {
        let padding = self.bytes.checked_sub(2 * HASH_BYTES + 2 + message.len())?;
        let mut data = digest(&SHA1_FOR_LEGACY_USE_ONLY, b"").as_ref().to_vec();
        data.resize(HASH_BYTES + padding, 0);
        data.push(1);
        data.extend_from_slice(message);
        mask(&seed, &mut data);
        let mut seed = seed;
        mask(&data, &mut seed);
        let encoded = limbs(&[&[0], &seed[..], &data].concat());
        let number = power(&encoded, &self.exponent, &self.modulus);
        let digits = number.iter().rev().flat_map(|limb| limb.to_be_bytes());
        Some(digits.skip(number.len() * 8 - self.bytes).collect())
    }
}

/// The content of a DER element with this tag.
fn element<'d>(der: &mut &'d [u8], tag: u8) -> Option<&'d [u8]> {
    let (&[found, length], mut rest) = der.split_first_chunk()?;
    let length = match length {
        0x81..=0x84 => {
            let (digits, behind) = rest.split_at_checked(usize::from(length & 0x7f))?;
            rest = behind;
            digits.iter().fold(0, |number, digit| number << 8 | usize::from(*digit))
        }
        length => length.into(),
    };
    let (content, behind) = rest.split_at_checked(length)?;
    *der = behind;
    (found == tag).then_some(content)
}

fn unpadded(number: &[u8]) -> &[u8] {
    &number[number.iter().take_while(|byte| **byte == 0).count()..]
}

/// MGF1 with SHA-1.
fn mask(seed: &[u8], data: &mut [u8]) {
    for (count, chunk) in (0u32..).zip(data.chunks_mut(HASH_BYTES)) {
        let hash = digest(&SHA1_FOR_LEGACY_USE_ONLY, &[seed, &count.to_be_bytes()].concat());
        chunk.iter_mut().zip(hash.as_ref()).for_each(|(byte, mask)| *byte ^= mask);
    }
}

/// A number as limbs, lowest first.
fn limbs(bytes: &[u8]) -> Vec<u64> {
    let digits = |chunk: &[u8]| chunk.iter().fold(0, |limb, digit| limb << 8 | u64::from(*digit));
    bytes.rchunks(8).map(digits).collect()
}

/// `base` to the power of `exponent`.
fn power(base: &[u64], exponent: &[u8], modulus: &[u64]) -> Vec<u64> {
    let mut result = vec![0; modulus.len()];
    result[0] = 1;
    for bit in exponent.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1)) {
        result = product(&result, &result, modulus);
        if bit == 1 {
            result = product(&result, base, modulus);
        }
    }
    result
}

/// Of two numbers below the modulus: by doubling and adding.
fn product(a: &[u64], b: &[u64], modulus: &[u64]) -> Vec<u64> {
    let (mut result, mut doubled) = (vec![0; modulus.len()], vec![0; modulus.len()]);
    for bit in a.iter().rev().flat_map(|limb| (0..64).rev().map(move |bit| limb >> bit & 1)) {
        doubled.copy_from_slice(&result);
        add(&mut result, &doubled, modulus);
        if bit == 1 {
            add(&mut result, b, modulus);
        }
    }
    result
}

fn add(sum: &mut [u64], other: &[u64], modulus: &[u64]) {
    let mut carry = false;
    for (at, limb) in sum.iter_mut().enumerate() {
        let (half, over) = limb.overflowing_add(other.get(at).copied().unwrap_or(0));
        let (whole, more) = half.overflowing_add(carry.into());
        (*limb, carry) = (whole, over || more);
    }
    if carry || sum.iter().rev().ge(modulus.iter().rev()) {
        let mut borrow = false;
        for (limb, less) in sum.iter_mut().zip(modulus) {
            let (half, under) = limb.overflowing_sub(*less);
            let (whole, more) = half.overflowing_sub(borrow.into());
            (*limb, borrow) = (whole, under || more);
        }
    }
}
