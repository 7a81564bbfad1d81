//! What comes over time and is there for a while: how many of it there are at once.

/// Events per second over time, in pieces that follow each other.
#[derive(Debug, Default)]
pub(super) struct Flow {
    pieces: Vec<Piece>,
}

/// Evenly more or fewer a second; times are in seconds.
#[derive(Clone, Copy, Debug)]
struct Piece {
    begin: f64,
    length: f64,
    from: f64,
    to: f64,
    /// All events of the pieces before.
    before: f64,
}

impl Piece {
    /// Events of this piece in its first seconds.
    fn within(&self, seconds: f64) -> f64 {
        let seconds = seconds.clamp(0.0, self.length);
        if seconds <= 0.0 {
            return 0.0;
        }
        let at = self.from + (self.to - self.from) * seconds / self.length;
        f64::midpoint(self.from, at) * seconds
    }
}

impl Flow {
    /// Goes on with a piece that begins where the last one ends, or later.
    pub(super) fn add(&mut self, begin: f64, length: f64, (from, to): (f64, f64)) {
        let before = self.pieces.last().map_or(0.0, |last| last.before + last.within(last.length));
        self.pieces.push(Piece { begin, length, from, to, before });
    }

    /// All events before this time.
    fn until(&self, time: f64) -> f64 {
        let next = self.pieces.partition_point(|piece| piece.begin < time);
        let last = next.checked_sub(1).and_then(|index| self.pieces.get(index));
        last.map_or(0.0, |piece| piece.before + piece.within(time - piece.begin))
    }

    /// How many there are at once when such a part of them is there for so many seconds each: the
    /// most at the end of a piece. Where the flow becomes less in a piece there are more before.
    pub(super) fn present(&self, parts: &[(f64, f64)]) -> f64 {
        let at = |time: f64| {
            let of = |(part, seconds): &(f64, f64)| {
                part * (self.until(time) - self.until(time - seconds))
            };
            parts.iter().map(of).sum()
        };
        let ends = self.pieces.iter().map(|piece| piece.begin + piece.length);
        ends.map(at).fold(0.0, f64::max)
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
}
