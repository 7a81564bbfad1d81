//! Why a stream refused something.

use std::error::Error;

use async_nats::jetstream::ErrorCode;
use async_nats::jetstream::context::{PublishError, PublishErrorKind};

use crate::BusError;

pub(super) fn kept_not(error: &PublishError) -> BusError {
    match error.kind() {
        PublishErrorKind::WrongLastSequence => BusError::Conflict,
        PublishErrorKind::MaxPayloadExceeded => too_long(),
        _ if is_full(error) => BusError::Full,
        _ => BusError::Cut,
    }
}

pub(super) fn too_long() -> BusError {
    BusError::Refused(say!("a line of the log is too long"))
}

/// True if a stream or all of JetStream is full.
pub(super) fn is_full(error: &(dyn Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<async_nats::jetstream::Error>() {
            return FULL.contains(&error.error_code());
        }
        cause = error.source();
    }
    // For pieces of an object, only the text of the error is left.
    let text = error.to_string();
    FULL.iter().any(|code| text.contains(&format!("error code {})", code.0)))
}

const FULL: [ErrorCode; 4] = [
    ErrorCode::STREAM_STORE_FAILED,
    ErrorCode::STORAGE_RESOURCES_EXCEEDED,
    ErrorCode::INSUFFICIENT_RESOURCES,
    ErrorCode::ACCOUNT_RESOURCES_EXCEEDED,
];
