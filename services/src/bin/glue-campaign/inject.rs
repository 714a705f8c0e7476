//! A fault as SuperGlue's authors inject it: one random bit in each of eight registers of a thread inside a component. Most
//! end the component at once; in one register only (`single`), more of them lead it astray first.

use std::io;

use crate::chance::Chance;

/// False: there was no thread to harm, or it was gone.
pub fn inject(process: u32, single: bool, chance: &mut Chance) -> bool {
    let Some(thread) = victim(process, chance) else { return false };
    // SAFETY: the calls attach to a thread of our component, wait for it alone, and let it go again; the kernel fills the
    // live structures they are given.
    unsafe {
        if libc::ptrace(libc::PTRACE_SEIZE, thread, 0, 0) != 0 {
            return false;
        }
        libc::ptrace(libc::PTRACE_INTERRUPT, thread, 0, 0);
        let mut status = 0;
        if libc::waitpid(thread, &mut status, libc::__WALL) != thread || !libc::WIFSTOPPED(status) {
            return false;
        }
        let mut registers: libc::user_regs_struct = std::mem::zeroed();
        let read = libc::ptrace(libc::PTRACE_GETREGS, thread, 0, &mut registers) == 0;
        let only = single.then(|| chance.below(8) as usize);
        let all = [
            &mut registers.rsp,
            &mut registers.rbp,
            &mut registers.rax,
            &mut registers.rbx,
            &mut registers.rcx,
            &mut registers.rdx,
            &mut registers.rsi,
            &mut registers.rdi,
        ];
        for (_, register) in all.into_iter().enumerate().filter(|(at, _)| only.is_none_or(|only| only == *at)) {
            *register ^= 1 << chance.below(64);
        }
        let written = read && libc::ptrace(libc::PTRACE_SETREGS, thread, 0, &registers) == 0;
        if libc::ptrace(libc::PTRACE_DETACH, thread, 0, 0) != 0 {
            // Killed meanwhile: its number is ours to wait for, or nobody else could.
            libc::waitpid(thread, &mut status, libc::__WALL);
        }
        written
    }
}

/// A worker that is not asleep in the kernel, if one is found soon; the boot thread never serves.
fn victim(process: u32, chance: &mut Chance) -> Option<libc::pid_t> {
    let mut workers = Vec::new();
    for attempt in 0..2_000 {
        if attempt % 50 == 0 {
            workers = threads(process).ok()?;
            workers.retain(|thread| *thread != process);
        }
        if workers.is_empty() {
            continue;
        }
        let thread = workers[chance.below(workers.len() as u64) as usize];
        let doing = std::fs::read_to_string(format!("/proc/{process}/task/{thread}/syscall")).unwrap_or_default();
        if doing.starts_with("running") {
            return Some(thread as libc::pid_t);
        }
    }
    let at = chance.below(workers.len().max(1) as u64) as usize;
    workers.get(at).map(|thread| *thread as libc::pid_t)
}

fn threads(process: u32) -> io::Result<Vec<u32>> {
    let folder = std::fs::read_dir(format!("/proc/{process}/task"))?;
    Ok(folder.flatten().filter_map(|thread| thread.file_name().to_str()?.parse().ok()).collect())
}
