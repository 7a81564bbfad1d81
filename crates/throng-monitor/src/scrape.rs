//! Requests a page over HTTP.

use std::time::Duration;

use throng_base::Said;

use crate::fetch::Fetcher;

/// The maximum timeout of a response, if the polling interval is longer.
pub(crate) const ANSWER_MAX: Duration = Duration::from_secs(10);
const ACCEPT: &str = "text/plain; version=0.0.4, */*; q=0.1";

/// A page, with a kept connection to its server.
pub(crate) struct Page {
    fetcher: Fetcher,
    url: String,
    headers: Vec<(String, String)>,
}

impl Page {
    /// A response must be complete within `answer_max`.
    pub(crate) fn new(url: &str, headers: &[(String, String)], answer_max: Duration) -> Page {
        let accept = ("Accept".to_string(), ACCEPT.to_string());
        let headers = std::iter::once(accept).chain(headers.iter().cloned()).collect();
        Page { fetcher: Fetcher::new([url], answer_max), url: url.to_string(), headers }
    }

    /// The text of a response with the status 200.
    pub(crate) fn text(&self) -> Result<String, Said> {
        self.fetcher.text(&self.url, &self.headers)
    }
}
