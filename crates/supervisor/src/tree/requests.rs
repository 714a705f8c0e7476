//! What processes of a tree want of the supervisor, which knows all of them.

use super::children::child_of;
use super::sent::Letter;
use super::Tree;
use crate::futex;
use crate::processes::set_group;
use crate::session::Session;
use crate::supervisor::Supervisor;
use libc::pid_t;
use outlast_image::control::tree_request::{kind, ANSWERED, ASKED};
use rustix::io::Errno;
use std::sync::atomic::Ordering::{Acquire, Release};

/// What one wants, and with which numbers.
fn wish(session: &Session) -> Option<(u32, [i32; 2])> {
    let control = session.control();
    let about = || [0, 1].map(|i| control.tree_about[i].load(Acquire));
    (control.tree_request.load(Acquire) == ASKED).then(|| (control.tree_wanted.load(Acquire), about()))
}

fn answer(session: &Session, answer: i32) {
    let control = session.control();
    control.tree_answer.store(answer, Release);
    control.tree_request.store(ANSWERED, Release);
    futex::wake(&control.tree_request);
}

impl Tree {
    /// Sees to what processes want.
    pub(super) fn serve_requests(&mut self, root: &Supervisor) {
        let wishes: Vec<_> =
            self.sessions(root).filter_map(|(number, session)| Some((number, wish(session)?))).collect();
        for (number, (wanted, about)) in wishes {
            let result = self.serve(root, number, wanted, about);
            if let Some((_, session)) = self.sessions(root).find(|(other, _)| *other == number) {
                answer(session, result);
            }
        }
    }

    fn serve(&self, root: &Supervisor, number: u32, wanted: u32, [first, second]: [i32; 2]) -> i32 {
        let all = || std::iter::once(root).chain(self.members.iter().map(|member| &member.supervisor));
        match wanted {
            kind::SET_GROUP => {
                let is_child =
                    self.sessions(root).any(|(of, session)| of == number && child_of(session, first).is_some());
                let result = if is_child { self.put_into_group(first, second) } else { Err(Errno::SRCH) };
                result.map_or_else(|e| -e.raw_os_error(), |()| 0)
            }
            kind::TO_KERNEL => {
                // One whose status nobody has taken keeps its number.
                let ended = if self.is_awaited(root, first) { first } else { 0 };
                all().find(|other| other.meta.pid == first).map_or(ended, |other| other.pid)
            }
            kind::TO_PROGRAM => all().find(|other| other.pid == first).map_or(0, |other| other.meta.pid),
            kind::HAS_GOT => {
                let Some((_, session)) = self.sessions(root).find(|(of, _)| *of == number) else { return 0 };
                let letter = Letter::next(session);
                all().any(|other| other.has_got(&letter)).into()
            }
            _ => 0,
        }
    }

    /// By its parent's wish, with the numbers that the program knows.
    fn put_into_group(&self, pid: pid_t, group: pid_t) -> Result<(), Errno> {
        let group = if group == 0 { pid } else { group };
        let Some(child) = self.members.iter().find(|member| member.supervisor.meta.pid == pid) else {
            return set_group(pid, group);
        };
        let real = child.supervisor.pid;
        let real_group = if group == pid { real } else { group };
        set_group(real, real_group)?;
        let control = child.supervisor.generation.control();
        control.group_given.store(group, Release);
        control.pgid.store(real_group, Release);
        Ok(())
    }
}
