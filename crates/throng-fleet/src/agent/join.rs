//! How an agent gets a share: registers, measures its clock offset, reads and checks the plan,
//! fetches the files, and starts the child.

use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use throng_base::{LoadPart, Said};
use throng_bus::{Bus, BusError};

use super::{About, Begin, Host};
use crate::offset::{Estimate, Offset, ROUND_TRIPS};
use crate::presence::Incarnation;
use crate::wire::{Assigned, Plan, Registered, Signed, WIRE, from_json, names, to_json};

const ANSWER_TIME: Duration = Duration::from_secs(1);
/// Minimum number of round trips.
const ANSWERS_MIN: usize = 3;
/// If the first ones get no reply, there is no controller.
const SILENT_MAX: usize = 2;

/// A share with a child that prepares.
pub(super) struct Joined<H: Host> {
    pub(super) run: String,
    pub(super) life: Incarnation,
    pub(super) child: H::Child,
    pub(super) spool: H::Spool,
    pub(super) offset: Offset,
}

/// Why an agent does not join.
#[derive(Debug, PartialEq)]
pub(super) enum NotJoined {
    /// The bus did not reply.
    Again,
    /// The plan does not contain it, or only an earlier life of it.
    NoPart,
    /// It refuses.
    Refused(Said),
}

impl From<BusError> for NotJoined {
    fn from(error: BusError) -> NotJoined {
        match error {
            BusError::Refused(why) => NotJoined::Refused(why),
            BusError::Cut | BusError::Conflict | BusError::Full => NotJoined::Again,
        }
    }
}

/// Writes the agent's register unless it is up to date; an error if a newer life has written it.
pub(super) async fn register(
    bus: &impl Bus,
    name: &str,
    own: &Registered,
) -> Result<(), NotJoined> {
    let key = names::agent(name);
    let entry = bus.read(&key).await?;
    let there = entry.as_ref().and_then(|entry| from_json::<Registered>(&entry.value));
    match &there {
        Some(there) if there == own => return Ok(()),
        Some(there) if there.life > own.life => {
            return Err(NotJoined::Refused(say!(
                "another process has joined as agent `{name}`, so this one leaves"
            )));
        }
        _ => {}
    }
    let revision = entry.map_or(0, |entry| entry.revision);
    bus.write(&key, revision, to_json(own).into()).await?;
    Ok(())
}

/// The offset of the controller's clock; None without a controller, or with too few replies.
pub(super) async fn offset(bus: &impl Bus, host: &impl Host) -> Option<Offset> {
    let mut estimate = Estimate::default();
    let mut answers = 0;
    for trial in 0..ROUND_TRIPS {
        let sent = host.unix_ns();
        let answer = bus.request(names::TIME, Bytes::new(), ANSWER_TIME).await;
        if let Some(theirs) = answer.ok().and_then(|answer| from_json(&answer)) {
            estimate.add(sent, theirs, host.unix_ns());
            answers += 1;
        }
        if trial >= SILENT_MAX && answers == 0 {
            return None;
        }
    }
    estimate.offset().filter(|_| answers >= ANSWERS_MIN)
}

pub(super) async fn join<H: Host>(
    bus: &impl Bus,
    host: Rc<H>,
    about: &About,
    run: &str,
) -> Result<Joined<H>, NotJoined> {
    let offset = offset(bus, &*host).await.ok_or(NotJoined::Again)?;
    let entry = bus.read(&names::plan(run)).await?.ok_or(NotJoined::Again)?;
    let signed: Signed = from_json(&entry.value).ok_or_else(|| strange(run))?;
    if !(about.verify)(&signed.plan, &signed.signature) {
        let why = say!("the plan of run {run} is not signed by the operator of this fleet");
        return Err(NotJoined::Refused(why));
    }
    let plan: Plan = from_json(signed.plan.as_bytes()).ok_or_else(|| strange(run))?;
    let own = &about.registered;
    let is_ours = |part: &&Assigned| part.agent == about.name && part.life == own.life;
    let part = plan.parts.iter().find(is_ours).ok_or(NotJoined::NoPart)?;
    let part = part.part;
    let now_ms = host.unix_ns().saturating_add_signed(offset.ahead_ns) / 1_000_000;
    checked(&plan, run, part, about, now_ms).map_err(NotJoined::Refused)?;
    if !offset.is_plausible() {
        return Err(NotJoined::Refused(say!(
            "its clock differs from the controller's by {} s: synchronize it, for example with \
             NTP",
            offset.ahead_ns.unsigned_abs() / 1_000_000_000
        )));
    }
    let mut files = Vec::new();
    for file in &plan.files {
        let blob = bus.fetch(&file.sha256).await?.ok_or_else(|| {
            NotJoined::Refused(say!("the file `{}` of the run is not on the bus", file.path))
        })?;
        files.push(blob);
    }
    let begin = Begin { plan: &plan, part, life: own.life, files };
    let (child, spool) = host.begin(begin).await.map_err(NotJoined::Refused)?;
    Ok(Joined { run: run.to_string(), life: own.life, child, spool, offset })
}

fn strange(run: &str) -> NotJoined {
    NotJoined::Refused(say!("the plan of run {run} cannot be read"))
}

/// Checks that the plan is valid and within the owner's limits.
fn checked(plan: &Plan, run: &str, part: LoadPart, about: &About, now_ms: u64) -> Result<(), Said> {
    let own = &about.registered;
    if plan.wire != WIRE || plan.version != own.version {
        return Err(say!(
            "it runs throng {}, but the run requires throng {}: all machines of a fleet must use \
             the same version",
            own.version,
            plan.version
        ));
    }
    // A plan that was signed for another run, or long ago, is invalid.
    if plan.run != run || !(plan.valid_from_ms..plan.valid_until_ms).contains(&now_ms) {
        return Err(say!(
            "the plan of run {run} is not valid at this time: it may have been replayed"
        ));
    }
    if part.width == 0 || part.first.saturating_add(part.width) > part.of {
        return Err(say!("the plan of run {run} cannot be read"));
    }
    let share = |whole: f64| whole * part.width as f64 / part.of as f64;
    let users = part.share().part(plan.users_max);
    match (own.ceiling.users, own.ceiling.rate, plan.rate_max) {
        (Some(max), ..) if users > max => {
            Err(say!("its share would be {users} users, but its owner allows only {max}"))
        }
        (_, Some(max), Some(rate)) if share(rate) > max => Err(say!(
            "its share would be {} starts per second, but its owner allows only {max}",
            share(rate)
        )),
        (_, Some(max), None) => Err(say!(
            "the run sets no maximum rate, but its owner allows only {max} starts per second"
        )),
        _ => Ok(()),
    }
}
