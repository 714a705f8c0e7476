//! The engine's first instruction in a fresh process image, or in a program that runs already, and commit 0 before the program's next.

use crate::attach;
use crate::call_filters;
use crate::calls::{gs, timers};
use crate::control::control;
use crate::dispatch;
use crate::frame;
use crate::in_hand;
use crate::native;
use crate::own_descriptors;
use crate::regions;
use crate::ring::{self, Ring};
use crate::scheduling;
use crate::scratch;
use crate::shared_files;
use crate::shared_memory;
use crate::shown;
use crate::signals;
use crate::state::{engine, object, Engine, OwnFd, ONE_THREAD};
use crate::sys::{err, futex_wake, nr, syscall};
use crate::thread::{self, Thread};
use crate::tracker::areas::{area_flag, Area};
use crate::tracker::{Allowed, Content, Track};
use crate::undo;
use core::arch::global_asm;
use core::mem::offset_of;
use core::sync::atomic::{AtomicU64, Ordering::*};
use outlast_filter::needs::wish;
use outlast_image::control::state;
use outlast_image::degradation::Degradation;
use outlast_image::inject::{mode, option};
use outlast_image::kernel::SignalAction;
use outlast_image::layout::{STORE_BASE, STORE_LEN};
use outlast_store::{File, MappedRegion, Params, Store};

global_asm!(
    ".section .head,\"ax\"",
    ".globl engine_entry",
    "engine_entry:",
    // What a program in the middle of its life has there is nowhere else.
    "xor %ecx, %ecx",
    "xgetbv",
    "and ${components}, %eax",
    "xor %edx, %edx",
    "xsave64 {main}+{xsave}(%rip)",
    "lea {stack}+{stack_len}(%rip), %rsp",
    "xor %ebp, %ebp",
    "call {start}",
    "hlt",
    // Another thread of a program in the middle of its life.
    ".balign 128",
    "thread_entry:",
    "xor %ecx, %ecx",
    "xgetbv",
    "and ${components}, %eax",
    "xor %edx, %edx",
    "xsave64 {xsave}(%rdi)",
    "rdgsbase %rax",
    "wrgsbase %rdi",
    "mov %rax, %gs:{gs_base}",
    "mov {stack_top}(%rdi), %rsp",
    "xor %ebp, %ebp",
    "call {come_in}",
    "hlt",
    come_in = sym attach::threads::come_in,
    stack_top = const offset_of!(Thread, stack_top),
    gs_base = const offset_of!(Thread, gs_base),
    components = const thread::COMPONENTS,
    main = sym thread::MAIN,
    xsave = const offset_of!(Thread, page.xsave),
    stack = sym thread::INNER_STACK,
    stack_len = const thread::STACK_LEN,
    start = sym start,
    options(att_syntax),
);

const RLIMIT_FSIZE: u64 = 1;

/// The store over the mapping at `STORE_BASE`.
pub fn store_region() -> MappedRegion {
    // SAFETY: the supervisor mapped the store there; it is the engine's alone.
    unsafe {
        MappedRegion::new(STORE_BASE as *mut u8, STORE_LEN, File { discard, reserve, sync, expect, write })
            .with_cache(engine().args.boot)
    }
}

/// Gives back the room of `offset..offset+len` of the store's file.
fn discard(offset: u64, len: u64) {
    // SAFETY: FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE on the store's own file.
    unsafe {
        let fd = engine().own_fd(OwnFd::Store);
        syscall!(nr::FALLOCATE, fd, 3, offset, len);
    }
}

/// Gives `offset..offset+len` of the store's file room.
fn reserve(offset: u64, len: u64) -> bool {
    loop {
        // SAFETY: FALLOC_FL_KEEP_SIZE on the store's own file, whose content stays as it is.
        let r = unsafe { syscall!(nr::FALLOCATE, engine().own_fd(OwnFd::Store), 1, offset, len) };
        // A signal may come at any time, and has been taken note of.
        if r != err::EINTR {
            return r == 0;
        }
    }
}

/// Has pages of the store's mapping in memory and writable. An older kernel leaves that to page faults.
fn expect(offset: u64, len: u64) {
    const MADV_POPULATE_WRITE: u64 = 23;
    // SAFETY: changes no content of the store's own mapping.
    unsafe { syscall!(nr::MADVISE, STORE_BASE + offset, len, MADV_POPULATE_WRITE) };
}

/// As large may files become, as far as this commit knows; 0: nobody has asked.
static FILE_LIMIT: AtomicU64 = AtomicU64::new(0);

/// A commit begins: the program, or others, may have changed its limit.
pub fn forget_file_limit() {
    FILE_LIMIT.store(0, Relaxed);
}

fn file_limit() -> u64 {
    let mut limit = [FILE_LIMIT.load(Relaxed), 0];
    // SAFETY: asks for a limit.
    if limit[0] == 0 && unsafe { syscall!(nr::PRLIMIT64, 0, RLIMIT_FSIZE, 0, limit.as_mut_ptr()) } == 0 {
        FILE_LIMIT.store(limit[0], Relaxed);
    }
    limit[0]
}

/// Writes to the store's file, unless that could meet the program's own limit to the size of files, which sends a signal.
fn write(offset: u64, bytes: &[u8]) -> usize {
    if file_limit() < offset + bytes.len() as u64 {
        return 0;
    }
    // SAFETY: writes to the store's own file.
    unsafe {
        syscall!(nr::PWRITE64, engine().own_fd(OwnFd::Store), bytes.as_ptr(), bytes.len(), offset).max(0) as usize
    }
}

fn sync(offset: u64, len: u64) -> i64 {
    let start = (STORE_BASE + offset) & !4095;
    let end = STORE_BASE + offset + len;
    // SAFETY: MS_SYNC on the store's own mapping.
    unsafe { syscall!(nr::MSYNC, start, end - start, 4) }
}

unsafe extern "C" fn start() -> ! {
    let e = engine();
    e.load_args();
    if e.args.mode == mode::RESUME {
        crate::restore::cold();
    }
    let runs_already = e.args.mode == mode::ATTACH;
    let t = thread::install();
    shown::show();
    t.regs = e.args.regs;
    t.regs.eflags |= 0x202;
    t.gs_base = e.args.gs_base;
    if t.gs_base != 0 {
        gs::begin();
    }
    if runs_already {
        attach::fill_first(e, t);
        attach::read_thread(t);
    } else {
        t.tid = syscall!(nr::GETTID) as u32;
        t.read_comm();
        frame::reset_vector(&mut t.page.xsave.0);
        t.altstack = [0, frame::SS_DISABLE, 0];
        syscall!(nr::RT_SIGPROCMASK, 0, 0, &raw mut t.mask, 8);
        gs::hide_instructions(t.regs.rsp);
        // It may have been set before an execve.
        scheduling::note_if_not_inherited(t);
    }
    signals::block_all();
    in_hand::let_go(t);
    read_kernel_state(e);
    if runs_already {
        attach::read_process(e);
    }
    let mut protected = if call_filters::take_over() {
        timers::find(e);
        protect(e)
    } else {
        Err(Degradation::CallFilter)
    };
    // Whoever attaches does not wait for ever, and then nobody watches the program.
    let is_awaited = |now| (now != state::SUSPENDED).then_some(state::PROTECTED);
    if protected.is_ok() && control().state.fetch_update(AcqRel, Acquire, is_awaited).is_err() {
        protected = Err(Degradation::EngineError);
    }
    if let Err(why) = protected {
        native::suspend(why);
    }
    // Who watches it need not wait any longer for what it was before.
    control().served.fetch_add(1, AcqRel);
    futex_wake(&control().served);
    if runs_already {
        attach::go_on(t, protected.is_ok());
    }
    crate::gate::leave();
}

unsafe fn read_kernel_state(e: &mut Engine) {
    for sig in 1..=64usize {
        let mut a = SignalAction::default();
        syscall!(nr::RT_SIGACTION, sig, 0, &raw mut a, 8);
        e.kernel.actions[sig] = a;
    }
    e.kernel.brk = syscall!(nr::BRK, 0) as u64;
    e.kernel.start_brk = e.kernel.brk;
    e.kernel.pid = if e.args.pid != 0 { e.args.pid } else { syscall!(nr::GETPID) as u32 };
    e.kernel.pgid = syscall!(nr::GETPGID, 0) as u32;
    e.kernel.sid = match control().own_session.load(Acquire) {
        0 => syscall!(nr::GETSID, 0) as u32,
        known => known,
    };
    e.kernel.own_session = u32::from(control().own_session.load(Acquire) != 0);
    crate::calls::groups::show_session(e);
    crate::calls::directory::read_mask(e);
    crate::calls::threads::read_process_state(e);
    crate::ways::begin(e);
    e.kernel_dirty = true;
}

/// Bounds and auxiliary vector of the image, for a cold resume. Goes into the record of commit 0.
fn describe_image(e: &mut Engine) {
    let n = crate::restore::image::read_bounds(e);
    let auxv = &scratch::object_buffer()[..n];
    let store = e.store();
    store.begin();
    store.put(object::IMAGE, 0, auxv);
    crate::restore::vdso::describe(e);
}

unsafe fn protect(e: &mut Engine) -> Result<(), Degradation> {
    let mut id = [0u8; 16];
    syscall!(318, id.as_mut_ptr(), id.len(), 0);
    if err::is(crate::anchor::make()) {
        return Err(Degradation::EngineError);
    }
    scratch::map();
    let params = Params {
        ring_len: e.args.ring_len,
        durable: e.args.options & option::DURABLE != 0,
        lags: crate::lag::is_on(e),
        id,
        generation: e.args.generation,
        ..Default::default()
    };
    let store = Store::format(store_region(), &params, scratch::index()).map_err(|_| Degradation::StoreFull)?;
    e.store = Some(store);
    begin(e, Content::Unsaved)?;
    if e.args.mode == mode::ATTACH {
        attach::read_memory(e, thread::current());
        attach::threads::gather(e, thread::current())?;
        gs::adopt(e)?;
    }
    signals::install_all();
    if err::is(native::dispatch_on()) {
        return Err(Degradation::NoTracker);
    }
    e.fds.read();
    shared_memory::map(e);
    shared_files::begin(e);
    if e.args.mode == mode::ATTACH {
        attach::read_descriptors(e);
    }
    undo::share_all(e);
    e.maps_dirty = true;
    describe_image(e);
    if crate::commit::commit_at_gate(e) == 0 {
        return Err(Degradation::StoreFull);
    }
    signals::set_kernel_mask(thread::current().mask);
    Ok(())
}

/// Attaches tracker and ring to this process, whose memory is `content`: at start and after a restore.
pub fn begin(e: &mut Engine, content: Content) -> Result<(), Degradation> {
    let fds = [e.own_fd(OwnFd::Userfault), e.own_fd(OwnFd::Pagemap)];
    // A predecessor's are of no use: their numbers are, where the program has taken all others.
    for used in [OwnFd::Userfault, OwnFd::Pagemap, OwnFd::Ring] {
        e.close_own(used);
    }
    let by_signal = e.args.options & option::TRACKER_MPROTECT != 0 || !call_filters::permit(wish::USERFAULTFD);
    e.tracker.choose(fds, by_signal).map_err(|_| Degradation::NoTracker)?;
    e.ring_touched = 0;
    crate::pinned::forget();
    crate::children::begin();
    watch_faults(e);
    let text = regions::read_maps();
    let (tracker, advice) = (&mut e.tracker, &e.advice);
    regions::for_each(text, (e.kernel.start_brk, e.kernel.brk), |m| {
        let mut area = Area::of(&m.region);
        if advice.is_growing(area.start, area.end) {
            area.flags |= area_flag::GROWSDOWN;
        }
        tracker.cover(&area, content);
    });
    set_up_ring(e);
    own_descriptors::occupy(e);
    crate::periodic::start(e);
    Ok(())
}

fn set_up_ring(e: &mut Engine) {
    let allowed = e.args.options & option::NO_RING == 0 && wish::IO_URING.into_iter().all(call_filters::permit);
    let fd = e.own_fd(OwnFd::Ring);
    let ring = match allowed {
        false => Err(0),
        true if e.threads != ONE_THREAD => Ring::set_up_for_all(fd),
        true => Ring::set_up(fd),
    };
    match ring {
        Ok(ring) => e.ring = ring,
        Err(_) => ring::give_up(e),
    }
}

/// Has the tracker use what tells of page faults, as far as the options and the kernel allow.
fn watch_faults(e: &mut Engine) {
    let options = e.args.options;
    let allowed = Allowed {
        list: (options & option::FAULT_LIST != 0).then_some(e.own_fd(OwnFd::FaultList)),
        samples: (options & option::NO_FAULT_SAMPLES == 0).then_some(e.own_fd(OwnFd::FaultSamples)),
    };
    e.tracker.watch_faults(&allowed, options & option::CHECK_COMMITS == 0);
    dispatch::slow_down_tracked(e);
}
