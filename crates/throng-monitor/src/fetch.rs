//! Reads texts over HTTP, with limits, on the calling thread.

use std::sync::Arc;
use std::time::Duration;

use throng_base::Said;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

/// The maximum size of a response: about ten times that of an exporter on a large host.
const TEXT_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Connections are kept between requests.
pub struct Fetcher {
    agent: ureq::Agent,
}

impl Fetcher {
    /// For requests to these URLs, with the timeout `patience` each.
    pub fn new<'a>(urls: impl IntoIterator<Item = &'a str>, patience: Duration) -> Fetcher {
        Fetcher { agent: agent(urls, patience) }
    }

    /// The text of a response with the status 200.
    pub fn text(&self, url: &str, headers: &[(String, String)]) -> Result<String, Said> {
        let mut request = self.agent.get(url);
        for (name, value) in headers {
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

/// The client settings for throng's own requests to these URLs: no proxy, no redirects, and the
/// certificates that this host trusts.
pub fn agent<'a>(urls: impl IntoIterator<Item = &'a str>, time_max: Duration) -> ureq::Agent {
    let mut tls = TlsConfig::builder();
    let is_secure =
        |url: &str| url.get(..6).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https:"));
    if urls.into_iter().any(is_secure) {
        let found = rustls_native_certs::load_native_certs().certs;
        let certs = found.iter().map(|it| Certificate::from_der(it).to_owned());
        let provider = rustls::crypto::ring::default_provider();
        tls = tls
            .root_certs(RootCerts::new_with_certs(&certs.collect::<Vec<_>>()))
            .unversioned_rustls_crypto_provider(Arc::new(provider));
    }
    let config = ureq::Agent::config_builder()
        .timeout_global(Some(time_max))
        .http_status_as_error(false)
        .allow_non_standard_methods(true)
        .max_redirects(0)
        .proxy(None)
        .tls_config(tls.build())
        .user_agent(concat!("throng/", env!("CARGO_PKG_VERSION")));
    config.build().new_agent()
}

/// Why there is no response, in throng's words if the library's are unclear.
pub(crate) fn failed(error: ureq::Error) -> Said {
    match error {
        ureq::Error::Timeout(_) => say!("no response in time"),
        ureq::Error::Io(error) => Said::of_others(error.to_string()),
        ureq::Error::BodyExceedsLimit(_) => say!("its response is larger than 16 MiB"),
        error => Said::of_others(error.to_string()),
    }
}
