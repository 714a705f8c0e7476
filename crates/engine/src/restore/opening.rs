//! The store is mapped and opened, and what it has of the process goes into the engine.

use super::context::read_context;
use super::threads;
use crate::children;
use crate::control::{self, fail};
use crate::entry;
use crate::gathered;
use crate::lag;
use crate::scratch;
use crate::state::{object, Engine, OwnFd};
use crate::store_room;
use crate::sys::{err, nr, syscall};
use crate::taking_part;
use crate::thread::Thread;
use crate::ways;
use outlast_image::context::ThreadContext;
use outlast_image::control::unreadable;
use outlast_image::degradation::Degradation;
use outlast_image::kernel::KernelState;
use outlast_image::layout::{STORE_BASE, STORE_LEN};
use outlast_store::{OpenError, Store};

/// Maps the store, and working memory that is all zero.
pub unsafe fn map_store(e: &mut Engine) {
    let r = syscall!(nr::MMAP, STORE_BASE, STORE_LEN, 3, 0x01 | 0x10 | 0x4000, e.own_fd(OwnFd::Store), 0);
    if err::is(r) {
        fail!(r);
    }
    scratch::map();
}

/// `is_copy`: without the pages of most memory.
pub unsafe fn open_store(e: &mut Engine, is_copy: bool) {
    store_room::reset();
    lag::before_opening(e);
    let pages = if is_copy { children::KEPT } else { (0, u64::MAX) };
    match Store::open_with(entry::store_region(), pages, scratch::index()) {
        Ok((store, recovered)) => {
            e.store = Some(store);
            e.lag.power_lost |= recovered.power_lost;
            if recovered.lost > 0 {
                crate::control::degrade(Degradation::OlderState);
            }
        }
        Err(why) => control::unreadable(reason(why)),
    }
    if store_room::is_used_up() {
        fail!(err::ENOMEM);
    }
}

fn reason(why: OpenError) -> u32 {
    match why {
        OpenError::Foreign => unreadable::FOREIGN,
        OpenError::Newer { .. } => unreadable::NEWER,
        OpenError::PageSize { .. } => unreadable::PAGE_SIZE,
        OpenError::TooShort { .. } => unreadable::TOO_SHORT,
        OpenError::Scratch { .. } => unreadable::INDEX,
        OpenError::Sync(_) => unreadable::SYNC,
        _ => unreadable::DAMAGED,
    }
}

/// Reads process and thread from the store into the engine; the thread's context as committed.
pub unsafe fn load(e: &mut Engine, t: &mut Thread) -> ThreadContext {
    let buf = scratch::object_buffer();
    let store = e.store();
    let n = store.object(object::KERNEL, 0, buf).unwrap_or(0);
    if n != core::mem::size_of::<KernelState>() {
        control::unreadable(unreadable::DAMAGED);
    }
    let kernel: KernelState = bytemuck::pod_read_unaligned(&buf[..n]);
    e.kernel = kernel;
    ways::begin(e);
    taking_part::load(e);
    gathered::load(e);
    let n = e.store().object(object::QUEUE, 0, scratch::object_buffer()).unwrap_or(0);
    e.queue.load(&scratch::object_buffer()[..n.min(1 << 16)]);
    if threads::is_first_there(e) {
        read_context(e, t)
    } else {
        ThreadContext::default()
    }
}
