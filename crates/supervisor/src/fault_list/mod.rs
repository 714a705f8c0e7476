//! A list of the program's page faults, so that the engine need not search for written pages.
//!
//! Where BPF is allowed (CAP_BPF and CAP_PERFMON), a program of 28 instructions on the kernel's two tracepoints
//! for page faults appends the address of every write of ours that met one to an array in memory, which the engine maps.
//! It is attached as long as a descriptor of its links is open: the program has them too, so that it outlives us.
//!
//! One BPF program for each protected program. It runs at every page fault of the machine and costs others some 20 ns, so
//! that one for all, with a table of processes, would be cheaper from a handful of protected programs on; but that one would
//! need an owner of its own, which outlives them all and may write to the table at every respawn.

mod program;

pub use program::{program, Maps, Namespace};

use crate::bpf::{self, Instruction};
use crate::supervisor::Supervisor;
use libc::pid_t;
use outlast_image::inject::option;
use outlast_image::layout;
use rustix::fs::stat;
use rustix::io::Errno;
use rustix::mm::{mmap, munmap, MapFlags, ProtFlags};
use std::ffi::CStr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering::Release};

const PAGE: usize = layout::PAGE as usize;
const NAME: &[u8] = b"outlast_faults";
/// The kernel asks; no helper that is used insists on the GPL.
const LICENSE: &CStr = c"Apache-2.0 OR MIT";
/// For faults in user mode, and for those met by the kernel on behalf of the program.
const TRACEPOINTS: [&CStr; 2] = [c"page_fault_user", c"page_fault_kernel"];

/// A list that the kernel keeps.
pub struct FaultList {
    list: OwnedFd,
    links: [OwnedFd; 2],
    /// A page with the process that is followed. Programs do not get it: they could have anybody's faults listed.
    followed: NonNull<AtomicU32>,
}

// SAFETY: the mapping is shared memory of an atomic.
unsafe impl Send for FaultList {}

impl FaultList {
    /// Makes an empty list and has the kernel fill it; of nobody's faults, until [`Self::follow`].
    ///
    /// # Errors
    /// Mostly EPERM: not for this user, or not on this machine.
    pub fn load() -> Result<Self, Errno> {
        let namespace = stat("/proc/self/ns/pid")?;
        Self::with(|maps| program(maps, Namespace { device: namespace.st_dev, inode: namespace.st_ino }))
    }

    /// As [`Self::load`], with another program for the same two maps.
    pub fn with(program: impl FnOnce(Maps) -> Vec<Instruction>) -> Result<Self, Errno> {
        let list = bpf::create_mappable(NAME, std::mem::size_of::<outlast_image::fault_list::FaultList>())?;
        bpf::freeze(list.as_fd())?;
        let followed = bpf::create_mappable(NAME, std::mem::size_of::<AtomicU32>())?;
        let program = program(Maps { list: list.as_raw_fd(), followed: followed.as_raw_fd() });
        let program = bpf::load(NAME, &program, LICENSE)?;
        let [user, kernel] = TRACEPOINTS.map(|tracepoint| bpf::attach(program.as_fd(), tracepoint));
        let links = [user?, kernel?];
        let prot = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
        let followed = unsafe { mmap(std::ptr::null_mut(), PAGE, prot, MapFlags::SHARED, &followed, 0) }?;
        Ok(Self { list, links, followed: NonNull::new(followed.cast()).ok_or(Errno::FAULT)? })
    }

    /// From now on the faults of this process are listed; 0: of none.
    pub fn follow(&self, pid: pid_t) {
        // SAFETY: the mapping lives as long as `self`, and holds an atomic.
        unsafe { self.followed.as_ref() }.store(pid as u32, Release);
    }

    /// What the program gets: the list, which it can only read, and what keeps it going.
    pub fn descriptors(&self) -> [BorrowedFd<'_>; 3] {
        [self.list.as_fd(), self.links[0].as_fd(), self.links[1].as_fd()]
    }
}

impl Drop for FaultList {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `with` with this length, and borrows of it end with `self`.
        let unmapped = unsafe { munmap(self.followed.as_ptr().cast(), PAGE) };
        debug_assert!(unmapped.is_ok());
    }
}

impl Supervisor {
    /// Makes a list if there is none, there is a use for it, and neither the person nor the kernel is against it.
    pub(crate) fn provide_fault_list(&mut self) {
        let useless = option::NO_FAULT_LIST | option::TRACKER_MPROTECT;
        if self.faults.is_none() && self.meta.options.bits & useless == 0 {
            self.faults = FaultList::load().ok();
        }
        self.follow();
    }
}
