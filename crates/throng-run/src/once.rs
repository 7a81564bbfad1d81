//! Setup and teardown of a run: one user on one shard of the same engine as the load, before the
//! clock of the run starts and after it has stopped.

use std::sync::Arc;
use std::time::Duration;

use throng_base::units::format_duration;
use throng_base::{Exit, Said, Time};
use throng_engine::{Example, Kept, Options, StartError, Update, start};
use throng_expression::Value;
use throng_metrics::{Interval, StepInterval, StopBy};
use throng_program::{Once, OncePart, Program};
use throng_results::{
    Collector, Event, OnceFailure, OnceOutcome, OnceRun, OnceStep, Recorder, RunInfo,
};
use tokio::sync::mpsc::unbounded_channel;

use crate::ending::Ending;
use crate::live::Live;
use crate::{Conduct, Line, StopRequests, start_failed};

/// The result of a setup or teardown.
pub(crate) struct Done {
    pub(crate) told: OnceRun,
    /// The saved values, by slot.
    pub(crate) values: Arc<[Value]>,
}

/// Runs the setup or teardown, if the scenario has it. The first signal lets the current step end;
/// the second interrupts it.
pub(crate) async fn do_once(
    conduct: &Conduct<'_>,
    part: OncePart,
    options: &Options,
    signals: &mut StopRequests,
) -> Result<Option<Done>, StartError> {
    let program = &conduct.program;
    let Some(once) = program.once(part) else { return Ok(None) };
    let keep = Kept::default();
    let options = Options { shards: Some(1), keep: Some(keep.clone()), ..options.clone() };
    let mut run = start(&Arc::new(program.of_once(once)), &options)?;
    let mut seen = OnceProgress::default();
    let mut stops = 0;
    loop {
        tokio::select! {
            biased;
            () = signals.next() => {
                stops += 1;
                match stops {
                    1 => run.control.stop(),
                    _ => run.control.abort(),
                }
            }
            update = run.next() => match update {
                Some(update) => seen.update(conduct, update),
                None => break,
            },
        }
    }
    let lasted = run.clock.now() - Time::ZERO;
    run.join();
    let told = seen.told(part, once, program, lasted, stops > 0);
    tell(conduct, &told, lasted);
    Ok(Some(Done { told, values: keep.values() }))
}

/// Runs the teardown, if the scenario has one. If it cannot start, it has failed.
pub(crate) async fn tear_down(
    conduct: &Conduct<'_>,
    options: &Options,
    signals: &mut StopRequests,
) -> Option<OnceRun> {
    match do_once(conduct, OncePart::Teardown, options, signals).await {
        Ok(done) => done.map(|done| done.told),
        Err(error) => {
            let (_, diagnostic) = start_failed(&error);
            let detail = diagnostic.message;
            let (step, place) = (String::new(), String::new());
            Some(OnceRun {
                part: OncePart::Teardown,
                outcome: OnceOutcome::Failed,
                lasted_ns: 0,
                failure: Some(OnceFailure { step, place, cause: None, detail }),
                steps: Vec::new(),
            })
        }
    }
}

/// The setup failed: the load does not start, and the teardown runs.
pub(crate) async fn not_begun(
    conduct: &Conduct<'_>,
    setup: OnceRun,
    mut info: RunInfo,
    (recorder, mut live): (Option<Recorder>, Option<Live>),
    (options, mut signals): (&Options, StopRequests),
) -> Exit {
    info.interrupted = setup.outcome == OnceOutcome::Interrupted;
    let collector = Collector::new(&info);
    if let Some(live) = &mut live {
        // No one receives the commands to this run.
        let directory = recorder.as_ref().map(Recorder::directory);
        live.begin(&info, directory, unbounded_channel().0);
    }
    let mut ending = Ending { conduct, info, collector, recorder, live };
    ending.event(&Event::Once { at_ns: 0, once: Box::new(setup) });
    if let Some(teardown) = tear_down(conduct, options, &mut signals).await {
        ending.event(&Event::Once { at_ns: 0, once: Box::new(teardown) });
    }
    ending.event(&Event::RunEnded { at_ns: 0 });
    ending.conclude(true)
}

/// What the engine reported.
#[derive(Default)]
struct OnceProgress {
    sum: Interval,
    first: Option<Example>,
    stopped: Option<Said>,
}

impl OnceProgress {
    fn update(&mut self, conduct: &Conduct<'_>, update: Update) {
        match update {
            Update::Interval(interval) => self.sum.merge_later(&interval),
            Update::Example(example) => drop(self.first.get_or_insert(example)),
            Update::Stopped(stopped) if stopped.by == StopBy::Bug => {
                conduct.operator.tell(Line::Bug(stopped.reason.clone()));
                self.stopped = Some(stopped.reason);
            }
            Update::Stopped(stopped) if stopped.by == StopBy::Rule => {
                self.stopped = Some(stopped.reason);
            }
            Update::Stopped(stopped) => drop(self.stopped.get_or_insert(stopped.reason)),
            Update::Log(line) => {
                let text = conduct.program.secrets.mask_message(&line.text);
                conduct.operator.tell(Line::Log { at: None, text });
            }
            _ => {}
        }
    }

    fn told(
        self,
        part: OncePart,
        once: &Once,
        program: &Program,
        lasted: Duration,
        interrupted: bool,
    ) -> OnceRun {
        let is_done = self.sum.population.iterations_finished > 0 && self.stopped.is_none();
        let outcome = match is_done {
            true => OnceOutcome::Done,
            false if interrupted => OnceOutcome::Interrupted,
            false if lasted >= once.time_max => OnceOutcome::TimedOut,
            false => OnceOutcome::Failed,
        };
        let figures = |row: usize| self.sum.steps.iter().find(|it| usize::from(it.step) == row);
        let steps = once.steps.iter().zip(&once.places).enumerate();
        let steps = steps.filter_map(|(row, (step, place))| {
            let figures = figures(row)?;
            Some(step_of(step, place, figures))
        });
        let steps = steps.collect();
        let failure = (!is_done).then(|| self.failure(once, program)).flatten();
        OnceRun { part, outcome, lasted_ns: lasted.as_nanos() as u64, failure, steps }
    }

    /// The first step that failed, or else the rule that ended the part.
    fn failure(&self, once: &Once, program: &Program) -> Option<OnceFailure> {
        let masked = |said: &Said| {
            let mut said = said.clone();
            said.change_texts(&|text| program.secrets.mask(text).into_owned());
            said
        };
        let of_step = self.first.as_ref().map(|example| {
            let row = example.step.index();
            OnceFailure {
                step: once.steps.get(row).map_or_else(String::new, |step| step.name.clone()),
                place: once.places.get(row).cloned().unwrap_or_default(),
                cause: Some(example.cause),
                detail: masked(&example.detail),
            }
        });
        of_step.or_else(|| {
            let detail = masked(self.stopped.as_ref()?);
            Some(OnceFailure { step: String::new(), place: String::new(), cause: None, detail })
        })
    }
}

fn step_of(step: &throng_program::StepInfo, place: &str, figures: &StepInterval) -> OnceStep {
    OnceStep {
        name: step.name.clone(),
        kind: step.kind,
        place: place.to_string(),
        begun: figures.begun,
        ok: figures.ok,
        failed: figures.failed(),
        interrupted: figures.interrupted,
        mean_ns: figures.latency.mean(),
        max_ns: figures.latency.max(),
    }
}

fn tell(conduct: &Conduct<'_>, told: &OnceRun, lasted: Duration) {
    let (word, time) = (told.part.word(), format_duration(lasted));
    conduct.operator.tell(Line::Once(match told.outcome {
        OnceOutcome::Done => say!("`{word}` done in {time}"),
        OnceOutcome::Failed => say!("`{word}` failed after {time}"),
        OnceOutcome::TimedOut => say!("`{word}` did not finish in time: {time}"),
        OnceOutcome::Interrupted => say!("`{word}` interrupted after {time}"),
    }));
}
