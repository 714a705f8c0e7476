//! The kernel's run queues, read by a BPF program that is attached to nothing: it runs when it is asked to, for one processor at a time, and
//! leaves what it read in memory that we map. So a context switch costs what it did, however many there are.
//!
//! Where a processor's queue lies is learnt once, by another program, which runs on that processor for an instant: whoever runs
//! there knows its queue.

use outlast_interfaces::schl::{Processor, Running};
use outlast_supervisor::bpf::assembly::{ended, insn, op, wide, MAP_VALUE, R0, R1, R10, R2, R3, R6, R7, R8, R9};
use outlast_supervisor::bpf::types::{Field, Types};
use outlast_supervisor::bpf::{self, Instruction};
use rustix::fs::stat;
use rustix::io::Errno;
use rustix::mm::{mmap, munmap, MapFlags, ProtFlags};
use std::collections::BTreeMap;
use std::ffi::CStr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering::Acquire};
use std::time::Duration;

const NAME: &[u8] = b"outlast_queues";
/// The kernel shows its structures to programs under the GPL only. Outlast's license lets these be under it as well.
const LICENSE: &CStr = c"Dual MIT/GPL";
/// Helpers `bpf_probe_read_kernel` and `bpf_get_current_task_btf`.
const PROBE_READ_KERNEL: i32 = 113;
const GET_CURRENT_TASK: i32 = 158;
const PAGE: usize = 4096;
/// Kernel priorities below this are those of real-time and deadline threads.
const FIRST_FAIR: i32 = 100;
/// The bits of kernel priorities of real-time threads but for the highest, which is that of who looks, here and in other daemons.
const REAL_TIME: u128 = (1 << 99) - 2;
/// How many looks a processor that is off is let alone.
const LOOKS: u32 = 64;

/// What is read, in this order, each into a word: of the queue, and of who runs.
const OF_QUEUE: usize = 6;
const OF_THREAD: usize = 6;
const WORDS: usize = OF_QUEUE + OF_THREAD;

/// Where that lies in this kernel.
struct Places {
    /// From a thread to its processor's queue, in steps, and which processor that is.
    to_queue: [Field; 2],
    processor: Field,
    of_queue: [Field; OF_QUEUE],
    /// Who runs.
    current: Field,
    of_thread: [Field; OF_THREAD],
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
        // A bit for each priority of which there are real-time threads, in two words; where that is not known nobody makes way for them.
        let priorities = queue(&["rt", "active", "bitmap"]).filter(|bitmap| bitmap.size == 16);
        let word = |n: u32| match priorities {
            Some(bitmap) => Field { offset: bitmap.offset + 8 * n, size: 8 },
            None => Field { offset: 0, size: 0 },
        };
        Some(Self {
            to_queue: [types.field("task_struct", &["se", "cfs_rq"])?, types.field("cfs_rq", &["rq"])?],
            processor: queue(&["cpu"])?,
            of_queue: [queue(&["nr_switches"])?, queue(&["nr_running"])?, most, less, word(0), word(1)],
            current: queue(&["curr"])?,
            of_thread: [
                thread("pid")?,
                thread("tgid")?,
                thread("utime")?,
                thread("stime")?,
                thread("prio")?,
                thread("nvcsw")?,
            ],
        })
    }

    /// What finds the queue of the processor on which it runs: into the first word its address, into the next one the processor's number.
    fn finder(&self, map: i32) -> Option<Vec<Instruction>> {
        // R6 = get_current_task_btf()->se.cfs_rq->rq;
        let mut code = vec![insn(op::CALL, 0, 0, 0, GET_CURRENT_TASK)];
        code.extend([load(R6, R0, self.to_queue[0])?, load(R6, R6, self.to_queue[1])?]);
        // words[0] = R6; words[1] = R6->cpu;
        code.extend(wide(R8, MAP_VALUE, map as u32 as u64));
        code.extend([insn(op::STORE_64, R8, R6, 0, 0), load(R1, R6, self.processor)?]);
        code.push(insn(op::STORE_64, R8, R1, 8, 0));
        Some(ended(code))
    }

    /// What reads the queue whose address is the first word of its context.
    fn reader(&self, map: i32) -> Option<Vec<Instruction>> {
        // R9 = context[0]; R8 = words;
        let mut code = vec![insn(op::LOAD_64, R9, R1, 0, 0)];
        code.extend(wide(R8, MAP_VALUE, map as u32 as u64));
        // R7 = R9->curr;
        code.extend(read(R7, R9, self.current)?);
        let of_queue = self.of_queue.iter().map(|field| (R9, field));
        for (n, (from, field)) in of_queue.chain(self.of_thread.iter().map(|field| (R7, field))).enumerate() {
            // words[n] = from->field;
            code.extend(read(R1, from, *field)?);
            code.push(insn(op::STORE_64, R8, R1, 8 * n as i16, 0));
        }
        Some(ended(code))
    }
}

/// Loads a field from behind a pointer whose type the kernel knows.
fn load(to: u8, from: u8, field: Field) -> Option<Instruction> {
    let code = match field.size {
        4 => op::LOAD_32,
        8 => op::LOAD_64,
        _ => return None,
    };
    Some(insn(code, to, from, i16::try_from(field.offset).ok()?, 0))
}

/// The same from any address; what cannot be read is zero.
fn read(to: u8, from: u8, field: Field) -> Option<Vec<Instruction>> {
    if field.size == 0 {
        return Some(vec![insn(op::MOVE_VALUE, to, 0, 0, 0)]);
    }
    Some(vec![
        insn(op::MOVE, R1, R10, 0, 0),
        insn(op::ADD_VALUE, R1, 0, 0, -8),
        insn(op::MOVE_VALUE, R2, 0, 0, field.size as i32),
        insn(op::MOVE, R3, from, 0, 0),
        insn(op::ADD_VALUE, R3, 0, 0, i32::try_from(field.offset).ok()?),
        insn(op::CALL, 0, 0, 0, PROBE_READ_KERNEL),
        load(to, R10, Field { offset: 0, size: field.size }).map(|load| Instruction { offset: -8, ..load })?,
    ])
}

/// The run queues of all processors.
pub struct RunQueues {
    finder: OwnedFd,
    reader: OwnedFd,
    words: NonNull<[AtomicU64; WORDS]>,
    _map: OwnedFd,
    /// Where the queue of each processor lies that has been on since this began.
    queues: BTreeMap<u32, u64>,
    /// All that there are.
    processors: Vec<u32>,
    /// Those that real-time threads had or waited for at the last look.
    taken: Vec<u32>,
    looks: u32,
}

impl RunQueues {
    /// Has the kernel check the programs.
    ///
    /// # Errors
    /// In words: not for this user, or not with this kernel.
    pub fn open() -> Result<Self, String> {
        let types = Types::of_the_kernel().ok_or("the kernel does not describe its types (CONFIG_DEBUG_INFO_BTF)")?;
        let unknown = "the kernel's run queues are others than are known";
        let places = Places::find(&types).ok_or(unknown)?;
        let in_words = |e: Errno| format!("BPF is not allowed here: {e}");
        let map = bpf::create_mappable(NAME, PAGE).map_err(in_words)?;
        let load = |code: Option<Vec<Instruction>>| {
            bpf::load(NAME, &code.ok_or_else(|| unknown.to_string())?, LICENSE).map_err(in_words)
        };
        let (finder, reader) = (load(places.finder(map.as_raw_fd()))?, load(places.reader(map.as_raw_fd()))?);
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
        let words = unsafe { mmap(std::ptr::null_mut(), PAGE, ProtFlags::READ, MapFlags::SHARED, &map, 0) };
        let words = NonNull::new(words.map_err(in_words)?.cast()).ok_or("no mapping")?;
        let processors = (0..65536).take_while(|n| stat(format!("/sys/devices/system/cpu/cpu{n}")).is_ok()).collect();
        let (queues, taken) = (BTreeMap::new(), Vec::new());
        let mut this = Self { finder, reader, words, _map: map, queues, processors, taken, looks: 0 };
        this.find();
        if this.queues.is_empty() {
            return Err(unknown.into());
        }
        Ok(this)
    }

    /// What all of them are about now.
    pub fn look(&mut self) -> Vec<Processor> {
        self.looks = self.looks.wrapping_add(1);
        if self.queues.len() < self.processors.len() && self.looks % LOOKS == 0 {
            self.find();
        }
        self.taken.clear();
        let queues: Vec<_> = self.queues.iter().map(|(number, queue)| (*number, *queue)).collect();
        queues.into_iter().filter_map(|(number, queue)| self.look_at(number, queue)).collect()
    }

    /// The processors that real-time threads had or waited for at the last look. Those of the highest priority do not count.
    pub fn taken(&self) -> &[u32] {
        &self.taken
    }

    /// Finds the queues that are not known yet; a processor that is off has none to find.
    fn find(&mut self) {
        let unknown = self.processors.iter().filter(|number| !self.queues.contains_key(number));
        for number in unknown.copied().collect::<Vec<_>>() {
            let has_run = bpf::run(self.finder.as_fd(), &[0], Some(number)).is_ok();
            let [queue, processor, ..] = self.words();
            if has_run && processor == u64::from(number) && queue != 0 {
                self.queues.insert(number, queue);
            }
        }
    }

    fn look_at(&mut self, number: u32, queue: u64) -> Option<Processor> {
        bpf::run(self.reader.as_fd(), &[queue], None).ok()?;
        let [switches, running, most, less, low, high, thread, process, user, kernel, priority, yields] = self.words();
        let is_taken = (u128::from(high) << 64 | u128::from(low)) & REAL_TIME != 0;
        if is_taken {
            self.taken.push(number);
        }
        let runs = (thread != 0).then_some(Running {
            thread: thread as i32,
            process: process as i32,
            user: Duration::from_nanos(user),
            kernel: Duration::from_nanos(kernel),
            is_realtime: (priority as i32) < FIRST_FAIR,
            yields,
        });
        let waiting = running.saturating_sub(most.saturating_sub(less)).saturating_sub(runs.is_some().into());
        let is_preempted = is_taken && runs.is_some() && priority as i32 <= 0;
        Some(Processor { number, switches, waiting: waiting as u32, runs, is_preempted })
    }

    fn words(&self) -> [u64; WORDS] {
        // SAFETY: the mapping lives as long as `self`; the kernel writes to it while it runs a program only.
        unsafe { self.words.as_ref() }.each_ref().map(|word| word.load(Acquire))
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
    use outlast_supervisor::bpf::assembly::TO_END;
    use rustix::thread::{gettid, sched_getaffinity, sched_getcpu, sched_setaffinity, CpuSet};

    #[test]
    fn the_kernel_shows_who_runs_and_that_it_switches() {
        let mut queues = match RunQueues::open() {
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
        // The kernel counts by what its ticks meet, and others may have the processor meanwhile.
        let runs = loop {
            let pause = std::time::Instant::now();
            while pause.elapsed() < Duration::from_millis(30) {}
            let runs = find(queues.look()).runs.expect("it is not idle while it looks");
            if !runs.user.is_zero() || began.elapsed() > Duration::from_secs(20) {
                break runs;
            }
        };
        std::thread::sleep(Duration::from_millis(5));
        let last = find(queues.look());
        sched_setaffinity(None, &before).unwrap();
        assert_eq!((runs.thread, runs.process as u32), (gettid().as_raw_nonzero().get(), std::process::id()));
        assert!(runs.user > Duration::ZERO && runs.user < Duration::from_secs(30) && !runs.is_realtime, "{runs:?}");
        assert!(last.switches > first.switches && last.switches - first.switches < 1_000_000, "{first:?} {last:?}");
        assert!(last.waiting < 10_000, "{last:?}");
    }

    #[test]
    fn a_field_that_is_no_number_or_too_far_away_is_refused() {
        let number = Field { offset: 16, size: 4 };
        let mut places = Places {
            to_queue: [Field { offset: 8, size: 8 }; 2],
            processor: number,
            of_queue: [number; OF_QUEUE],
            current: Field { offset: 2720, size: 8 },
            of_thread: [number; OF_THREAD],
        };
        for code in [places.finder(3), places.reader(3)] {
            let code = code.expect("every field can be read");
            assert_eq!(code.last().map(|last| last.code), Some(op::EXIT));
            assert!(code.iter().all(|instruction| instruction.offset != TO_END));
        }
        places.of_thread[0] = Field { offset: 0, size: 16 };
        assert_eq!(places.reader(3), None);
        places.processor = Field { offset: 40_000, size: 4 };
        assert_eq!(places.finder(3), None);
    }
}
