//! Signals that processes of a tree have sent to others. Who was killed, and dies of it, is not recovered; and who was dead just then, and is
//! recovered, gets the rest.

use crate::futex;
use crate::session::Session;
use libc::pid_t;
use outlast_image::control::{Signalled, SIGNALLED};
use std::collections::VecDeque;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a death may come after the kill. One that was refused, or met somebody who was dead already, is forgotten then.
const PATIENCE: Duration = Duration::from_secs(30);
/// How many are remembered.
const MOST: usize = 256;

/// A signal that was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Letter {
    /// For the kernel.
    pub sender: pid_t,
    /// To whom, as kill(2) has it.
    to: pid_t,
    pub signal: i32,
    /// Monotonic nanoseconds just before.
    pub at: u64,
    /// The kernel knew nobody by that number.
    pub met_nobody: bool,
}

impl Letter {
    fn new(sender: pid_t, signalled: &Signalled) -> Self {
        Self {
            sender,
            to: signalled.to.load(Acquire),
            signal: signalled.signal.load(Acquire),
            at: signalled.at.load(Acquire),
            met_nobody: signalled.met_nobody.load(Acquire) != 0,
        }
    }

    /// The one that the process of this session is about to send, or had just sent when it died.
    pub fn next(session: &Session) -> Self {
        let control = session.control();
        let place = &control.signalled[control.signals.load(Acquire) as usize % SIGNALLED];
        Self::new(control.program_pid.load(Acquire), place)
    }

    /// Is it for the process that the tree knows by one of these numbers, and that is, or was, in this group?
    pub fn is_for(&self, pids: [pid_t; 2], group: pid_t) -> bool {
        pids.contains(&self.to) || self.to == -1 || self.to < -1 && -self.to == group
    }
}

/// What the sessions of all processes say about that, also of those that have ended since.
#[derive(Default)]
pub struct Sent {
    followed: Vec<Arc<Session>>,
    kills: VecDeque<(Letter, Instant)>,
    /// All others, that nobody has seen to.
    others: VecDeque<Letter>,
}

impl Sent {
    /// Hears of those that a process notes in this session from now on.
    pub fn follow(&mut self, session: &Arc<Session>) {
        self.hear();
        if !self.followed.iter().any(|known| Arc::ptr_eq(known, session)) {
            self.followed.push(Arc::clone(session));
        }
    }

    fn hear(&mut self) {
        let now = Instant::now();
        for session in &self.followed {
            let control = session.control();
            let (noted, heard) = (control.signals.load(Acquire), control.signals_heard.load(Acquire));
            if noted == heard {
                continue;
            }
            let sender = control.program_pid.load(Acquire);
            let count = noted.wrapping_sub(heard).min(SIGNALLED as u32);
            for n in (1..=count).rev() {
                let letter = Letter::new(sender, &control.signalled[noted.wrapping_sub(n) as usize % SIGNALLED]);
                match letter.signal {
                    libc::SIGKILL => self.kills.push_back((letter, now)),
                    _ => self.others.push_back(letter),
                }
            }
            control.signals_heard.store(noted, Release);
            futex::wake(&control.signals_heard);
        }
        // Nobody else has it any more.
        self.followed.retain(|session| Arc::strong_count(session) > 1);
        self.kills.retain(|(_, at)| at.elapsed() < PATIENCE);
        self.kills.drain(..self.kills.len().saturating_sub(MOST));
    }

    /// Was a process killed by another of the tree? One kill means one process, but one of a group all of its members.
    pub fn take_kill(&mut self, pids: [pid_t; 2], group: pid_t) -> bool {
        self.hear();
        let Some(i) = self.kills.iter().position(|(kill, _)| kill.is_for(pids, group)) else { return false };
        if self.kills[i].0.to > 0 {
            self.kills.remove(i);
        }
        true
    }

    /// All others that were sent since.
    pub fn take_others(&mut self) -> VecDeque<Letter> {
        self.hear();
        std::mem::take(&mut self.others)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use libc::{SIGKILL, SIGTERM};

    fn note(session: &Session, to: pid_t, signal: i32) {
        let control = session.control();
        let count = control.signals.load(Acquire);
        let place = &control.signalled[count as usize % SIGNALLED];
        place.to.store(to, Release);
        place.signal.store(signal, Release);
        control.signals.store(count + 1, Release);
    }

    #[test]
    fn a_kill_means_one_process_once_and_one_of_a_group_all_of_its_members() {
        let session = Arc::new(Session::empty());
        let mut sent = Sent::default();
        sent.follow(&session);
        note(&session, 7, SIGKILL);
        note(&session, -9, SIGKILL);
        assert!(sent.take_kill([8, 7], 1));
        assert!(!sent.take_kill([7, 7], 1), "it was another process that had the number");
        assert!(sent.take_kill([2, 2], 9) && sent.take_kill([3, 3], 9));
    }

    #[test]
    fn what_a_process_noted_counts_after_its_own_end_and_once() {
        let mut sent = Sent::default();
        let session = Arc::new(Session::empty());
        sent.follow(&session);
        (0..SIGNALLED as pid_t).for_each(|n| note(&session, 100 + n, if n % 2 == 0 { SIGKILL } else { SIGTERM }));
        sent.hear();
        assert_eq!(session.control().signals_heard.load(Acquire), SIGNALLED as u32);
        drop(session);
        assert!(sent.take_kill([102, 102], 1) && !sent.take_kill([103, 103], 1));
        let others = sent.take_others();
        assert_eq!(others.iter().map(|letter| letter.to).collect::<Vec<_>>()[..2], [101, 103]);
        assert!(sent.take_others().is_empty() && sent.followed.is_empty());
    }
}
