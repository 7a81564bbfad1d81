//! The cookies that responses set. Refused cookies are reported in traces.

use throng_base::{Said, Time};
use throng_protocol::http1::{CookieLimits, Jar, Refusal, Stored};

use crate::failure::shown;
use crate::prepared::cookies::Place;
use crate::shard::Lane;
use crate::trace::{What, Who};

/// Stores the cookies of a response in the jar of a user.
pub(super) fn keep<'v>(
    jar: &mut Jar,
    (place, path): (Place<'_>, &str),
    values: impl Iterator<Item = &'v [u8]>,
    shard: &Lane,
    (who, now): (Who, Time),
) {
    let limits = CookieLimits::default();
    let Place { host, secure, unix_seconds } = place;
    for value in values {
        let stored = jar.store(value, host, path, secure, unix_seconds, &limits);
        if let Stored::Refused(refusal) = stored {
            shard.tell(who, now, || refused(value, refusal, host, &limits));
        }
    }
}

#[cold]
fn refused(value: &[u8], refusal: Refusal, host: &str, limits: &CookieLimits) -> What {
    let name = value.split(|byte| matches!(byte, b'=' | b';')).next().unwrap_or_default();
    What::CookieRefused { name: shown(name.trim_ascii()), why: reason(refusal, host, limits) }
}

fn reason(refusal: Refusal, host: &str, limits: &CookieLimits) -> Said {
    match refusal {
        Refusal::Malformed => say!("it is not `name=value`, or it contains a control character"),
        Refusal::TooLong => {
            say!("its name and value are longer than {} bytes", limits.cookie_bytes_max)
        }
        Refusal::OtherDomain => say!("its `Domain` does not include the host `{host}`"),
        Refusal::NotSecure => say!("it is `Secure`, but the connection does not use TLS"),
        Refusal::Guarded => {
            say!("a `Secure` cookie has this name, but the connection does not use TLS")
        }
        Refusal::NoRoom => say!("the limit on cookies is 0"),
    }
}
