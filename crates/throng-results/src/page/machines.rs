//! The host resources of each machine over time, in columns. Many machines and long runs have
//! coarser points.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use throng_metrics::Interval;

use super::number;
use crate::directory::RunInfo;

/// Maximum number of machines, starting with the busiest.
const MACHINES_MAX: usize = 64;
/// Maximum number of values of all machines together.
const NUMBERS_MAX: usize = 100_000;

/// By machine; empty for a single machine.
pub(super) struct Machines(Vec<Machine>);

struct Machine {
    name: String,
    points: Vec<Point>,
}

#[derive(Clone, Default)]
struct Point {
    /// By load.
    users: BTreeMap<u16, u64>,
    cpu_ns: u64,
    memory_bytes: u64,
    host_cpu: Option<f64>,
    bytes_in: u64,
    bytes_out: u64,
}

impl Machines {
    pub(super) fn new(info: &RunInfo) -> Machines {
        let machine = |name: &String| Machine { name: name.clone(), points: Vec::new() };
        let all: Vec<Machine> =
            info.generator.machines.iter().map(|it| machine(&it.name)).collect();
        Machines(if all.len() > 1 { all } else { Vec::new() })
    }

    /// Adds the results of one machine at a point.
    pub(super) fn add(&mut self, at: usize, load: u16, sum: &Interval) {
        let Some(machine) = self.0.get_mut(usize::from(sum.machine)) else { return };
        if machine.points.len() <= at {
            machine.points.resize(at + 1, Point::default());
        }
        let point = &mut machine.points[at];
        point.users.insert(load, sum.gauges.users_online);
        point.bytes_in += sum.traffic.bytes_in;
        point.bytes_out += sum.traffic.bytes_out;
        if let Some(resources) = &sum.generator.resources {
            point.cpu_ns += resources.cpu.time_ns();
            point.memory_bytes = point.memory_bytes.max(resources.memory_bytes);
            let host_cpu = point.host_cpu.unwrap_or(0.0).max(resources.host_cpu);
            point.host_cpu = Some((host_cpu * 1e3).round() / 1e3);
        }
    }

    /// The columns of each machine; a point covers several points of the run.
    pub(super) fn json(mut self) -> Value {
        if self.0.len() > MACHINES_MAX {
            let used = |machine: &Machine| machine.points.iter().map(|it| it.cpu_ns).sum::<u64>();
            self.0.sort_by_cached_key(|machine| std::cmp::Reverse(used(machine)));
            self.0.truncate(MACHINES_MAX);
        }
        let numbers: usize =
            self.0.iter().map(|machine| machine.points.len() * FIGURES.len()).sum();
        let points = numbers.div_ceil(NUMBERS_MAX).max(1);
        let rows: Vec<Value> = self.0.iter().map(|machine| machine.json(points)).collect();
        json!({ "points": points, "rows": rows })
    }
}

impl Machine {
    fn json(&self, points: usize) -> Value {
        let coarse: Vec<Point> = self.points.chunks(points).map(Point::of).collect();
        let mut told = Map::new();
        told.insert("name".into(), json!(self.name));
        for (name, of) in FIGURES {
            told.insert(name.into(), coarse.iter().map(|point| number(of(point))).collect());
        }
        Value::Object(told)
    }
}

type Figure = (&'static str, fn(&Point) -> Option<f64>);

const FIGURES: [Figure; 6] = [
    ("users_online", |it| Some(it.users.values().sum::<u64>() as f64)),
    // Unknown if nothing was read, as in one part of a second that a phase divides.
    ("cpu_ns", |it| it.host_cpu.map(|_| it.cpu_ns as f64)),
    ("memory_bytes", |it| it.host_cpu.map(|_| it.memory_bytes as f64)),
    ("host_cpu", |it| it.host_cpu),
    ("bytes_in", |it| Some(it.bytes_in as f64)),
    ("bytes_out", |it| Some(it.bytes_out as f64)),
];

impl Point {
    /// Merges consecutive points: sums of counts, maximum of the rest.
    fn of(points: &[Point]) -> Point {
        let mut all = Point::default();
        for point in points {
            all.cpu_ns += point.cpu_ns;
            all.bytes_in += point.bytes_in;
            all.bytes_out += point.bytes_out;
            all.memory_bytes = all.memory_bytes.max(point.memory_bytes);
            let larger = all.host_cpu.unwrap_or(0.0).max(point.host_cpu.unwrap_or(0.0));
            all.host_cpu = all.host_cpu.or(point.host_cpu).map(|_| larger);
            all.users.clone_from(&point.users);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use throng_metrics::{Cpu, Resources};

    use super::*;
    use crate::directory::MachineInfo;

    fn told(machine: u16, cpu_ns: u64, bytes_in: u64) -> Interval {
        let resources = Resources {
            cpu: Cpu { cpu_user_ns: cpu_ns, ..Cpu::default() },
            host_cpu: 0.5,
            memory_bytes: 7,
            ..Resources::default()
        };
        let mut line = Interval { machine, ..Interval::default() };
        (line.traffic.bytes_in, line.generator.resources) = (bytes_in, Some(resources));
        line
    }

    fn machines(count: usize) -> Machines {
        let mut info = crate::tests::sample::info();
        let machine = |at: usize| MachineInfo { name: format!("m{at}"), ..MachineInfo::default() };
        info.generator.machines = (0..count).map(machine).collect();
        Machines::new(&info)
    }

    #[test]
    fn each_machine_has_its_own_columns() {
        let mut all = machines(2);
        all.add(0, 0, &told(0, 100, 1));
        all.add(0, 0, &told(1, 300, 2));
        // A second in two phases: only one of its lines has resources.
        all.add(2, 0, &told(1, 30, 4));
        let mut later = Interval { machine: 1, ..Interval::default() };
        later.traffic.bytes_in = 5;
        all.add(2, 0, &later);
        let json = all.json();
        assert_eq!(json["points"], 1);
        assert_eq!(
            (&json["rows"][0]["name"], &json["rows"][1]["name"]),
            (&json!("m0"), &json!("m1"))
        );
        assert_eq!(json["rows"][0]["cpu_ns"], json!([100]));
        assert_eq!(json["rows"][1]["cpu_ns"], json!([300, null, 30]));
        assert_eq!(json["rows"][1]["bytes_in"], json!([2, 0, 9]));
        assert_eq!(machines(1).json()["rows"], json!([]), "it is all there is");
    }

    #[test]
    fn the_busiest_of_many_machines_are_shown_in_coarser_points() {
        let mut all = machines(100);
        for machine in 0..100 {
            for at in 0..600 {
                all.add(at, 0, &told(machine, u64::from(machine), 1));
            }
        }
        let json = all.json();
        let rows = json["rows"].as_array().unwrap();
        assert_eq!((rows.len(), &rows[0]["name"]), (MACHINES_MAX, &json!("m99")));
        assert_eq!(json["points"], 3, "64 machines x 600 points x 6 figures");
        assert_eq!(
            (&rows[0]["cpu_ns"][0], rows[0]["cpu_ns"].as_array().unwrap().len()),
            (&json!(297), 200)
        );
    }
}
