//! Targets that are databases: `postgres://user:password@host/database?sslmode=require`.

use std::sync::Arc;

use throng_base::Said;
use throng_program::{Database, SslMode, Target, UnixSocket};

use crate::read::Context;
use crate::synonyms::did_you_mean;
use crate::syntax::Node;
use crate::url::{Url, percent_decode};
use crate::words::shorten;

const HELP: Said = say!("write `postgres://USER:PASSWORD@HOST:5432/DATABASE`");

/// The target of a URL of a database.
pub(super) fn read_database(
    cx: &mut Context<'_>,
    node: &Node,
    url: Url,
    weight: u32,
) -> Option<Target> {
    let Url { scheme, user, host, port, path } = url;
    let (path, query) = path.split_once('?').unwrap_or((&path, ""));
    let Some((user, password)) = user.filter(|(user, _)| !user.is_empty()) else {
        let message = say!("the URL of a database must contain a user name");
        let error = cx.error("bad-url", message, node.place);
        return cx.fail(error.label(say!("the user name is missing")).help(HELP));
    };
    let name = percent_decode(path.trim_start_matches('/'));
    let mut database = Database {
        name: if name.is_empty() { user.clone() } else { name },
        password: Some(password).filter(|password| !password.is_empty()),
        user,
        tls: SslMode::default(),
    };
    let mut unix_socket = None;
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = percent_decode(value);
        match key {
            "sslmode" => database.tls = read_mode(cx, node, &value)?,
            // The folder of the socket, as libpq has it.
            "host" if value.starts_with('/') => {
                let path = format!("{}/.s.PGSQL.{port}", value.trim_end_matches('/'));
                unix_socket = Some(UnixSocket::Path(path.into()));
            }
            key => {
                let message = say!("`{}` is not a parameter of a database URL", shorten(key));
                let error = cx.error("bad-url", message, cx.place_of(node, key));
                let error = error.label(match did_you_mean(key, ["sslmode", "host"]) {
                    Some(near) => say!("did you mean `{near}`?"),
                    None => say!("unknown"),
                });
                let help = say!("available: `sslmode`, and `host` for the folder of a Unix socket");
                return cx.fail(error.help(help));
            }
        }
    }
    let database = Some(Arc::new(database));
    Some(Target { weight, unix_socket, database, ..Target::new(scheme, host, port) })
}

fn read_mode(cx: &mut Context<'_>, node: &Node, value: &str) -> Option<SslMode> {
    if let Some((_, mode)) = SslMode::ALL.iter().find(|(word, _)| *word == value) {
        return Some(*mode);
    }
    let message = say!("`{}` is not a value of `sslmode`", shorten(value));
    let error = cx.error("bad-url", message, cx.place_of(node, value));
    let error = error.label(match value {
        "verify-ca" | "verify-full" | "allow" => say!("not supported"),
        _ => say!("unknown"),
    });
    let help = say!(
        "write `disable`, `prefer` or `require`; throng verifies certificates unless `tls: \
         {{verify: false}}`"
    );
    cx.fail(error.help(help))
}
