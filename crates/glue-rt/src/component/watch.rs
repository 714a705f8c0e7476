//! How the template watches an instance: until it ends, or hangs.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};
use std::time::{Duration, Instant};

use outlast_interfaces::comp::Serves;
use outlast_interfaces::proc::End;

use crate::clock;
use crate::futex;
use crate::keeping::{Happened, Line};
use crate::layout::{
    BLOCKED, CHANNELS, CLIENT_SLEEPS, DONE, FAULT, REQUEST, RUNNING, SLOTS, TORN, WOKEN, WORKER_SLEEPS,
};
use crate::policy::{ALONE, HANG};

use super::instance::Memory;

/// How an instance ended.
pub struct Watched {
    pub end: Option<End>,
    pub hung: bool,
}

/// Returns when the instance is dead. One that hangs is killed.
pub fn watch(child: libc::pid_t, memory: &Memory, line: Option<&Line>) -> Watched {
    // SAFETY: plain calls on a child that has not been waited for, so that its number is its own.
    let pidfd = unsafe { libc::syscall(libc::SYS_pidfd_open, child, 0) } as RawFd;
    let mut watched = Watched { end: None, hung: false };
    let mut seen: Vec<Option<Seen>> = vec![None; CHANNELS * SLOTS];
    // At first it is looked at more often, for whoever is told that it serves.
    let (mut pause, mut told) = (if line.is_some() { 1 } else { WATCH }, line.is_none());
    loop {
        let mut poll = libc::pollfd { fd: pidfd, events: libc::POLLIN, revents: 0 };
        // SAFETY: one live entry.
        let ready = unsafe { libc::poll(&mut poll, 1, pause) };
        if let Some(line) = line.filter(|_| !told) {
            told = tell_that_it_serves(line, child, memory);
        }
        pause = if told { WATCH } else { (pause * 2).min(WATCH) };
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
        if !watched.hung && hangs(memory, &mut seen, Instant::now()) {
            watched.hung = true;
            memory.control.hangs.fetch_add(1, SeqCst);
            if let Some(line) = line {
                line.tell(Happened::Hung(child));
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

/// How often calls are looked at, in milliseconds.
const WATCH: libc::c_int = (HANG.as_millis() / 4) as libc::c_int;

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

/// A call that is under way, as it was seen first.
#[derive(Clone, Copy)]
struct Seen {
    number: u32,
    since: Instant,
    /// Calls that had ended when the last of them was seen to end, and when that was.
    completed: u64,
    still: Instant,
}

impl Seen {
    /// Nothing ends any more, or others do, but this one not for long: one thread hangs.
    fn hangs(&self, now: Instant) -> bool {
        now.duration_since(self.still) > HANG || now.duration_since(self.since) > ALONE
    }
}

/// Whether some call was made too long ago: neither ended nor blocked nor waiting for a client; or was woken, or its time
/// came, and it did not go on.
fn hangs(memory: &Memory, seen: &mut [Option<Seen>], time: Instant) -> bool {
    let completed = memory.control.completed.load(SeqCst);
    let mut hung = false;
    let now = clock::now();
    for (at, channel) in memory.channels.iter().enumerate() {
        for slot in 0..(channel.used.load(Acquire) as usize).min(SLOTS) {
            let (seen, slot) = (&mut seen[at * SLOTS + slot], &channel.slots[slot]);
            let number = slot.number.load(Relaxed);
            match slot.state.load(SeqCst) {
                REQUEST | RUNNING | WOKEN => {
                    let known = seen.filter(|seen| seen.number == number);
                    let known = known.unwrap_or(Seen { number, since: time, completed, still: time });
                    let still = if known.completed == completed { known.still } else { time };
                    hung |= seen.insert(Seen { completed, still, ..known }).hangs(time);
                }
                BLOCKED => {
                    let deadline = slot.deadline.load(Relaxed);
                    hung |= deadline != 0 && now.saturating_sub(deadline) > HANG.as_nanos() as u64;
                    *seen = None;
                }
                _ => *seen = None,
            }
        }
    }
    hung
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::SeqCst;
    use std::time::{Duration, Instant};

    use super::super::epoch::tests::memory;
    use super::{hangs, ALONE, CHANNELS, HANG, REQUEST, RUNNING, SLOTS};

    #[test]
    fn a_call_hangs_if_no_other_ends_either_and_in_the_end_if_others_do() {
        let memory = memory();
        let slots = &memory.channels[0].slots;
        let [mut all, mut alone] = [(); 2].map(|()| vec![None; CHANNELS * SLOTS]);
        let start = Instant::now();
        slots[0].state.store(RUNNING, SeqCst);
        slots[1].state.store(REQUEST, SeqCst);
        assert!(!hangs(&memory, &mut all, start) && !hangs(&memory, &mut alone, start));
        assert!(hangs(&memory, &mut all, start + HANG + Duration::from_millis(1)));
        // The other one ends and is made again, time and again.
        let step = HANG / 4;
        for turn in 1.. {
            memory.control.completed.fetch_add(1, SeqCst);
            slots[1].number.fetch_add(1, SeqCst);
            let hung = hangs(&memory, &mut alone, start + step * turn);
            assert_eq!(hung, step * turn > ALONE, "turn {turn}");
            if hung {
                break;
            }
        }
    }
}
