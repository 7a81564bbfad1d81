//! A client session: bytes in, one event for each packet; orders in, bytes out. Packets that it
//! must send by itself (acknowledgements, pings, resent messages) are written to the caller's
//! buffer.
//!
//! One session serves one connection after another: [`Session::lost`] ends a connection,
//! [`Session::connect`] starts the next. Its state outlives a connection only if that was requested
//! (3.1.2.11.2).

use std::time::Duration;

use throng_base::Time;

use super::decode::decode;
use super::encode::{write_ack, write_filters};
use super::event::{Event, Lent, Sent};
use super::flaw::Flaw;
use super::flights::{Asked, Flight, Flights, Stage};
use super::kind::{PacketType, Qos, Version};
use super::packet::{
    Codes, Connack, Connect, Farewell, Packet, Publish, Subscribe, SubscribeOptions, Unsubscribe,
};
use super::property::Properties;
use super::property_id::PropertyId;
use super::reader::{Allowed, PacketReader};
use super::reason::Reason;
use super::refusal::Refusal;
use super::topic::{check_filter, check_name, has_wildcard, shared};
use super::violation::{Breach, Violation};
use super::wire::{VARINT_MAX, write_bytes};

/// Most messages that wait for room within the receive maximum of the server.
pub const WAITING_MESSAGES_MAX: usize = 10_000;
/// The reason code for a PUBREL whose message is unknown.
pub(super) const ID_NOT_FOUND: u8 = 0x92;
/// The first byte of a CONNACK.
const CONNACK_FIRST: u8 = (PacketType::Connack as u8) << 4;
/// The reason code for a version that the server does not support.
const OTHER_VERSION: u8 = 0x84;

/// The client side of a session.
#[derive(Debug)]
pub struct Session {
    reader: PacketReader,
    flights: Option<Box<Flights>>,
    /// When something was last sent.
    sent_at: Time,
    /// When the oldest unanswered PINGREQ was sent.
    pinged_at: Time,
    /// Maximum packet sizes, in and out; 0: not announced.
    packet_bytes_max_in: u32,
    packet_bytes_max_out: u32,
    keep_alive_s: u16,
    last_id: u16,
    receive_max_in: u16,
    receive_max_out: u16,
    alias_max_in: u16,
    alias_max_out: u16,
    /// How many messages count against the receive maximum of the server, and how many wait for
    /// room.
    flying: u16,
    waiting: u16,
    wishes: Wishes,
    /// Unanswered PINGREQs.
    pings: u8,
    version: Version,
    phase: Phase,
    /// The session outlives its connection.
    persistent: bool,
    clean_start: bool,
    resumed: bool,
    authenticates: bool,
    server: Server,
}

const _: () = assert!(size_of::<Session>() <= 72);

/// Settings of the client.
#[derive(Clone, Copy, Debug)]
pub struct Wishes {
    /// Most unacknowledged messages, whatever the server allows.
    pub inflight_max: u16,
    /// Most topic aliases, whatever the server allows.
    pub aliases_max: u16,
}

impl Default for Wishes {
    fn default() -> Wishes {
        Wishes { inflight_max: u16::MAX, aliases_max: 0 }
    }
}

/// Capabilities of the server (3.2.2.3).
#[derive(Clone, Copy, Debug)]
struct Server {
    qos_max: Qos,
    retain: bool,
    wildcards: bool,
    shared: bool,
    identifiers: bool,
}

const ABLE: Server = Server {
    qos_max: Qos::ExactlyOnce,
    retain: true,
    wildcards: true,
    shared: true,
    identifiers: true,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Without a connection.
    Idle,
    /// CONNECT is sent.
    Connecting,
    Open,
    /// By either end, or by a violation. Further input is ignored.
    Ended,
}

impl Session {
    pub fn new(version: Version, wishes: Wishes) -> Session {
        Session {
            reader: PacketReader::default(),
            flights: None,
            sent_at: Time::ZERO,
            pinged_at: Time::ZERO,
            packet_bytes_max_in: 0,
            packet_bytes_max_out: 0,
            keep_alive_s: 0,
            last_id: 0,
            receive_max_in: 0,
            receive_max_out: 0,
            alias_max_in: 0,
            alias_max_out: 0,
            flying: 0,
            waiting: 0,
            wishes,
            pings: 0,
            version,
            phase: Phase::Idle,
            persistent: false,
            clean_start: true,
            resumed: false,
            authenticates: false,
            server: ABLE,
        }
    }

    pub fn version(&self) -> Version {
        self.version
    }

    /// Whether the server has accepted the connection, and it has not ended.
    pub fn is_open(&self) -> bool {
        self.phase == Phase::Open
    }

    /// Whether it outlives its connection.
    pub fn is_persistent(&self) -> bool {
        self.persistent
    }

    /// Published messages that are not yet acknowledged, including those that wait for room.
    pub fn unacknowledged(&self) -> usize {
        self.flights.as_ref().map_or(0, |flights| flights.outgoing.len())
    }

    /// Bytes of an incomplete packet.
    pub fn half(&self) -> usize {
        self.reader.held_bytes()
    }

    /// Its heap memory.
    pub fn heap_bytes(&self) -> usize {
        self.reader.heap_bytes() + self.flights.as_ref().map_or(0, |it| it.heap_bytes())
    }

    /// Starts a connection.
    pub fn connect(&mut self, connect: &Connect<'_>, now: Time, out: &mut Vec<u8>) {
        let number = |id| connect.properties.number(id);
        let expiry_s = number(PropertyId::SessionExpiryInterval).unwrap_or(0);
        self.persistent = match self.version {
            Version::V3 => !connect.clean_start,
            Version::V5 => expiry_s > 0,
        };
        self.clean_start = connect.clean_start;
        self.keep_alive_s = connect.keep_alive_s;
        self.packet_bytes_max_in = number(PropertyId::MaximumPacketSize).unwrap_or(0);
        let receive_max = number(PropertyId::ReceiveMaximum).map_or(u16::MAX, |max| max as u16);
        self.receive_max_in = receive_max;
        self.alias_max_in = number(PropertyId::TopicAliasMaximum).unwrap_or(0) as u16;
        self.authenticates = connect.properties.get(PropertyId::AuthenticationMethod).is_some();
        self.reader = PacketReader::default();
        (self.pings, self.phase) = (0, Phase::Connecting);
        self.note_sent(now);
        Packet::Connect(*connect).write(self.version, out);
    }

    /// The connection has ended. Returns how many messages are lost: those of a session that does
    /// not outlive its connection.
    pub fn lost(&mut self) -> usize {
        self.phase = Phase::Idle;
        self.reader = PacketReader::default();
        if self.persistent {
            self.flights.iter_mut().for_each(|flights| flights.forget_connection());
            return 0;
        }
        self.forget()
    }

    /// Drops all state; returns how many messages are lost.
    fn forget(&mut self) -> usize {
        (self.flying, self.waiting) = (0, 0);
        self.flights.take().map_or(0, |flights| flights.outgoing.len())
    }

    /// Reads the next packet from `input`: each is one event. `None` if it is incomplete.
    ///
    /// # Errors
    /// A violation of the standard by the server. It ends the session, and an MQTT 5 server is told
    /// why.
    pub fn next<'e, 'i: 'e>(
        &mut self,
        input: &mut &'i [u8],
        lent: Lent<'e, '_>,
    ) -> Result<Option<Event<'e>>, Violation> {
        if matches!(self.phase, Phase::Idle | Phase::Ended) {
            *input = &[];
            return Ok(None);
        }
        let Lent { whole, topic, out, now, packet_bytes_max } = lent;
        let announced = self.packet_bytes_max_in > 0;
        let bytes_max = if announced { self.packet_bytes_max_in } else { packet_bytes_max };
        let allowed = Allowed { version: self.version, bytes_max, announced };
        let raw = match self.reader.next(input, whole, allowed) {
            Ok(Some(raw)) => raw,
            Ok(None) => return Ok(None),
            Err((packet, flaw)) => {
                return Err(self.broken(packet, Breach::Malformed(flaw), out));
            }
        };
        let packet = PacketType::of(raw.first, self.version);
        let read = match (self.version, raw.first, raw.body) {
            // A server that only supports 3.1.1 refuses in its own format (3.1.2.2).
            (Version::V5, CONNACK_FIRST, [0, 1]) => {
                Ok(Packet::Connack(Connack { code: OTHER_VERSION, ..Connack::default() }))
            }
            (version, first, body) => decode(version, first, body).map_err(Breach::Malformed),
        };
        match read.and_then(|packet| self.take(packet, now, topic, out)) {
            Ok(event) => Ok(Some(event)),
            Err(breach) => Err(self.broken(packet, breach, out)),
        }
    }

    fn broken(
        &mut self,
        packet: Option<PacketType>,
        breach: Breach,
        out: &mut Vec<u8>,
    ) -> Violation {
        let violation = Violation { version: self.version, packet, breach };
        if self.phase == Phase::Open && self.version == Version::V5 {
            let farewell = Farewell { code: violation.reason_code(), ..Farewell::default() };
            Packet::Disconnect(farewell).write(self.version, out);
        }
        self.phase = Phase::Ended;
        violation
    }

    fn take<'e>(
        &mut self,
        packet: Packet<'e>,
        now: Time,
        topic: &'e mut String,
        out: &mut Vec<u8>,
    ) -> Result<Event<'e>, Breach> {
        let begins = matches!(packet, Packet::Connack(_) | Packet::Auth(_));
        if self.phase == Phase::Connecting && !begins {
            return Err(Breach::BeforeConnack);
        }
        let before = out.len();
        let event = match packet {
            Packet::Connack(connack) => self.connack(connack, out),
            Packet::Publish(publish) => self.message(publish, topic, out),
            Packet::Puback(ack) => self.acknowledged(ack.id, ack.code, Stage::Puback, out),
            Packet::Pubrec(ack) => self.acknowledged(ack.id, ack.code, Stage::Pubrec, out),
            Packet::Pubrel(ack) => Ok(self.released(ack.id, out)),
            Packet::Pubcomp(ack) => self.acknowledged(ack.id, ack.code, Stage::Pubcomp, out),
            Packet::Suback(codes) => self.subscribed(codes),
            Packet::Unsuback(codes) => self.unsubscribed(codes),
            Packet::Pingresp if self.pings == 0 => Err(Breach::PongWithoutPing),
            Packet::Pingresp => {
                self.pings -= 1;
                Ok(Event::Pong)
            }
            Packet::Disconnect(Farewell { code, properties }) => {
                self.phase = Phase::Ended;
                let reason = self.reason(PacketType::Disconnect, code)?;
                Ok(Event::Disconnected { reason, properties })
            }
            Packet::Auth(_) if !self.authenticates => Err(Breach::AuthWithoutMethod),
            Packet::Auth(Farewell { code, properties }) => {
                let reason = self.reason(PacketType::Auth, code)?;
                Ok(Event::Auth { reason, properties })
            }
            Packet::Connect(_)
            | Packet::Subscribe(_)
            | Packet::Unsubscribe(_)
            | Packet::Pingreq => Err(Breach::FromServer),
        };
        if out.len() > before {
            self.note_sent(now);
        }
        event
    }

    fn reason(&self, packet: PacketType, code: u8) -> Result<&'static Reason, Breach> {
        let reason = Reason::of(self.version, packet, code);
        reason.ok_or(Breach::Malformed(Flaw::ReasonCode(code)))
    }

    fn connack<'e>(
        &mut self,
        connack: Connack<'e>,
        out: &mut Vec<u8>,
    ) -> Result<Event<'e>, Breach> {
        if self.phase == Phase::Open {
            return Err(Breach::SecondConnack);
        }
        let Connack { session_present, code, properties } = connack;
        let reason = self.reason(PacketType::Connack, code)?;
        if session_present && (self.clean_start || reason.is_error()) {
            return Err(Breach::SessionPresent);
        }
        if reason.is_error() {
            self.phase = Phase::Ended;
            return Ok(Event::Refused { reason, properties });
        }
        self.agree(properties);
        self.phase = Phase::Open;
        self.resumed = session_present;
        (self.flying, self.waiting) = (0, 0);
        let (resent, lost) = match session_present {
            true => (self.send_again(out), 0),
            false => (0, self.forget()),
        };
        Ok(Event::Connected { session_present, resent, lost, properties })
    }

    /// The server's capabilities (3.2.2.3).
    fn agree(&mut self, properties: Properties<'_>) {
        let number = |id| properties.number(id);
        let offers = |id| number(id) != Some(0);
        let two = |id, default: u16| number(id).map_or(default, |number| number as u16);
        self.receive_max_out =
            two(PropertyId::ReceiveMaximum, u16::MAX).min(self.wishes.inflight_max.max(1));
        self.alias_max_out = two(PropertyId::TopicAliasMaximum, 0).min(self.wishes.aliases_max);
        self.keep_alive_s = two(PropertyId::ServerKeepAlive, self.keep_alive_s);
        self.packet_bytes_max_out = number(PropertyId::MaximumPacketSize).unwrap_or(0);
        if let Some(expiry_s) = number(PropertyId::SessionExpiryInterval) {
            self.persistent = expiry_s > 0;
        }
        self.server = Server {
            // The property is a flag: QoS 0 or 1.
            qos_max: number(PropertyId::MaximumQos)
                .and_then(|qos| Qos::new(qos as u8))
                .unwrap_or(Qos::ExactlyOnce),
            retain: offers(PropertyId::RetainAvailable),
            wildcards: offers(PropertyId::WildcardSubscriptionAvailable),
            shared: offers(PropertyId::SharedSubscriptionAvailable),
            identifiers: offers(PropertyId::SubscriptionIdentifierAvailable),
        };
    }

    /// Resends what the last connection did not complete, in order (4.4). Messages beyond the
    /// receive maximum of this connection wait. Returns how many had been sent before.
    fn send_again(&mut self, out: &mut Vec<u8>) -> usize {
        let Some(flights) = &mut self.flights else { return 0 };
        let begun = flights.outgoing.iter().filter(|it| !matches!(it.stage, Stage::Room(_)));
        let resent = begun.count();
        for flight in &mut flights.outgoing {
            let qos = match flight.stage {
                Stage::Pubcomp => {
                    write_ack(self.version, PacketType::Pubrel, flight.id, 0, out);
                    self.flying += 1;
                    continue;
                }
                Stage::Room(qos) => qos,
                Stage::Puback => again(flight, Qos::AtLeastOnce),
                Stage::Pubrec => again(flight, Qos::ExactlyOnce),
            };
            if self.flying < self.receive_max_out {
                out.extend_from_slice(&flight.packet);
                flight.stage = Stage::sent(qos);
                self.flying += 1;
            } else {
                flight.stage = Stage::Room(qos);
                self.waiting += 1;
            }
        }
        resent
    }

    fn message<'e>(
        &mut self,
        mut publish: Publish<'e>,
        topic: &'e mut String,
        out: &mut Vec<u8>,
    ) -> Result<Event<'e>, Breach> {
        if self.version == Version::V5 {
            publish.topic = self.topic_of(publish, topic)?;
        }
        let id = publish.id;
        match publish.qos {
            Qos::AtMostOnce => {}
            Qos::AtLeastOnce => write_ack(self.version, PacketType::Puback, id, 0, out),
            Qos::ExactlyOnce => {
                let receive_max = usize::from(self.receive_max_in);
                let limited = self.version == Version::V5;
                let incoming = &mut self.flights.get_or_insert_default().incoming;
                let known = incoming.binary_search(&id);
                match known {
                    Err(_) if limited && incoming.len() >= receive_max => {
                        return Err(Breach::ReceiveMaximum(self.receive_max_in));
                    }
                    Err(at) => incoming.insert(at, id),
                    Ok(_) => {}
                }
                write_ack(self.version, PacketType::Pubrec, id, 0, out);
                if known.is_ok() {
                    return Ok(Event::Duplicate(id));
                }
            }
        }
        Ok(Event::Message(publish))
    }

    /// The topic of a message, which may contain only its alias (3.3.2.3.4).
    fn topic_of<'e>(
        &mut self,
        publish: Publish<'e>,
        copy: &'e mut String,
    ) -> Result<&'e str, Breach> {
        let alias = publish.properties.number(PropertyId::TopicAlias).map(|alias| alias as u16);
        let Some(alias) = alias else {
            return match publish.topic {
                "" => Err(Breach::Malformed(Flaw::TopicMissing)),
                topic => Ok(topic),
            };
        };
        let alias_max = self.alias_max_in;
        if alias > alias_max {
            return Err(Breach::AliasTooHigh { alias, alias_max });
        }
        let aliases = &mut self.flights.get_or_insert_default().aliases_in;
        let at = usize::from(alias) - 1;
        if publish.topic.is_empty() {
            let known = aliases.get(at).filter(|topic| !topic.is_empty());
            let topic = known.ok_or(Breach::AliasUnknown(alias))?;
            copy.clear();
            copy.push_str(topic);
            return Ok(copy);
        }
        if aliases.len() <= at {
            aliases.resize(at + 1, String::new());
        }
        aliases[at].clear();
        aliases[at].push_str(publish.topic);
        Ok(publish.topic)
    }

    fn released<'e>(&mut self, id: u16, out: &mut Vec<u8>) -> Event<'e> {
        let is_known = self.flights.as_mut().is_some_and(|flights| flights.release(id));
        let code = if is_known { 0 } else { ID_NOT_FOUND };
        write_ack(self.version, PacketType::Pubcomp, id, code, out);
        // Not an error during recovery (3.7.2.1), nor a reason to end a connection on which servers
        // repeat unanswered packets.
        match is_known || self.resumed {
            true => Event::Released(id),
            false => Event::Unreleased(id),
        }
    }

    /// A reply to a message that we published; `due` is the stage that such a reply answers.
    fn acknowledged<'e>(
        &mut self,
        id: u16,
        code: u8,
        due: Stage,
        out: &mut Vec<u8>,
    ) -> Result<Event<'e>, Breach> {
        let packet = match due {
            Stage::Puback => PacketType::Puback,
            Stage::Pubrec => PacketType::Pubrec,
            _ => PacketType::Pubcomp,
        };
        let reason = match self.version {
            // Its acknowledgements have no code.
            Version::V3 => Reason::of(Version::V5, packet, 0),
            Version::V5 => Reason::of(Version::V5, packet, code),
        };
        let reason = reason.ok_or(Breach::Malformed(Flaw::ReasonCode(code)))?;
        let flights = self.flights.as_mut().ok_or(Breach::UnknownId(id))?;
        let at = flights.find(id).ok_or(Breach::UnknownId(id))?;
        let flight = &mut flights.outgoing[at];
        let repeated = due == Stage::Pubrec && flight.stage == Stage::Pubcomp;
        if flight.stage != due && !repeated {
            return Err(Breach::WrongReply(id));
        }
        if due == Stage::Pubrec && !reason.is_error() {
            flight.stage = Stage::Pubcomp;
            flight.packet = Box::default();
            write_ack(self.version, PacketType::Pubrel, id, 0, out);
            return Ok(Event::Received(id));
        }
        flights.outgoing.remove(at);
        flights.shrink();
        self.flying -= 1;
        self.send_waiting(out);
        Ok(Event::Published { id, reason })
    }

    /// Sends the next message that waits for room.
    fn send_waiting(&mut self, out: &mut Vec<u8>) {
        if self.waiting == 0 || self.flying >= self.receive_max_out {
            return;
        }
        let flights = self.flights.iter_mut().flat_map(|flights| &mut flights.outgoing);
        for flight in flights {
            let Stage::Room(qos) = flight.stage else { continue };
            out.extend_from_slice(&flight.packet);
            flight.stage = Stage::sent(qos);
            if !self.persistent {
                flight.packet = Box::default();
            }
            self.flying += 1;
            self.waiting -= 1;
            return;
        }
    }

    fn subscribed<'e>(&mut self, codes: Codes<'e>) -> Result<Event<'e>, Breach> {
        let asked = self.answered(codes, true)?;
        let mut lower = 0;
        for (code, asked) in codes.codes.iter().zip(&*asked.asked) {
            if *code < 0x80 && code > asked {
                return Err(Breach::QosNotAsked { granted: *code, asked: *asked });
            }
            lower += usize::from(code < asked);
        }
        Ok(Event::Subscribed { codes, lower })
    }

    fn unsubscribed<'e>(&mut self, codes: Codes<'e>) -> Result<Event<'e>, Breach> {
        self.answered(codes, false)?;
        Ok(Event::Unsubscribed(codes))
    }

    /// The request that a SUBACK or UNSUBACK answers.
    fn answered(&mut self, codes: Codes<'_>, subscribes: bool) -> Result<Asked, Breach> {
        let flights = self.flights.as_mut().ok_or(Breach::UnknownId(codes.id))?;
        let asked = flights.take_asked(codes.id, subscribes).ok_or(Breach::UnknownId(codes.id))?;
        // An idle subscriber needs none of it.
        if flights.is_empty() {
            self.flights = None;
        }
        let has_codes = subscribes || self.version == Version::V5;
        let (codes, filters) = (codes.codes.len(), asked.asked.len());
        if has_codes && codes != filters {
            return Err(Breach::CodeCount { codes, filters });
        }
        Ok(asked)
    }

    /// Publishes a message, and chooses its packet identifier.
    ///
    /// # Errors
    /// It may not be sent.
    pub fn publish(
        &mut self,
        message: &Publish<'_>,
        now: Time,
        out: &mut Vec<u8>,
    ) -> Result<Sent, Refusal> {
        self.check_message(message)?;
        if message.qos == Qos::AtMostOnce {
            self.write_message(message, out);
            self.note_sent(now);
            return Ok(Sent::Gone);
        }
        if usize::from(self.waiting) >= WAITING_MESSAGES_MAX {
            return Err(Refusal::Full(WAITING_MESSAGES_MAX));
        }
        let id = self.fresh_id()?;
        let message = Publish { id, dup: false, ..*message };
        let waits = self.flying >= self.receive_max_out;
        let mut packet = Vec::new();
        if waits || self.persistent {
            // An alias would be invalid on another connection.
            message.write(self.version, 0, &mut packet);
        }
        let stage = if waits { Stage::Room(message.qos) } else { Stage::sent(message.qos) };
        let flight = Flight { id, stage, packet: packet.into() };
        self.flights.get_or_insert_default().outgoing.push_back(flight);
        if waits {
            self.waiting += 1;
            return Ok(Sent::Waiting(id));
        }
        self.flying += 1;
        self.write_message(&message, out);
        self.note_sent(now);
        Ok(Sent::Flying(id))
    }

    fn check_message(&self, message: &Publish<'_>) -> Result<(), Refusal> {
        if self.phase != Phase::Open {
            return Err(Refusal::NotConnected);
        }
        check_name(message.topic).map_err(Refusal::Topic)?;
        if message.qos > self.server.qos_max {
            return Err(Refusal::Qos(self.server.qos_max.level()));
        }
        if message.retain && !self.server.retain {
            return Err(Refusal::Retain);
        }
        self.check_bytes(message.bytes(self.version))
    }

    fn check_bytes(&self, bytes: usize) -> Result<(), Refusal> {
        let bytes_max = match self.packet_bytes_max_out {
            0 => VARINT_MAX,
            bytes_max => bytes_max,
        };
        if bytes > bytes_max as usize {
            return Err(Refusal::TooLarge { bytes, bytes_max });
        }
        Ok(())
    }

    /// Writes a message, with an alias for its topic if there is one.
    fn write_message(&mut self, message: &Publish<'_>, out: &mut Vec<u8>) {
        let alias_max = usize::from(self.alias_max_out);
        if alias_max == 0 {
            return message.write(self.version, 0, out);
        }
        let aliases = &mut self.flights.get_or_insert_default().aliases_out;
        match aliases.iter().position(|topic| **topic == *message.topic) {
            Some(at) => {
                let message = Publish { topic: "", ..*message };
                message.write(self.version, at as u16 + 1, out);
            }
            None if aliases.len() < alias_max => {
                aliases.push(message.topic.into());
                message.write(self.version, aliases.len() as u16, out);
            }
            None => message.write(self.version, 0, out),
        }
    }

    /// An unused packet identifier.
    fn fresh_id(&mut self) -> Result<u16, Refusal> {
        let flights = self.flights.get_or_insert_default();
        let used = flights.outgoing.len() + flights.asked.len();
        if used >= usize::from(u16::MAX) {
            return Err(Refusal::Full(used));
        }
        loop {
            self.last_id = self.last_id % u16::MAX + 1;
            if !flights.uses(self.last_id) {
                return Ok(self.last_id);
            }
        }
    }

    /// Subscribes; returns the packet identifier of the reply.
    ///
    /// # Errors
    /// It may not be sent.
    pub fn subscribe(
        &mut self,
        filters: &[(&str, SubscribeOptions)],
        properties: Properties<'_>,
        now: Time,
        out: &mut Vec<u8>,
    ) -> Result<u16, Refusal> {
        if !properties.is_empty() && !self.server.identifiers {
            let named = properties.get(PropertyId::SubscriptionIdentifier);
            named.map_or(Ok(()), |_| Err(Refusal::SubscriptionIdentifier))?;
        }
        for (filter, options) in filters {
            self.check_filter(filter, options.no_local)?;
        }
        let asked = filters.iter().map(|(_, options)| options.qos.level()).collect();
        self.ask(asked, true, now, out, |id, version, out| {
            let mut written = Vec::new();
            write_filters(version, filters, &mut written);
            Packet::Subscribe(Subscribe { id, properties, filters: &written }).write(version, out);
        })
    }

    /// Unsubscribes; returns the packet identifier of the reply.
    ///
    /// # Errors
    /// It may not be sent.
    pub fn unsubscribe(
        &mut self,
        filters: &[&str],
        properties: Properties<'_>,
        now: Time,
        out: &mut Vec<u8>,
    ) -> Result<u16, Refusal> {
        for filter in filters {
            self.check_filter(filter, false)?;
        }
        self.ask(vec![0; filters.len()].into(), false, now, out, |id, version, out| {
            let mut written = Vec::new();
            filters.iter().for_each(|filter| write_bytes(filter.as_bytes(), &mut written));
            let unsubscribe = Unsubscribe { id, properties, filters: &written };
            Packet::Unsubscribe(unsubscribe).write(version, out);
        })
    }

    fn check_filter(&self, filter: &str, no_local: bool) -> Result<(), Refusal> {
        check_filter(filter).map_err(Refusal::Topic)?;
        let is_shared = shared(filter).map_err(Refusal::Topic)?.is_some();
        if is_shared && !self.server.shared {
            return Err(Refusal::Shared);
        }
        if is_shared && no_local {
            return Err(Refusal::NoLocalShared);
        }
        if has_wildcard(filter) && !self.server.wildcards {
            return Err(Refusal::Wildcard);
        }
        Ok(())
    }

    fn ask(
        &mut self,
        asked: Box<[u8]>,
        subscribes: bool,
        now: Time,
        out: &mut Vec<u8>,
        write: impl FnOnce(u16, Version, &mut Vec<u8>),
    ) -> Result<u16, Refusal> {
        if self.phase != Phase::Open {
            return Err(Refusal::NotConnected);
        }
        if asked.is_empty() {
            return Err(Refusal::NoFilter);
        }
        let id = self.fresh_id()?;
        let start = out.len();
        write(id, self.version, out);
        if let Err(refusal) = self.check_bytes(out.len() - start) {
            out.truncate(start);
            return Err(refusal);
        }
        let asked = Asked { id, asked, subscribes };
        self.flights.get_or_insert_default().asked.push(asked);
        self.note_sent(now);
        Ok(id)
    }

    /// Sends the keep-alive ping if it is due. Returns when to call this again.
    ///
    /// # Errors
    /// The server has not answered the last ping within the keep-alive time (3.1.2.10).
    pub fn keep_alive(&mut self, now: Time, out: &mut Vec<u8>) -> Result<Time, Violation> {
        let every = Duration::from_secs(u64::from(self.keep_alive_s));
        if now < self.due() {
            return Ok(self.due());
        }
        if self.pings > 0 && now >= self.pinged_at + every {
            let breach = Breach::KeepAlive(self.keep_alive_s);
            return Err(self.broken(Some(PacketType::Pingresp), breach, out));
        }
        if now >= self.sent_at + every {
            self.ping(now, out);
        }
        Ok(self.due())
    }

    /// When [`Session::keep_alive`] is due.
    pub fn due(&self) -> Time {
        if self.phase != Phase::Open || self.keep_alive_s == 0 {
            return Time::NEVER;
        }
        let every = Duration::from_secs(u64::from(self.keep_alive_s));
        let due = self.sent_at + every;
        if self.pings > 0 { due.min(self.pinged_at + every) } else { due }
    }

    /// Sends a PINGREQ.
    pub fn ping(&mut self, now: Time, out: &mut Vec<u8>) {
        if self.phase == Phase::Open && self.pings < u8::MAX {
            if self.pings == 0 {
                self.pinged_at = now;
            }
            self.pings += 1;
            Packet::Pingreq.write(self.version, out);
            self.note_sent(now);
        }
    }

    /// Ends the connection gracefully. The server publishes no will, unless the code requests it.
    pub fn disconnect(&mut self, farewell: Farewell<'_>, out: &mut Vec<u8>) {
        if self.phase == Phase::Open {
            Packet::Disconnect(farewell).write(self.version, out);
        }
        self.phase = Phase::Ended;
    }

    fn note_sent(&mut self, now: Time) {
        self.sent_at = now;
    }
}

/// Sets the duplicate flag of a message that was sent before; returns its QoS.
fn again(flight: &mut Flight, qos: Qos) -> Qos {
    if let Some(first) = flight.packet.first_mut() {
        *first |= 8;
    }
    qos
}
