//! How the users of a run are distributed over its sessions, and which of them take data rows.

use crate::flow::{Link, Session, Statement};
use crate::load::{Drive, Load};
use crate::statement::{self, Statements};
use crate::{Program, StepKind, Target};

impl Session {
    /// Whether its users can get unsolicited messages on a link: they subscribe, or resume a
    /// session that the server has kept.
    pub fn can_receive(&self, link: u8) -> bool {
        self.all().any(|statement| match statement {
            Statement::Request(request) if request.link == link => {
                request.message.content.subscribes()
            }
            Statement::Connect(connect) if connect.link == link => connect.resumes(),
            _ => false,
        })
    }
}

impl Program {
    /// Whether any connection may use TLS.
    pub fn may_be_secure(&self) -> bool {
        self.targets.iter().any(Target::may_be_secure) || self.secures()
    }

    /// Whether TLS starts on connections that are open without it.
    pub fn secures(&self) -> bool {
        let once = self.setup.iter().chain(&self.teardown).flat_map(|once| &once.steps);
        self.steps.iter().chain(once).any(|step| step.kind == StepKind::Secure)
    }

    /// The sessions of a load's users, by index.
    pub fn sessions_of(&self, load: usize) -> impl Iterator<Item = (usize, &Session)> + Clone {
        let load = &self.loads[load];
        self.sessions.iter().enumerate().filter(|(index, _)| load.has(*index as u16))
    }

    /// How many of the first users of a load run each session: counted sessions first, the others
    /// by weight. Users beyond the counted ones run the last session.
    pub fn users_of_sessions(&self, load: usize, users: f64) -> Vec<f64> {
        let mut rest = users.max(0.0);
        let mut all = vec![0.0; self.sessions.len()];
        for (index, session) in self.sessions_of(load) {
            let counted = session.count.map_or(0.0, |count| (count as f64).min(rest));
            rest -= counted;
            all[index] = counted;
        }
        let weight = |session: &Session| match session.count {
            Some(_) => 0.0,
            None => f64::from(session.weight),
        };
        let sum: f64 = self.sessions_of(load).map(|(_, session)| weight(session)).sum();
        for (index, session) in self.sessions_of(load) {
            all[index] += rest * weight(session) / sum.max(1.0);
        }
        if let Some((last, _)) = self.sessions_of(load).last().filter(|_| sum == 0.0) {
            all[last] += rest;
        }
        all
    }

    /// The share of all users for each session. The sum is 1.
    pub fn session_shares(&self) -> Vec<f64> {
        let users: Vec<f64> = self.loads.iter().map(Load::users_in_all).collect();
        // A single load has shares of sessions even if no user is certain to start.
        let least = if self.loads.len() == 1 { 1.0 } else { 0.0 };
        let all = users.iter().map(|users| users.max(least)).sum::<f64>().max(1.0);
        let mut shares = vec![0.0; self.sessions.len()];
        for (load, users) in users.into_iter().enumerate() {
            let own = self.users_of_sessions(load, users.max(least));
            shares.iter_mut().zip(own).for_each(|(share, own)| *share += own / all);
        }
        shares
    }

    /// Whether each session takes rows of this source.
    pub fn sessions_with(&self, source: u16) -> Vec<bool> {
        self.sessions.iter().map(|session| session.sources().contains(&source)).collect()
    }

    /// The highest number among this many users of a load whose session takes rows of this source.
    pub fn last_user_with(&self, load: usize, source: u16, users: u64) -> u64 {
        let uses = self.sessions_with(source);
        let (mut counted, mut last) = (0, 0);
        for (index, session) in self.sessions_of(load) {
            counted += session.count.unwrap_or(0);
            last = if uses[index] && session.count.is_some() { counted } else { last };
        }
        let mut weighted = self.sessions_of(load).filter(|(_, one)| one.count.is_none()).peekable();
        let is_among_others = match weighted.peek() {
            None => self.sessions_of(load).last().is_some_and(|(index, _)| uses[index]),
            Some(_) => weighted.any(|(index, _)| uses[index]),
        };
        if is_among_others && users > counted { users } else { last.min(users) }
    }
}

impl Load {
    /// Staying and arriving users.
    fn users_in_all(&self) -> f64 {
        let arriving = self.phases.iter().map(|phase| match &phase.drive {
            Drive::Arrivals(arrivals) => arrivals.rate.until(phase.time.unwrap_or_default()),
            Drive::Users(_) | Drive::Iterations(_) | Drive::Hold => 0.0,
        });
        self.staying_max() as f64 + arriving.sum::<f64>()
    }
}

/// Concurrent HTTP connections of a user to one target, as in browsers (RFC 9112, 9.4 leaves the
/// number to them).
pub const HTTP_WIDTH: u8 = 6;

impl Session {
    /// Most concurrent connections of its users: as many as branches use, and one more if
    /// background tasks may send HTTP requests in parallel to the steps.
    pub fn connections(&self) -> usize {
        let opens = |mut steps: Statements<'_>, number: u8| {
            let opens = |one: &Statement| {
                let opens = matches!(one, Statement::Connect(_)) || one.opens_itself();
                opens && one.link() == Some(number)
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
