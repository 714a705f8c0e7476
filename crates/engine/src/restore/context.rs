//! The running thread's context: read from the store, and given to the thread and to the kernel.

use crate::calls::gs;
use crate::control;
use crate::mutant::without;
use crate::scheduling::Scheduling;
use crate::state::Engine;
use crate::sys::{nr, syscall};
use crate::thread::{self, Thread, SCHEDULING_OFFSET};
use outlast_image::context::{ThreadContext, XSAVE_LEN, XSAVE_OFFSET};
use outlast_image::control::unreadable;
use outlast_image::layout::{CONTEXT_PAGE, PAGE};
use outlast_image::mutant::Mutant;

const PR_SET_NAME: u64 = 15;

/// The context of a thread as committed; its vector state goes into the control block.
pub unsafe fn read_context(e: &mut Engine, t: &mut Thread) -> ThreadContext {
    // The next commit saves what differs from this.
    let page = &mut *thread::context_shadow(t);
    if !e.store().read_page(CONTEXT_PAGE + t.place as u64 * PAGE, page).unwrap_or(false) {
        control::unreadable(unreadable::DAMAGED);
    }
    let context: ThreadContext = bytemuck::pod_read_unaligned(&page[..core::mem::size_of::<ThreadContext>()]);
    t.page.scheduling = bytemuck::pod_read_unaligned(&page[SCHEDULING_OFFSET..][..core::mem::size_of::<Scheduling>()]);
    let vector = (context.xsave_len as usize).min(XSAVE_LEN);
    crate::frame::reset_vector(&mut t.page.xsave.0);
    if !without(Mutant::VectorState) {
        t.page.xsave.0[..vector].copy_from_slice(&page[XSAVE_OFFSET..XSAVE_OFFSET + vector]);
        sanitize(t);
    }
    context
}

/// What XRSTOR would refuse: the store is untrusted.
fn sanitize(t: &mut Thread) {
    let x = &mut t.page.xsave.0;
    let bv = u64::from_le_bytes(x[512..520].try_into().unwrap_or([0; 8])) & t.xsave_mask;
    x[512..520].copy_from_slice(&bv.to_le_bytes());
    x[520..576].fill(0);
    let mxcsr = u32::from_le_bytes(x[24..28].try_into().unwrap_or([0; 4])) & 0xffff;
    x[24..28].copy_from_slice(&mxcsr.to_le_bytes());
}

/// Fills the control block of a thread with what the commit says of it.
pub unsafe fn fill_thread(t: &mut Thread, c: &ThreadContext) {
    t.regs = c.regs;
    t.regs.eflags = c.regs.eflags & 0x24_0dd5 | 0x202;
    (t.fs_base, t.gs_base) = (c.fs_base, c.gs_base);
    if c.gs_base != 0 {
        gs::begin();
    }
    t.mask = c.sigmask;
    t.altstack = c.altstack;
    t.tid = c.tid;
    t.tid_address = c.tid_address;
    t.robust_list = c.robust_list;
    t.rseq = c.rseq;
    t.comm = c.comm;
    t.call = c.pending.nr as u64;
    t.pending_call = c.pending;
    (t.interrupted, t.by_trap, t.is_unseen) = (0, 0, false);
}

/// Gives the kernel what it has to know of the running thread.
pub unsafe fn give_thread(t: &Thread) {
    thread::set_fs_base(t.fs_base);
    // An anchor's clone has the anchor's name.
    syscall!(nr::PRCTL, PR_SET_NAME, t.comm.as_ptr());
    if t.tid_address != 0 {
        syscall!(nr::SET_TID_ADDRESS, t.tid_address);
    }
    if t.robust_list[0] != 0 {
        syscall!(nr::SET_ROBUST_LIST, t.robust_list[0], t.robust_list[1]);
    }
    if t.rseq[0] != 0 {
        syscall!(nr::RSEQ, t.rseq[0], t.rseq[1], 0, t.rseq[2]);
    }
}
