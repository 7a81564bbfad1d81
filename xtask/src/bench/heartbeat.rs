//! `bench heartbeat`: as many heartbeats a second over few users and over many; what each costs
//! both ends while nothing else happens, and whether another throng pays more for it.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use throng_base::units;

use super::contest::{self, Entrant, Row, Sample, Spread};
use super::look::Look;
use super::population::{Change, EXAMPLE, Ends, Outcome, Pace};
use super::report::{self, Gate, spaced};
use super::tool::{Places, Tool};
use super::{Folder, ROUNDS_MAX, machine};

const USERS: [u64; 2] = [50_000, 1_000_000];
const USERS_MAX: u64 = 10_000_000;
/// Between two heartbeats of a user for each user there is: 33,333 heartbeats a second of all.
const EVERY: Duration = Duration::from_micros(30);
const ROUNDS: u32 = 5;
/// From so many users on, one round has to do: it takes minutes.
const USERS_ONCE: u64 = 500_000;
/// At least, and three heartbeats of every user: a filling that fell behind ends in it.
const HOLD: Duration = Duration::from_secs(20);
const HOLD_QUICK: Duration = Duration::from_secs(10);
const HOLD_MAX: Duration = Duration::from_secs(3600);
/// Between coming and holding, at least, and one heartbeat of every user.
const SETTLE: Duration = Duration::from_secs(5);
const NAME: &str = "throng";
const OTHER: &str = "the other throng";
/// Of the rate, in percent: what a throng costs that falls behind is no measure.
const MISSING_PERCENT_MAX: f64 = 1.0;
/// CPU of the generator as a multiple of the other's.
const RATIO_MAX: f64 = 0.65;
/// Of so many users the p99 is judged.
const USERS_JUDGED: u64 = 1_000_000;
const P99_MS_MAX: f64 = 20.0;

/// What the command line asks for.
#[derive(Debug, PartialEq)]
struct Wish {
    command: String,
    users: Vec<u64>,
    rounds: u32,
    hold: Duration,
    /// Another throng, which takes turns with this one.
    against: Option<PathBuf>,
    /// Of this throng; its default if left out.
    precision: Option<String>,
    whole: bool,
}

/// What one run has shown beside the CPU time of the generator.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Told {
    target_us: f64,
    p50_ms: Option<f64>,
    p99_ms: Option<f64>,
    max_ms: Option<f64>,
    late_p99_ms: Option<f64>,
    /// Of the whole run, by the generator and by the target.
    sent: u64,
    answered: u64,
    counted: u64,
}

/// So many users, and what each throng made of them.
struct Case {
    users: u64,
    rows: Vec<Row>,
    /// Round by round as in `rows`.
    told: Vec<Vec<Told>>,
}

pub(super) fn run(arguments: &[&str]) -> Result<(), String> {
    let wish = parse(arguments)?;
    let (workspace, places) = super::prepare()?;
    let program = Tool::Throng.program(&places)?;
    let example = std::fs::read_to_string(workspace.root.join(EXAMPLE))
        .map_err(|error| format!("{EXAMPLE}: {error}"))?;
    let hold = |users: &u64| Case::hold(*users, &wish, &places, &program, &example);
    let cases: Vec<Case> = wish.users.iter().map(hold).collect();
    let mut text = machine::shared_facts(&wish.command, &places, &workspace);
    text.push_str(&report(&wish, &cases));
    super::publish(&workspace, &places, "heartbeat", &text, wish.whole)
}

fn parse(arguments: &[&str]) -> Result<Wish, String> {
    let mut wish = Wish {
        command: format!("cargo xtask bench heartbeat {}", arguments.join(" ")).trim_end().into(),
        users: USERS.to_vec(),
        rounds: ROUNDS,
        hold: HOLD,
        against: None,
        precision: None,
        whole: true,
    };
    let mut rest = arguments.iter();
    while let Some(flag) = rest.next() {
        if *flag == "--quick" {
            (wish.users, wish.rounds, wish.hold) = (USERS[..1].to_vec(), 1, HOLD_QUICK);
            wish.whole = false;
            continue;
        }
        let missing = || format!("{flag}: unknown, or its value is missing\n\n{}", crate::USAGE);
        let value = *rest.next().ok_or_else(missing)?;
        wish.whole &= *flag == "--against";
        match *flag {
            "--users" => {
                let counts = value.split(',').map(|count| super::count(flag, count, USERS_MAX));
                wish.users = counts.collect::<Result<_, _>>()?;
            }
            "--rounds" => wish.rounds = super::number(flag, value, ROUNDS_MAX)?,
            "--hold" => wish.hold = super::time(flag, value, HOLD_MAX)?,
            "--against" => wish.against = Some(PathBuf::from(value)),
            "--precision" => wish.precision = Some(value.to_string()),
            _ => return Err(missing()),
        }
    }
    match &wish.against {
        Some(file) if !file.is_file() => Err(format!("--against {}: no such file", file.display())),
        _ => Ok(wish),
    }
}

impl Wish {
    fn change(&self, users: u64) -> Change {
        let heartbeat = every(users);
        let pace = Pace::Carried { cores: machine::cores(), settle: SETTLE.max(heartbeat) };
        Change { tls: false, port: 0, users, pace, hold: self.hold.max(heartbeat * 3), heartbeat }
    }

    fn rounds(&self, users: u64) -> u32 {
        if users < USERS_ONCE { self.rounds } else { 1 }
    }

    fn precision(&self) -> Vec<&str> {
        self.precision.iter().flat_map(|precision| ["--precision", precision]).collect()
    }
}

fn every(users: u64) -> Duration {
    EVERY * u32::try_from(users).unwrap_or(u32::MAX)
}

impl Case {
    /// The target is of this throng always: what differs is the generator.
    fn hold(users: u64, wish: &Wish, places: &Places, program: &Path, example: &str) -> Case {
        let measure = |generator: &Path, more: &[&str]| {
            let folder = Folder::new(&places.folder, "heartbeat")?;
            let ends = Ends::prepare(program, &folder.0, example, wish.change(users))?;
            let outcome = ends.run(generator, more)?;
            told(&outcome, users)
        };
        let generators = std::iter::once((NAME, program, wish.precision()))
            .chain(wish.against.iter().map(|other| (OTHER, other.as_path(), Vec::new())));
        let generators: Vec<(&str, &Path, Vec<&str>)> = generators.collect();
        let all: Vec<RefCell<Vec<Told>>> = generators.iter().map(|_| RefCell::default()).collect();
        let entrants: Vec<Entrant<'_>> = generators
            .iter()
            .zip(&all)
            .map(|((name, generator, more), all)| Entrant {
                name: (*name).to_string(),
                run: Box::new(|_| {
                    let (sample, told) = measure(generator, more)?;
                    all.borrow_mut().push(told);
                    Ok(sample)
                }),
            })
            .collect();
        let title = format!("heartbeats of {} users", spaced(users));
        let rows = contest::hold(&title, wish.rounds(users), &entrants);
        drop(entrants);
        Case { users, rows, told: all.into_iter().map(RefCell::into_inner).collect() }
    }

    fn table(&self) -> String {
        let mut text = format!(
            "## {} users, a heartbeat every {}\n\n| generator | heartbeats/s | its CPU per \
             heartbeat | ratio to the other | CPU of the target | p50 / p99 / max | lateness p99 | \
             sent / answered | target counted |\n\
             | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
            spaced(self.users),
            units::write_duration(every(self.users))
        );
        for (row, told) in self.rows.iter().zip(&self.told) {
            text.push_str(&report::line(row, || self.cells(row, told)));
        }
        text.push('\n');
        text
    }

    fn cells(&self, row: &Row, told: &[Told]) -> [String; 8] {
        let ms = |figure: fn(&Told) -> Option<f64>| {
            contest::median(told, figure).map_or("?".to_string(), |ms| format!("{ms:.2}"))
        };
        let sum = |count: fn(&Told) -> u64| spaced(told.iter().map(count).sum());
        let target = Spread::of(told.iter().map(|told| told.target_us));
        [
            report::spread(row.rate(), 0, ""),
            report::spread(row.cpu_us(), 2, " µs"),
            report::spread(contest::ratio(&self.rows, &row.name, OTHER), 2, ""),
            report::spread(target, 2, " µs"),
            format!("{} / {} / {} ms", ms(|it| it.p50_ms), ms(|it| it.p99_ms), ms(|it| it.max_ms)),
            format!("{} ms", ms(|it| it.late_p99_ms)),
            format!("{} / {}", sum(|told| told.sent), sum(|told| told.answered)),
            sum(|told| told.counted),
        ]
    }

    fn gates(&self, compared: bool) -> Vec<Gate> {
        let title = format!("{} users", spaced(self.users));
        let missing = |row: &Row| {
            let rate = row.rate()?.median;
            Some(100.0 * (1.0 - rate * EVERY.as_secs_f64()))
        };
        let rate = Gate {
            goal: format!("{title}: at most {MISSING_PERCENT_MAX} % of the heartbeats are missing"),
            measured: self.rows.first().and_then(missing),
            max: MISSING_PERCENT_MAX,
            unit: "%",
        };
        let keeps = |row: &Row| missing(row).is_some_and(|gone| gone <= MISSING_PERCENT_MAX);
        let ratio = contest::ratio(&self.rows, NAME, OTHER).map(|ratio| ratio.median);
        let ratio = ratio.filter(|_| self.rows.iter().all(keeps));
        let cost = compared.then(|| Gate {
            goal: format!("{title}: CPU per heartbeat at most {RATIO_MAX} x that of {OTHER}"),
            measured: ratio,
            max: RATIO_MAX,
            unit: "x",
        });
        let p99_ms = self.told.first().and_then(|told| contest::median(told, |told| told.p99_ms));
        let time = (self.users >= USERS_JUDGED).then(|| Gate {
            goal: format!("{title}: heartbeat p99 at most {P99_MS_MAX} ms"),
            measured: p99_ms,
            max: P99_MS_MAX,
            unit: "ms",
        });
        std::iter::once(rate).chain(cost).chain(time).collect()
    }
}

/// What a run has shown from when all were there until the first one left.
fn told(outcome: &Outcome, users: u64) -> Result<(Sample, Told), String> {
    let summary: Value = serde_json::from_str(&outcome.ended.output).unwrap_or_default();
    let missing = || {
        let (status, reasons) = (outcome.ended.status, super::reasons(&summary));
        format!("the users were not held; throng ended with {status} {reasons}")
    };
    let (begin, end) = held(&outcome.looks, users).ok_or_else(missing)?;
    let beats = end.done.checked_sub(begin.done).filter(|beats| *beats > 0).ok_or_else(missing)?;
    let hold = &outcome.phases[2];
    let count = |of: &Value, place: &str| of.pointer(place).and_then(Value::as_u64).unwrap_or(0);
    let target = end.target.cpu.saturating_sub(begin.target.cpu);
    let told = Told {
        target_us: target.as_secs_f64() * 1e6 / beats as f64,
        p50_ms: hold.heartbeat.ms_at(0.5),
        p99_ms: hold.heartbeat.ms_at(0.99),
        max_ms: hold.heartbeat.max_ms(),
        late_p99_ms: hold.lateness.ms_at(0.99),
        sent: count(&summary, "/heartbeats/sent"),
        answered: count(&summary, "/heartbeats/answered"),
        counted: count(&outcome.target, "/heartbeats"),
    };
    let cpu = end.tool.cpu.saturating_sub(begin.tool.cpu);
    let seconds = (end.at - begin.at).as_secs_f64();
    Ok((Sample { ok: beats, failed: hold.lost, cpu, seconds }, told))
}

/// The first and the last look at which all were there and each had its heartbeats.
fn held(looks: &[Look], users: u64) -> Option<(&Look, &Look)> {
    let full = looks.iter().find(|look| look.logged_in >= users)?;
    let settled = full.at + every(users);
    let mut rest = looks.iter().filter(|look| look.logged_in >= users && look.at >= settled);
    let first = rest.next()?;
    Some((first, rest.next_back()?))
}

fn report(wish: &Wish, cases: &[Case]) -> String {
    let mut text = format!(
        "The WebSocket users of `{EXAMPLE}` at `throng target im`, both on all cores: {} heartbeats \
         a second of all together. CPU is that of the hold, by heartbeats that the target counted \
         meanwhile; so are the times. The numbers of heartbeats are of whole runs and all rounds: \
         one may be under way when its user leaves. Medians of {} rounds; of {} users and more one \
         round.{}\n\n",
        spaced((1.0 / EVERY.as_secs_f64()) as u64),
        wish.rounds,
        spaced(USERS_ONCE),
        match &wish.precision {
            Some(precision) => format!(" {NAME} has `--precision {precision}`."),
            None => String::new(),
        },
    );
    cases.iter().for_each(|case| text.push_str(&case.table()));
    let gates: Vec<Gate> =
        cases.iter().flat_map(|case| case.gates(wish.against.is_some())).collect();
    text.push_str(&report::goals(&gates));
    text
}

#[cfg(test)]
mod tests;
