//! A kernel that is stuck in one system call, on one processor, for tests.

use outlast_supervisor::bpf::assembly::{ended, insn, op, wide, MAP_VALUE, R1, R2, R3};
use outlast_supervisor::bpf::{self, Instruction};
use rustix::thread::{gettid, sched_setaffinity, CpuSet};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{mpsc, Arc};
use std::thread::{available_parallelism, spawn, JoinHandle};
use std::time::{Duration, Instant};

const HALF: usize = 1 << 20;
/// How long, roughly.
pub const STUCK: Duration = Duration::from_millis(1200);

/// A program that copies a mebibyte so often, without a place where the kernel would switch; and what it copies in.
fn copies(times: usize) -> Option<(OwnedFd, OwnedFd)> {
    let map = bpf::create_mappable(b"outlast_test", 2 * HALF).ok()?;
    let mut code: Vec<Instruction> = Vec::new();
    for _ in 0..times {
        code.extend(wide(R1, MAP_VALUE, map.as_raw_fd() as u64));
        code.push(insn(op::MOVE_VALUE, R2, 0, 0, HALF as i32));
        code.extend([insn(op::MOVE, R3, R1, 0, 0), insn(op::ADD_VALUE, R3, 0, 0, HALF as i32)]);
        code.push(insn(op::CALL, 0, 0, 0, 113));
    }
    Some((bpf::load(b"outlast_test", &ended(code), c"Dual MIT/GPL").ok()?, map))
}

/// Has the calling thread run on these only.
pub fn pin(processors: impl Iterator<Item = usize>) {
    let mut set = CpuSet::new();
    processors.for_each(|processor| set.set(processor));
    sched_setaffinity(None, &set).unwrap();
}

fn involuntary_switches() -> i64 {
    // SAFETY: zeroes are valid, and the kernel fills the structure.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &mut usage);
        usage.ru_nivcsw
    }
}

/// The last processor, which is stuck while another thread wants to run there all the time.
pub struct Stuck {
    pub processor: usize,
    /// Who is in that call.
    pub thread: i32,
    call: JoinHandle<i64>,
    waits: JoinHandle<()>,
    is_done: Arc<AtomicBool>,
}

impl Stuck {
    /// None: not here.
    pub fn begin() -> Option<Self> {
        let processors = available_parallelism().map_or(1, usize::from);
        let (one, _map) = copies(16).filter(|_| processors > 1)?;
        let processor = processors - 1;
        let is_done = Arc::new(AtomicBool::new(false));
        let of_thread = Arc::clone(&is_done);
        let waits = spawn(move || {
            pin(std::iter::once(processor));
            while !of_thread.load(Relaxed) {}
        });
        let (number, said) = mpsc::channel();
        let call = spawn(move || {
            pin(std::iter::once(processor));
            let run = || {
                let began = Instant::now();
                bpf::run(one.as_fd(), &[0], None).unwrap();
                began.elapsed()
            };
            // In most of them somebody else runs in between.
            let took = (0..16).map(|_| run()).min().unwrap_or_default();
            let times = STUCK.as_micros() * 16 / took.as_micros().max(1);
            let (long, _map) = copies(times.clamp(16, 50_000) as usize).unwrap();
            number.send(gettid().as_raw_nonzero().get()).unwrap();
            let before = involuntary_switches();
            bpf::run(long.as_fd(), &[0], None).unwrap();
            involuntary_switches() - before
        });
        let thread = said.recv().ok()?;
        Some(Self { processor, thread, call, waits, is_done })
    }

    pub fn is_over(&self) -> bool {
        self.call.is_finished()
    }

    /// False: this kernel switches in the middle of its own work.
    pub fn was_stuck(self) -> bool {
        self.is_done.store(true, Relaxed);
        self.waits.join().unwrap();
        // The switch back to somebody else comes at the end of the call.
        self.call.join().unwrap() <= 1
    }
}
