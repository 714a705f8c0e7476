//! Whoever attaches to a program on behalf of its user, for a policy, becomes what the program could have started itself: with its user,
//! rights and limits, in its control groups, and with nothing of the daemon's that it has not.

use super::refusal::Refusal;
use crate::control_group::Groups;
use crate::credentials::Credentials;
use crate::error::Error;
use crate::{oom_score, processes};
use libc::pid_t;
use rustix::fs::{readlink, stat};
use std::ptr::null;

/// What a supervisor works with there: files by their names, and the kernel's answers about connections.
const NAMESPACES: [&str; 2] = ["mnt", "net"];
/// Resource limits, by number (getrlimit(2)).
const LIMITS: std::ops::Range<u32> = 0..16;

/// Makes this process, which has one thread and is to execute another program next, one that stands beside the program and is no more than it.
/// `start_time`: which process of that number is meant.
///
/// # Errors
/// It is another one by now, or this process cannot become that: then it must not go on.
pub fn stand_beside(pid: pid_t, start_time: u64) -> Result<(), Error> {
    become_one(pid, start_time).map_err(|refusal| refusal.of(pid))
}

fn become_one(pid: pid_t, start_time: u64) -> Result<(), Refusal> {
    let theirs = Credentials::of(pid).ok_or(Refusal::Gone)?;
    if !is_plain(&theirs) {
        return Err(Refusal::Mixed);
    }
    if !is_where_we_are(pid) {
        return Err(Refusal::Elsewhere);
    }
    // Where they cannot be entered, a supervisor elsewhere is as good.
    let _ = Groups::of(pid).is_some_and(|groups| groups.take(std::process::id() as pid_t));
    oom_score::share(pid);
    share_limits(pid);
    leave_keyring();
    // All of the above is about this process of that number, and so is what follows.
    if processes::start_time(pid) != Some(start_time) {
        return Err(Refusal::Gone);
    }
    theirs.assume();
    let ours = Credentials::of(std::process::id() as pid_t).ok_or(Refusal::ProcHidden)?;
    may_do_no_more(&ours, &theirs).then_some(()).ok_or(Refusal::Rights)
}

/// Is its user all it is?
fn is_plain(credentials: &Credentials) -> bool {
    let is_one = |ids: &[u32; 3]| ids.iter().all(|id| *id == ids[0]);
    is_one(&credentials.uid) && is_one(&credentials.gid)
}

/// After the next execution, which gives root all that its bounding set has, and others nothing but by files' rights.
fn may_do_no_more(ours: &Credentials, theirs: &Credentials) -> bool {
    let of = |credentials: &Credentials| (credentials.uid, credentials.gid, credentials.groups.clone());
    let [permitted, _, _, bounding, _] = theirs.capabilities;
    let gains = if ours.uid[0] == 0 { permitted } else { bounding };
    let is_bound = ours.capabilities[3] & !gains == 0 || (ours.uid[0] != 0 && ours.no_new_privs);
    of(ours) == of(theirs) && is_bound && (ours.no_new_privs || !theirs.no_new_privs)
}

/// Has it the same mounts, root, network and security label as this process?
fn is_where_we_are(pid: pid_t) -> bool {
    let namespace = |of: &str, name: &str| readlink(format!("/proc/{of}/ns/{name}"), []).ok();
    let root = |of: &str| stat(format!("/proc/{of}/root/")).ok().map(|stat| (stat.st_dev, stat.st_ino));
    // Where there are no labels there is nothing to read.
    let label = |of: &str| std::fs::read(format!("/proc/{of}/attr/current")).ok();
    let its = pid.to_string();
    let is_shared = |name: &&str| namespace(&its, name).is_some_and(|its| namespace("self", name) == Some(its));
    NAMESPACES.iter().all(is_shared)
        && root(&its).is_some_and(|its| root("self") == Some(its))
        && label(&its) == label("self")
}

/// Takes the program's limits and niceness, or stays below them.
fn share_limits(pid: pid_t) {
    for resource in LIMITS {
        let (mut its, mut own) = (libc::rlimit { rlim_cur: 0, rlim_max: 0 }, libc::rlimit { rlim_cur: 0, rlim_max: 0 });
        // SAFETY: the kernel reads and writes these structures; whoever may not raise a limit keeps a lower one.
        unsafe {
            if libc::prlimit(pid, resource, null(), &raw mut its) != 0
                || libc::prlimit(0, resource, null(), &raw mut own) != 0
                || libc::prlimit(0, resource, &raw const its, std::ptr::null_mut()) == 0
            {
                continue;
            }
            let most = its.rlim_max.min(own.rlim_max);
            let lower = libc::rlimit { rlim_cur: its.rlim_cur.min(most), rlim_max: most };
            libc::prlimit(0, resource, &raw const lower, std::ptr::null_mut());
        }
    }
    // SAFETY: plain system calls.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, libc::getpriority(libc::PRIO_PROCESS, pid as u32)) };
}

/// Gives up the keys that the daemon may use (keyrings(7)).
fn leave_keyring() {
    const KEYCTL_JOIN_SESSION_KEYRING: libc::c_long = 1;
    // SAFETY: a new one without a name; a kernel without keys refuses, and has none to give up.
    unsafe { libc::syscall(libc::SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, null::<u8>()) };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(uid: u32, [permitted, bounding]: [u64; 2], no_new_privs: bool) -> Credentials {
        let capabilities = [permitted, permitted, 0, bounding, 0];
        Credentials { uid: [uid; 3], gid: [uid; 3], groups: vec![uid], capabilities, no_new_privs, seccomp: 0 }
    }

    #[test]
    fn nobody_gains_a_right() {
        let user = with(1000, [0, 7], false);
        assert!(may_do_no_more(&user, &user));
        assert!(!may_do_no_more(&with(0, [7, 7], false), &user), "another user");
        assert!(!may_do_no_more(&Credentials { groups: vec![], ..user.clone() }, &user), "other groups");
        assert!(!may_do_no_more(&with(1000, [0, 15], false), &user), "more by a file's rights");
        assert!(may_do_no_more(&with(1000, [0, 15], true), &user), "which then count for nothing");
        assert!(!may_do_no_more(&user, &with(1000, [0, 7], true)));
        // Root's next execution gives it all that its bounding set has.
        assert!(may_do_no_more(&with(0, [7, 7], false), &with(0, [7, 7], false)));
        assert!(!may_do_no_more(&with(0, [7, 7], true), &with(0, [3, 7], true)));
    }

    #[test]
    fn who_is_several_users_at_once_is_nobody_to_stand_beside() {
        let user = with(1000, [0, 7], false);
        assert!(is_plain(&user));
        assert!(!is_plain(&Credentials { uid: [1000, 0, 1000], ..user.clone() }));
        assert!(!is_plain(&Credentials { gid: [1000, 1000, 0], ..user }));
    }

    #[test]
    fn a_process_is_where_it_is() {
        assert!(is_where_we_are(std::process::id() as pid_t));
        assert!(!is_where_we_are(0));
    }
}
