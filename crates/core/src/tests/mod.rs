//! The core with pins and modules made for these tests.

mod confinement;
mod dispatch;

use crate::*;
use std::cell::RefCell;
use std::rc::Rc;

#[global_allocator]
static ALLOCATOR: confine::Counting = confine::Counting;

const fn named(name: &'static str) -> Named {
    Named { name, what: "" }
}

static CLOCK: Interface = Interface {
    name: "clock",
    what: "a clock for tests",
    operations: &[named("add"), named("strike")],
    events: &[named("tick"), named("hour")],
};

/// Events that were wanted, by one less, or not any more, in order.
type Notes = Rc<RefCell<Vec<(&'static str, &'static str)>>>;

/// Adds, strikes, and notes who is wanted.
#[derive(Default)]
struct Clock {
    sum: u64,
    wanted: Notes,
}

impl Pin for Clock {
    fn operate(
        &mut self,
        operation: &'static str,
        argument: &Payload,
        raise: &mut Vec<Event>,
    ) -> Result<Payload, Failure> {
        match operation {
            "add" => {
                self.sum += argument.read::<u64>()?;
                Payload::of(&self.sum)
            }
            _ => {
                raise.push(tick("hour", None));
                Ok(Payload::NONE)
            }
        }
    }

    fn wanted(&mut self, event: &'static str, is_wanted: bool) {
        self.wanted.borrow_mut().push((event, if is_wanted { "wanted" } else { "unwanted" }));
    }

    fn wanted_less(&mut self, event: &'static str) {
        self.wanted.borrow_mut().push((event, "less"));
    }
}

fn tick(name: &'static str, program: Option<&str>) -> Event {
    Event { pin: "clock", name, program: program.map(Into::into), payload: Payload::NONE }
}

thread_local! {
    /// What the modules of this thread's test were told, in order.
    static TOLD: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

fn tell(what: String) {
    TOLD.with_borrow_mut(|told| told.push(what));
}

fn told() -> Vec<String> {
    TOLD.take()
}

/// A core that knows the clock, and what the clock noted.
fn kernel() -> (Microkernel, Notes) {
    let wanted = Rc::new(RefCell::new(Vec::new()));
    let mut kernel = Microkernel::new();
    let notes = wanted.clone();
    kernel.install_pin(&CLOCK, Box::new(move || Ok(Box::new(Clock { wanted: notes.clone(), sum: 0 }))));
    (kernel, wanted)
}

type Body = fn(&mut Calls, PinId, &Event) -> Result<(), Failure>;

/// A module that tells what it is told, and does `body` for each event.
struct Listener {
    name: &'static str,
    events: &'static [&'static str],
    body: Body,
    clock: Option<PinId>,
}

impl Module for Listener {
    fn start(&mut self, calls: &mut Calls) -> Result<(), Failure> {
        let clock = calls.use_pin("clock")?;
        for event in self.events {
            calls.subscr_event(clock, event)?;
        }
        self.clock = Some(clock);
        Ok(())
    }

    fn protect(&mut self, _: &mut Calls, program: &str, settings: &Payload) -> Result<(), Failure> {
        let number = settings.read::<u64>()?;
        tell(format!("{} protects {program} {number}", self.name));
        Ok(())
    }

    fn release(&mut self, _: &mut Calls, program: &str) {
        tell(format!("{} releases {program}", self.name));
    }

    fn on_event(&mut self, calls: &mut Calls, event: &Event) -> Result<(), Failure> {
        tell(format!("{} {}", self.name, event.name));
        self.clock.map_or(Ok(()), |clock| (self.body)(calls, clock, event))
    }
}

fn manifest(name: &'static str, make: fn() -> Box<dyn Module>) -> Manifest {
    let make = Box::leak(Box::new(make));
    Manifest { name, what: "", make, budget: Budget::default(), reloads: 0 }
}

fn idle(_: &mut Calls, _: PinId, _: &Event) -> Result<(), Failure> {
    Ok(())
}
