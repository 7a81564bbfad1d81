//! `hash.*` and `hmac.*` as hexadecimal digits, base64 or bytes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::{digest, hmac};

use crate::call::Call;
use crate::encoding::hex_of;
use crate::scope::EvaluationError;
use crate::value::Value;

macro_rules! digests {
    ($($hex:ident $base64:ident $bytes:ident = $compute:expr;)*) => {$(
        pub(crate) fn $hex(call: &mut Call<'_>) -> Result<Value, EvaluationError> {
            let digest = $compute(call)?;
            Ok(Value::from(hex_of(digest.as_ref())))
        }

        pub(crate) fn $base64(call: &mut Call<'_>) -> Result<Value, EvaluationError> {
            let digest = $compute(call)?;
            Ok(Value::from(STANDARD.encode(digest)))
        }

        pub(crate) fn $bytes(call: &mut Call<'_>) -> Result<Value, EvaluationError> {
            let digest = $compute(call)?;
            Ok(Value::from(AsRef::<[u8]>::as_ref(&digest)))
        }
    )*};
}

digests! {
    md5 md5_base64 md5_bytes =
        |call: &mut Call<'_>| call.octets(0).map(|bytes| ::md5::compute(bytes).0);
    sha1 sha1_base64 sha1_bytes = |call| hash(call, &digest::SHA1_FOR_LEGACY_USE_ONLY);
    sha256 sha256_base64 sha256_bytes = |call| hash(call, &digest::SHA256);
    sha512 sha512_base64 sha512_bytes = |call| hash(call, &digest::SHA512);
    hmac_sha1 hmac_sha1_base64 hmac_sha1_bytes =
        |call| sign(call, hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY);
    hmac_sha256 hmac_sha256_base64 hmac_sha256_bytes = |call| sign(call, hmac::HMAC_SHA256);
    hmac_sha512 hmac_sha512_base64 hmac_sha512_bytes = |call| sign(call, hmac::HMAC_SHA512);
}

pub(crate) fn crc32(call: &mut Call<'_>) -> Result<Value, EvaluationError> {
    Ok(Value::from(crc32fast::hash(call.octets(0)?)))
}

fn hash(
    call: &mut Call<'_>,
    algorithm: &'static digest::Algorithm,
) -> Result<digest::Digest, EvaluationError> {
    Ok(digest::digest(algorithm, call.octets(0)?))
}

fn sign(call: &mut Call<'_>, algorithm: hmac::Algorithm) -> Result<hmac::Tag, EvaluationError> {
    let key = hmac::Key::new(algorithm, call.octets(0)?);
    Ok(hmac::sign(&key, call.octets(1)?))
}
