//! Opens Redis connections that log in or select a database: sends AUTH and SELECT, and reads both
//! replies.

use throng_base::Said;
use throng_metrics::Cause;
use throng_program::redis::Login;
use throng_protocol::machine::{Answered, Event, Machine};
use throng_protocol::redis::{self, write_command};

use super::{Missing, Opens};
use crate::connector::{Opened, Order, pull};
use crate::failure::{Failure, shown};
use crate::shard::Lane;
use crate::trace::{Shown, What};
use crate::transport::Transport;

/// The first commands of a client.
pub(crate) struct Hello {
    commands: Vec<u8>,
    count: u32,
}

impl Hello {
    pub(crate) fn new(login: &Login) -> Hello {
        let (mut commands, mut count) = (Vec::new(), 0);
        let (user, password) = (login.user.as_bytes(), login.password.as_bytes());
        if !password.is_empty() {
            let words = [&b"AUTH"[..], user, password];
            // Servers before Redis 6 have only the user without a name.
            match user.is_empty() {
                true => write_command(&mut commands, &[words[0], password]),
                false => write_command(&mut commands, &words),
            }
            count += 1;
        }
        if login.database > 0 {
            let database = login.database.to_string();
            write_command(&mut commands, &[b"SELECT", database.as_bytes()]);
            count += 1;
        }
        Hello { commands, count }
    }
}

impl Opens for Hello {
    fn missing(&self) -> Missing {
        |waited| say!("no reply to AUTH or SELECT within {waited}")
    }

    async fn open(
        &self,
        shard: &Lane,
        order: &Order,
        mut transport: Transport,
        _: &[u8],
    ) -> Result<Opened, Failure> {
        let mut client = Box::<redis::Client>::default();
        client.ask(self.count, false);
        let mut machine = Machine::Redis(client);
        // It contains the password.
        shard.tell(order.who, shard.clock.now(), || What::Sent(Shown::of(b"AUTH, SELECT")));
        let came = |bytes: &[u8]| {
            shard.tell(order.who, shard.clock.now(), || What::Received(Shown::of(bytes)));
        };
        let commands = self.commands.clone();
        let (said, pulled) =
            pull(shard, &mut transport, &mut machine, commands, came, verdict).await?;
        said.ok_or_else(|| Failure::new(Cause::ClosedEarly, CLOSED))??;
        Ok(Opened::by(machine, transport, pulled))
    }
}

/// The server's response to a login.
fn verdict(event: &Event<'_>) -> Option<Result<(), Failure>> {
    match event {
        Event::Answered(Answered::Redis(answer)) => {
            Some(match (answer.error, answer.error_word()) {
                (Some(error), Some(word)) => {
                    let status = throng_base::redis::status(word);
                    let failure = Failure::new(Cause::of_status(status), redis_error(error));
                    Err(Failure { status, ..failure })
                }
                _ => Ok(()),
            })
        }
        _ => None,
    }
}

/// An error in the server's words.
pub(crate) fn redis_error(error: &[u8]) -> Said {
    say!("Redis error: {}", shown(error))
}

const CLOSED: Said = say!("the connection was closed before the reply to AUTH or SELECT");
