//! What filters of system calls say of calls that are not made.
//!
//! A process installs one more filter, which has its tracer asked about every call. The kernel follows the strictest filter: where the
//! others refuse a call they do so, and where they allow it the tracer is asked, and has it left out. So no call that is tried has an
//! effect, whatever its arguments; what ends the process ends a process that was made for that. Its tracer is another one, since
//! tracing and waiting may themselves be refused: this process makes none but three calls (mmap, rt_sigaction, clone) for all of it.

use outlast_filter::{Instruction, Question, Verdict};
use std::mem::MaybeUninit;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering::SeqCst};

/// Most questions at a time.
const MOST: usize = 500;

/// What a trial has found out.
pub enum Tried {
    /// What becomes of each call.
    All(Vec<Verdict>),
    /// Nothing may be traced, for another reason than filters.
    NoTracing,
    /// The trial itself was refused this call.
    Refused(u32, Verdict),
}

/// What those who try tell, in memory that all of them share.
#[repr(C)]
struct Sheet {
    /// The call that somebody is about to make of his own accord; 0: none.
    doing: AtomicU32,
    /// What came of it, as the kernel tells it, where that was not what it should be.
    failed: AtomicI64,
    /// One of [`stage`].
    stage: AtomicU32,
    /// The question that is being tried.
    at: AtomicU32,
    /// [`answer::NONE`], or what it was.
    answers: [AtomicI64; MOST],
}

mod stage {
    pub const BEGUN: u32 = 0;
    pub const TRYING: u32 = 1;
    pub const DONE: u32 = 2;
    pub const NO_TRACING: u32 = 3;
}

mod answer {
    pub const NONE: i64 = 0;
    pub const ALLOWED: i64 = 1;
    pub const KILLED: i64 = 2;
    /// And what came with the signal.
    pub const TRAPPED: i64 = 1 << 32;
    /// And the error number.
    pub const FAILED: i64 = 1 << 33;
}

fn verdict(answer: i64) -> Verdict {
    match answer {
        answer::ALLOWED => Verdict::Allowed,
        _ if answer & answer::FAILED != 0 => Verdict::Errno(answer as u16),
        _ if answer & answer::TRAPPED != 0 => Verdict::Trap(answer as u16),
        // Also one of which nothing was heard.
        _ => Verdict::KillProcess,
    }
}

/// Finds out what becomes of each call: unknown arguments are 0.
pub fn make(questions: &[Question]) -> Tried {
    assert!(questions.len() <= MOST);
    let len = size_of::<Sheet>();
    let (access, shared) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping at an address of the kernel's choice.
    let mapped = unsafe { libc::mmap(null_mut(), len, access, shared, -1, 0) };
    if mapped == libc::MAP_FAILED {
        return Tried::Refused(libc::SYS_mmap as u32, Verdict::Errno(errno() as u16));
    }
    // SAFETY: as long as a sheet, which consists of integers, mapped until the end of this function.
    let sheet = unsafe { &*mapped.cast::<Sheet>() };
    let begun = with_children_unasked(|| begin(libc::CLONE_VFORK, || trace_all(sheet, questions)));
    let tried = match (sheet.stage.load(SeqCst), sheet.doing.load(SeqCst), sheet.failed.load(SeqCst)) {
        _ if begun < 0 => Tried::Refused(libc::SYS_clone as u32, Verdict::Errno(-begun as u16)),
        (stage::DONE, ..) => {
            Tried::All(sheet.answers[..questions.len()].iter().map(|one| verdict(one.load(SeqCst))).collect())
        }
        (stage::NO_TRACING, ..) => Tried::NoTracing,
        (_, doing, 0) => Tried::Refused(doing, Verdict::KillProcess),
        (_, doing, failed) => Tried::Refused(doing, Verdict::Errno(-failed as u16)),
    };
    // SAFETY: the mapping was made above, and nobody has a reference into it any more.
    unsafe { libc::munmap(mapped, len) };
    tried
}

/// Children that end meanwhile leave nothing to wait for.
fn with_children_unasked<T>(f: impl FnOnce() -> T) -> T {
    // SAFETY: structures of ours; what is ignored has no handler.
    unsafe {
        let (mut ignore, mut before): (libc::sigaction, libc::sigaction) = (std::mem::zeroed(), std::mem::zeroed());
        ignore.sa_sigaction = libc::SIG_IGN;
        libc::sigaction(libc::SIGCHLD, &ignore, &mut before);
        let result = f();
        libc::sigaction(libc::SIGCHLD, &before, null_mut());
        result
    }
}

/// Makes a process with memory of its own, which does this and ends; its number, or an error. With [`libc::CLONE_VFORK`] it has ended
/// by then.
fn begin(flags: i32, run: impl FnOnce()) -> i64 {
    // Not fork: nothing that is to be done in a child of this program is to be done here.
    // SAFETY: the child has a copy of all memory and one thread; what it runs makes system calls only.
    match unsafe { libc::syscall(libc::SYS_clone, flags | libc::SIGCHLD, 0, 0, 0, 0) } {
        0 => {
            run();
            // SAFETY: ends the process.
            unsafe { libc::_exit(0) }
        }
        -1 => -i64::from(errno()),
        pid => pid,
    }
}

fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EPERM)
}

impl Sheet {
    /// Makes a call that may be refused, and tells of it if it was: it should come to one of these error numbers, or succeed (0).
    fn make(&self, nr: i64, args: [u64; 4], expected: &[i32]) -> Option<i64> {
        self.doing.store(nr as u32, SeqCst);
        // SAFETY: the callers pass addresses of objects of theirs, or calls that have nothing to do with memory.
        let r = unsafe { libc::syscall(nr, args[0], args[1], args[2], args[3], 0, 0) };
        let number = if r < 0 { errno() } else { 0 };
        if !expected.contains(&number) {
            self.failed.store(-i64::from(number), SeqCst);
            return None;
        }
        self.doing.store(0, SeqCst);
        Some(r)
    }

    fn answer(&self, answer: i64) {
        if let Some(place) = self.answers.get(self.at.load(SeqCst) as usize) {
            place.store(answer, SeqCst);
        }
    }
}

/// In the tracer: has one process after the other try what is left.
fn trace_all(sheet: &Sheet, questions: &[Question]) {
    // First what it does itself, where that has no effect: there is no child to wait for, and nobody to trace.
    let wait = [u64::MAX, 0, libc::WNOHANG as u64, 0];
    let probes: [(i64, [u64; 4], &[i32]); 3] = [
        (libc::SYS_rt_sigaction, [libc::SIGCHLD as u64, 0, 0, 8], &[0]),
        (libc::SYS_wait4, wait, &[libc::ECHILD]),
        (libc::SYS_ptrace, [libc::PTRACE_SETOPTIONS as u64, 0, 0, 0], &[libc::ESRCH, libc::EIO]),
    ];
    if probes.iter().any(|(nr, args, expected)| sheet.make(*nr, *args, expected).is_none()) {
        return;
    }
    // SAFETY: the default has no handler.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
    let mut next = 0;
    while next < questions.len() {
        sheet.at.store(next as u32, SeqCst);
        sheet.stage.store(stage::BEGUN, SeqCst);
        sheet.doing.store(libc::SYS_clone as u32, SeqCst);
        let pid = begin(0, || try_from(sheet, questions, next));
        if pid < 0 {
            sheet.failed.store(pid, SeqCst);
            return;
        }
        follow(sheet, pid as libc::pid_t);
        match sheet.stage.load(SeqCst) {
            // It has ended in the middle, for what it tried.
            stage::TRYING => sheet.answer(answer::KILLED),
            _ => return,
        }
        next = sheet.at.load(SeqCst) as usize + 1;
    }
    sheet.stage.store(stage::DONE, SeqCst);
}

/// Leaves out each call that the process is allowed, until it has ended.
fn follow(sheet: &Sheet, pid: libc::pid_t) {
    const PTRACE_EVENT_SECCOMP: i32 = 7;
    const OPTIONS: i32 = libc::PTRACE_O_TRACESECCOMP | libc::PTRACE_O_EXITKILL;
    let mut is_first = true;
    loop {
        let mut status = 0;
        // SAFETY: `status` is an int of ours.
        if unsafe { libc::waitpid(pid, &mut status, libc::__WALL) } != pid || !libc::WIFSTOPPED(status) {
            return;
        }
        // SAFETY: requests about our own tracee, with objects of ours of the size that they are about.
        unsafe {
            if std::mem::take(&mut is_first) {
                libc::ptrace(libc::PTRACE_SETOPTIONS, pid, null_mut::<u8>(), OPTIONS);
            } else if status >> 16 == PTRACE_EVENT_SECCOMP {
                if sheet.stage.load(SeqCst) == stage::DONE {
                    libc::kill(pid, libc::SIGKILL);
                    continue;
                }
                sheet.answer(answer::ALLOWED);
                let mut regs = MaybeUninit::<libc::user_regs_struct>::zeroed();
                libc::ptrace(libc::PTRACE_GETREGS, pid, null_mut::<u8>(), regs.as_mut_ptr());
                let mut regs = regs.assume_init();
                regs.orig_rax = u64::MAX;
                libc::ptrace(libc::PTRACE_SETREGS, pid, null_mut::<u8>(), &raw const regs);
            } else if libc::WSTOPSIG(status) == libc::SIGSYS {
                let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
                libc::ptrace(libc::PTRACE_GETSIGINFO, pid, null_mut::<u8>(), info.as_mut_ptr());
                sheet.answer(answer::TRAPPED | i64::from(info.assume_init().si_errno as u16));
            } else if libc::WSTOPSIG(status) != libc::SIGSTOP {
                // Nothing that it does can meet another one.
                libc::kill(pid, libc::SIGKILL);
                continue;
            }
            libc::ptrace(libc::PTRACE_CONT, pid, null_mut::<u8>(), null_mut::<u8>());
        }
    }
}

/// In the process that tries: from this question on, until one of them ends it.
fn try_from(sheet: &Sheet, questions: &[Question], first: usize) {
    const ASK_TRACER: u32 = 0x7ff0_0000;
    const RETURN: u16 = 0x06;
    const SET_MODE_FILTER: u64 = 1;
    const NO_TRACING: &[i32] = &[0, libc::EPERM];
    let ask = [Instruction { code: RETURN, jt: 0, jf: 0, k: ASK_TRACER }];
    // struct sock_fprog
    let program = [ask.len() as u64, ask.as_ptr() as u64];
    let traced = sheet.make(libc::SYS_ptrace, [libc::PTRACE_TRACEME as u64, 0, 0, 0], NO_TRACING);
    if traced.is_some_and(|r| r != 0) {
        sheet.stage.store(stage::NO_TRACING, SeqCst);
        return;
    }
    let own = sheet.make(libc::SYS_getpid, [0; 4], &[0]);
    let Some(own) = traced.and(own) else { return };
    let calls: [(i64, [u64; 4]); 3] = [
        (libc::SYS_kill, [own as u64, libc::SIGSTOP as u64, 0, 0]),
        (libc::SYS_prctl, [libc::PR_SET_NO_NEW_PRIVS as u64, 1, 0, 0]),
        (libc::SYS_seccomp, [SET_MODE_FILTER, 0, program.as_ptr() as u64, 0]),
    ];
    if calls.iter().any(|(nr, args)| sheet.make(*nr, *args, &[0]).is_none()) {
        return;
    }
    sheet.stage.store(stage::TRYING, SeqCst);
    for (n, question) in questions.iter().enumerate().skip(first) {
        sheet.at.store(n as u32, SeqCst);
        let a = question.args.map(|arg| arg.unwrap_or(0));
        // SAFETY: the call is not made, or its arguments are no addresses.
        let r = unsafe { libc::syscall(question.nr.into(), a[0], a[1], a[2], a[3], a[4], a[5]) };
        if sheet.answers[n].load(SeqCst) == answer::NONE {
            // Nobody was asked and no signal came: a filter has answered.
            let number = if r < 0 { errno() } else { 0 };
            sheet.answers[n].store(answer::FAILED | i64::from(number as u16), SeqCst);
        }
    }
    sheet.stage.store(stage::DONE, SeqCst);
    // Whichever call: it is asked about, and is its end.
    // SAFETY: makes no call.
    unsafe { libc::syscall(libc::SYS_getpid) };
}
