//! The machine's microkernel, as `protection.rs` is that of one program: the host has it look, modules decide, and what they flag is the
//! host's to tell.

use crate::schl::{Desk, Programs, RunQueues, Schl};
use outlast_core::{Event, Failure, Manifest, Microkernel, Notice, Payload};
use outlast_interfaces::oshang::{self, Settings};
use outlast_interfaces::schl::{self, Look, Starved};
use outlast_supervisor::clock;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

/// The modules that protect the machine. It belongs to the thread that makes it.
pub struct Machine {
    kernel: Microkernel,
    desk: Rc<RefCell<Desk>>,
    queues: Result<RunQueues, String>,
    programs: Programs,
}

impl Machine {
    /// Loads `modules`, and has `oshang` watch.
    ///
    /// # Errors
    /// It is not among them, or cannot be loaded.
    pub fn new(settings: &Settings, modules: &[Manifest]) -> Result<Self, Failure> {
        let desk = Rc::new(RefCell::new(Desk::default()));
        let mut kernel = Microkernel::new();
        let of_pin = Rc::clone(&desk);
        kernel.install_pin(&schl::INTERFACE, Box::new(move || Ok(Box::new(Schl(Rc::clone(&of_pin))))));
        for manifest in modules {
            kernel.load(*manifest)?;
        }
        kernel.protect(oshang::NAME, oshang::MACHINE, Payload::of(settings)?)?;
        Ok(Self { kernel, desk, queues: RunQueues::open(), programs: Programs::new(settings.timeout / 5) })
    }

    /// Why processors cannot be looked at, but protected programs only; none: they can.
    pub fn lacks(&self) -> Option<&str> {
        self.queues.as_ref().err().map(String::as_str)
    }

    /// How often to look.
    pub fn every(&self) -> Option<Duration> {
        self.desk.borrow().every
    }

    /// Looks; what is starved, and is news.
    pub fn look(&mut self) -> Vec<Starved> {
        let at = Duration::from_nanos(clock::monotonic());
        let processors = self.queues.as_mut().map(RunQueues::look).unwrap_or_default();
        let look = Look { at, processors, threads: self.programs.look(at) };
        let Ok(payload) = Payload::of(&look) else { return Vec::new() };
        self.desk.borrow_mut().is_looking = true;
        self.kernel.raise(Event { pin: schl::NAME, name: schl::SWITCHED, program: None, payload });
        let mut desk = self.desk.borrow_mut();
        desk.is_looking = false;
        std::mem::take(&mut desk.flags)
    }

    /// Modules that failed since this was asked last, in words.
    pub fn failures(&mut self) -> Vec<String> {
        self.kernel.take_notices().iter().map(Notice::to_string).collect()
    }
}
