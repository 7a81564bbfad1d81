//! One connection of the chat.

use std::sync::Arc;

use crate::address::Address;
use crate::chat::Room;
use crate::chat::codec::{self, Breach, Message, Packet, TEXT_BYTES_MAX};
use crate::mail::Envelope;
use crate::output::Finish;
use crate::setup::Setup;
use crate::stats::ChatStats;
use crate::turn::{Fault, Turn};

/// The codes of `joined` and `done`.
const OK: u16 = 0;
/// The token is not `t-` followed by the number of the user.
const WRONG_TOKEN: u16 = 401;
const NOT_JOINED: u16 = 403;
/// The text does not fit into the packet that members receive.
const TEXT_TOO_LONG: u16 = 413;
/// An injected error.
const ERROR: u16 = 500;
/// There are too many rooms.
const NO_ROOM: u16 = 503;

/// One connection of the chat.
#[derive(Debug, Default)]
pub(crate) struct Chat {
    member: Option<Member>,
}

#[derive(Debug)]
struct Member {
    user: u64,
    room: Arc<Room>,
    /// The server confirmed the join, then removed the user from the room.
    forgotten: bool,
}

impl Chat {
    pub(crate) fn is_logged_in(&self) -> bool {
        self.member.is_some()
    }

    /// Removes the user from the room.
    pub(crate) fn end(&mut self, setup: &Setup, address: Address) {
        if let Some(member) = self.member.take().filter(|member| !member.forgotten) {
            setup.rooms.leave(member.user, &member.room, address);
        }
    }

    /// Handles at most one packet.
    pub(crate) fn receive(&mut self, input: &[u8], turn: &mut Turn<'_>) -> usize {
        match codec::read(input) {
            Ok(None) => 0,
            Ok(Some((packet, used))) => {
                turn.counts.messages += 1;
                self.obey(packet, turn);
                used
            }
            Err(breach) => {
                count_breach(turn.chat(), breach);
                turn.counts.refused += 1;
                self.part(turn);
                input.len()
            }
        }
    }

    /// Leaves the room and closes gracefully.
    fn part(&mut self, turn: &mut Turn<'_>) {
        self.end(turn.setup, turn.address);
        turn.room = Some(None);
        turn.say(b"", Some(Finish::Linger));
    }

    fn obey(&mut self, packet: Packet<'_>, turn: &mut Turn<'_>) {
        let seq = packet.seq;
        match (packet.message, &self.member) {
            (Message::Ping, _) => {
                turn.counts.heartbeats += 1;
                turn.reply(|out| codec::write_pong(out, seq));
            }
            (Message::Leave, _) => {
                turn.chat().leaves += 1;
                self.part(turn);
            }
            (Message::Join { room, user, token }, _) => self.join(seq, room, user, token, turn),
            (_, None) => {
                turn.chat().before_join += 1;
                done(seq, NOT_JOINED, turn);
            }
            (Message::Like { count }, Some(member)) => {
                turn.chat().likes += count;
                member.room.likes.add(count);
            }
            (request, Some(member)) => match turn.fault() {
                Fault::Reset => turn.reset(),
                Fault::Error => done(seq, ERROR, turn),
                Fault::None => {
                    let code = member.act(request, turn);
                    done(seq, code, turn);
                }
            },
        }
    }

    fn join(&mut self, seq: u32, room: u64, user: u64, token: &str, turn: &mut Turn<'_>) {
        let rooms = &turn.setup.rooms;
        let fault = turn.fault();
        let (code, online) = if fault == Fault::Reset {
            return turn.reset();
        } else if fault == Fault::Error {
            (ERROR, 0)
        } else if token.strip_prefix("t-").and_then(|rest| rest.parse().ok()) != Some(user) {
            turn.chat().joins_refused += 1;
            (WRONG_TOKEN, 0)
        } else if let Some(room) = rooms.open(room) {
            (OK, self.enter(user, room, turn))
        } else {
            (NO_ROOM, 0)
        };
        turn.reply(|out| codec::write_joined(out, seq, code, online));
    }

    /// Enters a room, leaves a previous one, and disconnects another connection of this user.
    /// Returns the number of users in the room.
    fn enter(&mut self, user: u64, room: Arc<Room>, turn: &mut Turn<'_>) -> u64 {
        let setup = turn.setup;
        self.end(setup, turn.address);
        turn.chat().joins += 1;
        turn.counts.logins += 1;
        if setup.faults.forgets() {
            turn.room = Some(None);
            let online = room.online() + 1;
            self.member = Some(Member { user, room, forgotten: true });
            return online;
        }
        let joined = setup.rooms.join(user, &room, turn.address);
        if let Some(before) = joined.before {
            turn.counts.double_logins += 1;
            setup.mailboxes.send(before.worker, Envelope::End(before));
        }
        turn.room = Some(Some(room.id));
        self.member = Some(Member { user, room: joined.room, forgotten: false });
        joined.online
    }
}

impl Member {
    /// Executes a request and returns its code.
    fn act(&self, request: Message<'_>, turn: &mut Turn<'_>) -> u16 {
        match request {
            Message::Gift { .. } => {
                turn.chat().gifts += 1;
                self.room.gifts.add(1);
            }
            Message::Light { .. } => {
                turn.chat().lights += 1;
                self.room.lights.add(1);
            }
            Message::Say { text, .. } if text.len() > TEXT_BYTES_MAX => return TEXT_TOO_LONG,
            Message::Say { id, sent_ns, text } => {
                turn.chat().says += 1;
                self.room.messages.add(1);
                self.fan_out(&codec::said(self.user, id, sent_ns, text).into(), turn.setup);
            }
            Message::Join { .. } | Message::Like { .. } | Message::Ping | Message::Leave => {}
        }
        OK
    }

    /// Sends a message to all workers with members of the room, including this one: the bytes are
    /// encoded once, and each worker writes them to its own connections.
    fn fan_out(&self, frame: &Arc<[u8]>, setup: &Setup) {
        self.room.workers(|worker, count| {
            let envelope = Envelope::Room(Arc::clone(&self.room), Arc::clone(frame));
            if !setup.mailboxes.send(worker, envelope) {
                setup.mailboxes.drop_deliveries(count);
            }
        });
    }
}

fn count_breach(counts: &mut ChatStats, breach: Breach) {
    *match breach {
        Breach::Magic => &mut counts.bad_magic,
        Breach::Length => &mut counts.bad_length,
        Breach::Kind => &mut counts.bad_kind,
        Breach::Body => &mut counts.bad_body,
    } += 1;
}

fn done(seq: u32, code: u16, turn: &mut Turn<'_>) {
    turn.reply(|out| codec::write_done(out, seq, code));
}

#[cfg(test)]
mod tests;
