//! Strikes a run at a moment of its life, and lets it go.

use crate::campaign::{Clock, Fault, Kind};
use crate::debug_register::set_debug;
use crate::draw::Planned;
use crate::group::Group;
use crate::launch::Run;
use crate::memory_map::is_engine;
use crate::oracle::Pace;
use crate::ptrace::registers;
use crate::strike::{place_of, strike, Place, Struck};
use crate::tracee::{Event, Tracee};
use crate::{call_numbers, waiting};
use fastrand::Rng;
use libc::pid_t;
use outlast_supervisor::end::End;
use rustix::io::Errno;
use std::time::{Duration, Instant};

/// How often a thread is looked for that runs the program's own code, and how long it may run between two looks.
const TRIES: u32 = 200;
const BETWEEN: Duration = Duration::from_micros(300);
const STOPPING: Duration = Duration::from_secs(2);
/// How often the engine's own look at a place is passed over.
const HITS: u32 = 20_000;

/// Waits for the moment; false if the run ended before.
pub fn wait(run: &mut Run, clock: Clock, share: f64, pace: Pace, deadline: Instant) -> bool {
    loop {
        if run.target_has_ended() || waiting::is_interrupted() || Instant::now() >= deadline {
            return false;
        }
        let (now, whole) = match clock {
            Clock::Elapsed => (Some(run.started.elapsed()), pace.elapsed),
            Clock::TaskClock => (run.program().and_then(waiting::processor_time), pace.processor),
        };
        let at = whole.mul_f64(share);
        match now {
            Some(now) if now >= at => return true,
            Some(now) => {
                std::thread::sleep(((at - now) / 2).clamp(Duration::from_micros(50), Duration::from_millis(5)))
            }
            None => std::thread::sleep(Duration::from_micros(200)),
        }
    }
}

/// Strikes now. None: nobody was there to be struck.
pub fn hit(run: &mut Run, planned: &Planned<'_>, group: Option<&Group>, deadline: Instant) -> Option<Struck> {
    let fault = planned.fault;
    let mut rng = Rng::with_seed(planned.seed);
    match fault.kind {
        Kind::Limit => {
            let group = group?;
            let struck = Struck::now(Place::Process, "memory limit down to what is used".into(), None);
            if !group.tighten() {
                return None;
            }
            std::thread::sleep(fault.delay.unwrap_or(Duration::from_millis(500)));
            group.release();
            Some(struck)
        }
        Kind::Signal => {
            let name = fault.signal.as_deref().unwrap_or("SIGSEGV");
            let pid = run.program()?;
            let struck = Struck::now(Place::Process, name.into(), Some(true));
            // SAFETY: plain system call; the process was the run's a moment ago, and numbers are not used again so soon.
            let sent = unsafe { libc::kill(pid, call_numbers::signal(name)?) };
            (sent == 0).then_some(struck)
        }
        _ => {
            let (struck, end) = hit_process(run.program()?, fault, &mut rng, deadline, |_| ())?;
            run.ended(end);
            struck
        }
    }
}

/// Strikes a process; and how it ended, if it did so meanwhile. None: it cannot be traced. `look` is given the thread that is about to be
/// struck.
pub fn hit_process(
    pid: pid_t,
    fault: &Fault,
    rng: &mut Rng,
    deadline: Instant,
    look: impl FnOnce(pid_t),
) -> Option<(Option<Struck>, Option<End>)> {
    let mut tracee = Tracee::seize(pid).ok()?;
    let struck = strike_one(&mut tracee, fault, rng, deadline, look).ok().flatten();
    let struck = struck.map(|struck| watched(&mut tracee, struck, deadline));
    Some((struck, tracee.detach()))
}

/// Strikes a thread that runs the program's own code, or if none does for long, another one.
fn strike_one(
    tracee: &mut Tracee,
    fault: &Fault,
    rng: &mut Rng,
    deadline: Instant,
    look: impl FnOnce(pid_t),
) -> Result<Option<Struck>, Errno> {
    for attempt in 1.. {
        if !tracee.stop(Instant::now() + STOPPING) {
            return Ok(None);
        }
        let mut threads = tracee.stopped();
        if fault.kind == Kind::Thread && threads.len() > 1 {
            threads.retain(|tid| *tid != tracee.pid);
        }
        if threads.is_empty() {
            return Ok(None);
        }
        rng.shuffle(&mut threads);
        let own = threads.iter().find(|tid| place_of(**tid) == Ok(Place::Program)).copied();
        if own.is_some() || attempt == TRIES {
            let short = Instant::now() + STOPPING;
            let tid = own.unwrap_or(threads[0]);
            look(tid);
            return strike(tracee, tid, fault, rng, deadline.min(short));
        }
        tracee.go_all(libc::PTRACE_CONT);
        std::thread::sleep(BETWEEN);
    }
    Ok(None)
}

/// Stays until the program meets what was changed, if that can be told; the engine's looks do not count.
pub fn watched(tracee: &mut Tracee, mut struck: Struck, deadline: Instant) -> Struck {
    let Some((address, watch)) = struck.watch else { return struck };
    tracee.stop(Instant::now() + STOPPING);
    for tid in tracee.stopped() {
        if set_debug(tid, address, watch).is_err() {
            return struck;
        }
    }
    tracee.go_all(libc::PTRACE_CONT);
    let mut passed = 0;
    loop {
        match tracee.next(deadline) {
            Event::Debug(tid) if registers(tid).is_ok_and(|r| is_engine(r.rip)) && passed < HITS => {
                passed += 1;
                tracee.go(tid, libc::PTRACE_CONT);
            }
            Event::Debug(_) => {
                struck.activated = Some(true);
                return struck;
            }
            Event::Stopped(tid) => {
                let _ = set_debug(tid, address, watch);
                tracee.go(tid, libc::PTRACE_CONT);
            }
            Event::Signal(tid, _) | Event::Call(tid) => tracee.go(tid, libc::PTRACE_CONT),
            Event::Ended => {
                // An instruction that was changed may begin before the byte that is looked at.
                struck.activated = (watch == crate::debug_register::Watch::Access).then_some(false);
                return struck;
            }
            Event::TooLate => return struck,
        }
    }
}
