//! What `throng record` is told.

use std::path::PathBuf;

use clap::Args;

#[derive(Args, Debug)]
#[command(after_help = "Examples:\n\
     \x20 throng record --out shop.yaml          shows how to start a browser; Ctrl-C ends it\n\
     \x20 throng record --out shop.yaml --host shop.test,*.shop.test\n\
     \x20 throng record --out shop.yaml --har shop.har --insecure")]
pub(crate) struct RecordArguments {
    /// Scenario file to write
    #[arg(long, short, value_name = "FILE", default_value = "recording.yaml")]
    pub(crate) out: PathBuf,
    /// Address that the proxy listens on; port 0 is any free port
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8888")]
    pub(crate) listen: String,
    /// Keep the recording as a HAR file, which contains passwords and cookies
    #[arg(long, value_name = "FILE")]
    pub(crate) har: Option<PathBuf>,
    /// Record only this host: a name, an address or a network, as in docs/limits.md; traffic to
    /// other hosts is forwarded and not recorded; may be given more than once
    #[arg(long, value_name = "HOST")]
    pub(crate) host: Vec<String>,
    /// Let the browser reach only this host, written as for `--host`; may be given more than once
    #[arg(long, value_name = "HOST")]
    pub(crate) allow: Vec<String>,
    /// Keep images, scripts, styles and fonts, as `parallel` requests
    #[arg(long)]
    pub(crate) assets: bool,
    /// Accept any certificate of the service
    #[arg(long, short = 'k')]
    pub(crate) insecure: bool,
    /// Trust the certificates in this file (PEM) instead of the system certificates
    #[arg(long, visible_alias = "ca", value_name = "FILE")]
    pub(crate) cacert: Option<PathBuf>,
    /// Overwrite existing files
    #[arg(long)]
    pub(crate) force: bool,
    /// Do not print a line for each request
    #[arg(long)]
    pub(crate) quiet: bool,
}
