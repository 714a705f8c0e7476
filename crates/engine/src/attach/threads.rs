//! The threads, besides the first, of a program that is attached to. The supervisor has stopped all of them. The first makes room; then
//! they come in one by one and wait until commit 0 is taken, or until nothing has become of it.

use super::{fill, read_thread, wait_on};
use crate::calls::gs;
use crate::calls::thread_birth;
use crate::control::control;
use crate::gate;
use crate::in_hand;
use crate::scheduling;
use crate::state::Engine;
use crate::sys::{futex_wait, futex_wake, now_ns, nr, syscall};
use crate::thread::{self, standing, Thread};
use crate::world;
use core::sync::atomic::{AtomicU32, Ordering::*};
use outlast_image::degradation::Degradation;
use outlast_image::inject::ThreadArgs;
use outlast_image::layout::{session, SESSION_BASE, THREADS};

/// How many have come in.
static ARRIVED: AtomicU32 = AtomicU32::new(0);
/// Whether they may go on: see `go`.
static GO: AtomicU32 = AtomicU32::new(go::NOT_YET);

mod go {
    pub const NOT_YET: u32 = 0;
    pub const PROTECTED: u32 = 1;
    pub const NATIVE: u32 = 2;
}

/// How long they may take. They are late only if the supervisor is dead, and then run on as they were.
const PATIENCE_NS: u64 = 10_000_000_000;

/// Has all other threads come in. The tracker has begun; the caller is the first thread, and holds the engine's lock afterwards.
pub unsafe fn gather(e: &mut Engine, first: &mut Thread) -> Result<(), Degradation> {
    let count = e.args.threads as usize;
    if count == 0 {
        return Ok(());
    }
    if count >= THREADS || world::map_room(false).is_err() {
        return Err(Degradation::Threads);
    }
    // The supervisor has written them; the ring, which uses the same room, has done nothing yet.
    let all = core::slice::from_raw_parts((SESSION_BASE + session::BOUNCE) as *const ThreadArgs, count);
    for (n, args) in all.iter().enumerate() {
        let t = thread::prepare(n as u32 + 1);
        in_hand::let_go(t);
        fill(t, args);
        (t.tid, t.real_tid) = (args.tid as u32, args.tid as u32);
        (t.is_fresh, t.gs_base) = (true, 0);
        e.tracker.pin_sequence(t);
        let stands = match args.waits_in {
            0 => standing::AT_REST,
            _ => {
                t.call = t.regs.rax;
                t.regs.rip += 2;
                standing::IN_CALL
            }
        };
        t.standing.store(stands, Release);
    }
    control().awaits_threads.store(1, Release);
    let until = now_ns() + PATIENCE_NS;
    loop {
        let arrived = ARRIVED.load(Acquire);
        if arrived as usize == count {
            break;
        }
        if now_ns() > until {
            return Err(Degradation::Threads);
        }
        futex_wait(&ARRIVED, arrived, Some(10_000_000));
    }
    thread_birth::prepare_several(e, first);
    for place in 1..=count as u32 {
        world::settle(place);
    }
    scheduling::note_all(first);
    Ok(())
}

/// Lets them go on.
pub fn release(is_protected: bool) {
    GO.store(if is_protected { go::PROTECTED } else { go::NATIVE }, Release);
    futex_wake(&GO);
}

/// The first code of such a thread, on the engine's stack, every signal blocked.
pub unsafe extern "C" fn come_in(t: &mut Thread) -> ! {
    read_thread(t);
    t.fs_base = thread::fs_base();
    ARRIVED.fetch_add(1, AcqRel);
    futex_wake(&ARRIVED);
    while GO.load(Acquire) == go::NOT_YET {
        futex_wait(&GO, go::NOT_YET, None);
    }
    let waits = t.standing.load(Acquire) == standing::IN_CALL;
    if GO.load(Acquire) == go::NATIVE {
        if waits {
            // The kernel remembers.
            t.regs.rip -= 2;
            t.regs.rax = nr::RESTART_SYSCALL;
        }
        if gs::are_own() {
            t.native = 1;
        } else {
            let mask = t.mask;
            syscall!(nr::RT_SIGPROCMASK, 2, &raw const mask, 0, 8);
        }
        gate::leave();
    }
    thread_birth::set_up(t);
    if waits {
        // It stands still as it is: nobody knocks at it, which would have the kernel forget how long the wait still lasts.
        crate::signals::set_kernel_mask(t.mask);
        wait_on();
    }
    thread_birth::run(t)
}
