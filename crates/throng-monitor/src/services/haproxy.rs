//! HAProxy: its statistics as CSV, a row per frontend, backend and server, with the names of its
//! own Prometheus exporter. <https://docs.haproxy.org/3.0/management.html#9.1>

use throng_base::{Clock, Said};

use super::ASK_MAX;
use super::figure::Figure;
use super::socket::{Deadline, Socket};

/// Columns: the name of their series after `haproxy_frontend_`, whether it is a counter, and the
/// factor to the series' unit.
const COLUMNS: [(&str, &str, bool, f64); 14] = [
    ("qcur", "current_queue", false, 1.0),
    ("scur", "current_sessions", false, 1.0),
    ("slim", "limit_sessions", false, 1.0),
    ("stot", "sessions_total", true, 1.0),
    ("bin", "bytes_in_total", true, 1.0),
    ("bout", "bytes_out_total", true, 1.0),
    ("dresp", "responses_denied_total", true, 1.0),
    ("ereq", "request_errors_total", true, 1.0),
    ("econ", "connection_errors_total", true, 1.0),
    ("eresp", "response_errors_total", true, 1.0),
    ("wretr", "retry_warnings_total", true, 1.0),
    ("hrsp_5xx", "http_responses_5xx_total", true, 1.0),
    ("qtime", "queue_time_average_seconds", false, 1e-3),
    ("rtime", "response_time_average_seconds", false, 1e-3),
];

/// Queries the statistics socket.
pub(super) fn ask(path: &str, clock: &Clock) -> Result<Vec<Figure>, Said> {
    let deadline = Deadline::within(clock, ASK_MAX);
    let mut socket = Socket::connect(path, &deadline)?;
    let whole = |bytes: &[u8], is_end: bool| {
        Ok(is_end.then(|| String::from_utf8_lossy(bytes).into_owned()))
    };
    figures(&socket.ask(b"show stat\n", &deadline, whole)?)
}

pub(super) fn figures(text: &str) -> Result<Vec<Figure>, Said> {
    let mut lines = text.lines();
    let head = lines.find(|line| !line.is_empty()).unwrap_or_default();
    let Some(head) = head.strip_prefix("# pxname,svname,") else {
        return Err(say!("its response is not HAProxy's statistics as CSV"));
    };
    let columns: Vec<&str> = ["pxname", "svname"].into_iter().chain(head.split(',')).collect();
    let lines = lines.filter(|line| !line.is_empty());
    Ok(lines.flat_map(|line| row(&columns, &fields(line))).collect())
}

fn row(columns: &[&str], fields: &[String]) -> Vec<Figure> {
    let field = |name: &str| {
        let at = columns.iter().position(|it| *it == name)?;
        fields.get(at).map(String::as_str).filter(|value| !value.is_empty())
    };
    let (Some(proxy), Some(server)) = (field("pxname"), field("svname")) else {
        return Vec::new();
    };
    let kind = match server {
        "FRONTEND" => "frontend",
        "BACKEND" => "backend",
        _ => "server",
    };
    let figure = |name: &str, is_counter: bool, value: f64| {
        let told = Figure::new(&format!("haproxy_{kind}_{name}"), is_counter, value);
        let told = told.with("proxy", proxy);
        if kind == "server" { told.with("server", server) } else { told }
    };
    let column = |(column, name, is_counter, unit): (&str, &str, bool, f64)| {
        let value: u64 = field(column)?.parse().ok()?;
        Some(figure(name, is_counter, value as f64 * unit))
    };
    let mut all: Vec<Figure> = COLUMNS.into_iter().filter_map(column).collect();
    if let Some(status) = field("status") {
        let is_up = ["UP", "OPEN"].iter().any(|word| status.starts_with(word));
        all.push(figure("up", false, f64::from(u8::from(is_up))));
    }
    all
}

/// The fields of a line; a quoted one may contain commas.
fn fields(line: &str) -> Vec<String> {
    let (mut all, mut is_quoted) = (vec![String::new()], false);
    for letter in line.chars() {
        match letter {
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => all.push(String::new()),
            letter => all.last_mut().expect("one").push(letter),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATS: &str = "# pxname,svname,qcur,qmax,scur,smax,slim,stot,bin,bout,status,rtime,\n\
        web,FRONTEND,,,3,9,2000,100,5000,90000,OPEN,,\n\
        shop,a1,0,1,2,4,,60,3000,50000,UP 1/2,17,\n\
        shop,\"a,2\",4,9,0,4,,40,2000,40000,DOWN,250,\n\
        shop,BACKEND,4,9,2,8,200,100,5000,90000,UP,110,\n\n";

    #[test]
    fn rows_of_frontends_backends_and_servers() {
        let told = figures(STATS).expect("read");
        let value = |name: &str, server: &str| {
            let is_it = |it: &&Figure| {
                it.name == name && it.labels.iter().all(|(l, v)| l == "proxy" || v == server)
            };
            told.iter().find(is_it).unwrap_or_else(|| panic!("no {name}")).value
        };
        assert_eq!(value("haproxy_frontend_sessions_total", ""), 100.0);
        assert_eq!(value("haproxy_backend_current_queue", ""), 4.0);
        assert_eq!(value("haproxy_server_up", "a1"), 1.0);
        assert_eq!(value("haproxy_server_up", "a,2"), 0.0);
        assert_eq!(value("haproxy_server_response_time_average_seconds", "a,2"), 0.25);
        assert!(told.iter().all(|it| it.is_counter == it.name.ends_with("_total")));
    }

    #[test]
    fn fuzz_any_statistics_are_read() {
        assert!(figures("<html>").is_err() && figures("").is_err());
        throng_fuzz::mutations(&[STATS.as_bytes()], |bytes, _| {
            if let Ok(told) = figures(&String::from_utf8_lossy(bytes)) {
                assert!(told.iter().all(|it| it.name.starts_with("haproxy_")));
            }
        });
    }
}
