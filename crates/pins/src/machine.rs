//! The machine's microkernel, as `protection.rs` is that of one program: the host has it look, modules decide, and what they flag is the
//! host's to tell.

use crate::channel::{self, ChannelPin};
use crate::schl::{Desk, Programs, RunQueues, Schl};
use outlast_channel::{Hub, Visit};
use outlast_core::{Event, Failure, Manifest, Microkernel, Notice, Payload, Pin};
use outlast_interfaces::channel as channel_interface;
use outlast_interfaces::oshang::{self, Settings};
use outlast_interfaces::schl::{self, Flagged, Look};
use outlast_supervisor::clock;
use std::cell::{OnceCell, RefCell};
use std::rc::Rc;
use std::time::Duration;

/// The modules that protect the machine. It belongs to the thread that makes it.
pub struct Machine {
    kernel: Microkernel,
    desk: Rc<RefCell<Desk>>,
    hub: Rc<RefCell<Option<Hub>>>,
    /// Opened when they are looked at first.
    queues: OnceCell<Result<RunQueues, String>>,
    programs: Programs,
}

impl Machine {
    /// Loads `modules`, and has `oshang` watch, if it is among them.
    ///
    /// # Errors
    /// One cannot be loaded.
    pub fn new(settings: &Settings, modules: &[Manifest]) -> Result<Self, Failure> {
        let desk = Rc::new(RefCell::new(Desk::default()));
        let mut kernel = Microkernel::new();
        let of_pin = Rc::clone(&desk);
        kernel.install_pin(&schl::INTERFACE, Box::new(move || Ok(Box::new(Schl(Rc::clone(&of_pin))))));
        let hub = Rc::new(RefCell::new(None));
        let of_pin = Rc::clone(&hub);
        let make = move || Ok(Box::new(ChannelPin(Rc::clone(&of_pin))) as Box<dyn Pin>);
        kernel.install_pin(&channel_interface::INTERFACE, Box::new(make));
        for manifest in modules {
            kernel.load(*manifest)?;
        }
        if modules.iter().any(|manifest| manifest.name == oshang::NAME) {
            kernel.protect(oshang::NAME, oshang::MACHINE, Payload::of(settings)?)?;
        }
        let every = desk.borrow().every;
        desk.borrow_mut().usual = every;
        Ok(Self { kernel, desk, hub, queues: OnceCell::new(), programs: Programs::new(settings.timeout / 5) })
    }

    /// Why processors cannot be looked at, but protected programs only; none: they can.
    pub fn lacks(&self) -> Option<&str> {
        self.queues.get_or_init(RunQueues::open).as_ref().err().map(String::as_str)
    }

    /// How often to look.
    pub fn every(&self) -> Option<Duration> {
        self.desk.borrow().every
    }

    /// Looks; what is starved, and is news.
    pub fn look(&mut self) -> Vec<Flagged> {
        let at = Duration::from_nanos(clock::monotonic());
        self.queues.get_or_init(RunQueues::open);
        let processors = self.queues.get_mut().and_then(|queues| queues.as_mut().ok()).map(RunQueues::look);
        let processors = processors.unwrap_or_default();
        let look = Look { at, processors, threads: self.programs.look(at) };
        let Ok(payload) = Payload::of(&look) else { return Vec::new() };
        self.desk.borrow_mut().is_looking = true;
        self.kernel.raise(Event { pin: schl::NAME, name: schl::SWITCHED, program: None, payload });
        let mut desk = self.desk.borrow_mut();
        desk.is_looking = false;
        std::mem::take(&mut desk.flags)
    }

    /// The processors that real-time threads had or waited for at the last look: whoever looks keeps off them, since it would be a switch.
    pub fn taken(&self) -> &[u32] {
        match self.queues.get() {
            Some(Ok(queues)) => queues.taken(),
            _ => &[],
        }
    }

    /// Other nodes are spoken to through this from now on.
    pub fn speak_through(&mut self, hub: Option<Hub>) {
        *self.hub.borrow_mut() = hub;
    }

    /// Another node wants something.
    pub fn visit(&mut self, visit: Visit) {
        if !self.kernel.pins().any(|(pin, is_used)| is_used && pin.name == channel_interface::NAME) {
            return self.hub.borrow().iter().for_each(|hub| channel::refuse(hub, &visit));
        }
        if let Some(event) = channel::event(visit) {
            self.kernel.raise(event);
        }
    }

    /// Modules that failed since this was asked last, in words.
    pub fn failures(&mut self) -> Vec<String> {
        self.kernel.take_notices().iter().map(Notice::to_string).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schl::stuck::{pin, Stuck, STUCK};
    use outlast_interfaces::schl::{Starved, Stays};
    use std::thread::{available_parallelism, sleep};
    use std::time::Instant;

    #[test]
    fn a_kernel_that_does_not_switch_while_somebody_waits_is_found_in_kernel_mode() {
        let settings = Settings::with_threshold(Duration::from_millis(250));
        let mut machine = Machine::new(&settings, &outlast_modules::of_machine()).expect("the module");
        let processors = available_parallelism().map_or(1, usize::from);
        if processors < 2 || machine.lacks().is_some() {
            return println!("skipped: needs BPF, and a processor that is not stuck");
        }
        pin(0..processors - 1);
        let Some(stuck) = Stuck::begin() else { return println!("skipped: needs BPF") };
        let (thread, last, began) = (stuck.thread, stuck.processor, Instant::now());
        let mut found = None;
        while !stuck.is_over() || began.elapsed() < STUCK {
            let of_it = |flagged: &Flagged| matches!(flagged.what, Starved::Processor { runs: Some(runs), .. } if runs.thread == thread);
            found = found.or(machine.look().into_iter().find(of_it));
            sleep(settings.every);
        }
        if !stuck.was_stuck() {
            return println!("skipped: this kernel switches in the middle of its own work");
        }
        let found = found.map(|flagged| flagged.what);
        let Some(Starved::Processor { number, waiting, why, .. }) = found else { panic!("{:?}", machine.failures()) };
        let Stays::Computes { count, in_user_mode, check } = why else { panic!("{why:?}") };
        assert!((number as usize, check) == (last, settings.threshold) && waiting > 0, "{waiting} {check:?}");
        assert!(count > check && in_user_mode < Duration::from_millis(20), "{count:?} {in_user_mode:?}");
    }
}
