//! Which calls go straight through the gate: those that nobody need see, as long as nobody needs to.

use crate::call_filters;
use crate::calls;
use crate::gathered;
use crate::held;
use crate::numbers;
use crate::own_faults;
use crate::perturb;
use crate::program_rings;
use crate::replies;
use crate::shared_memory;
use crate::state::{engine, Engine};
use crate::sys::nr;
use crate::world;
use core::sync::atomic::{AtomicU8, Ordering::*};
use outlast_calls::Class;
use outlast_image::kernel::one_shot;

/// In the place of a class: goes straight through the gate if its descriptor is one of which the kernel copies.
pub const BY_DESCRIPTOR: u8 = 0xff;

/// In the place of a class: goes straight through the gate, which notes when it began.
pub const TIMED: u8 = 0xfe;

/// One byte a system call; 0 goes straight through the gate. The assembler's copy of the table.
pub static CLASS: [AtomicU8; 512] = {
    let mut table = [const { AtomicU8::new(0) }; 512];
    let mut i = 0;
    while i < 512 {
        table[i] = AtomicU8::new(straight(i));
        i += 1;
    }
    // What can be read at an offset is not consumed, whatever it is.
    table[nr::PREAD64 as usize] = AtomicU8::new(Class::Pure as u8);
    table[nr::PREADV as usize] = AtomicU8::new(Class::Pure as u8);
    let mut i = 0;
    while i < calls::posix_timers::STRAIGHT.len() {
        table[calls::posix_timers::STRAIGHT[i] as usize] = AtomicU8::new(Class::Object as u8);
        i += 1;
    }
    table
};

/// What the table says of a call for as long as the engine need not see it.
const fn straight(nr: usize) -> u8 {
    let class = outlast_calls::CLASS[nr];
    if class != Class::Pure as u8 || nr >= outlast_calls::LEN {
        return class;
    }
    match &outlast_calls::TABLE[nr] {
        Some(row) if row.timeout.is_some() => TIMED,
        _ => class,
    }
}

/// Calls that ask for groups and sessions.
pub const GROUPS: [u64; 3] = [nr::GETPGRP, nr::GETPGID, nr::GETSID];

/// From now on the engine looks at what has to do with the numbers of the program's process and threads.
pub fn answer_ids() {
    numbers::begin_to_differ();
    for n in [nr::GETPID, nr::GETTID].into_iter().chain(GROUPS) {
        CLASS[n as usize].store(Class::Thread as u8, Relaxed);
    }
    for (n, class) in CLASS.iter().enumerate() {
        if outlast_calls::row(n as u64).is_some_and(|row| row.class == Class::Pure && row.names_processes()) {
            class.store(Class::Thread as u8, Relaxed);
        }
    }
}

/// From now on the engine looks at who asks for groups and sessions.
pub fn answer_groups() {
    for n in GROUPS {
        CLASS[n as usize].store(Class::Thread as u8, Relaxed);
    }
}

/// From now on calls that the tracker must see do not go straight through the gate.
pub fn slow_down_tracked(e: &Engine) {
    for (n, class) in CLASS.iter().enumerate() {
        if matches!(class.load(Relaxed), 0 | TIMED) && e.tracker.must_see(n as u64) {
            let by_descriptor = matches!(n as u64, nr::PREAD64 | nr::PREADV);
            let by_descriptor = by_descriptor && !e.tracker.guards_kernel_writes();
            class.store(if by_descriptor { BY_DESCRIPTOR } else { Class::Thread as u8 }, Relaxed);
        }
    }
    slow_down_filtered();
}

/// From now on calls that write to the program's memory do not go straight through the gate.
pub fn slow_down_writing() {
    for (n, class) in CLASS.iter().enumerate() {
        let writes = outlast_calls::row(n as u64).is_some_and(|row| !row.outs().is_empty());
        if writes && matches!(class.load(Relaxed), 0 | BY_DESCRIPTOR | TIMED) {
            class.store(Class::Thread as u8, Relaxed);
        }
    }
}

/// From now on nothing goes straight through the gate.
pub fn slow_down_all() {
    for class in &CLASS {
        if matches!(class.load(Relaxed), 0 | BY_DESCRIPTOR | TIMED) {
            class.store(Class::Thread as u8, Relaxed);
        }
    }
}

/// Calls that a filter of the program's may refuse do not go straight through the gate.
pub fn slow_down_filtered() {
    for (n, class) in CLASS.iter().enumerate() {
        if call_filters::asks(n as u64) && matches!(class.load(Relaxed), 0 | BY_DESCRIPTOR | TIMED) {
            class.store(Class::Thread as u8, Relaxed);
        }
    }
}

/// From now on, or no more unless somebody else needs it, calls that may wait do not go straight through the gate.
pub fn slow_down_waits(on: bool) {
    // SAFETY: only looks whether there is a log, or a ring.
    let on = on
        || held::is_on()
        || own_faults::kernel::is_served()
        || world::has_several()
        || gathered::slows_waits()
        || replies::are_owed()
        || shared_memory::is_on()
        || perturb::delays()
        || unsafe { !engine().inputs.is_empty() || program_rings::exist(engine()) };
    // SAFETY: only looks which tracker there is, and what the program uses.
    let (tracker, keeps_events) = unsafe { (&engine().tracker, engine().kernel.one_shot != one_shot::NONE) };
    for (n, class) in CLASS.iter().enumerate() {
        if outlast_calls::row(n as u64).is_some_and(|row| row.waits && row.class == Class::Pure) {
            let slow = on || tracker.must_see(n as u64) || keeps_events && calls::epoll::waits(n as u64);
            class.store(if slow { Class::Thread as u8 } else { straight(n) }, Relaxed);
        }
    }
    slow_down_filtered();
}
