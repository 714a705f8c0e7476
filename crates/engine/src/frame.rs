//! The kernel's signal frame, as x86-64 programs see it.

use crate::thread::Thread;
use crate::user;
use outlast_image::context::{Registers, XSAVE_LEN};
use outlast_image::kernel::SignalAction;

/// `struct ucontext` with `struct sigcontext` inside.
#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
pub struct Ucontext {
    pub flags: u64,
    pub link: u64,
    /// `ss_sp`, `ss_flags`, `ss_size`.
    pub stack: [u64; 3],
    pub regs: Registers,
    /// `cs`, `gs`, `fs`, `ss`.
    pub segments: [u16; 4],
    pub err: u64,
    pub trapno: u64,
    pub oldmask: u64,
    pub cr2: u64,
    pub fpstate: u64,
    pub reserved: [u64; 8],
    pub sigmask: u64,
}

pub const SA_SIGINFO: u64 = 4;
pub const SA_RESTORER: u64 = 0x0400_0000;
pub const SA_ONSTACK: u64 = 0x0800_0000;
pub const SA_RESTART: u64 = 0x1000_0000;
pub const SA_NODEFER: u64 = 0x4000_0000;
pub const SA_RESETHAND: u64 = 0x8000_0000;

pub const SS_ONSTACK: u64 = 1;
pub const SS_DISABLE: u64 = 2;
const SS_AUTODISARM: u64 = 1 << 31;

const MAGIC1: u32 = 0x4650_5853;
const MAGIC2: u32 = 0x4650_5845;
/// Offset of `struct _fpx_sw_bytes` in the legacy area.
const SW_BYTES: usize = 464;
/// What programs of 64 bits have in CS and SS.
pub const CODE_SEGMENT: u16 = 0x33;
pub const STACK_SEGMENT: u16 = 0x2b;
/// UC_FP_XSTATE | UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS.
const UC_FLAGS: u64 = 7;

/// Where the vector state of a frame comes from.
#[derive(Clone, Copy)]
pub enum Vector {
    /// In the thread control block, saved by the gate.
    Saved,
    /// In a frame of the kernel's: address and length with the closing magic.
    Kernel(u64, usize),
}

/// A signal and what the program wants done with it.
#[derive(Clone, Copy)]
pub struct Signal<'a> {
    pub info: &'a [u64; 16],
    pub action: &'a SignalAction,
    /// `err`, `trapno` and `cr2` of the frame.
    pub fault: [u64; 3],
}

/// Is `sp` on the alternate stack?
pub fn on_alt_stack(alt: &[u64; 3], sp: u64) -> bool {
    alt[1] & SS_DISABLE == 0 && alt[2] != 0 && sp > alt[0] && sp - alt[0] <= alt[2]
}

/// Length of the vector state at `fpstate`, closing magic included, as its software bytes tell.
pub fn kernel_vector_len(fpstate: u64) -> usize {
    match user::read::<[u32; 2]>(fpstate + SW_BYTES as u64) {
        Some([MAGIC1, extended]) if (576..=16384).contains(&extended) => extended as usize,
        _ => 512,
    }
}

/// Builds the frame for `action` on the program's stack and returns the registers with which the handler starts.
/// `regs` is where the program was; `mask` what it had blocked. `None`: the stack is not writable.
pub fn build(t: &mut Thread, regs: &Registers, vector: Vector, mask: u64, signal: &Signal<'_>) -> Option<Registers> {
    let Signal { info, action, fault } = *signal;
    let on_alt = on_alt_stack(&t.altstack, regs.rsp);
    let mut sp = regs.rsp - 128;
    if action.flags & SA_ONSTACK != 0 && !on_alt && t.altstack[1] & SS_DISABLE == 0 && t.altstack[2] != 0 {
        sp = t.altstack[0] + t.altstack[2];
    }
    let vector_len = match vector {
        Vector::Saved => XSAVE_LEN + 4,
        Vector::Kernel(_, len) => len,
    };
    let fpstate = (sp - vector_len as u64) & !63;
    match vector {
        Vector::Saved => {
            let features = t.xsave_mask;
            if !user::write_bytes(fpstate, &t.page.xsave.0) {
                return None;
            }
            let sw: [u32; 5] =
                [MAGIC1, XSAVE_LEN as u32 + 4, features as u32, (features >> 32) as u32, XSAVE_LEN as u32];
            if !user::write(fpstate + SW_BYTES as u64, &sw) || !user::write(fpstate + XSAVE_LEN as u64, &MAGIC2) {
                return None;
            }
        }
        Vector::Kernel(from, len) => {
            // SAFETY: the kernel's frame lies on the engine's alternate stack and is `len` bytes long.
            let bytes = unsafe { core::slice::from_raw_parts(from as *const u8, len) };
            if !user::write_bytes(fpstate, bytes) {
                return None;
            }
        }
    }
    let rip = if t.native == 0 { crate::rewrite::to_program(regs.rip) } else { regs.rip };
    const UC_LEN: u64 = core::mem::size_of::<Ucontext>() as u64;
    let frame = ((fpstate - (8 + UC_LEN + 128)) & !15) - 8;
    let uc = Ucontext {
        flags: UC_FLAGS,
        link: 0,
        stack: [t.altstack[0], alt_flags(t, regs.rsp), t.altstack[2]],
        regs: Registers { rip, ..*regs },
        segments: [CODE_SEGMENT, 0, 0, STACK_SEGMENT],
        err: fault[0],
        trapno: fault[1],
        oldmask: mask,
        cr2: fault[2],
        fpstate,
        reserved: [0; 8],
        sigmask: mask,
    };
    if !user::write(frame, &action.restorer) || !user::write(frame + 8, &uc) || !user::write(frame + 8 + UC_LEN, info) {
        return None;
    }
    if t.altstack[1] & SS_AUTODISARM != 0 && sp == t.altstack[0] + t.altstack[2] {
        t.altstack = [0, SS_DISABLE, 0];
    }
    Some(Registers {
        rip: action.handler,
        rsp: frame,
        rdi: info[0] & 0xffff_ffff,
        rsi: frame + 8 + UC_LEN,
        rdx: frame + 8,
        rax: 0,
        // Direction, resume and trap flags are cleared for a handler.
        eflags: regs.eflags & !(0x400 | 0x1_0000 | 0x100),
        ..*regs
    })
}

/// Flags as sigaltstack(2) reports them when the stack pointer is `sp`.
pub fn alt_flags(t: &Thread, sp: u64) -> u64 {
    if t.altstack[2] == 0 || t.altstack[1] & SS_DISABLE != 0 {
        SS_DISABLE
    } else {
        (t.altstack[1] & SS_AUTODISARM) | if on_alt_stack(&t.altstack, sp) { SS_ONSTACK } else { 0 }
    }
}

/// The initial vector state: no component in use, default control words.
pub fn reset_vector(x: &mut [u8]) {
    x[..2].copy_from_slice(&0x37fu16.to_le_bytes());
    x[24..28].copy_from_slice(&0x1f80u32.to_le_bytes());
    x[512..576].fill(0);
}

/// Takes back what `build` or the kernel wrote, as rt_sigreturn does; `frame` is the address of the ucontext.
/// Everything in it is the program's and may be anything.
pub fn take(t: &mut Thread, frame: u64) -> Option<u64> {
    let uc: Ucontext = user::read(frame)?;
    let eflags = (uc.regs.eflags & 0x24_0dd5) | 0x202;
    t.whole = 1;
    t.regs = Registers { eflags, rip: crate::rewrite::to_stub(uc.regs.rip), ..uc.regs };
    let stack_flags = uc.stack[1] & !SS_ONSTACK;
    t.altstack =
        if stack_flags & SS_DISABLE != 0 { [0, SS_DISABLE, 0] } else { [uc.stack[0], stack_flags, uc.stack[2]] };
    reset_vector(&mut t.page.xsave.0);
    if uc.fpstate != 0 {
        let len = kernel_vector_len(uc.fpstate);
        let len = if len == 512 { 512 } else { (len - 4).min(XSAVE_LEN) };
        if !user::read_bytes(uc.fpstate, &mut t.page.xsave.0[..len]) {
            return None;
        }
        let mut bv = if len == 512 { 3 } else { u64::from_le_bytes(t.page.xsave.0[512..520].try_into().ok()?) };
        bv &= t.xsave_mask;
        t.page.xsave.0[512..520].copy_from_slice(&bv.to_le_bytes());
        // The compacted format and the reserved part of the header would fault.
        t.page.xsave.0[520..576].fill(0);
        let mxcsr = u32::from_le_bytes(t.page.xsave.0[24..28].try_into().ok()?) & 0xffff;
        t.page.xsave.0[24..28].copy_from_slice(&mxcsr.to_le_bytes());
    }
    Some(uc.sigmask)
}
