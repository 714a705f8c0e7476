//! In which functions threads hang, for the log. The process is going to end: it may be stopped for that.

use crate::blocks;
use crate::decision::{Hang, Stays};
use crate::remote;
use crate::trace;
use libc::pid_t;
use outlast_image::control::ThreadBlocks;
use outlast_image::layout::{ENGINE_BASE, ENGINE_END};
use outlast_stacks::{At, Process, Stack};
use std::time::Duration;

/// How long a thread that computes may take to stop.
const PATIENCE: Duration = Duration::from_millis(500);

/// The stacks of the threads that hang, a line each: `thread 12: inner+0x4 (file+0x1234) < outer+0x8 (…) < …`.
pub fn of_hang(pid: pid_t, hang: &Hang, blocks: &ThreadBlocks) -> Vec<String> {
    let threads: Vec<pid_t> = match &hang.why {
        Stays::Computes { .. } | Stays::Lingers { .. } | Stays::Told(_) => vec![hang.thread],
        Stays::Deadlock(cycle) => cycle.iter().map(|(thread, _)| *thread).collect(),
    };
    let computes = matches!(hang.why, Stays::Computes { .. } | Stays::Lingers { .. });
    let blocks = blocks::read(pid, blocks);
    let mut process = Process::look(pid);
    let line = |thread: pid_t| {
        // Who waits does so in the engine, which has noted where it came from.
        let noted = || blocks.iter().find(|block| block.thread == thread).map(|block| block.at);
        let at = if computes { now(thread) } else { None }.or_else(noted)?;
        let frames: Vec<String> =
            process.stack(at, |address| word(pid, address)).frames.iter().map(ToString::to_string).collect();
        Some(format!("thread {thread}: {}", frames.join(" < ")))
    };
    threads.into_iter().filter_map(line).collect()
}

/// The stack of a thread that was there.
pub fn from(pid: pid_t, at: At) -> Stack {
    let mut process = Process::look(pid);
    let mut stack = process.stack(at, |address| word(pid, address));
    if stack.frames.len() < 2 {
        // In a rewritten call it is in no function: mostly what it goes back to is what comes next. Farther up lies what others have left.
        let Some((ip, sp)) = word(pid, at.sp).zip(at.sp.checked_add(8)) else { return stack };
        stack = process.stack(At { ip, sp, bp: at.bp }, |address| word(pid, address));
    }
    stack
}

pub fn word(pid: pid_t, address: u64) -> Option<u64> {
    let mut bytes = [0; 8];
    remote::read_memory(pid, address, &mut bytes).ok().map(|()| u64::from_ne_bytes(bytes))
}

/// Where a thread that computes is, if that is not in the engine.
pub fn now(thread: pid_t) -> Option<At> {
    trace::seize_gently(thread).and_then(|()| trace::interrupt(thread)).ok()?;
    let stopped = matches!(trace::wait_stop_for(thread, PATIENCE), Ok(Some(_)));
    let regs = if stopped { trace::registers(thread).ok() } else { None };
    let _ = trace::detach(thread, 0);
    let regs = regs.filter(|regs| !(ENGINE_BASE..ENGINE_END).contains(&regs.rip))?;
    Some(At { ip: regs.rip, sp: regs.rsp, bp: regs.rbp })
}
