//! The one thing to do next when steps fail for a cause; `throng explain` says more.

use throng_base::Said;

use crate::Cause;

impl Cause {
    /// What to do next, in a few words.
    pub fn next(self) -> Said {
        match self {
            Cause::ResolveFailed => say!("check the host name and the DNS settings of this host"),
            Cause::ConnectRefused => say!("check that the target listens on this port"),
            Cause::ConnectTimeout => say!("check for a firewall or a full accept queue"),
            Cause::Unreachable => say!("check the route and the address"),
            Cause::DescriptorsExhausted => say!("raise the limit of open files (`ulimit -n`)"),
            Cause::PortsExhausted => say!("add source addresses, or keep connections open"),
            Cause::MemoryExhausted => say!("use fewer users, or raise tcp_mem"),
            Cause::MemoryLimit => say!("raise `--max-memory`, or use fewer users"),
            Cause::Denied => say!("check the firewall rules of this host"),
            Cause::ProxyFailed => say!("check the proxy's address and log"),
            Cause::ProxyRefused => say!("check the user name and password for the proxy"),
            Cause::TlsFailed => say!("try the target with `openssl s_client`"),
            Cause::CertificateRefused => {
                say!("use --cacert or `tls: {{ca: FILE}}`, or skip the check")
            }
            Cause::ClientCertificate => {
                say!("use a certificate that the target trusts: --cert or `tls`")
            }
            Cause::WrongScheme => say!("try http instead of https, or vice versa"),
            Cause::UpgradeRefused => say!("check the response, then the path, Origin and token"),
            Cause::ClosedEarly | Cause::Reset => {
                say!("check the target's log and its connection limit")
            }
            Cause::Timeout => say!("find out what the target waits for, or raise the timeout"),
            Cause::Malformed => say!("look at a response with --details"),
            Cause::TooLarge => say!("raise the limit if such responses are normal"),
            Cause::StatusUnexpected => {
                say!("look at a response with --details, and the target's log")
            }
            Cause::MqttReason => {
                say!("see the reason with --details, and check the server's log")
            }
            Cause::MqttRequest => say!("look at the reason with --details, then fix the step"),
            Cause::MqttProtocol => {
                say!("check the packets with `throng try`, then fix the server")
            }
            Cause::RedisError => {
                say!("see the error with --details, and check the server's log")
            }
            Cause::RedisRequest => say!("look at the error with --details, then fix the step"),
            Cause::SqlServer => say!("see the error with --details, and the server's log"),
            Cause::SqlConflict => say!("see the error with --details; retry, or use other keys"),
            Cause::SqlRequest => say!("look at the error with --details, then fix the step"),
            Cause::SqlProtocol => say!("look at the error with --details, and report it"),
            Cause::GrpcStatus => say!("look at the status and its message with --details"),
            Cause::BodyUnexpected
            | Cause::JsonUnexpected
            | Cause::HeaderUnexpected
            | Cause::FieldUnexpected
            | Cause::CheckFailed => say!("use --details to compare a response with the check"),
            Cause::TooSlow => say!("find out what is slow, or allow more time in the check"),
            Cause::CodingFailed => say!("look at the Content-Encoding with --details"),
            Cause::RedirectFailed => say!("use `throng try` to see where the redirect leads"),
            Cause::HeartbeatLost => say!("check the target's load at that time"),
            Cause::DeliveryLost => say!("trace one lost message through the target"),
            Cause::Lost => say!("find the reason for the close in the target's log"),
            Cause::SaveFailed => say!("look at a response with `throng try`"),
            Cause::MessagesDropped => say!("reduce the handler time per message"),
            Cause::MessagesJoined => say!("set `protocol: {{delimiter: …}}` for the connection"),
            Cause::NetworkFailed => say!("check the network path to the target: `ip -s link`"),
            Cause::GeneratorFailed => say!("look at the example with --details"),
            Cause::ExpressionFailed => say!("run one user with `throng try`"),
            Cause::DataExhausted => say!("add rows, or reuse rows (`at_end: wrap`)"),
            Cause::DataFailed => say!("fix the row named in the example"),
            Cause::RendezvousTimeout => say!("use more users, or wait longer"),
            Cause::ScenarioFailed => say!("run one user with `throng try`"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_to_do_next_fits_into_a_line() {
        for cause in Cause::ALL {
            let next = cause.next().english();
            assert!((10..=58).contains(&next.len()), "{}: {next}", cause.word());
        }
    }
}
