//! The thread control block: what the gate's assembler reaches through GS.

use crate::aliased::Aliased;
use crate::countdown::{self, Countdown};
use crate::dispatch::Call;
use crate::line::Line;
use crate::scheduling::Scheduling;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use outlast_image::context::{PendingCall, Registers, ThreadContext, XSAVE_LEN, XSAVE_OFFSET};
use outlast_image::layout::{THREADS_BASE, THREAD_LEN};

/// Bytes of the engine's own stack for a thread.
pub const STACK_LEN: usize = 256 << 10;
/// Bytes of the alternate stack on which the engine takes signals.
pub const ALT_STACK_LEN: usize = 64 << 10;

/// Bits of [`Thread::pending`].
pub mod pending_bit {
    /// A signal for the program waits in [`super::Thread::siginfo`].
    pub const SIGNAL: u32 = 1;
    /// The supervisor wants something.
    pub const REQUEST: u32 = 2;
    /// Another thread commits and waits for this one to stand still.
    pub const STOP: u32 = 4;
    /// The program was recovered and wants to know.
    pub const RECOVERED: u32 = 8;
}

/// Values of [`Thread::standing`]: where the thread goes on if it is restored from a commit that another one makes now.
pub mod standing {
    /// Runs the program's code, and must be stopped before its registers mean anything.
    pub const RUNNING: u32 = 0;
    /// At its saved registers.
    pub const AT_REST: u32 = 1;
    /// With the call that it makes, from the call's beginning.
    pub const IN_CALL: u32 = 2;
    /// With the rest of [`super::Thread::pending_call`].
    pub const IN_PART: u32 = 3;
}

/// One thread of the program, seen from the engine.
#[repr(C, align(64))]
pub struct Thread {
    /// Its own address: `mov %gs:0` yields a pointer.
    pub this: u64,
    /// The program's registers at the gate.
    pub regs: Registers,
    /// Bits of [`pending_bit`]; the gate looks before and after every call. Handlers set them at any moment.
    pub pending: AtomicU32,
    /// Not 0: the gate sends every call back to run natively. [`crate::calls::shared_child::SHARED`]: there they trap
    /// again, as calls of a child that shares this memory.
    pub native: u32,
    /// Top of the engine's stack for this thread.
    pub stack_top: u64,
    /// Components of vector state that are saved (XCR0 without AMX tiles).
    pub xsave_mask: u64,
    /// Calls that arrived at the gate, on whatever way.
    pub calls: u64,
    /// How many of them the control page has counted.
    pub counted: u64,
    /// 1 while the present call arrived through SIGSYS: its site is a candidate for rewriting.
    pub by_trap: u64,
    /// Number of the call being served; what `rax` held.
    pub call: u64,
    /// The signals the program has blocked.
    pub mask: u64,
    /// The program's alternate stack: address, flags, length.
    pub altstack: [u64; 3],
    /// Stack of a child that shares this memory.
    pub spawn_stack: u64,
    /// And the signals that it has blocked.
    pub spawn_mask: u64,
    pub gs_base: u64,
    pub tid_address: u64,
    pub robust_list: [u64; 2],
    pub rseq: [u64; 3],
    pub tid: u32,
    /// 1: the present call came back with EINTR because of `siginfo`.
    pub interrupted: u32,
    /// 1: a signal came before the operation of the present call, of which nothing was done.
    pub unbegun: u32,
    /// Not 0: the gate leaves with flags and all of the vector state from here. Else the flags are of no concern, and of the
    /// vector state only what the engine itself uses has changed since the program came in.
    pub whole: u32,
    /// What is left of an output that waits, at [`standing::IN_PART`].
    pub pending_call: PendingCall,
    /// How far its present wait is.
    pub countdown: Countdown,
    /// A `struct pollfd` of the engine's.
    pub poll: u64,
    /// One of [`standing`].
    pub standing: AtomicU32,
    /// How often in a row it had to be knocked at to stand still, rather than coming with a call.
    pub knocked: AtomicU32,
    /// Whether another thread may make its call: one of `group::offer`.
    pub offer: Line<AtomicU32>,
    /// How often in a row it has waited in vain for another thread to take its offer: see `leader`.
    pub unled: u32,
    /// Number of its place: 0 for the first thread.
    pub place: u32,
    /// What the kernel calls it; another number than `tid` after a recovery without root.
    pub real_tid: u32,
    /// Its context may differ from the one in the store.
    pub is_fresh: bool,
    /// It has run since a commit that was made while it stood still: see `world::each_in_doubt`.
    pub is_in_doubt: bool,
    /// How often the world had gone on when it came to stand still.
    pub passed: u32,
    /// The call it makes has noted memory in `pinned`.
    pub pins: bool,
    /// The kernel writes for the call `awaited` whenever it likes, where a tracker must leave pages open for that.
    pub awaits: bool,
    /// In a restore: nobody else may commit before it has finished its call.
    pub goes_first: bool,
    /// In a restore: it calls the program's function after a recovery.
    pub learns: bool,
    /// It makes a call that others can see, with no commit before it.
    pub is_unseen: bool,
    /// It has the lock of the engine.
    pub has_lock: bool,
    pub awaited: Call,
    /// FS base of the program, kept where the thread stands still.
    pub fs_base: u64,
    pub comm: [u8; 16],
    pub child_place: crate::calls::shared_child::Place,
    /// The deferred signal.
    pub siginfo: [u64; 16],
    /// What a commit saves.
    pub page: Page,
    _aliased: Aliased,
}

/// Where what a thread is scheduled by lies in its page.
pub const SCHEDULING_OFFSET: usize = core::mem::size_of::<ThreadContext>();

/// A thread's context as the store keeps it: a page, so that a commit costs the lines that changed.
#[repr(C, align(4096))]
pub struct Page {
    /// Filled by a commit.
    pub context: ThreadContext,
    pub scheduling: Scheduling,
    unused: [u8; XSAVE_OFFSET - SCHEDULING_OFFSET - core::mem::size_of::<Scheduling>()],
    /// The program's vector state at the gate, standard XSAVE format.
    pub xsave: Xsave,
}

const _: () = assert!(core::mem::size_of::<Page>() == 4096 && core::mem::offset_of!(Page, xsave) == XSAVE_OFFSET);

/// 64-byte aligned, as XSAVE wants it.
#[repr(C, align(64))]
pub struct Xsave(pub [u8; XSAVE_LEN]);

impl Xsave {
    /// Bytes that matter: the legacy area and header alone, with AVX, or everything.
    pub fn used_len(&self) -> usize {
        let bv = u64::from_le_bytes(self.0[512..520].try_into().unwrap_or([0xff; 8]));
        match bv {
            b if b & !3 == 0 => 576,
            b if b & !7 == 0 => 832,
            _ => XSAVE_LEN,
        }
    }
}

#[repr(C, align(4096))]
pub struct Stack<const N: usize>([u8; N]);

impl<const N: usize> Stack<N> {
    pub const fn new() -> Self {
        Stack([0; N])
    }
}

/// What a gate call runs on.
static mut GATE_STACK: Stack<STACK_LEN> = Stack::new();
pub static mut ALT_STACK: Stack<ALT_STACK_LEN> = Stack::new();
/// What start, anchor and restore run on.
pub static mut INNER_STACK: Stack<STACK_LEN> = Stack::new();
// SAFETY of the zero pattern: every field is an integer or an array of integers.
pub static mut MAIN: Thread = unsafe { core::mem::zeroed() };

/// Top of the stack on which start, anchor and restore run: never the one a gate call is using.
pub fn inner_stack_top() -> u64 {
    (&raw const INNER_STACK) as u64 + STACK_LEN as u64
}

impl Thread {
    /// Asks for the name of the running thread.
    pub fn read_comm(&mut self) {
        const PR_GET_NAME: u64 = 16;
        // SAFETY: PR_GET_NAME writes 16 bytes.
        unsafe { crate::sys::syscall!(crate::sys::nr::PRCTL, PR_GET_NAME, self.comm.as_mut_ptr()) };
    }
}

/// What lies in the place of a thread, from its start.
mod within {
    use super::{Thread, ALT_STACK_LEN, STACK_LEN};
    pub const SHADOW: u64 = (core::mem::size_of::<Thread>() as u64).next_multiple_of(4096);
    pub const ALT_STACK: u64 = SHADOW + 4096;
    pub const STACK_TOP: u64 = ALT_STACK + ALT_STACK_LEN as u64 + STACK_LEN as u64;
    const _: () = assert!(STACK_TOP <= outlast_image::layout::THREAD_LEN);
}

/// Start of a place. The first thread's is empty.
fn start_of(place: u32) -> u64 {
    THREADS_BASE + place as u64 * THREAD_LEN
}

/// The alternate stack of a thread: lowest address and length.
pub fn alt_stack(t: &Thread) -> (u64, u64) {
    let stack = match t.place {
        0 => (&raw const ALT_STACK) as u64,
        place => start_of(place) + within::ALT_STACK,
    };
    (stack, ALT_STACK_LEN as u64)
}

/// What the store holds of the thread's context.
pub fn context_shadow(t: &Thread) -> *mut [u8; 4096] {
    match t.place {
        0 => crate::scratch::context_shadow(),
        place => (start_of(place) + within::SHADOW) as *mut [u8; 4096],
    }
}

/// The control block of the thread with this place.
///
/// # Safety
/// The place is taken, or mapped and free. The thread stands still, or only its atomics are used.
pub unsafe fn at(place: u32) -> &'static mut Thread {
    match place {
        0 => {
            let main = &raw mut MAIN;
            &mut *main
        }
        place => &mut *(start_of(place) as *mut Thread),
    }
}

/// The control block of the running thread.
///
/// # Safety
/// The engine has it alone and is not re-entered: signal handlers that interrupt the engine touch `pending`, `siginfo` and
/// nothing else, other threads its atomics, or all of it while it stands still.
#[inline(always)]
pub unsafe fn current() -> &'static mut Thread {
    let this: *mut Thread;
    core::arch::asm!("mov {}, gs:[0]", out(reg) this, options(nostack, preserves_flags, readonly));
    &mut *this
}

/// Components that the engine knows: everything up to PKRU, but not AMX tiles (bits 17 and 18), which do not fit.
pub const COMPONENTS: u64 = 0x2ff;

/// Components that the engine saves: what is enabled of those it knows.
fn xsave_mask() -> u64 {
    // SAFETY: xgetbv exists wherever the kernel runs with XSAVE, which x86-64 kernels with SUD do.
    let xcr0 = unsafe {
        let (lo, hi): (u32, u32);
        core::arch::asm!("xgetbv", in("ecx") 0, out("eax") lo, out("edx") hi, options(nomem, nostack));
        (hi as u64) << 32 | lo as u64
    };
    xcr0 & COMPONENTS
}

/// Makes GS point at the first thread's control block and fills what never changes.
///
/// # Safety
/// To be called once in a fresh process image, before the gate is used.
pub unsafe fn install() -> &'static mut Thread {
    let t = prepare(0);
    (t.calls, t.counted) = (0, 0);
    countdown::set_reference();
    point_at(t);
    t
}

/// Fills what never changes in the control block of a place.
///
/// # Safety
/// Nobody has the place.
pub unsafe fn prepare(place: u32) -> &'static mut Thread {
    let t = at(place);
    t.place = place;
    // Left by a thread that stood elsewhere when the anchor was made.
    t.offer.0.store(0, Relaxed);
    t.knocked.store(0, Relaxed);
    t.awaits = false;
    t.countdown.forget();
    t.this = (&raw const *t) as u64;
    t.stack_top = match place {
        0 => (&raw const GATE_STACK) as u64 + STACK_LEN as u64,
        place => start_of(place) + within::STACK_TOP,
    };
    t.xsave_mask = xsave_mask();
    t
}

/// Makes GS point at the control block of the running thread.
///
/// # Safety
/// It is this thread's.
pub unsafe fn point_at(t: &Thread) {
    core::arch::asm!("wrgsbase {}", in(reg) t.this, options(nostack));
}

/// FS base of the running thread: the engine itself never uses FS, so it is always the program's.
pub fn fs_base() -> u64 {
    let v: u64;
    // SAFETY: FSGSBASE is enabled on every kernel the engine supports (checked at injection by wrgsbase working).
    unsafe { core::arch::asm!("rdfsbase {}", out(reg) v, options(nomem, nostack)) };
    v
}

/// Sets the program's FS base.
pub fn set_fs_base(v: u64) {
    // SAFETY: see `fs_base`.
    unsafe { core::arch::asm!("wrfsbase {}", in(reg) v, options(nomem, nostack)) };
}
