//! The machine's microkernel, in a thread of its own: watches the scheduler, and does what other nodes ask for.

use crate::execs::Error;
use crate::teller::Teller;
use outlast_channel::{Hub, Visit};
use outlast_core::Manifest;
use outlast_interfaces::oshang::Settings;
use outlast_pins::{Machine, Place};
use outlast_supervisor::say::say;
use rustix::process::{setrlimit, Resource, Rlimit};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What the person asked for.
pub struct Watch {
    pub settings: Settings,
    /// The modules that protect the machine; none: it is not watched, unless another node wants it and may.
    pub modules: Vec<Manifest>,
    /// Those that do what other nodes ask for.
    pub for_other_nodes: Vec<Manifest>,
    /// The command that is run when something is told of; no words: none.
    pub alert: Vec<String>,
    /// Where it is counted what was told of.
    pub counts: PathBuf,
}

/// Has this thread run before others, and another one see to it that it is not kept from looking even so.
fn take_the_watch(place: &mut Place, to_itself: &Sender<Inbox>) {
    take_precedence();
    let to_itself = to_itself.clone();
    // Without, it looks when it can.
    let _ = place.have_stand_by(take_precedence, move || drop(to_itself.send(Inbox::Wake)));
}

/// What comes in from the channel to other nodes.
pub enum Inbox {
    /// They are spoken to through this, from now on.
    Hub(Option<Hub>),
    Visit(Visit),
    /// Nothing but to look.
    Wake,
}

/// More processor time without a wait is a fault of this thread: it would be what keeps others from running.
const PATIENCE: Duration = Duration::from_secs(2);
/// After as many wishes of other nodes comes a pause: they are not to keep this machine from anything.
const WISHES: u32 = 16;
const PAUSE: Duration = Duration::from_millis(1);

impl Watch {
    /// For ever. `beats` goes on as long as this does.
    ///
    /// # Errors
    /// A module cannot be loaded.
    pub fn watch(
        self,
        teller: &Teller,
        (to_itself, inbox): (&Sender<Inbox>, &Receiver<Inbox>),
        beats: &Arc<AtomicU64>,
    ) -> Result<(), Error> {
        let watches = !self.modules.is_empty();
        let mut has_precedence = watches;
        let mut place = Place::here();
        if watches {
            take_the_watch(&mut place, to_itself);
        }
        let modules = [self.modules, self.for_other_nodes].concat();
        let machine = Machine::new(&self.settings, &modules);
        let mut machine = machine.map_err(|failure| Error::NoModule(failure.to_string()))?;
        if watches {
            match machine.lacks() {
                None => say(format_args!("oshang: watches processors and protected programs")),
                Some(why) => say(format_args!("oshang: watches protected programs, not processors: {why}")),
            }
        }
        let mut looked: Option<Instant> = None;
        let mut wishes = 0;
        loop {
            // One that failed too often wants nothing any more.
            let every = machine.every();
            if every.is_some() && !has_precedence {
                // Another node wants this machine to be looked at.
                has_precedence = true;
                take_the_watch(&mut place, to_itself);
            }
            let is_due = |at: Instant| at.elapsed() >= every.unwrap_or(PATIENCE);
            if looked.is_none_or(is_due) {
                looked = Some(Instant::now());
                let flagged = every.map(|_| machine.look()).unwrap_or_default();
                flagged.iter().for_each(|flagged| teller.starved(flagged));
                place.looked(every, machine.taken());
                beats.fetch_add(1, Relaxed);
            }
            for line in machine.failures() {
                say(format_args!("a module failed: {line}"));
            }
            let since = looked.map_or(Duration::ZERO, |at| at.elapsed());
            let wait = machine.every().unwrap_or(PATIENCE).saturating_sub(since);
            match inbox.recv_timeout(wait) {
                Ok(Inbox::Hub(hub)) => machine.speak_through(hub),
                Ok(Inbox::Visit(visit)) => {
                    machine.visit(visit);
                    wishes += 1;
                }
                Ok(Inbox::Wake) => (),
                Err(_) => wishes = 0,
            }
            if wishes >= WISHES {
                wishes = 0;
                std::thread::sleep(PAUSE);
            }
        }
    }
}

/// Runs before everything that it is to tell of; where that is not allowed it may be kept from telling.
fn take_precedence() {
    let most = PATIENCE.as_micros() as u64;
    // Before anything else: nothing ends a real-time thread that does not stop.
    if setrlimit(Resource::Rttime, Rlimit { current: Some(most), maximum: Some(most) }).is_err() {
        return;
    }
    // What it begins has no precedence.
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: plain system calls on a structure that is ours.
    unsafe {
        let parameters = libc::sched_param { sched_priority: libc::sched_get_priority_max(libc::SCHED_FIFO) };
        libc::sched_setscheduler(0, policy, &parameters);
    }
}
