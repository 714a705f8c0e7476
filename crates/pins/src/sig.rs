//! The pin `sig`.

use crate::desk::Shared;
use libc::pid_t;
use outlast_core::{Event, Failure, Payload, Pin};
use outlast_interfaces::sig::{self, Masks, Send, NAME};
use outlast_supervisor::processes;
use rustix::io::Errno;
use std::fs;

/// Signals that a module may send: all but the one by which the supervisor calls the engine.
const SIGNALS: std::ops::RangeInclusive<i32> = 1..=63;

pub struct Sig(pub Shared);

impl Pin for Sig {
    fn operate(&mut self, operation: &'static str, argument: &Payload, _: &mut Vec<Event>) -> Result<Payload, Failure> {
        if operation == sig::MASKS {
            let pid = self.0.borrow().process_of(NAME, &argument.read::<String>()?)?.pid;
            let masks = |thread| masks_of(thread, &status(pid, thread)?);
            return Payload::of(&processes::threads_of(pid).into_iter().filter_map(masks).collect::<Vec<_>>());
        }
        let Send { program, thread, signal } = argument.read()?;
        let pid = self.0.borrow().process_of(NAME, &program)?.pid;
        if !SIGNALS.contains(&signal) {
            return Err(refused(format!("no signal {signal} can be sent")));
        }
        send(pid, thread, signal).map_err(|e| refused(e.to_string()))?;
        Ok(Payload::NONE)
    }
}

fn refused(why: String) -> Failure {
    Failure::Refused(NAME.into(), why)
}

/// The number is the process's own: it is ours, and was alive when the supervisor looked; nobody else reaps it meanwhile.
fn send(pid: pid_t, thread: Option<pid_t>, signal: i32) -> Result<(), Errno> {
    // SAFETY: plain system calls. The kernel refuses a thread that is none of this process.
    let sent = unsafe {
        match thread {
            Some(thread) => libc::syscall(libc::SYS_tgkill, pid, thread, signal),
            None => libc::kill(pid, signal).into(),
        }
    };
    match sent {
        0 => Ok(()),
        _ => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::SRCH)),
    }
}

fn status(pid: pid_t, thread: pid_t) -> Option<String> {
    fs::read_to_string(format!("/proc/{pid}/task/{thread}/status")).ok()
}

fn masks_of(thread: pid_t, status: &str) -> Option<Masks> {
    let mask = |name| {
        let mask = status.lines().find_map(|line| line.strip_prefix(name))?;
        u64::from_str_radix(mask.trim(), 16).ok()
    };
    let (blocked, pending, shared_pending) = (mask("SigBlk:")?, mask("SigPnd:")?, mask("ShdPnd:")?);
    Some(Masks { thread, blocked, pending, shared_pending })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_read_or_it_is_said_that_there_are_none() {
        let status =
            "Name:\tx\nSigQ:\t0/1\nSigPnd:\t0000000000000200\nShdPnd:\t8000000000000000\nSigBlk:\t0000000000010000\n";
        let masks = Masks { thread: 7, blocked: 0x1_0000, pending: 0x200, shared_pending: 1 << 63 };
        assert_eq!(masks_of(7, status), Some(masks));
        for hostile in [
            "",
            "SigPnd:\tg\nShdPnd:\t0\nSigBlk:\t0\n",
            "SigPnd:\t0\nShdPnd:\t0\n",
            "SigBlk:\t11112222333344445\nSigPnd:\t0\nShdPnd:\t0",
        ] {
            assert_eq!(masks_of(7, hostile), None, "{hostile:?}");
        }
    }
}
