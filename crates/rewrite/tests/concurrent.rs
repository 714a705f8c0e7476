//! Overwriting code that other threads execute at that moment.

#[path = "support/built.rs"]
mod built;
#[path = "support/machine.rs"]
mod machine;

use built::{hex, plan_in, Built};
use machine::Memory;
use outlast_rewrite::{Code, Overwrite, WriteStrategy};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Sends a thread that met a breakpoint back to it.
extern "C" fn back_to_the_breakpoint(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let context: *mut libc::ucontext_t = context.cast();
    // SAFETY: the kernel hands a valid context to a handler with SA_SIGINFO.
    unsafe { (*context).uc_mcontext.gregs[libc::REG_RIP as usize] -= 1 };
    TRAPS.fetch_add(1, Ordering::Relaxed);
}

static TRAPS: AtomicU64 = AtomicU64::new(0);

const REGISTER_SYNC_CORE: libc::c_int = 1 << 6;
const SYNC_CORE: libc::c_int = 1 << 5;

fn membarrier(command: libc::c_int) {
    // SAFETY: touches no memory of the program.
    assert_eq!(unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) }, 0);
}

/// Writes as the strategy says.
///
/// # Safety
/// The code is writable.
unsafe fn write(overwrite: &Overwrite, code: &Code, wide: bool) {
    match overwrite.strategy(code, wide) {
        WriteStrategy::Swap8 { at, old, new } => {
            let word = unsafe { &*(at as *const AtomicU64) };
            assert_eq!(word.compare_exchange(old, new, Ordering::SeqCst, Ordering::SeqCst), Ok(old));
        }
        WriteStrategy::Swap16 { at, old, new } => {
            assert!(std::arch::is_x86_feature_detected!("cmpxchg16b"));
            assert_eq!(unsafe { swap16(at, old, new) }, old);
        }
        WriteStrategy::Breakpoint => {
            for (at, bytes) in overwrite.steps() {
                unsafe { machine::write(at, bytes) };
                membarrier(SYNC_CORE);
            }
        }
        WriteStrategy::NeedsParkedThreads => panic!("an instruction starts inside"),
    }
}

/// # Safety
/// `at` is writable and aligned to 16; the processor has the instruction.
unsafe fn swap16(at: u64, old: u128, new: u128) -> u128 {
    let (mut low, mut high) = (old as u64, (old >> 64) as u64);
    unsafe {
        // The compiler keeps rbx for itself.
        std::arch::asm!(
            "xchg {new}, rbx",
            "lock cmpxchg16b [{at}]",
            "mov rbx, {new}",
            new = inout(reg) new as u64 => _,
            at = in(reg) at,
            in("rcx") (new >> 64) as u64,
            inout("rax") low,
            inout("rdx") high,
        );
    }
    u128::from(low) | u128::from(high) << 64
}

/// Two threads call a function without pause while it is patched and put back again and again: so many rounds, and until
/// the patch (and its breakpoint) was met.
fn survives(shift: usize, wide: bool, rounds: u32) -> WriteStrategy {
    let memory = Memory::new(1 << 17);
    let before = [vec![0x90; shift], hex("b8 27 00 00 00")].concat();
    let built = Built::new(memory.address, &before, &hex("48 3d 00 f0 ff ff c3"));
    // SAFETY: fresh memory.
    unsafe { machine::write(memory.address, &built.bytes) };
    let code = Code { address: memory.address, bytes: memory.bytes() };
    let patch =
        plan_in(&code, built.site, &|_| false).unwrap().link(memory.address + (1 << 16), machine::gate()).unwrap();
    // SAFETY: nothing leads to the stub yet.
    unsafe { machine::write(patch.stub_address, &patch.stub) };
    let strategy = patch.overwrite().strategy(&code, wide);
    // SAFETY: the code is a function without arguments that returns a number.
    let function: extern "C" fn() -> i64 = unsafe { std::mem::transmute(patch.at()) };
    let pid = i64::from(std::process::id());
    let done = AtomicBool::new(false);
    let (calls, traps) = (machine::calls(), TRAPS.load(Ordering::Relaxed));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    assert_eq!(function(), pid);
                }
            });
        }
        let met = || {
            machine::calls() > calls && (strategy != WriteStrategy::Breakpoint || TRAPS.load(Ordering::Relaxed) > traps)
        };
        let mut round = 0;
        while round < rounds || !met() {
            round += 1;
            // SAFETY: the memory is writable; what executes it meanwhile is what is tested.
            unsafe {
                write(patch.overwrite(), &code, wide);
                write(&patch.undo(), &code, wide);
            }
            if round % 64 == 0 {
                std::thread::yield_now();
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    strategy
}

#[test]
fn running_threads_see_the_old_code_or_the_new() {
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = back_to_the_breakpoint as *const () as usize;
    action.sa_flags = libc::SA_SIGINFO;
    // SAFETY: the handler is async-signal-safe.
    assert_eq!(unsafe { libc::sigaction(libc::SIGTRAP, &action, std::ptr::null_mut()) }, 0);
    membarrier(REGISTER_SYNC_CORE);
    assert!(matches!(survives(0, false, 30_000), WriteStrategy::Swap8 { .. }));
    assert!(matches!(survives(5, true, 30_000), WriteStrategy::Swap16 { .. }));
    assert_eq!(survives(13, true, 5_000), WriteStrategy::Breakpoint);
    assert_eq!(survives(5, false, 5_000), WriteStrategy::Breakpoint);
    println!("{} calls, {} breakpoints met", machine::calls(), TRAPS.load(Ordering::Relaxed));
}
