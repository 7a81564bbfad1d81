//! The states of all users in a run, by cell. A cell always contains the same users, by number, so
//! that counts of shards, processes and machines can be added. A run directory contains the
//! changes: its size depends on what happened, and sums need no order.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::merge::Merge;

/// Maximum number of cells in a picture.
pub const CELLS_MAX: usize = 2_000;
/// Until this second, changes are recorded every second; later, every [`COARSE_S`] seconds.
const FINE_UNTIL_S: u64 = 3_600;
const COARSE_S: u64 = 10;

words! {
    /// The state of a user with long-lived connections. Every present user is in one of them.
    UserState {
        /// Logged in on a long-lived connection. Users that never open one are always online.
        Online, "online", "online";
        /// Without a connection, as planned: not connected yet, or disconnected by its session.
        Disconnected, "disconnected", "disconnected";
        Connecting, "connecting", "connecting";
        LoggingIn, "logging-in", "logging in";
        /// It lost its last connection and has not come back online.
        Away, "away", "away (connection lost)";
        /// Its last attempt to connect or to log in failed.
        Failed, "failed", "connecting or logging in failed";
    }
}

/// Users by state, in the order of [`UserState::ALL`].
pub type Counts = [i64; STATES];
const STATES: usize = UserState::ALL.len();

/// The number of users per cell for a planned number of users: a power of ten, so that coarser
/// cells consist of whole finer ones.
pub fn users_per_cell(planned: u64) -> u64 {
    let mut users = 1_u64;
    while planned.div_ceil(users) > CELLS_MAX as u64 {
        users = users.saturating_mul(10);
    }
    users
}

/// The cell of a user. The last cell also contains users beyond the plan.
fn cell_of(user: u64, users_per_cell: u64) -> usize {
    let cell = user.saturating_sub(1) / users_per_cell.max(1);
    usize::try_from(cell).unwrap_or(usize::MAX).min(CELLS_MAX - 1)
}

/// The change of a cell's number of users in each state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellRow(pub u16, pub Counts);

/// The changes of an interval, for every cell with a change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cells {
    pub users_per_cell: u64,
    pub rows: Vec<CellRow>,
}

impl Cells {
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// As rows of coarser cells.
    fn coarser(&self, users_per_cell: u64) -> impl Iterator<Item = (u16, &Counts)> {
        let factor = (users_per_cell / self.users_per_cell.max(1)).max(1);
        let cell = move |cell: u16| u16::try_from(u64::from(cell) / factor).unwrap_or(cell);
        self.rows.iter().map(move |CellRow(at, counts)| (cell(*at), counts))
    }
}

fn add(counts: &mut Counts, others: &Counts) {
    counts.iter_mut().zip(others).for_each(|(mine, theirs)| *mine += theirs);
}

impl Merge for Cells {
    fn merge(&mut self, other: &Cells) {
        if other.is_empty() {
            return;
        }
        let users_per_cell = self.users_per_cell.max(other.users_per_cell);
        let mut all: BTreeMap<u16, Counts> = BTreeMap::new();
        let rows = self.coarser(users_per_cell).chain(other.coarser(users_per_cell));
        rows.for_each(|(cell, counts)| add(all.entry(cell).or_default(), counts));
        let rows = all.into_iter().filter(|(_, counts)| *counts != Counts::default());
        let rows = rows.map(|(cell, counts)| CellRow(cell, counts)).collect();
        *self = Cells { users_per_cell, rows };
    }

    fn weight(&self) -> u64 {
        let changes = self.rows.iter().flat_map(|CellRow(_, counts)| counts);
        changes.map(|change| change.unsigned_abs()).fold(0, u64::saturating_add)
    }

    fn is_sound(&self) -> bool {
        let is_power = self.users_per_cell.checked_ilog10().map(|power| 10_u64.pow(power));
        self.is_empty()
            || is_power == Some(self.users_per_cell)
                && self.rows.len() <= CELLS_MAX
                && self.rows.iter().all(|CellRow(cell, _)| usize::from(*cell) < CELLS_MAX)
    }
}

/// The counts of one shard. It takes at most 48 KiB for any number of users.
#[derive(Debug, Default)]
pub struct CellCounter {
    /// Zero if nothing is counted.
    users_per_cell: u64,
    changes: Vec<[i32; STATES]>,
    has_changes: bool,
    /// The second of the next report.
    due: u64,
}

impl CellCounter {
    pub fn new(users_per_cell: u64) -> CellCounter {
        CellCounter { users_per_cell, ..CellCounter::default() }
    }

    pub fn heap_bytes(&self) -> usize {
        self.changes.capacity() * size_of::<[i32; STATES]>()
    }

    /// A user changes its state. It has no state before it starts and after it has left.
    pub fn moves(&mut self, user: u64, from: Option<UserState>, to: Option<UserState>) {
        if self.users_per_cell == 0 || from == to {
            return;
        }
        let cell = cell_of(user, self.users_per_cell);
        if self.changes.len() <= cell {
            self.changes.resize(cell + 1, [0; STATES]);
        }
        let counts = &mut self.changes[cell];
        from.into_iter().for_each(|from| counts[from as usize] -= 1);
        to.into_iter().for_each(|to| counts[to as usize] += 1);
        self.has_changes = true;
    }

    /// The next changes are the last.
    pub fn ends(&mut self) {
        self.due = 0;
    }

    /// The changes, if they are due in this second.
    pub fn take(&mut self, second: u64) -> Cells {
        if second < self.due {
            return Cells::default();
        }
        self.due = match second.saturating_add(1) {
            next @ ..FINE_UNTIL_S => next,
            next => (next / COARSE_S).saturating_add(1).saturating_mul(COARSE_S) - 1,
        };
        if !std::mem::take(&mut self.has_changes) {
            return Cells::default();
        }
        let mut rows = Vec::new();
        for (cell, counts) in self.changes.iter_mut().enumerate() {
            let counts = std::mem::take(counts);
            if counts != [0; STATES] {
                rows.push(CellRow(cell as u16, counts.map(i64::from)));
            }
        }
        Cells { users_per_cell: self.users_per_cell, rows }
    }
}

/// The current number of users by cell and state: the sum of all changes so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Census {
    pub users_per_cell: u64,
    cells: Vec<Counts>,
}

impl Census {
    pub fn add(&mut self, changes: &Cells) {
        if changes.is_empty() {
            return;
        }
        let users_per_cell = self.users_per_cell.max(changes.users_per_cell).max(1);
        if self.users_per_cell < users_per_cell {
            let factor = users_per_cell / self.users_per_cell.max(1);
            self.fold(usize::try_from(factor).unwrap_or(usize::MAX));
            self.users_per_cell = users_per_cell;
        }
        for (cell, counts) in changes.coarser(users_per_cell) {
            let cell = usize::from(cell).min(CELLS_MAX - 1);
            if self.cells.len() <= cell {
                self.cells.resize(cell + 1, Counts::default());
            }
            add(&mut self.cells[cell], counts);
        }
    }

    /// Merges every `cells` cells to one.
    fn fold(&mut self, cells: usize) {
        let sum = |part: &[Counts]| {
            let mut sum = Counts::default();
            part.iter().for_each(|counts| add(&mut sum, counts));
            sum
        };
        self.cells = self.cells.chunks(cells.max(1)).map(sum).collect();
    }

    /// The number of cells, up to the last one that had a user.
    pub fn cells(&self) -> usize {
        self.cells.len()
    }

    /// The users of several cells by state. If lines are missing, sums can be negative, which count
    /// as 0.
    pub fn of(&self, cells: Range<usize>) -> [u64; STATES] {
        let mut sum = Counts::default();
        let cells = self.cells.get(cells.start..cells.end.min(self.cells.len()));
        cells.unwrap_or_default().iter().for_each(|counts| add(&mut sum, counts));
        sum.map(|count| count.max(0).unsigned_abs())
    }

    pub fn all(&self) -> [u64; STATES] {
        self.of(0..self.cells.len())
    }

    /// The shade of several cells together.
    pub fn shade(&self, cells: Range<usize>) -> Shade {
        Shade::of(&self.of(cells))
    }
}

/// The shade of a cell: a state, and whether at least half of its users are in it. Sorted by
/// severity; several cells have the worst of their shades.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shade(u8);

/// The letter of each shade: a capital if at least half of the users are in the state.
const LETTERS: [u8; 12] = *b" OdDclafCLAF";
/// Minimum percentage of users for a state to be visible.
const SOME_PERCENT: u64 = 5;

impl Shade {
    fn of(counts: &[u64; STATES]) -> Shade {
        let all = counts.iter().fold(0_u64, |sum, count| sum.saturating_add(*count));
        if all == 0 {
            return Shade::default();
        }
        let shade = |(state, count): (UserState, &u64)| match u128::from(*count) * 100 {
            _ if state == UserState::Online => Shade::new(state, true),
            share if share >= u128::from(all) * 50 => Shade::new(state, true),
            share if share >= u128::from(all) * u128::from(SOME_PERCENT) => {
                Shade::new(state, false)
            }
            _ => Shade::default(),
        };
        UserState::ALL.into_iter().zip(counts).map(shade).max().unwrap_or_default()
    }

    fn new(state: UserState, is_most: bool) -> Shade {
        let letter = state.word().as_bytes()[0];
        let letter = if is_most { letter.to_ascii_uppercase() } else { letter };
        Shade::from_letter(letter)
    }

    /// The shade of a cell with most users in this state.
    pub fn most(state: UserState) -> Shade {
        Shade::new(state, true)
    }

    pub fn letter(self) -> char {
        char::from(LETTERS[usize::from(self.0)])
    }

    /// The shade of a letter; empty for an unknown letter.
    pub fn from_letter(letter: u8) -> Shade {
        let place = LETTERS.iter().position(|it| *it == letter);
        Shade(place.unwrap_or_default() as u8)
    }

    /// `None` without users.
    pub fn state(self) -> Option<UserState> {
        let letter = self.letter().to_ascii_lowercase();
        UserState::ALL.into_iter().find(|state| state.word().starts_with(letter))
    }

    pub fn is_most(self) -> bool {
        self.letter().is_ascii_uppercase()
    }
}

#[cfg(test)]
mod tests {
    use throng_base::Random;

    use super::*;

    /// Users change their states on several shards. Returns their final states, and the reports of
    /// the shards.
    fn run(seed: u64, users: u64, seconds: u64) -> (Vec<Option<UserState>>, Vec<(u64, Cells)>) {
        let mut random = Random::new(seed);
        let per_cell = users_per_cell(users);
        let mut shards: Vec<CellCounter> = (0..5).map(|_| CellCounter::new(per_cell)).collect();
        let mut states = vec![None; users as usize];
        let mut told = Vec::new();
        for second in 0..seconds {
            for _ in 0..random.below(200) {
                let user = random.below(users);
                let to = UserState::ALL.get(random.below(7) as usize).copied();
                let from = std::mem::replace(&mut states[user as usize], to);
                shards[(user % 5) as usize].moves(user + 1, from, to);
            }
            if second + 1 == seconds {
                shards.iter_mut().for_each(CellCounter::ends);
            }
            told.extend(shards.iter_mut().map(|shard| (second, shard.take(second))));
        }
        (states, told)
    }

    #[test]
    fn cells_have_the_users_by_state_for_any_order_of_changes() {
        for seed in 0..20 {
            let users = [7, 2_000, 2_001, 30_000][seed as usize % 4];
            let (states, mut told) = run(seed, users, 40);
            let mut census = Census::default();
            told.iter().for_each(|(_, cells)| census.add(cells));
            let mut sum = Cells::default();
            let mut random = Random::new(seed);
            while !told.is_empty() {
                let (_, cells) = told.swap_remove(random.below(told.len() as u64) as usize);
                assert!(cells.is_sound());
                sum.merge(&cells);
            }
            let mut other = Census::default();
            other.add(&sum);
            let per_cell = users_per_cell(users) as usize;
            for (cell, states) in states.chunks(per_cell).enumerate() {
                let count = |state| states.iter().filter(|it| **it == Some(state)).count() as u64;
                let wanted = UserState::ALL.map(count);
                assert_eq!(census.of(cell..cell + 1), wanted, "seed {seed}, cell {cell}");
                assert_eq!(other.of(cell..cell + 1), wanted, "seed {seed}, cell {cell}");
            }
            let present = states.iter().flatten().count() as u64;
            assert_eq!(census.all().iter().sum::<u64>(), present);
        }
    }

    #[test]
    fn the_number_of_cells_is_limited_and_coarser_cells_consist_of_finer_ones() {
        let sizes = [1, 2_000, 2_001, 100_000, 1_000_000, u64::MAX].map(users_per_cell);
        assert_eq!(sizes[..5], [1, 1, 10, 100, 1_000]);
        for user in [0, 1, 2_000, 1 << 50, u64::MAX] {
            sizes.iter().for_each(|size| assert!(cell_of(user, *size) < CELLS_MAX));
        }
        let cells = |users_per_cell, cell, users| Cells {
            users_per_cell,
            rows: vec![CellRow(cell, [users, 0, 0, 0, 0, 0])],
        };
        let (fine, coarse) = (cells(10, 123, 4), cells(1_000, 1, 300));
        let (mut one, mut other) = (fine.clone(), coarse.clone());
        one.merge(&coarse);
        other.merge(&fine);
        assert_eq!((&one, &one), (&other, &cells(1_000, 1, 304)));
        let mut census = Census::default();
        [&fine, &coarse].into_iter().for_each(|cells| census.add(cells));
        assert_eq!((census.cells(), census.of(1..2)[0]), (2, 304));
        one.merge(&cells(1_000, 1, -304));
        assert!(one.is_empty(), "what is back is no change");
        assert!(!cells(7, 1, 1).is_sound() && !cells(10, 2_000, 1).is_sound());
    }

    #[test]
    fn a_day_has_changes_every_second_in_the_first_hour_and_every_ten_seconds_later() {
        let mut counter = CellCounter::new(1);
        let mut told = Vec::new();
        let mut census = Census::default();
        for second in 0..86_400 {
            let from = (second > 0).then(|| UserState::ALL[(second % 2) as usize]);
            counter.moves(1, from, Some(UserState::ALL[((second + 1) % 2) as usize]));
            let cells = counter.take(second);
            census.add(&cells);
            told.extend((!cells.is_empty()).then_some(second));
        }
        assert_eq!(told.iter().filter(|second| **second < 3_600).count(), 3_600);
        assert!(told.len() < 3_600 + 8_290, "{}", told.len());
        counter.ends();
        census.add(&counter.take(86_400));
        assert_eq!(census.all().iter().sum::<u64>(), 1, "nothing is lost");
    }

    #[test]
    fn a_cell_shows_its_worst_state() {
        let shade = |online, away, failed| Shade::of(&[online, 0, 0, 0, away, failed]).letter();
        assert_eq!(shade(0, 0, 0), ' ');
        assert_eq!((shade(96, 4, 0), shade(95, 5, 0), shade(50, 50, 0)), ('O', 'a', 'A'));
        assert_eq!((shade(40, 54, 6), shade(0, 0, 1)), ('A', 'F'));
        for letter in LETTERS {
            let shade = Shade::from_letter(letter);
            let made = shade.state().map_or(Shade::default(), |it| Shade::new(it, shade.is_most()));
            assert_eq!((made, shade.letter()), (shade, char::from(letter)));
        }
    }
}
