//! `leaks`: tells of programs of which descriptors or memory get more and more. A recovery does not help there: the commit has the leak in it.
//!
//! A program that grows and shrinks comes back to about the same least amount; of one that leaks even that rises. So the window is divided,
//! and what counts is the least that was seen in each part: nothing leaks that falls back once in seven of the eight.

use outlast_core::{Calls, Event, Failure, Manifest, Module, Payload, PinId};
use outlast_interfaces::leaks::{Settings, NAME};
use outlast_interfaces::proc::{self, Leak, Resource};
use outlast_interfaces::watch::{Look, Watch};
use outlast_interfaces::{file, mem};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

pub const MANIFEST: Manifest = Manifest {
    name: NAME,
    what: "tells of programs that leak descriptors or memory",
    make: &|| Box::new(Leaks { pins: None, programs: BTreeMap::new() }),
    budget: crate::BUDGET,
    reloads: 3,
};

/// Parts of a window. That each of so many has a higher floor than the one before happens by chance once in 40320 times.
const PARTS: u32 = 8;
/// Looks in a part.
const LOOKS: u32 = 16;

struct Leaks {
    pins: Option<[PinId; 3]>,
    programs: BTreeMap<String, Program>,
}

struct Program {
    settings: Settings,
    descriptors: Floors,
    memory: Floors,
}

/// The least that was seen in each part of the time.
#[derive(Default)]
struct Floors {
    /// Of this process, in this life of the program.
    of: Option<(i32, u64)>,
    /// When the present part began, and its floor so far.
    part: Option<(Duration, u64)>,
    /// Of the parts before.
    floors: VecDeque<u64>,
    told: Option<Duration>,
}

impl Floors {
    /// Takes note of what was seen; a leak, at most once in a window.
    fn see(&mut self, settings: Settings, of: Resource, look: Look, (value, limit): (u64, u64)) -> Option<Leak> {
        let length = settings.window / PARTS;
        let is_same = self.of.replace((look.process, look.life)) == Some((look.process, look.life));
        let (began, floor) = self.part.filter(|_| is_same).unwrap_or_else(|| {
            self.floors.clear();
            (look.at, value)
        });
        let age = look.at.saturating_sub(began);
        if age < length {
            self.part = Some((began, floor.min(value)));
            return None;
        }
        self.part = Some((look.at, value));
        if age >= length * 2 {
            // It was not looked at for too long to say anything.
            self.floors.clear();
            return None;
        }
        self.floors.push_back(floor);
        if self.floors.len() > PARTS as usize {
            self.floors.pop_front();
        }
        self.leak(settings, of, look.at, limit)
    }

    fn leak(
        &mut self,
        Settings { window, percent }: Settings,
        of: Resource,
        now: Duration,
        limit: u64,
    ) -> Option<Leak> {
        let (&from, &to) = (self.floors.front()?, self.floors.back()?);
        let rises = self.floors.iter().zip(self.floors.iter().skip(1)).all(|(before, after)| before < after);
        let is_much = u128::from(to) * 100 >= u128::from(limit) * u128::from(percent);
        let was_told = self.told.is_some_and(|told| now.saturating_sub(told) < window);
        if self.floors.len() < PARTS as usize || !rises || !is_much || was_told {
            return None;
        }
        self.told = Some(now);
        Some(Leak { of, from, to, within: window, limit })
    }
}

impl Module for Leaks {
    fn start(&mut self, calls: &mut Calls) -> Result<(), Failure> {
        let proc = calls.use_pin(proc::NAME)?;
        let file = calls.use_pin(file::NAME)?;
        let mem = calls.use_pin(mem::NAME)?;
        calls.subscr_event(proc, proc::RENEWED)?;
        calls.subscr_event(file, file::COUNTED)?;
        calls.subscr_event(mem, mem::MEASURED)?;
        self.pins = Some([proc, file, mem]);
        Ok(())
    }

    fn protect(&mut self, calls: &mut Calls, program: &str, settings: &Payload) -> Result<(), Failure> {
        let settings: Settings = settings.read()?;
        let Some([_, file, mem]) = self.pins else { return Ok(()) };
        let every = settings.window / (PARTS * LOOKS);
        let watch = Payload::of(&Watch { program: program.into(), by: NAME.into(), every })?;
        calls.issue_cmd(file, file::WATCH, &watch)?;
        calls.issue_cmd(mem, mem::WATCH, &watch)?;
        let watched = Program { settings, descriptors: Floors::default(), memory: Floors::default() };
        self.programs.insert(program.into(), watched);
        Ok(())
    }

    fn release(&mut self, _: &mut Calls, program: &str) {
        self.programs.remove(program);
    }

    fn on_event(&mut self, calls: &mut Calls, event: &Event) -> Result<(), Failure> {
        let program = event.program.as_deref().unwrap_or_default();
        let (Some([proc, ..]), Some(seen)) = (self.pins, self.programs.get_mut(program)) else { return Ok(()) };
        let leak = match event.name {
            file::COUNTED => {
                let counted: file::Counted = event.payload.read()?;
                let of_limit = (counted.open.into(), counted.limit);
                seen.descriptors.see(seen.settings, Resource::Descriptors, counted.look, of_limit)
            }
            mem::MEASURED => {
                let measured: mem::Measured = event.payload.read()?;
                let of_limit = (measured.anonymous + measured.swapped, measured.limit.unwrap_or(u64::MAX));
                seen.memory.see(seen.settings, Resource::Memory, measured.look, of_limit)
            }
            _ => {
                (seen.descriptors, seen.memory) = (Floors::default(), Floors::default());
                None
            }
        };
        match leak {
            Some(leak) => calls.issue_cmd(proc, proc::WARN, &Payload::of(&leak)?).map(drop),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: Settings = Settings { window: Duration::from_secs(800), percent: 50 };

    /// In which seconds a leak is told of, where every second so much is seen of 1000, by a process that changes at those.
    fn told(seconds: u64, changes: &[u64], value: impl Fn(u64) -> u64) -> Vec<u64> {
        let mut floors = Floors::default();
        let mut see = |second: &u64| {
            let life = changes.iter().filter(|change| *change <= second).count() as u64;
            let look = Look { at: Duration::from_secs(*second), process: 1, life };
            floors.see(SETTINGS, Resource::Descriptors, look, (value(*second), 1000)).is_some()
        };
        (0..seconds).filter(|second| see(second)).collect()
    }

    #[test]
    fn what_rises_through_a_whole_window_to_the_threshold_leaks() {
        assert_eq!(told(900, &[], |t| 450 + t / 10), [800]);
        assert_eq!(told(801, &[], |t| t / 10), []);
        // Not before the threshold: the last floor is 500 when the part from 5000 to 5100 is over.
        assert_eq!(told(5200, &[], |t| t / 10), [5100]);
    }

    #[test]
    fn a_leak_that_goes_on_is_told_of_once_a_window() {
        assert_eq!(told(3300, &[], |t| 600 + t / 10), [800, 1600, 2400, 3200]);
    }

    #[test]
    fn a_leak_beneath_what_comes_and_goes_is_found() {
        assert_eq!(told(900, &[], |t| 500 + t / 10 + (t * 7919) % 300), [800]);
    }

    #[test]
    fn what_grows_and_shrinks_does_not_leak() {
        for period in [2, 3, 7, 50, 99, 150, 250, 400, 550, 699] {
            assert_eq!(told(20_000, &[], |t| 500 + t % period * 400 / period), [], "a period of {period}");
        }
        assert_eq!(told(20_000, &[], |t| 900 + (t * 7919) % 97), []);
        assert_eq!(told(20_000, &[], |_| 999), []);
        assert_eq!(told(20_000, &[], |t| if t < 600 { 300 + t } else { 999 }), []);
    }

    #[test]
    fn another_process_begins_anew() {
        let often: Vec<u64> = (0..20_000).step_by(790).collect();
        assert_eq!(told(20_000, &often, |t| 500 + t % 790 / 2), []);
    }

    #[test]
    fn nothing_is_said_of_a_time_that_was_not_looked_at() {
        let mut floors = Floors::default();
        for n in 0..100u64 {
            let look = Look { at: Duration::from_secs(n * 250), process: 1, life: 0 };
            assert_eq!(floors.see(SETTINGS, Resource::Memory, look, (600 + n, 1000)), None);
        }
    }
}
