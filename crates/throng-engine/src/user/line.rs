//! The connections of a user: one line for each that its session may have. The first is stored
//! inline, as few users have more.

use throng_base::{Time, UserId};
use throng_metrics::Cause;
use throng_protocol::framed::Protocol;
use throng_protocol::http2::{self, Refused};
use throng_protocol::machine::{Form, Machine, Parts};

use super::State;
use super::beat::Beats;
use super::connection::backlog::Backlog;
use super::connection::{Connection, Later, Life, Loss};
use crate::failure::{Ended, Failure};
use crate::prepared::{LinkPlan, Prepared};
use crate::shard::Lane;

/// A line: a connection that the session may have.
pub(super) struct Line {
    pub(super) connection: Option<Connection>,
    pub(super) beats: Beats,
    /// Why the connection was lost, until a step that needs it has reported that.
    pub(super) loss: Option<Box<Loss>>,
    /// Index of the user's target among those of the link.
    pub(super) target: u16,
    /// The address of the connection, or of the last one that was opened.
    pub(super) place: u16,
    pub(super) link: u8,
    /// A long-lived connection has started and not ended.
    pub(super) alive: bool,
}

impl Line {
    fn new(link: u8, target: u16) -> Line {
        Line {
            connection: None,
            beats: Beats::NONE,
            loss: None,
            target,
            place: 0,
            link,
            alive: false,
        }
    }

    /// A received message, split into its parts.
    pub(super) fn parts<'a>(&self, payload: &'a [u8]) -> Parts<'a> {
        let left = || self.loss.as_ref()?.left.as_ref();
        match (&self.connection, left()) {
            (Some(connection), _) => connection.machine.form().parts(payload),
            (None, Some(left)) => left.form.parts(payload),
            (None, None) => Form::Bytes.parts(payload),
        }
    }

    /// Whether a pong does not show which ping it answers.
    pub(super) fn has_bare_pings(&self) -> bool {
        let traits = self.connection.as_ref().map(|connection| connection.machine.traits());
        traits.is_some_and(|traits| traits.pings && !traits.echoes)
    }

    /// Whether the user is online on it.
    pub(super) fn is_online(&self) -> bool {
        self.connection.as_ref().is_some_and(|connection| connection.life == Life::Online)
    }

    pub(super) fn is_sent(&self) -> bool {
        self.connection.as_ref().is_none_or(Connection::is_sent)
    }

    /// True if everything is sent: the socket has taken it, and the peer had room.
    pub(super) fn is_taken(&self) -> bool {
        let taken =
            |connection: &Connection| connection.is_sent() && connection.machine.backlog() == 0;
        self.connection.as_ref().is_none_or(taken)
    }

    /// Whether the connection can carry several requests at a time.
    pub(super) fn multiplexes(&self) -> bool {
        self.connection.as_ref().is_some_and(|one| one.machine.traits().multiplexes)
    }

    /// The client of a connection that carries several requests at a time.
    pub(super) fn http2(&self) -> Option<&http2::Client> {
        match &self.connection.as_ref()?.machine {
            Machine::Http2(client) => Some(client),
            _ => None,
        }
    }

    /// Whether the connection can take another request now, beside those in flight.
    pub(super) fn is_shared(&self) -> bool {
        self.http2().is_some_and(|client| client.room().is_ok())
    }

    /// Whether the connection takes no more requests, ever: the target is closing it, or its stream
    /// IDs are used up. Requests in flight continue.
    pub(super) fn is_going(&self) -> bool {
        use Refused::{Closed, GoingAway, IdsUsedUp};
        let is_over =
            |client: &http2::Client| matches!(client.room(), Err(GoingAway | IdsUsedUp | Closed));
        self.http2().is_some_and(is_over)
    }

    /// Whether messages are kept for a later step; they may outlive the connection.
    pub(super) fn keeps_something(&self) -> bool {
        match &self.connection {
            Some(connection) => connection.keeps_something(),
            None => self.loss.as_ref().is_some_and(|loss| loss.left.is_some()),
        }
    }

    /// Whether the connection ended as the scenario expects.
    pub(super) fn is_over_as_wanted(&self) -> bool {
        self.loss.as_ref().is_some_and(|loss| loss.is_wanted)
    }

    /// How many messages were dropped that a step might have taken.
    pub(super) fn dropped(&self) -> u64 {
        match &self.connection {
            Some(connection) => connection.dropped(),
            None => self.loss.as_ref().map_or(0, |loss| loss.dropped),
        }
    }

    /// Takes all messages that are kept for a later step.
    pub(super) fn take_kept(&mut self) -> Backlog<Later> {
        match (&mut self.connection, &mut self.loss) {
            (Some(connection), _) => connection.take_kept(),
            (None, Some(loss)) => match &mut loss.left {
                Some(left) => std::mem::take(&mut left.later),
                None => Backlog::default(),
            },
            (None, None) => Backlog::default(),
        }
    }

    /// Charges the budget for what the connection keeps, and for the `waits` bytes that other
    /// queues keep.
    pub(super) fn pay(&mut self, waits: usize, shard: &Lane) -> Result<(), Failure> {
        let Some(connection) = &mut self.connection else { return Ok(()) };
        connection.pay(waits, &shard.purse).map_err(Failure::from)
    }

    /// Puts back what was taken and not used, before all that is kept. If the connection is gone
    /// and its end is reported, no step can take it anymore.
    pub(super) fn keep_all_again(&mut self, first: Backlog<Later>, shard: &Lane) {
        let left = self.loss.as_mut().map(|loss| &mut loss.left);
        match (&mut self.connection, left) {
            (Some(connection), _) if !first.is_empty() => connection.keep_all_again(first),
            (None, Some(left)) if first.is_empty() => *left = None,
            (None, Some(Some(left))) => {
                left.later = first.followed_by(std::mem::take(&mut left.later));
                left.pay(&shard.purse);
            }
            _ => count_unasked(&first, shard),
        }
    }

    /// Takes the reason of the loss. Messages from before the loss can no longer be taken.
    pub(super) fn take_loss(&mut self, shard: &Lane) -> Option<Box<Loss>> {
        let mut loss = self.loss.take()?;
        if let Some(left) = loss.left.take() {
            count_unasked(&left.later, shard);
        }
        Some(loss)
    }

    /// Samples the kernel's statistics of the connection, now and then.
    pub(super) fn sample(&self, shard: &Lane) {
        let Some(connection) = &self.connection else { return };
        let mut recorder = shard.recorder.borrow_mut();
        if recorder.wants_tcp_sample()
            && let Some(info) = connection.transport.tcp_info()
        {
            recorder.tcp_sample(&info);
        }
    }

    /// When the connection needs a keep-alive.
    pub(super) fn due(&self) -> Time {
        self.connection.as_ref().map_or(Time::NEVER, |connection| connection.machine.due())
    }

    /// When the connection has to act without input.
    pub(super) fn alarm(&self) -> Time {
        let of = |connection: &Connection| connection.slow_until().min(connection.machine.due());
        self.connection.as_ref().map_or(Time::NEVER, of)
    }

    /// How many streams the target allows at a time, if that limit makes requests wait.
    pub(super) fn streams_max(&self) -> Option<u32> {
        match self.http2()?.room() {
            Err(Refused::Streams { max }) => Some(max),
            _ => None,
        }
    }

    /// True if the settings of the target have not arrived, so that its limit of concurrent
    /// requests is unknown.
    pub(super) fn awaits_settings(&self) -> bool {
        self.http2().is_some_and(|client| !client.is_ready() && client.open_streams() > 0)
    }
}

pub(super) struct Lines {
    first: Line,
    #[allow(clippy::box_collection)]
    others: Option<Box<Vec<Line>>>,
}

impl Lines {
    /// The lines of a user; its number selects the targets.
    pub(super) fn new(prepared: &Prepared, session: u16, id: UserId) -> Lines {
        let links = prepared.sessions[usize::from(session)].links.iter().enumerate();
        let mut lines = links.flat_map(|(number, link)| {
            let target = link.target_of(id, prepared);
            (0..link.width).map(move |_| Line::new(number as u8, target))
        });
        let first = lines.next().unwrap_or_else(|| Line::new(0, 0));
        let others: Vec<Line> = lines.collect();
        Lines { first, others: (!others.is_empty()).then(|| Box::new(others)) }
    }

    pub(super) fn count(&self) -> u8 {
        1 + self.others.as_ref().map_or(0, |others| others.len() as u8)
    }

    #[inline]
    pub(super) fn get(&self, line: u8) -> &Line {
        match (line, &self.others) {
            (1.., Some(others)) => others.get(usize::from(line) - 1).unwrap_or(&self.first),
            _ => &self.first,
        }
    }

    #[inline]
    pub(super) fn get_mut(&mut self, line: u8) -> &mut Line {
        match (line, &mut self.others) {
            (1.., Some(others)) => {
                let first = &mut self.first;
                others.get_mut(usize::from(line) - 1).unwrap_or(first)
            }
            _ => &mut self.first,
        }
    }

    pub(super) fn connection(&self, line: u8) -> Option<&Connection> {
        self.get(line).connection.as_ref()
    }

    pub(super) fn connection_mut(&mut self, line: u8) -> Option<&mut Connection> {
        self.get_mut(line).connection.as_mut()
    }

    /// Rolls back the transactions that are open on databases, without waiting for the results.
    /// Later statements run after the rollback.
    pub(super) fn roll_back(&mut self) {
        for number in 0..self.count() {
            if let Some(connection) = self.connection_mut(number) {
                let mut out = Vec::new();
                connection.machine.roll_back(&mut out);
                if !out.is_empty() {
                    connection.keep_control(&out);
                }
            }
        }
    }

    pub(super) fn is_sent(&self) -> bool {
        self.iter().all(Line::is_sent)
    }

    fn iter(&self) -> impl Iterator<Item = &Line> {
        std::iter::once(&self.first).chain(self.others.iter().flat_map(|others| others.iter()))
    }

    pub(super) fn is_any_open(&self) -> bool {
        self.iter().any(|line| line.connection.is_some())
    }

    /// The first open line.
    pub(super) fn first_open(&self) -> Option<u8> {
        self.iter().position(|line| line.connection.is_some()).map(|line| line as u8)
    }

    pub(super) fn earliest(&self, of: impl Fn(&Line) -> Time) -> Time {
        match &self.others {
            None => of(&self.first),
            Some(_) => self.iter().map(of).min().unwrap_or(Time::NEVER),
        }
    }
}

impl State {
    /// The prepared plan of the link of a line.
    pub(super) fn link(&self, line: u8) -> &LinkPlan {
        self.link_in(&self.shard, line)
    }

    /// The same, borrowed from the shard.
    pub(super) fn link_in<'a>(&self, shard: &'a Lane, line: u8) -> &'a LinkPlan {
        shard.prepared.link(self.session, self.lines.get(line).link)
    }

    /// The first line of a link; a long-lived link has only one.
    pub(super) fn line_of(&self, link: u8) -> u8 {
        self.shard.prepared.link(self.session, link).first
    }

    /// The declared protocol of the connection, if it has one.
    pub(super) fn protocol(&self, line: u8) -> Option<&Protocol> {
        self.link(line).protocol.as_deref()
    }
}

/// Counts unsolicited messages.
pub(super) fn count_unasked(kept: &Backlog<Later>, shard: &Lane) {
    let mut recorder = shard.recorder.borrow_mut();
    for one in kept.iter() {
        match one {
            Later::Message { is_reply: true, .. } => {
                recorder.interval.traffic.messages.unasked += 1;
            }
            Later::Message { .. } => recorder.interval.traffic.messages.pushes += 1,
            Later::Surplus(_) | Later::Bytes { .. } => {}
        }
    }
}

/// Which side ended a connection if reading or writing failed with this cause.
pub(super) fn ended_by(cause: Cause) -> Ended {
    match cause {
        Cause::Reset => Ended::Reset,
        Cause::Timeout => Ended::TimedOut,
        // TLS ended without a close alert, or with an alert that ends it.
        Cause::ClosedEarly | Cause::ClientCertificate => Ended::ByTarget,
        // No process listens for our datagrams.
        Cause::ConnectRefused => Ended::Reset,
        // The route to the target is gone: nothing more will arrive.
        Cause::Unreachable | Cause::NetworkFailed => Ended::TimedOut,
        _ => Ended::ByUs,
    }
}
