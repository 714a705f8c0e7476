//! The pristine image: booted once, then only forked. It has its instance watched and is all that a micro-reboot needs.
//!
//! It must never wait for a component, take a lock that one may hold, or read what one wrote but for the states of slots:
//! a component that failed may have left anything there.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::sync::atomic::Ordering::{Relaxed, Release, SeqCst};
use std::sync::Arc;
use std::time::{Duration, Instant};

use outlast_core::{Failure, Payload};
use outlast_interfaces::comp::{Death, Decision};
use outlast_interfaces::hang::{self, OfComponent};

use crate::keeping::{Happened, Judge, Keeping, Line, Verdict};
use crate::layout::{ChannelMemory, Control, CHANNELS};
use crate::memory::Shared;
use crate::passage::Passage;
use crate::registry::Registry;
use crate::system;

use super::epoch::begin_epoch;
use super::instance::{serve, Memory};
use super::watch::{watch, Watched};
use super::Component;

/// A component's main function: boots the service, then serves for ever. Returns only if it was not started by a manager.
pub fn run<C: Component + Clone>(boot: impl FnOnce() -> C) -> io::Error {
    let memory = match inherited() {
        Ok(memory) => memory,
        Err(error) => return error,
    };
    // A service that panics has failed: the process ends here and now, whatever the panic strategy is.
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        report(info);
        std::process::abort();
    }));
    let mut line = Line::inherited();
    let pristine = boot();
    let hang = line.as_ref().map_or(hang::USUAL, |line| line.hang);
    let mut judge = match own_judge(hang) {
        Ok(judge) => judge,
        Err(failure) => return io::Error::other(failure.to_string()),
    };
    let mut noticed = Instant::now();
    // SAFETY: asks for a number.
    let template = unsafe { libc::getpid() };
    begin_epoch(&memory);
    loop {
        let born = Instant::now();
        memory.control.completed.store(0, SeqCst);
        memory.control.started.store(0, SeqCst);
        let started = || {
            // Known before the first call is taken, also to those who are quicker than the template.
            memory.control.instance.store(std::process::id(), Release);
            let took = noticed.elapsed().as_nanos() as u64;
            memory.control.reboot_nanoseconds.store(took, Release);
            memory.control.started.store(1, Release);
        };
        // SAFETY: this process has one thread, so that the child may do anything.
        let (child, watched) = match unsafe { libc::fork() } {
            -1 => {
                std::thread::sleep(Duration::from_millis(10));
                (0, Watched { end: None, hung: false })
            }
            0 => {
                // SAFETY: plain call; the parent is the template, whose only thread lives as long as it does.
                unsafe {
                    libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                    if libc::getppid() != template {
                        libc::_exit(0);
                    }
                }
                // What an instance says of itself is not believed.
                drop(line.take());
                serve(pristine.clone(), &memory, started)
            }
            child => {
                memory.control.instance.store(child as u32, Release);
                let watched = watch(child, &memory, &mut judge, line.as_ref());
                noticed = Instant::now();
                memory.control.deaths.fetch_add(1, SeqCst);
                (child, watched)
            }
        };
        // As the dead left them: an epoch begins with none.
        let [descriptors, recovered] =
            [&memory.control.descriptors, &memory.control.recovered].map(|count| count.load(SeqCst));
        let wanted = begin_epoch(&memory);
        let death = Death {
            process: child,
            end: watched.end,
            hung: watched.hung,
            completed: memory.control.completed.load(SeqCst),
            started: memory.control.started.load(SeqCst) != 0,
            wanted,
            lived: born.elapsed(),
            descriptors,
            recovered,
        };
        if let Some(why) = gives_up(&death, &mut judge, line.as_mut(), &memory) {
            give_up(&memory, &why);
        }
    }
}

/// Its own microkernel knows of one component.
pub const SELF: &str = "this component";

fn own_judge(hang: OfComponent) -> Result<Judge, Failure> {
    let mut modules = Keeping::new().modules;
    let hang = Payload::of(&hang)?;
    modules.extend(outlast_modules::of_instances().map(|module| (module, hang.clone())));
    let mut judge = Judge::new(&modules)?;
    judge.protect(SELF)?;
    Ok(judge)
}

/// Whether there is to be no instance any more, and why: the manager's modules decide, or, where nobody keeps the system or none of
/// them says anything in time, this process's own, which counts every death.
fn gives_up(death: &Death, judge: &mut Judge, line: Option<&mut Line>, memory: &Memory) -> Option<String> {
    let own = match judge.decide(SELF, death) {
        Some(Decision::GiveUp(why) | Decision::End(why)) => Some(why),
        Some(Decision::Reboot) | None => None,
    };
    let Some(line) = line else { return own };
    match line.ask(death, &memory.control.verdict) {
        Some(Verdict::Reboot) => return None,
        Some(Verdict::GiveUp) => return Some("a module says so".into()),
        Some(Verdict::Nobody) => (),
        None => line.tell(Happened::ModuleFailed("nobody decided in time about a death".into())),
    }
    own.inspect(|why| line.tell(Happened::GivenUp(why.clone())))
}

fn give_up(memory: &Memory, why: &str) -> ! {
    for channel in memory.channels.iter() {
        channel.given_up.store(1, SeqCst);
    }
    begin_epoch(memory);
    memory.control.given_up.store(1, SeqCst);
    let deaths = memory.control.deaths.load(Relaxed);
    eprintln!("component: given up after {deaths} deaths: {why}");
    std::process::exit(system::GIVEN_UP);
}

/// What the manager left in descriptors.
fn inherited() -> io::Result<Memory> {
    let missing = || io::Error::new(io::ErrorKind::NotFound, "not started as a component: use outlast_glue_rt::System");
    let list = std::env::var(system::DESCRIPTORS).map_err(|_| missing())?;
    std::env::remove_var(system::DESCRIPTORS);
    let numbers: Option<Vec<RawFd>> = list.split(',').map(|number| number.parse().ok()).collect();
    let numbers = numbers.filter(|numbers| numbers.len() == 2 * CHANNELS + system::FIRST).ok_or_else(missing)?;
    // SAFETY: the manager opened them for this process; a wrong number is an error of the calls made with it.
    let fd = |at: usize| unsafe { BorrowedFd::borrow_raw(numbers[at]) };
    for number in &numbers {
        // SAFETY: plain call on a number.
        unsafe { libc::fcntl(*number, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
    let channels: io::Result<Vec<Shared<ChannelMemory>>> =
        (0..CHANNELS).map(|at| Shared::map(fd(system::FIRST + at))).collect();
    let first = system::FIRST + CHANNELS;
    let passages: io::Result<Vec<Passage>> =
        (0..CHANNELS).map(|at| Ok(Passage::new(fd(first + at).try_clone_to_owned()?))).collect();
    Ok(Memory {
        control: Arc::new(Shared::<Control>::map(fd(0))?),
        registry: Arc::new(Shared::<Registry>::map(fd(1))?),
        doorbell: fd(2).as_raw_fd(),
        storage: fd(3).try_clone_to_owned()?.into(),
        recent: Arc::new(Shared::map(fd(4))?),
        channels: Arc::new(channels?),
        passages: Arc::new(passages?),
    })
}
