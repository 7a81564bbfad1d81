//! Tests runs in segments: complete, killed, changed.

use std::fs;

use throng_metrics::{Gauges, TrafficInterval};

use super::*;
use crate::json::summary_json;
use crate::read::Run;
use crate::record::Recorder;
use crate::tests::sample;

/// The sample run with a million users, more than ten minutes, in segments of this size.
fn record(directory: &Path, segment_bytes: u64) {
    let info = sample::im_info();
    let mut recorder = Recorder::create(directory, &info, "name: x").unwrap();
    recorder.set_segment_bytes(segment_bytes);
    sample::im_events().iter().for_each(|event| recorder.event(event).unwrap());
    sample::im_intervals().iter().for_each(|interval| recorder.interval(interval).unwrap());
    recorder.finish(&info).unwrap();
}

fn segment_names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder(directory)).into_iter().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn told(directory: &Path) -> serde_json::Value {
    summary_json(&Run::open(directory).unwrap().summary().unwrap())
}

fn told_of_lines(directory: &Path) -> serde_json::Value {
    summary_json(&Run::open(directory).unwrap().summary_beside(|_| {}).unwrap())
}

fn sums(directory: &Path, seconds: u64) -> Vec<Interval> {
    let mut sums = Vec::new();
    Run::open(directory).unwrap().summed(seconds, |sum| sums.push(sum)).unwrap();
    sums
}

#[test]
fn a_run_in_segments_has_the_same_summary_as_in_one_file() {
    let parent = tempfile::tempdir().unwrap();
    let (whole, pieces) = (parent.path().join("whole"), parent.path().join("pieces"));
    record(&whole, u64::MAX);
    record(&pieces, 100_000);
    assert!(segment_names(&whole).is_empty());
    let names = segment_names(&pieces);
    let count = names.iter().filter(|name| name.ends_with("0.ndjson.zst")).count();
    assert!(names.len() > 20 && count > 0, "{names:?}");
    assert!(
        names.iter().all(|name| name.ends_with(".zst") || name == CHECKPOINT_FILE),
        "{names:?}"
    );
    let lines = |directory: &Path| -> Vec<Interval> {
        Run::open(directory).unwrap().intervals().unwrap().collect()
    };
    assert_eq!(lines(&whole), lines(&pieces));
    let without_place = |mut value: serde_json::Value| {
        value["run"]["directory"].take();
        value
    };
    let one = without_place(told(&whole));
    assert_eq!(one, without_place(told_of_lines(&pieces)));
    assert_eq!(one, without_place(told(&pieces)), "from the checkpoint");
    for seconds in [1, 10, 60, 120, 3_600] {
        let one = together(seconds, sums(&whole, seconds));
        assert_eq!(one, together(seconds, sums(&pieces, seconds)), "{seconds}");
        let places: std::collections::BTreeSet<(u64, u16)> =
            sample::im_intervals().iter().map(|line| (line.second / seconds, line.phase)).collect();
        assert!(one.keys().copied().eq(places), "{seconds}");
    }
}

/// Adds sums of the same time, because a segment can end within a minute.
fn together(seconds: u64, sums: Vec<Interval>) -> BTreeMap<(u64, u16), Interval> {
    let mut all: BTreeMap<(u64, u16), Interval> = BTreeMap::new();
    for sum in sums {
        let place = (sum.second / seconds, sum.phase);
        match all.get_mut(&place) {
            Some(known) => known.merge_later(&sum),
            None => drop(all.insert(place, sum)),
        }
    }
    all
}

/// What a kill or a full disk can leave behind.
#[test]
fn an_unfinished_segment_is_read_as_lines() {
    let parent = tempfile::tempdir().unwrap();
    let run = parent.path().join("run");
    record(&run, 100_000);
    let want = told(&run);
    let checkpoint = folder(&run).join(CHECKPOINT_FILE);
    let last = u32::try_from(Checkpoint::read(&run, &sample::im_info()).unwrap().segments.len());
    let last = last.unwrap();
    let unpack = |number: u32| {
        let mut lines = Vec::new();
        open(&packed_path(&run, number)).unwrap().read_to_end(&mut lines).unwrap();
        fs::write(plain_path(&run, number), lines).unwrap();
    };
    // The compressed file is complete, and the plain one was not removed yet.
    unpack(2);
    assert_eq!((told(&run), told_of_lines(&run)), (want.clone(), want.clone()));
    // Nothing is compressed yet.
    fs::remove_file(packed_path(&run, 2)).unwrap();
    fs::remove_file(minutes_path(&run, 2)).unwrap();
    assert_eq!(told(&run), want);
    // The checkpoint is missing or incomplete.
    fs::write(&checkpoint, &fs::read(&checkpoint).unwrap()[..1_000]).unwrap();
    assert_eq!(told(&run), want);
    fs::remove_file(&checkpoint).unwrap();
    assert_eq!(told(&run), want);
    // The file is being renamed.
    unpack(last);
    fs::remove_file(packed_path(&run, last)).unwrap();
    let rest = fs::read(run.join(INTERVALS_FILE)).unwrap();
    fs::write(plain_path(&run, last + 1), rest).unwrap();
    fs::remove_file(run.join(INTERVALS_FILE)).unwrap();
    assert_eq!(told(&run), want);
}

#[test]
fn a_changed_or_missing_segment_is_detected() {
    let parent = tempfile::tempdir().unwrap();
    let run = parent.path().join("run");
    record(&run, 100_000);
    let want = told(&run);
    let path = packed_path(&run, 3);
    let packed = fs::read(&path).unwrap();
    let mut edited = packed.clone();
    edited[packed.len() / 2] ^= 0x55;
    fs::write(&path, &edited).unwrap();
    let damage = Run::open(&run).unwrap().summary().unwrap().verdict.damage;
    assert!(damage.missing + damage.unreadable > 1 && damage.totals.is_some(), "{damage:?}");
    fs::remove_file(&path).unwrap();
    let damage = Run::open(&run).unwrap().summary().unwrap().verdict.damage;
    assert!(damage.missing > 10 && damage.unreadable == 0, "{damage:?}");
    fs::write(&path, &packed).unwrap();
    assert_eq!(told(&run), want);
}

#[test]
fn sums_include_parts_of_a_second_and_late_lines() {
    let line = |second: u64, phase: u16, online: u64| Interval {
        second,
        phase,
        shards: 1,
        traffic: TrafficInterval { bytes_in: 10, ..TrafficInterval::default() },
        gauges: Gauges { users_online: online, ..Gauges::default() },
        ..Interval::default()
    };
    let mut told = Vec::new();
    let mut tell = |sum: Interval| {
        told.push((sum.second, sum.phase, sum.traffic.bytes_in, sum.gauges.users_online));
    };
    let mut sums = Sums::new(10);
    for (second, phase, online) in
        [(0, 0, 5), (0, 0, 6), (3, 0, 1), (3, 1, 2), (12, 1, 9), (9, 0, 4), (25, 1, 7), (2, 0, 3)]
    {
        sums.add(line(second, phase, online), &mut tell);
    }
    sums.finish(&mut tell);
    let want = [(9, 0, 40, 4), (3, 1, 10, 2), (2, 0, 10, 3), (12, 1, 10, 9), (25, 1, 10, 7)];
    assert_eq!(told, want);
}
