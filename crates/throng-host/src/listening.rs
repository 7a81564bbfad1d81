//! The processes of this host that listen on a port, and their CPU time: the cost of a target on
//! the generator's host.

use std::fs::read_dir;

use crate::Root;
use crate::kernel::process;
use crate::system::ticks_per_second;

/// State `LISTEN` in `/proc/net/tcp` (include/net/tcp_states.h).
const LISTEN: &str = "0A";

/// The processes that listen on one port.
#[derive(Clone, Debug)]
pub struct Listening {
    root: Root,
    port: u16,
    processes: Vec<u32>,
}

impl Listening {
    /// `None` if no visible process listens there.
    pub fn on(root: Root, port: u16) -> Option<Listening> {
        let mut listening = Listening { root, port, processes: Vec::new() };
        listening.look();
        (!listening.processes.is_empty()).then_some(listening)
    }

    /// The CPU time of these processes since their start, in nanoseconds. If one of them has ended,
    /// the list is refreshed and the result is `None`.
    pub fn cpu_ns(&mut self) -> Option<u64> {
        let ticks: Option<u64> = self.processes.iter().map(|it| ticks(&self.root, *it)).sum();
        if ticks.is_none() {
            self.look();
        }
        Some((ticks? as f64 * 1e9 / ticks_per_second()) as u64)
    }

    fn look(&mut self) {
        let files = ["proc/net/tcp", "proc/net/tcp6"];
        let texts = files.iter().filter_map(|file| self.root.read(file));
        let sockets: Vec<String> = texts.flat_map(|text| sockets(&text, self.port)).collect();
        let processes = read_dir(self.root.path("proc")).into_iter().flatten().flatten();
        let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let numbers: Vec<u32> = numbers.collect();
        let own = |number: &&u32| self.has_one_of(&format!("proc/{number}/fd"), &sockets);
        let mut found: Vec<u32> = numbers.iter().filter(own).copied().collect();
        if found.is_empty() {
            // Threads may have their own descriptor tables, like those of `throng target`.
            let of_threads = |number: &&u32| self.has_thread_with_one_of(**number, &sockets);
            found = numbers.iter().filter(of_threads).copied().collect();
        }
        self.processes = found;
    }

    fn has_thread_with_one_of(&self, process: u32, sockets: &[String]) -> bool {
        let threads = read_dir(self.root.path(format!("proc/{process}/task")));
        let names = threads.into_iter().flatten().flatten().map(|entry| entry.file_name());
        let folder = |name: &str| format!("proc/{process}/task/{name}/fd");
        names.into_iter().any(|name| self.has_one_of(&folder(&name.to_string_lossy()), sockets))
    }

    /// Descriptors of other users' processes cannot be read without privileges.
    fn has_one_of(&self, folder: &str, sockets: &[String]) -> bool {
        let descriptors = read_dir(self.root.path(folder));
        let mut links = descriptors.into_iter().flatten().flatten();
        links.any(|link| {
            let target = std::fs::read_link(link.path()).unwrap_or_default();
            target.to_str().is_some_and(|text| sockets.iter().any(|socket| socket == text))
        })
    }
}

fn ticks(root: &Root, process_number: u32) -> Option<u64> {
    let text = root.read(format!("proc/{process_number}/stat"))?;
    process(&text).map(|stat| stat.user_ticks + stat.system_ticks)
}

/// `socket:[12345]` for each listening socket of the port, as in descriptor links.
fn sockets(text: &str, port: u16) -> Vec<String> {
    let socket = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let own = fields.get(1)?.rsplit_once(':')?.1;
        let is_own = u16::from_str_radix(own, 16).ok()? == port && *fields.get(3)? == LISTEN;
        is_own.then(|| Some(format!("socket:[{}]", fields.get(9)?))).flatten()
    };
    text.lines().filter_map(socket).collect()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn listening_sockets_are_found_by_port() {
        let text = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   \
                    uid  timeout inode\n   \
                    0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     \
                    0        0 4711 1 0000000000000000 100 0 0 10 0\n   \
                    1: 0100007F:1F90 0100007F:D431 01 00000000:00000000 00:00000000 00000000     \
                    0        0 4712 1 0000000000000000 20 4 30 10 -1\n   \
                    2: 00000000:1F91 00000000:0000 0A 00000000:00000000 00:00000000 00000000     \
                    0        0 4713 1 0000000000000000 100 0 0 10 0\n";
        assert_eq!(sockets(text, 8080), ["socket:[4711]"]);
        assert!(sockets(text, 80).is_empty() && sockets("torn", 80).is_empty());
    }

    #[test]
    fn the_cpu_time_of_a_listening_process_grows_with_its_work() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let mut own = Listening::on(Root::default(), port).expect("this process");
        assert!(own.processes.contains(&std::process::id()));
        let before = own.cpu_ns().expect("readable");
        let mut sum = 0u64;
        while own.cpu_ns().expect("readable") < before + 20_000_000 {
            sum = (0..100_000).fold(sum, |sum, one| std::hint::black_box(sum.wrapping_add(one)));
        }
        drop(listener);
        assert!(Listening::on(Root::default(), port).is_none());
    }
}
