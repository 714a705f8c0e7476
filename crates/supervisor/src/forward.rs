//! Signals sent to the supervisor go to the program; signals of the terminal reach the program by themselves.

use crate::clock;
use crate::decision::Met;
use crate::kin::Legacy;
use crate::processes;
use crate::signals::Received;
use crate::supervisor::Supervisor;
use libc::pid_t;
use std::sync::atomic::Ordering::{AcqRel, Acquire};

/// The realtime signal that makes the program enter the gate.
pub const GATE_SIGNAL: i32 = 64;

/// SIGKILL and SIGSTOP: what ended the program is not sent again.
const DEADLY: u64 = 1 << (libc::SIGKILL - 1) | 1 << (libc::SIGSTOP - 1);

/// What is known of signals for the whole group.
#[derive(Debug, Default)]
pub struct GroupSignals {
    /// How often the program had taken each when the last one came.
    taken: [u32; 32],
    /// Whether the program that died was in our group.
    shared: bool,
}

impl Supervisor {
    /// Passes a signal on as far as the program has not got it anyway.
    pub(crate) fn forward(&mut self, received: Received) {
        let Received { signal, sender, .. } = received;
        match signal {
            libc::SIGCHLD => (),
            // Who continues the job continues the program. One that runs already must not see a second SIGCONT.
            libc::SIGCONT if processes::is_stopped(self.pid) => self.send(signal),
            libc::SIGCONT => (),
            // The kernel sends to the whole foreground group, except a hang-up, which the session's leader gets alone.
            libc::SIGHUP if received.code > 0 && is_session_leader() => self.send(signal),
            _ if received.code > 0 => self.keep_if_missed(signal),
            _ if sender == self.pid => (),
            _ if received.code == libc::SI_QUEUE && self.postponed.is_none() => {
                queue(self.pid, signal, sender, received.value);
                self.decides.signalled(signal, Met::PassedOn);
            }
            _ => self.send(signal),
        }
    }

    /// A signal for the whole group: what did not reach the program, because it was dead just then, is kept for it.
    fn keep_if_missed(&mut self, signal: i32) {
        let control = self.generation.control();
        let Some(taken) = control.taken.get(signal as usize).map(|taken| taken.load(Acquire)) else { return };
        let known = std::mem::replace(&mut self.group_signals.taken[signal as usize], taken);
        let ours = processes::group_of(0);
        let is_member = processes::group_of(self.pid) == ours;
        let bit = 1 << (signal - 1);
        let missed = match &self.recovering {
            Some(_) => self.group_signals.shared && !is_member,
            // Dying; what it had taken by then it had counted, or it is pending.
            None => is_member && processes::is_ending(self.pid) && processes::pending_signals(self.pid) & bit == 0,
        };
        if missed && taken == known {
            control.missed.fetch_or(bit, AcqRel);
        }
    }

    /// Keeps what the program had not taken when it died.
    pub(crate) fn keep_pending(&mut self, legacy: &Legacy) {
        self.group_signals.shared = legacy.group == processes::group_of(0);
        let control = self.generation.control();
        control.missed.fetch_or(legacy.signals & !DEADLY & !control.sent.load(Acquire), AcqRel);
    }

    /// There is no process yet: its successor gets it, and is tried for at once.
    fn keep_for_later(&mut self, signal: i32) {
        if (1..32).contains(&signal) {
            self.generation.control().missed.fetch_or(1 << (signal - 1), AcqRel);
        }
        if let Some(postponed) = &mut self.postponed {
            postponed.hurry();
        }
    }

    /// Sends what came too late for the engine to send it.
    pub(crate) fn send_missed(&mut self) {
        if !self.kin.is_alive(self.pid) {
            return;
        }
        let missed = self.generation.control().missed.swap(0, AcqRel);
        for signal in (1..32).filter(|signal| missed >> (signal - 1) & 1 != 0) {
            self.send(signal);
        }
    }

    fn send(&mut self, signal: i32) {
        if self.postponed.is_some() {
            self.keep_for_later(signal);
        } else if self.kin.has(self.pid) {
            self.expected.note(signal, clock::monotonic());
            if (1..32).contains(&signal) && processes::is_ending(self.pid) {
                // It would meet nobody.
                self.generation.control().missed.fetch_or(1 << (signal - 1), AcqRel);
            } else {
                // SAFETY: plain system call; the process is ours and not reaped, so that the number is its own.
                unsafe { libc::kill(self.pid, signal) };
            }
            self.decides.signalled(signal, Met::PassedOn);
        }
    }

    /// Makes a program that computes, or waits in a system call, look at its requests.
    pub(crate) fn pass_the_gate(&self) {
        if self.kin.has(self.pid) {
            pass_the_gate(self.pid);
        }
    }
}

/// Makes the program look at its requests.
pub fn pass_the_gate(pid: pid_t) {
    queue(pid, GATE_SIGNAL, std::process::id() as pid_t, 0);
}

/// Sends a signal with a value, as sigqueue does.
fn queue(pid: pid_t, signal: i32, sender: pid_t, value: u64) {
    /// The part of siginfo_t that sigqueue fills.
    #[repr(C)]
    struct Info {
        signal: i32,
        errno: i32,
        code: i32,
        pad: i32,
        pid: i32,
        uid: u32,
        value: u64,
        rest: [u64; 12],
    }
    const _: () = assert!(std::mem::size_of::<Info>() == std::mem::size_of::<libc::siginfo_t>());
    // SAFETY: plain system calls; the structure has the layout and size of siginfo_t.
    unsafe {
        let uid = libc::getuid();
        let info = Info { signal, errno: 0, code: libc::SI_QUEUE, pad: 0, pid: sender, uid, value, rest: [0; 12] };
        libc::syscall(libc::SYS_rt_sigqueueinfo, pid, signal, std::ptr::from_ref(&info));
    }
}

fn is_session_leader() -> bool {
    // SAFETY: plain system calls.
    unsafe { libc::getsid(0) == libc::getpid() }
}
