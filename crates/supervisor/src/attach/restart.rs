//! Where a thread goes on that was stopped anywhere: what the kernel would do on its way back to the program has to be done before it
//! goes elsewhere first.

use crate::remote::{read_memory, write_memory};
use crate::trace;
use libc::{pid_t, user_regs_struct};
use rustix::io::Errno;

/// How a call that a signal, or a stop, has ended is to be made again: what the kernel leaves in `rax`, which no program sees.
mod left {
    pub const SYS: i64 = -512;
    pub const NO_INTERRUPT: i64 = -513;
    pub const NO_HANDLER: i64 = -514;
    /// With what is left of its time-out.
    pub const BLOCK: i64 = -516;
}

/// Where a thread goes on.
#[derive(Clone, Copy, Debug)]
pub struct Resumption {
    pub regs: user_regs_struct,
    /// The call, with a time-out, that the kernel is in the middle of.
    pub waits_in: Option<u64>,
}

/// Where a thread goes on that was stopped with these registers, and that no signal awaits.
pub fn resumption(regs: &user_regs_struct) -> Resumption {
    let (number, result) = (regs.orig_rax, regs.rax as i64);
    let again = user_regs_struct { rip: regs.rip.wrapping_sub(2), rax: number, orig_rax: u64::MAX, ..*regs };
    let as_it_is = Resumption { regs: user_regs_struct { orig_rax: u64::MAX, ..*regs }, waits_in: None };
    if (number as i64) < 0 {
        return as_it_is;
    }
    match result {
        left::SYS | left::NO_INTERRUPT | left::NO_HANDLER => Resumption { regs: again, waits_in: None },
        left::BLOCK => Resumption { regs: again, waits_in: Some(number) },
        // It was the stop that ended it, which nobody need notice where nothing of a time-out is over.
        _ if result == -i64::from(libc::EINTR) && waits_for_ever(regs) => Resumption { regs: again, waits_in: None },
        _ => as_it_is,
    }
}

/// Is it a call that the kernel ends with EINTR for any stop, and that waits without a time-out?
fn waits_for_ever(regs: &user_regs_struct) -> bool {
    match regs.orig_rax as i64 {
        libc::SYS_epoll_wait | libc::SYS_epoll_pwait => (regs.r10 as i32) < 0,
        libc::SYS_epoll_pwait2 | libc::SYS_semtimedop => regs.r10 == 0,
        libc::SYS_rt_sigtimedwait => regs.rdx == 0,
        libc::SYS_io_getevents => regs.r8 == 0,
        libc::SYS_semop => true,
        _ => false,
    }
}

/// Ends a restartable sequence in the middle of which the thread was stopped, as the kernel does when a thread comes back from elsewhere.
pub fn abort_sequence(pid: pid_t, sequence: u64, regs: &mut user_regs_struct) -> Result<(), Errno> {
    if sequence == 0 {
        return Ok(());
    }
    // struct rseq: the address of what describes the sequence under way is its second word of eight bytes.
    let mut at = [0; 8];
    read_memory(pid, sequence + 8, &mut at)?;
    let at = u64::from_ne_bytes(at);
    if at == 0 {
        return Ok(());
    }
    // struct rseq_cs: version and flags, start, length, where to go.
    let mut described = [0u64; 4];
    read_memory(pid, at, bytemuck::cast_slice_mut(&mut described))?;
    let [_, start, length, abort] = described;
    if regs.rip.wrapping_sub(start) < length {
        regs.rip = abort;
        write_memory(pid, sequence + 8, &[0; 8])?;
    }
    Ok(())
}

/// A thread's restartable sequence; none where the kernel has none.
pub fn sequence(pid: pid_t) -> Result<[u64; 3], Errno> {
    trace::restartable_sequence(pid)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stopped(call: i64, result: i64, r10: u64) -> user_regs_struct {
        // SAFETY: the structure holds integers only.
        let regs: user_regs_struct = unsafe { std::mem::zeroed() };
        user_regs_struct { rip: 0x1000, rax: result as u64, orig_rax: call as u64, r10, ..regs }
    }

    fn of(regs: user_regs_struct) -> (u64, i64, Option<u64>) {
        let resumption = resumption(&regs);
        (resumption.regs.rip, resumption.regs.rax as i64, resumption.waits_in)
    }

    #[test]
    fn a_call_that_was_cut_short_is_made_again() {
        for restart in [-512, -513, -514] {
            assert_eq!(of(stopped(libc::SYS_read, restart, 0)), (0xffe, libc::SYS_read, None));
        }
    }

    #[test]
    fn a_wait_with_a_time_out_is_gone_on_with() {
        let nanosleep = libc::SYS_nanosleep;
        assert_eq!(of(stopped(nanosleep, -516, 0)), (0xffe, nanosleep, Some(nanosleep as u64)));
    }

    #[test]
    fn what_no_stop_has_ended_is_left_as_it_is() {
        assert_eq!(of(stopped(-1, -512, 0)), (0x1000, -512, None));
        assert_eq!(of(stopped(libc::SYS_read, 7, 0)), (0x1000, 7, None));
        assert_eq!(of(stopped(libc::SYS_connect, -4, 0)), (0x1000, -4, None));
    }

    #[test]
    fn a_wait_for_events_without_end_is_made_again_and_no_other() {
        assert_eq!(of(stopped(libc::SYS_epoll_wait, -4, u64::MAX)), (0xffe, libc::SYS_epoll_wait, None));
        assert_eq!(of(stopped(libc::SYS_epoll_wait, -4, 500)), (0x1000, -4, None));
    }
}
