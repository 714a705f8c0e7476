//! Strikes a run at a named point: it is traced from its start until then.

use crate::call_numbers;
use crate::campaign::Kind;
use crate::debug_register::{clear_debug, set_debug, Watch};
use crate::draw::{Planned, Point};
use crate::launch::Run;
use crate::memory_map::{self, is_engine};
use crate::moment::watched;
use crate::ptrace::{dispatched_call, registers, request, set_registers};
use crate::strike::{strike, Place, Struck};
use crate::symbols;
use crate::tracee::{Event, Tracee};
use fastrand::Rng;
use libc::pid_t;
use rustix::io::Errno;
use std::time::{Duration, Instant};

/// What became of the attempt.
pub enum Attempt {
    Struck(Struck),
    /// The run ended without coming to the point.
    NotReached,
    /// It was too far already when it could be traced: try again.
    Missed,
}

/// Strikes when the run comes to its point.
pub fn hit(run: &mut Run, planned: &Planned<'_>, deadline: Instant) -> Result<Attempt, Errno> {
    let mut tracee = match run.is_protected() {
        false => Tracee::started(run.child())?,
        true => match caught(run, deadline) {
            Some(tracee) => tracee,
            None => return Ok(Attempt::Missed),
        },
    };
    let attempt = at_entry(&mut tracee, deadline).and_then(|reached| match reached {
        false => Ok(Attempt::Missed),
        true => at_point(&mut tracee, planned, run.is_protected(), deadline),
    });
    run.ended(tracee.detach());
    attempt
}

/// The program, as soon as its supervisor has let go of it: the engine has then to begin, and the loader, before the
/// program does.
fn caught(run: &mut Run, deadline: Instant) -> Option<Tracee> {
    while Instant::now() < deadline && !run.target_has_ended() {
        if let Some(pid) = run.program().filter(|pid| is_let_go(*pid)) {
            let mut tracee = Tracee::seize(pid).ok()?;
            return tracee.stop(deadline).then_some(tracee);
        }
        std::thread::sleep(Duration::from_micros(30));
    }
    None
}

fn is_let_go(pid: pid_t) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let untraced = status.lines().any(|line| line.strip_prefix("TracerPid:").is_some_and(|of| of.trim() == "0"));
    untraced && memory_map::of(pid).iter().any(|m| is_engine(m.range.start))
}

/// Lets it run to the program's own first instruction, when its libraries are there.
fn at_entry(tracee: &mut Tracee, deadline: Instant) -> Result<bool, Errno> {
    let entry = symbols::entry(tracee.pid).ok_or(Errno::SRCH)?;
    set_debug(tracee.pid, entry, Watch::Execution)?;
    tracee.go_all(libc::PTRACE_CONT);
    loop {
        match tracee.next(deadline) {
            Event::Debug(tid) => {
                clear_debug(tid);
                return Ok(true);
            }
            Event::Signal(tid, libc::SIGTRAP) => {
                tracee.swallow(tid);
                tracee.go(tid, libc::PTRACE_CONT);
            }
            Event::Signal(tid, _) | Event::Call(tid) | Event::Stopped(tid) => tracee.go(tid, libc::PTRACE_CONT),
            Event::Ended | Event::TooLate => return Ok(false),
        }
    }
}

fn at_point(tracee: &mut Tracee, planned: &Planned<'_>, protected: bool, deadline: Instant) -> Result<Attempt, Errno> {
    let struck = match &planned.point {
        Point::Entry(symbol, nth) => at_function(tracee, planned, symbol, *nth, deadline)?,
        Point::Call(name, nth) => at_call(tracee, planned, name, *nth, protected, deadline)?,
        Point::Share(..) => None,
    };
    Ok(match struck {
        Some(struck) => Attempt::Struck(watched(tracee, struck, deadline)),
        None => Attempt::NotReached,
    })
}

fn at_function(
    tracee: &mut Tracee,
    planned: &Planned<'_>,
    symbol: &str,
    nth: u64,
    deadline: Instant,
) -> Result<Option<Struck>, Errno> {
    let Some(address) = symbols::find(tracee.pid, symbol) else { return Ok(None) };
    for tid in tracee.stopped() {
        set_debug(tid, address, Watch::Execution)?;
    }
    tracee.go_all(libc::PTRACE_CONT);
    let mut seen = 0;
    loop {
        match tracee.next(deadline) {
            Event::Debug(tid) => {
                seen += 1;
                if seen == nth {
                    tracee.stop(Instant::now() + Duration::from_secs(2));
                    tracee.stopped().into_iter().for_each(clear_debug);
                    let mut rng = Rng::with_seed(planned.seed);
                    let soon = Instant::now() + Duration::from_secs(2);
                    return strike(tracee, tid, planned.fault, &mut rng, deadline.min(soon));
                }
                tracee.go(tid, libc::PTRACE_CONT);
            }
            Event::Stopped(tid) => {
                set_debug(tid, address, Watch::Execution)?;
                tracee.go(tid, libc::PTRACE_CONT);
            }
            Event::Signal(tid, _) | Event::Call(tid) => tracee.go(tid, libc::PTRACE_CONT),
            Event::Ended | Event::TooLate => return Ok(None),
        }
    }
}

fn at_call(
    tracee: &mut Tracee,
    planned: &Planned<'_>,
    name: &str,
    nth: u64,
    protected: bool,
    deadline: Instant,
) -> Result<Option<Struck>, Errno> {
    let wanted = call_numbers::call(name).ok_or(Errno::INVAL)?;
    // A protected program's calls come as signals, before the engine hears of them.
    let how = if protected { libc::PTRACE_CONT } else { libc::PTRACE_SYSCALL };
    tracee.go_all(how);
    let mut seen = 0;
    loop {
        let (tid, call) = match tracee.next(deadline) {
            Event::Call(tid) => (tid, begun_call(tid)),
            Event::Signal(tid, libc::SIGSYS) if protected => (tid, dispatched_call(tid)),
            Event::Signal(tid, _) | Event::Debug(tid) | Event::Stopped(tid) => (tid, None),
            Event::Ended | Event::TooLate => return Ok(None),
        };
        if call == Some(wanted) {
            seen += 1;
            if seen >= nth {
                if let Some(struck) = harm_call(tracee, tid, planned, protected, deadline)? {
                    return Ok(Some(struck));
                }
            }
        }
        tracee.go(tid, how);
    }
}

/// The number of a call that begins; none at its end.
fn begun_call(tid: pid_t) -> Option<i64> {
    const ENTRY: u8 = 1;
    const GET_SYSCALL_INFO: libc::c_uint = 0x420e;
    let mut info = [0_u64; 12];
    let size = std::mem::size_of_val(&info) as u64;
    request(GET_SYSCALL_INFO, tid, size, info.as_mut_ptr() as u64).ok()?;
    (info[0] as u8 == ENTRY).then_some(info[3] as i64)
}

/// None: this call cannot be harmed in this way.
fn harm_call(
    tracee: &mut Tracee,
    tid: pid_t,
    planned: &Planned<'_>,
    protected: bool,
    deadline: Instant,
) -> Result<Option<Struck>, Errno> {
    let fault = planned.fault;
    let mut all = registers(tid)?;
    let what = match fault.kind {
        Kind::FailedCall => {
            let name = fault.error.as_deref().unwrap_or("EIO");
            let error = call_numbers::error(name).ok_or(Errno::INVAL)?;
            if protected {
                tracee.swallow(tid);
            } else {
                all.orig_rax = u64::MAX;
                set_registers(tid, &all)?;
                tracee.go(tid, libc::PTRACE_SYSCALL);
                while !matches!(tracee.next(deadline), Event::Call(at) if at == tid) {
                    if tracee.has_ended() || Instant::now() >= deadline {
                        return Err(Errno::SRCH);
                    }
                    let others: Vec<pid_t> = tracee.stopped().into_iter().filter(|at| *at != tid).collect();
                    others.into_iter().for_each(|at| tracee.go(at, libc::PTRACE_SYSCALL));
                }
                all = registers(tid)?;
            }
            (all.rax, all.orig_rax) = (i64::from(-error) as u64, u64::MAX);
            set_registers(tid, &all)?;
            format!("fails with {name}")
        }
        Kind::ShortCall => {
            if all.rdx < 2 {
                return Ok(None);
            }
            let whole = all.rdx;
            all.rdx = Rng::with_seed(planned.seed).u64(1..whole);
            set_registers(tid, &all)?;
            format!("{} bytes in place of {whole}", all.rdx)
        }
        _ => {
            let delay = fault.delay.unwrap_or(Duration::from_millis(100));
            std::thread::sleep(delay);
            format!("{} late", humantime::format_duration(delay))
        }
    };
    Ok(Some(Struck::now(Place::Program, what, Some(true))))
}
