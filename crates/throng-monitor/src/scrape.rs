//! Asks for a page over HTTP.

use std::time::Duration;

use throng_base::Said;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

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
        let mut tls = TlsConfig::builder();
        if url.starts_with("https:") {
            // Exporters are inside: what their host trusts counts, as for targets.
            let found = rustls_native_certs::load_native_certs().certs;
            let certs = found.iter().map(|it| Certificate::from_der(it).to_owned());
            tls = tls.root_certs(RootCerts::new_with_certs(&certs.collect::<Vec<_>>()));
        }
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(answer_max))
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(None)
            .tls_config(tls.build())
            .user_agent(concat!("throng/", env!("CARGO_PKG_VERSION")));
        let (url, headers) = (url.to_string(), headers.to_vec());
        Page { agent: config.build().new_agent(), url, headers }
    }

    /// The text of an answer with the status 200.
    pub(crate) fn text(&self) -> Result<String, Said> {
        let mut request = self.agent.get(&self.url).header("Accept", ACCEPT);
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let failed = |error: ureq::Error| match error {
            ureq::Error::Timeout(_) => say!("no response in time"),
            // Without the name that the library gives it.
            ureq::Error::Io(error) => Said::of_others(error.to_string()),
            ureq::Error::BodyExceedsLimit(_) => say!("its response is larger than 16 MiB"),
            error => Said::of_others(error.to_string()),
        };
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
