//! Sends one request for an event of the scenario.

use throng_base::Said;
use throng_program::HttpCall;
use ureq::http::Request;

use crate::fetch::{agent, failed};

/// The maximum size of a response body that is read.
const BODY_BYTES_MAX: u64 = 1 << 20;

/// What came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    pub status: u16,
    /// The start of the body; for [`ask`], the first MiB.
    pub body: String,
}

/// Blocks until there is a response or a timeout.
pub fn ask(call: &HttpCall) -> Result<Answered, Said> {
    ask_up_to(call, BODY_BYTES_MAX)
}

/// Like [`ask`], with up to this much of the body.
pub fn ask_up_to(call: &HttpCall, body_bytes_max: u64) -> Result<Answered, Said> {
    let mut request = Request::builder().method(call.method.as_str()).uri(&call.url);
    for (name, value) in &call.headers {
        request = request.header(name, value);
    }
    let invalid = |error: ureq::http::Error| Said::of_others(error.to_string());
    let agent = agent([call.url.as_str()], call.timeout);
    let answer = match call.body.is_empty() {
        true => agent.run(request.body(()).map_err(invalid)?),
        false => agent.run(request.body(call.body.clone()).map_err(invalid)?),
    };
    let mut answer = answer.map_err(failed)?;
    let status = answer.status().as_u16();
    let reader = answer.body_mut().as_reader();
    let mut body = Vec::new();
    // A truncated body is still a response.
    let _ = std::io::Read::read_to_end(&mut std::io::Read::take(reader, body_bytes_max), &mut body);
    Ok(Answered { status, body: String::from_utf8_lossy(&body).into_owned() })
}
