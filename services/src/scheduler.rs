//! Threads of components: blocked and woken, and one of them at a time has the processor.
//!
//! Priority, wake-ups that nobody waited for yet, and who has the processor are resources, for nobody's descriptor alone says
//! them: others wake a thread, and give it the processor. Who waits is not kept: those threads call again.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use outlast_glue_rt::{Resources, Stop};

use crate::stubs::scheduler::Service;
use crate::timer::now;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Processor {
    Elsewhere,
    /// Handed to it while it waited: it does not know yet.
    Handed,
    Taken,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Thread {
    priority: u32,
    woken: bool,
    processor: Processor,
}

#[derive(Clone, Default)]
pub struct Threads {
    threads: Option<HashMap<u64, Thread>>,
    /// Those that wait for the processor, in the order in which they came.
    waiting: Vec<u64>,
    woken: Vec<u64>,
}

impl Thread {
    fn to_bytes(self) -> [u8; 6] {
        let [a, b, c, d] = self.priority.to_le_bytes();
        [a, b, c, d, u8::from(self.woken), self.processor as u8]
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let &[a, b, c, d, woken, processor] = bytes else { return None };
        let processor = match processor {
            0 => Processor::Elsewhere,
            1 => Processor::Handed,
            _ => Processor::Taken,
        };
        Some(Self { priority: u32::from_le_bytes([a, b, c, d]), woken: woken == 1, processor })
    }
}

impl Threads {
    fn threads(&mut self, resources: &Resources) -> &mut HashMap<u64, Thread> {
        self.threads.get_or_insert_with(|| {
            resources.all().filter_map(|(id, name)| Some((id, Thread::from_bytes(name)?))).collect()
        })
    }

    fn thread(&mut self, resources: &Resources, thread: u64) -> Result<Thread, Stop> {
        self.threads(resources).get(&thread).copied().ok_or(Stop::Errno(libc::EBADF))
    }

    fn set(&mut self, resources: &mut Resources, id: u64, thread: Thread) -> Result<(), Stop> {
        resources.rename(id, &thread.to_bytes())?;
        self.threads(resources).insert(id, thread);
        Ok(())
    }

    fn has_processor(&mut self, resources: &Resources) -> Option<u64> {
        let mut all = self.threads(resources).iter();
        all.find(|(_, thread)| thread.processor != Processor::Elsewhere).map(|(id, _)| *id)
    }
}

impl Service for Threads {
    fn sched_create(&mut self, resources: &mut Resources, _client: u32, priority: u32, id: u64) -> Result<u64, Stop> {
        // Created again it is as it was left.
        if !self.threads(resources).contains_key(&id) {
            let thread = Thread { priority, woken: false, processor: Processor::Elsewhere };
            resources.create(id, &thread.to_bytes())?;
            self.threads(resources).insert(id, thread);
        }
        Ok(id)
    }

    fn sched_block(&mut self, resources: &mut Resources, _client: u32, id: u64, until: u64) -> Result<i32, Stop> {
        let thread = self.thread(resources, id)?;
        if thread.woken {
            self.set(resources, id, Thread { woken: false, ..thread })?;
            return Ok(0);
        }
        match until.saturating_sub(now()) {
            _ if until == 0 => Err(Stop::Wait { until: None }),
            0 => Ok(1),
            left => Err(Stop::Wait { until: Instant::now().checked_add(Duration::from_nanos(left)) }),
        }
    }

    fn sched_wakeup(&mut self, resources: &mut Resources, _client: u32, id: u64) -> Result<i32, Stop> {
        let thread = self.thread(resources, id)?;
        self.set(resources, id, Thread { woken: true, ..thread })?;
        Ok(0)
    }

    fn sched_take(&mut self, resources: &mut Resources, _client: u32, id: u64) -> Result<i32, Stop> {
        let thread = self.thread(resources, id)?;
        match (thread.processor, self.has_processor(resources)) {
            (Processor::Taken, _) => return Err(Stop::Errno(libc::EDEADLK)),
            (Processor::Elsewhere, Some(_)) => {
                if !self.waiting.contains(&id) {
                    self.waiting.push(id);
                }
                return Err(Stop::Wait { until: None });
            }
            _ => {}
        }
        self.set(resources, id, Thread { processor: Processor::Taken, ..thread })?;
        self.waiting.retain(|other| *other != id);
        Ok(0)
    }

    fn sched_release(&mut self, resources: &mut Resources, _client: u32, id: u64) -> Result<i32, Stop> {
        let thread = self.thread(resources, id)?;
        if thread.processor != Processor::Taken {
            return Err(Stop::Errno(libc::EPERM));
        }
        let mut next: Option<(u64, Thread)> = None;
        for id in self.waiting.clone() {
            // One that was closed meanwhile waits no more.
            let Ok(thread) = self.thread(resources, id) else { continue };
            if next.is_none_or(|(_, best)| thread.priority > best.priority) {
                next = Some((id, thread));
            }
        }
        if let Some((next, thread)) = next {
            self.set(resources, next, Thread { processor: Processor::Handed, ..thread })?;
            self.waiting.retain(|other| *other != next);
            self.woken.push(next);
        }
        self.set(resources, id, Thread { processor: Processor::Elsewhere, ..thread })?;
        Ok(0)
    }

    fn sched_priority(&mut self, resources: &mut Resources, _client: u32, id: u64, priority: u32) -> Result<i32, Stop> {
        let thread = self.thread(resources, id)?;
        self.set(resources, id, Thread { priority, ..thread })?;
        Ok(0)
    }

    fn sched_waits(&mut self, resources: &mut Resources, _client: u32, id: u64) -> Result<i32, Stop> {
        self.thread(resources, id)?;
        Ok(i32::from(self.waiting.contains(&id)))
    }

    fn sched_free(&mut self, resources: &mut Resources, _client: u32, id: u64) -> Result<i32, Stop> {
        let thread = self.thread(resources, id)?;
        if thread.processor != Processor::Elsewhere {
            return Err(Stop::Errno(libc::EBUSY));
        }
        resources.remove(id)?;
        self.threads(resources).remove(&id);
        self.waiting.retain(|other| *other != id);
        Ok(0)
    }

    fn woken(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.woken)
    }
}
