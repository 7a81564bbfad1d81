//! Results by machine label, for example by region. Labels with the same value on all machines are
//! ignored.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use throng_base::StepId;
use throng_metrics::{Interval, Merge as _, StepInterval, StepKind};

use super::kind_of;
use crate::directory::RunInfo;
use crate::gauges::AllGauges;
use crate::summary::{Attempts, LabelRow, Latency, Row};

/// Maximum number of labels, in the order of their names.
const LABELS_MAX: usize = 4;
/// Maximum number of values per label; the remaining values share a row.
const VALUES_MAX: usize = 32;
/// Maximum number of step rows for all values together; beyond it, only totals are kept.
const STEP_ROWS_MAX: usize = 1_000;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Labels {
    groups: Vec<Group>,
    /// By machine: its groups, one per label.
    of_machines: Vec<Vec<usize>>,
    with_steps: bool,
}

/// Machines with the same value of a label.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Group {
    label: String,
    value: Option<String>,
    /// The number of values in this row; 0 if it is the one above.
    others: usize,
    machines: u64,
    gauges: AllGauges,
    users_max: u64,
    total: StepInterval,
    steps: BTreeMap<u16, StepInterval>,
}

impl Labels {
    pub(super) fn new(info: &RunInfo) -> Labels {
        let machines = &info.generator.machines;
        let known: BTreeSet<&String> = machines.iter().flat_map(|it| it.labels.keys()).collect();
        let mut labels = Labels { of_machines: vec![Vec::new(); machines.len()], ..<_>::default() };
        let values = |label| -> BTreeSet<Option<&String>> {
            machines.iter().map(|machine| machine.labels.get(label)).collect()
        };
        let differing = known.into_iter().filter(|label| values(*label).len() > 1);
        for label in differing.take(LABELS_MAX) {
            labels.group(label, &values(label), info);
        }
        let steps =
            (0..info.tables.steps.len()).filter(|step| Attempts::new(info).holds(id(*step)));
        labels.with_steps = labels.groups.len().saturating_mul(steps.count()) <= STEP_ROWS_MAX;
        labels
    }

    fn group(&mut self, label: &str, values: &BTreeSet<Option<&String>>, info: &RunInfo) {
        let first = self.groups.len();
        // The last row contains one value, or all remaining ones.
        let apart = if values.len() > VALUES_MAX { VALUES_MAX - 1 } else { values.len() };
        let group = |value: Option<&String>| Group {
            label: label.to_string(),
            value: value.cloned(),
            ..Group::default()
        };
        self.groups.extend(values.iter().take(apart).map(|value| group(*value)));
        if apart < values.len() {
            self.groups.push(Group { others: values.len() - apart, ..group(None) });
        }
        for (machine, groups) in info.generator.machines.iter().zip(&mut self.of_machines) {
            let value = machine.labels.get(label);
            let place = values.iter().take(apart).position(|known| *known == value);
            let index = first + place.unwrap_or(apart);
            self.groups[index].machines += 1;
            groups.push(index);
        }
    }

    /// Adds an interval of a measured phase.
    pub(super) fn add(&mut self, load: usize, interval: &Interval, attempts: &Attempts) {
        let Some(own) = self.of_machines.get(usize::from(interval.machine)) else { return };
        if own.is_empty() {
            return;
        }
        let total = attempts.total(interval);
        for index in own {
            let group = &mut self.groups[*index];
            let users = group.gauges.add(load, interval).users_online;
            group.users_max = group.users_max.max(users);
            group.total.merge(&total);
            if self.with_steps {
                let rows = interval.steps.iter().filter(|row| attempts.holds(StepId(row.step)));
                for row in rows {
                    let sum = group.steps.entry(row.step).or_default();
                    sum.step = row.step;
                    sum.merge(row);
                }
            }
        }
    }

    pub(super) fn rows(&self, info: &RunInfo, measured: Duration) -> Vec<LabelRow> {
        let row = |name: String, kind: StepKind, figures: &StepInterval| {
            let service = info.service_times.then(|| Latency::of(figures.service()));
            let row = Row::new(name, kind, figures, measured);
            Row { service: service.unwrap_or_default(), ..row }
        };
        let told = |group: &Group| LabelRow {
            label: group.label.clone(),
            value: group.value.clone(),
            others: group.others,
            machines: group.machines,
            users_max: group.users_max,
            total: row("all".into(), StepKind::NONE, &group.total),
            steps: group
                .steps
                .values()
                .map(|sum| row(info.step_name(sum.step), kind_of(info, sum.step), sum))
                .collect(),
        };
        self.groups.iter().map(told).collect()
    }
}

fn id(step: usize) -> StepId {
    StepId(u16::try_from(step).unwrap_or(u16::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directory::{GeneratorInfo, MachineInfo, StepInfo, TablesInfo};

    const HTTP: &str = "http";

    fn info(regions: &[Option<&str>], steps: usize) -> RunInfo {
        let machine = |region: &Option<&str>| MachineInfo {
            labels: region.iter().map(|it| ("region".to_string(), it.to_string())).collect(),
            ..MachineInfo::default()
        };
        let step = |at: usize| StepInfo {
            name: format!("s{at}"),
            kind: HTTP.into(),
            ..StepInfo::default()
        };
        RunInfo {
            generator: GeneratorInfo {
                machines: regions.iter().map(machine).collect(),
                ..GeneratorInfo::default()
            },
            tables: TablesInfo { steps: (0..steps).map(step).collect(), ..TablesInfo::default() },
            ..RunInfo::default()
        }
    }

    fn interval(machine: u16, ok: u64) -> Interval {
        let row = StepInterval { begun: ok, count: ok, ok, ..StepInterval::default() };
        let mut interval = Interval { machine, steps: vec![row], ..Interval::default() };
        interval.gauges.users_online = ok;
        interval
    }

    fn rows(info: &RunInfo) -> Vec<LabelRow> {
        let mut labels = Labels::new(info);
        let attempts = Attempts::new(info);
        for machine in 0..info.generator.machines.len() {
            let machine = u16::try_from(machine).unwrap();
            labels.add(0, &interval(machine, u64::from(machine) + 1), &attempts);
        }
        labels.rows(info, Duration::from_secs(1))
    }

    #[test]
    fn machines_with_equal_labels_are_added_up() {
        let info = info(&[Some("east"), Some("west"), Some("east"), None], 2);
        let told = rows(&info);
        let told: Vec<_> = told
            .iter()
            .map(|row| (row.value.as_deref(), row.machines, row.users_max, row.total.ok))
            .collect();
        assert_eq!(told, [(None, 1, 4, 4), (Some("east"), 2, 4, 4), (Some("west"), 1, 2, 2)]);
        let row = &rows(&info)[1];
        assert_eq!((row.label.as_str(), row.others), ("region", 0));
        assert_eq!((row.steps[0].name.as_str(), row.steps[0].ok), ("s0", 4));
    }

    #[test]
    fn a_label_with_a_single_value_is_ignored() {
        assert_eq!(rows(&info(&[Some("east"), Some("east")], 1)), []);
        assert_eq!(rows(&info(&[None, None], 1)), []);
        assert_eq!(rows(&info(&[], 1)), []);
    }

    #[test]
    fn values_labels_and_step_rows_are_limited() {
        let names: Vec<String> = (0..100).map(|at| format!("r{at:03}")).collect();
        let regions: Vec<Option<&str>> = names.iter().map(|name| Some(name.as_str())).collect();
        let told = rows(&info(&regions, 1));
        assert_eq!(told.len(), VALUES_MAX);
        let last = told.last().unwrap();
        assert_eq!((last.value.clone(), last.others, last.machines), (None, 69, 69));
        assert_eq!(told.iter().map(|row| row.total.ok).sum::<u64>(), 5_050);
        let told = rows(&info(&regions[..VALUES_MAX], STEP_ROWS_MAX / VALUES_MAX + 1));
        assert!(told.iter().all(|row| row.steps.is_empty() && row.others == 0 && row.total.ok > 0));
        let mut info = info(&[None, None], 1);
        for label in 0..10 {
            info.generator.machines[0].labels.insert(format!("l{label}"), "x".into());
        }
        assert_eq!(rows(&info).len(), 2 * LABELS_MAX);
    }
}
