//! Posts bodies to a URL, and outputs that post the text of each second.

use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as STANDARD;
use throng_base::Said;
use throng_monitor::fetch::agent;

use crate::{Export, Second};

/// Time limit for a response.
const ANSWER_MAX: Duration = Duration::from_secs(5);

pub(crate) struct Sender {
    agent: ureq::Agent,
    url: String,
    credentials: Option<String>,
}

impl Sender {
    /// Credentials in the URL, `http://NAME:PASSWORD@…`, are sent in a header (RFC 7617).
    pub(crate) fn new(url: &str) -> Sender {
        let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (credentials, url) = match rest[..end].rsplit_once('@') {
            Some((own, host)) => (Some(own), format!("{scheme}://{host}{}", &rest[end..])),
            None => (None, url.to_string()),
        };
        let credentials = credentials.map(|own| format!("Basic {}", STANDARD.encode(own)));
        Sender { agent: agent([url.as_str()], ANSWER_MAX), url, credentials }
    }

    /// Succeeds if the response has a 2xx status.
    pub(crate) fn post(&self, headers: &[(&str, &str)], body: &[u8]) -> Result<(), Said> {
        let mut request = self.agent.post(&self.url);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(credentials) = &self.credentials {
            request = request.header("Authorization", credentials);
        }
        let mut answer = request.send(body).map_err(|error| Said::of_others(error.to_string()))?;
        let status = answer.status().as_u16();
        if (200..300).contains(&status) {
            // Reads to the end, so that the connection is reused.
            let _ = answer.body_mut().with_config().limit(TEXT_BYTES_MAX).read_to_vec();
            return Ok(());
        }
        let text = answer.body_mut().with_config().limit(TEXT_BYTES_MAX).read_to_string();
        let text: String = text.unwrap_or_default().trim().chars().take(TEXT_CHARS_MAX).collect();
        let text = Said::of_others(text);
        Err(say!("it responds with {status}: {text}", text = text))
    }
}

/// An output that posts each second as text.
pub(crate) struct Posted {
    pub(crate) sender: Sender,
    pub(crate) content_type: &'static str,
    pub(crate) body: fn(&Second<'_>) -> String,
}

impl Export for Posted {
    fn second(&mut self, second: &Second<'_>) -> Result<(), Said> {
        let body = (self.body)(second);
        self.sender.post(&[("Content-Type", self.content_type)], body.as_bytes())
    }
}

/// Maximum size of a response.
const TEXT_BYTES_MAX: u64 = 64 * 1024;
const TEXT_CHARS_MAX: usize = 200;
