//! Takes hold of a running process: all of its threads are stopped where nothing awaits them, or let go again.

use super::refusal::Refusal;
use super::restart::{abort_sequence, resumption, sequence, Resumption};
use super::stopped::{await_stop, Stopped};
use crate::processes;
use crate::trace;
use libc::{pid_t, user_regs_struct};
use rustix::io::Errno;
use std::time::{Duration, Instant};

/// How long its threads may be busy with signals, or with making more of them.
const PATIENCE: Duration = Duration::from_secs(2);

/// Where a thread was stopped.
#[derive(Clone, Copy)]
pub struct Place {
    pub tid: pid_t,
    /// Registers and mask of blocked signals, for the kernel to go on with.
    pub stop: (user_regs_struct, u64),
    /// Where it goes on if it was elsewhere meanwhile.
    pub resumption: Resumption,
    /// Its restartable sequence.
    pub sequence: [u64; 3],
}

/// A process of which every thread is stopped by us, the first one first. Dropped, they go on as if nothing had been.
pub struct Hold {
    threads: Vec<(Stopped, Place)>,
}

impl Hold {
    pub fn take(pid: pid_t) -> Result<Self, Refusal> {
        let asked = Instant::now();
        let mut stopped: Vec<Stopped> = Vec::new();
        loop {
            if asked.elapsed() > PATIENCE {
                return Err(Refusal::Busy);
            }
            // Whoever still runs may make others.
            let unknown: Vec<pid_t> = processes::threads_of(pid)
                .into_iter()
                .filter(|tid| stopped.iter().all(|known| known.tid() != *tid))
                .collect();
            let mut begun = Vec::new();
            for tid in &unknown {
                match begin(*tid) {
                    Ok(()) => begun.push(*tid),
                    // It has ended meanwhile.
                    Err(Refusal::Gone) if *tid != pid => (),
                    Err(refusal) => return Err(refusal),
                }
            }
            for tid in &begun {
                match await_stop(*tid) {
                    Ok(()) => stopped.push(Stopped::new(*tid)),
                    Err(Refusal::Gone) if *tid != pid => (),
                    Err(refusal) => return Err(refusal),
                }
            }
            if !unknown.is_empty() {
                continue;
            }
            let mut is_calm = true;
            let mut n = 0;
            while n < stopped.len() {
                match stopped[n].await_calm() {
                    Ok(was_calm) => is_calm &= was_calm,
                    Err(Refusal::Gone) if stopped[n].tid() != pid => {
                        // It has run until then, and may have made others.
                        is_calm = false;
                        drop(stopped.remove(n));
                        continue;
                    }
                    Err(refusal) => return Err(refusal),
                }
                n += 1;
            }
            if is_calm {
                break;
            }
        }
        stopped.sort_by_key(|thread| (thread.tid() != pid, thread.tid()));
        let threads = stopped.into_iter().map(|thread| {
            let place = Place::of(thread.tid())?;
            Ok((thread, place))
        });
        Ok(Self { threads: threads.collect::<Result<_, Refusal>>()? })
    }

    /// Where the threads stand, the first one first.
    pub fn places(&self) -> impl Iterator<Item = &Place> {
        self.threads.iter().map(|(_, place)| place)
    }

    /// The first thread is somebody else's to let go.
    pub fn hand_over_first(&mut self) -> Place {
        let (first, place) = self.threads.remove(0);
        first.forget();
        place
    }

    /// Lets all threads go on at this address, every signal blocked, with a word in RDI that `word` tells for the `n`th of them.
    pub fn send_to(self, address: u64, word: impl Fn(usize) -> u64) -> Result<(), Refusal> {
        let failed = |e| Refusal::Kernel("let a thread go on in the engine", e);
        for (n, (thread, place)) in self.threads.into_iter().enumerate() {
            let regs = user_regs_struct { rip: address, rdi: word(n), orig_rax: u64::MAX, ..place.stop.0 };
            trace::set_signal_mask(place.tid, u64::MAX).map_err(failed)?;
            trace::set_registers(place.tid, &regs).map_err(failed)?;
            // Its end lets it go.
            drop(thread);
        }
        Ok(())
    }
}

/// Begins to stop a thread.
fn begin(tid: pid_t) -> Result<(), Refusal> {
    trace::seize_gently(tid).map_err(|e| match e {
        Errno::SRCH => Refusal::Gone,
        // The kernel forbids that for one that has just ended, too.
        Errno::PERM if !processes::is_running(tid) => Refusal::Gone,
        Errno::PERM => Refusal::forbidden(),
        e => Refusal::Kernel("trace it", e),
    })?;
    trace::interrupt(tid).map_err(|e| match e {
        Errno::SRCH => Refusal::Gone,
        e => Refusal::Kernel("stop it", e),
    })
}

impl Place {
    fn of(tid: pid_t) -> Result<Self, Refusal> {
        let none = |e| Refusal::Kernel("read its registers", e);
        let mut regs = trace::registers(tid).map_err(none)?;
        let mask = trace::signal_mask(tid).map_err(none)?;
        let sequence = match sequence(tid) {
            Ok(sequence) => sequence,
            // A kernel that has none, or that does not tell: then a thread that has one cannot be told from others.
            Err(Errno::IO) if !kernel_has_sequences() => [0; 3],
            Err(e) => return Err(Refusal::Kernel("ask for its restartable sequence", e)),
        };
        let stood = regs.rip;
        abort_sequence(tid, sequence[0], &mut regs).map_err(|e| Refusal::Kernel("read its memory", e))?;
        if regs.rip != stood {
            // Also if it is let go as it was: for having been stopped the kernel would have aborted it.
            trace::set_registers(tid, &regs).map_err(|e| Refusal::Kernel("abort its restartable sequence", e))?;
        }
        let resumption = resumption(&regs);
        Ok(Self { tid, stop: (regs, mask), resumption, sequence })
    }
}

/// Whether the kernel knows restartable sequences at all.
fn kernel_has_sequences() -> bool {
    // SAFETY: refused for its arguments before anything is registered.
    let r = unsafe { libc::syscall(libc::SYS_rseq, 1, 0, 0, 0) };
    r != -1 || Errno::from_io_error(&std::io::Error::last_os_error()) != Some(Errno::NOSYS)
}
