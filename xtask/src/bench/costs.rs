//! The cost of a population for both ends and the machine, from readings while users started,
//! stayed and left.

use std::time::Duration;

use super::look::{Host, Look};
use super::report::{Line, in_bytes, spaced};

const GIBIBYTE: f64 = 1024.0 * 1024.0 * 1024.0;

/// A cost with its maximum.
pub(super) type Asked = (&'static str, f64);

pub(super) struct Costs<'a> {
    before: &'a Host,
    looks: &'a [Look],
    users: u64,
    /// The maximum number of logged-in users, as the target counts them, up to the requested
    /// number: the divisor of costs.
    came: u64,
    /// The last reading before the first user, the first one with this many users, and the last
    /// one.
    empty: Option<&'a Look>,
    full: Option<&'a Look>,
    last: Option<&'a Look>,
}

impl<'a> Costs<'a> {
    pub(super) fn new(before: &'a Host, looks: &'a [Look], users: u64) -> Costs<'a> {
        let came = looks.iter().map(|look| look.logged_in).max().unwrap_or(0).min(users);
        let is_full = |look: &&Look| came > 0 && look.logged_in >= came;
        let (full, last) = (looks.iter().find(is_full), looks.iter().rfind(is_full));
        let empty = looks.iter().take_while(|look| look.logged_in == 0).last();
        Costs { before, looks, users, came, empty, full, last }
    }

    /// The looks between which all were there and things were done: from the last one before the
    /// first, or from the middle of the time where that was on the way; until the last was done.
    pub(super) fn working(&self) -> Option<(&'a Look, &'a Look)> {
        let (full, last) = (self.full?, self.last?);
        let held = self.looks.iter().filter(|look| (full.at..=last.at).contains(&look.at));
        let idle = held.clone().rfind(|look| look.done == 0);
        let middle = full.at + (last.at - full.at) / 2;
        let begin = idle.or_else(|| held.clone().find(|look| look.at >= middle))?;
        let end = held.clone().find(|look| look.done == last.done)?;
        (end.at > begin.at && end.done > begin.done).then_some((begin, end))
    }

    pub(super) fn lines(&self, asked: &[Asked]) -> Vec<Line> {
        let users = Line::new("maximum number of users logged in", spaced(self.users), {
            Some(spaced(self.came))
        });
        let line = |(what, unit, figure): (&'static str, &str, Option<f64>)| {
            let most = asked.iter().find(|(name, _)| *name == what).map(|(_, most)| *most);
            let text = |figure: f64| match unit {
                "B" => in_bytes(figure),
                _ => format!("{figure:.2} {unit}").trim_end().to_string(),
            };
            let asked = most.map_or(String::new(), |most| format!("≤ {}", text(most)));
            let met = most.zip(figure).map(|(most, figure)| figure <= most);
            Line::new(what, asked, figure.map(text)).met(met)
        };
        std::iter::once(users.met(Some(self.came >= self.users)))
            .chain(self.time().into_iter().chain(self.memory()).map(line))
            .collect()
    }

    fn time(&self) -> Vec<(&'static str, &'static str, Option<f64>)> {
        let filling = self.empty.zip(self.full);
        let gone = self.last.and_then(|last| {
            let mut rest = self.looks.iter().filter(|look| look.at > last.at);
            // The last user may have left since the last reading.
            rest.find(|look| look.logged_in == 0).or(self.looks.last())
        });
        let seconds = |from: &Look, to: &Look| (to.at - from.at).as_secs_f64();
        let spent = |(from, to): (&Look, &Look), cpu: fn(&Look) -> Duration| {
            cpu(to).saturating_sub(cpu(from)).as_secs_f64()
        };
        let each = |cpu| filling.map(|span| spent(span, cpu) * 1e6 / self.came as f64);
        let done = |(from, to): (&Look, &Look)| (to.done - from.done) as f64;
        let of_each = |cpu| self.working().map(|span| spent(span, cpu) * 1e6 / done(span));
        let cores = |cpu| self.working().map(|span| spent(span, cpu) / seconds(span.0, span.1));
        let tool = |look: &Look| look.tool.cpu;
        let target = |look: &Look| look.target.cpu;
        let busy = |look: &Look| look.host.busy;
        let others = cores(busy).zip(cores(tool)).zip(cores(target));
        vec![
            ("time until all users are online", "s", filling.map(|(from, to)| seconds(from, to))),
            ("time until all users have left", "s", {
                self.last.zip(gone).map(|(from, to)| seconds(from, to))
            }),
            ("CPU per established connection, generator", "µs", each(tool)),
            ("CPU per established connection, target", "µs", each(target)),
            ("events per second with all users online", "", {
                self.working().map(|span| done(span) / seconds(span.0, span.1))
            }),
            ("CPU per event, generator", "µs", of_each(tool)),
            ("CPU per event, target", "µs", of_each(target)),
            ("CPU with all users online, generator", "cores", cores(tool)),
            ("CPU with all users online, target", "cores", cores(target)),
            ("CPU with all users online, other processes", "cores", {
                others.map(|((all, tool), target)| (all - tool - target).max(0.0))
            }),
        ]
    }

    fn memory(&self) -> Vec<(&'static str, &'static str, Option<f64>)> {
        let looks = self.looks.iter();
        let all = looks.clone().filter(|look| self.came > 0 && look.logged_in >= self.came);
        let each = |bytes: fn(&Look) -> u64| {
            all.clone().map(bytes).max().map(|most| most as f64 / self.came as f64)
        };
        let most = |bytes: fn(&Look) -> u64| looks.clone().map(bytes).max().map(|it| it as f64);
        let free = looks.clone().map(|look| look.host.available_bytes).min().map(|it| it as f64);
        let used = free.map(|free| self.before.total_bytes as f64 - free);
        let more = free.map(|free| self.before.available_bytes as f64 - free);
        let gib = |bytes: Option<f64>| bytes.map(|bytes| bytes / GIBIBYTE);
        vec![
            ("memory per user, generator", "B", each(|look| look.tool.resident_bytes)),
            ("memory per connection, target", "B", each(|look| look.target.resident_bytes)),
            ("memory per socket, kernel", "B", self.kernel_bytes()),
            ("sockets", "in use", most(|look| look.host.sockets)),
            ("maximum memory of the machine", "GiB", gib(used)),
            ("increase during the run", "GiB", gib(more)),
            ("minimum free memory", "GiB", gib(free)),
            ("maximum kernel slab", "GiB", gib(most(|look| look.host.slab_bytes))),
        ]
    }

    /// The decrease of the machine's free memory that neither process accounts for, per additional
    /// socket.
    fn kernel_bytes(&self) -> Option<f64> {
        let held = self.last?;
        let gone = self.before.available_bytes.checked_sub(held.host.available_bytes)?;
        let kernel = gone.checked_sub(held.tool.resident_bytes + held.target.resident_bytes)?;
        let sockets =
            held.host.sockets.checked_sub(self.before.sockets).filter(|more| *more > 0)?;
        Some(kernel as f64 / sockets as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::look::Usage;
    use crate::bench::report;

    fn look(at: u64, logged_in: u64, done: u64) -> Look {
        let usage = Usage { cpu: Duration::from_millis(at * 10), resident_bytes: 100 * logged_in };
        let host = Host {
            busy: Duration::from_millis(at * 30),
            total_bytes: 1 << 30,
            available_bytes: (1 << 29) - 1000 * logged_in,
            sockets: logged_in * 2,
            slab_bytes: 0,
        };
        let at = Duration::from_secs(at);
        Look { at, tool: usage, target: usage, host, logged_in, done }
    }

    fn working(looks: &[Look]) -> Option<(u64, u64)> {
        let before = Host::default();
        let costs = Costs::new(&before, looks, 100);
        costs.working().map(|(from, to)| (from.at.as_secs(), to.at.as_secs()))
    }

    #[test]
    fn costs_above_the_maximum_are_marked() {
        let before = look(0, 0, 0).host;
        let looks =
            [look(0, 0, 0), look(4, 100, 0), look(5, 100, 0), look(9, 100, 80), look(12, 0, 80)];
        let costs = Costs::new(&before, &looks, 100);
        let asked =
            [("memory per user, generator", 100.0), ("time until all users are online", 3.0)];
        let text = report::lines(&costs.lines(&asked));
        for line in [
            "| maximum number of users logged in | 100 | 100 | met |",
            "| time until all users are online | ≤ 3.00 s | 4.00 s | **not met** |",
            "| time until all users have left |  | 3.00 s |  |",
            "| CPU per established connection, target |  | 400.00 µs |  |",
            "| events per second with all users online |  | 20.00 |  |",
            "| CPU per event, generator |  | 500.00 µs |  |",
            "| CPU with all users online, other processes |  | 0.01 cores |  |",
            "| memory per user, generator | ≤ 100 B | 100 B | met |",
            "| memory per socket, kernel |  | 400 B |  |",
            "| maximum memory of the machine |  | 0.50 GiB |  |",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
    }

    #[test]
    fn work_is_from_the_last_idle_look_or_from_the_middle() {
        let talk = [look(0, 0, 0), look(1, 100, 0), look(2, 100, 0), look(3, 100, 5)];
        assert_eq!(working(&talk), Some((2, 3)));
        let beats = [0, 2, 4, 6, 8].map(|at| look(at, if at > 1 { 100 } else { 60 }, at + 1));
        assert_eq!(working(&beats), Some((6, 8)));
        assert_eq!(working(&[look(0, 100, 7), look(1, 100, 7)]), None);
        assert_eq!(working(&[]), None);
    }
}
