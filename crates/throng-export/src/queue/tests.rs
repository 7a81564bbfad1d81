//! Outputs that work, that fail for a while, that are dead, and that block.

use std::sync::{Condvar, Mutex};

use super::*;
use throng_metrics::{Gauges, StepInterval};

/// The seconds that an output received: second, number of attempts, users online.
type Taken = Arc<Mutex<Vec<(u64, u64, u64)>>>;

/// Fails this many times, then works.
struct Stub {
    fails: u64,
    taken: Taken,
    /// While closed, each call blocks.
    gate: Arc<(Mutex<bool>, Condvar)>,
}

impl Export for Stub {
    fn second(&mut self, second: &Second<'_>) -> Result<(), Said> {
        let (open, opened) = &*self.gate;
        drop(opened.wait_while(open.lock().unwrap(), |open| !*open).unwrap());
        if self.fails > 0 {
            self.fails -= 1;
            return Err(Said::of_others("not now".to_string()));
        }
        let figures = second.figures;
        let count = figures.steps.iter().map(|row| row.count).sum();
        self.taken.lock().unwrap().push((figures.second, count, figures.gauges.users_online));
        Ok(())
    }
}

struct Run {
    exports: Exports,
    taken: Taken,
    gate: Arc<(Mutex<bool>, Condvar)>,
}

impl Run {
    fn begin(fails: u64, is_open: bool) -> Run {
        let taken = Taken::default();
        let gate = Arc::new((Mutex::new(is_open), Condvar::new()));
        let stub = Stub { fails, taken: Arc::clone(&taken), gate: Arc::clone(&gate) };
        let wanted: Output = "csv=x".parse().unwrap();
        let opened = Opened(vec![(wanted, Box::new(stub))]);
        Run { exports: opened.begin(&RunInfo::default()), taken, gate }
    }

    fn open(&self) {
        *self.gate.0.lock().unwrap() = true;
        self.gate.1.notify_all();
    }

    /// Two machines report a second.
    fn second(&mut self, second: u64) {
        for machine in 0..2 {
            let count = 10 + u64::from(machine);
            self.exports.line(&Interval {
                second,
                machine,
                steps: vec![StepInterval { count, ok: count, ..StepInterval::default() }],
                gauges: Gauges { users_online: 100, ..Gauges::default() },
                ..Interval::default()
            });
        }
    }

    fn finish(self) -> (ExportOutcome, Vec<(u64, u64, u64)>) {
        let mut told = self.exports.finish();
        (told.remove(0).1, self.taken.lock().unwrap().clone())
    }
}

#[test]
fn each_second_is_sent_once_with_all_machines() {
    let mut run = Run::begin(0, true);
    (0..5).for_each(|second| run.second(second));
    let (told, taken) = run.finish();
    assert_eq!(told, ExportOutcome { seconds: 5, lost: 0, trouble: None });
    let want: Vec<_> = (0..5).map(|second| (second, 21, 200)).collect();
    assert_eq!(taken, want);
}

#[test]
fn a_recovered_output_gets_the_waiting_seconds() {
    let mut run = Run::begin(3, false);
    (0..8).for_each(|second| run.second(second));
    run.open();
    let (told, taken) = run.finish();
    assert_eq!((told.seconds, told.lost, taken.len()), (8, 0, 8));
}

#[test]
fn a_dead_output_loses_only_its_own_seconds() {
    let mut run = Run::begin(u64::MAX, true);
    (0..8).for_each(|second| run.second(second));
    let (told, taken) = run.finish();
    assert_eq!((told.seconds, told.lost, taken.len()), (0, 8, 0));
    assert_eq!(told.trouble.unwrap().english(), "not now");
}

#[test]
fn a_slow_output_never_blocks_the_run() {
    let mut run = Run::begin(0, false);
    // No call blocks, although the output does.
    (0..1_000).for_each(|second| run.second(second));
    run.open();
    let (told, taken) = run.finish();
    assert!(told.lost > 0 && told.seconds >= 1, "{told:?}");
    assert_eq!(taken.len() as u64, told.seconds);
    assert!(taken.len() <= 2 * SECONDS_MAX);
}
