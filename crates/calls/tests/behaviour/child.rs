//! The forked child: makes the calls it was given, reports the result, ends. It allocates nothing and takes no lock, since
//! other threads of the parent may have held them at the fork.

use crate::arena::{Arena, Grandchild, LOADED, OWN_PID};
use crate::raw::{must, syscall};

const PAUSE: u64 = 34;
const GETPID: u64 = 39;
const FORK: u64 = 57;
const EXIT_GROUP: u64 = 231;

/// Makes the call in a child and returns its result.
pub fn call_in_child(arena: &Arena, nr: u64, args: [u64; 6]) -> i64 {
    in_child(arena, nr, args, || {})
}

/// The same, with `prepare` done in the child before the call. It must neither allocate nor panic.
pub fn in_child(arena: &Arena, nr: u64, args: [u64; 6], prepare: impl Fn()) -> i64 {
    let report = arena.report();
    // SAFETY: a plain fork; the child runs `run` only.
    let pid = unsafe { syscall(FORK, [0; 6]) };
    if pid == 0 {
        run(arena, report, nr, args, prepare);
    }
    let pid = u64::try_from(pid).expect("fork");
    let mut status = 0_i32;
    must("wait4", [pid, std::ptr::from_mut(&mut status) as u64, 0, 0]);
    assert_eq!(status, 0, "the child died (wait status {status:#x})");
    // SAFETY: the child is gone and left its result there.
    unsafe { report.read_volatile() }
}

fn run(arena: &Arena, report: *mut i64, nr: u64, args: [u64; 6], prepare: impl Fn()) -> ! {
    // SAFETY: this process has one thread, shares only the arena with its parent, and ends here. The calls are those of
    // the probe, with addresses inside the arena.
    unsafe {
        for &(nr, args) in &arena.before {
            if syscall(nr, own(arena, args)) < 0 {
                exit(2);
            }
        }
        if arena.grandchild != Grandchild::None {
            let pid = syscall(FORK, [0; 6]);
            if pid == 0 {
                if arena.grandchild == Grandchild::Stays {
                    syscall(PAUSE, [0; 6]);
                }
                exit(3);
            }
            if arena.grandchild == Grandchild::Stays {
                (arena.loaded as *mut i64).write_volatile(pid);
            }
        }
        prepare();
        let result = syscall(nr, own(arena, args));
        report.write_volatile(result);
        exit(0);
    }
}

/// Ends the child without running anything of the parent's.
pub fn exit(status: u64) -> ! {
    loop {
        // SAFETY: touches no memory.
        unsafe { syscall(EXIT_GROUP, [status, 0, 0, 0, 0, 0]) };
    }
}

/// The arguments with their stand-ins replaced.
pub fn own(arena: &Arena, mut args: [u64; 6]) -> [u64; 6] {
    for arg in &mut args {
        if *arg == OWN_PID {
            // SAFETY: getpid touches no memory.
            *arg = unsafe { syscall(GETPID, [0; 6]) } as u64;
        }
        if *arg == LOADED {
            // SAFETY: the probe gave the address of scratch memory.
            *arg = unsafe { (arena.loaded as *const u64).read_volatile() };
        }
    }
    args
}
