//! The members of one shard by audience. A member has an index in its group for as long as a
//! message may need it.

use std::collections::HashMap;

use throng_base::UserId;

use super::bits::Bits;
use super::mix::Mixed;

/// Groups beyond this number are not tracked.
const GROUPS_MAX: u32 = 1 << 24;
const NOBODY: u32 = u32::MAX;

/// A user as a receiver: its group and its index in it. Only valid on its own shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemberId {
    pub(super) group: u32,
    pub(super) index: u32,
}

impl MemberId {
    /// A receiver that is in no group.
    pub(super) const NONE: MemberId = MemberId { group: NOBODY, index: NOBODY };
}

#[derive(Debug, Default)]
pub(super) struct Groups {
    numbers: HashMap<u64, u32, Mixed>,
    groups: Vec<Group>,
    free: Vec<u32>,
}

/// Indexes are assigned at the users' current time; presence is as of the time up to which the log
/// was processed.
#[derive(Debug)]
struct Group {
    key: u64,
    present: Bits,
    members: Vec<Member>,
    /// The first free index; the next one is in `joined` of its member.
    free: u32,
    /// Indexes ever assigned.
    indexes: u32,
    /// Those of them in use.
    taken: u32,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Member {
    pub(super) user: UserId,
    /// The number of the first message that may be for it.
    pub(super) joined: u64,
}

impl Groups {
    /// Reserves an index in the group; its user is not present before [`Groups::enter`].
    pub(super) fn place(&mut self, key: u64) -> MemberId {
        let number = match self.numbers.get(&key) {
            Some(&number) => number,
            None => self.add(key),
        };
        let Some(group) = self.groups.get_mut(number as usize) else {
            return MemberId::NONE;
        };
        group.taken += 1;
        if group.free == NOBODY {
            group.indexes += 1;
            return MemberId { group: number, index: group.indexes - 1 };
        }
        let index = group.free;
        group.free = group.members[index as usize].joined as u32;
        MemberId { group: number, index }
    }

    fn add(&mut self, key: u64) -> u32 {
        let group = Group {
            key,
            present: Bits::default(),
            members: Vec::new(),
            free: NOBODY,
            indexes: 0,
            taken: 0,
        };
        let number = match self.free.pop() {
            Some(number) => {
                self.groups[number as usize] = group;
                number
            }
            None if self.groups.len() as u32 >= GROUPS_MAX => return NOBODY,
            None => {
                self.groups.push(group);
                self.groups.len() as u32 - 1
            }
        };
        self.numbers.insert(key, number);
        number
    }

    pub(super) fn enter(&mut self, id: MemberId, member: Member) {
        let Some(group) = self.groups.get_mut(id.group as usize) else {
            return;
        };
        let place = id.index as usize;
        if place >= group.members.len() {
            if group.members.is_empty() {
                // Many groups have only one member.
                group.members.reserve_exact(place + 1);
            }
            group.members.resize(place + 1, Member::default());
        }
        group.members[place] = member;
        group.present.set(id.index);
    }

    pub(super) fn exit(&mut self, id: MemberId) {
        if let Some(group) = self.groups.get_mut(id.group as usize) {
            group.present.clear(id.index);
        }
    }

    /// Frees the index for another user. A group without any index in use is removed.
    pub(super) fn release(&mut self, id: MemberId) {
        let Some(group) = self.groups.get_mut(id.group as usize) else {
            return;
        };
        group.members[id.index as usize].joined = u64::from(group.free);
        group.free = id.index;
        group.taken -= 1;
        if group.taken == 0 {
            self.numbers.remove(&group.key);
            group.members = Vec::new();
            group.present = Bits::default();
            self.free.push(id.group);
        }
    }

    /// The number of a group, and its present members.
    pub(super) fn present(&self, key: u64) -> Option<(u32, &Bits)> {
        let number = *self.numbers.get(&key)?;
        Some((number, &self.groups.get(number as usize)?.present))
    }

    pub(super) fn present_in(&self, number: u32) -> Option<&Bits> {
        Some(&self.groups.get(number as usize)?.present)
    }

    #[inline]
    pub(super) fn member(&self, id: MemberId) -> Option<&Member> {
        self.groups.get(id.group as usize)?.members.get(id.index as usize)
    }
}

#[cfg(test)]
impl Groups {
    pub(super) fn count(&self) -> usize {
        self.groups.len()
    }
}
