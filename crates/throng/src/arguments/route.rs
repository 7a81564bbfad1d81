//! Flags for the route to a target, as in curl.

use clap::Args;
use throng_base::Said;
use throng_scenario::{BenchProxy, connect_to_of_curl, proxy_of_curl, resolve_of_curl};

#[derive(Args, Debug)]
#[command(next_help_heading = "Route to the target")]
pub(crate) struct RouteArguments {
    /// Use these addresses for a name instead of resolving it: `HOST:PORT:ADDRESS[,ADDRESS]`; HOST
    /// may be `*`; may be given more than once
    #[arg(long, value_name = "HOST:PORT:ADDRESS", value_parser = resolve)]
    pub(crate) resolve: Vec<(String, Vec<String>)>,
    /// Connect to another host and port: `HOST:PORT:OTHER_HOST:OTHER_PORT`; any part may be empty;
    /// may be given more than once; the first match applies
    #[arg(long, value_name = "HOST:PORT:HOST:PORT", value_parser = connect_to)]
    pub(crate) connect_to: Vec<(String, String)>,
    /// Connect to this Unix socket on this host; the path and host name still come from the URL
    #[arg(long, value_name = "PATH", conflicts_with = "abstract_unix_socket")]
    pub(crate) unix_socket: Option<String>,
    /// Connect to the abstract Unix socket with this name on this host
    #[arg(long, value_name = "NAME")]
    pub(crate) abstract_unix_socket: Option<String>,
    /// Connect through this HTTP proxy with CONNECT, for all schemes:
    /// `http://[user:password@]HOST:PORT`; variables such as http_proxy are ignored
    #[arg(
        short = 'x',
        long,
        value_name = "URL",
        value_parser = proxy,
        conflicts_with_all = ["unix_socket", "abstract_unix_socket"]
    )]
    pub(crate) proxy: Option<BenchProxy>,
    /// User name and password for the proxy, `user:password`
    #[arg(
        short = 'U',
        long,
        value_name = "USER:PASSWORD",
        requires = "proxy",
        allow_hyphen_values = true
    )]
    pub(crate) proxy_user: Option<String>,
}

/// What is wrong and what is valid, in the output language.
fn in_words((message, help): (Said, Said)) -> String {
    tell!("{message}; {help}")
}

fn resolve(text: &str) -> Result<(String, Vec<String>), String> {
    resolve_of_curl(text).map_err(in_words)
}

fn proxy(text: &str) -> Result<BenchProxy, String> {
    proxy_of_curl(text).map_err(in_words)
}

fn connect_to(text: &str) -> Result<(String, String), String> {
    connect_to_of_curl(text).map_err(in_words)
}
