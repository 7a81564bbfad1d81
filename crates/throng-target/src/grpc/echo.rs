//! The messages of `examples/echo.proto`, and the replies to them.

use prost::Message;
use throng_base::grpc::Code;

use super::MESSAGE_BYTES_MAX;
use super::wire::Status;

#[derive(Clone, PartialEq, Message)]
pub(crate) struct SayRequest {
    #[prost(string, tag = "1")]
    pub(crate) text: String,
    #[prost(int32, tag = "2")]
    pub(crate) repeat: i32,
    #[prost(int32, tag = "3")]
    pub(crate) code: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct SayReply {
    #[prost(string, tag = "1")]
    pub(crate) text: String,
    #[prost(int64, tag = "2")]
    pub(crate) number: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct CountRequest {
    #[prost(int32, tag = "1")]
    pub(crate) to: i32,
    #[prost(int32, tag = "2")]
    pub(crate) pause_ms: i32,
}

impl SayRequest {
    /// The reply to a request by its number in the call, or the status that it asks for.
    pub(crate) fn answer(&self, number: i64) -> Result<SayReply, Status> {
        self.check()?;
        let times = self.repeat.max(1) as usize;
        if (self.text.len() + 1).saturating_mul(times) > MESSAGE_BYTES_MAX {
            return Err(Status::new(Code::ResourceExhausted, "the reply is too long"));
        }
        Ok(SayReply { text: vec![self.text.as_str(); times].join(" "), number })
    }

    /// Whether the call continues.
    pub(crate) fn check(&self) -> Result<(), Status> {
        match self.code {
            0 if self.repeat < 0 => Err(Status::new(Code::InvalidArgument, "`repeat` is negative")),
            0 => Ok(()),
            1.. => Err(Status { number: self.code as u32, message: self.text.clone() }),
            _ => Err(Status::new(Code::InvalidArgument, "`code` is negative")),
        }
    }
}

impl CountRequest {
    pub(crate) fn check(&self) -> Result<(), Status> {
        let is_good = self.to >= 0 && self.pause_ms >= 0;
        is_good.then_some(()).ok_or(Status::new(Code::InvalidArgument, "a number is negative"))
    }
}
