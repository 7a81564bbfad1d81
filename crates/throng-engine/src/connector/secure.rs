//! TLS on a connection that is already open, after the steps of a scenario have agreed on it with
//! the target (STARTTLS).

use throng_metrics::Cause;

use super::handshake;
use crate::failure::{Failure, shown};
use crate::network::Connector;
use crate::shard::Lane;
use crate::transport::Transport;
use crate::transport::stream::Below;

/// The transport that starts TLS.
pub(crate) fn secure(shard: &Lane, target: u16, plain: Transport) -> Transport {
    #[cfg_attr(not(test), expect(clippy::infallible_destructuring_match))]
    let network = match &shard.connector {
        Connector::Network(network) => network,
        // An in-memory transport is unchanged.
        #[cfg(test)]
        Connector::World(_) => return Transport::Securing(Box::pin(async { Ok(plain) })),
    };
    let below = match plain {
        Transport::Tcp(stream) | Transport::Stamped(stream) => Below::Tcp(stream),
        Transport::Unix(stream) => Below::Unix(stream),
        other => return other,
    };
    let name = network.server_names[usize::from(target)].clone();
    let Some(tls) = network.tls(&[]).cloned() else {
        let failure = Failure::new(Cause::GeneratorFailed, say!("TLS was not prepared"));
        return Transport::Securing(Box::pin(async { Err(failure) }));
    };
    Transport::Securing(Box::pin(async move { handshake(&tls, name, below, speaks_plain).await }))
}

/// The error of a target that has agreed to TLS and does not speak it.
pub(super) fn speaks_plain(heard: &[u8]) -> Failure {
    let heard = shown(heard);
    Failure::new(Cause::TlsFailed, say!("the target sent `{heard}` in plain text instead of TLS"))
}
