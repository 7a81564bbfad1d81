//! Metadata: custom headers that a caller sends, and headers and trailers that it receives. Values
//! of names that end in `-bin` are bytes, encoded as base64.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use throng_base::Said;

/// Headers that a caller may not set.
const RESERVED: &[&str] =
    &["te", "content-type", "connection", "host", "keep-alive", "transfer-encoding", "upgrade"];

/// Why metadata cannot be sent: what is wrong, and the fix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetadataMistake {
    pub message: Said,
    pub help: Said,
}

pub fn is_binary(name: &str) -> bool {
    name.ends_with("-bin")
}

/// Checks that a name can be sent: lower-case letters, digits, `_`, `-` and `.`, and not reserved
/// by gRPC or HTTP/2. Upper-case letters are allowed and sent in lower case.
pub fn check_name(name: &str) -> Result<(), MetadataMistake> {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    let lower = name.to_ascii_lowercase();
    if name.is_empty() || !name.bytes().all(is_part) {
        let message = say!("`{}` is not a valid metadata name", name.escape_debug());
        let help = say!("names consist of letters, digits, `_`, `-` and `.`");
        return Err(MetadataMistake { message, help });
    }
    if lower.starts_with("grpc-") || RESERVED.contains(&lower.as_str()) {
        let message = say!("`{name}` is a header reserved by gRPC");
        let help = say!("choose another name; deadlines and compression have their own keys");
        return Err(MetadataMistake { message, help });
    }
    Ok(())
}

/// Appends the value of a header: base64 for a binary name, otherwise printable ASCII. Nothing is
/// appended if it cannot be sent.
pub fn write_value(name: &str, value: &[u8], out: &mut Vec<u8>) -> Result<(), MetadataMistake> {
    if is_binary(name) {
        out.extend_from_slice(STANDARD_NO_PAD.encode(value).as_bytes());
        return Ok(());
    }
    if let Some(byte) = value.iter().find(|byte| !(0x20..0x7f).contains(*byte)) {
        let message = say!("the value of the metadata `{name}` contains the byte 0x{byte:02x}");
        let help = say!("values must be printable ASCII; to send bytes, name it `{name}-bin`");
        return Err(MetadataMistake { message, help });
    }
    out.extend_from_slice(value);
    Ok(())
}
