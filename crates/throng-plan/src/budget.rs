//! Limits of a run, whatever its scenario requests: users, starts per second and time. The
//! environment sets them, and `throng mcp` does for the runs of its client. A run that could exceed
//! a limit sends nothing.

use std::fmt;
use std::time::Duration;

use throng_base::units::{self, format_count, format_duration};
use throng_base::{Diagnostic, Said};
use throng_load::Forecast;
use throng_program::{Action, Change, Drive, Load, Program, Rate, Steering};

/// The environment variable that sets a budget.
pub const VARIABLE: &str = "THRONG_BUDGET";

/// See the module's description. Each limit is optional.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Budget {
    pub users: Option<u64>,
    /// Starts of users and iterations per second.
    pub rate: Option<f64>,
    pub time: Option<Duration>,
}

/// The maximum load of a capacity search.
pub struct Searched {
    /// The search varies users; otherwise, a rate.
    pub varies_users: bool,
    pub max: Option<f64>,
    pub time: Duration,
}

impl Budget {
    /// The budget in [`VARIABLE`]; without limits if it is not set.
    ///
    /// # Errors
    /// As [`Budget::parse`].
    pub fn of_environment() -> Result<Budget, Box<Diagnostic>> {
        let text = std::env::var_os(VARIABLE).unwrap_or_default();
        Budget::parse(&text.to_string_lossy())
    }

    /// Reads `users=1000, rate=500/s, time=10m`; each part is optional.
    ///
    /// # Errors
    /// Names the word that is not a valid limit.
    pub fn parse(text: &str) -> Result<Budget, Box<Diagnostic>> {
        let mut budget = Budget::default();
        for word in text.split([',', ' ', '\n']).filter(|word| !word.is_empty()) {
            budget.set(word).ok_or_else(|| {
                let message = say!("`{word}` in {VARIABLE} is not a limit");
                exceeded(message, say!("write `users=1000, rate=500/s, time=10m`"))
            })?;
        }
        Ok(budget)
    }

    fn set(&mut self, word: &str) -> Option<()> {
        let (name, value) = word.split_once('=')?;
        match name {
            "users" => self.users = Some(units::parse_count(value).ok().filter(|it| *it > 0)?),
            "rate" => self.rate = Some(rate(value).filter(|it| *it > 0.0)?),
            "time" => self.time = Some(units::parse_time(value).ok().filter(|it| !it.is_zero())?),
            _ => return None,
        }
        Some(())
    }

    /// The stricter limits of both.
    pub fn and(self, other: Budget) -> Budget {
        fn least<T: PartialOrd>(one: Option<T>, other: Option<T>) -> Option<T> {
            match (one, other) {
                (Some(one), Some(other)) => Some(if other < one { other } else { one }),
                (one, other) => one.or(other),
            }
        }
        Budget {
            users: least(self.users, other.users),
            rate: least(self.rate, other.rate),
            time: least(self.time, other.time),
        }
    }

    /// Checks before the run sends anything that it cannot exceed a limit.
    ///
    /// # Errors
    /// Names the limit that the program or the search could exceed.
    pub fn permit(
        &self,
        program: &Program,
        search: Option<&Searched>,
    ) -> Result<(), Box<Diagnostic>> {
        if let Some(search) = search {
            return self.permit_search(search);
        }
        if let Some(max) = self.users {
            let asked = users(program, max)?;
            if asked > max {
                let (asked, max) = (format_count(asked), format_count(max));
                let message = say!("the scenario can have {asked} users; the budget allows {max}");
                return Err(exceeded(message, say!("reduce its users, for example with --users")));
            }
        }
        if let Some(max) = self.rate {
            let asked: f64 = loads(program).map(|(load, raised)| raised.rate(peak(load))).sum();
            if asked > max {
                let (asked, max) = (per_second(asked), per_second(max));
                let message = say!("the scenario starts up to {asked}; the budget allows {max}");
                return Err(exceeded(message, say!("reduce its rate, for example with --rate")));
            }
        }
        self.time.map_or(Ok(()), |max| permit_time(program, max))
    }

    fn permit_search(&self, search: &Searched) -> Result<(), Box<Diagnostic>> {
        let max = match search.varies_users {
            true => self.users.map(|users| (users as f64, format_count(users))),
            false => self.rate.map(|rate| (rate, per_second(rate))),
        };
        if let Some((max, shown)) = max
            && search.max.is_none_or(|asked| asked > max)
        {
            let message = say!("the search can go above the budget, which allows {shown}");
            return Err(exceeded(message, say!("limit it with --max {shown}")));
        }
        match self.time {
            Some(max) if search.time > max => Err(too_long(search.time, max, "--budget")),
            _ => Ok(()),
        }
    }
}

/// Writes it as [`Budget::parse`] reads it.
impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let users = self.users.map(|users| format!("users={users}"));
        let rate = self.rate.map(|rate| format!("rate={rate}/s"));
        let time = self.time.map(|time| format!("time={}ms", time.as_millis()));
        let limits: Vec<String> = users.into_iter().chain(rate).chain(time).collect();
        f.write_str(&limits.join(","))
    }
}

/// A bare number is per second.
fn rate(text: &str) -> Option<f64> {
    let (number, unit) = text.split_once('/').unwrap_or((text, "s"));
    units::parse_rate(&format!("{number}/{unit}")).ok()
}

fn exceeded(message: Said, help: Said) -> Box<Diagnostic> {
    Box::new(Diagnostic::error("budget-exceeded", message).help(help))
}

fn too_long(asked: Duration, max: Duration, flag: &str) -> Box<Diagnostic> {
    let (asked, max) = (format_duration(asked), format_duration(max));
    let message = say!("the load takes {asked}; the budget allows {max}");
    exceeded(message, say!("shorten it, for example with {flag}"))
}

fn per_second(rate: f64) -> String {
    format!("{}/s", (rate * 1000.0).round() / 1000.0)
}

/// Maximum number of concurrent users, if all loads have their maximum at the same time.
fn users(program: &Program, max: u64) -> Result<u64, Box<Diagnostic>> {
    let mut all = 0_u64;
    for (load, raised) in loads(program) {
        let mut arrived_max = 0;
        for phase in &load.phases {
            let Drive::Arrivals(arrivals) = &phase.drive else { continue };
            let Some(arrived) = arrivals.max else {
                let message = say!(
                    "phase `{}` has no maximum number of users; the budget allows {}",
                    phase.name,
                    format_count(max)
                );
                return Err(exceeded(message, say!("add `max: {max}` to the phase")));
            };
            arrived_max = arrived.max(arrived_max);
        }
        let planned = load.staying_max().saturating_add(arrived_max);
        all = all.saturating_add(raised.users(planned));
    }
    Ok(all)
}

/// The highest rate of a load.
fn peak(load: &Load) -> f64 {
    let rates = load.phases.iter().filter_map(|phase| phase.drive.rate());
    rates.map(Rate::peak).fold(0.0, f64::max)
}

fn permit_time(program: &Program, max: Duration) -> Result<(), Box<Diagnostic>> {
    let forecast = Forecast::new(program);
    if let Some(endless) = forecast.planned().find(|one| one.length.is_none()) {
        let name = &program.loads[endless.load].phases[endless.phase].name;
        let message =
            say!("phase `{name}` has no time limit; the budget allows {}", format_duration(max));
        return Err(exceeded(message, say!("add `for: {}` to the phase", format_duration(max))));
    }
    let ends = forecast.planned().filter_map(|one| Some(one.begin + one.length?));
    match ends.max().unwrap_or_default() {
        asked if asked > max => Err(too_long(asked, max, "--for")),
        _ => Ok(()),
    }
}

/// How far events of the scenario can raise a load.
struct Raised {
    users: u64,
    rate: f64,
    times: f64,
}

/// The loads, with the changes that events can make to each.
fn loads(program: &Program) -> impl Iterator<Item = (&Load, Raised)> {
    let raised = |number: usize| {
        let mut raised = Raised { users: 0, rate: 0.0, times: 1.0 };
        for event in &program.events {
            match event.action {
                Action::Amend { load, change } if usize::from(load) == number => raised.by(change),
                _ => {}
            }
        }
        raised
    };
    program.loads.iter().enumerate().map(move |(number, load)| (load, raised(number)))
}

impl Raised {
    fn by(&mut self, change: Steering) {
        match change {
            Steering::Change(Change::Times(times)) => self.times *= times.max(1.0),
            Steering::Change(Change::Users(users)) => self.users = self.users.max(users),
            Steering::Change(Change::Rate(rate)) => self.rate = self.rate.max(rate),
            Steering::Change(Change::EndPhase) | Steering::Pause | Steering::GoOn => {}
        }
    }

    fn users(&self, planned: u64) -> u64 {
        (planned.max(self.users) as f64 * self.times).ceil() as u64
    }

    fn rate(&self, planned: f64) -> f64 {
        planned.max(self.rate) * self.times
    }
}

#[cfg(test)]
mod tests {
    use throng_base::Source;
    use throng_scenario::{CompileOptions, compile};

    use super::*;

    fn program(load: &str) -> Program {
        let text = format!(
            "target: http://127.0.0.1:1\nsessions: {{it: {{steps: [http: GET /]}}}}\n{load}\n"
        );
        let options = CompileOptions::of_process(Vec::new(), "".into());
        let compiled = compile(&Source::new("it.yaml", text), &options);
        compiled.unwrap_or_else(|told| panic!("{load}: {told:?}")).0
    }

    /// The message of the refusal; empty without one.
    fn refused(budget: &str, load: &str) -> String {
        let budget = Budget::parse(budget).expect("a budget");
        let permitted = budget.permit(&program(load), None);
        permitted.err().map_or_else(String::new, |told| told.message.english())
    }

    #[test]
    fn loads_within_the_budget_are_permitted() {
        for load in [
            "load: [{users: 10, for: 60s}]",
            "load: [{arrivals: 5/s, max: 10, for: 30s}]",
            "load: [{iterations: 5/s, users: 10, for: 60s}]",
            "load: [{users: 5, for: 60s}]\nevents: [{at: 3s, amend: more 100%}]",
        ] {
            assert_eq!(refused("users=10, rate=5/s, time=1m", load), "", "{load}");
        }
        assert_eq!(refused("", "load: [{arrivals: 900/s, for: 9h}]"), "");
    }

    #[test]
    fn loads_above_the_budget_are_refused() {
        for (budget, load, wanted) in [
            ("users=10", "load: [{users: 11, for: 1s}]", "11 users"),
            ("users=10", "load: [{arrivals: 1/s, for: 1s, name: a}]", "`a` has no maximum"),
            ("users=10", "load: [{arrivals: 1/s, max: 11, for: 1s}]", "11 users"),
            ("users=10", "load: [{users: 6, for: 9s}]\nevents: [{at: 3s, amend: more 100%}]", "12"),
            ("users=10", "load: [{users: 6, for: 9s}]\nevents: [{at: 3s, amend: users 20}]", "20"),
            ("rate=5", "load: [{iterations: 6/s, users: 1, for: 1s}]", "6/s"),
            ("time=1m", "load: [{users: 1, for: 61s}]", "allows"),
            ("time=1m", "load: [{users: 1, for: 40s}, {for: 40s}]", "allows"),
            ("time=1m", "load: [{iterations: 9, users: 1, name: b}]", "`b` has no time limit"),
        ] {
            let said = refused(budget, load);
            assert!(said.contains(wanted), "{budget}, {load}: {said}");
        }
    }

    #[test]
    fn the_tighter_of_two_budgets_counts_and_is_read_back() {
        let one = Budget::parse("users=10,time=90s").expect("a budget");
        let other = Budget::parse("users=5 rate=2.5/s time=2m").expect("a budget");
        let both = one.and(other);
        assert_eq!(both.to_string(), "users=5,rate=2.5/s,time=90000ms");
        assert_eq!(Budget::parse(&both.to_string()).expect("a budget"), both);
        for wrong in ["users", "users=x", "rate=0", "time=-1s", "money=5"] {
            assert_eq!(Budget::parse(wrong).expect_err(wrong).code, "budget-exceeded");
        }
    }

    #[test]
    fn a_search_stays_below_the_budget() {
        let budget = Budget::parse("users=10, rate=5, time=1m").expect("a budget");
        let of = |varies_users, max, seconds| {
            let search = Searched { varies_users, max, time: Duration::from_secs(seconds) };
            budget.permit_search(&search).is_ok()
        };
        assert!(of(false, Some(5.0), 60) && of(true, Some(10.0), 60));
        assert!(!of(false, None, 60) && !of(false, Some(6.0), 60) && !of(true, Some(11.0), 60));
        assert!(!of(false, Some(5.0), 61));
    }
}
