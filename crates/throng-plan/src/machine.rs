//! The resources of one machine: this host, or a described machine (`8cores,16GiB`).

use throng_base::units;
use throng_host::costs::SOURCE_PORTS_MAX;
use throng_host::{HostFacts, Root, facts, source_ports};
use throng_program::Sources;

/// The assumed hard limit of open files on a described machine: its highest possible value
/// (`fs.nr_open`).
const DESCRIPTORS_USUAL: u64 = 1 << 20;

/// A machine as the user describes it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Described {
    cores: f64,
    memory_bytes: u64,
    addresses: u64,
}

/// The resources of a machine, without a reserve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    pub is_this_host: bool,
    pub cores: f64,
    pub memory_bytes: u64,
    /// Number of source addresses for the target.
    pub addresses: u64,
    /// Source ports per address.
    pub ports: u64,
    /// Open files per process: the hard limit.
    pub descriptors: u64,
    /// Open files on the whole machine; [`u64::MAX`] if not known.
    pub files: u64,
}

impl Described {
    /// Reads `8cores,16GiB`, optionally with `4addresses`.
    ///
    /// # Errors
    /// Says how to describe a machine.
    pub fn parse(text: &str) -> Result<Described, String> {
        let wrong = || {
            let help = say!(
                "write a machine as `8cores,16GiB`, or as `8cores,16GiB,4addresses` if it has \
                 several source addresses"
            );
            help.spoken()
        };
        let (mut cores, mut memory, mut addresses) = (None, None, None);
        for part in text.split(',').map(str::trim) {
            let start = part.find(|c: char| c.is_ascii_alphabetic()).ok_or_else(wrong)?;
            let (number, unit) = (part[..start].trim(), &part[start..]);
            let number = || number.parse::<f64>().ok().filter(|it| (0.1..=1e6).contains(it));
            let place = match unit {
                "core" | "cores" | "cpu" | "cpus" | "c" => &mut cores,
                "address" | "addresses" => &mut addresses,
                _ => {
                    let bytes = units::parse_size(part).map_err(|_| wrong())?;
                    if bytes == 0 || memory.replace(bytes).is_some() {
                        return Err(wrong());
                    }
                    continue;
                }
            };
            if place.replace(number().ok_or_else(wrong)?).is_some() {
                return Err(wrong());
            }
        }
        let (Some(cores), Some(memory_bytes)) = (cores, memory) else { return Err(wrong()) };
        let addresses = addresses.map_or(1, |count| (count as u64).max(1));
        Ok(Described { cores, memory_bytes, addresses })
    }
}

impl Machine {
    /// The described machine, with the maximum number of source ports.
    pub fn described(machine: Described, addresses: u64) -> Machine {
        Machine {
            is_this_host: false,
            cores: machine.cores,
            memory_bytes: machine.memory_bytes,
            addresses: machine.addresses.max(addresses),
            ports: SOURCE_PORTS_MAX,
            descriptors: DESCRIPTORS_USUAL,
            files: u64::MAX,
        }
    }

    /// This host. A value that cannot be read is not a limit.
    pub fn this_host(sources: &Sources, addresses: u64) -> Machine {
        let facts = facts(env!("CARGO_PKG_VERSION"));
        let ports = source_ports(&Root::default(), sources.ports);
        Machine { is_this_host: true, ..Machine::of(&facts, ports, addresses) }
    }

    /// A recorded host.
    pub fn of_record(facts: &HostFacts, addresses: u64) -> Machine {
        let ports = facts.port_range.map(|(first, last)| u64::from(last.saturating_sub(first)) + 1);
        Machine::of(facts, ports, addresses)
    }

    fn of(facts: &HostFacts, ports: Option<u64>, addresses: u64) -> Machine {
        let cores = facts.cores_usable.or(facts.cores).unwrap_or(1) as f64;
        let memory = facts.memory_bytes.unwrap_or(u64::MAX);
        Machine {
            is_this_host: false,
            cores: facts.cgroup_cores_max.map_or(cores, |most| most.min(cores)),
            memory_bytes: facts.cgroup_memory_bytes_max.map_or(memory, |most| most.min(memory)),
            addresses: addresses.max(1),
            ports: ports.unwrap_or(SOURCE_PORTS_MAX).max(1),
            descriptors: facts.descriptors_hard_max.unwrap_or(DESCRIPTORS_USUAL),
            files: facts.file_max.unwrap_or(u64::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_are_described_in_words() {
        let parse = |text: &str| Described::parse(text).ok();
        let machine = Described { cores: 8.0, memory_bytes: 16 << 30, addresses: 1 };
        for text in ["8cores,16GiB", "16GiB, 8 cores", "8c,16GiB", "8cpus,17179869184B"] {
            assert_eq!(parse(text), Some(machine), "{text}");
        }
        assert_eq!(parse("0.5core,1GiB,4addresses").map(|it| it.addresses), Some(4));
        for text in [
            "",
            "16",
            "8cores",
            "16GiB",
            "8cores,8cores,1GiB",
            "0cores,1GiB",
            "8cores,0B",
            "8cores,1GiB,2GiB",
            "8bores,1GiB",
            "-8cores,1GiB",
            "ecores,1GiB",
            "8cores,,1GiB",
            "八cores,1GiB",
            "1e999cores,1GiB",
        ] {
            let error = Described::parse(text).expect_err(text);
            assert!(error.contains("8cores,16GiB"), "{error}");
        }
    }
}
