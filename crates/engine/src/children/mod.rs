//! Children of a program that is a tree.
//!
//! For the kernel all of the tree's processes are children of the supervisor (CLONE_PARENT), so that a parent may die and come back
//! while they run on. Whose they are, what became of them and what their parent knows of that lies in a table in the parent's
//! session: births are written there by the kernel, ends by the supervisor; that a status was taken is written with the commit
//! from which on it is so. A parent that goes back behind that commit takes it again: it is an input like any other.
//!
//! A protected child begins as a recovered process does, but from a copy of its parent's store: as of the commit that stands before
//! the fork. Until it has an anchor of its own its parent waits, and makes it once more should it die.

mod birth;
mod ready;
mod told;
mod wait;

pub use birth::{adjust, again, begin_with, is_itself, make};
pub use told::describe;
pub use wait::serve as wait;

use crate::control::control;
use crate::dispatch::{Call, CLASS};
use crate::state::{engine, Engine};
use crate::sys::{futex_wake, nr};
use core::sync::atomic::Ordering::*;
use outlast_calls::Class;
use outlast_image::children::{news, state, Child, CHILDREN};
use outlast_image::control::KILLS;
use outlast_image::inject::option;
use outlast_image::layout::{session, SESSION_BASE};

pub const SIGCHLD: i32 = 17;
const SIGKILL: u64 = 9;

/// Is the program a tree, whose children are the supervisor's for the kernel?
pub fn are_kept() -> bool {
    // SAFETY: a look at an argument.
    unsafe { engine() }.args.options & option::TREE != 0
}

/// The engine begins, or goes on, in this process.
pub fn begin() {
    if are_kept() {
        CLASS[nr::GETPPID as usize].store(Class::Thread as u8, Relaxed);
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
    child.state.store(state::FREE, Release);
    for word in [&child.birth, &child.status, &child.group] {
        word.store(0, Release);
    }
    for word in [&child.news, &child.stopped_by, &child.user] {
        word.store(0, Release);
    }
    child.taken.store(0, Release);
    child.spawned.store(seq + 1, Release);
    child.usage.iter().for_each(|word| word.store(0, Relaxed));
    child.member.store(member, Release);
    child.state.store(state::EXPECTED, Release);
    Some(child)
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

/// The program is about to send a signal: whom it kills is not to be recovered.
pub fn note_kill(call: &Call) {
    let (pid, signal) = match call.nr {
        nr::KILL => (call.args[0], call.args[1]),
        nr::TGKILL => (call.args[0], call.args[2]),
        _ => return,
    };
    if signal & 0xffff_ffff != SIGKILL || !are_kept() {
        return;
    }
    // Its own group goes by its number there.
    // SAFETY: a look at a number.
    let to = if pid as i32 == 0 { -(unsafe { engine() }.kernel.pgid as i32) } else { pid as i32 };
    let c = control();
    let count = c.kills.load(Relaxed);
    c.killed[count as usize % KILLS].store(to, Release);
    c.kills.store(count.wrapping_add(1), Release);
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
