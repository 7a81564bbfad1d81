//! Redistributes the load that some machines do not generate to the others, if this is enabled.

use throng_engine::GROWTH_AHEAD;
use throng_results::{Event, MachineInfo};

use super::Desk;
use crate::wire::Order;

/// Smaller changes are not sent.
const STEP: f64 = 0.005;

/// The share of its part that each machine generates.
pub(super) struct Parts {
    /// By machine: 1 for its full part, 0 if it is lost.
    made: Vec<f64>,
    /// The factor that machines with a full part were told to use.
    times: f64,
}

impl Parts {
    pub(super) fn new(machines: usize) -> Parts {
        Parts { made: vec![1.0; machines], times: 1.0 }
    }

    /// Sets how much of its part a machine generates. Returns the new factor for the other machines
    /// if it has changed and there are any.
    fn makes(&mut self, machine: usize, made: f64, machines: &[MachineInfo]) -> Option<f64> {
        *self.made.get_mut(machine)? = made;
        let parts = || machines.iter().map(|it| it.part.width as f64).zip(&self.made);
        let all: f64 = parts().map(|(width, _)| width).sum();
        let (whole, less): (Vec<_>, Vec<_>) = parts().partition(|(_, made)| **made >= 1.0);
        let less: f64 = less.iter().map(|(width, made)| width * **made).sum();
        let whole: f64 = whole.iter().map(|(width, _)| width).sum();
        let times = (all - less) / whole;
        let is_new = whole > 0.0 && (times - self.times).abs() >= STEP;
        is_new.then(|| {
            self.times = times;
            times
        })
    }
}

impl Desk<'_> {
    /// Sets how much of its part a machine generates. The others generate the rest, if enabled.
    pub(super) fn makes(&mut self, machine: u16, made: f64) {
        if !self.posts.redistributes {
            return;
        }
        let machines = &self.info.generator.machines;
        let Some(times) = self.parts.makes(usize::from(machine), made, machines) else { return };
        let at_ns = (self.posts.clock.now() + GROWTH_AHEAD).as_nanos();
        let users = self.conduct.program.staying_max() as f64 * times;
        self.send_order(Order::Take { at_ns, times, users_max: users.ceil() as u64 });
        let running: Vec<u16> = self.running.loads().iter().flatten().map(|it| it.0).collect();
        let change = format!("redistribute {times:.2}");
        for phase in running {
            let (load, change) = (self.running.load_of(phase) as u16, change.clone());
            self.event(&Event::Amended { at_ns, load, phase, change });
        }
        let times = format!("{times:.2}");
        self.say(say!("the other machines now generate {times} times their share"));
    }
}

#[cfg(test)]
mod tests {
    use throng_base::LoadPart;

    use super::*;

    #[test]
    fn remaining_machines_generate_the_missing_load() {
        let widths = [2, 1, 1];
        let machine = |width| MachineInfo {
            part: LoadPart { first: 0, width, of: 4 },
            ..MachineInfo::default()
        };
        let machines: Vec<MachineInfo> = widths.into_iter().map(machine).collect();
        let mut parts = Parts::new(3);
        assert_eq!(parts.makes(1, 0.0, &machines), Some(4.0 / 3.0));
        assert_eq!(parts.makes(1, 0.0, &machines), None, "nothing is new");
        // Half of the largest part is missing, too: only the last machine generates more.
        assert_eq!(parts.makes(0, 0.5, &machines), Some(3.0));
        assert_eq!(parts.makes(0, 1.0, &machines), Some(4.0 / 3.0));
        assert_eq!(parts.makes(1, 1.0, &machines), Some(1.0));
        for machine in 0..3 {
            parts.makes(machine, 0.0, &machines);
        }
        assert_eq!(parts.makes(0, 0.0, &machines), None, "nobody is left");
        assert_eq!(parts.makes(7, 0.0, &machines), None, "there is no such machine");
    }
}
