//! A signal that the kernel has given away and the program has not got yet: its handler waits until the engine is through with a
//! call, or is just being begun. A death would lose it. So it lies in the session from the first moment on, until it is
//! in the journal.
//!
//! There is a place for every thread, since each has one signal in hand at a time: while it has, the others are blocked. A handler
//! that interrupts the engine writes there.

use crate::delivery;
use crate::state::{engine, journal, Engine};
use crate::thread::Thread;
use crate::threads::is_in;
use core::ptr::{read_volatile, write_volatile};
use core::sync::atomic::{fence, Ordering::SeqCst};
use outlast_image::layout::{session, SESSION_BASE, THREADS};

/// What lies in a place.
#[repr(C)]
#[derive(Clone, Copy)]
struct InHand {
    /// 1: the rest is a signal that would not come again by itself. Only its taker knows by the sender's number whether the program
    /// itself sent it.
    held: u64,
    /// The commit after which it is being noted, plus one, and where in the journal.
    noted: [u64; 2],
    info: [u64; 16],
}

const _: () = assert!(size_of::<InHand>() as u64 <= session::IN_HAND_LEN);
const _: () = assert!(session::IN_HAND + THREADS as u64 * session::IN_HAND_LEN <= outlast_image::layout::SESSION_LEN);

fn of(place: u32) -> *mut InHand {
    (SESSION_BASE + session::IN_HAND + u64::from(place) * session::IN_HAND_LEN) as *mut InHand
}

/// The thread has the signal in hand.
pub fn hold(t: &Thread, info: &[u64; 16]) {
    let at = of(t.place);
    // SAFETY: the thread's own part of the session.
    unsafe {
        write_volatile(&raw mut (*at).held, 0);
        fence(SeqCst);
        write_volatile(&raw mut (*at).noted, [0; 2]);
        write_volatile(&raw mut (*at).info, *info);
        fence(SeqCst);
        // A handler may interrupt the engine here: nothing but numbers is read.
        write_volatile(&raw mut (*at).held, !delivery::repeats_itself(engine(), info) as u64);
    }
}

/// The program has got it, or it was for nobody; or the thread is new.
pub fn let_go(t: &Thread) {
    // SAFETY: as in `hold`.
    unsafe { write_volatile(&raw mut (*of(t.place)).held, 0) };
}

/// Puts a signal into the journal: from there it comes again.
pub fn note(e: &mut Engine, place: u32, info: &[u64; 16]) {
    let Some(store) = &mut e.store else { return };
    // SAFETY: as in `hold`.
    unsafe { write_volatile(&raw mut (*of(place)).noted, [store.seq() + 1, store.journal_end()]) };
    fence(SeqCst);
    let _ = store.journal_append(journal::SIGNAL, bytemuck::bytes_of(info));
}

/// Notes what dead predecessors' threads had in hand, but for what is a failure. Only those that the commit knows: what nobody has
/// written to takes room as soon as somebody looks, and there may be none.
pub fn recover(e: &mut Engine) {
    let places = e.threads;
    for place in (0..THREADS as u32).filter(|&place| is_in(&places, place)) {
        // SAFETY: as in `hold`; nobody else is there yet.
        let InHand { held, noted: [after, at], info } = unsafe { read_volatile(of(place)) };
        if held != 1 {
            continue;
        }
        let seq = e.store().seq();
        let is_noted = after == seq + 1
            && e.store()
                .journal_read(at)
                .is_some_and(|(kind, bytes, _)| kind == journal::SIGNAL && bytes == bytemuck::bytes_of(&info));
        let is_one = (1..64).contains(&(info[0] as i32));
        if is_one && !is_noted && !delivery::is_failure(&info) {
            note(e, place, &info);
        }
        // SAFETY: as above.
        unsafe { write_volatile(&raw mut (*of(place)).held, 0) };
    }
}
