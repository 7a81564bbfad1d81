//! Sends one request for an event of the scenario.

use std::time::Duration;

use throng_base::Said;
use throng_program::HttpCall;
use ureq::http::Request;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

/// Of a response's body, to be read at all.
const BODY_BYTES_MAX: u64 = 1 << 20;

/// What came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    pub status: u16,
    /// Its first MiB.
    pub body: String,
}

/// Settings of a client for requests of throng itself: no proxy, no redirects, and the
/// certificates that this host trusts.
pub(crate) fn agent(url: &str, time_max: Duration) -> ureq::Agent {
    let mut tls = TlsConfig::builder();
    if url.starts_with("https:") {
        let found = rustls_native_certs::load_native_certs().certs;
        let certs = found.iter().map(|it| Certificate::from_der(it).to_owned());
        tls = tls.root_certs(RootCerts::new_with_certs(&certs.collect::<Vec<_>>()));
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

/// Why there is no response, in throng's words where the library's say little.
pub(crate) fn failed(error: ureq::Error) -> Said {
    match error {
        ureq::Error::Timeout(_) => say!("no response in time"),
        ureq::Error::Io(error) => Said::of_others(error.to_string()),
        ureq::Error::BodyExceedsLimit(_) => say!("its response is larger than 16 MiB"),
        error => Said::of_others(error.to_string()),
    }
}

/// Blocks until there is a response, or none in time.
pub fn ask(call: &HttpCall) -> Result<Answered, Said> {
    let mut request = Request::builder().method(call.method.as_str()).uri(&call.url);
    for (name, value) in &call.headers {
        request = request.header(name, value);
    }
    let invalid = |error: ureq::http::Error| Said::of_others(error.to_string());
    let agent = agent(&call.url, call.timeout);
    let answer = match call.body.is_empty() {
        true => agent.run(request.body(()).map_err(invalid)?),
        false => agent.run(request.body(call.body.clone()).map_err(invalid)?),
    };
    let mut answer = answer.map_err(failed)?;
    let status = answer.status().as_u16();
    let reader = answer.body_mut().as_reader();
    let mut body = Vec::new();
    // A body that is cut off is still a response.
    let _ = std::io::Read::read_to_end(&mut std::io::Read::take(reader, BODY_BYTES_MAX), &mut body);
    Ok(Answered { status, body: String::from_utf8_lossy(&body).into_owned() })
}
