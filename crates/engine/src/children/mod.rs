//! Children of a program that is a tree.
//!
//! For the kernel all of the tree's processes are children of the supervisor (CLONE_PARENT), so that a parent may die and come back
//! while they run on. Whose they are, what became of them and what their parent knows of that lies in a table in the parent's
//! session: births are written there by the kernel, ends by the supervisor; that a status was taken is written with the commit
//! from which on it is so. A parent that goes back behind that commit takes it again: it is an input like any other.
//!
//! A child of fork's begins as a recovered process does, but from a copy of its parent's store: as of the commit that stands before
//! the fork ([`birth`], [`begin`]); if it is large, without the pages ([`bare`]). One of vfork's or posix_spawn's begins with the
//! program that it becomes ([`shared`]). Until it can be recovered its parent waits, and makes it once more should it die.

pub mod asking;
mod bare;
mod begin;
mod birth;
mod child_session;
mod newborn;
mod ready;
pub mod sending;
pub mod shared;
mod told;
pub mod usage;
mod wait;

pub use bare::{is_bare, is_of_anchor, KEPT};
pub use begin::{adjust, begin_with, has_its_memory, is_itself};
pub use newborn::Newborn;
pub use told::describe;
pub use wait::serve as wait;

use crate::call_filters;
use crate::calls::birth::{CloneArgs, Noted};
use crate::calls::spawn;
use crate::commit::commit;
use crate::control::control;
use crate::dispatch::{Call, Outcome, CLASS};
use crate::gathered;
use crate::shared_memory;
use crate::state::{engine, Engine};
use crate::sys::{futex_wait, futex_wake, nr};
use crate::thread::Thread;
use crate::undo;
use core::sync::atomic::Ordering::*;
use newborn::Memory;
use outlast_calls::Class;
use outlast_image::children::{news, state, Child, CHILDREN};
use outlast_image::context::pending_kind;
use outlast_image::control::tree_request;
use outlast_image::inject::option;
use outlast_image::layout::{session, SESSION_BASE};

pub const SIGCHLD: i32 = 17;
/// How often, and how long each time, it is looked what has become of a child: for two seconds. Nanoseconds.
const LOOKS: u32 = 1000;
const PATIENCE_NS: u64 = 2_000_000;

/// Is the program a tree, whose children are the supervisor's for the kernel?
pub fn are_kept() -> bool {
    // SAFETY: a look at an argument.
    unsafe { engine() }.args.options & option::TREE != 0
}

/// The engine begins, or goes on, in this process.
pub fn begin() {
    if are_kept() {
        for call in [nr::GETPPID, nr::GETRUSAGE, nr::TIMES] {
            CLASS[call as usize].store(Class::Thread as u8, Relaxed);
        }
    }
}

/// The number of the program's parent: another program of the tree.
pub fn parent() -> Option<i64> {
    Some(control().parent.load(Acquire)).filter(|&pid| pid > 0).map(i64::from)
}

/// All places of the table that have ever been used.
fn table() -> &'static [Child] {
    let used = control().children_used.load(Acquire) as usize;
    // SAFETY: the session is mapped, and a place consists of atomics, for which any bytes will do.
    unsafe { core::slice::from_raw_parts((SESSION_BASE + session::CHILDREN) as *const Child, used.min(CHILDREN)) }
}

/// A place for a child that is about to be made, in which of the sessions that the supervisor has made ready; 0: none.
fn expect(e: &mut Engine, member: u32) -> Option<&'static Child> {
    let seq = e.store().seq();
    let is_free = |child: &&Child| match child.state.load(Acquire) {
        state::FREE => true,
        // Nobody can go back behind that any more.
        state::TAKEN => child.taken.load(Acquire) <= seq,
        _ => false,
    };
    let used = table().len();
    let child = match table().iter().find(is_free) {
        Some(child) => child,
        None if used < CHILDREN => {
            control().children_used.store(used as u32 + 1, Release);
            &table()[used]
        }
        None => return None,
    };
    usage::keep(child);
    child.spawned.store(seq + 1, Release);
    expect_with(child, member);
    Some(child)
}

/// Nothing of the child is there yet, and it is to begin with this one of what the supervisor has made ready.
fn expect_with(child: &Child, member: u32) {
    child.state.store(state::FREE, Release);
    for word in [&child.birth, &child.status, &child.group] {
        word.store(0, Release);
    }
    for word in [&child.news, &child.stopped_by, &child.user] {
        word.store(0, Release);
    }
    child.taken.store(0, Release);
    child.usage.iter().for_each(|word| word.store(0, Relaxed));
    child.member.store(member, Release);
    child.state.store(state::EXPECTED, Release);
}

fn forget(child: &Child) {
    child.state.store(state::FREE, Release);
}

/// Makes a child as one of the supervisor's. None: it is to be made as a child of this process's.
pub fn make(e: &mut Engine, t: &mut Thread, call: &Call, newborn: &Newborn) -> Option<Outcome> {
    if !are_kept() || call_filters::exist() {
        return None;
    }
    let memory = newborn.memory()?;
    let may_be_made = match memory {
        Memory::Copied => birth::may_be_copied(e, t) && shared_memory::share(e),
        Memory::Shared => shared::may_be_made(),
    };
    if !may_be_made {
        return None;
    }
    let ready = ready::receive(e)?;
    wait::forget_unwanted(e);
    // Nothing of an earlier attempt was made.
    table().iter().filter(|child| child.state.load(Acquire) == state::EXPECTED).for_each(forget);
    let child = expect(e, ready.member)?;
    gathered::release(e);
    undo::share_all(e);
    e.fds.share_all();
    if commit(e, call.pending(pending_kind::SPAWN)) == 0 {
        forget(child);
        return None;
    }
    Some(Outcome::Return(match memory {
        Memory::Copied => birth::bear(e, t, call, newborn, child, ready),
        Memory::Shared => shared::bear(e, t, call, newborn, child, ready),
    }))
}

/// The call that a dead predecessor was about to make. None: not one of these.
pub fn again(e: &mut Engine, t: &mut Thread, call: &Call) -> Option<Outcome> {
    let child = spawned(e.store().seq())?;
    let pid = child.birth.load(Acquire);
    if pid <= 0 || fate(child) == Fate::Stillborn || told_nobody(call, child) {
        forget(child);
        return None;
    }
    Some(Outcome::Return(born(e, t, call, child, pid as i64)))
}

/// Has a child with its parent's memory ended where it had that? What it told its parent by that died with the parent.
fn told_nobody(call: &Call, child: &Child) -> bool {
    let shares = Newborn::of(call).is_some_and(|newborn| newborn.memory() == Some(Memory::Shared));
    shares && child.state.load(Acquire) == state::ENDED && child.news.load(Acquire) & news::RECOVERABLE == 0
}

/// The parent has a child.
fn born(e: &mut Engine, t: &mut Thread, call: &Call, child: &Child, pid: i64) -> i64 {
    // It may have ended by now.
    let _ = child.state.compare_exchange(state::EXPECTED, state::ALIVE, AcqRel, Acquire);
    ring();
    let mut room = CloneArgs::default();
    if let Some(noted) = Noted::new(call, &mut room) {
        noted.tell(pid);
    }
    spawn::is_made(e, t, pid)
}

/// What has become of a child that was made.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// It can be recovered, or has ended as it was to.
    Lives,
    /// It has ended before, and is to be made once more.
    Stillborn,
}

/// Waits until the supervisor says what has become of the child.
fn fate(child: &Child) -> Fate {
    let told = &control().children_news;
    for _ in 0..LOOKS {
        let seen = told.load(Acquire);
        let known = child.news.load(Acquire);
        if known & news::STILLBORN != 0 {
            return Fate::Stillborn;
        }
        if child.state.load(Acquire) == state::ENDED || known & news::RECOVERABLE != 0 {
            return Fate::Lives;
        }
        futex_wait(told, seen, Some(PATIENCE_NS));
    }
    Fate::Lives
}

/// The child before which commit `seq` stands: a dead predecessor was about to make it, or had made it.
fn spawned(seq: u64) -> Option<&'static Child> {
    let is_there = |child: &&Child| matches!(child.state.load(Acquire), state::EXPECTED | state::ALIVE | state::ENDED);
    table().iter().filter(is_there).find(|child| child.spawned.load(Acquire) == seq)
}

/// The process is another one, from commit `seq`: what was taken of children since comes again.
pub fn go_back(seq: u64) {
    for child in table() {
        if child.state.load(Acquire) == state::TAKEN && child.taken.load(Acquire) > seq {
            child.state.store(state::ENDED, Release);
        }
    }
}

/// Puts a child into a group: the supervisor does, whose child it is for the kernel. None: it is no child, or nobody answers.
pub fn set_group(pid: i32, group: i32) -> Option<i64> {
    let is_meant = |child: &&Child| child.state.load(Acquire) == state::ALIVE && child.birth.load(Acquire) == pid;
    table().iter().find(is_meant)?;
    asking::ask(tree_request::kind::SET_GROUP, [pid, group]).map(i64::from)
}

/// Has the supervisor look at the table, and at what is ready for children.
fn ring() {
    let births = &control().births;
    births.fetch_add(1, AcqRel);
    futex_wake(births);
}

/// Clears what a parent was to be told of by a signal.
fn is_told(child: &Child) {
    child.news.fetch_and(!news::UNTOLD, AcqRel);
}
