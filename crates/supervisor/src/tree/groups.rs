//! Process groups of children: for the kernel only the supervisor is their parent, and so the one that may set them.

use super::children::child_of;
use super::Tree;
use crate::futex;
use crate::session::Session;
use crate::supervisor::Supervisor;
use outlast_image::control::group_request;
use rustix::io::Errno;
use std::sync::atomic::Ordering::{Acquire, Release};

/// Does what the process whose session it is wants of one of its children. The child and its group, if that is another one now.
fn set_group(session: &Session) -> Option<(i32, i32)> {
    let control = session.control();
    if control.group_request.load(Acquire) != group_request::ASKED {
        return None;
    }
    let (pid, wanted) = (control.group_of.load(Acquire), control.group_wanted.load(Acquire));
    let group = if wanted == 0 { pid } else { wanted };
    let result = match child_of(session, pid) {
        // SAFETY: plain system call; where the number is nobody's of ours any more it is refused.
        Some(_) if unsafe { libc::setpgid(pid, group) } == 0 => Ok(()),
        Some(_) => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::SRCH)),
        None => Err(Errno::SRCH),
    };
    control.group_result.store(result.map_or_else(|e| -e.raw_os_error(), |()| 0), Release);
    control.group_request.store(group_request::ANSWERED, Release);
    futex::wake(&control.group_request);
    result.ok().map(|()| (pid, group))
}

impl Tree {
    /// Sees to what parents want of their children's groups.
    pub(super) fn set_groups(&mut self, root: &Supervisor) {
        let done: Vec<_> = self.sessions(root).filter_map(|(_, session)| set_group(session)).collect();
        for (pid, group) in done {
            let child = self.members.iter().find(|member| member.supervisor.pid == pid);
            if let Some(child) = child {
                let control = child.supervisor.generation.control();
                control.group_given.store(group, Release);
                control.pgid.store(group, Release);
            }
        }
    }
}
