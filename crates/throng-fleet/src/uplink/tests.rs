//! An agent that sends lines to a log over a network with faults, and a controller that reads the
//! log and dies occasionally.

use throng_base::Random;

use super::*;
use crate::receipt::{Receipt, Taken};

const STEP: Duration = Duration::from_millis(20);

/// The log of the bus: it keeps what it has acknowledged.
#[derive(Default)]
struct Log {
    entries: Vec<u64>,
    away_until: Time,
}

/// The controller's state from the log.
#[derive(Default)]
struct Merged {
    receipt: Receipt,
    read: usize,
    sum: u64,
}

impl Merged {
    fn read(&mut self, log: &Log) {
        for &line in &log.entries[self.read..] {
            if self.receipt.take(line) == Taken::New {
                self.sum += figure(line);
            }
        }
        self.read = log.entries.len();
    }
}

fn figure(line: u64) -> u64 {
    line * line + 1
}

/// Packets to the log and its replies: arrival time, line, and whether it was stored.
type Packets = Vec<(Time, u64, Option<bool>)>;

struct World {
    random: Random,
    now: Time,
    uplink: Uplink,
    packets: Packets,
    log: Log,
    merged: Merged,
    lost: f64,
}

impl World {
    fn new(seed: u64) -> World {
        let mut random = Random::new(seed);
        let lost = random.uniform(0.0, 0.3);
        World {
            random,
            now: Time::ZERO,
            uplink: Uplink::default(),
            packets: Vec::new(),
            log: Log::default(),
            merged: Merged::default(),
            lost,
        }
    }

    fn pass(&mut self, line: u64, answer: Option<bool>) {
        if !self.random.chance(self.lost) {
            let late = Duration::from_millis(self.random.below(400));
            self.packets.push((self.now + late, line, answer));
        }
    }

    fn step(&mut self) {
        self.now = self.now + STEP;
        let (due, later): (Packets, Packets) =
            std::mem::take(&mut self.packets).into_iter().partition(|(at, ..)| *at <= self.now);
        self.packets = later;
        for (_, line, answer) in due {
            match answer {
                None if self.log.away_until > self.now => {}
                // It is full for a while.
                None if self.random.chance(0.02) => self.pass(line, Some(false)),
                None => {
                    self.log.entries.push(line);
                    self.pass(line, Some(true));
                }
                Some(true) => self.uplink.acknowledged(line),
                Some(false) => self.uplink.refused(line, self.now),
            }
        }
        while let Some(line) = self.uplink.send(self.now) {
            self.pass(line, None);
        }
        assert!(self.uplink.open.len() <= WINDOW && self.uplink.done_beyond.len() <= WINDOW);
        self.merged.read(&self.log);
    }

    fn trouble(&mut self, lines: u64) {
        match self.random.below(4) {
            // The bus is killed; packets in flight are lost.
            0 => {
                let down = Duration::from_millis(self.random.below(8_000));
                self.log.away_until = self.now + down;
                self.packets.clear();
                self.uplink.reconnected();
            }
            // The controller is killed: another one reads the log from the start.
            1 => self.merged = Merged::default(),
            // The supervisor is killed: another one has only the spool.
            2 => {
                self.packets.clear();
                self.uplink = Uplink::default();
                self.uplink.spooled(lines);
            }
            _ => self.uplink.reconnected(),
        }
    }
}

#[test]
fn every_line_arrives_and_counts_once_whatever_is_killed() {
    let mut twice = 0;
    for seed in 0..100 {
        let mut world = World::new(seed);
        let lines = 200 + world.random.below(600);
        for line in 1..=lines {
            world.uplink.spooled(line);
            world.step();
            if line % 97 == 0 {
                world.trouble(line);
            }
        }
        assert!(world.merged.receipt.ends_with(lines), "seed {seed}");
        for _ in 0..20_000 {
            if world.uplink.waiting() == 0 {
                break;
            }
            world.step();
        }
        assert_eq!(world.uplink.waiting(), 0, "seed {seed}: all is acknowledged at last");
        assert!(world.merged.receipt.is_complete(), "seed {seed}");
        assert_eq!(world.merged.sum, (0..lines).map(figure).sum::<u64>(), "seed {seed}");
        twice += world.log.entries.len() as u64 - lines;
    }
    assert!(twice > 1_000, "lines came twice: {twice}");
}

#[test]
fn waiting_lines_are_only_on_disk() {
    let mut uplink = Uplink::default();
    uplink.spooled(1_000_000);
    let at = Time::from_secs(1);
    let sent: Vec<u64> = std::iter::from_fn(|| uplink.send(at)).collect();
    assert_eq!(sent, (0..WINDOW as u64).collect::<Vec<_>>());
    assert_eq!(uplink.next_at(), at + AGAIN_AFTER);
    // The oldest one never arrives: at most a window is sent after it.
    for line in 1..WINDOW as u64 {
        uplink.acknowledged(line);
        uplink.acknowledged(line);
    }
    assert_eq!((uplink.send(at), uplink.waiting()), (None, 1_000_000 - WINDOW as u64 + 1));
    assert_eq!(uplink.send(at + AGAIN_AFTER), Some(0));
    uplink.refused(0, at + AGAIN_AFTER);
    assert_eq!(uplink.send(at + AGAIN_AFTER), None);
    assert_eq!(uplink.send(at + AGAIN_AFTER + REFUSED_PAUSE), Some(0));
    uplink.acknowledged(0);
    assert_eq!(uplink.send(at), Some(WINDOW as u64));
}
