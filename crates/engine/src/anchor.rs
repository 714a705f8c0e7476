//! The anchor: a sibling that shares the program's descriptor table and nothing else, and keeps it through SIGKILL.
//! A process cloned from it also inherits the executable, the break, the auxiliary vector and the directory.

use crate::call_filters;
use crate::calls::segments;
use crate::children;
use crate::control::{control, fail};
use crate::entry::store_region;
use crate::kept_files::Keeper;
use crate::own_descriptors::Passing;
use crate::scratch;
use crate::state::engine;
use crate::successor::Watch;
use crate::sys::{err, futex_wait, futex_wake, now_ns, nr, syscall};
use crate::undo::hidden;
use core::sync::atomic::Ordering::*;
use outlast_filter::needs::wish;
use outlast_image::control::anchor_command::{BUSY, EXIT, NONE, RESPAWN};
use outlast_image::inject::option;
use outlast_image::layout::{ENGINE_BASE, ENGINE_END, STORE_BASE, USER_END};
use outlast_store::Store;

const CLONE_FS: u64 = 0x200;
const CLONE_FILES: u64 = 0x400;
const CLONE_PARENT: u64 = 0x8000;
const CLONE_VM: u64 = 0x100;
const CLONE_VFORK: u64 = 0x4000;
const SIGCHLD: u64 = 17;
const WALL: u64 = 0x4000_0000;
/// What semaphores of System V undo at the end of a process, they undo when the last of these has ended.
const CLONE_SYSVSEM: u64 = 0x40000;
const KIN: u64 = CLONE_FS | CLONE_FILES | CLONE_PARENT | CLONE_SYSVSEM;
const PR_SET_NAME: u64 = 15;

/// Clones the anchor from the program.
pub fn make() -> i64 {
    let r = clone();
    if r > 0 {
        announce(r as i32);
    }
    r
}

/// There is another anchor: the supervisor, which sleeps, has to watch that one, and to exempt it from the OOM killer.
fn announce(pid: i32) {
    let c = control();
    c.anchor_pid.store(pid, Release);
    c.served.fetch_add(1, AcqRel);
    futex_wake(&c.served);
}

fn clone() -> i64 {
    // SAFETY: a clone without CLONE_VM returns twice on separate copies of this stack.
    let r = unsafe {
        if is_made_apart() {
            clone_apart()
        } else {
            syscall!(nr::CLONE, KIN, 0, 0, 0, 0)
        }
    };
    if r == 0 {
        serve();
    }
    r
}

/// Is the program's parent none that may have an anchor as its child?
pub fn is_made_apart() -> bool {
    // SAFETY: plain data of the engine's.
    unsafe { engine().args.options & option::FOREIGN_PARENT != 0 }
}

/// The same for a program whose parent knows nothing of anchors, and must not have to wait for one: by a process in between, which ends
/// at once, so that the anchor becomes a child of whoever takes in orphans. Who respawns from it becomes that, too.
unsafe fn clone_apart() -> i64 {
    let newborn = &control().newborn;
    newborn.store(0, Release);
    let r: i64;
    // The process in between has this memory and this stack, and uses nothing of it but one word; its parent waits until it has ended.
    // Without a signal at its end only who asks for such children can wait for it.
    core::arch::asm!(
        "syscall",
        "test rax, rax",
        "jnz 2f",
        "mov eax, {clone}",
        "mov edi, {flags}",
        "xor esi, esi",
        "syscall",
        "test rax, rax",
        "jz 2f",
        "mov dword ptr [r12], eax",
        "mov eax, {exit}",
        "xor edi, edi",
        "syscall",
        "ud2",
        "2:",
        clone = const nr::CLONE,
        exit = const nr::EXIT,
        flags = const CLONE_FS | CLONE_FILES | CLONE_SYSVSEM | SIGCHLD,
        inlateout("rax") nr::CLONE as i64 => r,
        inlateout("rdi") CLONE_FS | CLONE_FILES | CLONE_SYSVSEM | CLONE_VM | CLONE_VFORK => _,
        inlateout("rsi") 0u64 => _,
        in("rdx") 0u64, in("r10") 0u64, in("r8") 0u64,
        in("r12") newborn.as_ptr(),
        lateout("rcx") _, lateout("r11") _,
    );
    if r <= 0 {
        return r;
    }
    while syscall!(nr::WAIT4, r, 0, WALL, 0) == err::EINTR {}
    // Its error number, if it could not make one.
    newborn.load(Acquire) as i64
}

/// The anchor died: clones a new one. The new one's memory is a copy of all of the program's.
pub fn renew() {
    let r = make();
    if err::is(r) {
        fail!(r);
    }
    // If it lives, because a program that died since had made it, it ends.
    futex_wake(&control().anchor_command);
}

/// A change of anchors that is under way.
pub struct Renewal {
    old: i32,
    watch: Option<Passing>,
}

/// Makes a call that changes what a clone inherits: credentials, filters, limits, priorities. `seq` is the commit that
/// stands before it; the caller commits once more and calls [`Renewal::finish`] before the program runs on.
///
/// A restore from commit `seq` must come from an anchor as it was before the call, one from the next commit from an
/// anchor as it is after it, and no anchor with more rights than the program may be left once the program runs:
/// it could write to its store. So both anchors live until the next commit, which decides between them.
pub fn renew_around(seq: u64, call: impl FnOnce() -> i64) -> (i64, Option<Renewal>) {
    let c = control();
    let old = c.anchor_pid.load(Acquire);
    // SAFETY: watches a process that the engine made.
    let watch = Passing::of(|| unsafe { syscall!(nr::PIDFD_OPEN, old, 0) }).ok();
    c.next_anchor.store(0, Release);
    c.past_anchor.store(0, Release);
    c.next_anchor_seq.store(seq + 1, Release);
    let r = call();
    if err::is(r) {
        c.next_anchor_seq.store(0, Release);
        return (r, None);
    }
    let new = clone();
    if err::is(new) {
        fail!(new);
    }
    c.next_anchor.store(new as i32, Release);
    (r, Some(Renewal { old, watch }))
}

impl Renewal {
    /// The next commit is published: the old anchor ends, and is gone when this returns.
    pub fn finish(self) {
        let c = control();
        // A program that has given up rights may not kill it; it ends by itself.
        c.past_anchor.store(self.old, Release);
        settle();
        futex_wake(&c.anchor_command);
        // SAFETY: watches and ends a process that the engine made.
        unsafe {
            syscall!(nr::KILL, self.old, 9);
            if let Some(watch) = &self.watch {
                let mut p = watch.fd as u32 as u64 | 1 << 32;
                while syscall!(nr::POLL, &raw mut p, 1, -1i64) == err::EINTR {}
            }
        }
        c.past_anchor.store(0, Release);
    }
}

/// Makes the anchor that the published commit calls for the one: at the end of a change, and after a death in the
/// middle of one.
pub fn settle() {
    let c = control();
    let next_seq = c.next_anchor_seq.load(Acquire);
    if next_seq != 0 {
        let new = c.next_anchor.load(Acquire);
        if committed() >= next_seq && new > 0 {
            announce(new);
        }
        c.next_anchor_seq.store(0, Release);
        c.next_anchor.store(0, Release);
    }
}

/// Sequence number of the published commit, from the store itself.
fn committed() -> u64 {
    // SAFETY: the store is mapped in the program and its anchors; one aligned word.
    let word = unsafe { ((STORE_BASE + outlast_store::COMMITTED) as *const u64).read_volatile() };
    outlast_store::unseal(word).unwrap_or(0)
}

/// What an anchor is at a moment.
#[derive(PartialEq, Eq)]
enum Role {
    /// Answers commands.
    Serving,
    /// Will, perhaps.
    Waiting,
    /// Another one took over.
    Over,
}

fn role(me: i32, newborn: bool) -> Role {
    let c = control();
    let (now, next, seq) = (c.anchor_pid.load(Acquire), c.next_anchor.load(Acquire), c.next_anchor_seq.load(Acquire));
    let chosen = if seq != 0 && next > 0 && committed() >= seq { next } else { now };
    match () {
        _ if chosen == me => Role::Serving,
        _ if c.past_anchor.load(Acquire) == me => Role::Over,
        _ if next == me || now == me || newborn => Role::Waiting,
        _ => Role::Over,
    }
}

/// How long a new anchor waits to be announced: its maker may have died first.
const NEWBORN_NS: u64 = 1_000_000_000;

/// The anchor's life: waits for commands, with every signal blocked.
fn serve() -> ! {
    let c = control();
    // SAFETY: plain calls of a process of its own.
    unsafe {
        stand_apart(c"outlast-anchor");
        let mut has_memory = true;
        let (me, born) = (syscall!(nr::GETPID) as i32, now_ns());
        let (mut watch, mut keeper) = (Watch::new(), Keeper::new());
        loop {
            if has_memory && !children::is_bare() {
                let_go_of_memory();
                has_memory = false;
            }
            // In this order: while there is a command to respawn nothing changes who is to, but before it the program may do so.
            let command = c.anchor_command.load(Acquire);
            let role = role(me, now_ns() - born < NEWBORN_NS);
            match (role, command) {
                (Role::Serving, EXIT) => {
                    remove_hidden();
                    syscall!(nr::EXIT_GROUP, 0);
                }
                (Role::Over, _) | (_, EXIT) => {
                    syscall!(nr::EXIT_GROUP, 0);
                }
                // A supervisor that takes over may have withdrawn it.
                (Role::Serving, RESPAWN) => {
                    if c.anchor_command.compare_exchange(RESPAWN, BUSY, AcqRel, Acquire).is_ok() {
                        settle();
                        respawn();
                    }
                }
                (Role::Serving, _) => watch.sleep(&c.anchor_command, command, keeper.attend()),
                (Role::Waiting, _) => {
                    futex_wait(&c.anchor_command, command, Some(1_000_000));
                }
            }
        }
    }
}

/// A process that was cloned from the program becomes one of the engine's: no signal and no group of the program's.
///
/// # Safety
/// The process never runs the program's code.
pub unsafe fn stand_apart(name: &core::ffi::CStr) {
    let all = !0u64;
    syscall!(nr::RT_SIGPROCMASK, 2, &raw const all, 0, 8);
    let t = crate::thread::current();
    if t.rseq[0] != 0 {
        // Inherited from the thread that made it. It must not be in the way of the program's threads.
        syscall!(nr::RSEQ, t.rseq[0], t.rseq[1], 1, t.rseq[2]);
    }
    segments::let_go(engine());
    syscall!(nr::SETPGID, 0, 0);
    syscall!(nr::PRCTL, PR_SET_NAME, name.as_ptr());
}

/// An anchor that was made late is a copy of all of the program's memory, which would stay in use however often the program
/// dies. What takes its place gets everything from the store.
pub unsafe fn let_go_of_memory() {
    const MADV_DONTNEED: u64 = 4;
    // Where nothing is mapped there is nothing to do, and the first pages that are the kernel's end it: they lie above the stack.
    for (start, end) in [(0, ENGINE_BASE), (ENGINE_END, USER_END)] {
        syscall!(nr::MADVISE, start, end - start, MADV_DONTNEED);
    }
}

/// The program has ended: what it removed since its last commit is gone for good.
unsafe fn remove_hidden() {
    if hidden::exist() {
        engine().load_args();
        scratch::map();
        if let Ok((mut store, _)) = Store::open(store_region(), scratch::index()) {
            hidden::remove_all(&mut store);
        }
    }
}

/// `struct clone_args`.
#[repr(C)]
#[derive(Default)]
struct CloneArgs {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
    cgroup: u64,
}

unsafe fn respawn() {
    let c = control();
    let wanted = c.wanted_pid.load(Acquire);
    // Filters of containers refuse clone3, whose flags they cannot see; only clone3 takes a process id.
    let r = if wanted > 0 && !call_filters::permit(wish::CLONE3) {
        err::EPERM
    } else if wanted > 0 {
        let set_tid = (&raw const wanted) as u64;
        let args = CloneArgs { flags: KIN, set_tid, set_tid_size: 1, ..Default::default() };
        syscall!(nr::CLONE3, &raw const args, core::mem::size_of::<CloneArgs>())
    } else {
        syscall!(nr::CLONE, KIN, 0, 0, 0, 0)
    };
    if r == 0 {
        crate::on_stack(crate::thread::inner_stack_top(), crate::restore::respawned);
    }
    c.new_pid.store(r as i32, Release);
    if r > 0 {
        c.program_pid.store(r as i32, Release);
    }
    c.anchor_command.store(NONE, Release);
    futex_wake(&c.anchor_command);
    c.anchor_done.store(1, Release);
    futex_wake(&c.anchor_done);
}
