//! Targets that are databases: `postgres://user:password@host/database?sslmode=require`,
//! `mysql://user:password@host/database?ssl-mode=REQUIRED`.

use std::sync::Arc;

use throng_base::Said;
use throng_program::{Database, Login, SslMode, Target, UnixSocket};
use throng_protocol::sql::Dialect;

use crate::read::Context;
use crate::synonyms::{did_you_mean, near_label};
use crate::syntax::Node;
use crate::url::{Url, percent_decode};
use crate::words::shorten;

/// The names that clients of a dialect use for parts of a URL.
struct Words {
    ssl_mode: &'static str,
    modes: [(&'static str, SslMode); 3],
    /// The path of a Unix socket.
    socket: &'static str,
    url: &'static Said,
    parameters: &'static Said,
    tls: &'static Said,
    modes_help: &'static Said,
}

use SslMode::{Disable, Prefer, Require};

static POSTGRES: Words = Words {
    ssl_mode: "sslmode",
    modes: [("disable", Disable), ("prefer", Prefer), ("require", Require)],
    socket: "host",
    url: &say!("write `postgres://USER:PASSWORD@HOST:5432/DATABASE`"),
    parameters: &say!("available: `sslmode`, and `host` for the folder of a Unix socket"),
    tls: &say!("write `?sslmode=require` behind the target"),
    modes_help: &say!(
        "write `disable`, `prefer` or `require`; throng verifies certificates unless `tls: \
         {{verify: false}}`"
    ),
};

static MYSQL: Words = Words {
    ssl_mode: "ssl-mode",
    modes: [("DISABLED", Disable), ("PREFERRED", Prefer), ("REQUIRED", Require)],
    socket: "socket",
    url: &say!("write `mysql://USER:PASSWORD@HOST:3306/DATABASE`"),
    parameters: &say!("available: `ssl-mode`, and `socket` for the path of a Unix socket"),
    tls: &say!("write `?ssl-mode=REQUIRED` behind the target"),
    modes_help: &say!(
        "write `DISABLED`, `PREFERRED` or `REQUIRED`; throng verifies certificates unless `tls: \
         {{verify: false}}`"
    ),
};

fn words_of(dialect: Dialect) -> &'static Words {
    match dialect {
        Dialect::Postgres => &POSTGRES,
        Dialect::MySql => &MYSQL,
    }
}

/// How a target that is a database uses TLS.
pub(super) fn how_to_use_tls(dialect: Dialect) -> &'static Said {
    words_of(dialect).tls
}

/// The target in the URL of a database.
pub(super) fn read_database(
    cx: &mut Context<'_>,
    node: &Node,
    (url, dialect): (Url, Dialect),
    weight: u32,
) -> Option<Target> {
    let Url { scheme, user, host, port, path } = url;
    let words = words_of(dialect);
    let (path, query) = path.split_once('?').unwrap_or((&path, ""));
    let Some((user, password)) = user.filter(|(user, _)| !user.is_empty()) else {
        let message = say!("the URL of a database must contain a user name");
        let help = words.url.clone();
        return cx.refuse("bad-url", node.place, message, say!("the user name is missing"), help);
    };
    let name = percent_decode(path.trim_start_matches('/'));
    let of_user = name.is_empty() && dialect == Dialect::Postgres;
    let mut database = Database {
        dialect,
        name: if of_user { user.clone() } else { name },
        password: Some(password).filter(|password| !password.is_empty()),
        user,
        tls: SslMode::default(),
    };
    let mut unix_socket = None;
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = percent_decode(value);
        if key == words.ssl_mode {
            database.tls = read_mode(cx, node, words, &value)?;
        } else if key == words.socket && value.starts_with('/') {
            let path = match dialect {
                // The path of the socket in its folder, like libpq.
                Dialect::Postgres => format!("{}/.s.PGSQL.{port}", value.trim_end_matches('/')),
                Dialect::MySql => value,
            };
            unix_socket = Some(UnixSocket::Path(path.into()));
        } else {
            let message = say!("`{}` is not a parameter of a database URL", shorten(key));
            let label =
                near_label(did_you_mean(key, [words.ssl_mode, words.socket]), say!("unknown"));
            let place = cx.place_of(node, key);
            return cx.refuse("bad-url", place, message, label, words.parameters.clone());
        }
    }
    let login = Some(Arc::new(Login::Sql(database)));
    Some(Target { weight, unix_socket, login, ..Target::new(scheme, host, port) })
}

fn read_mode(cx: &mut Context<'_>, node: &Node, words: &Words, value: &str) -> Option<SslMode> {
    let is_it = |word: &str| word.eq_ignore_ascii_case(value);
    if let Some((_, mode)) = words.modes.iter().find(|(word, _)| is_it(word)) {
        return Some(*mode);
    }
    let others = ["verify-ca", "verify-full", "allow", "verify_ca", "verify_identity"];
    let message = say!("`{}` is not a value of `{}`", shorten(value), words.ssl_mode);
    let label = match others.iter().any(|word| is_it(word)) {
        true => say!("not supported"),
        false => say!("unknown"),
    };
    let place = cx.place_of(node, value);
    cx.refuse("bad-url", place, message, label, words.modes_help.clone())
}
