//! How the template watches an instance: until it ends, or hangs.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};
use std::time::Duration;

use outlast_interfaces::comp::{Call, Look, Serves};
use outlast_interfaces::proc::End;

use crate::clock;
use crate::futex;
use crate::keeping::{Happened, Judge, Line};
use crate::layout::{BLOCKED, CLIENT_SLEEPS, DONE, FAULT, IDLE, REQUEST, SLOTS, TORN, UPCALL, WORKER_SLEEPS};

use super::instance::Memory;
use super::template::SELF;

/// How an instance ended.
pub struct Watched {
    pub end: Option<End>,
    pub hung: bool,
}

/// How often an instance is looked at that no module wants to see.
const UNWATCHED: Duration = Duration::from_millis(500);

/// Returns when the instance is dead. One that a module says hangs is killed.
pub fn watch(child: libc::pid_t, memory: &Memory, judge: &mut Judge, line: Option<&Line>) -> Watched {
    // SAFETY: plain calls on a child that has not been waited for, so that its number is its own.
    let pidfd = unsafe { libc::syscall(libc::SYS_pidfd_open, child, 0) } as RawFd;
    let mut watched = Watched { end: None, hung: false };
    let usual = judge.every().unwrap_or(UNWATCHED).as_millis() as libc::c_int;
    // At first it is looked at more often, for whoever is told that it serves.
    let (mut pause, mut told) = (if line.is_some() { 1 } else { usual }, line.is_none());
    loop {
        let mut poll = libc::pollfd { fd: pidfd, events: libc::POLLIN, revents: 0 };
        // SAFETY: one live entry.
        let ready = unsafe { libc::poll(&mut poll, 1, pause) };
        if let Some(line) = line.filter(|_| !told) {
            told = tell_that_it_serves(line, child, memory);
        }
        pause = if told { usual } else { (pause * 2).min(usual) };
        if ready != 0 || pidfd < 0 {
            // Before its number can be another's.
            memory.control.instance.store(0, SeqCst);
            let mut status = 0;
            // SAFETY: as above.
            let waited = unsafe { libc::waitpid(child, &mut status, 0) };
            if waited == child {
                watched.end = ended(status);
                break;
            }
            if io::Error::last_os_error().raw_os_error() == Some(libc::ECHILD) {
                break;
            }
            continue;
        }
        wake_lost(memory);
        let seen = look(memory);
        if watched.hung || seen.calls.is_empty() {
            continue;
        }
        if let Some(hang) = judge.hangs(SELF, &seen) {
            watched.hung = true;
            memory.control.hangs.fetch_add(1, SeqCst);
            if let Some(line) = line {
                line.tell(Happened::Hung(child, hang));
            }
            // SAFETY: as above.
            unsafe { libc::kill(child, libc::SIGKILL) };
        }
    }
    if pidfd >= 0 {
        // SAFETY: opened here.
        drop(unsafe { OwnedFd::from_raw_fd(pidfd) });
    }
    watched
}

/// False: it does not yet.
fn tell_that_it_serves(line: &Line, process: libc::pid_t, memory: &Memory) -> bool {
    let control = &memory.control;
    if control.started.load(Acquire) == 0 {
        return false;
    }
    let took = Duration::from_nanos(control.reboot_nanoseconds.load(Acquire));
    line.tell(Happened::Serves(Serves { process, took, is_first: control.epoch.load(Acquire) == 1 }));
    true
}

fn ended(status: libc::c_int) -> Option<End> {
    match status {
        status if libc::WIFEXITED(status) => Some(End::Exited(libc::WEXITSTATUS(status))),
        status if libc::WIFSIGNALED(status) => Some(End::Killed(libc::WTERMSIG(status))),
        _ => None,
    }
}

/// Wakes who sleeps though there is something for it: an instance that was harmed may not have done so.
fn wake_lost(memory: &Memory) {
    for channel in memory.channels.iter() {
        for slot in &channel.slots[..(channel.used.load(Acquire) as usize).min(SLOTS)] {
            let sleeps = match slot.state.load(SeqCst) {
                REQUEST => WORKER_SLEEPS,
                DONE | FAULT | TORN => CLIENT_SLEEPS,
                _ => continue,
            };
            if slot.sleepers.load(SeqCst) & sleeps != 0 {
                futex::wake(&slot.state);
            }
        }
    }
}

/// What the instance is about. The memory is one that it writes, too: whatever is there is what a module is told.
fn look(memory: &Memory) -> Look {
    let mut calls = Vec::new();
    for (at, channel) in memory.channels.iter().enumerate() {
        for (slot, memory) in channel.slots.iter().enumerate().take(channel.used.load(Acquire) as usize) {
            let waits_until = match memory.state.load(SeqCst) {
                IDLE | UPCALL | DONE | FAULT | TORN => continue,
                // Until it is woken, if nothing is there.
                BLOCKED => match memory.deadline.load(Relaxed) {
                    0 => continue,
                    until => Some(Duration::from_nanos(until)),
                },
                // Also one that is none: somebody who was harmed left it, and nobody goes on from there.
                _ => None,
            };
            let (number, operation) = (memory.number.load(Relaxed), memory.operation.load(Relaxed));
            calls.push(Call { place: (at * SLOTS + slot) as u32, number, operation, waits_until });
        }
    }
    let completed = memory.control.completed.load(SeqCst);
    Look { at: Duration::from_nanos(clock::now()), completed, calls }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::SeqCst;
    use std::time::Duration;

    use outlast_interfaces::comp::Call;

    use super::super::epoch::tests::memory;
    use super::{look, BLOCKED, DONE, SLOTS, UPCALL};
    use crate::layout::{RUNNING, WOKEN};

    /// What a reply leaves that was written two bytes beside its place.
    const ASTRAY: u32 = RUNNING | DONE << 16;

    #[test]
    fn calls_that_ought_to_end_or_to_go_on_at_some_time_are_seen() {
        let memory = memory();
        let channel = &memory.channels[1];
        channel.used.store(SLOTS as u32 + 7, SeqCst);
        for (slot, state) in channel.slots.iter().zip([RUNNING, WOKEN, DONE, UPCALL, BLOCKED, BLOCKED, ASTRAY]) {
            slot.state.store(state, SeqCst);
            slot.number.store(8, SeqCst);
            slot.operation.store(state, SeqCst);
        }
        channel.slots[5].deadline.store(1_500_000_000, SeqCst);
        memory.control.completed.store(3, SeqCst);
        let seen = look(&memory);
        let place = SLOTS as u32;
        let call = |at, operation, waits_until| Call { place: place + at, number: 8, operation, waits_until };
        let until = Some(Duration::from_millis(1500));
        let expected = [call(0, RUNNING, None), call(1, WOKEN, None), call(5, BLOCKED, until), call(6, ASTRAY, None)];
        assert_eq!(seen.calls, expected);
        assert!(seen.completed == 3 && !seen.at.is_zero());
    }
}
