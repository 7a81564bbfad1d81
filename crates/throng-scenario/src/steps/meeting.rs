//! Users that wait for each other: `rendezvous`. Steps with the same name share one point.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use throng_program::{Rendezvous, Session, Statement, StepKind};

use crate::ast;
use crate::load::Facts;
use crate::read::Context;
use crate::step::rows::Rows;
use crate::syntax::Place;
use crate::words::shorten;

const TIMEOUT: Duration = Duration::from_secs(60);

/// Rendezvous points, by number.
#[derive(Default)]
pub(crate) struct Meetings {
    places: Vec<Meeting>,
    by_name: HashMap<String, u16>,
}

struct Meeting {
    name: String,
    /// None if no step sets it: the maximum number of users of the load.
    users: Option<u64>,
    /// Where the number is set, or else the step.
    at: Place,
}

impl Meetings {
    pub(crate) fn count(&self) -> u16 {
        self.places.len() as u16
    }

    pub(crate) fn read(
        &mut self,
        cx: &mut Context<'_>,
        fields: &ast::Rendezvous<'_>,
        rows: &mut Rows,
    ) -> Option<Statement> {
        let name = cx.text(fields.rendezvous.node()?, say!("the name of a rendezvous"))?;
        let users = match fields.users.node() {
            Some(node) => match cx.count(node)? {
                0 => {
                    return cx.bad_value(
                        node,
                        say!("a rendezvous requires at least one user"),
                        say!("write `users: 100`"),
                    );
                }
                users => Some((users, node.place)),
            },
            None => None,
        };
        let timeout = fields.timeout.node().map_or(Some(TIMEOUT), |node| cx.time_limit(node))?;
        let step = rows.labelled(cx, StepKind::Rendezvous, &name, fields)?;
        let place = self.place(cx, name, users, fields.place)?;
        // The number of users is known once all steps are compiled.
        Some(Statement::Rendezvous(Arc::new(Rendezvous { step, place, users: 0, timeout })))
    }

    fn place(
        &mut self,
        cx: &mut Context<'_>,
        name: String,
        users: Option<(u64, Place)>,
        step: Place,
    ) -> Option<u16> {
        if let Some(number) = self.by_name.get(&name) {
            let meeting = &mut self.places[usize::from(*number)];
            match (meeting.users, users) {
                (Some(first), Some((second, place))) if first != second => {
                    let line = cx.line(meeting.at);
                    let message = say!(
                        "all steps of the rendezvous `{}` must wait for the same number of users",
                        shorten(&name)
                    );
                    let label = say!("line {line} waits for {first} users");
                    let help = say!(
                        "write the same number of users, or give this rendezvous another name"
                    );
                    cx.report("conflicting-keys", place, message, label, help);
                }
                (None, Some((users, place))) => {
                    (meeting.users, meeting.at) = (Some(users), place);
                }
                _ => {}
            }
            return Some(*number);
        }
        let Ok(number) = u16::try_from(self.places.len() + 1) else {
            let message = say!("there are more than 65,534 rendezvous");
            let help = say!("give steps that can share a rendezvous the same name");
            return cx.refuse("too-many", step, message, say!("this exceeds the limit"), help);
        };
        let (users, at) = (users.map(|(users, _)| users), users.map_or(step, |(_, place)| place));
        self.places.push(Meeting { name: name.clone(), users, at });
        self.by_name.insert(name, number - 1);
        Some(number - 1)
    }

    /// Sets the numbers of users; reports those that are never reached.
    pub(crate) fn fill(&self, cx: &mut Context<'_>, sessions: &mut [Session], facts: &Facts) {
        let users: Vec<u64> =
            (0..self.places.len()).map(|number| self.users(cx, number, sessions, facts)).collect();
        for session in sessions {
            session.change(&mut |statement| {
                if let Statement::Rendezvous(rendezvous) = statement {
                    let rendezvous = Arc::make_mut(rendezvous);
                    rendezvous.users = users[usize::from(rendezvous.place)];
                }
            });
        }
    }

    fn users(
        &self,
        cx: &mut Context<'_>,
        number: usize,
        sessions: &[Session],
        facts: &Facts,
    ) -> u64 {
        let meeting = &self.places[number];
        let name = shorten(&meeting.name);
        if let Some(users) = meeting.users {
            if let Some(most) = facts.users_max.filter(|most| *most < users) {
                let message = say!("`{name}` waits for more users than the load has");
                let label = say!("the load has at most {most} users");
                let help = say!("lower it to `users: {most}`, or increase the load");
                cx.report("never-meets", meeting.at, message, label, help);
            }
            return users;
        }
        let comes = |session: &Session| {
            session.all().any(
                |one| matches!(one, Statement::Rendezvous(one) if usize::from(one.place) == number),
            )
        };
        let all = sessions.iter().all(|session| session.weight == 0 || comes(session));
        match facts.users_max {
            Some(most @ 1..) if all => most,
            _ if facts.broken => 1,
            _ => {
                let message =
                    say!("the rendezvous `{name}` requires the number of users to wait for");
                let label = match all {
                    true => say!("the number of concurrent users is not known"),
                    false => say!("not every session reaches this step"),
                };
                let help = say!("write `- {{rendezvous: start, users: 100}}`");
                cx.report("missing-key", meeting.at, message, label, help);
                1
            }
        }
    }
}
