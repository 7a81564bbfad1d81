//! Opens a tunnel through an HTTP proxy: CONNECT (RFC 9110, 9.3.6), with Basic authentication. An
//! error before the tunnel is open names the proxy, because the target was never reached.

use throng_metrics::Cause;
use throng_program::Proxy;
use throng_protocol::http1::{RequestKind, basic_authorization, write_connect};

use crate::connector::{Order, Pulled, ask_once, leaves_others, proxy_of};
use crate::failure::Failure;
use crate::shard::Lane;
use crate::transport::Transport;

/// Additional header, by which proxies recognize the client.
const AGENT: &str = concat!("throng/", env!("CARGO_PKG_VERSION"));

/// Requests a tunnel to the target from the proxy.
pub(crate) async fn open(
    shard: &Lane,
    order: &Order,
    proxy: &Proxy,
    transport: &mut Transport,
) -> Result<Pulled, Failure> {
    let target = &shard.prepared.targets[usize::from(order.target)].target;
    let routing = &shard.prepared.program.connection.routing;
    let (host, port) = routing.endpoint(&target.host, target.port);
    let to = throng_program::authority(host, port);
    let mut request = Vec::with_capacity(256);
    let agent = ("User-Agent", AGENT);
    match &proxy.user {
        None => write_connect(&mut request, &to, &[agent]),
        Some((user, password)) => {
            let value = basic_authorization(user, password);
            write_connect(&mut request, &to, &[("Proxy-Authorization", &value), agent]);
        }
    }
    let kind = RequestKind::Connect;
    let answer = ask_once(shard, order, transport, kind, request, |_| ()).await;
    let answer = answer.map_err(|failure| failed(proxy, &failure))?;
    if !(200..300).contains(&answer.status) {
        return Err(refused(proxy, &to, answer.status));
    }
    Ok(answer.pulled)
}

/// The error of a connection that was not established. With a proxy, it is the proxy's.
pub(crate) fn unreached(shard: &Lane, target: u16, failure: Failure) -> Failure {
    match proxy_of(shard, target) {
        None => failure,
        Some(proxy) => failed(proxy, &failure),
    }
}

/// Attributes an error of a target to the proxy. Problems of this host stay as they are.
fn failed(proxy: &Proxy, failure: &Failure) -> Failure {
    let cause = match failure.cause {
        cause if leaves_others(cause) => Cause::ProxyFailed,
        Cause::Timeout
        | Cause::ClosedEarly
        | Cause::Malformed
        | Cause::TooLarge
        | Cause::WrongScheme => Cause::ProxyFailed,
        other => other,
    };
    let detail = say!("the proxy {}: {}", proxy.authority(), failure.detail);
    Failure { status: failure.status, ..Failure::new(cause, detail) }
}

fn refused(proxy: &Proxy, to: &str, status: u16) -> Failure {
    let by = proxy.authority();
    let (cause, detail) = match (status, &proxy.user) {
        (407, None) => (
            Cause::ProxyRefused,
            say!(
                "the proxy {by} requires authentication (407): give `proxy` a `user` and a \
                 `password`, or use --proxy-user"
            ),
        ),
        (407, Some(_)) => {
            (Cause::ProxyRefused, say!("the proxy {by} rejected the user name and password (407)"))
        }
        (500.., _) => {
            (Cause::ProxyFailed, say!("the proxy {by} could not reach {to}: it returned {status}"))
        }
        _ => (
            Cause::ProxyRefused,
            say!("the proxy {by} refused a tunnel to {to}: it returned {status}"),
        ),
    };
    Failure { status, ..Failure::new(cause, detail) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxy(user: Option<(&str, &str)>) -> Proxy {
        let user = user.map(|(name, word)| (name.to_string(), word.to_string()));
        Proxy { host: "::1".into(), port: 3128, user }
    }

    #[test]
    fn refusals_name_the_responsible_side() {
        let told = |user, status| {
            let failure = refused(&proxy(user), "a.test:443", status);
            assert_eq!(failure.status, status);
            assert!(failure.detail.english().contains("the proxy [::1]:3128"), "{failure:?}");
            failure.cause
        };
        for (status, cause) in [
            (407, Cause::ProxyRefused),
            (403, Cause::ProxyRefused),
            (405, Cause::ProxyRefused),
            (302, Cause::ProxyRefused),
            (502, Cause::ProxyFailed),
            (504, Cause::ProxyFailed),
        ] {
            assert_eq!(told(None, status), cause, "{status}");
            assert_eq!(told(Some(("ann", "word")), status), cause, "{status}");
        }
    }

    #[test]
    fn problems_of_this_host_are_not_attributed_to_the_proxy() {
        for (cause, told) in [
            (Cause::ConnectRefused, Cause::ProxyFailed),
            (Cause::ClosedEarly, Cause::ProxyFailed),
            (Cause::PortsExhausted, Cause::PortsExhausted),
            (Cause::DescriptorsExhausted, Cause::DescriptorsExhausted),
        ] {
            let failure =
                failed(&proxy(None), &Failure::new(cause, throng_base::Said::of_others("why")));
            assert_eq!(
                (failure.cause, failure.detail.english().as_str()),
                (told, "the proxy [::1]:3128: why")
            );
        }
    }
}
