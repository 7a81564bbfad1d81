//! What `throng plan`, `throng doctor` and `throng monitor` are told: how much there is to be, and
//! on what; what is read of this host.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::values::{count, duration, part, rate};
use throng_host::probe::Wanted;
use throng_monitor::Service;
use throng_plan::machine::Described;

#[derive(Args, Debug)]
#[command(after_help = "Examples:\n\
     \x20 throng plan im-websocket.yaml               use the cost per user in its last run\n\
     \x20 throng plan im-websocket.yaml --users 2M --machine 8cores,32GiB\n\
     \x20 throng plan --users 1M                      idle WebSocket users\n\
     \x20 throng plan --rate 50k/s                    HTTP requests\n\
     \x20 throng plan --pv 3M --per-machine 58/s      daily peak")]
pub(crate) struct PlanArguments {
    /// Scenario; without one, idle WebSocket users, or HTTP users if --rate or --pv is given
    pub(crate) file: Option<PathBuf>,
    /// Set a variable of the scenario: `users=500`; may be given more than once
    #[arg(long = "set", value_name = "NAME=VALUE", requires = "file")]
    pub(crate) set: Vec<String>,
    /// Number of concurrent users; overrides the scenario
    #[arg(long, value_parser = count)]
    pub(crate) users: Option<u64>,
    /// Total requests per second for all users
    #[arg(long, value_parser = rate)]
    pub(crate) rate: Option<f64>,
    /// Page views per day; the rate is calculated for the daily peak
    #[arg(long, value_name = "VIEWS", value_parser = count, conflicts_with = "rate")]
    pub(crate) pv: Option<u64>,
    /// Share of the daily page views during the peak; 80% by default
    #[arg(long, value_parser = part, requires = "pv")]
    pub(crate) share: Option<f64>,
    /// Length of the peak as a share of the day; 20% by default
    #[arg(long, value_name = "SHARE", value_parser = part, requires = "pv")]
    pub(crate) of_day: Option<f64>,
    /// Measured capacity of one service machine; by default from the last run
    #[arg(long, value_name = "RATE", value_parser = rate, requires = "pv")]
    pub(crate) per_machine: Option<f64>,
    /// Size of each machine that runs throng, `8cores,16GiB`; this host by default
    #[arg(long, visible_alias = "machines", value_name = "MACHINE", value_parser = Described::parse)]
    pub(crate) machine: Option<Described>,
    /// Show how many fleet agents are needed on machines like the one that ran the test, and the
    /// commands to start them
    #[arg(long, conflicts_with = "pv")]
    pub(crate) fleet: bool,
    /// Take the cost per user from this run, instead of the last run of this scenario
    #[arg(long, value_name = "DIR")]
    pub(crate) from: Option<PathBuf>,
    /// Show a breakdown of the memory per user
    #[arg(long)]
    pub(crate) explain: bool,
    /// Print the plan as JSON; see docs/plan.md
    #[arg(long)]
    pub(crate) json: bool,
    /// Do not use colors; the environment variable NO_COLOR does the same
    #[arg(long)]
    pub(crate) no_color: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:\n\
     \x20 throng doctor shop.yaml             check this host for this scenario\n\
     \x20 throng doctor --users 1M            check this host for 1 million users\n\
     \x20 throng doctor --users 1M --target   check the host of the service under test\n\
     \x20 throng doctor shop.yaml --fix       as root: change the kernel settings\n\
     \n\
     Exit codes: 0 requirements met, 2 usage or scenario error, 3 requirements not met. The \
     rules are explained in docs/doctor.md.")]
pub(crate) struct DoctorArguments {
    /// Scenario whose users, targets and source addresses the host must support
    pub(crate) file: Option<PathBuf>,
    /// Set a variable of the scenario: `users=500`; may be given more than once
    #[arg(long = "set", value_name = "NAME=VALUE", requires = "file")]
    pub(crate) set: Vec<String>,
    /// Number of users; by default that of the scenario, or 10,000 without a scenario
    #[arg(long, value_name = "N", value_parser = count)]
    pub(crate) users: Option<u64>,
    /// Check this host for the service under test instead of for throng
    #[arg(long)]
    pub(crate) target: bool,
    /// Change kernel settings that are too low, then check again
    #[arg(long)]
    pub(crate) fix: bool,
    /// Print the result as JSON; see docs/doctor.md
    #[arg(long)]
    pub(crate) json: bool,
    /// Do not use colors; the environment variable NO_COLOR does the same
    #[arg(long)]
    pub(crate) no_color: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:\n\
     \x20 throng monitor --process nginx --port 8080\n\
     \x20 throng monitor --listen 10.0.0.5:9465       other hosts need the token of the link\n\
     \x20 ssh shop-1 throng monitor --stdio           readings on standard output\n\
     \x20 throng monitor --join shop-1.token          read over the bus of a fleet\n\
     \n\
     It does not change the host, and never reads command lines or environment variables. \
     docs/monitor.md lists all series.")]
pub(crate) struct MonitorArguments {
    /// Address for `GET /metrics`; use a non-loopback address for other hosts, which need the token
    /// of the printed link
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = "127.0.0.1:9465",
        conflicts_with = "stdio"
    )]
    pub(crate) listen: String,
    /// Serve over TLS with this certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "key", conflicts_with = "stdio")]
    pub(crate) cert: Option<PathBuf>,
    /// Private key for --cert (PEM)
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(crate) key: Option<PathBuf>,
    /// Write the readings to standard output instead
    #[arg(long)]
    pub(crate) stdio: bool,
    /// Time between two readings on standard output
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "1s", requires = "stdio")]
    pub(crate) every: Duration,
    /// Join a fleet, so that its runs can read this host over the bus: a file with the token from
    /// `throng fleet token NAME`, `-` for standard input, or the token itself
    #[arg(long, value_name = "TOKEN", conflicts_with_all = ["stdio", "listen", "cert"])]
    pub(crate) join: Option<String>,
    /// Watch the processes with this name, or the process with this ID; may be given more than once
    #[arg(long = "process", value_name = "NAME|PID", value_parser = wanted)]
    pub(crate) processes: Vec<Wanted>,
    /// Watch only the listening sockets of this port; may be given more than once. Default: all
    /// listening sockets
    #[arg(long = "port", value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) ports: Vec<u16>,
    /// Read `INFO` of this Redis server; a password is taken from REDISCLI_AUTH
    #[arg(long, value_name = "HOST:PORT|SOCKET", value_parser = redis)]
    pub(crate) redis: Vec<String>,
    /// Read the `stub_status` page of nginx
    #[arg(long, value_name = "URL", value_parser = url)]
    pub(crate) nginx: Vec<String>,
    /// Read HAProxy's statistics: from its socket, or from the URL of its page with `;csv`
    #[arg(long, value_name = "SOCKET|URL", value_parser = haproxy)]
    pub(crate) haproxy: Vec<String>,
    /// Read a Prometheus endpoint on this host
    #[arg(long, value_name = "URL", value_parser = url)]
    pub(crate) prometheus: Vec<String>,
    /// Run this command once per second; it must print a number, or metrics in the Prometheus
    /// text format
    #[arg(long = "command", value_name = "NAME=COMMAND", value_parser = command)]
    pub(crate) commands: Vec<(String, String)>,
    /// Stop this long after the last request
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "60s")]
    #[arg(conflicts_with_all = ["stdio", "stay"])]
    pub(crate) idle: Duration,
    /// Run until stopped, even without readers
    #[arg(long, conflicts_with = "stdio")]
    pub(crate) stay: bool,
}

impl MonitorArguments {
    /// The services beside the host; `password` is that of Redis.
    pub(crate) fn services(&self, password: Option<&str>) -> Vec<Service> {
        let redis = |place: &String| Service::Redis {
            place: place.clone(),
            password: password.map(str::to_string),
        };
        let commands = self.commands.iter().cloned();
        { self.redis.iter().map(redis) }
            .chain(self.nginx.iter().cloned().map(|url| Service::Nginx { url }))
            .chain(self.haproxy.iter().cloned().map(|place| Service::Haproxy { place }))
            .chain(self.prometheus.iter().cloned().map(|url| Service::Prometheus { url }))
            .chain(commands.map(|(name, line)| Service::Command { name, line }))
            .collect()
    }
}

fn redis(text: &str) -> Result<String, String> {
    let is_address = text.rsplit_once(':').is_some_and(|(host, port)| {
        !host.is_empty() && !host.contains('/') && port.parse::<u16>().is_ok()
    });
    match text.starts_with('/') || is_address {
        true => Ok(text.to_string()),
        false => Err(say!(
            "write an address or a path, such as `127.0.0.1:6379` or \
             `/run/redis.sock`"
        )
        .spoken()),
    }
}

fn url(text: &str) -> Result<String, String> {
    match ["http://", "https://"].iter().any(|scheme| text.starts_with(scheme)) {
        true => Ok(text.to_string()),
        false => Err(say!("write a URL, such as `http://127.0.0.1:8080/metrics`").spoken()),
    }
}

fn haproxy(text: &str) -> Result<String, String> {
    if text.starts_with('/') || url(text).is_ok() {
        return Ok(text.to_string());
    }
    let help = say!(
        "write a path or a URL, such as `/run/haproxy/admin.sock` or \
         `http://127.0.0.1:8404/stats;csv`"
    );
    Err(help.spoken())
}

/// A name for labels, and a line for the shell.
fn command(text: &str) -> Result<(String, String), String> {
    let (name, line) = text.split_once('=').unwrap_or_default();
    let is_name = !name.is_empty() && name.len() <= 64 && !name.contains(char::is_control);
    match is_name && !line.trim().is_empty() {
        true => Ok((name.to_string(), line.to_string())),
        false => Err(say!("write a name and a command, such as `queue='mailq | wc -l'`").spoken()),
    }
}

fn wanted(text: &str) -> Result<Wanted, String> {
    text.parse::<Wanted>().map_err(|reason| reason.spoken())
}
