//! The devices that are online, and their addresses: one small table for all workers.
//!
//! A device named `d17` is stored as its number, others by name. A number and an address take 16
//! bytes, which is up to 39 bytes per device in the emptiest table.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher, Hash as _, Hasher};
use std::sync::MutexGuard;

use crate::address::Address;
use crate::sums::Shards;

/// The name of a device.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Device {
    /// `d` and this number, without leading zeros.
    Number(u64),
    Name(Box<str>),
}

impl Device {
    pub(crate) fn new(name: &str) -> Device {
        match name.strip_prefix('d').and_then(plain_number) {
            Some(number) => Device::Number(number),
            None => Device::Name(name.into()),
        }
    }

    /// Calls `hear` with the name, without allocating it.
    pub(crate) fn with_name<T>(&self, hear: impl FnOnce(&str) -> T) -> T {
        match self {
            Device::Name(name) => hear(name),
            Device::Number(number) => {
                // `d` and the twenty digits of the largest number.
                let mut bytes = [0; 21];
                let (mut at, mut left) = (bytes.len(), *number);
                loop {
                    at -= 1;
                    bytes[at] = b'0' + (left % 10) as u8;
                    left /= 10;
                    if left == 0 {
                        break;
                    }
                }
                at -= 1;
                bytes[at] = b'd';
                hear(std::str::from_utf8(&bytes[at..]).unwrap_or_default())
            }
        }
    }
}

/// Digits without a sign and without leading zeros.
fn plain_number(text: &str) -> Option<u64> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let plain = digits && (text == "0" || !text.starts_with('0'));
    text.parse().ok().filter(|_| plain)
}

/// Device numbers are hashed by one multiplication: no client benefits from collisions.
#[derive(Default)]
struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = mixed(self.0 ^ number);
    }
}

fn mixed(number: u64) -> u64 {
    let product = u128::from(number ^ 0x9e37_79b9_7f4a_7c15) * 0xd6e8_feb8_6659_fd93;
    (product >> 64) as u64 ^ product as u64
}

#[derive(Default)]
struct PresencePart {
    numbers: HashMap<u64, Address, BuildHasherDefault<NumberHasher>>,
    names: HashMap<Box<str>, Address>,
}

#[derive(Default)]
pub(crate) struct Presence(Shards<PresencePart>);

impl Presence {
    /// The device is online at `address`. Returns its previous address.
    pub(crate) fn enter(&self, device: &Device, address: Address) -> Option<Address> {
        let mut part = self.part(device);
        match device {
            Device::Number(number) => part.numbers.insert(*number, address),
            Device::Name(name) => part.names.insert(name.clone(), address),
        }
    }

    /// The device is no longer online at `address`. Returns whether it was.
    pub(crate) fn leave(&self, device: &Device, address: Address) -> bool {
        let mut part = self.part(device);
        let was = part.get(device) == Some(address);
        if was {
            match device {
                Device::Number(number) => drop(part.numbers.remove(number)),
                Device::Name(name) => drop(part.names.remove(name)),
            }
        }
        was
    }

    pub(crate) fn find(&self, device: &Device) -> Option<Address> {
        self.part(device).get(device)
    }

    pub(crate) fn online(&self) -> u64 {
        let count = |part: &PresencePart| part.numbers.len() + part.names.len();
        self.0.each().map(|part| count(&part) as u64).sum()
    }

    /// Calls `hear` with every device, one partition at a time. Concurrent changes may or may not
    /// be included.
    pub(crate) fn each(&self, mut hear: impl FnMut(&Device)) {
        for part in self.0.each() {
            // A copy, so that no worker waits for the lock while `hear` waits for a socket.
            let names = part.names.keys().map(|name| Device::Name(name.clone()));
            let numbers = part.numbers.keys().map(|number| Device::Number(*number));
            let devices: Vec<Device> = numbers.chain(names).collect();
            drop(part);
            devices.iter().for_each(&mut hear);
        }
    }

    /// The addresses of all devices, in arbitrary order.
    pub(crate) fn addresses(&self) -> Vec<Address> {
        let mut addresses = Vec::new();
        self.0.each().for_each(|part| {
            addresses.extend(part.numbers.values().chain(part.names.values()));
        });
        addresses
    }

    fn part(&self, device: &Device) -> MutexGuard<'_, PresencePart> {
        let hash = match device {
            Device::Number(number) => mixed(*number),
            Device::Name(name) => {
                let mut hasher = DefaultHasher::new();
                name.hash(&mut hasher);
                hasher.finish()
            }
        };
        // Uses other bits than the table within the partition.
        self.0.of(hash >> 40)
    }
}

impl PresencePart {
    fn get(&self, device: &Device) -> Option<Address> {
        match device {
            Device::Number(number) => self.numbers.get(number).copied(),
            Device::Name(name) => self.names.get(name).copied(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(worker: u16, place: u32) -> Address {
        Address { worker, generation: 0, place }
    }

    #[test]
    fn names_are_preserved() {
        let largest = format!("d{}", u64::MAX);
        for (name, numbered) in [
            ("d0", true),
            ("d17", true),
            (&largest, true),
            ("d18446744073709551616", false),
            ("d017", false),
            ("d", false),
            ("d+1", false),
            ("e1", false),
            ("7", false),
            ("dé", false),
        ] {
            let device = Device::new(name);
            assert_eq!(matches!(device, Device::Number(_)), numbered, "{name}");
            device.with_name(|found| assert_eq!(found, name));
        }
    }

    #[test]
    fn a_device_has_its_most_recent_address() {
        let presence = Presence::default();
        for device in [Device::new("d17"), Device::new("phone")] {
            let (first, second) = (at(0, 5), at(4095, u32::MAX - 1));
            assert_eq!(presence.enter(&device, first), None);
            assert_eq!(presence.enter(&device, second), Some(first));
            assert!(!presence.leave(&device, first), "it has moved");
            assert_eq!(presence.find(&device), Some(second));
            assert!(presence.leave(&device, second) && !presence.leave(&device, second));
            assert_eq!(presence.find(&device), None);
        }
        assert_eq!(presence.online(), 0);
    }

    #[test]
    fn every_device_is_found_once() {
        let presence = Presence::default();
        for number in 0..1000 {
            presence.enter(&Device::Number(number), at((number % 3) as u16, number as u32));
        }
        presence.enter(&Device::new("phone"), at(2, 1000));
        let mut places: Vec<u32> = presence.addresses().iter().map(|a| a.place).collect();
        places.sort_unstable();
        assert!(places.into_iter().eq(0..=1000));
        let mut names = Vec::new();
        presence.each(|device| device.with_name(|name| names.push(name.to_owned())));
        names.sort_unstable();
        names.dedup();
        assert_eq!((names.len(), presence.online()), (1001, 1001));
    }

    #[test]
    fn a_million_devices_take_little_memory() {
        // Tables double when seven eighths are full; an entry has one additional byte in its table.
        let presence = Presence::default();
        for number in 0..1_000_000 {
            presence.enter(&Device::Number(number), at(1, number as u32));
        }
        let entry_bytes = size_of::<(u64, Address)>() + 1;
        let buckets = |part: &PresencePart| part.numbers.capacity() * 8 / 7;
        let bytes: usize = presence.0.each().map(|part| buckets(&part) * entry_bytes).sum();
        assert!(bytes <= 39_000_000, "{bytes}");
        assert_eq!(size_of::<Device>(), 16);
    }
}
