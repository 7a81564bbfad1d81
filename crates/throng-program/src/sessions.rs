//! How the users of a run are shared out to its sessions, and which of them take rows of data.

use crate::Program;
use crate::flow::{Link, Session, Statement};
use crate::load::Drive;
use crate::statement::{self, Statements};

impl Program {
    /// How many of the first so many users of a run do each session: those that are counted come
    /// first, the others go by weight. More users than are counted do what is last.
    pub fn users_of_sessions(&self, users: f64) -> Vec<f64> {
        let mut rest = users.max(0.0);
        let mut all: Vec<f64> = Vec::with_capacity(self.sessions.len());
        for session in &self.sessions {
            let counted = session.count.map_or(0.0, |count| (count as f64).min(rest));
            rest -= counted;
            all.push(counted);
        }
        let weight = |session: &Session| match session.count {
            Some(_) => 0.0,
            None => f64::from(session.weight),
        };
        let sum: f64 = self.sessions.iter().map(weight).sum();
        for (own, session) in all.iter_mut().zip(&self.sessions) {
            *own += rest * weight(session) / sum.max(1.0);
        }
        if let Some(last) = all.last_mut().filter(|_| sum == 0.0) {
            *last += rest;
        }
        all
    }

    /// The part of all users who do each session. Together they are 1.
    pub fn session_shares(&self) -> Vec<f64> {
        let users = self.users_in_all().max(1.0);
        self.users_of_sessions(users).into_iter().map(|own| own / users).collect()
    }

    /// Users who stay, and those who arrive.
    fn users_in_all(&self) -> f64 {
        let arriving = self.load.phases.iter().map(|phase| match &phase.drive {
            Drive::Arrivals(arrivals) => {
                let seconds = phase.time.unwrap_or_default().as_secs_f64();
                seconds * f64::midpoint(arrivals.rate, arrivals.to)
            }
            Drive::Users(_) | Drive::Iterations(_) | Drive::Hold => 0.0,
        });
        self.load.staying_max() as f64 + arriving.sum::<f64>()
    }

    /// Whether each session takes rows of this source.
    pub fn sessions_with(&self, source: u16) -> Vec<bool> {
        self.sessions.iter().map(|session| session.sources().contains(&source)).collect()
    }

    /// The highest number of a user, of so many, whose session takes rows of this source.
    pub fn last_user_with(&self, source: u16, users: u64) -> u64 {
        let uses = self.sessions_with(source);
        let (mut counted, mut last) = (0, 0);
        for (session, uses) in self.sessions.iter().zip(&uses) {
            counted += session.count.unwrap_or(0);
            last = if *uses && session.count.is_some() { counted } else { last };
        }
        let weighted = |(session, uses): (&Session, &bool)| *uses && session.count.is_none();
        let is_among_others = match self.sessions.iter().all(|session| session.count.is_some()) {
            true => uses.last().copied().unwrap_or(false),
            false => self.sessions.iter().zip(&uses).any(weighted),
        };
        if is_among_others && users > counted { users } else { last.min(users) }
    }
}

/// So many connections to one target a user has at once for HTTP, as browsers do (RFC 9112, 9.4
/// leaves the number to them).
pub const HTTP_WIDTH: u8 = 6;

impl Session {
    /// How many connections its users have at once at most: as many as branches ask over, and one
    /// more where what goes on beside may ask over HTTP while the steps do.
    pub fn connections(&self) -> usize {
        let opens = |mut steps: Statements<'_>, number: u8| {
            let opens = |one: &Statement| {
                matches!(one, Statement::Connect(_) | Statement::Http(_) | Statement::Call(_))
                    && one.link() == Some(number)
            };
            usize::from(steps.any(opens))
        };
        let asking = |blocks: &[&[Statement]], number: u8| -> usize {
            blocks.iter().map(|steps| opens(statement::own(steps), number)).sum()
        };
        let branches = |number: u8| {
            let of = |one: &Statement| match one {
                Statement::Parallel(_) => asking(&one.beside(), number),
                _ => 0,
            };
            self.own().map(of).max().unwrap_or(0)
        };
        let mut beside: Vec<&[Statement]> = self.links.iter().flat_map(Link::beside).collect();
        let stays = self.own().filter(|one| matches!(one, Statement::Stay(_)));
        beside.extend(stays.flat_map(Statement::beside));
        let of_link = |(number, link): (u8, &Link)| {
            let most = usize::from(link.width.unwrap_or(HTTP_WIDTH));
            let steps = opens(self.own(), number).max(branches(number));
            (steps + asking(&beside, number).min(1)).min(most)
        };
        (0..).zip(&self.links).map(of_link).sum::<usize>().max(1)
    }
}
