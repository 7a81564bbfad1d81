//! One of several processes of a run (`throng generator`). It reads its part, the start time and
//! then orders from its standard input, and writes messages to its standard output, one per line.
//! Its standard input is a socket, which also carries the announcements of its ledgers to other
//! machines.

use std::io::{BufRead as _, Write as _};
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use throng_base::{Clock, Diagnostic, Exit, clock::wall_now};
use throng_engine::{Announced, Options, Spare, prepare};
use throng_fleet::wire::{Announcement, Start};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::generator::Generator;
use crate::generator::announcer::Announcer;
use crate::generator::auditor::Auditor;
use crate::guard::Guard;
use crate::guard::permit::audits_reach;
use crate::wire::{Assignment, Heard, Message, Order};
use crate::{Conduct, not_started};

/// The part assigned to this process; `None` if no controller started it.
pub fn assignment() -> Option<Assignment> {
    read()
}

/// Generates a part of the run until its load ends.
pub fn generate(mut conduct: Conduct<'_>, part: &Assignment) -> Exit {
    let errors = conduct.operator;
    let wanted = part.scenario.as_ref();
    if wanted.is_some_and(|wanted| conduct.recorded.text(&[]) != *wanted) {
        let message = say!("the scenario changed while the run was starting");
        errors.diagnostic(
            &Diagnostic::error("scenario-changed", message).help(say!("run the command again")),
        );
        return Exit::Usage;
    }
    conduct.program = Arc::new(part.inputs.put_into(&conduct.program));
    let guard = match Guard::read(errors) {
        Ok(guard) => guard,
        Err(exit) => return exit,
    };
    // An agent's own niceness is not changed: it must keep responding.
    if let Err(diagnostic) = crate::be_nice(&conduct.limits) {
        errors.diagnostic(&diagnostic);
        return Exit::HostUnfit;
    }
    let Some(runtime) = crate::runtime(errors) else { return Exit::HostUnfit };
    // If the owner of an agent forbids the targets, its audits must not read from them either.
    if part.audits
        && let Err(diagnostic) = audits_reach(&conduct.program.audits, &guard.lists)
    {
        errors.diagnostic(&diagnostic);
        return Exit::Usage;
    }
    let options = conduct.options(&guard, part.neighbours.max(1));
    let options = Options { share: part.machine.part.share(), ..options };
    let ready = match prepare(&conduct.program, &options) {
        Ok(ready) => ready,
        Err(error) => return not_started(&error, errors),
    };
    let Spare { users: users_spare, limit: spare_limit } = ready.run.users_spare;
    tell(&Message::Ready { shards: ready.run.shards as u64, users_spare, spare_limit });
    // Without a start message, the controller was lost, and nothing was sent.
    let Some(start) = read::<Start>() else { return Exit::Success };
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
    Exit::Success
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
    let Ok(mut line) = serde_json::to_vec(line) else { return };
    line.push(b'\n');
    let mut output = std::io::stdout().lock();
    let _ = output.write_all(&line).and_then(|()| output.flush());
}

fn read<T: DeserializeOwned>() -> Option<T> {
    let mut line = Vec::new();
    std::io::stdin().lock().read_until(b'\n', &mut line).ok()?;
    serde_json::from_slice(&line).ok()
}
