//! One program's microkernel: the supervisor tells, modules decide, pins take it down, and the supervisor does it.

use crate::change::leave_to_nobody;
use crate::dbr::Dbr;
use crate::desk::{Desk, Shared};
use crate::file::File;
use crate::ipc::Ipc;
use crate::mem::Mem;
use crate::net::Net;
use crate::peri::Peri;
use crate::pmc::Pmc;
use crate::proc::Proc;
use crate::sect::Sect;
use crate::seen::{seen, Sight};
use crate::sig::Sig;
use crate::sysc::Sysc;
use crate::wishes::Wishes;
use outlast_core::confine::{self, Overrun};
use outlast_core::{Event, Failure, Interface, Manifest, Microkernel, Notice, Payload, Pin};
use outlast_interfaces::proc::{self, Death, Decision, Step, Stuck};
use outlast_interfaces::{dbr, file, ipc, mem, net, peri, plugin, pmc, sect, sig, sysc};
use outlast_supervisor::again;
use outlast_supervisor::clock;
use outlast_supervisor::decision::{Change, Changed, Decides, Met, Parts, Process, Wait};
use outlast_supervisor::options::Options;
use std::rc::Rc;
use std::time::Duration;

/// The modules that protect one program.
pub struct Protection {
    pub(crate) kernel: Microkernel,
    pub(crate) desk: Shared,
    failures: Vec<String>,
    /// What can be loaded.
    pub(crate) manifests: Vec<Manifest>,
    /// Makes one of a file that is loaded later.
    pub(crate) from_file: FromFile,
    said: Vec<String>,
}

/// Makes a module that can be loaded of a file, or says why not.
pub type FromFile = fn(&plugin::Wish) -> Result<Manifest, String>;

impl Protection {
    /// Loads `modules`, and has those that are wished protect the program, which writes to `options` how its engine is to.
    /// `failures`: how modules failed in this process before it began anew; each is loaded again so much less often.
    ///
    /// # Errors
    /// A module that is wished cannot be loaded, or cannot do what is wished.
    pub fn new(
        program: &str,
        wishes: &Wishes,
        options: &mut Options,
        modules: &[Manifest],
        failures: &[String],
    ) -> Result<Self, Failure> {
        let mut plain = options.clone();
        for module in modules {
            leave_to_nobody(&mut plain, module.name);
        }
        let desk = Shared::new(Desk::new(program, plain).into());
        let mut kernel = Microkernel::new();
        install(&mut kernel, &desk, |name| options.without_pins.iter().all(|gone| gone != name));
        let (mut told, mut lost) = (Vec::new(), Vec::new());
        for manifest in modules {
            let mut before =
                failures.iter().filter_map(|failure| parse(failure)).filter(|(name, _)| *name == manifest.name);
            let count = before.clone().count() as u32;
            if let Some((name, why)) = before.next_back() {
                let again = if count <= manifest.reloads { "" } else { "; it is not loaded any more" };
                told.push(format!("{name}: {}{again}", overrun(why)));
            }
            if count <= manifest.reloads {
                let loaded = kernel.load(Manifest { reloads: manifest.reloads - count, ..*manifest });
                // One that protects nothing may ask for a pin that was uninstalled.
                let is_idle = !options.without_pins.is_empty() && !wishes.modules().contains(&manifest.name);
                lost.extend(wishes.or_lost(manifest.name, if is_idle { Ok(()) } else { loaded })?);
            }
        }
        let mut is_whole = true;
        for (module, settings) in wishes.settings()? {
            match kernel.protect(module, program, settings) {
                // It has failed too often, or was not to be had, which is told of below. The program has begun, and its engine goes on as it
                // was told.
                Err(Failure::NoSuchModule(_)) if !failures.is_empty() || !lost.is_empty() => is_whole = false,
                other => {
                    let refused = wishes.or_lost(module, other)?;
                    is_whole &= refused.is_none();
                    lost.extend(refused);
                }
            }
        }
        if let Some(chosen) = desk.borrow_mut().options.take().filter(|_| is_whole) {
            *options = chosen;
        }
        // Of several only the last is news.
        let failures = lost.into_iter().chain(told.into_iter().last()).collect();
        let from_file: FromFile = |_| Err("no module is loaded from a file here".into());
        Ok(Self { kernel, desk, failures, manifests: modules.to_vec(), from_file, said: Vec::new() })
    }

    /// By what modules are made of files that are wished for later.
    pub fn load_by(&mut self, from_file: FromFile) {
        self.from_file = from_file;
    }

    /// Has the log told that a module that is wished could not be had.
    pub fn lacks(&mut self, failure: String) {
        self.failures.push(failure);
    }

    fn raise(&mut self, pin: &'static str, name: &'static str, payload: Payload) {
        let program = Some(self.desk.borrow().program.clone());
        self.kernel.raise(Event { pin, name, program, payload });
    }

    fn tell_of_signal(&mut self, event: &'static str, told: sig::Told) {
        if let Ok(payload) = Payload::of(&told) {
            self.raise(sig::NAME, event, payload);
        }
    }

    fn look_for_hits(&mut self, process: Process) {
        let (hits, failure) = self.desk.borrow_mut().breakpoints.look(process);
        self.failures.extend(failure.map(|failure| format!("dbr: {failure}")));
        for payload in hits.iter().filter_map(|hit| Payload::of(hit).ok()) {
            self.raise(dbr::NAME, dbr::HIT, payload);
        }
    }

    /// Asks the modules, and again if one of them failed on it before anything was decided.
    fn ask(&mut self, name: &'static str, payload: &Payload) -> Option<Decision> {
        self.desk.borrow_mut().process = None;
        for _ in 0..ASKED {
            self.desk.borrow_mut().ask();
            self.raise(proc::NAME, name, payload.clone());
            let decision = self.desk.borrow_mut().answer();
            let notices = self.kernel.take_notices();
            let has_failed = notices.iter().any(|notice| matches!(notice, Notice::Unloaded { again: true, .. }));
            self.note(notices);
            if decision.is_some() || !has_failed {
                return decision;
            }
        }
        None
    }

    pub(crate) fn note(&mut self, notices: Vec<Notice>) {
        for notice in notices {
            match notice {
                Notice::Said { module, what } => self.said.push(format!("{module}: {what}")),
                failure => self.failures.push(failure.to_string()),
            }
        }
    }
}

/// How often a question is asked of modules that fail on it.
const ASKED: u32 = 4;

/// Makes a pin over a desk.
type Over = fn(Shared) -> Box<dyn Pin>;

/// The pins that exist.
static PINS: [(&Interface, Over); 11] = [
    (&proc::INTERFACE, |desk| Box::new(Proc(desk))),
    (&sysc::INTERFACE, |desk| Box::new(Sysc(desk))),
    (&peri::INTERFACE, |desk| Box::new(Peri(desk))),
    (&pmc::INTERFACE, |desk| Box::new(Pmc(desk))),
    (&sect::INTERFACE, |desk| Box::new(Sect(desk))),
    (&sig::INTERFACE, |desk| Box::new(Sig(desk))),
    (&mem::INTERFACE, |desk| Box::new(Mem(desk))),
    (&file::INTERFACE, |desk| Box::new(File(desk))),
    (&net::INTERFACE, |desk| Box::new(Net(desk))),
    (&ipc::INTERFACE, |desk| Box::new(Ipc(desk))),
    (&dbr::INTERFACE, |desk| Box::new(Dbr(desk))),
];

/// What they are called.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    PINS.iter().map(|(interface, _)| interface.name)
}

/// Makes those known that are wanted, over this desk; whether there was any.
pub(crate) fn install(kernel: &mut Microkernel, desk: &Shared, is_wanted: impl Fn(&str) -> bool) -> bool {
    let mut any = false;
    for (interface, over) in PINS.iter().filter(|(interface, _)| is_wanted(interface.name)) {
        let desk = Rc::clone(desk);
        kernel.install_pin(interface, Box::new(move || Ok(over(Rc::clone(&desk)))));
        any = true;
    }
    any
}

impl Decides for Protection {
    fn begin(&mut self) {
        confine::guard(|module, why| again::execute(module, number(&why)));
    }

    fn died(&mut self, death: &Death) -> Option<Decision> {
        if let proc::End::Killed(signal) = death.end {
            self.desk.borrow_mut().process = None;
            let at = Duration::from_nanos(clock::monotonic());
            self.tell_of_signal(sig::FATAL, sig::Told { signal, at, survived: false });
        }
        let payload = Payload::of(death).ok()?;
        self.ask(proc::DIED, &payload)
    }

    fn refused(&mut self) -> Option<Duration> {
        match self.ask(proc::REFUSED, &Payload::NONE) {
            Some(Decision::AskAgain(after)) => Some(after),
            _ => None,
        }
    }

    fn stuck(&mut self, stuck: &Stuck) -> Option<Step> {
        let payload = Payload::of(stuck).ok()?;
        match self.ask(proc::STUCK, &payload) {
            Some(Decision::GoBackTo(step)) => Some(step),
            _ => None,
        }
    }

    fn born(&mut self) {
        self.raise(proc::NAME, proc::BORN, Payload::NONE);
    }

    fn renewed(&mut self) {
        self.raise(proc::NAME, proc::RENEWED, Payload::NONE);
    }

    fn looks_every(&self) -> Option<Duration> {
        // Of several modules the one that wants it most often.
        self.desk.borrow().looks.values().min().copied()
    }

    fn counted(&mut self, counts: &[pmc::Count], sections: &[sect::Thread]) -> Option<proc::Hang> {
        let (payload, sections) = (Payload::of(&counts).ok()?, (sections, Payload::of(&sections).ok()?));
        self.desk.borrow_mut().look();
        // Of a thread that hangs in both the section that has a name says more.
        if !sections.0.is_empty() {
            self.raise(sect::NAME, sect::SEEN, sections.1);
        }
        self.raise(pmc::NAME, pmc::COUNTED, payload);
        let notices = self.kernel.take_notices();
        self.note(notices);
        self.desk.borrow_mut().flagged()
    }

    fn starved(&mut self) -> Option<proc::Starvation> {
        self.desk.borrow_mut().starved()
    }

    fn until_look(&self) -> Option<Duration> {
        self.desk.borrow().sights.until_next()
    }

    fn look(&mut self, process: Option<Process>, waits: &dyn Fn() -> Vec<(i32, Wait)>) -> Vec<proc::Leak> {
        let due = self.desk.borrow_mut().turns(process);
        let Some(process) = process.filter(|_| !due.is_empty()) else { return Vec::new() };
        self.desk.borrow_mut().begin_watching();
        for pin in due {
            if pin == dbr::NAME {
                self.look_for_hits(process);
            } else if let Some(Sight { pin, event, payload }) = seen(pin, &process, waits) {
                self.raise(pin, event, payload);
            }
        }
        let notices = self.kernel.take_notices();
        self.note(notices);
        self.desk.borrow_mut().end_watching()
    }

    fn signalled(&mut self, signal: i32, meeting: Met) {
        let (event, at) = match meeting {
            Met::PassedOn => (sig::DELIVERED, clock::monotonic()),
            Met::WentBack(at) => (sig::FATAL, at),
        };
        self.tell_of_signal(event, sig::Told { signal, at: Duration::from_nanos(at), survived: true });
    }

    fn recovered(&mut self, at: Duration) -> Option<proc::Storm> {
        let payload = Payload::of(&at).ok()?;
        self.desk.borrow_mut().count();
        self.raise(proc::NAME, proc::RECOVERED, payload);
        self.desk.borrow_mut().storm()
    }

    fn change(&mut self, change: &Change, options: &Options) -> Result<Changed, String> {
        self.change_as_wished(change, options)
    }

    fn restore(&mut self, options: &Options) -> Result<(), String> {
        self.restore_all(options)
    }

    fn for_another(&self, name: &str, options: &mut Options) -> Result<Box<dyn Decides>, String> {
        let wishes = Wishes::of(options);
        let another = Self::new(name, &wishes, options, &self.manifests, &[]);
        let mut another = another.map_err(|failure| failure.to_string())?;
        another.load_by(self.from_file);
        Ok(Box::new(another))
    }

    fn parts(&self) -> Parts {
        let modules = self.kernel.modules().filter(|(_, programs)| !programs.is_empty());
        let pins = self.kernel.pins().filter(|(_, is_loaded)| *is_loaded);
        Parts {
            modules: modules.map(|(manifest, _)| manifest.name.into()).collect(),
            pins: pins.map(|(interface, _)| interface.name.into()).collect(),
        }
    }

    fn failures(&mut self) -> Vec<String> {
        let notices = self.kernel.take_notices();
        self.note(notices);
        std::mem::take(&mut self.failures)
    }

    fn said(&mut self) -> Vec<String> {
        let notices = self.kernel.take_notices();
        self.note(notices);
        std::mem::take(&mut self.said)
    }
}

/// How a module failed, as a number for a command line.
fn number(why: &Overrun) -> i64 {
    match why {
        Overrun::Panic(_) | Overrun::Fault(_) => 0,
        Overrun::Time => -1,
        Overrun::Memory => -2,
        Overrun::Trap(signal) => i64::from(*signal),
    }
}

fn overrun(number: i64) -> Overrun {
    match number {
        0 => Overrun::Panic(String::new()),
        -1 => Overrun::Time,
        -2 => Overrun::Memory,
        signal => Overrun::Trap(signal as i32),
    }
}

/// A module and a number, as `--failed` has them.
fn parse(failure: &str) -> Option<(&str, i64)> {
    let (module, why) = failure.split_once('=')?;
    Some((module, why.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_image::inject::option;

    fn options() -> Options {
        let mut options = Options { interval_ns: 1_000_000, retries: Some(5), ..Options::default() };
        options.set(option::EACH_OUTPUT, true);
        options.set(option::SPARING, true);
        options
    }

    fn protected(wishes: &Wishes, failures: &[String]) -> Options {
        let mut options = options();
        Protection::new("it", wishes, &mut options, &outlast_modules::all(), failures).expect("modules");
        options
    }

    #[test]
    fn a_program_that_is_taken_over_stays_protected_as_it_was() {
        assert_eq!(protected(&Wishes::of(&options()), &[]), options());
    }

    #[test]
    fn nothing_is_committed_that_no_module_asked_for() {
        let none = Wishes { visible: None, checkpoint: None, ..Wishes::of(&options()) };
        let chosen = protected(&none, &[]);
        assert_eq!((chosen.interval_ns, chosen.bits), (0, option::NO_VISIBLE));
        assert_eq!(Wishes::of(&chosen), none);
    }

    #[test]
    fn a_module_that_failed_too_often_leaves_the_engine_as_it_was_told() {
        let failures = vec!["visible=-1".to_string(); 9];
        assert_eq!(protected(&Wishes::of(&options()), &failures), options());
    }
}
