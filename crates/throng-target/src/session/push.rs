//! The state machine of one device connection.

use throng_base::Time;

use crate::address::Address;
use crate::mail::Envelope;
use crate::output::Finish;
use crate::presence::Device;
use crate::push::Service;
use crate::push::codec::{self, Message, Packet, PushAnswer};
use crate::push::counts::{Breach, PushStats};
use crate::redis::Ticket;
use crate::setup::Setup;
use crate::turn::{Fault, Turn};

/// The key that a bind must carry.
const KEY: &str = "pk";
/// The codes of replies to a bind.
const OK: u8 = 0;
const WRONG_KEY: u8 = 1;
pub(crate) const UNCONFIRMED: u8 = 2;
const SERVER_ERROR: u8 = 3;

/// The connection of a device.
#[derive(Debug, Default)]
pub(crate) struct Push {
    /// The device that is online through this connection.
    device: Option<Device>,
    state: PushState,
    heard: Tick,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum PushState {
    #[default]
    Unbound,
    /// The bind with this sequence number waits for Redis.
    Waiting(u32),
    Bound,
}

/// A time in four bytes, in steps of 17 ms: enough for two years.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Tick(u32);

impl Tick {
    fn new(time: Time) -> Tick {
        Tick((time.as_nanos() >> 24) as u32)
    }
}

impl Push {
    /// A connection that was accepted at this time.
    pub(crate) fn new(now: Time) -> Push {
        Push { heard: Tick::new(now), ..Push::default() }
    }

    pub(crate) fn is_bound(&self) -> bool {
        self.state == PushState::Bound
    }

    /// True if the last packet arrived before `time`.
    pub(crate) fn is_silent_since(&self, time: Time) -> bool {
        self.heard < Tick::new(time)
    }

    /// Parses complete packets of `input` and returns their length.
    pub(crate) fn receive(&mut self, input: &mut [u8], turn: &mut Turn<'_>) -> usize {
        let Some(service) = &turn.setup.push else { return input.len() };
        let read = match codec::read(input) {
            Ok(None) => return 0,
            Ok(Some((packet, used))) => {
                self.heard = Tick::new(turn.arrival.read);
                turn.counts.messages += 1;
                self.obey(packet, service, turn).map(|()| used)
            }
            Err(breach) => Err(breach),
        };
        read.unwrap_or_else(|breach| {
            self.close(breach, service, turn);
            input.len()
        })
    }

    fn obey(
        &mut self,
        packet: Packet<'_>,
        service: &Service,
        turn: &mut Turn<'_>,
    ) -> Result<(), Breach> {
        let seq = packet.seq;
        let worker = turn.address.worker;
        let answer = match packet.message {
            Message::Bind { .. } if self.state != PushState::Unbound => {
                return Err(Breach::BoundAgain);
            }
            Message::Bind { device, key } => {
                self.bind(seq, device, key, service, turn);
                return Ok(());
            }
            _ if self.state == PushState::Unbound => return Err(Breach::NotBound),
            // A device that waits for its bind is still alive.
            Message::Heartbeat => {
                turn.counts.heartbeats += 1;
                service.count(worker, |counts| counts.heartbeats += 1);
                PushAnswer::Alive
            }
            _ if self.state != PushState::Bound => return Err(Breach::NotBound),
            Message::Received { id } => {
                service.count(worker, |counts| match seq == codec::seq_of_push(id) {
                    true => counts.acknowledged += 1,
                    false => counts.misnumbered += 1,
                });
                return Ok(());
            }
            Message::Report => {
                service.count(worker, |counts| counts.reports += 1);
                PushAnswer::Noted
            }
        };
        if turn.draws_reset() {
            turn.reset();
        } else {
            say(seq, answer, turn);
        }
        Ok(())
    }

    fn bind(&mut self, seq: u32, name: &str, key: &str, service: &Service, turn: &mut Turn<'_>) {
        let (setup, address) = (turn.setup, turn.address);
        let count = |count: fn(&mut PushStats)| service.count(address.worker, count);
        count(|counts| counts.binds += 1);
        match turn.fault() {
            Fault::None => {}
            Fault::Reset => return turn.reset(),
            Fault::Error => return say(seq, PushAnswer::Bound(SERVER_ERROR), turn),
        }
        if key != KEY {
            count(|counts| counts.refused_keys += 1);
            return say(seq, PushAnswer::Bound(WRONG_KEY), turn);
        }
        turn.counts.logins += 1;
        if setup.faults.forgets() {
            count(|counts| counts.forgotten += 1);
            return self.confirm(seq, service, turn);
        }
        let device = Device::new(name);
        if let Some(earlier) = service.presence.enter(&device, address) {
            turn.counts.double_logins += 1;
            count(|counts| counts.kicked += 1);
            setup.mailboxes.send(earlier.worker, Envelope::End(earlier));
        }
        let waits = service.options.redis_wait && service.mirror.is_some();
        let ticket = Ticket { address, seq, arrived: turn.arrival.at };
        if waits && !service.watch(ticket) {
            service.presence.leave(&device, address);
            // The previous connection was disconnected, and knows that the device is no longer its
            // own.
            service.mirror.iter().for_each(|mirror| mirror.changed(device.clone(), None));
            count(|counts| counts.unconfirmed += 1);
            return say(seq, PushAnswer::Bound(UNCONFIRMED), turn);
        }
        if let Some(mirror) = &service.mirror {
            mirror.changed(device.clone(), waits.then_some(ticket));
        }
        self.device = Some(device);
        match waits {
            true => self.state = PushState::Waiting(seq),
            false => self.confirm(seq, service, turn),
        }
    }

    fn confirm(&mut self, seq: u32, service: &Service, turn: &mut Turn<'_>) {
        self.state = PushState::Bound;
        service.count(turn.address.worker, |counts| counts.bound += 1);
        say(seq, PushAnswer::Bound(OK), turn);
    }

    /// Redis has confirmed the bind with this sequence number, or has not in time.
    pub(crate) fn bound(&mut self, seq: u32, confirmed: bool, turn: &mut Turn<'_>) {
        let Some(service) =
            turn.setup.push.as_ref().filter(|_| self.state == PushState::Waiting(seq))
        else {
            return;
        };
        if confirmed {
            return self.confirm(seq, service, turn);
        }
        self.leave(service, turn.address);
        self.state = PushState::Unbound;
        service.count(turn.address.worker, |counts| counts.unconfirmed += 1);
        say(seq, PushAnswer::Bound(UNCONFIRMED), turn);
    }

    /// The connection ends.
    pub(crate) fn end(&mut self, setup: &Setup, address: Address) {
        self.state = PushState::Unbound;
        if let Some(service) = &setup.push {
            self.leave(service, address);
        }
    }

    /// A device that breaks the protocol is offline before its connection is closed.
    fn close(&mut self, breach: Breach, service: &Service, turn: &mut Turn<'_>) {
        turn.counts.refused += 1;
        service.count(turn.address.worker, |counts| counts.closed.count(breach));
        self.end(turn.setup, turn.address);
        turn.say(b"", Some(Finish::Linger));
    }

    fn leave(&mut self, service: &Service, address: Address) {
        if let Some(device) = self.device.take()
            && service.presence.leave(&device, address)
            && let Some(mirror) = &service.mirror
            && service.clears(address)
        {
            mirror.changed(device, None);
        }
    }
}

fn say(seq: u32, answer: PushAnswer, turn: &mut Turn<'_>) {
    turn.reply(|out| codec::write_answer(out, seq, answer));
}
