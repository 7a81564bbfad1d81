//! gRPC calls.

use std::time::Duration;

use throng_base::StepId;
use throng_expression::Expression;
use throng_protocol::grpc::Encoding;
use throng_protocol::protobuf::{MethodId, Template};

use super::Scheme;
use crate::check::{Check, Save};
use crate::failing::Failing;
use crate::text::{Composed, Text, in_pairs};

impl Scheme {
    pub fn is_grpc(self) -> bool {
        matches!(self, Scheme::Grpc | Scheme::Grpcs)
    }

    /// Whether it requires HTTP/2.
    pub fn needs_http2(self) -> bool {
        self.is_grpc()
    }
}

/// A gRPC call from its first message to its status.
#[derive(Clone, Debug)]
pub struct Call {
    pub step: StepId,
    pub link: u8,
    pub opened: Opened,
    /// From when it is sent to its status; sent to the target as the deadline.
    pub timeout: Duration,
    /// Without a status check, any code but OK is a failure. Each reply must pass the other checks.
    pub checks: Vec<Check>,
    /// From the last reply.
    pub saves: Vec<Save>,
    pub failing: Failing,
}

/// The start of a gRPC call.
#[derive(Clone, Debug)]
pub struct Opened {
    pub method: MethodId,
    /// By name in lower case; values of names that end with `-bin` are bytes, which are encoded
    /// when sent.
    pub metadata: Vec<(String, Text)>,
    /// The compression of messages.
    pub encoding: Encoding,
    /// The initial messages, one after another. Then the call is half-closed, unless it stays open
    /// and accepts more.
    pub messages: Vec<Composed<Template>>,
}

impl Call {
    /// The word of the language.
    pub const VERB: &'static str = "grpc";

    pub fn expressions(&self, visit: &mut dyn FnMut(&Expression)) {
        self.opened.expressions(visit);
    }
}

impl Opened {
    pub fn expressions(&self, visit: &mut dyn FnMut(&Expression)) {
        in_pairs(&self.metadata, visit);
        self.messages.iter().for_each(|message| message.expressions(visit));
    }
}
