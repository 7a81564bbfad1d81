//! The connections of a user: one place for each that its session may have. The first one lies in
//! the user, as hardly any has more.

use throng_base::{Time, UserId};
use throng_metrics::Cause;
use throng_protocol::framed::Protocol;
use throng_protocol::http2::Refused;
use throng_protocol::machine::{Form, Machine, Parts};

use super::State;
use super::beat::Beats;
use super::connection::backlog::Backlog;
use super::connection::{Connection, Later, Life, Loss};
use crate::failure::{Ended, Failure};
use crate::prepared::{LinkPlan, Prepared};
use crate::shard::Lane;

/// A place for a connection.
pub(super) struct Line {
    pub(super) connection: Option<Connection>,
    pub(super) beats: Beats,
    /// Why the connection was lost, until a step that misses it has told that.
    pub(super) loss: Option<Box<Loss>>,
    /// Which of the link's targets is this user's.
    pub(super) target: u16,
    /// The address that its connection goes to, or the last that one was opened to.
    pub(super) place: u16,
    pub(super) link: u8,
    /// The life of a long-lived connection has begun and not ended.
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

    /// A message that came over it, taken apart.
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

    /// Whether the socket has taken everything.
    pub(super) fn is_sent(&self) -> bool {
        self.connection.as_ref().is_none_or(Connection::is_sent)
    }

    /// Whether all that was sent is on its way: the socket has taken it, and the peer had room.
    pub(super) fn is_taken(&self) -> bool {
        let taken =
            |connection: &Connection| connection.is_sent() && connection.machine.backlog() == 0;
        self.connection.as_ref().is_none_or(taken)
    }

    /// Whether many requests may be on their way over this connection.
    pub(super) fn multiplexes(&self) -> bool {
        self.connection.as_ref().is_some_and(|one| one.machine.traits().multiplexes)
    }

    /// Whether more requests may be sent over this connection beside those that are on their way.
    pub(super) fn is_shared(&self) -> bool {
        matches!(&self.connection, Some(Connection { machine: Machine::Http2(client), .. })
            if client.room().is_ok())
    }

    /// Whether the connection takes no more requests, ever: the target is leaving it, or its ids
    /// are used up. What is on its way over it goes on.
    pub(super) fn is_going(&self) -> bool {
        use Refused::{Closed, GoingAway, IdsUsedUp};
        matches!(&self.connection, Some(Connection { machine: Machine::Http2(client), .. })
            if matches!(client.room(), Err(GoingAway | IdsUsedUp | Closed)))
    }

    /// Whether messages wait for a step that takes them; they may outlive the connection.
    pub(super) fn keeps_something(&self) -> bool {
        match &self.connection {
            Some(connection) => connection.keeps_something(),
            None => self.loss.as_ref().is_some_and(|loss| loss.left.is_some()),
        }
    }

    /// Whether the connection is gone, and the scenario waits for that.
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

    /// All messages that wait for a step that takes them.
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

    /// Whether what is kept of the connection is within the budget, beside what `waits` for others
    /// in bytes.
    pub(super) fn pay(&mut self, waits: usize, shard: &Lane) -> Result<(), Failure> {
        let Some(connection) = &mut self.connection else { return Ok(()) };
        let paid = connection.pay(waits, &shard.purse);
        paid.map_err(|(cause, detail)| Failure::new(cause, detail))
    }

    /// What was taken and not used comes before all that is kept. No step takes it any more when
    /// the connection is gone and the end of it has been reported.
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

    /// Why the connection was lost, once: what had come before is taken by no step any more.
    pub(super) fn take_loss(&mut self, shard: &Lane) -> Option<Box<Loss>> {
        let mut loss = self.loss.take()?;
        if let Some(left) = loss.left.take() {
            count_unasked(&left.later, shard);
        }
        Some(loss)
    }

    /// Asks the kernel how the connection is, now and then.
    pub(super) fn sample(&self, shard: &Lane) {
        let Some(connection) = &self.connection else { return };
        let mut recorder = shard.recorder.borrow_mut();
        if recorder.wants_tcp_sample()
            && let Some(info) = connection.transport.tcp_info()
        {
            recorder.tcp_sample(&info);
        }
    }

    /// When something is to be said that keeps the connection alive.
    pub(super) fn due(&self) -> Time {
        self.connection.as_ref().map_or(Time::NEVER, |connection| connection.machine.due())
    }

    /// When its connection has something to do by itself.
    pub(super) fn alarm(&self) -> Time {
        let of = |connection: &Connection| connection.slow_until().min(connection.machine.due());
        self.connection.as_ref().map_or(Time::NEVER, of)
    }

    /// How many streams the target allows at once, where that keeps requests waiting.
    pub(super) fn streams_max(&self) -> Option<u32> {
        match &self.connection.as_ref()?.machine {
            Machine::Http2(client) => match client.room() {
                Err(Refused::Streams { max }) => Some(max),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether it is not known yet how many requests the target allows at once, as its settings
    /// have not come.
    pub(super) fn awaits_settings(&self) -> bool {
        matches!(&self.connection, Some(Connection { machine: Machine::Http2(client), .. })
            if !client.is_ready() && client.open_streams() > 0)
    }
}

pub(super) struct Lines {
    first: Line,
    #[allow(clippy::box_collection)]
    others: Option<Box<Vec<Line>>>,
}

impl Lines {
    /// Those of a user, whose targets are told by its number.
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

    /// Rolls back the transactions that are open on databases. Nobody waits for the results; what
    /// follows is executed behind them.
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

    /// Whether the sockets have taken everything.
    pub(super) fn is_sent(&self) -> bool {
        self.iter().all(Line::is_sent)
    }

    fn iter(&self) -> impl Iterator<Item = &Line> {
        std::iter::once(&self.first).chain(self.others.iter().flat_map(|others| others.iter()))
    }

    pub(super) fn is_any_open(&self) -> bool {
        self.iter().any(|line| line.connection.is_some())
    }

    /// The first that is open.
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
    /// What is known beforehand of what goes over a line.
    pub(super) fn link(&self, line: u8) -> &LinkPlan {
        self.link_in(&self.shard, line)
    }

    /// The same, borrowed from the shard.
    pub(super) fn link_in<'a>(&self, shard: &'a Lane, line: u8) -> &'a LinkPlan {
        shard.prepared.link(self.session, self.lines.get(line).link)
    }

    /// The first line of a link; of one that lasts, it is the only one.
    pub(super) fn line_of(&self, link: u8) -> u8 {
        self.shard.prepared.link(self.session, link).first
    }

    /// What the connection speaks, where it is declared.
    pub(super) fn protocol(&self, line: u8) -> Option<&Protocol> {
        self.link(line).protocol.as_deref()
    }
}

/// Messages that nobody has asked for.
pub(super) fn count_unasked(kept: &Backlog<Later>, shard: &Lane) {
    let mut recorder = shard.recorder.borrow_mut();
    for one in kept.iter() {
        match one {
            Later::Message { is_reply: true, .. } => recorder.messages.unasked += 1,
            Later::Message { .. } => recorder.messages.pushes += 1,
            Later::Surplus(_) | Later::Bytes { .. } => {}
        }
    }
}

/// Who ended a connection, as reading or writing failed for this cause.
pub(super) fn ended_by(cause: Cause) -> Ended {
    match cause {
        Cause::Reset => Ended::Reset,
        Cause::Timeout => Ended::TimedOut,
        // TLS ended without its last word, or said that it ends here.
        Cause::ClosedEarly | Cause::ClientCertificate => Ended::ByTarget,
        // Nobody listens to our datagrams.
        Cause::ConnectRefused => Ended::Reset,
        // The way to the target is gone: nothing comes any more.
        Cause::Unreachable | Cause::NetworkFailed => Ended::TimedOut,
        _ => Ended::ByUs,
    }
}
