//! The kernel's run queues, read by a BPF program that is attached to nothing: it runs when it is asked to, for one processor at a time, and
//! leaves what it read in memory that we map. So a context switch costs what it did, however many there are.

use outlast_interfaces::schl::{Processor, Running};
use outlast_supervisor::bpf::assembly::{ended, insn, op, wide, MAP_VALUE, R0, R1, R2, R6, R7, R8, TO_END, VARIABLE};
use outlast_supervisor::bpf::types::{Field, Types};
use outlast_supervisor::bpf::{self, Instruction};
use rustix::fs::stat;
use rustix::io::Errno;
use rustix::mm::{mmap, munmap, MapFlags, ProtFlags};
use std::ffi::CStr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering::Acquire};
use std::time::Duration;

const NAME: &[u8] = b"outlast_queues";
/// The kernel shows its structures to programs under the GPL only. Outlast's license lets this one be under it as well.
const LICENSE: &CStr = c"Dual MIT/GPL";
/// Helper `bpf_per_cpu_ptr`.
const PER_CPU_PTR: i32 = 153;
const PAGE: usize = 4096;
/// Kernel priorities below this are those of real-time and deadline threads.
const FIRST_FAIR: i32 = 100;

/// What is read, in this order, each into a word.
const WORDS: usize = 9;

/// Where that lies in this kernel.
struct Places {
    run_queues: u32,
    of_queue: [Field; 4],
    current: Field,
    of_thread: [Field; 5],
}

impl Places {
    fn find(types: &Types) -> Option<Self> {
        let queue = |path: &[&str]| types.field("rq", path);
        let thread = |name: &str| types.field("task_struct", &[name]);
        // Since Linux 6.12 a thread that sleeps may stay in the queue for a while, and is counted there; how many of them do
        // so is told in one of two ways.
        let queued = queue(&["cfs", "h_nr_queued"]).or_else(|| queue(&["cfs", "h_nr_running"]))?;
        let [most, less] = match (queue(&["cfs", "h_nr_runnable"]), queue(&["cfs", "h_nr_delayed"])) {
            (Some(runnable), _) => [queued, runnable],
            (None, Some(delayed)) => [delayed, Field { offset: 0, size: 0 }],
            (None, None) => [queued, queued],
        };
        Some(Self {
            run_queues: types.variable("runqueues")?,
            of_queue: [queue(&["nr_switches"])?, queue(&["nr_running"])?, most, less],
            current: queue(&["curr"])?,
            of_thread: [thread("pid")?, thread("tgid")?, thread("utime")?, thread("stime")?, thread("prio")?],
        })
    }

    /// The instructions.
    fn program(&self, map: i32) -> Option<Vec<Instruction>> {
        let mut code = vec![insn(op::LOAD_64, R2, R1, 0, 0)];
        // R7 = per_cpu_ptr(&runqueues, context[0]);
        code.extend(wide(R1, VARIABLE, self.run_queues.into()));
        code.extend([
            insn(op::CALL, 0, 0, 0, PER_CPU_PTR),
            insn(op::IF_EQUAL_VALUE, R0, 0, TO_END, 0),
            insn(op::MOVE, R7, R0, 0, 0),
        ]);
        // R8 = words;
        code.extend(wide(R8, MAP_VALUE, map as u32 as u64));
        // R6 = R7->curr;
        code.push(load(R6, R7, self.current)?);
        let of_queue = self.of_queue.iter().map(|field| (R7, field));
        for (n, (from, field)) in of_queue.chain(self.of_thread.iter().map(|field| (R6, field))).enumerate() {
            // words[n] = from->field;
            let value = if field.size == 0 { insn(op::MOVE_VALUE, R1, 0, 0, 0) } else { load(R1, from, *field)? };
            code.extend([value, insn(op::STORE_64, R8, R1, 8 * n as i16, 0)]);
        }
        Some(ended(code))
    }
}

fn load(to: u8, from: u8, field: Field) -> Option<Instruction> {
    let code = match field.size {
        4 => op::LOAD_32,
        8 => op::LOAD_64,
        _ => return None,
    };
    Some(insn(code, to, from, i16::try_from(field.offset).ok()?, 0))
}

/// The run queues of all processors.
pub struct RunQueues {
    program: OwnedFd,
    words: NonNull<[AtomicU64; WORDS]>,
    _map: OwnedFd,
    processors: Vec<u32>,
}

impl RunQueues {
    /// Has the kernel check the program.
    ///
    /// # Errors
    /// In words: not for this user, or not with this kernel.
    pub fn open() -> Result<Self, String> {
        let types = Types::of_the_kernel().ok_or("the kernel does not describe its types (CONFIG_DEBUG_INFO_BTF)")?;
        let places = Places::find(&types).ok_or("the kernel's run queues are others than are known")?;
        let in_words = |e: Errno| format!("BPF is not allowed here: {e}");
        let map = bpf::create_mappable(NAME, PAGE).map_err(in_words)?;
        let code = places.program(map.as_raw_fd()).ok_or("the kernel's run queues are others than are known")?;
        let program = bpf::load(NAME, &code, LICENSE).map_err(in_words)?;
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
        let words = unsafe { mmap(std::ptr::null_mut(), PAGE, ProtFlags::READ, MapFlags::SHARED, &map, 0) };
        let words = NonNull::new(words.map_err(in_words)?.cast()).ok_or("no mapping")?;
        let processors = (0..65536).take_while(|n| stat(format!("/sys/devices/system/cpu/cpu{n}")).is_ok()).collect();
        Ok(Self { program, words, _map: map, processors })
    }

    /// What all of them are about now.
    pub fn look(&self) -> Vec<Processor> {
        self.processors.iter().filter_map(|number| self.look_at(*number)).collect()
    }

    fn look_at(&self, number: u32) -> Option<Processor> {
        bpf::run(self.program.as_fd(), &[number.into()]).ok()?;
        // SAFETY: the mapping lives as long as `self`, and the kernel writes to it while it runs the program only.
        let words = unsafe { self.words.as_ref() }.each_ref().map(|word| word.load(Acquire));
        let [switches, running, most, less, thread, process, user, kernel, priority] = words;
        let runs = (thread != 0).then_some(Running {
            thread: thread as i32,
            process: process as i32,
            user: Duration::from_nanos(user),
            kernel: Duration::from_nanos(kernel),
            is_realtime: (priority as i32) < FIRST_FAIR,
        });
        let waiting = running.saturating_sub(most.saturating_sub(less)).saturating_sub(runs.is_some().into());
        Some(Processor { number, switches, waiting: waiting as u32, runs })
    }
}

impl Drop for RunQueues {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `open` with this length, and borrows of it end with `self`.
        let unmapped = unsafe { munmap(self.words.as_ptr().cast(), PAGE) };
        debug_assert!(unmapped.is_ok());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::thread::{gettid, sched_getaffinity, sched_getcpu, sched_setaffinity, CpuSet};

    #[test]
    fn the_kernel_shows_who_runs_and_that_it_switches() {
        let queues = match RunQueues::open() {
            Ok(queues) => queues,
            Err(why) => return println!("skipped: {why}"),
        };
        let before = sched_getaffinity(None).unwrap();
        let own = sched_getcpu();
        let mut only = CpuSet::new();
        only.set(own);
        sched_setaffinity(None, &only).unwrap();
        let find = |all: Vec<Processor>| all.into_iter().find(|processor| processor.number as usize == own).unwrap();
        let first = find(queues.look());
        let began = std::time::Instant::now();
        while began.elapsed() < Duration::from_millis(30) {}
        let runs = find(queues.look()).runs.expect("it is not idle while it looks");
        std::thread::sleep(Duration::from_millis(5));
        let last = find(queues.look());
        sched_setaffinity(None, &before).unwrap();
        assert_eq!((runs.thread, runs.process as u32), (gettid().as_raw_nonzero().get(), std::process::id()));
        assert!(runs.user > Duration::ZERO && runs.user < Duration::from_secs(5) && !runs.is_realtime, "{runs:?}");
        assert!(last.switches > first.switches && last.switches - first.switches < 1_000_000, "{first:?} {last:?}");
        assert!(last.waiting < 10_000, "{last:?}");
    }

    #[test]
    fn places_of_older_kernels_are_found_or_their_lack_is() {
        let field = Field { offset: 16, size: 4 };
        let wide = Field { offset: 8, size: 8 };
        let mut places =
            Places { run_queues: 7, of_queue: [wide, field, field, field], current: wide, of_thread: [field; 5] };
        let code = places.program(3).expect("every field can be loaded");
        assert_eq!(code.last().map(|last| last.code), Some(op::EXIT));
        assert!(code.iter().all(|instruction| instruction.offset != TO_END));
        places.of_thread[0] = Field { offset: 0, size: 16 };
        assert_eq!(places.program(3), None);
        places.of_thread[0] = Field { offset: 40_000, size: 4 };
        assert_eq!(places.program(3), None);
    }
}
