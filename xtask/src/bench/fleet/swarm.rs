//! Hundreds of agents that tell recorded lines: what the bus and the controller cost, how far
//! behind the display is, and how far apart a change reaches them.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use throng_base::clock::wall_now;

use super::super::child;
use super::super::look::{Usage, usage_of};
use super::super::report::{Line, spaced};
use super::super::tool;
use super::stage::{Stage, summary};
use crate::programs::text_of;

const TICK: Duration = Duration::from_millis(20);
/// For agents to join and for the run to end, beside its load.
const AROUND: Duration = Duration::from_secs(150);
const SECOND_NS: u64 = 1_000_000_000;

/// What is asked of a swarm.
pub(super) struct Asked {
    pub(super) agents: usize,
    pub(super) seconds: u64,
    /// Of bus and controller together.
    pub(super) cores: f64,
    pub(super) behind_s: Option<f64>,
    /// A change of the rate reaches all of them within this time.
    pub(super) apart_ms: Option<f64>,
}

/// What was seen while the load went on.
#[derive(Default)]
struct SeenLines {
    /// Behind the first line and before the last: when, and of controller and bus.
    first: Option<(u64, Usage, Usage)>,
    last: Option<(u64, Usage, Usage)>,
    /// Seconds of the run, with when each was shown.
    seconds: Vec<(u64, u64)>,
    resident: [u64; 2],
    is_changed: bool,
}

impl Asked {
    /// The swarm's agents are admitted before the bus begins.
    pub(super) fn admit(&self, stage: &Stage, program: &Path) -> Result<(), String> {
        let mut command = Command::new(program);
        command.arg("admit").arg(stage.keys()).arg(self.agents.to_string());
        text_of(command.arg(stage.folder.join("tokens"))).map(drop)
    }

    pub(super) fn hold(
        &self,
        stage: &Stage,
        (program, scenario): (&Path, &str),
        recorded: &str,
    ) -> Result<Vec<Line>, String> {
        let lines = tool::write(&stage.folder, "recorded.ndjson", recorded)?;
        let limit = AROUND + Duration::from_secs(self.seconds);
        let mut command = Command::new(program);
        command.arg("join").arg(stage.folder.join("tokens")).arg(lines).arg(stage.version()?);
        command.arg(limit.as_secs().to_string());
        let swarm = child::start(command, None, &stage.folder, "swarm")?;
        let count = format!("--agents={}", self.agents);
        let run = stage.run(scenario, &[&count, "--agent-label", "swarm=yes"])?;
        let bus = stage.bus();
        let errors = stage.folder.join("run.err");
        let mut seen = SeenLines::default();
        let ended = run.watch(TICK, limit, |controller| {
            seen.look(stage, self, (controller, &bus), &errors);
        })?;
        let summary = summary(&ended)?;
        let told = swarm.wait(Duration::from_secs(30))?;
        let told: Value = serde_json::from_str(told.output.trim())
            .map_err(|error| format!("the swarm: {error}: {}", told.complaint()))?;
        let zero = stage.zero_unix_ns().ok_or("the record tells no start")?;
        Ok(self.lines(&seen, zero, &summary, &told))
    }

    fn lines(
        &self,
        seen: &SeenLines,
        zero_unix_ns: u64,
        summary: &Value,
        told: &Value,
    ) -> Vec<Line> {
        let (ours, theirs) = (summary["total"]["count"].as_u64(), told["count"].as_u64());
        let missing = summary["record"]["lines_missing"].as_u64();
        let both = ours.zip(theirs).map(|(ours, theirs)| {
            format!("{} / {}, {} lines", spaced(ours), spaced(theirs), told["lines"])
        });
        let merged = Line::new("attempts merged / sent by agents", "the same", both);
        let mut lines = vec![merged.met(Some(ours == theirs && missing == Some(0)))];
        let cores = seen.first.zip(seen.last).map(|((from, c, b), (to, d, e))| {
            let seconds = to.saturating_sub(from) as f64 / SECOND_NS as f64;
            let share = |before: Usage, after: Usage| {
                after.cpu.saturating_sub(before.cpu).as_secs_f64() / seconds.max(1e-9)
            };
            (share(c, d), share(b, e))
        });
        let text = cores.map(|(controller, bus)| {
            format!("{:.2} (controller {controller:.2}, bus {bus:.2})", controller + bus)
        });
        let line = Line::new("CPU of controller and bus, cores", format!("{}", self.cores), text);
        lines.push(line.met(cores.map(|(controller, bus)| controller + bus <= self.cores)));
        let megabytes = seen.resident.map(|bytes| bytes / 1_000_000);
        let text = format!("{} MB, {} MB", megabytes[0], megabytes[1]);
        lines.push(Line::new("memory of controller, bus", "", Some(text)));
        let mut all = seen.behind(zero_unix_ns);
        let worst = all.iter().copied().fold(0.0, f64::max);
        all.sort_by(f64::total_cmp);
        let median = all.get(all.len() / 2).copied().unwrap_or(f64::NAN);
        let text = Some(format!("{median:.2} s, maximum {worst:.2} s"));
        let asked = self.behind_s.map_or(String::new(), |asked| format!("{asked} s"));
        let line = Line::new("delay until the results of a second are displayed", asked, text);
        lines.push(line.met(self.behind_s.map(|asked| !all.is_empty() && worst <= asked)));
        if let Some(asked) = self.apart_ms {
            lines.extend(self.change(asked, told));
        }
        lines
    }

    /// How far apart the agents heard of the change, and whether they did before it was due.
    fn change(&self, asked: f64, told: &Value) -> [Line; 3] {
        let orders = told["orders"].as_array().into_iter().flatten();
        let amend = orders.into_iter().find(|it| it["order"]["amend"].is_object());
        let ms = |ns: u64| ns as f64 / 1e6;
        let apart = amend.and_then(|it| it["spread_ns"].as_u64()).map(ms);
        let heard = amend.and_then(|it| it["agents"].as_u64());
        let spare = amend.and_then(|it| {
            let due = told["start_unix_ns"].as_u64()? + it["order"]["amend"]["at_ns"].as_u64()?;
            Some(due as f64 / 1e6 - ms(it["last_unix_ns"].as_u64()?))
        });
        let all = heard == Some(self.agents as u64);
        let clocks = told["starts_spread_ns"].as_u64().map(ms);
        let shown = |ms: Option<f64>| ms.map(|ms| format!("{ms:.1} ms"));
        let asked_ms = || format!("{asked} ms");
        [
            Line::new("a change reaches all agents within", asked_ms(), shown(apart))
                .met(apart.map(|apart| all && apart <= asked)),
            Line::new("… time left until it is due, at the last agent", "0 ms", shown(spare))
                .met(spare.map(|spare| spare >= 0.0)),
            Line::new("… spread of its due time by the agents' clocks", asked_ms(), shown(clocks))
                .met(clocks.map(|clocks| clocks <= asked)),
        ]
    }
}

impl SeenLines {
    /// How many seconds behind its end each second was shown.
    fn behind(&self, zero_unix_ns: u64) -> Vec<f64> {
        // A line is about the time until its second.
        let due = |second: u64| zero_unix_ns + second * SECOND_NS;
        let shown = self.seconds.iter();
        shown.map(|(second, at)| at.saturating_sub(due(*second)) as f64 / 1e9).collect()
    }

    fn look(&mut self, stage: &Stage, asked: &Asked, (pid, bus): (i32, &[i32]), errors: &Path) {
        let now = u64::try_from(wall_now().as_nanos()).unwrap_or(u64::MAX);
        let said = std::fs::read_to_string(errors).unwrap_or_default();
        let Some(second) = said.lines().filter_map(second_of).max() else { return };
        let is_new = self.seconds.last().is_none_or(|(last, _)| *last < second);
        if !is_new {
            return;
        }
        self.seconds.push((second, now));
        let (controller, bus) = (usage_of(&[pid]), usage_of(bus));
        self.resident[0] = self.resident[0].max(controller.resident_bytes);
        self.resident[1] = self.resident[1].max(bus.resident_bytes);
        if self.first.is_none() {
            self.first = Some((now, controller, bus));
        }
        self.last = Some((now, controller, bus));
        if asked.apart_ms.is_some() && second >= asked.seconds / 2 && !self.is_changed {
            self.is_changed = true;
            let mut command = Command::new(&stage.throng);
            // Where it fails the change is not seen, which the table says.
            let _ = command.arg("control").arg(stage.record()).args(["more", "10%"]).spawn();
        }
    }
}

/// Until which second a line of the display is.
fn second_of(line: &str) -> Option<u64> {
    let word = line.split_whitespace().next()?;
    let (minutes, seconds) = match word.strip_suffix('s')?.split_once('m') {
        Some((minutes, seconds)) => (minutes.parse::<u64>().ok()?, seconds),
        None => (0, word.strip_suffix('s')?),
    };
    Some(minutes * 60 + seconds.parse::<u64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_display_are_about_a_second() {
        assert_eq!(second_of("   7s  1000/s"), Some(7));
        assert_eq!(second_of("1m05s"), Some(65));
        assert_eq!((second_of("time  rate"), second_of("")), (None, None));
    }
}
