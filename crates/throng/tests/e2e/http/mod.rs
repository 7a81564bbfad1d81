//! HTTP and the way to a server: versions, TLS, proxies, cookies, redirects, faults.

mod answers;
mod bench_http;
mod cookies;
mod digest;
mod events;
mod faults;
mod http2;
mod lookups;
mod proxy;
mod redirects;
mod route;
mod targets;
pub(crate) mod tls;
mod unix_socket;
