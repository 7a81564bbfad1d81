//! Redis: the output of `INFO`, with the names of redis_exporter.
//! <https://redis.io/docs/latest/commands/info/>,
//! <https://redis.io/docs/latest/develop/reference/protocol-spec/>

use throng_base::{Clock, Said};

use super::ASK_MAX;
use super::figure::Figure;
use super::socket::{Deadline, Socket};

/// Fields of `INFO`: the name of its series, and whether it is a counter.
const FIELDS: [(&str, &str, bool); 20] = [
    ("connected_clients", "redis_connected_clients", false),
    ("blocked_clients", "redis_blocked_clients", false),
    ("maxclients", "redis_config_maxclients", false),
    ("used_memory", "redis_memory_used_bytes", false),
    ("used_memory_rss", "redis_memory_used_rss_bytes", false),
    ("maxmemory", "redis_memory_max_bytes", false),
    ("total_connections_received", "redis_connections_received_total", true),
    ("rejected_connections", "redis_rejected_connections_total", true),
    ("total_commands_processed", "redis_commands_processed_total", true),
    ("instantaneous_ops_per_sec", "redis_instantaneous_ops_per_sec", false),
    ("expired_keys", "redis_expired_keys_total", true),
    ("evicted_keys", "redis_evicted_keys_total", true),
    ("keyspace_hits", "redis_keyspace_hits_total", true),
    ("keyspace_misses", "redis_keyspace_misses_total", true),
    ("used_cpu_sys", "redis_cpu_sys_seconds_total", true),
    ("used_cpu_user", "redis_cpu_user_seconds_total", true),
    ("uptime_in_seconds", "redis_uptime_in_seconds", false),
    ("connected_slaves", "redis_connected_slaves", false),
    ("latest_fork_usec", "redis_latest_fork_usec", false),
    ("loading", "redis_loading_dump_file", false),
];

/// A server, with a kept connection.
pub(super) struct Redis {
    /// Host and port, or a path.
    pub(super) place: String,
    pub(super) password: Option<String>,
    pub(super) socket: Option<Socket>,
}

impl Redis {
    pub(super) fn ask(&mut self, clock: &Clock) -> Result<Vec<Figure>, Said> {
        let deadline = Deadline::within(clock, ASK_MAX);
        let mut socket = match self.socket.take() {
            Some(socket) => socket,
            None => self.open(&deadline)?,
        };
        let text = socket.ask(b"*1\r\n$4\r\nINFO\r\n", &deadline, |bytes, _| reply(bytes))?;
        self.socket = Some(socket);
        Ok(figures(&text))
    }

    fn open(&self, deadline: &Deadline<'_>) -> Result<Socket, Said> {
        let mut socket = Socket::connect(&self.place, deadline)?;
        if let Some(password) = &self.password {
            let length = password.len();
            let request = format!("*2\r\n$4\r\nAUTH\r\n${length}\r\n{password}\r\n");
            socket.ask(request.as_bytes(), deadline, |bytes, _| reply(bytes))?;
        }
        Ok(socket)
    }
}

/// A text reply, if it is complete; for an error, its message.
fn reply(bytes: &[u8]) -> Result<Option<String>, Said> {
    let Some(end) = bytes.windows(2).position(|pair| pair == b"\r\n") else { return Ok(None) };
    let line = String::from_utf8_lossy(&bytes[..end]);
    let is_not_redis = || say!("its response is not a valid Redis reply");
    match line.split_at_checked(1) {
        Some(("+", text)) => Ok(Some(text.to_string())),
        Some(("-", text)) => Err(Said::of_others(text.to_string())),
        Some(("$", length)) => {
            let length: usize = length.parse().map_err(|_| is_not_redis())?;
            let text = bytes[end + 2..].get(..length);
            Ok(text.map(|text| String::from_utf8_lossy(text).into_owned()))
        }
        _ => Err(is_not_redis()),
    }
}

/// `name:value` lines, and `db0:keys=1,expires=0` per database.
fn figures(text: &str) -> Vec<Figure> {
    let number = |text: &str| text.parse().ok().filter(|value: &f64| value.is_finite());
    let figure = |line: &str| {
        let (key, value) = line.trim_end().split_once(':')?;
        if let Some((_, name, is_counter)) = FIELDS.iter().find(|(it, ..)| *it == key) {
            return Some(Figure::new(name, *is_counter, number(value)?));
        }
        if key == "redis_version" {
            let told = Figure::new("redis_instance_info", false, 1.0);
            return Some(told.with("redis_version", value));
        }
        key.strip_prefix("db")?.parse::<u16>().ok()?;
        let keys = value.split(',').find_map(|part| part.strip_prefix("keys="))?;
        Some(Figure::new("redis_db_keys", false, number(keys)?).with("db", key))
    };
    text.lines().filter_map(figure).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const INFO: &str = "# Server\r\nredis_version:7.2.4\r\nuptime_in_seconds:31\r\n\r\n# Clients\r\n\
        connected_clients:12\r\nmaxclients:10000\r\nused_cpu_sys:0.25\r\nmem_allocator:jemalloc\r\n\
        total_commands_processed:18446744073709551615\r\nloading:0\r\n# Keyspace\r\n\
        db0:keys=5,expires=1,avg_ttl=0\r\ndb15:keys=2\r\ndbx:keys=9\r\n";

    #[test]
    fn info_may_be_split_anywhere() {
        let whole = format!("${}\r\n{INFO}\r\n", INFO.len());
        throng_fuzz::splits(whole.as_bytes(), |parts| {
            let (mut come, mut found) = (Vec::new(), None);
            for part in parts {
                come.extend_from_slice(part);
                found = found.or(reply(&come).expect("a reply"));
            }
            assert_eq!(found.as_deref(), Some(INFO));
        });
        let told = figures(INFO);
        let value = |name: &str| told.iter().find(|it| it.name == name).map(|it| it.value);
        assert_eq!(value("redis_connected_clients"), Some(12.0));
        assert_eq!(value("redis_cpu_sys_seconds_total"), Some(0.25));
        assert_eq!(value("redis_commands_processed_total"), Some(18_446_744_073_709_551_615.0));
        let dbs: Vec<_> = told.iter().filter(|it| it.name == "redis_db_keys").collect();
        assert_eq!(dbs.len(), 2);
        assert_eq!((dbs[1].value, dbs[1].labels[0].1.as_str()), (2.0, "db15"));
        assert_eq!(told.len(), 9);
    }

    #[test]
    fn other_servers_are_not_redis() {
        let why = |bytes: &[u8]| reply(bytes).expect_err("refused").english();
        assert_eq!(why(b"-NOAUTH Authentication required.\r\n"), "NOAUTH Authentication required.");
        assert_eq!(why(b"HTTP/1.1 400 Bad Request\r\n"), "its response is not a valid Redis reply");
        assert_eq!(why(b"$-1\r\n"), "its response is not a valid Redis reply");
        assert_eq!(why(b"\r\n"), "its response is not a valid Redis reply");
        assert_eq!(reply(b"+OK\r\n").expect("a reply").as_deref(), Some("OK"));
    }

    #[test]
    fn fuzz_any_reply_is_read() {
        let whole = format!("${}\r\n{INFO}\r\n", INFO.len());
        throng_fuzz::mutations(&[whole.as_bytes(), b"-ERR x\r\n", b"$3\r\nabc\r\n"], |bytes, _| {
            if let Ok(Some(text)) = reply(bytes) {
                assert!(figures(&text).iter().all(|it| it.value.is_finite()));
            }
        });
    }
}
