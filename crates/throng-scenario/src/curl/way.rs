//! Options about the route of a connection: source address, resolution, proxies.

use std::net::IpAddr;

use throng_base::Said;

use super::CurlReader;
use super::hidden::without_user;
use crate::bench::BenchRoute;
use crate::network::route::{connect_to_of_curl, proxy_of_curl, resolve_of_curl};
use crate::syntax::Place;
use crate::url::Url;
use crate::words::shorten;

/// Options about a proxy, besides its URL.
#[derive(Default)]
pub(super) struct ProxyWords {
    place: Place,
    pub(super) user: Option<(String, String)>,
    /// `-p`: use a tunnel for `http` too.
    pub(super) is_tunnel: bool,
    /// Hosts that bypass the proxy.
    without: Vec<String>,
}

impl CurlReader {
    /// Builds the proxy from its options and warns where the result differs from curl.
    pub(super) fn finish_proxy(&mut self) {
        let words = std::mem::take(&mut self.proxy);
        let url = Url::parse(&self.bench.url).ok();
        let host = url.as_ref().map_or("", |url| url.host.as_str());
        let is_meant = |one: &String| {
            let name = one.strip_prefix('.').unwrap_or(one);
            let ends = host.strip_suffix(name);
            one == "*" || ends.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        let route = &mut self.bench.route;
        if words.without.iter().any(is_meant) {
            route.proxy = None;
        }
        let Some(proxy) = &mut route.proxy else { return };
        if words.user.is_some() {
            proxy.user = words.user;
        }
        if !words.is_tunnel && self.bench.url.starts_with("http://") {
            let message = say!("curl does not use a proxy tunnel for `http` URLs");
            self.warn(message, words.place, say!("throng uses a tunnel, like curl with `-p`"));
        }
    }

    pub(super) fn resolve(&mut self, text: &str, place: Place) {
        self.route(text, place, resolve_of_curl(text), BenchRoute::add_resolve);
    }

    pub(super) fn connect_to(&mut self, text: &str, place: Place) {
        self.route(text, place, connect_to_of_curl(text), BenchRoute::add_connect_to);
    }

    pub(super) fn proxy(&mut self, text: &str, place: Place) {
        self.proxy.place = place;
        self.route(text, place, proxy_of_curl(text), |route, proxy| route.proxy = Some(proxy));
    }

    pub(super) fn no_proxy(&mut self, text: &str, _: Place) {
        let names = text.split([',', ' ']).filter(|name| !name.is_empty());
        self.proxy.without = names.map(str::to_ascii_lowercase).collect();
    }

    fn route<T>(
        &mut self,
        text: &str,
        place: Place,
        given: Result<T, (Said, Said)>,
        set: fn(&mut BenchRoute, T),
    ) {
        match given {
            Ok(given) => set(&mut self.bench.route, given),
            Err((reason, help)) => {
                let text = shorten(&without_user(text));
                let message = say!("`{text}` is not valid for this option: {reason}");
                self.wrong("curl-value", message, place, help);
            }
        }
    }

    pub(super) fn interface(&mut self, text: &str, place: Place) {
        match text.parse::<IpAddr>() {
            Ok(address) => self.bench.sources = vec![address.to_string()],
            Err(_) => {
                let message = say!("`{}` is not an IP address", shorten(text));
                let help = say!("write an IP address of this host: `--interface 127.0.0.2`");
                self.wrong("curl-value", message, place, help);
            }
        }
    }
}
