//! Many agents in one process, each with a connection of its own to a real bus: what the bus and
//! the controller of a fleet do is what they do for as many machines. Each tells the lines that an
//! agent told once, in the seconds in which it told them. `cargo xtask bench fleet` starts it:
//!
//! - `swarm admit KEYS COUNT TOKENS` makes the tokens, before the bus begins;
//! - `swarm join TOKENS LINES VERSION SECONDS` joins, tells what is in the file LINES when a run
//!   begins, says as JSON what was told once all of it is in the log, and gives up after so long.

#![allow(clippy::disallowed_methods, clippy::print_stdout, reason = "it says what it has measured")]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use throng_base::Said;
use throng_base::clock::wall_now;
use throng_bus::keys::{Keys, Token, is_signed};
use throng_bus::nats::Nats;
use throng_fleet::agent::{About, Agent, Begin, Child, Finish, Happened, Host, Spool};
use throng_fleet::orphan::Patience;
use throng_fleet::presence::Incarnation;
use throng_fleet::wire::{Ceiling, Raw, Registered, WIRE};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::LocalSet;
use tokio::time::timeout;

/// When the lines of a second are complete, after its end.
const GATHERED_NS: u64 = 150_000_000;
const SECOND_NS: u64 = 1_000_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["admit", keys, count, tokens] => admit(keys, count.parse()?, tokens),
        ["join", tokens, lines, version, seconds] => {
            let tokens = std::fs::read_to_string(tokens)?;
            let lines = Arc::new(Recorded::read(&std::fs::read_to_string(lines)?)?);
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let limit = Duration::from_secs(seconds.parse()?);
            let told = LocalSet::new()
                .block_on(&runtime, async { timeout(limit, join(&tokens, &lines, version)).await });
            println!("{}", told.map_err(|_| "not all was told in time")??);
            Ok(())
        }
        _ => Err("swarm admit KEYS COUNT TOKENS | swarm join TOKENS LINES VERSION SECONDS".into()),
    }
}

fn admit(keys: &str, count: usize, file: &str) -> Result<(), Box<dyn Error>> {
    let mut keys = Keys::open(Path::new(keys)).map_err(|why| why.spoken())?;
    let mut text = String::new();
    for number in 0..count {
        let name = format!("s{number:04}");
        let token = keys.admit(&name, wall_now(), Duration::from_hours(24));
        text.push_str(&format!("{}\n", token.map_err(|why| why.spoken())?));
    }
    Ok(std::fs::write(file, text)?)
}

/// The lines of a real agent.
struct Recorded {
    ready: String,
    /// Lines of the load, each with its time in nanoseconds of the run.
    lines: Vec<(u64, String)>,
    over: String,
}

impl Recorded {
    fn read(text: &str) -> Result<Recorded, Box<dyn Error>> {
        let (mut ready, mut over, mut lines) = (None, None, Vec::new());
        let mut at_ns = 0;
        for line in text.lines() {
            let value: Value = serde_json::from_str(line)?;
            let own = format!("{line}\n");
            if value.get("ready").is_some() {
                ready = Some(own);
            } else if value.get("over").is_some() {
                over = Some(own);
            } else {
                if let Some(second) = value["interval"]["second"].as_u64() {
                    at_ns = at_ns.max((second + 1) * SECOND_NS + GATHERED_NS);
                }
                lines.push((at_ns, own));
            }
        }
        let (ready, over) = (ready.ok_or("no first line")?, over.ok_or("no last line")?);
        Ok(Recorded { ready, lines, over })
    }
}

/// The results of one agent.
#[derive(Default)]
struct Deeds {
    start_unix_ns: Option<u64>,
    /// Orders by their text, with arrival times.
    orders: Vec<(String, u64)>,
    is_stopped: bool,
    /// Lines that were sent.
    told: usize,
    is_ready_told: bool,
    is_over_told: bool,
}

type Shared = Rc<RefCell<Deeds>>;

fn unix_ns() -> u64 {
    u64::try_from(wall_now().as_nanos()).unwrap_or(u64::MAX)
}

struct Machine {
    lines: Arc<Recorded>,
    deeds: Shared,
}

struct Making(Shared);

struct Telling {
    lines: Arc<Recorded>,
    deeds: Shared,
}

impl Host for Machine {
    type Child = Making;
    type Spool = Telling;

    fn unix_ns(&self) -> u64 {
        unix_ns()
    }

    async fn begin(&self, _: Begin<'_>) -> Result<(Making, Telling), Said> {
        let telling = Telling { lines: Arc::clone(&self.lines), deeds: Rc::clone(&self.deeds) };
        Ok((Making(Rc::clone(&self.deeds)), telling))
    }

    fn left(&self) -> Vec<(String, Incarnation, Telling)> {
        Vec::new()
    }
}

impl Child for Making {
    fn start(&mut self, unix_ns: u64) {
        self.0.borrow_mut().start_unix_ns = Some(unix_ns);
    }

    fn order(&mut self, order: &str) -> bool {
        let mut deeds = self.0.borrow_mut();
        deeds.is_stopped |= ["\"stop\"", "\"abort\""].contains(&order);
        deeds.orders.push((order.to_string(), unix_ns()));
        true
    }

    fn is_ready(&self) -> bool {
        self.0.borrow().is_ready_told
    }

    fn announced(&mut self) -> Vec<String> {
        Vec::new()
    }

    fn hear(&mut self, _: &str, _: u64) {}
}

impl Spool for Telling {
    fn read(&mut self) -> Vec<u8> {
        let mut deeds = self.deeds.borrow_mut();
        if !std::mem::replace(&mut deeds.is_ready_told, true) {
            return self.lines.ready.clone().into_bytes();
        }
        let Some(start) = deeds.start_unix_ns else { return Vec::new() };
        let passed = unix_ns().saturating_sub(start);
        let mut bytes = Vec::new();
        while let Some((at, line)) = self.lines.lines.get(deeds.told)
            && *at <= passed
        {
            bytes.extend_from_slice(line.as_bytes());
            deeds.told += 1;
        }
        let is_over = deeds.told == self.lines.lines.len() || deeds.is_stopped;
        if is_over && !std::mem::replace(&mut deeds.is_over_told, true) {
            bytes.extend_from_slice(self.lines.over.as_bytes());
        }
        bytes
    }

    fn ended(&mut self) -> Option<Finish> {
        self.deeds.borrow().is_over_told.then(Finish::default)
    }

    fn sent(&mut self) {}
}

async fn join(tokens: &str, lines: &Arc<Recorded>, version: &str) -> Result<Value, Box<dyn Error>> {
    let (mut all, mut ends) = (Vec::new(), Vec::new());
    for line in tokens.lines() {
        let token = Token::parse(line).map_err(|why| why.spoken())?;
        let bus = Nats::connect(token.identity.clone()).map_err(|why| why.spoken())?;
        let deeds = Shared::default();
        let machine = Machine { lines: Arc::clone(lines), deeds: Rc::clone(&deeds) };
        let (tell, happened) = unbounded_channel();
        let agent = Agent::new(bus, machine, about(token, version), tell);
        tokio::task::spawn_local(agent.work(std::future::pending()));
        ends.push(tokio::task::spawn_local(sent(happened)));
        all.push(deeds);
    }
    for end in ends {
        end.await?.ok_or("an agent has ended and not told all")?;
    }
    Ok(report(&all, lines))
}

fn about(token: Token, version: &str) -> About {
    let life = u64::try_from(wall_now().as_millis()).unwrap_or(u64::MAX);
    About {
        name: token.identity.name.clone(),
        registered: Registered {
            wire: WIRE,
            life: Incarnation(life),
            version: version.to_string(),
            cores: 2.0,
            memory_bytes: 8 << 30,
            descriptors: 1 << 20,
            ports: 1 << 20,
            labels: BTreeMap::from([("swarm".to_string(), "yes".to_string())]),
            ceiling: Ceiling::default(),
            host: Raw::new(&()),
        },
        patience: Patience::default(),
        verify: Rc::new(move |plan, signature| {
            is_signed(&token.operator, plan.as_bytes(), signature)
        }),
    }
}

/// Waits until all lines of a run are in the log; None if it takes no part.
async fn sent(mut happened: UnboundedReceiver<Happened>) -> Option<()> {
    loop {
        match happened.recv().await? {
            Happened::Sent { .. } => return Some(()),
            Happened::Refused { why, .. } => {
                println!("refused: {}", why.spoken());
                return None;
            }
            _ => {}
        }
    }
}

/// The results of all agents, and how far apart they acted on orders.
fn report(all: &[Shared], lines: &Recorded) -> Value {
    let mut by_order: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    let (mut starts, mut told, mut counted) = (Vec::new(), 0, 0);
    for deeds in all {
        let deeds = deeds.borrow();
        starts.extend(deeds.start_unix_ns);
        told += deeds.told + 2;
        counted += lines.lines[..deeds.told].iter().map(|(_, line)| count(line)).sum::<u64>();
        for (order, at) in &deeds.orders {
            by_order.entry(order.clone()).or_default().push(*at);
        }
    }
    let spread = |times: &[u64]| {
        times.iter().max().zip(times.iter().min()).map_or(0, |(max, min)| max - min)
    };
    let orders = by_order.iter().map(|(order, times)| {
        let order: Value = serde_json::from_str(order).unwrap_or_default();
        let last = times.iter().max();
        json!({
            "order": order,
            "agents": times.len(),
            "spread_ns": spread(times),
            "last_unix_ns": last,
        })
    });
    json!({
        "agents": all.len(),
        "lines": told,
        "count": counted,
        "start_unix_ns": starts.iter().max(),
        "starts_spread_ns": spread(&starts),
        "orders": orders.collect::<Vec<_>>(),
    })
}

/// The completed attempts in a line.
fn count(line: &str) -> u64 {
    let value: Value = serde_json::from_str(line).unwrap_or_default();
    let steps = value["interval"]["steps"].as_array().cloned().unwrap_or_default();
    steps.iter().filter_map(|step| step["count"].as_u64()).sum()
}
