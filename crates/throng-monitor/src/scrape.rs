//! Asks for a page over HTTP.

use std::time::Duration;

use throng_base::Said;

use crate::ask::{agent, failed};

/// Of an answer: some ten times what an exporter of a large host says.
const TEXT_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// How long an answer is waited for, where the time between two is longer.
pub(crate) const ANSWER_MAX: Duration = Duration::from_secs(10);
const ACCEPT: &str = "text/plain; version=0.0.4, */*; q=0.1";

/// A page, with the connection that is kept to its server.
pub(crate) struct Page {
    agent: ureq::Agent,
    url: String,
    headers: Vec<(String, String)>,
}

impl Page {
    /// An answer has to be complete within `answer_max`.
    pub(crate) fn new(url: &str, headers: &[(String, String)], answer_max: Duration) -> Page {
        Page { agent: agent(url, answer_max), url: url.to_string(), headers: headers.to_vec() }
    }

    /// The text of an answer with the status 200.
    pub(crate) fn text(&self) -> Result<String, Said> {
        let mut request = self.agent.get(&self.url).header("Accept", ACCEPT);
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let mut answer = request.call().map_err(failed)?;
        match answer.status().as_u16() {
            200 => {
                let body = answer.body_mut().with_config().limit(TEXT_BYTES_MAX);
                body.lossy_utf8(true).read_to_string().map_err(failed)
            }
            status => Err(say!("it responds with status {status}")),
        }
    }
}
