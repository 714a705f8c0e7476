//! `storm`: tells of programs that are recovered again and again. Each recovery may succeed, and still something is wrong that a person
//! should know of.

use outlast_core::{Calls, Event, Failure, Manifest, Module, Payload, PinId};
use outlast_interfaces::proc::{self, Storm};
use outlast_interfaces::storm::{Settings, NAME};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

pub const MANIFEST: Manifest = Manifest {
    name: NAME,
    what: "tells of programs that are recovered again and again",
    make: &|| Box::new(Storms { proc: None, programs: BTreeMap::new() }),
    budget: crate::BUDGET,
    reloads: 3,
};

struct Storms {
    proc: Option<PinId>,
    programs: BTreeMap<String, Recent>,
}

/// The recoveries of one program.
struct Recent {
    settings: Settings,
    /// The last ones that count, no more than one beyond what is allowed.
    at: VecDeque<Duration>,
    told: Option<Duration>,
}

impl Recent {
    fn new(settings: Settings) -> Self {
        Self { settings, at: VecDeque::new(), told: None }
    }

    /// Counts one; a storm, at most once in the time that is looked at.
    fn count(&mut self, now: Duration) -> Option<Storm> {
        let Settings { most, within } = self.settings;
        self.at.push_back(now);
        while self
            .at
            .front()
            .is_some_and(|first| self.at.len() > most as usize + 1 || now.saturating_sub(*first) >= within)
        {
            self.at.pop_front();
        }
        let was_told = self.told.is_some_and(|told| now.saturating_sub(told) < within);
        if was_told || self.at.len() <= most as usize {
            return None;
        }
        self.told = Some(now);
        Some(Storm { recoveries: most + 1, within })
    }
}

impl Module for Storms {
    fn start(&mut self, calls: &mut Calls) -> Result<(), Failure> {
        let proc = calls.use_pin(proc::NAME)?;
        calls.subscr_event(proc, proc::RECOVERED)?;
        self.proc = Some(proc);
        Ok(())
    }

    fn protect(&mut self, _: &mut Calls, program: &str, settings: &Payload) -> Result<(), Failure> {
        let settings = settings.read()?;
        // What was counted stays counted.
        self.programs.entry(program.into()).or_insert_with(|| Recent::new(settings)).settings = settings;
        Ok(())
    }

    fn release(&mut self, _: &mut Calls, program: &str) {
        self.programs.remove(program);
    }

    fn on_event(&mut self, calls: &mut Calls, event: &Event) -> Result<(), Failure> {
        let program = event.program.as_deref().unwrap_or_default();
        let (Some(proc), Some(recent)) = (self.proc, self.programs.get_mut(program)) else { return Ok(()) };
        match recent.count(event.payload.read()?) {
            Some(storm) => calls.issue_cmd(proc, proc::ALERT, &Payload::of(&storm)?).map(drop),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At which of these seconds a storm is told of.
    fn told(most: u32, within: u64, recoveries: &[u64]) -> Vec<u64> {
        let mut recent = Recent::new(Settings { most, within: Duration::from_secs(within) });
        let storms = |at: &u64| recent.count(Duration::from_secs(*at)).is_some();
        recoveries.iter().copied().filter(storms).collect()
    }

    #[test]
    fn more_recoveries_than_allowed_within_the_window_are_a_storm() {
        assert_eq!(told(3, 10, &[0, 1, 2]), []);
        assert_eq!(told(3, 10, &[0, 1, 2, 9]), [9]);
        assert_eq!(told(3, 10, &[0, 1, 2, 10]), []);
        assert_eq!(told(3, 10, &[0, 5, 10, 15, 20, 25, 30]), []);
        assert_eq!(told(0, 10, &[0, 20]), [0, 20]);
    }

    #[test]
    fn a_storm_that_goes_on_is_told_of_once_a_window() {
        let every_second: Vec<u64> = (0..40).collect();
        assert_eq!(told(3, 10, &every_second), [3, 13, 23, 33]);
    }

    #[test]
    fn it_remembers_no_more_than_it_needs() {
        let mut recent = Recent::new(Settings { most: 5, within: Duration::from_secs(86_400) });
        for n in 0..100_000 {
            recent.count(Duration::from_millis(n));
        }
        assert!(recent.at.len() <= 6);
    }
}
