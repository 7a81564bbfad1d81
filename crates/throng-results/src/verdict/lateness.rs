//! Diagnostics about lateness: its extent, what used the processor, and how to fix it.

use std::cmp::Reverse;

use throng_base::units::format_count;
use throng_base::{Diagnostic, Said};

use super::{LOST_SHARE_TOLD, duration, not_in_time};
use crate::summary::{Generator, InvalidReason, LATENESS_NS_MAX, MachineRow, Summary};

/// A smaller share of stolen time or processor waiting does not explain lateness.
const STEAL_SHARE_TOLD: f64 = 0.02;
const WAITED_SHARE_TOLD: f64 = 0.05;

impl Summary {
    pub(super) fn late<'a>(&self, reasons: impl Iterator<Item = &'a InvalidReason>) -> Diagnostic {
        let message = say!("this run does not measure the target");
        let mut told = Diagnostic::error("generator-late", message).note(self.late_text());
        for reason in reasons {
            told = told.note(reason.text());
        }
        self.with_causes_of_lateness(told)
    }

    /// The result is valid, but less reliable.
    pub(super) fn strained(&self) -> Diagnostic {
        let message = match self.target_took_cpu() {
            None => say!("throng fell behind schedule; results are affected"),
            Some(_) => say!("throng fell behind; it shares this host with the target"),
        };
        let told = Diagnostic::warning("generator-strained", message).note(self.late_text());
        self.with_causes_of_lateness(told)
    }

    /// The lateness and, with several machines, the late ones.
    fn late_text(&self) -> Said {
        let late = self.late_machines();
        let text = |generator: &Generator| {
            say!(
                "throng was more than {} ms behind schedule in {} of {} seconds (worst {})",
                LATENESS_NS_MAX / 1_000_000,
                format_count(generator.late_seconds),
                format_count(generator.seconds),
                duration(generator.lateness.max_ns)
            )
        };
        match late.as_slice() {
            [] => text(&self.generator),
            [one] => say!("{}, on {}", text(&one.generator), one.name.clone()),
            [worst, more @ ..] => {
                let (name, text) = (worst.name.clone(), text(&worst.generator));
                match more {
                    [other] => {
                        let other = other.name.clone();
                        say!("{text}, on {name}; {other} also fell behind")
                    }
                    _ => say!("{text}, on {name}; {} more machines also fell behind", more.len()),
                }
            }
        }
    }

    /// Of several machines, the late ones, the latest first: all that were too late, or else the
    /// one with the most lateness.
    fn late_machines(&self) -> Vec<&MachineRow> {
        let mut late: Vec<&MachineRow> =
            self.parts.machines.iter().filter(|it| it.generator.late_seconds > 0).collect();
        late.sort_by_key(|it| Reverse((it.generator.late_seconds, it.generator.lateness.max_ns)));
        let too_late = |it: &&MachineRow| !not_in_time(&it.generator, self.measured).is_empty();
        let count = late.iter().filter(|it| too_late(it)).count();
        if count > 0 {
            late.retain(too_late);
        }
        late.truncate(count.max(1));
        late
    }

    fn with_causes_of_lateness(&self, mut told: Diagnostic) -> Diagnostic {
        for cause in self.causes_of_lateness() {
            told = told.note(cause);
        }
        told.help(self.help_of_lateness())
    }

    /// If users start one after another, there is no rate to reduce.
    fn help_of_lateness(&self) -> Said {
        let p = &self.users.population;
        let has_rate = [p.wanted, p.unmet, p.waited, p.dropped].iter().any(|count| *count > 0);
        let has_machines = self.parts.machines.len() > 1;
        if self.target_took_cpu().is_some() {
            return match (has_rate, self.generator.sustained_per_s) {
                (true, sustained @ 1..) => {
                    let sustained = format_count(sustained);
                    say!(
                        "run throng on another machine, or lower the rate to {sustained}/s, which \
                         this host sustained"
                    )
                }
                _ => say!("run throng on a different machine from the target, or lower the load"),
            };
        }
        let sustained = match self.generator.sustained_per_s {
            0 if has_machines => return say!("lower the load, or use more machines"),
            0 => return say!("lower the load, or use a faster host"),
            sustained => format_count(sustained),
        };
        match (has_rate, has_machines) {
            (true, false) => {
                say!(
                    "lower the rate to {sustained}/s, which this host sustained, or use a faster host"
                )
            }
            (true, true) => {
                say!(
                    "lower the rate to {sustained}/s, which these machines sustained, or use more \
                     machines"
                )
            }
            (false, false) => say!(
                "use fewer users, longer pauses or a faster host (this host sustained \
                 {sustained}/s)"
            ),
            (false, true) => say!(
                "use fewer users, longer pauses or more machines (these machines sustained \
                 {sustained}/s)"
            ),
        }
    }

    /// What used the processor, as far as the host reports it; the most likely cause comes last.
    fn causes_of_lateness(&self) -> Vec<Said> {
        let (generator, r) = (&self.generator, &self.generator.resources);
        let measured = self.measured.as_nanos().max(1) as f64;
        let mut causes = Vec::new();
        if r.cpu.run_queue_ns as f64 > measured * WAITED_SHARE_TOLD {
            let waited = duration(r.cpu.run_queue_ns);
            causes.push(say!("cause: throng's threads waited {waited} for a processor"));
        }
        if r.host_steal > STEAL_SHARE_TOLD {
            let share = r.host_steal * 100.0;
            causes.push(say!(
                "cause: other virtual machines took up to {share:.0} % of the processors"
            ));
        }
        if let Some(second) = generator.host_busy_from {
            causes.push(say!(
                "cause: this host's CPU was {:.0} % busy from {} onward",
                generator.host_cpu_max * 100.0,
                clock(second)
            ));
        }
        causes.extend(self.target_took_cpu().map(|(own, others, cores)| {
            say!(
                "cause: throng used {own:.1} of {cores} cores on average, and other processes \
                 used {others:.1}"
            )
        }));
        if r.cpu.throttled_ns as f64 > measured * LOST_SHARE_TOLD {
            causes.push(say!(
                "cause: a CPU quota stopped throng for {}, in {} of {} periods",
                duration(r.cpu.throttled_ns),
                format_count(r.cpu.throttled_periods),
                format_count(r.cpu.quota_periods)
            ));
        }
        causes
    }

    /// Mean number of cores used by throng and by other processes, and the number of cores: if a
    /// target is on this host, and throng was late because others used the processor.
    fn target_took_cpu(&self) -> Option<(f64, f64, u64)> {
        let (generator, cores) = (&self.generator, self.info.generator.host.cores?);
        let measured = self.measured.as_nanos().max(1) as f64;
        let waited = generator.resources.cpu.run_queue_ns as f64 > measured * WAITED_SHARE_TOLD;
        let is_short = generator.host_busy_from.is_some() || waited;
        let own = generator.cores;
        let others = generator.host_cpu_mean * cores as f64 - own;
        let is_it = self.info.targets.same_host
            && self.parts.machines.len() < 2
            && is_short
            && others > own;
        is_it.then_some((own, others, cores))
    }
}

/// A second of the run as on a clock: `00:19`, `1:02:03`.
fn clock(second: u64) -> String {
    let (hours, minutes, seconds) = (second / 3600, second / 60 % 60, second % 60);
    match hours {
        0 => format!("{minutes:02}:{seconds:02}"),
        _ => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}
