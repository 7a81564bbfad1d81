//! Whole fleets in simulated time: agents, controllers and a bus with faults. Each line that
//! children have written to disk must arrive exactly once.

mod faults;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::rc::Rc;
use std::time::Duration;

use throng_base::{LoadPart, Random, Said};
use throng_bus::memory::{Faults, Memory};
use tokio::sync::mpsc::{Receiver, UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::{JoinHandle, LocalSet, spawn_local};
use tokio::time::{sleep, timeout};

use crate::agent::{About, Agent, Begin, Child, Finish, Happened, Host, Spool};
use crate::controller::{Controller, Input, Missing, Output, Sign, outputs};
use crate::orphan::Patience;
use crate::presence::{Incarnation, News};
use crate::wire::{Assigned, Ceiling, Plan, Raw, Registered, Signed, WIRE};
use crate::{Ticking, ticking};

const DAY_MS: u64 = 86_400_000;
const UNIX_NS: u64 = 1_800_000_000_000_000_000;

/// The output of a child, which outlives agents.
#[derive(Default)]
struct Written {
    lines: Vec<String>,
    finish: Option<Finish>,
    is_sent: bool,
    started_ns: Option<u64>,
    /// Its announcements, and those it has received.
    said: Vec<String>,
    heard: Vec<(String, u64)>,
}

type Disk = Rc<RefCell<BTreeMap<u64, Written>>>;

struct Machine {
    disk: Disk,
    ticking: Ticking,
    /// The skew of its clock.
    skew_ns: i64,
}

struct Process {
    orders: UnboundedSender<String>,
    start: UnboundedSender<u64>,
    is_ready: Rc<Cell<bool>>,
    disk: Disk,
    life: u64,
}

struct Lines {
    disk: Disk,
    life: u64,
    read: usize,
}

impl Host for Machine {
    type Child = Process;
    type Spool = Lines;

    fn unix_ns(&self) -> u64 {
        (UNIX_NS + self.ticking.now().as_nanos()).saturating_add_signed(self.skew_ns)
    }

    async fn begin(&self, begin: Begin<'_>) -> Result<(Process, Lines), Said> {
        let life = begin.life.0;
        self.disk.borrow_mut().insert(life, Written::default());
        let (orders, ordered) = unbounded_channel();
        let (start, started) = unbounded_channel();
        let is_ready = Rc::new(Cell::new(false));
        spawn_local(make((Rc::clone(&self.disk), life), Rc::clone(&is_ready), started, ordered));
        let lines = Lines { disk: Rc::clone(&self.disk), life, read: 0 };
        let disk = Rc::clone(&self.disk);
        Ok((Process { orders, start, is_ready, disk, life }, lines))
    }

    fn left(&self) -> Vec<(String, Incarnation, Lines)> {
        let left = self.disk.borrow();
        let left = left.iter().filter(|(_, written)| !written.is_sent);
        left.map(|(&life, _)| {
            let lines = Lines { disk: Rc::clone(&self.disk), life, read: 0 };
            ("r1".to_string(), Incarnation(life), lines)
        })
        .collect()
    }
}

/// A child: prepares, waits, and writes a line per second until it is stopped, or its input is
/// closed.
async fn make(
    (disk, life): (Disk, u64),
    is_ready: Rc<Cell<bool>>,
    mut start: UnboundedReceiver<u64>,
    mut orders: UnboundedReceiver<String>,
) {
    let write = |text: String| {
        disk.borrow_mut().get_mut(&life).expect("its file").lines.push(text);
    };
    let say = |text: String| {
        disk.borrow_mut().get_mut(&life).expect("its file").said.push(text);
    };
    let finish = || {
        disk.borrow_mut().get_mut(&life).expect("its file").finish = Some(Finish::default());
    };
    sleep(Duration::from_millis(300)).await;
    write("ready".into());
    is_ready.set(true);
    let Some(started) = start.recv().await else { return finish() };
    disk.borrow_mut().get_mut(&life).expect("its file").started_ns = Some(started);
    for second in 0.. {
        write(format!("second {second}"));
        say(format!("{life} says {second}"));
        tokio::select! {
            order = orders.recv() => match order.as_deref() {
                None | Some("\"stop\"") => break,
                Some(order) => write(format!("order {order}")),
            },
            () = sleep(Duration::from_secs(1)) => {}
        }
    }
    write("over".into());
    say(format!("{life} is over"));
    finish();
}

impl Child for Process {
    fn start(&mut self, unix_ns: u64) {
        let _ = self.start.send(unix_ns);
    }

    fn order(&mut self, order: &str) -> bool {
        self.orders.send(order.to_string()).is_ok()
    }

    fn is_ready(&self) -> bool {
        self.is_ready.get()
    }

    fn announced(&mut self) -> Vec<String> {
        let mut disk = self.disk.borrow_mut();
        disk.get_mut(&self.life).map(|own| std::mem::take(&mut own.said)).unwrap_or_default()
    }

    fn hear(&mut self, announced: &str, error_ns: u64) {
        let mut disk = self.disk.borrow_mut();
        let own = disk.get_mut(&self.life).expect("its file");
        own.heard.push((announced.to_string(), error_ns));
    }
}

impl Spool for Lines {
    fn read(&mut self) -> Vec<u8> {
        let disk = self.disk.borrow();
        let new = disk[&self.life].lines.iter().skip(self.read).take(5);
        let text: Vec<u8> = new.flat_map(|line| format!("{line}\n").into_bytes()).collect();
        self.read += text.iter().filter(|byte| **byte == b'\n').count();
        text
    }

    fn ended(&mut self) -> Option<Finish> {
        self.disk.borrow()[&self.life].finish.clone()
    }

    fn sent(&mut self) {
        self.disk.borrow_mut().get_mut(&self.life).expect("its file").is_sent = true;
    }
}

/// A running agent.
type Working = JoinHandle<Result<(), Said>>;

/// A fleet on one bus.
struct World {
    bus: Memory,
    ticking: Ticking,
    patience: Patience,
    agents: Vec<(String, Disk, Working)>,
    lives: u64,
    controllers: u64,
}

/// A controller, with its reports and requests.
struct TestController {
    work: JoinHandle<()>,
    inputs: UnboundedSender<Input>,
    outputs: Receiver<Output>,
    /// With their lives.
    agents: BTreeMap<String, u64>,
    /// By agent of the plan.
    lines: BTreeMap<usize, Vec<String>>,
}

impl World {
    fn new(seed: u64, faults: Faults, agents: usize) -> World {
        let mut world = World {
            bus: Memory::new(seed, faults),
            ticking: ticking(),
            patience: Patience::default(),
            agents: Vec::new(),
            lives: 0,
            controllers: 0,
        };
        for number in 0..agents {
            let disk = Disk::default();
            let name = format!("a{number:03}");
            let work = world.agent(&name, &disk);
            world.agents.push((name, disk, work));
        }
        world
    }

    fn registered(&self, life: u64) -> Registered {
        Registered {
            wire: WIRE,
            life: Incarnation(life),
            version: "1".into(),
            cores: 2.0,
            memory_bytes: 4 << 30,
            descriptors: 20_000,
            ports: 28_000,
            labels: BTreeMap::new(),
            ceiling: Ceiling::default(),
            host: Raw::new(&()),
        }
    }

    /// An agent starts or restarts.
    fn agent(&mut self, name: &str, disk: &Disk) -> Working {
        self.lives += 1;
        let registered = self.registered(self.lives);
        self.agent_as(name, disk, registered, i64::try_from(self.lives).unwrap() * 7_000_000)
    }

    fn agent_as(&self, name: &str, disk: &Disk, registered: Registered, skew_ns: i64) -> Working {
        let host = Machine { disk: Rc::clone(disk), ticking: self.ticking, skew_ns };
        let about = About {
            name: name.to_string(),
            registered,
            patience: self.patience,
            verify: Rc::new(|text, signature| signature == sign(text)),
        };
        let (told, mut happened) = unbounded_channel::<Happened>();
        spawn_local(async move { while happened.recv().await.is_some() {} });
        spawn_local(Agent::new(self.bus.join(name), host, about, told).work(std::future::pending()))
    }

    /// The agent is killed; its child ends because its input is closed.
    fn kill(&mut self, number: usize) {
        self.agents[number].2.abort();
    }

    fn revive(&mut self, number: usize) {
        let (name, disk) = (self.agents[number].0.clone(), Rc::clone(&self.agents[number].1));
        self.agents[number].2 = self.agent(&name, &disk);
    }

    fn controller(&mut self) -> TestController {
        self.controllers += 1;
        let name = format!("c{}", self.controllers);
        let (told, outputs) = outputs();
        let (inputs, given) = unbounded_channel();
        let ticking = self.ticking;
        let unix_ns = Box::new(move || UNIX_NS + ticking.now().as_nanos());
        let bus = (self.bus.join(&name), Box::new(sign) as Sign);
        let controller = Controller::new(bus, self.controllers, self.patience, unix_ns, told);
        let work = spawn_local(controller.work(given));
        TestController { work, inputs, outputs, agents: BTreeMap::new(), lines: BTreeMap::new() }
    }

    fn plan(&self, parts: &[(String, u64)]) -> (Box<Plan>, Signed) {
        let of = parts.len() as u64;
        let part = |(first, (agent, life)): (u64, &(String, u64))| Assigned {
            agent: agent.clone(),
            life: Incarnation(*life),
            part: LoadPart { first, width: 1, of },
        };
        let now_ms = (UNIX_NS + self.ticking.now().as_nanos()) / 1_000_000;
        let plan = Plan {
            wire: WIRE,
            run: "r1".into(),
            version: "1".into(),
            valid_from_ms: now_ms - 60_000,
            valid_until_ms: now_ms + DAY_MS,
            users_max: 1_000,
            rate_max: None,
            parts: (0..).zip(parts).map(part).collect(),
            files: Vec::new(),
            told: Raw::new(&"told"),
        };
        let text = serde_json::to_string(&plan).unwrap();
        let signature = sign(&text);
        (Box::new(plan), Signed { plan: text, signature })
    }

    /// The lines that the children have written, by agent.
    fn truth(&self) -> BTreeMap<usize, Vec<String>> {
        let own = |(number, (_, disk, _)): (usize, &(String, Disk, Working))| {
            let disk = disk.borrow();
            let first = disk.values().next()?;
            Some((number, first.lines.clone()))
        };
        self.agents.iter().enumerate().filter_map(own).collect()
    }

    /// When the children started, by the controller's clock.
    fn starts(&self) -> Vec<u64> {
        let start = |disk: &Disk| disk.borrow().values().next()?.started_ns;
        self.agents.iter().filter_map(|(_, disk, _)| start(disk)).collect()
    }
}

impl TestController {
    /// Waits for a report, at most an hour.
    #[track_caller]
    fn hears(&mut self, what: &'static str) -> impl Future<Output = Output> {
        let place = std::panic::Location::caller();
        async move {
            let wanted = |output: &Output| match output {
                Output::Commands => what == "commands",
                Output::Complete => what == "complete",
                Output::Closed => what == "closed",
                Output::GivenUp(_) => what == "given up",
                Output::Deposed => what == "deposed",
                Output::Resumed { .. } => what == "resumed",
                Output::News { news: News::Lost, .. } => what == "lost",
                Output::News { news: News::Back, .. } => what == "back",
                Output::Ended { .. } => what == "ended",
                _ => false,
            };
            let heard = async {
                loop {
                    let output = self.outputs.recv().await?;
                    self.take(&output);
                    if wanted(&output) {
                        return Some(output);
                    }
                }
            };
            match timeout(Duration::from_hours(1), heard).await {
                Ok(Some(output)) => output,
                Ok(None) => panic!("it ended and did not say `{what}` ({place})"),
                Err(_) => panic!("it never said `{what}` ({place})"),
            }
        }
    }

    fn take(&mut self, output: &Output) {
        match output {
            Output::Lines { agent, lines } => {
                let lines = std::str::from_utf8(lines).expect("text").lines().map(String::from);
                self.lines.entry(*agent).or_default().extend(lines);
            }
            Output::Agent { name, registered } => {
                self.agents.insert(name.clone(), registered.life.0);
            }
            Output::Failed(why) => panic!("it failed: {why:?}"),
            _ => {}
        }
    }

    /// Waits until all these agents have joined; returns them with their lives.
    async fn gathers(&mut self, count: usize) -> Vec<(String, u64)> {
        while self.agents.len() < count {
            let output = self.outputs.recv().await.expect("an output");
            self.take(&output);
        }
        self.agents.clone().into_iter().collect()
    }

    /// Waits until each of them has sent its first line.
    async fn ready(&mut self, count: usize) {
        while self.lines.len() < count {
            let output = self.outputs.recv().await.expect("an output");
            self.take(&output);
        }
    }

    fn says(&self, input: Input) {
        self.inputs.send(input).expect("a controller");
    }

    fn stop(&self) {
        self.says(Input::Order { at_ns: 0, except: None, order: Raw::new(&"stop") });
    }

    async fn closes(&mut self) {
        self.says(Input::Close);
        self.hears("closed").await;
    }
}

/// A run of a fleet up to its start.
async fn begun(world: &mut World) -> TestController {
    let mut controller = world.controller();
    controller.hears("commands").await;
    let count = world.agents.len();
    let agents = controller.gathers(count).await;
    let (plan, signed) = world.plan(&agents);
    controller.says(Input::Begin { plan, signed });
    controller.ready(count).await;
    let unix_ns = UNIX_NS + world.ticking.now().as_nanos() + 3_000_000_000;
    controller.says(Input::Start { unix_ns });
    controller
}

/// The operator's signature in these tests.
fn sign(text: &str) -> String {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    format!("{:x}", hasher.finish())
}

/// Runs a test in simulated time.
fn story<F: Future<Output = ()> + 'static>(tell: impl FnOnce() -> F) {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_time().start_paused(true).build().expect("a runtime");
    LocalSet::new().block_on(&runtime, tell());
}

/// Agents forward each other's announcements, from the first to the last, and know how well their
/// clocks agree, however large the offsets are.
#[test]
fn announcements_reach_the_other_children() {
    story(|| async {
        let mut world = World::new(1, Faults::default(), 3);
        let mut controller = begun(&mut world).await;
        sleep(Duration::from_secs(40)).await;
        controller.says(Input::Order { at_ns: 0, except: Some(0), order: Raw::new(&"stop") });
        sleep(Duration::from_secs(5)).await;
        controller.stop();
        controller.hears("complete").await;
        controller.closes().await;
        let written = |number: usize| world.agents[number].1.borrow();
        let of = |number: usize, life: u64| -> Vec<String> {
            let prefix = format!("{life} ");
            let heard = written(number)[&(number as u64 + 1)].heard.clone();
            assert!(heard.iter().all(|(_, error_ns)| *error_ns < 100_000_000), "{heard:?}");
            heard.into_iter().map(|it| it.0).filter(|text| text.starts_with(&prefix)).collect()
        };
        for (number, life) in [(0, 2), (0, 3), (1, 1), (1, 3), (2, 1), (2, 2)] {
            let heard = of(number, life);
            let said = (0..).map(|second| format!("{life} says {second}"));
            let last = usize::from(number == 0);
            assert!(heard.len() > 35, "{heard:?}");
            assert!(heard.iter().rev().skip(last).rev().cloned().eq(said.take(heard.len() - last)));
            if number == 0 {
                assert_eq!(heard.last(), Some(&format!("{life} is over")));
            }
        }
        assert!((0..3).all(|number| of(number, number as u64 + 1).is_empty()), "its own words");
    });
}

#[test]
fn a_fleet_runs_and_every_line_arrives() {
    story(|| async {
        let mut world = World::new(1, Faults::default(), 5);
        let mut controller = begun(&mut world).await;
        sleep(Duration::from_secs(20)).await;
        controller.says(Input::Order { at_ns: 0, except: Some(2), order: Raw::new(&"pause") });
        sleep(Duration::from_secs(5)).await;
        controller.stop();
        controller.hears("complete").await;
        assert_eq!(controller.lines, world.truth());
        controller.closes().await;
        for (agent, lines) in &controller.lines {
            let orders = lines.iter().filter(|line| *line == "order \"pause\"").count();
            assert_eq!(orders, usize::from(*agent != 2), "agent {agent}");
            assert!(lines.len() > 25 && lines.last().unwrap() == "over", "{lines:?}");
        }
        // Each started at the same moment by its own clock, which differs from the controller's.
        let skews = (1..).map(|life: u64| life * 7_000_000);
        let starts: Vec<u64> =
            world.starts().iter().zip(skews).map(|(start, skew)| start - skew).collect();
        assert!(starts.iter().all(|start| *start == starts[0]), "{starts:?}");
    });
}

#[test]
fn unread_lines_wait_in_the_log() {
    story(|| async {
        let mut world = World::new(2, Faults::default(), 5);
        let mut controller = begun(&mut world).await;
        // Ten thousand lines, and a controller that is busy.
        sleep(Duration::from_secs(2_000)).await;
        let waiting = controller.outputs.len();
        assert!((512..1_024).contains(&waiting), "{waiting} are in memory");
        controller.stop();
        controller.hears("complete").await;
        assert_eq!(controller.lines, world.truth());
        assert!(controller.lines.values().all(|lines| lines.len() > 2_000));
        controller.closes().await;
    });
}
