//! A source file as compressed bytes, for long texts that are rarely read.

use std::io::Write as _;
use std::path::Path;

use flate2::Compression;
use flate2::write::ZlibEncoder;

/// The compressed bytes (RFC 1950) of a file in the crate that is being compiled, and its absolute
/// path.
pub(crate) fn packed(name: &str) -> Result<(Vec<u8>, String), String> {
    let folder = std::env::var("CARGO_MANIFEST_DIR").map_err(|error| error.to_string())?;
    let path = Path::new(&folder).join(name);
    let told = |error: std::io::Error| format!("{}: {error}", path.display());
    let bytes = std::fs::read(&path).map_err(told)?;
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&bytes).map_err(told)?;
    Ok((encoder.finish().map_err(told)?, path.display().to_string()))
}
