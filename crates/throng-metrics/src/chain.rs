//! Where the time of one attempt went: stages one behind the other, from when it was due.

use serde::{Deserialize, Serialize};
use throng_base::Said;

use crate::figures::is_zero;

macro_rules! chain {
    ($($(#[doc = $doc:literal])+ $field:ident new($word:literal);)+) => {
        /// Times are in nanoseconds. A stage that there was not takes none.
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct Chain {
            $($(#[doc = $doc])+ #[serde(skip_serializing_if = "is_zero")] pub $field: u64,)+
            /// TLS went on with an earlier session; None without a handshake.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub tls_resumed: Option<bool>,
            /// The connection was opened for this attempt.
            pub opened: bool,
            /// Segments that were sent again on the connection since it is open; None where the
            /// kernel does not say.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub retransmits: Option<u64>,
        }

        impl Chain {
            /// Name and time of each stage, in their order.
            pub fn stages(&self) -> Vec<(Said, u64)> {
                vec![$((say!($word), self.$field),)+]
            }
        }
    };
}

chain! {
    /// From when the attempt was due until a user and a connection were free for it.
    waiting_ns new("waiting");
    /// The name of the target was looked up.
    resolve_ns new("resolve");
    /// From the SYN to its answer.
    connect_ns new("connect");
    /// The proxy opened the way to the target.
    proxy_ns new("proxy");
    /// The TLS handshake.
    tls_ns new("tls");
    /// The handshake of a WebSocket, or the head of a stream.
    upgrade_ns new("upgrade");
    /// The request was made and handed over to the kernel.
    send_ns new("send");
    /// From then on to the first byte of the response.
    first_byte_ns new("first byte");
    /// From there to the last byte, as the kernel received it. Here the response time ends.
    last_byte_ns new("last byte");
    /// Until throng had read and checked the response.
    read_ns new("read");
}

impl Chain {
    /// Connection, request and response: the time of the whole but for throng's reading.
    pub fn response_ns(&self) -> u64 {
        let all: u64 = self.stages().iter().map(|(_, time)| time).sum();
        all - self.read_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_add_up_and_those_that_were_not_are_left_out_of_a_record() {
        let chain = Chain { connect_ns: 5, first_byte_ns: 7, read_ns: 2, ..Chain::default() };
        assert_eq!((chain.response_ns(), chain.stages().len()), (12, 10));
        let text = serde_json::to_string(&chain).unwrap();
        assert_eq!(text, r#"{"connect_ns":5,"first_byte_ns":7,"read_ns":2,"opened":false}"#);
        assert_eq!(serde_json::from_str::<Chain>(&text).unwrap(), chain);
    }
}
