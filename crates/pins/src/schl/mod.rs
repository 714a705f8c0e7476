//! The pin `schl`: whoever hosts the machine's microkernel looks at run queues and programs, and tells what it sees.

mod place;
mod programs;
mod run_queues;
mod stand_by;
#[cfg(test)]
pub mod stuck;

pub use place::Place;
pub use programs::Programs;
pub use run_queues::RunQueues;

use outlast_core::{Event, Failure, Payload, Pin};
use outlast_interfaces::schl::{Flagged, FLAG, NAME, SWITCHED, WATCH};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::mem::zeroed;
use std::rc::Rc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// Nobody may want a look more often.
const SHORTEST: Duration = Duration::from_millis(10);

/// Where modules' wishes lie until the host sees to them.
#[derive(Default)]
pub struct Desk {
    /// How often to look; none: nobody wants to know.
    pub every: Option<Duration>,
    /// How often this machine's own modules want it, whatever visitors do.
    pub usual: Option<Duration>,
    /// What is to be told.
    pub flags: Vec<Flagged>,
    /// Whether something may be told of.
    pub is_looking: bool,
    /// Threads that are to run on these processors, and may not have done so yet.
    probes: BTreeMap<u32, JoinHandle<()>>,
}

pub struct Schl(pub Rc<RefCell<Desk>>);

impl Pin for Schl {
    fn operate(&mut self, operation: &'static str, argument: &Payload, _: &mut Vec<Event>) -> Result<Payload, Failure> {
        let refused = |why: &str| Failure::Refused(NAME.into(), why.into());
        let mut desk = self.0.borrow_mut();
        match operation {
            WATCH => {
                let every: Duration = argument.read()?;
                if every < SHORTEST {
                    return Err(refused("that often would be all that this machine does"));
                }
                desk.every = Some(desk.every.map_or(every, |other| other.min(every)));
            }
            FLAG if !desk.is_looking => return Err(refused("nobody looks")),
            FLAG => desk.flags.push(argument.read()?),
            _ => desk.probe(argument.read()?).map_err(|e| refused(&e.to_string()))?,
        }
        Ok(Payload::NONE)
    }

    fn wanted(&mut self, event: &'static str, is_wanted: bool) {
        if event == SWITCHED && !is_wanted {
            self.0.borrow_mut().every = None;
        }
    }

    fn wanted_less(&mut self, _: &'static str) {
        let mut desk = self.0.borrow_mut();
        desk.every = desk.usual;
    }
}

impl Desk {
    /// Has a thread wait for this processor, if none does.
    fn probe(&mut self, processor: u32) -> std::io::Result<()> {
        self.probes.retain(|_, probe| !probe.is_finished());
        if !self.probes.contains_key(&processor) && !is_given_away(processor) {
            let probe = Builder::new().name("probe".into()).spawn(move || run_on(processor))?;
            self.probes.insert(processor, probe);
        }
        Ok(())
    }
}

/// Whether an administrator has given this processor to a thread that nothing is to disturb: without its ticks it seems to be in the kernel for ever.
fn is_given_away(processor: u32) -> bool {
    let list = std::fs::read_to_string("/sys/devices/system/cpu/nohz_full").unwrap_or_default();
    holds(list.trim(), processor)
}

/// Whether a list of ranges, `1-3,8`, has this number.
fn holds(list: &str, number: u32) -> bool {
    list.split(',').any(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        matches!((first.parse::<u32>(), last.parse::<u32>()), (Ok(first), Ok(last)) if (first..=last).contains(&number))
    })
}

/// Goes on there, when it can; ends at once where it may not.
fn run_on(processor: u32) {
    // SAFETY: zeroes are an empty set.
    let mut set: libc::cpu_set_t = unsafe { zeroed() };
    if (processor as usize) < 8 * size_of_val(&set) {
        // SAFETY: the number is one that the set has room for; the kernel reads the set.
        unsafe {
            libc::CPU_SET(processor as usize, &mut set);
            libc::sched_setaffinity(0, size_of_val(&set), &set);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::holds;

    #[test]
    fn lists_of_processors_are_read() {
        let numbers = |list: &str| (0..12).filter(|number| holds(list, *number)).collect::<Vec<_>>();
        assert_eq!(numbers("1-3,8"), [1, 2, 3, 8]);
        assert_eq!(numbers("0"), [0]);
        assert!(["", "(null)", "a-b", "3-"].iter().all(|list| numbers(list).is_empty()));
    }
}
