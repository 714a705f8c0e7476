//! A program that is a tree of processes: each has a session, a store, an anchor and a part of this supervisor of its own, and commits
//! and is recovered by itself.
//!
//! For the kernel all of them are children of this process; whose they are for the program lies in tables in their parents' sessions
//! ([`outlast_image::children`]), where this supervisor writes what became of them. What a child begins with is made ready here, and
//! waits in a socket that all engines have: a fork waits for nobody.

mod children;
mod heir;
mod member;
mod ready;
mod requests;
mod resend;
mod sent;

pub use heir::Over;

use crate::end::End;
use crate::kin::Change;
use crate::session::Session;
use crate::supervisor::Supervisor;
use libc::pid_t;
use member::{Left, Member};
use outlast_image::children::add_usage;
use outlast_image::inject::option;
pub use ready::Kindred;
use ready::Ready;
pub use resend::Expected;
pub use sent::Sent;
use std::os::fd::BorrowedFd;
use std::rc::Rc;
use std::sync::atomic::Ordering::Acquire;
use std::time::Instant;

/// The process that the program began with, among its processes.
const ROOT: u32 = 0;

/// The processes of a program besides the one that it began with.
pub struct Tree {
    ready: Ready,
    members: Vec<Member>,
}

impl Tree {
    /// What is to be looked at when it becomes readable.
    pub fn files(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let strangers = self.members.iter().flat_map(|member| member.supervisor.kin.files());
        self.members.iter().map(|member| member.supervisor.generation.bell.file()).chain(strangers)
    }

    /// When the first of its processes is to be looked at without being told of.
    pub fn looks_at(&self) -> Option<Instant> {
        self.members.iter().filter_map(|member| member.supervisor.looks_at).min()
    }

    /// Calls `f` with the session of each process, and its number.
    fn sessions<'a>(&'a self, root: &'a Supervisor) -> impl Iterator<Item = (u32, &'a Session)> {
        let root = (ROOT, &*root.generation.session);
        let members = self.members.iter().map(|member| (member.number, &*member.supervisor.generation.session));
        std::iter::once(root).chain(members)
    }
}

impl Supervisor {
    /// Has the program's children be protected, if that is wanted.
    pub(crate) fn begin_tree(&mut self) {
        if self.meta.options.bits & option::TREE == 0 {
            return;
        }
        // Without a socket children run unprotected, as the engine says.
        if let Ok(ready) = Ready::new(None) {
            self.kindred = Some(Rc::clone(&ready.kindred));
            self.sent = Some(Rc::default());
            self.follow_signals();
            self.tree = Some(Box::new(Tree { ready, members: Vec::new() }));
            self.attend_tree();
        }
    }

    /// Takes over the other processes of a program whose supervisor has died. What that one had made ready is used up by those that run; then
    /// their children are not protected any more, but those of programs that they become.
    pub(crate) fn take_up_tree(&mut self) {
        if self.meta.options.bits & option::TREE == 0 {
            return;
        }
        let Ok(ready) = Ready::new(self.group_of_tree()) else { return };
        self.kindred = Some(Rc::clone(&ready.kindred));
        self.sent = Some(Rc::default());
        self.follow_signals();
        let mut tree = Tree { ready, members: Vec::new() };
        let folders = self.folder.folders();
        let left = folders.iter().filter_map(|name| Left::of(&self.folder, name));
        let (mut born, unborn): (Vec<_>, Vec<_>) = left.partition(Left::is_born);
        unborn.into_iter().for_each(|left| tree.ready.keep(left.begun()));
        // A parent before its children, who are found in its table.
        while !born.is_empty() {
            let known = tree.sessions(self).find_map(|(parent, session)| {
                born.iter().position(|left| left.is_child_in(session)).map(|i| (i, Some(parent)))
            });
            let (i, parent) = known.unwrap_or((0, None));
            tree.ready.begin_after(born[i].number);
            tree.members.extend(born.swap_remove(i).take_up(self, parent));
        }
        for i in (0..tree.members.len()).rev() {
            if let Some(end) = tree.members[i].supervisor.find_processes() {
                tree.conclude(self, i, end);
            }
        }
        self.tree = Some(Box::new(tree));
    }

    /// Hears of the signals that the process sends.
    pub(crate) fn follow_signals(&self) {
        if let Some(sent) = &self.sent {
            sent.borrow_mut().follow(&self.generation.session);
        }
    }

    /// Whether another process of the program has killed this one, and meant it.
    pub(crate) fn is_meant(&self) -> bool {
        let group = self.generation.control().pgid.load(Acquire);
        self.sent.as_ref().is_some_and(|sent| sent.borrow_mut().take_kill([self.pid, self.meta.pid], group))
    }

    /// Sees to everything that has to do with the other processes.
    pub(crate) fn attend_tree(&mut self) {
        let Some(mut tree) = self.tree.take() else { return };
        for i in (0..tree.members.len()).rev() {
            while let Some((pid, change)) =
                tree.members.get_mut(i).and_then(|member| member.supervisor.kin.stranger_change())
            {
                tree.take_change(self, pid, change);
            }
            let Some(member) = tree.members.get_mut(i) else { continue };
            if !member.supervisor.is_due() {
                continue;
            }
            match member.attend() {
                Some(end) => tree.conclude(self, i, end),
                None => {
                    member.supervisor.looks_at = member.supervisor.patience().map(|patience| Instant::now() + patience);
                    tree.tell_of_recoverable(self, i);
                }
            }
        }
        // Afterwards: what rang meanwhile was heard by those that were seen to, also where it rang for a birth. Who is found is seen to at once.
        tree.look_for_births(self);
        tree.compare_numbers(self);
        tree.serve_requests(self);
        tree.resend(self);
        let mut kin = std::mem::take(&mut self.kin);
        kin.reap(|pid| tree.is_awaited(self, pid));
        self.kin = kin;
        tree.ready.provide(self);
        self.tree = Some(tree);
    }

    /// A change of a process: what is left of it for this one, which is not of another process of the tree.
    pub(crate) fn pass_to_tree(&mut self, pid: pid_t, change: Change) -> Option<Change> {
        let Some(mut tree) = self.tree.take() else { return Some(change) };
        let left = tree.take_change(self, pid, change);
        self.tree = Some(tree);
        left
    }

    /// The process that the program began with has ended, and none takes its place: the others run on, as they would have, but without
    /// protection.
    pub(crate) fn end_tree(&mut self) {
        if let Some(mut tree) = self.tree.take() {
            tree.leave_orphans(ROOT);
            if self.generation.control().stopping.load(Acquire) != 0 {
                // Whoever stops a program means all of it.
                tree.members.iter_mut().for_each(|member| member.supervisor.give(libc::SIGTERM));
            }
            tree.members.iter_mut().for_each(Member::let_go);
            tree.ready.clear();
        }
    }
}

impl Tree {
    fn take_change(&mut self, root: &mut Supervisor, pid: pid_t, change: Change) -> Option<Change> {
        self.look_for_births(root);
        let Some(i) = self.members.iter().position(|member| member.has(pid)) else {
            return match self.tell_of_unprotected(root, pid, &change) {
                true => None,
                false => Some(change),
            };
        };
        let member = &mut self.members[i];
        // What there is to be waited for now is another thing.
        member.supervisor.looks_at = Some(Instant::now());
        if let (true, Change::Ended(_, legacy)) = (member.supervisor.pid == pid, &change) {
            member.note_end(legacy);
        }
        match change {
            Change::Stopped(stop) if member.is_followed(pid) => {
                // A successor that is stopped again has not done anything in between.
                if !std::mem::replace(&mut member.supervisor.is_stopped, true) {
                    self.tell_of_stop(root, i, Some(stop.signal));
                }
            }
            Change::Continued if member.is_followed(pid) => {
                member.supervisor.is_stopped = false;
                self.tell_of_stop(root, i, None);
            }
            Change::Ended(..) if member.is_followed(pid) && !member.supervisor.is_unborn && member.is_stillborn() => {
                self.forget_stillborn(root, i);
            }
            change => {
                if let Some(end) = member.supervisor.on_change(pid, change) {
                    self.conclude(root, i, end);
                }
            }
        }
        None
    }

    /// A member's process has ended for good.
    fn conclude(&mut self, root: &mut Supervisor, i: usize, end: End) {
        let supervisor = &self.members[i].supervisor;
        if supervisor.is_unborn && end == End::Killed(libc::SIGKILL) && !supervisor.is_killed {
            return self.forget_stillborn(root, i);
        }
        let mut member = self.members.remove(i);
        // One that has become what it was to be is not made once more, however short it was.
        self.note_birth(root, &member);
        add_usage(&mut member.last.usage, &member.supervisor.generation.session.children_usage());
        self.tell_of_end(root, member.parent, member.supervisor.meta.pid, end, &member.last);
        // Nobody is there any more for whom its children's statuses would be kept.
        self.leave_orphans(member.number);
        member.supervisor.finish(end);
        member.clear();
    }

    /// Is it a child of one of the processes, which has not taken its status?
    pub fn is_awaited(&self, root: &Supervisor, pid: pid_t) -> bool {
        self.sessions(root).any(|(_, session)| children::is_untaken(session, pid))
    }

    /// The supervisor's part for a process.
    fn of_number<'a>(&'a mut self, root: &'a mut Supervisor, number: u32) -> Option<&'a mut Supervisor> {
        if number == ROOT {
            return Some(root);
        }
        self.members.iter_mut().find(|member| member.number == number).map(|member| &mut member.supervisor)
    }

    /// Finds children that were born since this was asked last.
    fn look_for_births(&mut self, root: &mut Supervisor) {
        loop {
            let newborn = self.sessions(root).find_map(|(parent, session)| {
                let child = session
                    .children()
                    .iter()
                    .find(|child| child.birth.load(Acquire) > 0 && self.ready.has(child.member.load(Acquire)))?;
                Some((parent, child.member.load(Acquire), child.birth.load(Acquire)))
            });
            let Some((parent, number, pid)) = newborn else { return };
            let Some(begun) = self.ready.take(number) else { return };
            let Some(of) = self.of_number(root, parent) else { return };
            match Member::new(of, parent, pid, begun) {
                Ok(member) => {
                    // Of a child of ours that is gone the end is known, and is what led here.
                    let is_there = !root.adopted || member.supervisor.kin.has(pid);
                    self.members.push(member);
                    let i = self.members.len() - 1;
                    if let Some(end) = (!is_there).then(|| self.members[i].supervisor.on_death(None)).flatten() {
                        self.conclude(root, i, end);
                    }
                }
                Err(e) => {
                    root.log.add(&crate::log::Entry::new(crate::log::Kind::Degradation).cause(e.to_string()).pid(pid))
                }
            }
        }
    }
}
