//! A process with all its threads under ptrace, for as short as can be.
//!
//! All requests have to come from the thread that attached. Nothing here waits without a deadline, and waits name their
//! thread, for other experiments' processes are children of this process, too.

use crate::debug_register::{clear_debug, has_met, has_trap_pending};
use crate::ptrace::{request, threads_of};
use libc::pid_t;
use outlast_supervisor::end::End;
use outlast_supervisor::trace::{self, Stop};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// EXITKILL: breakpoints must not be left behind in a process whose injector was killed.
const OPTIONS: i32 = libc::PTRACE_O_TRACECLONE | libc::PTRACE_O_EXITKILL | libc::PTRACE_O_TRACESYSGOOD;
/// Bits of a wait status that stand for a stop at a system call.
const AT_CALL: i32 = libc::SIGTRAP | 0x80;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Thread {
    Running,
    /// With the signal that is to be delivered when it goes on.
    Stopped(i32),
    /// In group-stop: goes on when the process is continued.
    Listening,
}

/// What happened to a traced process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A thread met a debug register's address.
    Debug(pid_t),
    /// A thread is about to get a signal; it is delivered when the thread goes on.
    Signal(pid_t, i32),
    /// A thread begins or ends a system call.
    Call(pid_t),
    /// Any other stop: of a request, of a new thread.
    Stopped(pid_t),
    Ended,
    TooLate,
}

pub struct Tracee {
    pub pid: pid_t,
    threads: BTreeMap<pid_t, Thread>,
    /// New ones that have not stopped yet, as each does first.
    fresh: Vec<pid_t>,
    /// How it ended, if this was told here.
    pub end: Option<End>,
}

impl Tracee {
    /// Attaches to all threads of a running process.
    pub fn seize(pid: pid_t) -> Result<Self, Errno> {
        let mut tracee = Self { pid, threads: BTreeMap::new(), fresh: Vec::new(), end: None };
        // Threads may be made meanwhile, by some that are not attached yet.
        for _ in 0..8 {
            let mut found = false;
            for tid in threads_of(pid) {
                if tracee.threads.contains_key(&tid) {
                    continue;
                }
                match request(libc::PTRACE_SEIZE, tid, 0, OPTIONS as u64) {
                    Ok(()) => {
                        tracee.threads.insert(tid, Thread::Running);
                        found = true;
                    }
                    // Attached by the kernel as the child of one that is.
                    Err(Errno::PERM) if !tracee.threads.is_empty() => {
                        tracee.threads.insert(tid, Thread::Running);
                    }
                    Err(e) if tid == pid => return Err(e),
                    Err(_) => (),
                }
            }
            if !found {
                break;
            }
        }
        match tracee.threads.is_empty() {
            true => Err(Errno::SRCH),
            false => Ok(tracee),
        }
    }

    /// Takes over a child that asked to be traced, at its exec: it is let go into a stop and attached to anew, for only who was seized
    /// can be stopped at will.
    pub fn started(pid: pid_t) -> Result<Self, Errno> {
        stops(pid)?;
        trace::detach(pid, libc::SIGSTOP)?;
        stops(pid)?;
        let mut tracee = Self::seize(pid)?;
        request(libc::PTRACE_INTERRUPT, pid, 0, 0)?;
        stops(pid)?;
        // Waits for it until it is let go.
        // SAFETY: plain system call on a child that is not reaped.
        unsafe { libc::kill(pid, libc::SIGCONT) };
        tracee.threads.insert(pid, Thread::Stopped(0));
        Ok(tracee)
    }

    /// Threads that are stopped.
    pub fn stopped(&self) -> Vec<pid_t> {
        let stopped = self.threads.iter().filter(|(_, thread)| matches!(thread, Thread::Stopped(_)));
        stopped.map(|(tid, _)| *tid).collect()
    }

    pub fn has_ended(&self) -> bool {
        self.threads.is_empty()
    }

    /// Stops all threads; false if the process ended, or one could not be stopped in time.
    pub fn stop(&mut self, deadline: Instant) -> bool {
        for (tid, thread) in &self.threads {
            if *thread == Thread::Running {
                let _ = request(libc::PTRACE_INTERRUPT, *tid, 0, 0);
            }
        }
        while self.threads.values().any(|thread| *thread == Thread::Running) {
            if matches!(self.next(deadline), Event::Ended | Event::TooLate) {
                break;
            }
        }
        !self.threads.is_empty() && self.threads.values().all(|thread| *thread != Thread::Running)
    }

    /// Waits for the next event. The thread that it is of stands still until it is let go.
    pub fn next(&mut self, deadline: Instant) -> Event {
        let mut looks = 0_u32;
        loop {
            let running: Vec<pid_t> =
                self.threads.iter().filter(|(_, t)| !matches!(t, Thread::Stopped(_))).map(|(tid, _)| *tid).collect();
            for tid in running {
                if let Some(event) = self.look(tid) {
                    return event;
                }
                if self.threads.is_empty() {
                    return Event::Ended;
                }
            }
            if self.threads.is_empty() {
                return Event::Ended;
            }
            if Instant::now() >= deadline {
                return Event::TooLate;
            }
            looks += 1;
            match looks {
                0..=20 => std::thread::yield_now(),
                21..=200 => std::thread::sleep(Duration::from_micros(50)),
                _ => std::thread::sleep(Duration::from_millis(1)),
            }
        }
    }

    /// One look at a thread.
    fn look(&mut self, tid: pid_t) -> Option<Event> {
        let mut status = 0;
        // SAFETY: `status` is an int of ours; the thread is traced by this one.
        let waited = unsafe { libc::waitpid(tid, &mut status, libc::__WALL | libc::WNOHANG) };
        match waited {
            0 => return None,
            // The first thread of a process is waited for last, by whoever is its parent.
            n if n < 0 => {
                self.threads.remove(&tid);
                return None;
            }
            _ => (),
        }
        let Some(stop) = Stop::of(status) else {
            self.threads.remove(&tid);
            if tid == self.pid {
                self.end = End::of(status);
                self.threads.clear();
            }
            return None;
        };
        // What the engine clones to be its anchor, for example, is no thread, and none of ours.
        if self.fresh.contains(&tid) && !threads_of(self.pid).contains(&tid) {
            self.fresh.retain(|fresh| *fresh != tid);
            self.threads.remove(&tid);
            let _ = trace::detach(tid, 0);
            return None;
        }
        self.threads.insert(tid, Thread::Stopped(0));
        match stop {
            Stop { event: libc::PTRACE_EVENT_CLONE, .. } => {
                let mut child = 0_u64;
                if request(libc::PTRACE_GETEVENTMSG, tid, 0, std::ptr::from_mut(&mut child) as u64).is_ok() {
                    let child = child as pid_t;
                    self.threads.entry(child).or_insert(Thread::Running);
                    self.fresh.push(child);
                }
                Some(Event::Stopped(tid))
            }
            Stop { event: libc::PTRACE_EVENT_STOP, signal } => {
                self.fresh.retain(|fresh| *fresh != tid);
                let group_stop = matches!(signal, libc::SIGSTOP | libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU);
                if group_stop && request(libc::PTRACE_LISTEN, tid, 0, 0).is_ok() {
                    self.threads.insert(tid, Thread::Listening);
                    return None;
                }
                Some(Event::Stopped(tid))
            }
            Stop { event: 0, signal: AT_CALL } => Some(Event::Call(tid)),
            Stop { event: 0, signal: libc::SIGTRAP } if has_met(tid) => Some(Event::Debug(tid)),
            Stop { event: 0, signal } => {
                self.threads.insert(tid, Thread::Stopped(signal));
                Some(Event::Signal(tid, signal))
            }
            _ => Some(Event::Stopped(tid)),
        }
    }

    /// Has the next resumption of a stopped thread deliver nothing.
    pub fn swallow(&mut self, tid: pid_t) {
        self.threads.insert(tid, Thread::Stopped(0));
    }

    /// Lets a stopped thread go on: to its next event, system call or instruction.
    pub fn go(&mut self, tid: pid_t, how: libc::c_uint) {
        if let Some(Thread::Stopped(signal)) = self.threads.get(&tid).copied() {
            self.threads.insert(tid, Thread::Running);
            let _ = request(how, tid, 0, signal as u64);
        }
    }

    /// Lets all stopped threads go on.
    pub fn go_all(&mut self, how: libc::c_uint) {
        for tid in self.stopped() {
            self.go(tid, how);
        }
    }

    /// Executes one instruction of a stopped thread; the signal that it met, 0 for none.
    pub fn step(&mut self, tid: pid_t, deadline: Instant) -> Result<i32, Errno> {
        self.go(tid, libc::PTRACE_SINGLESTEP);
        loop {
            match self.next(deadline) {
                Event::Debug(at) | Event::Stopped(at) | Event::Call(at) if at == tid => return Ok(0),
                Event::Signal(at, libc::SIGTRAP) if at == tid => {
                    self.swallow(tid);
                    return Ok(0);
                }
                Event::Signal(at, signal) if at == tid => return Ok(signal),
                Event::Ended => return Err(Errno::SRCH),
                Event::TooLate => return Err(Errno::TIMEDOUT),
                _ => (),
            }
        }
    }

    /// A thread that was stopped at a request may have met the debug register's address just before: the signal of it, which the kernel
    /// has not told of yet, would be the end of a program that nobody traces.
    fn take_trap(&mut self, tid: pid_t, deadline: Instant) {
        if has_trap_pending(tid) {
            // Signals are told of before the thread executes anything.
            self.go(tid, libc::PTRACE_CONT);
            while self.threads.get(&tid) == Some(&Thread::Running) && !matches!(self.next(deadline), Event::TooLate) {}
            if self.threads.get(&tid) == Some(&Thread::Stopped(libc::SIGTRAP)) {
                self.swallow(tid);
            }
        }
    }

    /// Lets the process go for good.
    pub fn detach(mut self) -> Option<End> {
        let deadline = Instant::now() + Duration::from_secs(2);
        self.stop(deadline);
        for tid in self.stopped() {
            clear_debug(tid);
            self.take_trap(tid, deadline);
        }
        for (tid, thread) in std::mem::take(&mut self.threads) {
            let signal = if let Thread::Stopped(signal) = thread { signal } else { 0 };
            if trace::detach(tid, signal).is_err() {
                self.threads.insert(tid, Thread::Running);
            }
        }
        // Who was killed meanwhile is ours to wait for, or its own parent would never hear of it.
        while !self.threads.is_empty() && Instant::now() < deadline {
            self.next(deadline);
            for tid in self.stopped() {
                if trace::detach(tid, 0).is_ok() {
                    self.threads.remove(&tid);
                }
            }
        }
        self.end
    }
}

/// Waits until a child stops, traced or not; it has only just begun, and nothing of it can keep it from that.
fn stops(pid: pid_t) -> Result<(), Errno> {
    let mut status = 0;
    // SAFETY: `status` is an int of ours; the process is our child.
    let waited = unsafe { libc::waitpid(pid, &mut status, libc::__WALL | libc::WUNTRACED) };
    match waited == pid && libc::WIFSTOPPED(status) {
        true => Ok(()),
        false => Err(Errno::SRCH),
    }
}
