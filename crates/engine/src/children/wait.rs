//! wait4 and waitid: answered from the table. Children that are not in it are the kernel's to tell of.

use super::told::{code, of_status};
use super::{is_told, ring, table, SIGCHLD};
use crate::calls::groups;
use crate::control::control;
use crate::dispatch::{interruptible, visible, Call};
use crate::signals::SIG_IGN;
use crate::state::Engine;
use crate::sys::{err, nr, syscall, FUTEX_WAIT};
use crate::thread::Thread;
use crate::user;
use core::sync::atomic::Ordering::*;
use outlast_image::children::{news, state, Child};

const WNOHANG: u64 = 1;
const WSTOPPED: u64 = 2;
const WEXITED: u64 = 4;
const WCONTINUED: u64 = 8;
const WNOWAIT: u64 = 0x0100_0000;
const SA_NOCLDWAIT: u64 = 2;
const ECHILD: i64 = -10;

/// Which children are waited for.
#[derive(Clone, Copy)]
enum Whom {
    All,
    Process(i32),
    Group(i32),
}

impl Whom {
    fn has(self, child: &Child) -> bool {
        match self {
            Whom::All => true,
            Whom::Process(pid) => child.birth.load(Acquire) == pid,
            Whom::Group(group) => group_of(child) == group,
        }
    }
}

fn group_of(child: &Child) -> i32 {
    match child.state.load(Acquire) {
        state::ALIVE => {
            // SAFETY: asks only.
            unsafe { syscall!(nr::GETPGID, child.birth.load(Acquire)) as i32 }
        }
        _ => child.group.load(Acquire),
    }
}

/// A call, in the words of waitid.
struct Wanted {
    whom: Whom,
    options: u64,
    status: u64,
    info: u64,
    usage: u64,
}

impl Wanted {
    /// None: not a call that can be answered here.
    fn of(e: &Engine, call: &Call) -> Option<Self> {
        const KNOWN: u64 = WNOHANG | WSTOPPED | WEXITED | WCONTINUED | WNOWAIT | 0xe000_0000;
        let a = call.args;
        let wanted = match call.nr {
            nr::WAIT4 => {
                let whom = match a[0] as i32 {
                    -1 => Whom::All,
                    0 => Whom::Group(groups::own(e) as i32),
                    pid @ 1.. => Whom::Process(pid),
                    i32::MIN => return None,
                    group => Whom::Group(-group),
                };
                Self { whom, options: a[2] & 0xffff_ffff | WEXITED, status: a[1], info: 0, usage: a[3] }
            }
            _ => {
                let whom = match (a[0], a[1] as i32) {
                    (0, _) => Whom::All,
                    (1, pid @ 1..) => Whom::Process(pid),
                    (2, 0) => Whom::Group(groups::own(e) as i32),
                    (2, group @ 1..) => Whom::Group(group),
                    _ => return None,
                };
                Self { whom, options: a[3] & 0xffff_ffff, status: 0, info: a[2], usage: a[4] }
            }
        };
        let waits = wanted.options & (WEXITED | WSTOPPED | WCONTINUED) != 0;
        (waits && wanted.options & !KNOWN == 0).then_some(wanted)
    }
}

/// What a child has to tell: `si_code`, `si_status`, and the status as wait4 has it.
type News = (i32, i32, i32);

fn news_of(child: &Child, options: u64) -> Option<News> {
    let told = child.news.load(Acquire);
    match child.state.load(Acquire) {
        state::ENDED if options & WEXITED != 0 => {
            let status = child.status.load(Acquire);
            let (code, value) = of_status(status);
            Some((code, value, status))
        }
        state::ALIVE if options & WSTOPPED != 0 && told & news::STOPPED != 0 => {
            let signal = child.stopped_by.load(Acquire) as i32;
            Some((code::STOPPED, signal, signal << 8 | 0x7f))
        }
        state::ALIVE if options & WCONTINUED != 0 && told & news::CONTINUED != 0 => Some((code::CONTINUED, 18, 0xffff)),
        _ => None,
    }
}

pub fn serve(e: &mut Engine, t: &mut Thread, call: &Call) -> i64 {
    if !super::are_kept() {
        return visible(e, t, call);
    }
    let Some(wanted) = Wanted::of(e, call) else { return visible(e, t, call) };
    loop {
        let changes = &control().children_news;
        let seen = changes.load(Acquire);
        forget_unwanted(e);
        let mut is_any = false;
        for child in table() {
            if !matches!(child.state.load(Acquire), state::ALIVE | state::ENDED) || !wanted.whom.has(child) {
                continue;
            }
            is_any = true;
            if let Some(news) = news_of(child, wanted.options) {
                return tell(e, child, &wanted, news);
            }
        }
        if !is_any {
            // One that could not be made a child of the supervisor's, or none.
            return visible(e, t, call);
        }
        if wanted.options & WNOHANG != 0 {
            return if wanted.info == 0 || user::write(wanted.info, &[0u64; 16]) { 0 } else { err::EFAULT };
        }
        let sleep = Call { nr: nr::FUTEX, args: [changes.as_ptr() as u64, FUTEX_WAIT, seen as u64, 0, 0, 0] };
        match interruptible(t, &sleep) {
            err::EINTR => return err::EINTR,
            err::ENOSYS | err::EPERM => return ECHILD,
            _ => {}
        }
    }
}

/// Forgets the children that have ended, if the program wants to know nothing of that.
pub fn forget_unwanted(e: &mut Engine) {
    let action = &e.kernel.actions[SIGCHLD as usize];
    if action.handler == SIG_IGN || action.flags & SA_NOCLDWAIT != 0 {
        let ended = table().iter().filter(|child| child.state.load(Acquire) == state::ENDED);
        ended.for_each(|child| take(e, child));
    }
}

/// The status is taken: from the next commit on for good.
fn take(e: &mut Engine, child: &Child) {
    child.taken.store(e.store().seq() + 1, Release);
    is_told(child);
    child.state.store(state::TAKEN, Release);
    // Until the supervisor has seen it the number is the child's.
    ring();
}

fn tell(e: &mut Engine, child: &Child, wanted: &Wanted, (code, value, status): News) -> i64 {
    let pid = child.birth.load(Acquire);
    if wanted.status != 0 && !user::write(wanted.status, &status) {
        return err::EFAULT;
    }
    if wanted.info != 0 {
        let mut info = [0u64; 16];
        info[0] = SIGCHLD as u64;
        info[1] = code as u32 as u64;
        info[2] = pid as u32 as u64 | (child.user.load(Acquire) as u64) << 32;
        info[3] = value as u32 as u64;
        if !user::write(wanted.info, &info) {
            return err::EFAULT;
        }
    }
    if wanted.usage != 0 {
        let usage: [u64; 18] = core::array::from_fn(|i| child.usage[i].load(Acquire));
        if !user::write(wanted.usage, &usage) {
            return err::EFAULT;
        }
    }
    match code {
        _ if wanted.options & WNOWAIT != 0 => {}
        code::STOPPED => drop(child.news.fetch_and(!news::STOPPED, AcqRel)),
        code::CONTINUED => drop(child.news.fetch_and(!news::CONTINUED, AcqRel)),
        _ => take(e, child),
    }
    match wanted.info {
        0 => pid as i64,
        _ => 0,
    }
}
