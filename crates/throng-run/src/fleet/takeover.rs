//! Takes over a fleet run whose controller is lost, either on request or as a standby. The bus has
//! the plan, its files, the orders and every line.

use std::path::Path;
use std::time::Duration;

use throng_base::{Diagnostic, Exit};
use throng_bus::Bus as _;
use throng_bus::keys::is_signed;
use throng_fleet::controller::{Input, Output};
use throng_fleet::wire::{Desired, Ordered, Plan, Registered, Signed, from_json, names};
use throng_results::Run;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::begun::{Begun, Machine, past};
use super::bus::Access;
use super::{COMMAND_TIME, READY_TIME, Resume, bus, generators, parcel, ready_of, unfit};
use crate::controller::monitors::Hosts;
use crate::wire::Ready;
use crate::{FLEET, Operator, Settings, StopRequests, hear};

/// Timeout for rereading the first messages of the agents.
const REPLAY_TIME: Duration = Duration::from_secs(10);
/// Maximum size of the lines that contain those messages.
const REPLAY_BYTES_MAX: usize = 64 << 20;

/// Continues a run that another controller started, up to its end.
pub(crate) async fn resume(asked: &Resume, errors: &dyn Operator) -> Exit {
    let directory = asked.settings.fleet.as_deref().unwrap_or(Path::new(FLEET));
    let refused = |told: Box<Diagnostic>| errors.fail(&told, bus::exit_of(&told));
    let begun = async {
        let mut signals = hear(errors)?;
        let mut takeover = Takeover(Access::open(directory).await.map_err(refused)?);
        let run = takeover.run(asked.run.as_deref()).await.map_err(refused)?;
        tokio::select! {
            done = takeover.commands(&run, asked.standby, errors) => done.map_err(refused)?,
            () = signals.next() => return Err(Exit::Interrupted),
        }
        let (desired, early) = takeover.resumes(&run, &asked.settings).await.map_err(refused)?;
        takeover.goes_on(desired, early, (&asked.settings, signals), errors).await
    };
    begun.await.unwrap_or_else(|exit| exit)
}

struct Takeover(Access);

/// The state of a run on the bus.
struct Left {
    plan: Plan,
    start_unix_ns: Option<u64>,
    orders: Vec<Ordered>,
    is_over: bool,
}

type Found<T> = Result<T, Box<Diagnostic>>;

impl Takeover {
    /// The named run, or the newest one that has not ended.
    async fn run(&self, named: Option<&str>) -> Found<String> {
        if let Some(run) = named {
            return Ok(run.to_string());
        }
        let mut newest: Option<(u64, String)> = None;
        let pattern = names::desired("*");
        for key in self.0.bus.keys(&pattern).await.map_err(|error| self.0.failed(&error))? {
            let Some(run) = key.split('.').nth(1) else { continue };
            let desired: Option<Desired> = self.register(&key).await?;
            if desired.is_none_or(|desired| desired.over) {
                continue;
            }
            let Some(plan) = self.plan(run).await? else { continue };
            newest = newest.max(Some((plan.valid_from_ms, plan.run)));
        }
        newest.map(|(_, run)| run).ok_or_else(|| {
            let message = say!("no run of this fleet is in progress");
            let help = say!("give a run whose lines are still in the log: `throng resume RUN`");
            Box::new(unfit(message, help))
        })
    }

    async fn register<T: serde::de::DeserializeOwned>(&self, key: &str) -> Found<Option<T>> {
        let entry = self.0.bus.read(key).await.map_err(|error| self.0.failed(&error))?;
        Ok(entry.and_then(|entry| from_json(&entry.value)))
    }

    /// Returns the plan only if the operator of this fleet signed it.
    async fn plan(&self, run: &str) -> Found<Option<Plan>> {
        let signed: Option<Signed> = self.register(&names::plan(run)).await?;
        let signed = signed
            .filter(|it| is_signed(self.0.keys.operator(), it.plan.as_bytes(), &it.signature));
        Ok(signed.and_then(|signed| from_json(signed.plan.as_bytes())))
    }

    /// Drops orders without the operator's signature; a compromised bus may contain others.
    fn signed(&self, plan: Plan, desired: Desired) -> Left {
        let is = |text: &str, signature: &str| {
            is_signed(self.0.keys.operator(), text.as_bytes(), signature)
        };
        let Desired { start, orders, over, .. } = desired;
        let start = start.filter(|it| is(&it.signed_text(&plan.run), &it.signature));
        let orders = orders.into_iter().enumerate();
        let orders =
            orders.take_while(|(place, it)| is(&it.signed_text(&plan.run, *place), &it.signature));
        Left {
            start_unix_ns: start.map(|it| it.start.unix_ns),
            orders: orders.map(|(_, it)| it).collect(),
            is_over: over,
            plan,
        }
    }

    /// Waits until no other controller commands the fleet.
    async fn commands(&mut self, run: &str, standby: bool, errors: &dyn Operator) -> Found<()> {
        let until = Instant::now() + COMMAND_TIME;
        if standby {
            errors.say(say!(
                "on standby for run {run}: this controller takes over if the other one fails"
            ));
        }
        loop {
            let output = tokio::select! {
                output = self.0.next() => output?,
                () = sleep_until(until), if !standby => {
                    let message = say!("another controller is using this fleet");
                    let help = say!("to take over when that controller is gone: `throng resume --standby`");
                    return Err(Box::new(unfit(message, help)));
                }
            };
            if output == Output::Commands {
                return Ok(());
            }
        }
    }

    /// The state of the run, and the messages of its agents until all have reported that they are
    /// ready.
    async fn resumes(&mut self, run: &str, settings: &Settings) -> Found<(Left, Vec<Output>)> {
        let Some(plan) = self.plan(run).await? else {
            let message = say!("the bus has no run {run} signed by the operator of this fleet");
            let help =
                say!("the bus keeps runs for a week; `throng collect` reads those kept by agents");
            return Err(Box::new(unfit(message, help)));
        };
        let own = bus::build_name(&settings.build);
        if plan.version != own {
            let message = say!(
                "run {run} was started with throng {}, but this is throng {}",
                plan.version,
                own
            );
            return Err(Box::new(unfit(
                message,
                say!("take over the run with the same version of throng"),
            )));
        }
        let _ = self.0.inputs.send(Input::Resume { run: run.to_string() });
        let until = Instant::now() + READY_TIME;
        let left = loop {
            let output = timeout_at(until, self.0.next()).await;
            let output = output.unwrap_or_else(|_| Err(self.0.gone()))?;
            if let Output::Resumed { desired, .. } = output {
                break self.signed(plan, *desired);
            }
        };
        let mut early = Vec::new();
        let mut silent: Vec<bool> = left.plan.parts.iter().map(|_| true).collect();
        let until = Instant::now() + REPLAY_TIME;
        let mut bytes = 0;
        while silent.contains(&true) && bytes < REPLAY_BYTES_MAX {
            let Ok(Some(output)) = timeout_at(until, self.0.outputs.recv()).await else { break };
            if let Output::Lines { agent, .. } | Output::Ended { agent, .. } = &output {
                silent[*agent] = false;
            }
            if let Output::Lines { lines, .. } = &output {
                bytes += lines.len();
            }
            early.push(output);
        }
        Ok((left, early))
    }

    async fn goes_on(
        mut self,
        left: Left,
        early: Vec<Output>,
        (settings, signals): (&Settings, StopRequests),
        errors: &dyn Operator,
    ) -> Result<Exit, Exit> {
        let refused = |told: Box<Diagnostic>| errors.fail(&told, Exit::HostUnfit);
        let run = left.plan.run.clone();
        let Some(start_unix_ns) = left.start_unix_ns else {
            self.0.call_off().await;
            let message = say!("run {run} had not started when its controller was lost");
            let help = say!("it was canceled, and nothing was sent: start it again");
            return Err(refused(Box::new(unfit(message, help))));
        };
        let ready: Vec<Option<Ready>> = (0..left.plan.parts.len())
            .map(|place| early.iter().find_map(|output| first_of(output, place)))
            .collect();
        let moment = self.bundle(&left.plan).await.map_err(refused)?;
        let begun = Begun {
            machines: self.machines(&left.plan, &ready).await.map_err(refused)?,
            told: left.plan.told.read().ok_or_else(|| refused(unreadable(&run)))?,
            bundle: Run::open(moment.path()).map_err(refused)?,
            start_unix_ns,
            past: left.orders.iter().filter_map(past).collect(),
            is_over: left.is_over,
            plan: left.plan,
        };
        errors.say(say!("this controller continues run {run} and rereads its earlier results"));
        let ready: Vec<Ready> = ready.into_iter().flatten().collect();
        let names = begun.told.names.clone();
        let ways = (&*ready, begun.told.redistribute);
        let hosts = Hosts::of_bus(self.0.bus.clone());
        let generators = generators(names, (self.0, early), begun.clock(), ways);
        begun.goes_on((generators, hosts), (settings, signals), errors).await
    }

    async fn machines(&self, plan: &Plan, ready: &[Option<Ready>]) -> Found<Vec<Machine>> {
        let mut machines = Vec::new();
        for (part, ready) in plan.parts.iter().zip(ready) {
            let registered: Option<Registered> = self.register(&names::agent(&part.agent)).await?;
            let host = registered.and_then(|registered| registered.host.read());
            let shards = ready.as_ref().map_or(0, |ready| ready.shards);
            machines.push(Machine { host: host.unwrap_or_default(), shards });
        }
        Ok(machines)
    }

    /// Unpacks the files of the run into a temporary directory.
    async fn bundle(&self, plan: &Plan) -> Found<parcel::TemporaryDirectory> {
        let mut files = Vec::new();
        for file in &plan.files {
            let blob =
                self.0.bus.fetch(&file.sha256).await.map_err(|error| self.0.failed(&error))?;
            let blob = blob.ok_or_else(|| unreadable(&plan.run))?;
            files.push((file.path.clone(), blob.to_vec()));
        }
        parcel::unpack(&files)
    }
}

fn unreadable(run: &str) -> Box<Diagnostic> {
    let message = say!("the bus does not have all files of run {run}");
    Box::new(unfit(message, say!("`throng collect` reads the runs that agents have kept")))
}

/// The first message of the agent, if this output contains it.
fn first_of(output: &Output, place: usize) -> Option<Ready> {
    match output {
        Output::Lines { agent, lines } if *agent == place => {
            lines.split(|byte| *byte == b'\n').find_map(ready_of)
        }
        _ => None,
    }
}
