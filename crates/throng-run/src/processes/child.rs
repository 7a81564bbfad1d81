//! One of several processes of a run (`throng generator`). It reads its part, the start time and
//! then orders from its standard input, and writes messages to its standard output, one per line.
//! Its standard input is a socket, which also carries the announcements of its ledgers to other
//! machines.

use std::io::Write as _;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use throng_base::{Clock, Diagnostic, Exit, clock::wall_now};
use throng_engine::{Announced, Options, prepare};
use throng_fleet::wire::{Announcement, Start};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::generator::Generator;
use crate::generator::announcer::Announcer;
use crate::generator::auditor::Auditor;
use crate::guard::Guard;
use crate::guard::permit::audits_reach;
use crate::wire::{Assignment, Heard, Message, Order, Ready, read_line, write_line};
use crate::{Conduct, not_started};

/// The part assigned to this process; `None` if no controller started it.
pub fn assignment() -> Option<Assignment> {
    read()
}

/// Generates a part of the run until its load ends.
pub fn generate(conduct: Conduct<'_>, part: &Assignment) -> Exit {
    generated(conduct, part).unwrap_or_else(|exit| exit)
}

fn generated(mut conduct: Conduct<'_>, part: &Assignment) -> Result<Exit, Exit> {
    let errors = conduct.operator;
    let wanted = part.scenario.as_ref();
    if wanted.is_some_and(|wanted| conduct.recorded.text(&[]) != *wanted) {
        let message = say!("the scenario changed while the run was starting");
        let told = Diagnostic::error("scenario-changed", message);
        return Err(errors.fail(&told.help(say!("run the command again")), Exit::Usage));
    }
    conduct.program = Arc::new(part.inputs.put_into(&conduct.program));
    let guard = Guard::read(errors)?;
    // An agent's own niceness is not changed: it must keep responding.
    crate::be_nice(&conduct.limits).map_err(|told| errors.fail(&told, Exit::HostUnfit))?;
    let runtime = crate::runtime(errors)?;
    // If the owner of an agent forbids the targets, its audits must not read from them either.
    if part.audits {
        let reached = audits_reach(&conduct.program.audits, &guard.lists);
        reached.map_err(|told| errors.fail(&told, Exit::Usage))?;
    }
    let options = conduct.options(&guard, part.neighbours.max(1));
    let options = Options { share: part.machine.part.share(), ..options };
    let ready = prepare(&conduct.program, &options);
    let ready = ready.map_err(|error| not_started(&error, errors))?;
    tell(&Message::Ready(Ready::new(ready.run.shards as u64, ready.run.users_spare)));
    // Without a start message, the controller was lost, and nothing was sent.
    let Some(start) = read::<Start>() else { return Ok(Exit::Success) };
    tell(&Message::Begun(start));
    let ahead = std::time::Duration::from_nanos(start.unix_ns).saturating_sub(wall_now());
    let mut run = ready.begin(Clock::start_in(ahead));
    let (lines, told) = unbounded_channel();
    let (orders, announced) = hear();
    let teller = std::thread::spawn(move || tell_all(told));
    let (bridge, clock) = (run.bridge.take(), run.clock.clone());
    let auditor = part.audits.then(|| run.presences.clone()).flatten().map(|presences| {
        let ways = (presences, &clock);
        Auditor::begin(&conduct.program, part.machine.part.share(), ways, lines.clone())
    });
    let generator =
        Generator::new(&conduct.program, run, &conduct.limits, (0, lines)).auditing(auditor);
    runtime.block_on(async {
        let announcer = bridge.map(|bridge| Announcer::new(bridge, clock, announced));
        generator.announcing(announcer).work(orders).await;
    });
    let _ = teller.join();
    Ok(Exit::Success)
}

/// Reads orders and the announcements of other machines until the controller closes the input.
fn hear() -> (UnboundedReceiver<Order>, UnboundedReceiver<Announcement<Announced>>) {
    let (sender, orders) = unbounded_channel();
    let (carrier, announced) = unbounded_channel();
    std::thread::spawn(move || {
        while let Some(heard) = read() {
            let is_gone = match heard {
                Heard::Order(order) => sender.send(order).is_err(),
                Heard::Announced(carried) => {
                    // There is no receiver without ledgers.
                    let _ = carrier.send(carried);
                    false
                }
            };
            if is_gone {
                return;
            }
        }
    });
    (orders, announced)
}

fn tell_all(mut told: UnboundedReceiver<(u16, Message)>) {
    while let Some((_, message)) = told.blocking_recv() {
        tell(&message);
    }
}

/// Output is dropped if the controller is lost: the run then ends gracefully, because the orders
/// end, too.
fn tell(line: &impl Serialize) {
    let mut output = std::io::stdout().lock();
    let _ = write_line(&mut output, line).and_then(|()| output.flush());
}

fn read<T: DeserializeOwned>() -> Option<T> {
    read_line(&mut std::io::stdin().lock()).ok()
}
