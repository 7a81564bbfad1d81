//! Computes concurrency from arrivals and durations: how many are present at once, and their total
//! time.

/// Events per second over time, in pieces that follow each other; times are in seconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flow {
    pieces: Vec<Piece>,
}

/// A piece in which the rate changes linearly.
#[derive(Clone, Copy, Debug)]
struct Piece {
    begin: f64,
    length: f64,
    from: f64,
    to: f64,
    /// Events of all earlier pieces, and the integral of their number until `begin`.
    before: f64,
    area: f64,
}

impl Piece {
    fn slope(&self) -> f64 {
        if self.length > 0.0 { (self.to - self.from) / self.length } else { 0.0 }
    }

    /// Events until this many seconds after the start of the piece.
    fn until(&self, seconds: f64) -> f64 {
        let within = seconds.clamp(0.0, self.length);
        self.before + (self.from + self.slope() * within / 2.0) * within
    }

    /// The integral of the number of events until this many seconds after the start of the piece.
    fn area_until(&self, seconds: f64) -> f64 {
        let within = seconds.clamp(0.0, self.length);
        let own = (self.from / 2.0 + self.slope() * within / 6.0) * within * within;
        let after = (seconds - within).max(0.0);
        self.area + self.before * within + own + self.until(self.length) * after
    }
}

/// Maximum number of durations that are distinguished when searching for the peak.
const PARTS_MAX: usize = 50;

impl Flow {
    /// Adds a piece that starts at the end of the last one, or later.
    pub(crate) fn add(&mut self, begin: f64, length: f64, (from, to): (f64, f64)) {
        let last = self.pieces.last();
        let before = last.map_or(0.0, |last| last.until(last.length));
        let area = last.map_or(0.0, |last| last.area_until(begin - last.begin));
        self.pieces.push(Piece { begin, length, from, to, before, area });
    }

    fn piece_at(&self, time: f64) -> Option<&Piece> {
        let next = self.pieces.partition_point(|piece| piece.begin < time);
        next.checked_sub(1).and_then(|index| self.pieces.get(index))
    }

    /// All events before this time.
    pub(crate) fn until(&self, time: f64) -> f64 {
        self.piece_at(time).map_or(0.0, |piece| piece.until(time - piece.begin))
    }

    /// The total time of all events until this time, if each lasts this many seconds.
    pub(crate) fn there(&self, time: f64, seconds: f64) -> f64 {
        let area =
            |time| self.piece_at(time).map_or(0.0, |piece| piece.area_until(time - piece.begin));
        area(time) - area(time - seconds)
    }

    /// The number present at a time, if each part of the events lasts its number of seconds.
    pub(crate) fn present_at(&self, time: f64, parts: &[(f64, f64)]) -> f64 {
        let of =
            |(part, seconds): &(f64, f64)| part * (self.until(time) - self.until(time - seconds));
        parts.iter().map(of).sum()
    }

    /// The peak of [`Flow::present_at`].
    pub(crate) fn present(&self, parts: &[(f64, f64)]) -> f64 {
        let times = self.turns(parts).into_iter();
        times.map(|time| self.present_at(time, parts)).fold(0.0, f64::max)
    }

    /// The times at which the number can peak: where the rate changes, where departures change, and
    /// where arrivals equal departures.
    pub(crate) fn turns(&self, parts: &[(f64, f64)]) -> Vec<f64> {
        let mut ends: Vec<f64> = self
            .pieces
            .iter()
            .flat_map(|piece| [piece.begin, piece.begin + piece.length])
            .collect();
        if parts.len() <= PARTS_MAX {
            let later = |(_, seconds): &(f64, f64)| {
                let seconds = if seconds.is_finite() { *seconds } else { 0.0 };
                self.pieces.iter().flat_map(move |piece| {
                    [piece.begin + seconds, piece.begin + piece.length + seconds]
                })
            };
            ends.extend(parts.iter().flat_map(later).collect::<Vec<_>>());
        }
        ends.sort_unstable_by(f64::total_cmp);
        ends.dedup();
        // Between two of these, the change is linear.
        let roots: Vec<f64> = ends
            .windows(2)
            .filter_map(|pair| {
                let [from, to] = [pair[0], pair[1]];
                let inside = (to - from) * 1e-6;
                let (rising, falling) =
                    (self.change(from + inside, parts), self.change(to - inside, parts));
                (rising > 0.0 && falling < 0.0)
                    .then(|| from + (to - from) * rising / (rising - falling))
            })
            .collect();
        ends.extend(roots);
        ends
    }

    /// The change of the number per second.
    fn change(&self, time: f64, parts: &[(f64, f64)]) -> f64 {
        let rate = |time: f64| {
            let of = |piece: &Piece| {
                let within = time - piece.begin;
                if within <= piece.length { piece.from + piece.slope() * within } else { 0.0 }
            };
            self.piece_at(time).map_or(0.0, of)
        };
        parts.iter().map(|(part, seconds)| part * (rate(time) - rate(time - seconds))).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_present_have_arrived_within_their_duration() {
        let mut flow = Flow::default();
        flow.add(0.0, 10.0, (0.0, 100.0));
        flow.add(10.0, 60.0, (100.0, 100.0));
        flow.add(100.0, 10.0, (50.0, 50.0));
        assert_eq!(flow.present(&[(1.0, 5.0)]), 500.0);
        assert_eq!(flow.present(&[(1.0, 65.0)]), 6_375.0);
        assert_eq!(flow.present(&[(1.0, f64::INFINITY)]), 7_000.0);
        assert_eq!(flow.present(&[(0.5, 1.0), (0.25, f64::INFINITY), (0.25, 0.0)]), 1_775.0);
        assert_eq!(flow.present(&[]), 0.0);
        assert_eq!(Flow::default().present(&[(1.0, f64::INFINITY)]), 0.0);
        flow.add(110.0, 0.0, (9.0, 9.0));
        assert_eq!(flow.present(&[(1.0, f64::INFINITY)]), 7_000.0);
    }

    #[test]
    fn with_a_falling_rate_the_peak_is_before_the_end() {
        let mut flow = Flow::default();
        flow.add(0.0, 10.0, (100.0, 0.0));
        // The last two seconds of arrivals: at first 200, minus the decrease.
        assert!((flow.present(&[(1.0, 2.0)]) - 180.0).abs() < 1e-3);
        // Half stay half a second; the others stay, so the peak is at the end.
        assert!((flow.present(&[(0.5, 0.5), (0.5, f64::INFINITY)]) - 251.25).abs() < 0.1);
    }

    #[test]
    fn time_spent_adds_up() {
        let mut flow = Flow::default();
        flow.add(0.0, 10.0, (0.0, 10.0));
        flow.add(20.0, 10.0, (5.0, 5.0));
        // 50 arrive, each for two seconds, and all have left.
        assert!((flow.there(20.0, 2.0) - 100.0).abs() < 1e-9);
        // Another 50 arrive; the last ten have spent half their time on average.
        assert!((flow.there(30.0, 2.0) - 190.0).abs() < 1e-9);
        let sum: f64 = (0..3000).map(|step| flow.until((f64::from(step) + 0.5) / 100.0)).sum();
        assert!((flow.there(30.0, f64::INFINITY) - sum / 100.0).abs() < 0.01);
    }
}
