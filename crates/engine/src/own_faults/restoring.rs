//! A userfaultfd belongs to an address space: a recovered process makes its own anew, gives them the old numbers, and registers
//! what the commit says. Messages are not kept: whoever waits for a page faults again.

use super::keeping::{each_protected_run, each_zero_run, is_ready};
use super::ranges::COMPARED;
use super::{any, compared, context_state, identity, protection_changed, ranges, set, table, Context};
use super::{CHANGED, REGISTER_WP, TRACKING, ZEROES_CHANGED};
use crate::calls::watched_pidfds;
use crate::control::fail;
use crate::mutant::without;
use crate::own_descriptors::Passing;
use crate::scratch;
use crate::state::{object, Engine};
use crate::sys::{err, nr, syscall};
use crate::tracker::Tracker;
use core::mem::size_of;
use core::sync::atomic::Ordering::*;
use outlast_image::descriptor::Descriptor;
use outlast_image::mutant::Mutant;

const API: u64 = 0xaa;
const UFFDIO_API: u64 = 0xc018_aa3f;
const UFFDIO_REGISTER: u64 = 0xc020_aa00;
const UFFDIO_UNREGISTER: u64 = 0x8010_aa01;
const UFFDIO_WRITEPROTECT: u64 = 0xc018_aa06;
const UFFDIO_ZEROPAGE: u64 = 0xc020_aa04;
const USER_MODE_ONLY: u64 = 1;
const O_CLOEXEC: u64 = 0o2000000;
const O_NONBLOCK: u64 = 0o4000;
const F_SETFD: u64 = 2;
const F_GETFL: u64 = 3;

/// Makes those of the commit. `cold`: nothing is left of the dead's. No page of the program's that may be missing was touched before.
pub fn restore(e: &mut Engine, cold: bool) {
    if !any() || without(Mutant::OwnFaults) {
        return;
    }
    watched_pidfds::put_back(e);
    let mut last = -1;
    // SAFETY: in a restore.
    for old in unsafe { *table() }.into_iter().filter(|context| context.inode != 0) {
        let tells = old.state & context_state::TELLS != 0;
        let new = replace(e, &old, if tells { 0 } else { TRACKING }, Some(cold), true);
        if last >= 0 {
            // SAFETY: made by `replace`.
            unsafe { syscall!(nr::CLOSE, last) };
        }
        last = new;
    }
    each_zero_run(e, |tracker, start, end| put_zeroes(tracker, last, start, end));
    each_protected_run(e, |_, start, end| {
        let mut arg = [start, end - start, 1];
        // SAFETY: write protection changes no content.
        unsafe { syscall!(nr::IOCTL, last, UFFDIO_WRITEPROTECT, arg.as_mut_ptr()) };
    });
    // SAFETY: as above.
    unsafe { syscall!(nr::CLOSE, last) };
    compared::forget();
    protection_changed();
    CHANGED.store(true, Relaxed);
    ZEROES_CHANGED.store(true, Relaxed);
}

/// Protection ends: the program gets what it has asked for, and nothing besides.
pub fn give_back(e: &mut Engine) {
    // SAFETY: under the lock.
    for old in unsafe { *table() }.into_iter().filter(|context| context.inode != 0) {
        if old.state & context_state::TELLS != 0 {
            continue;
        }
        let new = replace(e, &old, 0, None, false);
        // SAFETY: made by `replace`.
        unsafe { syscall!(nr::CLOSE, new) };
    }
}

/// From now on a context tells the program of writes, and the engine compares. None: it has ranges, and could not be replaced.
pub fn tell_of_writes(e: &mut Engine, old: Context) -> Option<Context> {
    ranges::each(|range| {
        if range.owner == old.inode {
            e.cool(range.start, range.end);
        }
    });
    let new = replace(e, &old, 0, None, true);
    let (device, inode) = identity(new)?;
    // SAFETY: made by `replace`.
    unsafe { syscall!(nr::CLOSE, new) };
    let context = Context { device, inode, state: old.state | context_state::TELLS, ..old };
    set(context);
    compared::forget();
    Some(context)
}

/// Puts a new userfaultfd in the place of an old one, under all of its numbers, and has it serve the same ranges. `restored`: the numbers are
/// as the commit says; whether nothing is left of the old one. `stays`:
/// protection goes on.
fn replace(e: &mut Engine, old: &Context, tracking: u64, restored: Option<bool>, stays: bool) -> i32 {
    let is_old = |e: &mut Engine, fd: i32| {
        if !e.fds.is_open(fd) {
            return None;
        }
        let is_same = |device, inode| (device, inode) == (old.device, old.inode);
        match restored {
            None => identity(fd).filter(|&(device, inode)| is_same(device, inode)).map(|_| Descriptor::default()),
            Some(_) => described(e, fd).filter(|d| is_same(d.dev, d.inode)),
        }
    };
    let mut new = -1;
    for fd in 0..e.fds.end() {
        let Some(d) = is_old(e, fd) else { continue };
        let cold = restored == Some(true);
        // SAFETY: asks for flags, and sets those of a number that stands for what is replaced.
        unsafe {
            if new < 0 {
                if restored.is_none() {
                    unregister(old, fd);
                }
                let flags = if cold { d.flags as u64 } else { syscall!(nr::FCNTL, fd, F_GETFL) as u64 };
                new = make(old, flags & O_NONBLOCK, tracking, stays);
            }
            if cold {
                syscall!(nr::FCNTL, fd, F_SETFD, d.fd_flags);
            }
        }
        watched_pidfds::replace(e, fd, new);
        e.fds.changed(fd);
    }
    let Some((device, inode)) = identity(new) else { fail!(new as i64) };
    // SAFETY: under the lock.
    unsafe { table() }
        .iter_mut()
        .filter(|context| context.inode == old.inode)
        .for_each(|context| (context.device, context.inode) = (device, inode));
    ranges::give(old.inode, inode, tracking == 0);
    ranges::each(|range| {
        if range.owner != inode {
            return;
        }
        let mode = range.modes & !COMPARED | if tracking != 0 { REGISTER_WP } else { 0 };
        let mut arg = [range.start, range.end - range.start, mode, 0];
        // SAFETY: registering changes no content.
        let r = unsafe { syscall!(nr::IOCTL, new, UFFDIO_REGISTER, arg.as_mut_ptr()) };
        if err::is(r) && restored.is_some() {
            fail!(r);
        }
        if tracking != 0 {
            e.tracker.arm_present(range.start, range.end);
        }
    });
    new
}

/// One that serves the kernel as well, where that is allowed.
fn make_for_all(flags: u64) -> i64 {
    const USERFAULTFD_IOC_NEW: u64 = 0xaa00;
    // SAFETY: makes a descriptor.
    unsafe {
        let fd = syscall!(nr::USERFAULTFD, flags);
        match Passing::open(c"/dev/userfaultfd".as_ptr().cast(), 0) {
            Ok(device) if err::is(fd) => syscall!(nr::IOCTL, device.fd, USERFAULTFD_IOC_NEW, flags),
            _ => fd,
        }
    }
}

/// Somebody who waits for a message may keep the old file for as long.
fn unregister(old: &Context, fd: i32) {
    ranges::each(|range| {
        if range.owner == old.inode {
            let arg = [range.start, range.end - range.start];
            // SAFETY: changes no content.
            unsafe { syscall!(nr::IOCTL, fd, UFFDIO_UNREGISTER, arg.as_ptr()) };
        }
    });
}

/// As long as the engine is there, user mode is all that there is to be served: see [`super::kernel`].
fn make(context: &Context, nonblocking: u64, tracking: u64, stays: bool) -> i32 {
    // SAFETY: makes a descriptor, and tells it which interface it is to have.
    unsafe {
        let mut fd = err::EPERM;
        if !stays && context.state & context_state::USER_MODE_ONLY == 0 {
            fd = make_for_all(O_CLOEXEC | nonblocking);
        }
        if err::is(fd) {
            fd = syscall!(nr::USERFAULTFD, O_CLOEXEC | nonblocking | USER_MODE_ONLY);
        }
        if err::is(fd) {
            fail!(fd);
        }
        if is_ready(context) {
            let mut api = [API, context.features | tracking, 0];
            let r = syscall!(nr::IOCTL, fd, UFFDIO_API, api.as_mut_ptr());
            if err::is(r) {
                fail!(r);
            }
        }
        fd as i32
    }
}

fn described(e: &mut Engine, fd: i32) -> Option<Descriptor> {
    let buf = scratch::object_buffer();
    let n = e.store().object(object::DESCRIPTOR, fd as u64, buf)?;
    (n >= size_of::<Descriptor>()).then(|| bytemuck::pod_read_unaligned(&buf[..size_of::<Descriptor>()]))
}

/// Does the commit know the descriptor as a userfaultfd of the program's?
pub fn is_one(d: &Descriptor) -> bool {
    // SAFETY: in a restore.
    unsafe { table() }.iter().any(|context| context.inode != 0 && (context.device, context.inode) == (d.dev, d.inode))
}

/// Has pages be present that are missing: the store has nothing of them.
fn put_zeroes(tracker: &Tracker, fd: i32, start: u64, end: u64) {
    for page in (start..end).step_by(4096) {
        if !tracker.are_present(page, page + 4096) && ranges::serves(page) {
            let mut arg = [page, 4096, 0, 0];
            // SAFETY: puts zeroes where nothing is.
            unsafe { syscall!(nr::IOCTL, fd, UFFDIO_ZEROPAGE, arg.as_mut_ptr()) };
        }
    }
}
