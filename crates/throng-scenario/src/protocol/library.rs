//! The protocol files that come with throng: `protocol: throng:nats`.

use std::sync::Arc;

use throng_base::diagnostic::did_you_mean;
use throng_base::{Diagnostic, Source};
use throng_program::Scheme;

use crate::native;
use crate::words::shorten;

/// What a name of one of them begins with.
pub const PREFIX: &str = "throng:";

/// A protocol file that comes with throng.
#[derive(Clone, Copy, Debug)]
pub struct Shipped {
    pub name: &'static str,
    pub text: &'static str,
}

macro_rules! shipped {
    ($($name:literal)*) => {
        /// All of them, by name.
        pub const ALL: &[Shipped] = &[$(Shipped {
            name: $name,
            text: include_str!(concat!("../../protocols/", $name, ".protocol.yaml")),
        }),*];
    };
}

shipped! {
    "amqp" "bilibili" "coap" "dns" "goim" "graphql" "imap" "ldap" "memcached" "modbus" "nats" "ocpp"
    "phoenix" "signalr" "smtp" "socketio" "sockjs" "stomp" "xmpp"
    "xmpp-tcp"
}

impl Shipped {
    /// What it describes: the first line of its file.
    pub fn title(&self) -> &'static str {
        self.text.lines().next().unwrap_or_default().trim_start_matches("# ")
    }

    /// As its mistakes name it: `throng:nats`.
    pub fn source(&self) -> Arc<Source> {
        Source::new(format!("{PREFIX}{}", self.name), self.text)
    }
}

pub fn find(name: &str) -> Option<Shipped> {
    ALL.iter().find(|one| one.name == name).copied()
}

/// What is said of a name that none of them has.
pub fn unknown(name: &str) -> Diagnostic {
    let message = say!("`{PREFIX}{}` is not a built-in protocol", shorten(name));
    let error = Diagnostic::error("file-unreadable", message);
    let scheme = Scheme::ALL.into_iter().find(|scheme| scheme.word() == name);
    if let Some(own) = native::of_scheme(scheme).own {
        let own = own.name;
        return error.help(say!("{own} needs no file: write the target as `{name}://…`"));
    }
    let names: Vec<String> = ALL.iter().map(|one| format!("{PREFIX}{}", one.name)).collect();
    match did_you_mean(name, ALL.iter().map(|one| one.name)) {
        Some(near) => error.help(say!("did you mean `{PREFIX}{near}`?")),
        None => error.help(say!("available: `{}`", names.join("`, `"))),
    }
}
