//! Target names whose addresses have changed. Each process of a run resolves a name and finds the
//! same change, which is reported once.

use std::collections::HashMap;
use std::net::SocketAddr;

use throng_results::Event;

/// The addresses last reported for each name.
#[derive(Default)]
pub(super) struct AddressChanges(HashMap<String, Vec<SocketAddr>>);

impl AddressChanges {
    /// Whether another process has already reported these addresses.
    pub(super) fn is_known(&mut self, event: &Event) -> bool {
        let Event::AddressesChanged { host, after, .. } = event else { return false };
        let mut after = after.clone();
        after.sort_unstable();
        match self.0.get_mut(host) {
            Some(known) if *known == after => true,
            Some(known) => {
                *known = after;
                false
            }
            None => {
                self.0.insert(host.clone(), after);
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_found_by_several_processes_is_reported_once() {
        let found = |after: &[&str]| Event::AddressesChanged {
            at_ns: 1,
            host: "shop.example".into(),
            before: Vec::new(),
            after: after.iter().map(|one| one.parse().expect("an address")).collect(),
        };
        let mut moves = AddressChanges::default();
        let told = [["1.1.1.1:80", "1.1.1.2:80"], ["1.1.1.2:80", "1.1.1.1:80"]];
        assert_eq!(told.map(|after| moves.is_known(&found(&after))), [false, true]);
        assert!(!moves.is_known(&found(&["1.1.1.3:80"])));
        assert!(!moves.is_known(&found(&told[0])));
        assert!(!moves.is_known(&Event::RunEnded { at_ns: 1 }));
    }
}
