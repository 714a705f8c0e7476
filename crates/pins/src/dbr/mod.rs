//! The pin `dbr`: counters of the kernel that stand for debug registers.

mod event;

use crate::desk::Shared;
use event::{Counter, Meeting};
use outlast_core::{Event, Failure, Payload, Pin};
use outlast_interfaces::dbr::{self, Access, Hit, Unwatch, Watch, MOST, NAME};
use outlast_supervisor::decision::Process;
use outlast_supervisor::processes;
use rustix::io::Errno;

pub struct Dbr(pub Shared);

impl Pin for Dbr {
    fn operate(&mut self, operation: &'static str, argument: &Payload, _: &mut Vec<Event>) -> Result<Payload, Failure> {
        let mut desk = self.0.borrow_mut();
        if operation == dbr::UNWATCH {
            let Unwatch { program, watch } = argument.read()?;
            desk.is_of(NAME, &program)?;
            desk.breakpoints.end(watch)?;
            if desk.breakpoints.watched.is_empty() {
                desk.sights.end(NAME);
            }
            return Ok(Payload::NONE);
        }
        let Watch { program, address, length, access, every } = argument.read()?;
        desk.is_of(NAME, &program)?;
        let process = desk.process;
        let number = desk.breakpoints.begin(Meeting { address, length, access }, process)?;
        desk.sights.want(NAME, NAME, every);
        Payload::of(&number)
    }
}

impl Drop for Dbr {
    fn drop(&mut self) {
        let mut desk = self.0.borrow_mut();
        desk.breakpoints.watched.clear();
        desk.sights.end(NAME);
    }
}

/// The addresses that are watched in one program.
#[derive(Default)]
pub struct Breakpoints {
    watched: Vec<Watched>,
    numbers: u32,
}

struct Watched {
    number: u32,
    meeting: Meeting,
    /// The process whose threads are counted.
    of: Option<Process>,
    counters: Vec<Counter>,
    /// What its counters had when they were looked at last.
    seen: u64,
    total: u64,
}

impl Breakpoints {
    /// Where the program has no process just now it is watched once there is one.
    fn begin(&mut self, meeting: Meeting, process: Option<Process>) -> Result<u32, Failure> {
        let Meeting { address, length, access } = meeting;
        let is_length = [1, 2, 4, 8].contains(&length) && (access != Access::Execute || length == 8);
        let is_aligned = access == Access::Execute || is_length && address % u64::from(length) == 0;
        if !is_length || !is_aligned {
            return Err(refused(
                "1, 2, 4 or 8 bytes are watched, at a multiple of that; 8 where they are executed".into(),
            ));
        }
        if self.watched.len() >= MOST {
            return Err(refused(format!("no more than {MOST} addresses are watched")));
        }
        let number = self.numbers;
        let mut watched = Watched { number, meeting, of: None, counters: Vec::new(), seen: 0, total: 0 };
        if let Some(process) = process {
            watched.follow(process).map_err(|e| refused(words(e)))?;
        }
        self.numbers += 1;
        self.watched.push(watched);
        Ok(number)
    }

    fn end(&mut self, number: u32) -> Result<(), Failure> {
        let at = self.watched.iter().position(|watched| watched.number == number);
        let at = at.ok_or_else(|| refused(format!("nothing is watched by the number {number}")))?;
        self.watched.remove(at);
        Ok(())
    }

    /// Whether a process is not followed yet.
    pub fn lags(&self, process: &Process) -> bool {
        self.watched.iter().any(|watched| watched.of.as_ref() != Some(process))
    }

    /// What was met since the last look; and from now on what meets the addresses in this process.
    ///
    /// # Errors
    /// In words, why something is not watched in this process.
    pub fn look(&mut self, process: Process) -> (Vec<Hit>, Option<String>) {
        let (mut hits, mut failure) = (Vec::new(), None);
        for watched in &mut self.watched {
            // Of threads that have ended as well: the kernel keeps their counts for us.
            let now: u64 = watched.counters.iter().map(Counter::read).sum();
            let count = now.saturating_sub(watched.seen);
            (watched.seen, watched.total) = (now, watched.total + count);
            if count > 0 {
                let of = watched.of.map_or(process.pid, |of| of.pid);
                hits.push(Hit { watch: watched.number, process: of, count, total: watched.total });
            }
            if watched.of != Some(process) {
                failure = watched.follow(process).err().map(words).or(failure);
            }
        }
        (hits, failure)
    }
}

/// How often a process is tried whose threads begin and end meanwhile.
const TRIES: u32 = 8;

impl Watched {
    /// Counts in all threads of this process, and through them in those that they begin. Where it cannot, it is tried again when the program is
    /// another process.
    fn follow(&mut self, process: Process) -> Result<(), Errno> {
        self.of = Some(process);
        for _ in 0..TRIES {
            (self.counters, self.seen) = (Vec::new(), 0);
            let threads = processes::threads_of(process.pid);
            for thread in &threads {
                match Counter::of(*thread, self.meeting) {
                    Ok(counter) => self.counters.push(counter),
                    // It has ended since.
                    Err(Errno::SRCH) => (),
                    Err(e) => {
                        self.counters.clear();
                        return Err(e);
                    }
                }
            }
            // One that began in between may or may not be counted with the one that began it.
            if threads == processes::threads_of(process.pid) {
                break;
            }
        }
        Ok(())
    }
}

fn refused(why: String) -> Failure {
    Failure::Refused(NAME.into(), why)
}

fn words(e: Errno) -> String {
    match e {
        Errno::ACCESS | Errno::PERM => {
            "the kernel lets nobody here count (kernel.perf_event_paranoid, or a container)".into()
        }
        Errno::NOSPC => "all debug registers are taken".into(),
        Errno::NOENT | Errno::NOSYS | Errno::OPNOTSUPP => "the kernel or the processor has no such counters".into(),
        Errno::INVAL => "the kernel does not watch this address, or is older than Linux 5.13".into(),
        e => e.to_string(),
    }
}
