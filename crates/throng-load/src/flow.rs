//! What comes over time and is there for a while: how many of it there are at once, and for how
//! long all of it together.

/// Events per second over time, in pieces that follow each other; times are in seconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flow {
    pieces: Vec<Piece>,
}

/// Evenly more or fewer a second.
#[derive(Clone, Copy, Debug)]
struct Piece {
    begin: f64,
    length: f64,
    from: f64,
    to: f64,
    /// All events of the pieces before, and their number added up over the time until `begin`.
    before: f64,
    area: f64,
}

impl Piece {
    fn slope(&self) -> f64 {
        if self.length > 0.0 { (self.to - self.from) / self.length } else { 0.0 }
    }

    /// Events until so many seconds after its begin.
    fn until(&self, seconds: f64) -> f64 {
        let within = seconds.clamp(0.0, self.length);
        self.before + (self.from + self.slope() * within / 2.0) * within
    }

    /// The number of events, added up over the time until so many seconds after its begin.
    fn area_until(&self, seconds: f64) -> f64 {
        let within = seconds.clamp(0.0, self.length);
        let own = (self.from / 2.0 + self.slope() * within / 6.0) * within * within;
        let after = (seconds - within).max(0.0);
        self.area + self.before * within + own + self.until(self.length) * after
    }
}

/// More times than these are not told apart where the number is highest.
const PARTS_MAX: usize = 50;

impl Flow {
    /// Goes on with a piece that begins where the last one ends, or later.
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

    /// Seconds that all events until this time have been there together, if each is for so many.
    pub(crate) fn there(&self, time: f64, seconds: f64) -> f64 {
        let area =
            |time| self.piece_at(time).map_or(0.0, |piece| piece.area_until(time - piece.begin));
        area(time) - area(time - seconds)
    }

    /// How many there are at this time when such a part of them is there for so many seconds each.
    pub(crate) fn present_at(&self, time: f64, parts: &[(f64, f64)]) -> f64 {
        let of =
            |(part, seconds): &(f64, f64)| part * (self.until(time) - self.until(time - seconds));
        parts.iter().map(of).sum()
    }

    /// The most there are at once, see [`Flow::present_at`].
    pub(crate) fn present(&self, parts: &[(f64, f64)]) -> f64 {
        let times = self.turns(parts).into_iter();
        times.map(|time| self.present_at(time, parts)).fold(0.0, f64::max)
    }

    /// The moments at which there may be the most of them: where the flow changes, where that is
    /// seen in who goes, and where as many go as come.
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
        // Between two of them the change of the number is even.
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

    /// How many more there are per second.
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
    fn who_is_there_at_once_has_come_within_its_time() {
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
    fn where_fewer_and_fewer_come_most_are_there_before_the_end() {
        let mut flow = Flow::default();
        flow.add(0.0, 10.0, (100.0, 0.0));
        // Of each the last two seconds: at first 200 less what becomes less.
        assert!((flow.present(&[(1.0, 2.0)]) - 180.0).abs() < 1e-3);
        // Those of a half second go at once, and those who stay are most at the end.
        assert!((flow.present(&[(0.5, 0.5), (0.5, f64::INFINITY)]) - 251.25).abs() < 0.1);
    }

    #[test]
    fn time_that_is_spent_adds_up() {
        let mut flow = Flow::default();
        flow.add(0.0, 10.0, (0.0, 10.0));
        flow.add(20.0, 10.0, (5.0, 5.0));
        // 50 come, each is there for two seconds, and all of them are over by then.
        assert!((flow.there(20.0, 2.0) - 100.0).abs() < 1e-9);
        // The same, and 50 more, of whom the last ten have half of it on average.
        assert!((flow.there(30.0, 2.0) - 190.0).abs() < 1e-9);
        let sum: f64 = (0..3000).map(|step| flow.until((f64::from(step) + 0.5) / 100.0)).sum();
        assert!((flow.there(30.0, f64::INFINITY) - sum / 100.0).abs() < 0.01);
    }
}
