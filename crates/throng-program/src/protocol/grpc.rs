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

    /// Whether nothing but HTTP/2 carries it.
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
    /// From the moment it is sent to its status; the target is told it as the deadline.
    pub timeout: Duration,
    /// Without a status check, any code but OK is a failure. Each reply has to hold the others.
    pub checks: Vec<Check>,
    /// Of the last reply.
    pub saves: Vec<Save>,
    pub failing: Failing,
}

/// How a gRPC call begins.
#[derive(Clone, Debug)]
pub struct Opened {
    pub method: MethodId,
    /// By their names in lower case; the values of those whose name ends with `-bin` are bytes,
    /// which are encoded as they are sent.
    pub metadata: Vec<(String, Text)>,
    /// How messages are compressed.
    pub encoding: Encoding,
    /// What is sent at once, one after another. Behind it the call is half-closed, but where it
    /// stays open and takes more of them.
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
