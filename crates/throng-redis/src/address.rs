//! Where a Redis is: `redis://[[user]:password@]host[:port][/database]`.

use std::fmt;
use std::str::FromStr;

use throng_base::Said;

/// Where a Redis is and how to log in there.
#[derive(Clone, PartialEq, Eq)]
pub struct RedisAddress {
    /// The host and the port, as a resolver takes them.
    pub(crate) host: String,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
    pub(crate) database: u32,
}

const PORT: u16 = 6379;

impl FromStr for RedisAddress {
    type Err = Said;

    fn from_str(text: &str) -> Result<RedisAddress, Said> {
        let rest = text.strip_prefix("redis://").ok_or_else(|| {
            say!("write the Redis address as `redis://127.0.0.1:6379`, with or without a password")
        })?;
        let (login, rest) = match rest.rsplit_once('@') {
            Some((login, rest)) => (Some(login), rest),
            None => (None, rest),
        };
        let (host, database) = rest.split_once('/').unwrap_or((rest, ""));
        let database = match database {
            "" => 0,
            text => text
                .parse()
                .map_err(|_| say!("the part after the slash must be a database number"))?,
        };
        let (user, password) = match login.map(|login| login.split_once(':')) {
            None => (None, None),
            Some(Some((user, password))) => (Some(user).filter(|u| !u.is_empty()), Some(password)),
            Some(None) => {
                return Err(say!("the part before `@` must be `:password` or `user:password`"));
            }
        };
        Ok(RedisAddress {
            host: host_and_port(host)?,
            user: user.map(str::to_owned),
            password: password.map(str::to_owned),
            database,
        })
    }
}

impl RedisAddress {
    pub fn password(&self) -> Option<&str> {
        self.password.as_deref()
    }
}

fn host_and_port(text: &str) -> Result<String, Said> {
    // The colons of an IPv6 address stand in brackets.
    let after_host = text.rfind(']').map_or(0, |end| end + 1);
    let (host, port) = match text[after_host..].rsplit_once(':') {
        Some((before, port)) => (&text[..after_host + before.len()], Some(port)),
        None => (text, None),
    };
    let port = match port {
        Some(port) => port.parse().ok().filter(|port| *port > 0),
        None => Some(PORT),
    };
    match port {
        Some(port) if !host.is_empty() => Ok(format!("{host}:{port}")),
        Some(_) => Err(say!("the host is missing")),
        None => Err(say!("a port must be a number from 1 to 65535")),
    }
}

/// Without the password.
impl fmt::Display for RedisAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "redis://{}", self.host)?;
        if self.database > 0 { write!(f, "/{}", self.database) } else { Ok(()) }
    }
}

impl fmt::Debug for RedisAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_hide_their_password() {
        let read = |text: &str| text.parse::<RedisAddress>().unwrap();
        let full = read("redis://me:se:c@ret@[::1]:6390/3");
        assert_eq!((full.host.as_str(), full.database), ("[::1]:6390", 3));
        assert_eq!(
            (full.user.as_deref(), full.password.as_deref()),
            (Some("me"), Some("se:c@ret"))
        );
        assert_eq!(full.to_string(), "redis://[::1]:6390/3");
        let plain = read("redis://localhost");
        assert_eq!((plain.host.as_str(), plain.password), ("localhost:6379", None));
        let secret = read("redis://:word@127.0.0.1:6390/");
        assert_eq!((secret.user, secret.password.as_deref()), (None, Some("word")));
        assert_eq!(read("redis://[::1]").host, "[::1]:6379");
        for wrong in [
            "127.0.0.1:6379",
            "rediss://x",
            "redis://",
            "redis://x:",
            "redis://x:0",
            "redis://x:70000",
            "redis://x/y",
            "redis://me@x",
            "redis://:6379",
        ] {
            assert!(wrong.parse::<RedisAddress>().is_err(), "{wrong}");
        }
    }
}
