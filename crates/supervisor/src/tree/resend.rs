//! Signals that met nobody: who was dead when another process of the tree sent it one, and came back, gets it from the supervisor.

use super::sent::Letter;
use super::Tree;
use crate::clock;
use crate::credentials::Credentials;
use crate::processes;
use crate::supervisor::Supervisor;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};

const CAP_KILL: u64 = 1 << 5;

impl Tree {
    /// Sees to all that were sent since.
    pub(super) fn resend(&mut self, root: &mut Supervisor) {
        let Some(letters) = root.sent.as_ref().map(|sent| sent.borrow_mut().take_others()) else { return };
        for letter in letters {
            root.receive_again(&letter);
            self.members.iter_mut().for_each(|member| member.supervisor.receive_again(&letter));
        }
    }

    /// Has all engines know whether the kernel knows a process of the tree by another number than the program does.
    pub(super) fn compare_numbers(&self, root: &Supervisor) {
        let differ = |supervisor: &Supervisor| supervisor.pid != supervisor.meta.pid;
        let differs = differ(root) || self.members.iter().any(|member| differ(&member.supervisor));
        for (_, session) in self.sessions(root) {
            session.control().numbers_differ.store(differs.into(), Release);
        }
    }
}

/// When each signal was sent last to a process that may have got it, in monotonic nanoseconds.
#[derive(Debug, Default)]
pub struct Expected([u64; 32]);

/// How long, in nanoseconds, a process may take to note what the kernel has handed out to it. What it takes in ways that are not noted is not
/// to come again much later.
const NOTED_WITHIN: u64 = 2_000_000_000;
/// Nobody notes that it was stopped.
const STOPPING: [i32; 4] = [libc::SIGSTOP, libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];

impl Expected {
    pub(crate) fn note(&mut self, signal: i32, at: u64) {
        if let Some(place) = self.0.get_mut(signal as usize).filter(|_| !STOPPING.contains(&signal)) {
            *place = at;
        }
    }
}

impl Supervisor {
    /// Is it for this process, and does this process have it, or did it take it?
    pub(super) fn has_got(&self, letter: &Letter) -> bool {
        let control = self.generation.control();
        let (1.., Some(taken_at)) = (letter.signal, control.taken_at.get(letter.signal as usize)) else { return false };
        letter.is_for([self.pid, self.meta.pid], control.pgid.load(Acquire))
            && (taken_at.load(Acquire) >= letter.at
                || processes::signals_of(self.pid).pending >> (letter.signal - 1) & 1 != 0)
    }

    /// A signal was sent to it, or to others: it gets it if it was dead just then.
    fn receive_again(&mut self, letter: &Letter) {
        let control = self.generation.control();
        let group = control.pgid.load(Acquire);
        let (1.., Some(taken_at)) = (letter.signal, control.taken_at.get(letter.signal as usize)) else { return };
        if !letter.is_for([self.pid, self.meta.pid], group) || taken_at.load(Acquire) >= letter.at {
            return;
        }
        let bit = 1 << (letter.signal - 1);
        let is_there = self.postponed.is_none() && self.kin.is_alive(self.pid) && !processes::is_ending(self.pid);
        let signals = processes::signals_of(self.pid);
        let reached = control.born_at.load(Acquire) <= letter.at && !letter.met_nobody;
        let has_got = is_there && (reached || signals.pending & bit != 0);
        if !has_got && !self.may_get(letter) {
            return;
        }
        if signals.ignored & bit == 0 {
            self.expected.note(letter.signal, letter.at);
        }
        if has_got {
            return;
        }
        self.is_stopped &= letter.signal != libc::SIGCONT;
        self.give(letter.signal);
    }

    /// Sends the process a standard signal, or its successor if it is dead.
    pub(super) fn give(&mut self, signal: i32) {
        let is_there = self.recovering.is_none() && self.postponed.is_none() && self.kin.is_alive(self.pid);
        if is_there && !processes::is_ending(self.pid) {
            // It may die when the kernel has handed it out and before it is noted.
            self.expected.note(signal, clock::monotonic());
            // SAFETY: plain system call; the process is ours and not reaped, so that the number is its own.
            unsafe { libc::kill(self.pid, signal) };
        } else {
            self.generation.control().missed.fetch_or(1 << (signal - 1), AcqRel);
        }
    }

    /// The process has died. What the kernel had handed out to it, and it had not taken note of yet, it gets once more; as what was pending.
    pub(crate) fn keep_expected(&mut self) {
        let control = self.generation.control();
        let (sent, now) = (std::mem::take(&mut self.expected).0, clock::monotonic());
        for (signal, (sent, taken)) in sent.into_iter().zip(&control.taken_at).enumerate().skip(1) {
            if sent > taken.load(Acquire) && now.saturating_sub(sent) < NOTED_WITHIN {
                control.missed.fetch_or(1 << (signal - 1), AcqRel);
            }
        }
    }

    /// Would the kernel have let the sender do that? What it noted it might have made up.
    fn may_get(&self, letter: &Letter) -> bool {
        // SAFETY: plain system call. Who is not root cannot do more than any process of the tree.
        if unsafe { libc::geteuid() } != 0 {
            return true;
        }
        let Some(sender) = Credentials::of(letter.sender) else { return false };
        let Ok(own) = self.meta.credentials.required() else { return false };
        let is_same = [sender.uid[0], sender.uid[1]].iter().any(|uid| [own.uid[0], own.uid[2]].contains(uid));
        is_same || sender.capabilities[1] & CAP_KILL != 0
    }
}
