//! Takes over a started run whose controller is lost: its files, and its continuation on another
//! controller. All lines are replayed from the first, so that the new controller has all results.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use throng_base::{Clock, Diagnostic, Exit, clock::wall_now};
use throng_fleet::wire::{Ordered, Plan};
use throng_host::HostFacts;
use throng_results::{MachineInfo, Run, RunInfo, timestamp};

use crate::bundle::{self, Given};
use crate::controller::monitors::Hosts;
use crate::controller::{Controller, Outlets, Posts};
use crate::guard::Guard;
use crate::guard::permit::permit;
use crate::wire::{Past, PlanDetails};
use crate::{Conduct, Operator, Settings, StopRequests};

/// What is known of a started run.
pub(super) struct Begun {
    pub(super) plan: Plan,
    pub(super) told: PlanDetails,
    pub(super) start_unix_ns: u64,
    /// By index in the plan.
    pub(super) machines: Vec<Machine>,
    /// The copied inputs.
    pub(super) bundle: Run,
    /// The orders given so far.
    pub(super) past: VecDeque<Past>,
    /// The run has ended; its teardown was done or will not be.
    pub(super) is_over: bool,
}

#[derive(Default)]
pub(super) struct Machine {
    pub(super) host: HostFacts,
    pub(super) shards: u64,
}

/// Reads an order from the bus.
pub(super) fn past(ordered: &Ordered) -> Option<Past> {
    let (at_ns, for_all) = (ordered.at_ns, ordered.except.is_none());
    Some(Past { at_ns, for_all, order: ordered.order.read()? })
}

impl Begun {
    /// The clock of the run, which never stopped.
    pub(super) fn clock(&self) -> Clock {
        Clock::started(wall_now().saturating_sub(Duration::from_nanos(self.start_unix_ns)))
    }

    fn info(&self) -> RunInfo {
        let parts = self.plan.parts.iter().zip(&self.told.names).zip(&self.machines);
        let labels = self.told.labels.iter().cloned().chain(std::iter::repeat(BTreeMap::new()));
        let machines = parts.zip(labels).map(|(((part, name), machine), labels)| MachineInfo {
            name: name.clone(),
            host: machine.host.clone(),
            shards: machine.shards,
            part: part.part,
            labels,
            ..MachineInfo::default()
        });
        let mut info = self.bundle.info.clone();
        info.generator.machines = machines.collect();
        info.generator.shards = self.machines.iter().map(|machine| machine.shards).sum();
        info.time.zero_unix_ns = self.start_unix_ns;
        info.time.started = timestamp(Duration::from_nanos(self.start_unix_ns));
        info
    }

    /// Continues the run to its end.
    pub(super) async fn goes_on(
        self,
        (generators, hosts): (Posts, Hosts),
        (settings, signals): (&Settings, StopRequests),
        errors: &dyn Operator,
    ) -> Result<Exit, Exit> {
        let environment = self.told.environment.clone();
        let labels = settings.labels.clone();
        let given = Given { environment, labels, as_it_was: true, ..Given::default() };
        let loaded = bundle::load(&self.bundle, &given, errors)?;
        let mut program = self.told.inputs.put_into(&loaded.program);
        if self.is_over {
            program.teardown = None;
            program.monitors = Vec::new();
            program.events = Vec::new();
        }
        let mut info = self.info();
        let conduct = Conduct {
            rerun_of: info.sources.rerun_of.clone(),
            command: info.command.clone(),
            settings: settings.clone(),
            ..Conduct::new(Arc::new(program), loaded.recorded, errors)
        };
        let refused = |told: Box<Diagnostic>| errors.fail(&told, Exit::Usage);
        let guard = Guard::read(errors)?;
        permit(&conduct.program, settings.allow_commands, &guard.lists).map_err(refused)?;
        let options = conduct.options(&guard, 1);
        let (exports, live) = conduct.open(&info, errors).map_err(refused)?;
        let recorder = conduct.record(&mut info).map_err(refused)?;
        // A run that has ended ignores later readings of the target's counts.
        let books = self.told.books.iter().filter(|_| !self.is_over);
        let before = books.map(|said| said.map(Ok)).collect();
        let outlets = Outlets { recorder, exports, live, hosts, before };
        let controller = Controller::new(&conduct, generators, info, outlets).behind(self.past);
        Ok(controller.work(self.told.setup, &options, signals).await)
    }
}
