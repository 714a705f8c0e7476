//! Puts the engine into a process that has just become a new program and has not yet run an instruction of it.

use crate::bootstrap::{FIFTH, FIRST};
use crate::channel;
use crate::connection;
use crate::engine::Engine;
use crate::fault_list::FaultList;
use crate::foreign_filter;
use crate::options::Options;
use crate::processes::{descriptor_limit, descriptors};
use crate::remote::{Batch, Remote};
use crate::session::Session;
use crate::trace::Fault;
use crate::tree::Kindred;
use displaydoc::Display;
use libc::{pid_t, user_regs_struct};
use outlast_image::context::Registers;
use outlast_image::degradation::Degradation;
use outlast_image::inject::{mode, option, InjectArgs};
use outlast_image::layout::{
    own_fd, ENGINE_FDS, ENGINE_FD_CEILING, HIDING_FDS, SESSION_BASE, SESSION_LEN, STORE_BASE, STORE_LEN,
};
use rustix::io::Errno;
use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd};
use thiserror::Error;

/// What goes into the process.
pub struct Injection<'a> {
    pub engine: &'a Engine,
    pub session: &'a Session,
    pub store: BorrowedFd<'a>,
    pub options: &'a Options,
    pub faults: Option<&'a FaultList>,
    /// Whence it receives sessions and stores for its children, if these are to be protected.
    pub children: Option<&'a Kindred>,
    /// Where it finds itself, if its root has no /proc.
    pub own_proc: Option<BorrowedFd<'a>>,
    /// One of [`outlast_image::inject::mode`].
    pub mode: u32,
    pub generation: u32,
    /// Process id the program shall know; 0: its real one.
    pub known_pid: u32,
    /// What it is to be called; none: what the kernel calls it.
    pub comm: Option<&'a CStr>,
}

impl<'a> Injection<'a> {
    /// The descriptors that the process receives.
    pub fn descriptors(&self) -> Vec<BorrowedFd<'a>> {
        let kept = self.kept();
        [self.engine.file()].into_iter().chain(kept.into_iter().map(|(_, file)| file)).collect()
    }

    /// Those of them that it keeps, and which of its own each becomes: one of [`own_fd`].
    fn kept(&self) -> Vec<(i32, BorrowedFd<'a>)> {
        let faults = [own_fd::FAULT_LIST, own_fd::FAULT_LINKS[0], own_fd::FAULT_LINKS[1]];
        let faults = self.faults.map(|list| faults.into_iter().zip(list.descriptors()));
        let children = self
            .children
            .map(|kindred| [(own_fd::CHILDREN, kindred.births.as_fd()), (own_fd::GROUP, kindred.group.as_fd())]);
        let first = [(own_fd::SESSION, self.session.file()), (own_fd::STORE, self.store)];
        let own_proc = self.own_proc.map(|folder| (own_fd::PROC, folder));
        let rest = faults.into_iter().flatten().chain(children.into_iter().flatten()).chain(own_proc);
        first.into_iter().chain(rest).collect()
    }
}

/// Why the program is not protected.
#[derive(Clone, Copy, Debug, Display, Error)]
pub enum Failure {
    /// {0}
    Fault(Fault),
    /// {1}: {2}
    Refused(Degradation, &'static str, Errno),
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// Injects the engine into a process at its exec stop and lets it run.
///
/// `inherited` is the process's end of a channel into which the descriptors have been sent already; without one, one is
/// made. On [`Failure::Refused`] the process is as the kernel made it and runs unprotected, except one that should have
/// become another ([`mode::RESUME`]): that one stays stopped.
pub fn inject(pid: pid_t, inherited: Option<i32>, what: &Injection<'_>) -> Result<(), Failure> {
    enter_and_place(pid, inherited, what).map_err(|failure| match failure {
        Failure::Fault(fault) => Failure::Fault(fault.explained(pid)),
        refused => refused,
    })
}

fn enter_and_place(pid: pid_t, inherited: Option<i32>, what: &Injection<'_>) -> Result<(), Failure> {
    let Some(mut remote) = Remote::enter(pid)? else {
        return Err(Failure::Refused(Degradation::ForeignAbi, "run 64-bit code", Errno::NOEXEC));
    };
    let regs = *remote.registers();
    match place(&mut remote, pid, inherited, what) {
        Ok(session_fd) => {
            what.session.set_inject_args(&args(what, &regs, session_fd));
            // Signals wait until a process that becomes another has that one's handlers.
            let mask = if what.mode == mode::RESUME { u64::MAX } else { remote.signal_mask() };
            Ok(remote.leave(what.engine.entry(), mask)?)
        }
        Err(failure) => {
            if matches!(failure, Failure::Refused(..)) && what.mode != mode::RESUME {
                let mask = remote.signal_mask();
                remote.leave(regs.rip, mask)?;
            }
            Err(failure)
        }
    }
}

/// Maps engine, session and store; returns the number of the session's descriptor.
///
/// Whatever is refused, the process is left as it was.
pub(crate) fn place(
    remote: &mut Remote,
    pid: pid_t,
    inherited: Option<i32>,
    what: &Injection<'_>,
) -> Result<i32, Failure> {
    tell_of_filters(what).map_err(|e| Failure::Refused(Degradation::CallFilter, "write to its session", e))?;
    let (ours, sockets) = match inherited {
        Some(fd) => (None, vec![fd]),
        None => {
            connection::make(remote, pid, what.session.may_connect()).map(|(ours, sockets)| (Some(ours), sockets))?
        }
    };
    let sent =
        ours.map_or(Ok(()), |ours| channel::send(ours.as_fd(), &what.descriptors()).map_err(connection::refused));
    let placed = sent.and_then(|()| receive_and_map(remote, sockets[0], free_numbers(pid)?, what));
    if !matches!(placed, Err(Failure::Fault(_))) {
        remote.run_each(sockets.iter().map(|fd| (libc::SYS_close, vec![*fd as u64])).collect())?;
    }
    placed
}

/// Tells the engine of filters that are older than outlast. What an image of the program before has left for it includes these.
fn tell_of_filters(what: &Injection<'_>) -> Result<(), Errno> {
    const NONE: [u64; 1] = [0];
    let is_told = what.session.tells_of_filters();
    match foreign_filter::handed_over() {
        Some(told) if !is_told || what.mode == mode::RESUME => what.session.set_filters(&told),
        None if is_told && what.mode == mode::RESUME => what.session.set_filters(&NONE),
        _ => Ok(()),
    }
}

/// Receives the descriptors and maps what they are of.
fn receive_and_map(remote: &mut Remote, socket: i32, session_fd: i32, what: &Injection<'_>) -> Result<i32, Failure> {
    if let Some(comm) = what.comm {
        let mut batch = remote.batch();
        // The kernel takes as much as there is room for.
        let name = batch.data(&comm.to_bytes_with_nul()[..=comm.count_bytes().min(15)]);

        batch.call(libc::SYS_prctl, &[libc::PR_SET_NAME as u64, name]);
        remote.run(&mut batch)?;
    }
    let mut batch = remote.batch();
    let received = channel::receive(&mut batch, socket, what.descriptors().len());
    let placed: Vec<i32> = what.kept().iter().map(|(offset, _)| session_fd - own_fd::SESSION + offset).collect();
    let store_fd = placed[own_fd::STORE as usize];
    let mut undo = Undo { mapped: Vec::new() };
    for (word, number) in received[1..].iter().zip(&placed) {
        batch.call(libc::SYS_dup3, &[*word, *number as u64, libc::O_CLOEXEC as u64]).indirect = FIRST;
    }
    map_engine(&mut batch, received[0], what.engine, &mut undo);
    let read_write = (libc::PROT_READ | libc::PROT_WRITE) as u64;
    let shared = (libc::MAP_SHARED | libc::MAP_FIXED_NOREPLACE) as u64;
    let lazily = shared | libc::MAP_NORESERVE as u64;
    batch.call(libc::SYS_mmap, &[SESSION_BASE, SESSION_LEN, read_write, shared, session_fd as u64, 0]);
    undo.mapped.push((SESSION_BASE, SESSION_LEN, batch.calls().len()));
    batch.call(libc::SYS_mmap, &[STORE_BASE, STORE_LEN, read_write, lazily, store_fd as u64, 0]);
    undo.mapped.push((STORE_BASE, STORE_LEN, batch.calls().len()));
    for word in &received {
        batch.call(libc::SYS_close, &[*word]).indirect = FIRST;
    }
    match remote.run(&mut batch)? {
        None => Ok(session_fd),
        Some(failed) => {
            let error = Errno::from_raw_os_error(-batch.calls()[failed].result as i32);
            let received = received.into_iter().map(|word| batch.word(word));
            undo.run(remote, failed, received.chain(placed.iter().copied()))?;
            Err(Failure::Refused(Degradation::AddressTaken, "map the engine", error))
        }
    }
}

/// Adds the calls that map every segment with its final protection: text is never writable.
fn map_engine(batch: &mut Batch, file: u64, engine: &Engine, undo: &mut Undo) {
    let fixed = (libc::MAP_PRIVATE | libc::MAP_FIXED_NOREPLACE) as u64;
    for (segment, offset) in engine.segments() {
        let prot = segment.prot as u64;
        if segment.file_end > segment.start {
            let length = segment.file_end - segment.start;
            batch.call(libc::SYS_mmap, &[segment.start, length, prot, fixed, file, offset]).indirect = FIFTH;
            undo.mapped.push((segment.start, length, batch.calls().len()));
        }
        if segment.end > segment.file_end {
            let length = segment.end - segment.file_end;
            let anonymous = fixed | libc::MAP_ANONYMOUS as u64;
            batch.call(libc::SYS_mmap, &[segment.file_end, length, prot, anonymous, u64::MAX, 0]);
            undo.mapped.push((segment.file_end, length, batch.calls().len()));
        }
    }
}

/// What has to be unmapped if a later call fails: address, length, number of calls made up to and with the mapping.
struct Undo {
    mapped: Vec<(u64, u64, usize)>,
}

impl Undo {
    fn run(self, remote: &mut Remote, failed: usize, open: impl Iterator<Item = i32>) -> Result<(), Fault> {
        let made = self.mapped.into_iter().filter(|(.., calls)| *calls <= failed);
        let unmap = made.map(|(at, length, _)| (libc::SYS_munmap, vec![at, length]));
        remote.run_each(unmap.chain(open.map(|fd| (libc::SYS_close, vec![fd as u64]))).collect())
    }
}

/// The first of the engine's descriptor numbers: of a range that the process does not use, as high as it may be.
fn free_numbers(pid: pid_t) -> Result<i32, Failure> {
    let ceiling = descriptor_limit(pid).min(ENGINE_FD_CEILING as u64) as i32;
    let used = descriptors(pid);
    let free = |low: i32, count| used.iter().all(|fd| !(low..low + count).contains(fd));
    let highest = |count| (0..=ceiling - count).rev().find(|low| free(*low, count));
    let none = Failure::Refused(Degradation::DescriptorLimit, "find descriptor numbers for the engine", Errno::MFILE);
    highest(ENGINE_FDS + HIDING_FDS).or_else(|| highest(ENGINE_FDS)).ok_or(none)
}

pub(crate) fn args(what: &Injection<'_>, regs: &user_regs_struct, session_fd: i32) -> InjectArgs {
    InjectArgs {
        mode: what.mode,
        session_fd,
        options: what.options.bits & !(option::FAULT_LIST | option::TREE)
            | what.faults.map_or(0, |_| option::FAULT_LIST)
            | what.children.map_or(0, |_| option::TREE)
            // What a tree has sent, no process of it knows alone.
            | match (what.options.generations, what.children) {
                (Some(_), None) if what.session.has_room_for_history() => option::HISTORY,
                _ => 0,
            },
        mutants: [what.options.mutants as u64, (what.options.mutants >> 64) as u64],
        regs: registers(regs),
        fs_base: regs.fs_base,
        gs_base: regs.gs_base,
        interval_ns: what.options.interval_ns,
        retries: what.options.retries.unwrap_or(0),
        generation: what.generation,
        pid: what.known_pid,
        pgid: 0,
        ring_len: what.options.ring_len,
        lag_ns: what.options.lag_ns,
        boot: outlast_store::boot(),
        mask: 0,
        rseq: [0; 3],
        waits_in: 0,
        threads: 0,
    }
}

pub(crate) fn registers(r: &user_regs_struct) -> Registers {
    Registers {
        r8: r.r8,
        r9: r.r9,
        r10: r.r10,
        r11: r.r11,
        r12: r.r12,
        r13: r.r13,
        r14: r.r14,
        r15: r.r15,
        rdi: r.rdi,
        rsi: r.rsi,
        rbp: r.rbp,
        rbx: r.rbx,
        rdx: r.rdx,
        rax: r.rax,
        rcx: r.rcx,
        rsp: r.rsp,
        rip: r.rip,
        eflags: r.eflags,
    }
}
