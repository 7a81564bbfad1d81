//! Options that say from where and on which way a connection goes.

use std::net::IpAddr;

use super::Reader;
use super::flags::Flag;
use super::hidden::without_user;
use crate::network::route::{
    abstract_socket_of_curl, connect_to_of_curl, proxy_of_curl, resolve_of_curl,
    unix_socket_of_curl,
};
use crate::syntax::Place;
use crate::url::Url;
use crate::words::shorten;

/// What the options say of a proxy besides its URL.
#[derive(Default)]
pub(super) struct ProxyWords {
    place: Place,
    user: Option<(String, String)>,
    /// `-p`: a tunnel for `http` too.
    pub(super) is_tunnel: bool,
    /// Hosts that are reached without it.
    without: Vec<String>,
}

impl Reader<'_> {
    /// Puts together what is said of a proxy, and says where it is another one than curl's.
    pub(super) fn finish_proxy(&mut self) {
        let words = std::mem::take(&mut self.proxy);
        let url = Url::parse(&self.request.bench.url).ok();
        let host = url.as_ref().map_or("", |url| url.host.as_str());
        let is_meant = |one: &String| {
            let name = one.strip_prefix('.').unwrap_or(one);
            let ends = host.strip_suffix(name);
            one == "*" || ends.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        let route = &mut self.request.bench.route;
        if words.without.iter().any(is_meant) {
            route.proxy = None;
        }
        let Some(proxy) = &mut route.proxy else { return };
        if words.user.is_some() {
            proxy.user = words.user;
        }
        if !words.is_tunnel && self.request.bench.url.starts_with("http://") {
            let message = say!("curl does not use a proxy tunnel for `http` URLs");
            self.warn(message, words.place, say!("throng uses a tunnel, like curl with `-p`"));
        }
    }

    pub(super) fn way(&mut self, flag: Flag, text: &str, place: Place) {
        let route = &mut self.request.bench.route;
        let wrong = match flag {
            Flag::Resolve => resolve_of_curl(text).map(|given| route.add_resolve(given)).err(),
            Flag::ConnectTo => {
                connect_to_of_curl(text).map(|given| route.add_connect_to(given)).err()
            }
            Flag::Proxy => {
                self.proxy.place = place;
                proxy_of_curl(text).map(|proxy| route.proxy = Some(proxy)).err()
            }
            Flag::ProxyUser => {
                let (user, password) = text.split_once(':').unwrap_or((text, ""));
                self.proxy.user = Some((user.to_string(), password.to_string()));
                None
            }
            Flag::NoProxy => {
                let names = text.split([',', ' ']).filter(|name| !name.is_empty());
                self.proxy.without = names.map(str::to_ascii_lowercase).collect();
                None
            }
            Flag::UnixSocket => {
                route.unix_socket = Some(unix_socket_of_curl(text));
                None
            }
            Flag::AbstractSocket => {
                route.unix_socket = Some(abstract_socket_of_curl(text));
                None
            }
            _ => return self.interface(text, place),
        };
        if let Some((reason, help)) = wrong {
            let message =
                say!("`{}` is not valid for this option: {reason}", shorten(&without_user(text)));
            self.wrong("curl-value", message, place, help);
        }
    }

    fn interface(&mut self, text: &str, place: Place) {
        match text.parse::<IpAddr>() {
            Ok(address) => self.request.bench.sources = vec![address.to_string()],
            Err(_) => {
                let message = say!("`{}` is not an IP address", shorten(text));
                let help = say!("write an IP address of this host: `--interface 127.0.0.2`");
                self.wrong("curl-value", message, place, help);
            }
        }
    }
}
