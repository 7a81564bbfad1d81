//! Reason codes of MQTT among the statuses of all protocols.

/// The status of reason code 0, behind those of gRPC.
const STATUSES_BEGIN: u16 = 11_000;

/// The status of a reason code of MQTT 5 (2.4). Return codes of 3.1.1 have those of the same
/// meaning.
pub fn status(code: u8) -> u16 {
    STATUSES_BEGIN + u16::from(code)
}

/// The reason code of such a status.
pub fn code_of(status: u16) -> Option<u8> {
    u8::try_from(status.checked_sub(STATUSES_BEGIN)?).ok()
}
