//! CPU time of this process and of targets on this host, read at the end of each second.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};

use throng_base::{Clock, Side, Time};
use throng_host::{Listening, ProcessUsage, Root};
use throng_program::Program;
use throng_results::compare::Cpu;

use crate::here;

/// A thread that reads CPU times until this value is dropped.
pub(crate) struct Sampler {
    readings: Receiver<(u64, Cpu)>,
    /// Dropping it stops the thread.
    _stop: Sender<()>,
}

/// Totals since the process started.
#[derive(Clone, Copy)]
struct Reading {
    own_ns: u64,
    targets_ns: [Option<u64>; 2],
}

impl Sampler {
    /// `side` names the side that generates load in a second.
    pub(crate) fn start(
        clock: &Clock,
        programs: [&Arc<Program>; 2],
        side: impl Fn(u64) -> Side + Send + 'static,
    ) -> Sampler {
        let (sender, readings) = channel();
        let (stop, stopped) = channel::<()>();
        let mut targets = programs.map(|program| listening(program));
        let clock = clock.clone();
        std::thread::spawn(move || {
            let mut before: Option<Reading> = None;
            for second in clock.now().second() + 1.. {
                let left = Time::from_secs(second) - clock.now();
                if stopped.recv_timeout(left) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
                let reading = Reading::now(&mut targets);
                if let Some(cpu) = before.map(|before| reading.since(before, side(second - 1)))
                    && sender.send((second - 1, cpu)).is_err()
                {
                    return;
                }
                before = Some(reading);
            }
        });
        Sampler { readings, _stop: stop }
    }

    /// CPU time per second since the previous call.
    pub(crate) fn taken(&self) -> Vec<(u64, Cpu)> {
        self.readings.try_iter().collect()
    }
}

impl Reading {
    fn now(targets: &mut [Option<Listening>; 2]) -> Reading {
        let own = ProcessUsage::now();
        Reading {
            own_ns: own.cpu_user_ns + own.cpu_system_ns,
            targets_ns: targets.each_mut().map(|it| it.as_mut()?.cpu_ns()),
        }
    }

    fn since(self, before: Reading, side: Side) -> Cpu {
        let [now, then] = [self, before].map(|it| it.targets_ns[side as usize]);
        Cpu {
            own_ns: self.own_ns.saturating_sub(before.own_ns),
            target_ns: now.zip(then).and_then(|(now, then)| now.checked_sub(then)),
        }
    }
}

/// The processes of the only target, if it is on this host.
fn listening(program: &Program) -> Option<Listening> {
    let [target] = program.targets.as_slice() else { return None };
    let addresses = throng_engine::addresses(program, target).ok()?;
    let is_here = addresses.iter().all(|address| here::is_own(address.ip()));
    let port = addresses.first().filter(|_| is_here)?.port();
    Listening::on(Root::default(), port)
}
