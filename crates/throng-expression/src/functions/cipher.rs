//! `aes.*`: AES in the modes CBC, CTR (NIST SP 800-38A) and GCM (SP 800-38D).

use aes::cipher::consts::U16;
use aes::cipher::{BlockDecrypt, BlockEncrypt, KeyInit};
use aes::{Aes128Dec, Aes128Enc, Aes192Dec, Aes192Enc, Aes256Dec, Aes256Enc};
use ring::aead;

use crate::call::{Call, FunctionDoc, too_much};
use crate::scope::EvaluationError;
use crate::value::Value;

const BLOCK: usize = 16;
const TAG: usize = 16;

type Block = [u8; BLOCK];

/// Runs a mode with the cipher that the length of the key selects.
macro_rules! modes {
    ($($function:ident = $mode:ident($aes128:ident, $aes192:ident, $aes256:ident);)*) => {$(
        pub(crate) fn $function(call: &mut Call<'_>) -> Result<Value, EvaluationError> {
            let [key, block, data] = inputs(call)?;
            let mut block = <Block>::try_from(block).unwrap_or_default();
            match key.len() {
                16 => $mode(&$aes128::new(key.into()), &mut block, data),
                24 => $mode(&$aes192::new(key.into()), &mut block, data),
                _ => $mode(&$aes256::new(key.into()), &mut block, data),
            }
            .map(Value::from)
        }
    )*};
}

modes! {
    cbc_encrypt = chain(Aes128Enc, Aes192Enc, Aes256Enc);
    cbc_decrypt = unchain(Aes128Dec, Aes192Dec, Aes256Dec);
    ctr = count(Aes128Enc, Aes192Enc, Aes256Enc);
}

/// An AES block costs as much as an evaluation step, which the charge for arguments covers in part.
const EXTRA_CHARGES: usize = 3;

/// The key, the initial block or nonce, and the data.
fn inputs<'a>(call: &mut Call<'a>) -> Result<[&'a [u8]; 3], EvaluationError> {
    let inputs = [call.octets(0)?, call.octets(1)?, call.octets(2)?];
    for (index, input) in inputs.iter().enumerate() {
        check_length(call.function, index, input.len())?;
    }
    call.charge(inputs[2].len() * EXTRA_CHARGES)?;
    Ok(inputs)
}

/// Rejects an argument of `aes.*` that has a wrong length, such as a key. The compiler calls this
/// for each constant argument of any function.
pub(crate) fn check_length(
    function: &FunctionDoc,
    index: usize,
    found: usize,
) -> Result<(), EvaluationError> {
    let Some(mode) = function.name.strip_prefix("aes.") else { return Ok(()) };
    let expected: &[usize] = match (index, mode.starts_with("gcm")) {
        (0, true) => &[16, 32],
        (0, false) => &[16, 24, 32],
        (1, true) => &[aead::NONCE_LEN],
        (1, false) => &[BLOCK],
        _ => return Ok(()),
    };
    if expected.contains(&found) {
        return Ok(());
    }
    let expected: Vec<String> = expected.iter().map(usize::to_string).collect();
    let (argument, name) = (function.arguments[index], function.name);
    Err(EvaluationError(say!(
        "the argument `{argument}` of `{name}` has {found} bytes; expected: {}",
        expected.join(", ")
    )))
}

fn xor(block: &mut Block, with: &[u8]) {
    for (byte, with) in block.iter_mut().zip(with) {
        *byte ^= with;
    }
}

/// CBC with the padding of PKCS#7: 1 to 16 bytes, each of which is their number.
fn chain<C: BlockEncrypt<BlockSize = U16>>(
    cipher: &C,
    block: &mut Block,
    data: &[u8],
) -> Result<Vec<u8>, EvaluationError> {
    let padding = BLOCK - data.len() % BLOCK;
    let mut out = Vec::with_capacity(data.len() + padding);
    let (blocks, rest) = data.as_chunks::<BLOCK>();
    let mut last = [padding as u8; BLOCK];
    last[..rest.len()].copy_from_slice(rest);
    for plain in blocks.iter().chain([&last]) {
        xor(block, plain);
        cipher.encrypt_block(block.into());
        out.extend_from_slice(block);
    }
    Ok(out)
}

fn unchain<C: BlockDecrypt<BlockSize = U16>>(
    cipher: &C,
    before: &mut Block,
    data: &[u8],
) -> Result<Vec<u8>, EvaluationError> {
    let (blocks, rest) = data.as_chunks::<BLOCK>();
    if blocks.is_empty() || !rest.is_empty() {
        let found = data.len();
        return Err(EvaluationError(say!(
            "`aes.cbc_decrypt` takes one or more blocks of 16 bytes, not {found} bytes"
        )));
    }
    let mut out = Vec::with_capacity(data.len());
    for encrypted in blocks {
        let mut block = *encrypted;
        cipher.decrypt_block((&mut block).into());
        xor(&mut block, before);
        *before = *encrypted;
        out.extend_from_slice(&block);
    }
    let padding = out.last().copied().unwrap_or_default();
    let plain = out.len().saturating_sub(usize::from(padding));
    let is_padded =
        (1..=BLOCK as u8).contains(&padding) && out[plain..].iter().all(|byte| *byte == padding);
    if !is_padded {
        return Err(EvaluationError(say!(
            "the decrypted data does not end with PKCS#7 padding: use the key and the IV with which \
             it was encrypted"
        )));
    }
    out.truncate(plain);
    Ok(out)
}

/// CTR: encrypts and decrypts.
fn count<C: BlockEncrypt<BlockSize = U16>>(
    cipher: &C,
    counter: &mut Block,
    data: &[u8],
) -> Result<Vec<u8>, EvaluationError> {
    let mut out = data.to_vec();
    for bytes in out.chunks_mut(BLOCK) {
        let mut stream = *counter;
        cipher.encrypt_block((&mut stream).into());
        for (byte, with) in bytes.iter_mut().zip(stream) {
            *byte ^= with;
        }
        *counter = u128::from_be_bytes(*counter).wrapping_add(1).to_be_bytes();
    }
    Ok(out)
}

pub(crate) fn gcm_encrypt(call: &mut Call<'_>) -> Result<Value, EvaluationError> {
    let [key, nonce, data] = inputs(call)?;
    let (key, nonce) = gcm(key, nonce).ok_or_else(too_much)?;
    let mut out = Vec::with_capacity(data.len() + TAG);
    out.extend_from_slice(data);
    // Fails only if the data is longer than 64 GB.
    key.seal_in_place_append_tag(nonce, aead::Aad::empty(), &mut out).map_err(|_| too_much())?;
    Ok(Value::from(out))
}

pub(crate) fn gcm_decrypt(call: &mut Call<'_>) -> Result<Value, EvaluationError> {
    let [key, nonce, data] = inputs(call)?;
    if data.len() < TAG {
        let found = data.len();
        return Err(EvaluationError(say!(
            "`aes.gcm_decrypt` takes data that ends with a tag of 16 bytes, not {found} bytes"
        )));
    }
    let (key, nonce) = gcm(key, nonce).ok_or_else(too_much)?;
    let mut out = data.to_vec();
    let opened = key.open_in_place(nonce, aead::Aad::empty(), &mut out);
    let plain = opened.map(|plain| plain.len()).map_err(|_| {
        EvaluationError(say!(
            "the GCM tag does not match: use the key and the nonce with which the data was \
             encrypted, and all of its bytes"
        ))
    })?;
    out.truncate(plain);
    Ok(Value::from(out))
}

/// A key and a nonce of the right lengths.
fn gcm(key: &[u8], nonce: &[u8]) -> Option<(aead::LessSafeKey, aead::Nonce)> {
    let algorithm = if key.len() == 16 { &aead::AES_128_GCM } else { &aead::AES_256_GCM };
    let key = aead::UnboundKey::new(algorithm, key).ok()?;
    let nonce = aead::Nonce::try_assume_unique_for_key(nonce).ok()?;
    Some((aead::LessSafeKey::new(key), nonce))
}
