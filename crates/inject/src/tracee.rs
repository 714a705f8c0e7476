//! A process with all its threads under ptrace, for as short as can be.
//!
//! All requests have to come from the thread that attached. Nothing here waits without a deadline, and waits name their
//! thread, for other experiments' processes are children of this process, too.

use libc::{c_void, pid_t, user_regs_struct};
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

    /// Takes over a child that asked to be traced, at its exec.
    pub fn started(pid: pid_t) -> Result<Self, Errno> {
        let mut tracee = Self { pid, threads: BTreeMap::from([(pid, Thread::Running)]), fresh: Vec::new(), end: None };
        match tracee.next(Instant::now() + Duration::from_secs(30)) {
            Event::Signal(..) | Event::Debug(_) | Event::Stopped(_) => (),
            _ => return Err(Errno::SRCH),
        }
        tracee.threads.insert(pid, Thread::Stopped(0));
        request(libc::PTRACE_SETOPTIONS, pid, 0, OPTIONS as u64)?;
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
            Stop { event: 0, signal: libc::SIGSTOP } if self.fresh.contains(&tid) => {
                self.fresh.retain(|fresh| *fresh != tid);
                Some(Event::Stopped(tid))
            }
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

    /// Lets the process go for good.
    pub fn detach(mut self) -> Option<End> {
        let deadline = Instant::now() + Duration::from_secs(2);
        self.stop(deadline);
        for (tid, thread) in std::mem::take(&mut self.threads) {
            clear_debug(tid);
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

pub fn threads_of(pid: pid_t) -> Vec<pid_t> {
    let folder = std::fs::read_dir(format!("/proc/{pid}/task"));
    folder.into_iter().flatten().flatten().filter_map(|task| task.file_name().to_str()?.parse().ok()).collect()
}

pub fn request(kind: libc::c_uint, tid: pid_t, address: u64, data: u64) -> Result<(), Errno> {
    // SAFETY: the callers pass requests whose `data` is a number, or points to an object of theirs of the size that the
    // kernel fills for that request.
    match unsafe { libc::ptrace(kind, tid, address as *mut c_void, data as *mut c_void) } {
        -1 => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)),
        _ => Ok(()),
    }
}

pub fn registers(tid: pid_t) -> Result<user_regs_struct, Errno> {
    trace::registers(tid)
}

pub fn set_registers(tid: pid_t, registers: &user_regs_struct) -> Result<(), Errno> {
    trace::set_registers(tid, registers)
}

/// Reads memory of a traced process.
pub fn read(pid: pid_t, address: u64, bytes: &mut [u8]) -> std::io::Result<()> {
    use std::os::unix::fs::FileExt;
    std::fs::File::open(format!("/proc/{pid}/mem"))?.read_exact_at(bytes, address)
}

/// Writes memory of a traced process, also where the process itself may not.
pub fn write(pid: pid_t, address: u64, bytes: &[u8]) -> std::io::Result<()> {
    use std::os::unix::fs::FileExt;
    std::fs::OpenOptions::new().write(true).open(format!("/proc/{pid}/mem"))?.write_all_at(bytes, address)
}

/// `offsetof(struct user, u_debugreg)`.
const DEBUG_REGISTERS: u64 = std::mem::offset_of!(libc::user, u_debugreg) as u64;

/// What a debug register looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watch {
    Execution,
    /// Reads and writes of the byte at this address.
    Access,
}

/// Has a stopped thread stop where an address is executed or accessed. Forks do not inherit that, and no text is changed.
pub fn set_debug(tid: pid_t, address: u64, watch: Watch) -> Result<(), Errno> {
    let kind = match watch {
        Watch::Execution => 0,
        Watch::Access => 0b0011,
    };
    request(libc::PTRACE_POKEUSER, tid, DEBUG_REGISTERS + 7 * 8, 0)?;
    request(libc::PTRACE_POKEUSER, tid, DEBUG_REGISTERS, address)?;
    request(libc::PTRACE_POKEUSER, tid, DEBUG_REGISTERS + 7 * 8, 1 | kind << 16)
}

pub fn clear_debug(tid: pid_t) {
    let _ = request(libc::PTRACE_POKEUSER, tid, DEBUG_REGISTERS + 7 * 8, 0);
}

/// Whether a SIGTRAP is that of the debug register.
fn has_met(tid: pid_t) -> bool {
    let offset = DEBUG_REGISTERS + 6 * 8;
    // SAFETY: a request without pointers of ours; PEEKUSER returns the word.
    let met =
        unsafe { libc::ptrace(libc::PTRACE_PEEKUSER, tid, offset as *mut c_void, std::ptr::null_mut::<c_void>()) };
    met != -1 && met & 1 != 0 && request(libc::PTRACE_POKEUSER, tid, offset, 0).is_ok()
}

/// The call number of a SIGSYS that Syscall User Dispatch raised.
pub fn dispatched_call(tid: pid_t) -> Option<i64> {
    /// `SYS_USER_DISPATCH` of `siginfo.h`.
    const USER_DISPATCH: i32 = 2;
    let mut info = [0_i32; 32];
    request(libc::PTRACE_GETSIGINFO, tid, 0, info.as_mut_ptr() as u64).ok()?;
    // si_signo, si_errno, si_code, padding, then the address of the call and its number.
    (info[2] == USER_DISPATCH).then_some(i64::from(info[6]))
}
