//! The presence of users as the generator knows it: which users are online, since when, by which
//! event and on which node. Takes five bytes per user.

use std::time::Duration;

use throng_base::Time;

words! {
    /// The event that last changed whether a user is online.
    #[derive(Default)]
    Change {
        /// It has never been online.
        #[default]
        Never, "never", "never online";
        /// Its first login.
        Login, "login", "first login";
        /// It logged in again on the same node.
        Back, "back", "login after an absence";
        /// It logged in again, on another node.
        Moved, "moved", "login on another node";
        /// It left as planned: FIN, or the close handshake of its protocol.
        Left, "left", "planned leave";
        /// It reset its connection.
        ResetByUs, "reset-by-us", "reset by throng";
        /// It closed the connection silently.
        Vanished, "vanished", "silent disconnect";
        /// It closed only its sending side.
        HalfClosed, "half-closed", "half-closed by throng";
        /// The target closed its connection.
        ClosedByTarget, "closed-by-target", "closed by the target";
        /// The target or the network reset its connection.
        Reset, "reset", "reset by the target or the network";
        /// The target stopped responding.
        TimedOut, "timed-out", "no response from the target";
        /// The end of the run interrupted it.
        CutOff, "cut-off", "cut off at the end of the run";
    }
}

impl Change {
    pub fn is_online(self) -> bool {
        matches!(self, Change::Login | Change::Back | Change::Moved)
    }
}

/// A node of the target: its number from 1 among the targets of the scenario. 0 is none, or a
/// number above 255.
pub type Node = u8;

/// The presence of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    pub change: Change,
    /// The time of the change, which happened at most 50 ms later.
    pub at: Time,
    /// Its current or last node.
    pub node: Node,
}

impl Known {
    pub const NEVER: Known = Known { change: Change::Never, at: Time::ZERO, node: 0 };

    pub fn is_online(&self) -> bool {
        self.change.is_online()
    }

    /// The latest possible time of the change.
    pub fn settled(&self) -> Time {
        match self.change {
            Change::Never => Time::ZERO,
            _ => self.at.saturating_add(STEP),
        }
    }
}

/// The resolution of [`Known::at`].
const STEP: Duration = Duration::from_millis(50);
/// The largest number of steps: 155 days.
const STEPS_MAX: u64 = (1 << 28) - 1;

/// [`Known`] in five bytes: 28 bits of time, 4 of the change, 8 of the node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packed([u8; 5]);

impl Packed {
    pub const BYTES: usize = 5;

    pub fn new(known: Known) -> Packed {
        let steps = (known.at.as_nanos() / STEP.as_nanos() as u64).min(STEPS_MAX);
        let bytes = ((steps << 4) | known.change as u64).to_le_bytes();
        Packed([bytes[0], bytes[1], bytes[2], bytes[3], known.node])
    }

    pub fn known(self) -> Known {
        let [a, b, c, d, node] = self.0;
        let low = u64::from(u32::from_le_bytes([a, b, c, d]));
        let change = Change::ALL.get((low & 15) as usize).copied().unwrap_or_default();
        Known { change, at: Time((low >> 4) * STEP.as_nanos() as u64), node }
    }

    pub fn bytes(self) -> [u8; 5] {
        self.0
    }

    pub fn from_bytes(bytes: [u8; 5]) -> Packed {
        Packed(bytes)
    }
}

/// The presence of all users at one time, sorted by number without duplicates.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    pub users: Vec<(u64, Packed)>,
}

impl Snapshot {
    /// Combines those of several processes.
    pub fn join(parts: impl IntoIterator<Item = Snapshot>) -> Snapshot {
        let mut users: Vec<(u64, Packed)> = parts.into_iter().flat_map(|one| one.users).collect();
        users.sort_unstable_by_key(|(user, _)| *user);
        Snapshot { users }
    }

    pub fn of(&self, user: u64) -> Option<Known> {
        let index = self.users.binary_search_by_key(&user, |(user, _)| *user).ok()?;
        Some(self.users[index].1.known())
    }

    /// For another process: for each user, the difference to the previous number (LEB128) and the
    /// packed state.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.users.len() * (Packed::BYTES + 1));
        let mut last = 0;
        for (user, packed) in &self.users {
            let mut left = user - last;
            last = *user;
            while left >= 0x80 {
                bytes.push(left as u8 | 0x80);
                left >>= 7;
            }
            bytes.push(left as u8);
            bytes.extend_from_slice(&packed.bytes());
        }
        bytes
    }

    /// Reads what [`Snapshot::to_bytes`] wrote; `None` if it is invalid.
    pub fn from_bytes(mut bytes: &[u8]) -> Option<Snapshot> {
        let (mut users, mut last) = (Vec::with_capacity(bytes.len() / (Packed::BYTES + 1)), 0_u64);
        while !bytes.is_empty() {
            let (mut gap, mut shift) = (0_u64, 0);
            loop {
                let (byte, rest) = bytes.split_first()?;
                bytes = rest;
                gap |= u64::from(byte & 0x7f).checked_shl(shift)?;
                shift += 7;
                if byte & 0x80 == 0 {
                    break;
                }
            }
            let (packed, rest) = bytes.split_first_chunk::<5>()?;
            bytes = rest;
            last = last.checked_add(gap)?;
            users.push((last, Packed(*packed)));
        }
        Some(Snapshot { users })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_presence_of_a_user_takes_five_bytes() {
        assert_eq!(size_of::<Packed>(), 5);
        for change in Change::ALL {
            for (at_ms, node) in [(0, 0), (1_234, 7), (86_400_000 * 150, 255)] {
                let known = Known { change, at: Time(at_ms * 1_000_000), node };
                let back = Packed::new(known).known();
                assert_eq!((back.change, back.node), (change, node));
                let apart = known.at - back.at;
                assert!(apart < STEP && back.at <= known.at, "{apart:?}");
            }
        }
        let never = Packed::default().known();
        assert_eq!((never, never.settled()), (Known::NEVER, Time::ZERO));
    }

    #[test]
    fn snapshots_survive_serialization() {
        let packed =
            |change, ms: u64| Packed::new(Known { change, at: Time(ms * 1_000_000), node: 3 });
        let one = Snapshot {
            users: vec![(1, packed(Change::Login, 50)), (4_000_000_000, packed(Change::Left, 9))],
        };
        let other =
            Snapshot { users: vec![(2, packed(Change::Moved, 150)), (300, Packed::default())] };
        let all = Snapshot::join([one, other]);
        assert_eq!(Snapshot::from_bytes(&all.to_bytes()), Some(all.clone()));
        assert_eq!(all.of(2).map(|it| it.change), Some(Change::Moved));
        assert_eq!((all.of(3), all.of(300)), (None, Some(Known::NEVER)));
        assert_eq!(Snapshot::from_bytes(&[1, 2]), None);
        assert_eq!(Snapshot::from_bytes(&[0xff; 40]), None);
    }
}
