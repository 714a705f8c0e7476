//! A system call made by a stopped thread of the target, as if it had made it itself.

use crate::memory_map::{self, is_engine};
use crate::ptrace::{read, registers, set_registers};
use crate::tracee::Tracee;
use libc::pid_t;
use rustix::io::Errno;
use std::time::Instant;

/// Makes the call and puts the thread back to where it was; the call's result.
///
/// In a protected program it is made behind the engine's back, from one of the engine's own places: elsewhere it would be
/// dispatched to the engine.
pub fn make(
    tracee: &mut Tracee,
    tid: pid_t,
    number: i64,
    arguments: [u64; 3],
    deadline: Instant,
) -> Result<i64, Errno> {
    let place = place(tracee.pid).ok_or(Errno::NOSYS)?;
    let before = registers(tid)?;
    let mut during = before;
    (during.rip, during.rax, during.orig_rax) = (place, number as u64, u64::MAX);
    [during.rdi, during.rsi, during.rdx] = arguments;
    set_registers(tid, &during)?;
    tracee.step(tid, deadline)?;
    let result = registers(tid)?.rax as i64;
    set_registers(tid, &before)?;
    Ok(result)
}

/// Has the thread make a call from which it does not return.
pub fn leave_at(tracee: &Tracee, tid: pid_t, number: i64) -> Result<(), Errno> {
    let place = place(tracee.pid).ok_or(Errno::NOSYS)?;
    let mut all = registers(tid)?;
    (all.rip, all.rax, all.orig_rax, all.rdi) = (place, number as u64, u64::MAX, 0);
    set_registers(tid, &all)
}

/// A `syscall` instruction: the engine's if there is one, or else the vDSO's or any other.
fn place(pid: pid_t) -> Option<u64> {
    let mappings = memory_map::of(pid);
    let engine = mappings.iter().filter(|m| m.executable && is_engine(m.range.start));
    let others = mappings.iter().filter(|m| m.executable && !is_engine(m.range.start) && m.path != "[vsyscall]");
    engine.chain(others).find_map(|mapping| {
        let mut text = vec![0; (mapping.range.end - mapping.range.start).min(4 << 20) as usize];
        read(pid, mapping.range.start, &mut text).ok()?;
        let at = text.windows(2).position(|pair| pair == [0x0f, 0x05])?;
        Some(mapping.range.start + at as u64)
    })
}
