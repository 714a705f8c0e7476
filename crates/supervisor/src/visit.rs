//! System calls made on behalf of a process that is stopped anywhere: its stack, its text and whatever lies there are left alone.
//!
//! The vDSO of every process has a `syscall` instruction. Stepping over that maps two pages, for the instructions of the bootstrap and
//! their table, among the addresses that will be the engine's.

use crate::bootstrap;
use crate::remote::{read_memory, Remote};
use crate::trace::{self, Fault};
use libc::{pid_t, user_regs_struct};
use outlast_image::layout::{ENGINE_END, PAGE};
use rustix::io::Errno;

/// Where the two pages are.
const CODE: u64 = ENGINE_END - 2 * PAGE;
const SCRATCH: u64 = ENGINE_END - PAGE;

const SYSCALL: [u8; 2] = [0x0f, 0x05];

/// Why a process cannot be visited; it is as it was.
pub enum Hindrance {
    Fault(Fault),
    /// What failed in it.
    Refused(&'static str, Errno),
}

impl From<Fault> for Hindrance {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl Remote {
    /// Takes over a stopped process; `stop`: its registers, and the signals that it has blocked.
    pub fn visit(pid: pid_t, stop: (user_regs_struct, u64)) -> Result<Self, Hindrance> {
        let none = || Hindrance::Refused("find a system call instruction in its vDSO", Errno::NOENT);
        let instruction = system_call(pid).ok_or_else(none)?;
        let mut remote = Self::elsewhere(pid, stop, instruction, [CODE, SCRATCH]);
        trace::set_signal_mask(pid, !(1 << (libc::SIGTRAP - 1))).map_err(|e| Fault::Kernel("block its signals", e))?;
        match remote.set_up(instruction) {
            Ok(()) => Ok(remote),
            Err(Hindrance::Refused(what, e)) => {
                remote.go_unchanged(&stop.0, stop.1)?;
                Err(Hindrance::Refused(what, e))
            }
            Err(fault) => Err(fault),
        }
    }

    fn set_up(&mut self, instruction: u64) -> Result<(), Hindrance> {
        let pages = [(CODE, libc::PROT_READ | libc::PROT_EXEC), (SCRATCH, libc::PROT_READ | libc::PROT_WRITE)];
        for (n, (at, prot)) in pages.into_iter().enumerate() {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
            let args = [at, PAGE, prot as u64, flags as u64, u64::MAX, 0];
            let mapped = self.step(instruction, libc::SYS_mmap, args)?;
            if mapped != at as i64 {
                let made: Vec<u64> = pages[..n].iter().map(|page| page.0).collect();
                self.unmap(instruction, &made)?;
                let error = if mapped < 0 { Errno::from_raw_os_error(-mapped as i32) } else { Errno::EXIST };
                return Err(Hindrance::Refused("map a page in it", error));
            }
        }
        if let Err(e) = self.write_text(bootstrap::code()) {
            self.unmap(instruction, &[CODE, SCRATCH])?;
            return Err(Hindrance::Refused("write instructions into it", e));
        }
        Ok(())
    }

    /// Lets the process go on as it was at the stop, nothing having been set up.
    fn go_unchanged(self, regs: &user_regs_struct, mask: u64) -> Result<(), Fault> {
        trace::set_signal_mask(self.pid, mask).map_err(|e| Fault::Kernel("set its signal mask", e))?;
        trace::set_registers(self.pid, regs).map_err(|e| Fault::Kernel("set its registers", e))?;
        trace::detach(self.pid, 0).map_err(|e| Fault::Kernel("detach", e))
    }

    /// Unmaps pages.
    pub(crate) fn unmap(&mut self, instruction: u64, pages: &[u64]) -> Result<(), Fault> {
        for page in pages {
            self.step(instruction, libc::SYS_munmap, [*page, PAGE, 0, 0, 0, 0])?;
        }
        Ok(())
    }

    /// Makes one call; its result.
    fn step(&mut self, instruction: u64, number: i64, args: [u64; 6]) -> Result<i64, Fault> {
        let [rdi, rsi, rdx, r10, r8, r9] = args;
        let rax = number as u64;
        let regs = user_regs_struct { rip: instruction, rax, rdi, rsi, rdx, r10, r8, r9, ..*self.registers() };
        self.go_to_breakpoint(regs, trace::step)?;
        let after = trace::registers(self.pid).map_err(|e| Fault::Kernel("read its registers", e))?;
        match after.rip.wrapping_sub(instruction) {
            2 => Ok(after.rax as i64),
            _ => Err(Fault::Kernel("step over a system call in it", Errno::FAULT)),
        }
    }
}

/// The address of a `syscall` instruction in the process's vDSO.
fn system_call(pid: pid_t) -> Option<u64> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
    let line = maps.lines().find(|line| line.ends_with("[vdso]"))?;
    let (start, end) = line.split_once(' ')?.0.split_once('-')?;
    let (start, end) = (u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
    let mut text = vec![0; end.checked_sub(start).filter(|len| *len <= 1 << 20)? as usize];
    read_memory(pid, start, &mut text).ok()?;
    // Bytes that are the middle of another instruction would do as well: they are executed from their beginning.
    text.windows(2).position(|bytes| bytes == SYSCALL).map(|at| start + at as u64)
}
