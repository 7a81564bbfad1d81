//! The addresses of the users of one process: an eighth of 198.18.0.0/15, which is reserved for
//! benchmarks (RFC 2544, appendix C.2.2), divided evenly among the networks.

use std::net::Ipv4Addr;

/// Maximum number of processes on one host whose users have a network.
pub(crate) const BLOCKS: u32 = 8;
/// Addresses of a block.
const SIZE: u32 = 1 << (32 - PREFIX);
/// The length of a block's prefix.
pub(crate) const PREFIX: u8 = 18;
const BEGIN: u32 = Ipv4Addr::new(198, 18, 0, 0).to_bits();

#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    first: u32,
    /// Addresses of each network.
    each: u32,
}

impl Block {
    /// The block with this number, for so many networks.
    pub(crate) fn new(number: u32, networks: usize) -> Block {
        let networks = u32::try_from(networks).unwrap_or(SIZE).clamp(1, SIZE);
        Block { first: BEGIN + number * SIZE, each: SIZE / networks.next_power_of_two() }
    }

    pub(crate) fn first(self) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.first)
    }

    /// The number of users of one network that have an address of their own.
    pub(crate) fn users_max(self) -> u64 {
        u64::from(self.each)
    }

    /// The address of a user. Users whose numbers are [`Block::users_max`] apart share one.
    pub(crate) fn address(self, network: usize, user: u64) -> Ipv4Addr {
        let networks = SIZE / self.each;
        let network = (network as u32) % networks;
        let user = (user % u64::from(self.each)) as u32;
        Ipv4Addr::from_bits(self.first + network * self.each + user)
    }

    /// The index of an address in the block; None if the block does not contain it.
    pub(crate) fn place(self, address: Ipv4Addr) -> Option<usize> {
        let place = address.to_bits().wrapping_sub(self.first);
        (place < SIZE).then_some(place as usize)
    }

    /// The network of each address, in order.
    pub(crate) fn networks(self) -> impl Iterator<Item = usize> {
        (0..SIZE).map(move |place| (place / self.each) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_follow_each_other_and_networks_divide_them() {
        let [first, last] = [0, BLOCKS - 1].map(|number| Block::new(number, 1));
        assert_eq!(first.first(), Ipv4Addr::new(198, 18, 0, 0));
        assert_eq!(last.address(0, 16_383), Ipv4Addr::new(198, 19, 255, 255));
        let block = Block::new(1, 3);
        assert_eq!(block.users_max(), 4096);
        assert_eq!(block.address(2, 5), Ipv4Addr::new(198, 18, 96, 5));
        assert_eq!(block.address(2, 4096 + 5), block.address(2, 5), "they share it");
        let place = block.place(block.address(2, 5)).unwrap();
        assert_eq!(block.networks().nth(place), Some(2));
        for outside in [Ipv4Addr::new(198, 18, 63, 255), Ipv4Addr::new(198, 18, 128, 0)] {
            assert_eq!(block.place(outside), None);
        }
    }

    #[test]
    fn more_networks_than_addresses_share_them() {
        let block = Block::new(0, 100_000);
        assert_eq!(block.users_max(), 1);
        assert!(block.place(block.address(99_999, 7)).is_some());
    }
}
