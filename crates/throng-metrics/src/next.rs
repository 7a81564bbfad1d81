//! The one thing to do next when steps fail for a cause; `throng explain` says more.

use throng_base::Said;

use crate::Cause;

impl Cause {
    /// What to do next, in a few words.
    pub fn next(self) -> Said {
        match self {
            Cause::ResolveFailed => say!("check the name, and the DNS of this computer"),
            Cause::ConnectRefused => say!("check that the target listens on this port"),
            Cause::ConnectTimeout => say!("look for a firewall, or a full accept queue"),
            Cause::Unreachable => say!("check the route and the address"),
            Cause::DescriptorsExhausted => say!("raise the limit of open files (`ulimit -n`)"),
            Cause::PortsExhausted => say!("add source addresses, or keep connections open"),
            Cause::MemoryExhausted => say!("use fewer users, or raise tcp_mem"),
            Cause::MemoryLimit => say!("raise `--max-memory`, or use fewer users"),
            Cause::Denied => say!("look at the firewall rules of this computer"),
            Cause::ProxyFailed => say!("check the address of the proxy, and its log"),
            Cause::ProxyRefused => say!("check user and password of the proxy"),
            Cause::TlsFailed => say!("try the target with `openssl s_client`"),
            Cause::CertificateRefused => say!("give --cacert, or --insecure for a test server"),
            Cause::ClientCertificate => say!("give --cert and --key that the target trusts"),
            Cause::WrongScheme => say!("try http instead of https, or the other way round"),
            Cause::UpgradeRefused => say!("look at its answer: path, Origin or token"),
            Cause::ClosedEarly | Cause::Reset => {
                say!("look at the log of the target and its connection limit")
            }
            Cause::Timeout => say!("look at what the target waits for, or raise the timeout"),
            Cause::Malformed => say!("look at an answer with --details"),
            Cause::TooLarge => say!("raise the limit if such answers are right"),
            Cause::StatusUnexpected => say!("look at an answer with --details, and at its log"),
            Cause::GrpcStatus => say!("look at the status and its message with --details"),
            Cause::BodyUnexpected
            | Cause::JsonUnexpected
            | Cause::HeaderUnexpected
            | Cause::FieldUnexpected
            | Cause::CheckFailed => say!("compare an answer with the check: --details"),
            Cause::TooSlow => say!("find what is slow, or allow more time in the check"),
            Cause::CodingFailed => say!("look at its Content-Encoding with --details"),
            Cause::RedirectFailed => say!("look where it leads with `throng try`"),
            Cause::HeartbeatLost => say!("look at the load of the target at that time"),
            Cause::DeliveryLost => say!("follow one lost message through the target"),
            Cause::Lost => say!("look in the log of the target why it closed"),
            Cause::SaveFailed => say!("look at an answer with `throng try`"),
            Cause::MessagesDropped => say!("let handlers take less time for a message"),
            Cause::NetworkFailed => say!("look at the network between: `ip -s link`"),
            Cause::GeneratorFailed => say!("look at the example with --details"),
            Cause::ExpressionFailed => say!("run one user with `throng try`"),
            Cause::DataExhausted => say!("give more rows, or let the data repeat"),
            Cause::DataFailed => say!("mend the row that the example names"),
            Cause::RendezvousTimeout => say!("let more users come, or wait longer"),
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
