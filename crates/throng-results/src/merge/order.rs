//! Sorts the lines of several machines: a second is passed on once all machines have reported it,
//! so that delays change no result. The number of waiting lines depends on the delay between
//! machines, not on the length of the run.

use std::collections::VecDeque;

use throng_metrics::Interval;

use crate::event::Event;

/// A line of a run directory.
#[derive(Clone, Debug, PartialEq)]
pub enum Line {
    Interval(Box<Interval>),
    Event(Event),
}

/// Lines that wait for other machines.
#[derive(Debug)]
pub struct Merge {
    machines: Vec<Machine>,
}

#[derive(Debug, Default)]
struct Machine {
    waiting: VecDeque<Line>,
    /// The last second that it reported.
    reached: Option<u64>,
    is_over: bool,
}

impl Merge {
    pub fn new(machines: usize) -> Merge {
        Merge { machines: (0..machines).map(|_| Machine::default()).collect() }
    }

    /// Adds a line of a machine, whose intervals must be in order.
    pub fn push(&mut self, machine: usize, line: Line) {
        let machine = &mut self.machines[machine];
        if let Line::Interval(interval) = &line {
            machine.reached = machine.reached.max(Some(interval.second));
        }
        machine.waiting.push_back(line);
    }

    /// The machine has ended.
    pub fn over(&mut self, machine: usize) {
        self.machines[machine].is_over = true;
    }

    /// The machine that all others wait for, with the last second it reported.
    pub fn slowest(&self) -> Option<(usize, Option<u64>)> {
        let going = self.machines.iter().enumerate().filter(|(_, machine)| !machine.is_over);
        going.map(|(number, machine)| (number, machine.reached)).min_by_key(|(_, it)| *it)
    }

    /// The next line in order, and its machine.
    pub fn pop(&mut self) -> Option<(usize, Line)> {
        let whole = match self.slowest() {
            Some((_, reached)) => reached,
            None => Some(u64::MAX),
        };
        let place = |(number, machine): (usize, &Machine)| match machine.waiting.front()? {
            Line::Event(_) => Some((0, number)),
            Line::Interval(interval) => {
                (Some(interval.second) <= whole).then_some((interval.second + 1, number))
            }
        };
        let (_, number) = self.machines.iter().enumerate().filter_map(place).min()?;
        Some((number, self.machines[number].waiting.pop_front()?))
    }
}

#[cfg(test)]
mod tests {
    use throng_base::Random;

    use super::*;

    fn second(second: u64) -> Line {
        Line::Interval(Box::new(Interval { second, ..Interval::default() }))
    }

    fn seconds(merge: &mut Merge) -> Vec<(usize, u64)> {
        let lines = std::iter::from_fn(|| merge.pop());
        let second = |(machine, line)| match line {
            Line::Interval(interval) => (machine, interval.second),
            Line::Event(_) => (machine, u64::MAX),
        };
        lines.map(second).collect()
    }

    #[test]
    fn a_second_is_passed_on_once_all_machines_have_reported_it() {
        let mut merge = Merge::new(2);
        (0..12).for_each(|at| merge.push(0, second(at)));
        assert_eq!(seconds(&mut merge), []);
        assert_eq!(merge.slowest(), Some((1, None)));
        // Ten seconds late, with a gap in which nothing happened.
        merge.push(1, second(0));
        merge.push(1, second(0));
        assert_eq!(seconds(&mut merge), [(0, 0), (1, 0), (1, 0)]);
        merge.push(1, second(3));
        assert_eq!(seconds(&mut merge), [(0, 1), (0, 2), (0, 3), (1, 3)]);
        // Events wait only for the earlier lines of their own machine.
        merge.push(1, Line::Event(Event::RunEnded { at_ns: 1 }));
        assert_eq!(seconds(&mut merge), [(1, u64::MAX)]);
        merge.over(1);
        assert_eq!(seconds(&mut merge).len(), 8);
        assert_eq!(merge.slowest(), Some((0, Some(11))));
    }

    #[test]
    fn seconds_are_in_order_for_any_order_of_arrival() {
        let mut random = Random::new(3);
        for _ in 0..200 {
            let machines = 1 + random.below(6) as usize;
            let mut merge = Merge::new(machines);
            let mut left: Vec<VecDeque<u64>> =
                (0..machines).map(|_| (0..20).filter(|_| random.below(3) > 0).collect()).collect();
            let count: usize = left.iter().map(VecDeque::len).sum();
            let mut told = Vec::new();
            while left.iter().any(|own| !own.is_empty()) {
                let machine = random.below(machines as u64) as usize;
                match left[machine].pop_front() {
                    Some(at) => merge.push(machine, second(at)),
                    None => merge.over(machine),
                }
                told.extend(seconds(&mut merge));
            }
            (0..machines).for_each(|machine| merge.over(machine));
            told.extend(seconds(&mut merge));
            assert_eq!(told.len(), count);
            assert!(told.is_sorted_by_key(|(_, second)| *second), "{told:?}");
        }
    }
}
