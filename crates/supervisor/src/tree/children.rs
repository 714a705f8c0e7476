//! What parents are told of their children, and what they have told of them.

use super::member::Member;
use super::Tree;
use crate::end::End;
use crate::futex;
use crate::kin::{Change, Legacy};
use crate::session::Session;
use crate::supervisor::Supervisor;
use libc::pid_t;
use outlast_image::children::{news, state, Child};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};

/// A status as wait4 tells it.
fn status_of(end: End) -> i32 {
    match end {
        End::Exited(status) => (status & 0xff) << 8,
        End::Killed(signal) => signal,
    }
}

fn note_end(child: &Child, end: End, legacy: &Legacy) {
    child.status.store(status_of(end), Release);
    child.group.store(legacy.group, Release);
    // SAFETY: plain system call. They run as whoever watches them, as far as anybody is told.
    child.user.store(unsafe { libc::getuid() }, Release);
    child.usage.iter().zip(*legacy.usage).for_each(|(word, used)| word.store(used, Release));
    child.news.store(news::UNTOLD | child.news.load(Acquire) & news::RECOVERABLE, Release);
    child.state.store(state::ENDED, Release);
}

pub fn child_of(session: &Session, pid: pid_t) -> Option<&Child> {
    let lives = |child: &&Child| matches!(child.state.load(Acquire), state::EXPECTED | state::ALIVE);
    session.children().iter().filter(lives).find(|child| child.birth.load(Acquire) == pid)
}

/// Has the process whose session it is such a child, whose status it has not taken?
pub fn is_untaken(session: &Session, pid: pid_t) -> bool {
    let untaken = |child: &Child| {
        matches!(child.state.load(Acquire), state::EXPECTED | state::ALIVE | state::ENDED)
            && child.birth.load(Acquire) == pid
    };
    session.children().iter().any(untaken)
}

impl Supervisor {
    /// The program's table of children has changed: it is woken, and sent the signal that tells of it.
    fn tell_of_child(&mut self) {
        let word = &self.generation.control().children_news;
        word.fetch_add(1, AcqRel);
        futex::wake(word);
        self.give(libc::SIGCHLD);
    }
}

impl Tree {
    pub(super) fn tell_of_end(
        &mut self,
        root: &mut Supervisor,
        parent: Option<u32>,
        pid: pid_t,
        end: End,
        legacy: &Legacy,
    ) {
        let Some(parent) = parent.and_then(|parent| self.of_number(root, parent)) else { return };
        let Some(child) = child_of(&parent.generation.session, pid) else { return };
        note_end(child, end, legacy);
        parent.tell_of_child();
    }

    /// A member was stopped, by this signal, or continued.
    pub(super) fn tell_of_stop(&mut self, root: &mut Supervisor, i: usize, signal: Option<i32>) {
        let Member { parent, supervisor, .. } = &self.members[i];
        let pid = supervisor.meta.pid;
        let Some(parent) = parent.and_then(|parent| self.of_number(root, parent)) else { return };
        let Some(child) = child_of(&parent.generation.session, pid) else { return };
        match signal {
            Some(signal) => {
                child.stopped_by.store(signal as u32, Release);
                child.news.store(news::STOPPED | news::UNTOLD, Release);
            }
            None => child.news.store(news::CONTINUED | news::UNTOLD, Release),
        }
        parent.tell_of_child();
    }

    /// Has the parent of a member know that it can be recovered, once that is so.
    pub(super) fn tell_of_recoverable(&mut self, root: &mut Supervisor, i: usize) {
        let member = &mut self.members[i];
        if member.is_known || member.is_stillborn() {
            return;
        }
        member.is_known = true;
        let (parent, pid) = (member.parent, member.supervisor.meta.pid);
        let Some(parent) = parent.and_then(|parent| self.of_number(root, parent)) else { return };
        let Some(child) = child_of(&parent.generation.session, pid) else { return };
        child.news.fetch_or(news::RECOVERABLE, AcqRel);
        let word = &parent.generation.control().children_news;
        word.fetch_add(1, AcqRel);
        futex::wake(word);
    }

    /// Its parent need not make it once more, even if it ends before that has heard of it.
    pub(super) fn note_birth(&mut self, root: &mut Supervisor, member: &Member) {
        let Some(parent) = member.parent.and_then(|parent| self.of_number(root, parent)) else { return };
        let child = child_of(&parent.generation.session, member.supervisor.meta.pid);
        if let Some(child) = child.filter(|_| !member.is_stillborn()) {
            child.news.fetch_or(news::RECOVERABLE, AcqRel);
        }
    }

    /// A process that is no member changed: whether it is a child that is not protected.
    pub(super) fn tell_of_unprotected(&mut self, root: &mut Supervisor, pid: pid_t, change: &Change) -> bool {
        let is_parent = |(_, session): &(u32, &Session)| child_of(session, pid).is_some();
        let Some((parent, _)) = self.sessions(root).find(is_parent) else { return false };
        if let Change::Ended(Some(end), legacy) = change {
            self.tell_of_end(root, Some(parent), pid, *end, legacy);
        }
        true
    }

    /// A child that ended before it could be recovered: its parent waits, and makes it once more; or goes on, and is told.
    pub(super) fn forget_stillborn(&mut self, root: &mut Supervisor, i: usize) {
        let mut member = self.members.remove(i);
        let (parent, pid) = (member.parent, member.supervisor.meta.pid);
        let is_waited_for = parent.and_then(|parent| self.of_number(root, parent)).is_some_and(|parent| {
            let Some(child) = child_of(&parent.generation.session, pid) else { return true };
            child.news.fetch_or(news::STILLBORN, AcqRel);
            let word = &parent.generation.control().children_news;
            word.fetch_add(1, AcqRel);
            futex::wake(word);
            child.state.load(Acquire) == state::EXPECTED
        });
        if !is_waited_for {
            self.tell_of_end(root, parent, pid, End::Killed(libc::SIGKILL), &member.last);
        }
        member.supervisor.dismiss_anchors();
        member.clear();
    }
}
