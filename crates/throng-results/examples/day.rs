//! Writes the run directory of a day with 200 steps as a run does, reads it back, and prints the
//! cost of both: `cargo run --release -p throng-results --example day -- DIRECTORY [HOURS
//! [PER_SECOND]]`.

#![allow(clippy::disallowed_methods, clippy::print_stdout, reason = "it says what it has measured")]

use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use throng_base::Random;
use throng_metrics::{Interval, StepInterval};
use throng_results::{Damage, Event, PhaseInfo, Recorder, Run, RunInfo, StepInfo, TablesInfo};

const STEPS: u16 = 200;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let directory = Path::new(arguments.first().ok_or("give a directory that is not there")?);
    let number = |at: usize, or: u64| arguments.get(at).map_or(Ok(or), |text| text.parse());
    let (seconds, per_second) = (number(1, 24)? * 3_600, number(2, 1_000)?);
    let begun = Instant::now();
    let lines = write(directory, seconds, per_second)?;
    let wrote = begun.elapsed();
    println!("{lines} requests in {seconds} s, written in {:.1} s", wrote.as_secs_f64());
    println!("record: {:.1} MB", bytes(directory)? as f64 / 1e6);
    let begun = Instant::now();
    let summary = Run::open(directory).map_err(|told| told.render(false))?.summary();
    let summary = summary.map_err(|told| told.render(false))?;
    assert_eq!(
        (summary.steps.total.count, summary.verdict.damage.clone()),
        (lines, Damage::default())
    );
    println!("summary: {:.2} s", begun.elapsed().as_secs_f64());
    let begun = Instant::now();
    let run = Run::open(directory).map_err(|told| told.render(false))?;
    let mut sums = 0;
    run.summed(60, |_| sums += 1).map_err(|told| told.render(false))?;
    println!("{sums} sums of a minute: {:.2} s", begun.elapsed().as_secs_f64());
    Ok(())
}

/// Returns the total number of requests.
fn write(directory: &Path, seconds: u64, per_second: u64) -> Result<u64, Box<dyn Error>> {
    let phase = PhaseInfo { name: "load".into(), measured: true, ..PhaseInfo::default() };
    let step = |number| StepInfo {
        name: format!("GET /step/{number}"),
        kind: "http".into(),
        ..StepInfo::default()
    };
    let mut info = RunInfo {
        tables: TablesInfo {
            steps: (0..STEPS).map(step).collect(),
            phases: vec![phase],
            ..TablesInfo::default()
        },
        ..RunInfo::new("a day", Duration::from_secs(1_795_262_581))
    };
    let mut recorder = Recorder::create(directory, &info, "name: a day\n")?;
    recorder.event(&Event::PhaseBegun { at_ns: 0, phase: 0 })?;
    let mut random = Random::new(1);
    let medians: Vec<f64> = (0..STEPS).map(|_| 1e6 + random.exponential(10e6)).collect();
    let mut count = 0;
    for second in 0..seconds {
        let interval = interval(second, per_second, &medians, &mut random);
        count += interval.steps.iter().map(|row| row.count).sum::<u64>();
        recorder.interval(&interval)?;
    }
    let end_ns = seconds * 1_000_000_000;
    recorder.event(&Event::PhaseEnded { at_ns: end_ns, phase: 0 })?;
    recorder.event(&Event::RunEnded { at_ns: end_ns })?;
    info.time.ended = Some(info.time.started.clone());
    recorder.finish(&info)?;
    Ok(count)
}

fn interval(second: u64, per_second: u64, medians: &[f64], random: &mut Random) -> Interval {
    let mut interval = Interval { second, shards: 2, ..Interval::default() };
    let mean = per_second / u64::from(STEPS);
    for (step, median) in (0..).zip(medians) {
        let count = mean / 2 + random.below(mean + 1);
        let mut row =
            StepInterval { step, begun: count, count, ok: count, ..StepInterval::default() };
        for _ in 0..count {
            let spread = random.exponential(1.0) + random.exponential(1.0);
            let latency = median * (0.5 + spread / 3.0);
            row.latency.record(latency as u64);
            row.first_byte.record((latency - 20e3 - random.exponential(30e3)).max(1e3) as u64);
        }
        row.codes = vec![(200, count)];
        (row.bytes_in, row.bytes_out) = (count * (800 + u64::from(step)), count * 180);
        interval.traffic.bytes_in += row.bytes_in;
        interval.traffic.bytes_out += row.bytes_out;
        interval.steps.push(row);
    }
    interval.gauges.users_online = 500 + second % 100;
    interval.gauges.users_present = interval.gauges.users_online;
    (0..per_second / 10).for_each(|_| interval.generator.lateness.record(random.below(200_000)));
    interval
}

fn bytes(path: &Path) -> std::io::Result<u64> {
    let metadata = std::fs::metadata(path)?;
    if metadata.is_file() {
        return Ok(metadata.len());
    }
    std::fs::read_dir(path)?.map(|entry| bytes(&entry?.path())).sum()
}
