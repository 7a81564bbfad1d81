//! Evidence of the first failures of each kind: the user, its data row, and what was sent and
//! received. Part of `failure` in `events.ndjson`, of JSON, and of `--details`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use throng_base::{Said, Secrets};
use throng_metrics::Cause;

use crate::directory::spelling;

/// Maximum number of failures with evidence: the first of each step, cause and code.
pub const EVIDENCE_MAX: usize = 64;
/// Maximum length of sent and of received data.
const TEXT_CHARS_MAX: usize = 2000;
pub(crate) const HEX_BYTES_MAX: usize = 256;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Evidence {
    pub user: u64,
    /// Counted from 1; 0 before the first iteration.
    pub iteration: u64,
    /// HTTP status; 0 without one.
    pub code: u16,
    /// The fields of the user's data rows: `source.column` and its value as JSON.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub row: BTreeMap<String, String>,
    /// Absent if unknown: messages of long-lived connections are not kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent: Option<Piece>,
    /// Absent if nothing was received or kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub received: Option<Piece>,
}

/// Sent or received bytes, shortened and without secrets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Piece {
    /// Total number of bytes.
    pub bytes: u64,
    /// As text. In binary data, each byte that is not a printable ASCII character is a dot.
    pub text: String,
    /// For binary data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hex: Option<String>,
}

/// A failure with its evidence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FailureRow {
    pub step: String,
    pub cause: Cause,
    pub at_ns: u64,
    #[serde(serialize_with = "spelling::english")]
    pub detail: Said,
    pub evidence: Evidence,
}

impl Piece {
    /// The first of `length` bytes.
    pub fn of(bytes: &[u8], length: u64, secrets: &Secrets) -> Piece {
        let masked = secrets.mask_bytes(bytes);
        // The last character may be incomplete.
        let valid = match std::str::from_utf8(&masked) {
            Ok(text) => Some(text),
            Err(error) if error.valid_up_to() + 4 > masked.len() && error.valid_up_to() > 0 => {
                std::str::from_utf8(&masked[..error.valid_up_to()]).ok()
            }
            Err(_) => None,
        };
        let is_binary = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t');
        if let Some(text) = valid.filter(|text| !text.contains(is_binary)) {
            let text = text.chars().take(TEXT_CHARS_MAX).collect();
            return Piece { bytes: length, text, hex: None };
        }
        let short = &masked[..masked.len().min(HEX_BYTES_MAX)];
        let graphic = |byte: &u8| match byte.is_ascii_graphic() || *byte == b' ' {
            true => char::from(*byte),
            false => '.',
        };
        let hex: Vec<String> = short.iter().map(|byte| format!("{byte:02x}")).collect();
        let text = short.iter().map(graphic).collect();
        Piece { bytes: length, text, hex: Some(hex.join(" ")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_text_or_hex_and_contain_no_secrets() {
        let mut secrets = Secrets::default();
        secrets.add("swordfish");
        let piece = |bytes: &[u8]| Piece::of(bytes, bytes.len() as u64, &secrets);
        let text = piece("token=abc&x=swordfish ü".as_bytes());
        assert_eq!((&*text.text, text.hex), ("token=***&x=*** ü", None));
        // An incomplete last character does not make the data binary.
        assert_eq!(piece(b"ab\xc3").text, "ab");
        let binary = piece(b"\x00\x01swordfish\xffA");
        assert_eq!(binary.text, "..***.A");
        assert_eq!(binary.hex.as_deref(), Some("00 01 2a 2a 2a ff 41"));
        assert_eq!(piece(&[b'x'; 10_000]).text.len(), TEXT_CHARS_MAX);
        assert_eq!(piece(&[0; 10_000]).text.len(), HEX_BYTES_MAX);
    }

    #[test]
    fn old_run_directories_without_evidence_are_readable() {
        let line = r#"{"event":"failure","at_ns":1,"step":0,"cause":"timeout","detail":"x"}"#;
        let event: crate::Event = serde_json::from_str(line).unwrap();
        assert_eq!(serde_json::to_string(&event).unwrap(), line);
    }
}
