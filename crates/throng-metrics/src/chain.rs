//! The stages of one attempt from its due time, and the time of each.

use serde::{Deserialize, Serialize};
use throng_base::Said;

use crate::figures::is_zero;

macro_rules! chain {
    ($($(#[doc = $doc:literal])+ $field:ident new($word:literal);)+) => {
        /// Times are in nanoseconds. A stage that did not occur has no time.
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct Chain {
            $($(#[doc = $doc])+ #[serde(skip_serializing_if = "is_zero")] pub $field: u64,)+
            /// An earlier TLS session was resumed; `None` without a handshake.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub tls_resumed: Option<bool>,
            /// The connection was opened for this attempt.
            pub opened: bool,
            /// Segments retransmitted on the connection since it was opened; `None` if the kernel
            /// does not report them.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub retransmits: Option<u64>,
        }

        impl Chain {
            /// Name and time of each stage, in order.
            pub fn stages(&self) -> Vec<(Said, u64)> {
                vec![$((say!($word), self.$field),)+]
            }
        }
    };
}

chain! {
    /// From the due time until a user and a connection were free.
    waiting_ns new("waiting");
    /// DNS lookup of the target.
    resolve_ns new("resolve");
    /// From the SYN to the response.
    connect_ns new("connect");
    /// The proxy connected to the target.
    proxy_ns new("proxy");
    /// The TLS handshake.
    tls_ns new("tls");
    /// The WebSocket handshake, or the head of a stream.
    upgrade_ns new("upgrade");
    /// The request was rendered and passed to the kernel.
    send_ns new("send");
    /// Until the first byte of the response.
    first_byte_ns new("first byte");
    /// Until the last byte, as received by the kernel. The response time ends here.
    last_byte_ns new("last byte");
    /// Until throng had read and checked the response.
    read_ns new("read");
}

impl Chain {
    /// Connection, request and response: the total without throng's reading.
    pub fn response_ns(&self) -> u64 {
        let all: u64 = self.stages().iter().map(|(_, time)| time).sum();
        all - self.read_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_add_up_and_absent_ones_are_not_recorded() {
        let chain = Chain { connect_ns: 5, first_byte_ns: 7, read_ns: 2, ..Chain::default() };
        assert_eq!((chain.response_ns(), chain.stages().len()), (12, 10));
        let text = serde_json::to_string(&chain).unwrap();
        assert_eq!(text, r#"{"connect_ns":5,"first_byte_ns":7,"read_ns":2,"opened":false}"#);
        assert_eq!(serde_json::from_str::<Chain>(&text).unwrap(), chain);
    }
}
