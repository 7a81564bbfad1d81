//! Options that say from where and on which way a connection goes.

use super::Reader;
use super::flags::Flag;
use crate::read::shorten;
use crate::route::{
    abstract_socket_of_curl, connect_to_of_curl, resolve_of_curl, unix_socket_of_curl,
};
use crate::syntax::Place;

impl Reader<'_> {
    pub(super) fn way(&mut self, flag: Flag, text: &str, place: Place) {
        let route = &mut self.request.route;
        let wrong = match flag {
            Flag::Resolve => resolve_of_curl(text).map(|given| route.add_resolve(given)).err(),
            Flag::ConnectTo => {
                connect_to_of_curl(text).map(|given| route.add_connect_to(given)).err()
            }
            Flag::UnixSocket => {
                route.unix_socket = Some(unix_socket_of_curl(text));
                None
            }
            Flag::AbstractSocket => {
                route.unix_socket = Some(abstract_socket_of_curl(text));
                None
            }
            _ => return self.interface(text, place),
        };
        if let Some((reason, help)) = wrong {
            let message = format!("`{}` is not possible for this option: {reason}", shorten(text));
            self.wrong("curl-value", message, place, &help);
        }
    }

    fn interface(&mut self, text: &str, place: Place) {
        match text.parse() {
            Ok(address) => self.request.source = Some(address),
            Err(_) => {
                let message = format!("`{}` is not an address", shorten(text));
                let help = "write an address of this host: `--interface 127.0.0.2`";
                self.wrong("curl-value", message, place, help);
            }
        }
    }
}
