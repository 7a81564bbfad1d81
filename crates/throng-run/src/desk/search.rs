//! Applies the load levels of a capacity search to the run.

use throng_base::Time;
use throng_engine::SpareLimit;
use throng_metrics::capacity::GeneratorLimit;
use throng_results::Event;

use super::Desk;
use crate::control::command::Command;
use crate::desk::pilot::Deed;
use crate::wire::Order;

impl Desk<'_> {
    pub(super) fn begin_search(&mut self) {
        let is_searched =
            self.info.sources.bundle.as_ref().is_some_and(|bundle| bundle.search.is_some());
        match &self.pilot {
            Some(pilot) => {
                let (first, load, change) = (pilot.first(), pilot.load(), pilot.change());
                self.say(first);
                // Recorded as those that follow it.
                let mut phases = self.info.tables.phases.iter();
                let phase = phases.position(|it| usize::from(it.load) == load).unwrap_or(0) as u16;
                let (load, change) = (load as u16, Command::Change(change).word());
                self.event(&Event::Amended { at_ns: 0, load, phase, change });
            }
            // The levels that the earlier desk measured are lost.
            None if is_searched => {
                self.say(say!(
                    "another controller cannot continue a capacity search, so the \
                     load ends"
                ));
                self.interrupted();
            }
            None => {}
        }
    }

    /// A second of the searched load is complete.
    pub(super) fn searched(&mut self, second: u64) {
        let Some(pilot) = self.pilot.as_mut().filter(|_| self.stops == 0) else { return };
        let gauges = self.gauges.latest_of(pilot.load());
        let deeds = pilot.second(second, &gauges);
        self.obey_search(deeds, second);
    }

    fn obey_search(&mut self, deeds: Vec<Deed>, second: u64) {
        let mut from = second + 1;
        for deed in deeds {
            match deed {
                Deed::Say(said) => self.say(said),
                Deed::Finish => {
                    self.stops = 1;
                    return self.send_order(Order::Stop);
                }
                Deed::Load => match self.set_level() {
                    Ok(at) => from = at.second() + 1,
                    Err(limit) => {
                        let Some(pilot) = &mut self.pilot else { return };
                        let deeds = pilot.refused(limit);
                        return self.obey_search(deeds, second);
                    }
                },
            }
        }
        // The level of an order applies from the next whole second.
        if let Some(pilot) = self.pilot.as_mut().filter(|pilot| pilot.is_new()) {
            pilot.begins(from);
        }
    }

    fn set_level(&mut self) -> Result<Time, GeneratorLimit> {
        let limit = match self.steer.levels.limit() {
            SpareLimit::Descriptors => GeneratorLimit::Descriptors,
            SpareLimit::Rows => GeneratorLimit::Rows,
            SpareLimit::Sources => GeneratorLimit::Ports,
        };
        let Some(pilot) = &self.pilot else { return Err(limit) };
        let (number, change) = (pilot.load(), pilot.change());
        let name = self.conduct.program.loads[number].name.clone();
        let now = self.posts.clock.now();
        let named = Some(name.as_str()).filter(|name| !name.is_empty());
        self.change(change, named, now).map_err(|_| limit)?;
        Ok(self.steer.amended)
    }
}
