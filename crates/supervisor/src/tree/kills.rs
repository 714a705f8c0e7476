//! Whom processes of a tree have killed, and meant it: who dies of that is not recovered.

use crate::session::Session;
use libc::pid_t;
use outlast_image::control::KILLS;
use std::collections::VecDeque;
use std::sync::atomic::Ordering::Acquire;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a death may come after the kill. One that was refused, or met somebody who was dead already, is forgotten then.
const PATIENCE: Duration = Duration::from_secs(30);
/// How many are remembered.
const MOST: usize = 256;

/// What the sessions of all processes say about that, also of those that have ended since.
#[derive(Default)]
pub struct Kills {
    /// With how many of its kills are known.
    followed: Vec<(Arc<Session>, u32)>,
    /// To whom, as kill(2) has it.
    sent: VecDeque<(pid_t, Instant)>,
}

impl Kills {
    /// Hears of those that a process notes in this session from now on.
    pub fn follow(&mut self, session: &Arc<Session>) {
        self.hear();
        if !self.followed.iter().any(|(known, _)| Arc::ptr_eq(known, session)) {
            self.followed.push((Arc::clone(session), session.control().kills.load(Acquire)));
        }
    }

    fn hear(&mut self) {
        let now = Instant::now();
        for (session, heard) in &mut self.followed {
            let control = session.control();
            let noted = control.kills.load(Acquire);
            let count = noted.wrapping_sub(*heard).min(KILLS as u32);
            for n in 0..count {
                let place = noted.wrapping_sub(count - n) as usize % KILLS;
                self.sent.push_back((control.killed[place].load(Acquire), now));
            }
            *heard = noted;
        }
        // Nobody else has it any more.
        self.followed.retain(|(session, _)| Arc::strong_count(session) > 1);
        self.sent.retain(|(_, at)| at.elapsed() < PATIENCE);
        self.sent.drain(..self.sent.len().saturating_sub(MOST));
    }

    /// Was the process meant that the tree knows by one of these numbers, and that died in this group? One kill means one process, but one
    /// of a group all of its members.
    pub fn take(&mut self, pids: [pid_t; 2], group: pid_t) -> bool {
        self.hear();
        let meant = |&(to, _): &(pid_t, Instant)| pids.contains(&to) || to == -1 || to < -1 && -to == group;
        let Some(i) = self.sent.iter().position(meant) else { return false };
        if self.sent[i].0 > 0 {
            self.sent.remove(i);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering::Release;

    fn note(session: &Session, to: pid_t) {
        let control = session.control();
        let count = control.kills.load(Acquire);
        control.killed[count as usize % KILLS].store(to, Release);
        control.kills.store(count + 1, Release);
    }

    #[test]
    fn a_kill_means_one_process_once_and_one_of_a_group_all_of_its_members() {
        let session = Arc::new(Session::empty());
        note(&session, 1);
        let mut kills = Kills::default();
        kills.follow(&session);
        note(&session, 7);
        note(&session, -9);
        assert!(!kills.take([1, 1], 1), "it was noted before anybody followed");
        assert!(kills.take([8, 7], 1));
        assert!(!kills.take([7, 7], 1), "it was another process that had the number");
        assert!(kills.take([2, 2], 9) && kills.take([3, 3], 9));
    }

    #[test]
    fn what_a_process_noted_counts_after_its_own_end() {
        let mut kills = Kills::default();
        let session = Arc::new(Session::empty());
        kills.follow(&session);
        (0..KILLS as pid_t + 2).for_each(|n| note(&session, 100 + n));
        kills.hear();
        drop(session);
        assert!(!kills.take([101, 101], 1), "there was no room for it");
        assert!(kills.take([102, 102], 1) && kills.followed.is_empty());
    }
}
