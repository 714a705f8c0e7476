//! Instructions that a program's threads execute, as the processor counts them. There may be no counter, as on most virtual machines, or it may be
//! forbidden (`kernel.perf_event_paranoid` of 3, as Debian has it, for users).
//!
//! Unverified: no machine that this was tried on has such a counter. What is done with it is tried with another one, which all machines have.

use crate::foreign_filter;
use libc::pid_t;
use outlast_filter::needs::wish;
use perf_event::events::{Event, Hardware};
use perf_event::{Builder, Counter, ReadFormat};
use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

/// Each thread takes a descriptor; of more threads time alone is known.
const MOST: usize = 256;

/// The counters of one program's threads.
pub struct Instructions<E = Hardware> {
    event: E,
    /// With each the thread's processor time at the last look.
    threads: BTreeMap<pid_t, (Counter, Duration)>,
    /// Why they are not counted.
    why_not: Option<String>,
    /// Whether it was told last that they are.
    told: Option<bool>,
}

impl Default for Instructions {
    fn default() -> Self {
        Self::of(Hardware::INSTRUCTIONS)
    }
}

impl<E: Event + Clone> Instructions<E> {
    fn of(event: E) -> Self {
        Self { event, threads: BTreeMap::new(), why_not: None, told: None }
    }

    /// The process is another one, with threads that may be called as before.
    pub fn are_others(&mut self) {
        self.threads.clear();
    }

    /// What each of these threads has executed since it was asked for first, those left out that have ended; none: it is known of no thread. With
    /// each its processor time.
    pub fn count(&mut self, threads: &[(pid_t, Duration)]) -> Option<BTreeMap<pid_t, u64>> {
        if self.why_not.is_some() {
            return None;
        }
        self.threads.retain(|thread, _| threads.iter().any(|(other, _)| other == thread));
        let mut counts = BTreeMap::new();
        for &(thread, time) in threads {
            match self.count_one(thread, time) {
                Ok(count) => drop(counts.insert(thread, count)),
                Err(e) if e.raw_os_error() == Some(libc::ESRCH) => {}
                Err(e) => {
                    self.why_not = Some(in_words(&e));
                    self.threads.clear();
                    return None;
                }
            }
        }
        Some(counts)
    }

    /// What is counted, in words for the log, when that is not as it was told before.
    pub fn news(&mut self) -> Option<String> {
        let are_counted = Some(self.why_not.is_none());
        let before = std::mem::replace(&mut self.told, are_counted);
        (before != are_counted).then(|| match &self.why_not {
            None => "instructions are counted".into(),
            Some(why) => format!("processor time is counted, since instructions cannot be: {why}"),
        })
    }

    fn count_one(&mut self, thread: pid_t, time: Duration) -> io::Result<u64> {
        // Less than before: the kernel has given the number to another thread.
        if self.threads.get(&thread).is_none_or(|(_, last)| time < *last) {
            self.begin(thread, time)?;
        }
        let Some((counter, last)) = self.threads.get_mut(&thread) else { return Ok(0) };
        *last = time;
        let read = counter.read_count_and_time()?;
        match (read.time_enabled, read.time_running) {
            (1.., 0) => Err(io::Error::other("others have all of the processor's counters")),
            // Others had it for a while.
            (enabled, running) if running < enabled => {
                Ok((u128::from(read.count) * u128::from(enabled) / u128::from(running)) as u64)
            }
            _ => Ok(read.count),
        }
    }

    fn begin(&mut self, thread: pid_t, time: Duration) -> io::Result<()> {
        if self.threads.len() >= MOST {
            return Err(io::Error::other(format!("the program has more than {MOST} threads")));
        }
        if !foreign_filter::lets(wish::PERF_EVENT_OPEN) {
            return Err(io::Error::other("a filter of system calls (seccomp) forbids it"));
        }
        let mut builder = Builder::new(self.event.clone());
        // What the kernel does for it is none of its own.
        builder.observe_pid(thread).any_cpu().exclude_kernel(true).exclude_hv(true).enabled(true);
        builder.read_format(ReadFormat::TOTAL_TIME_ENABLED | ReadFormat::TOTAL_TIME_RUNNING);
        self.threads.insert(thread, (builder.build()?, time));
        Ok(())
    }
}

fn in_words(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV) => "this machine has no counter of them".into(),
        Some(libc::EACCES | libc::EPERM) => "kernel.perf_event_paranoid forbids it".into(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use perf_event::events::Software;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    use std::sync::mpsc::channel;

    const NOW: Duration = Duration::ZERO;

    /// With a thread that computes.
    fn with_thread(test: impl FnOnce(pid_t)) {
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let (send, receive) = channel();
            let stops = &stop;
            let thread = scope.spawn(move || {
                // SAFETY: it only answers.
                let _ = send.send(unsafe { libc::gettid() });
                while !stops.load(Relaxed) {
                    std::hint::spin_loop();
                }
            });
            test(receive.recv().expect("a thread"));
            stop.store(true, Relaxed);
            thread.join().expect("it ends");
        });
    }

    #[test]
    fn what_a_thread_computes_is_counted_and_what_it_has_computed_before_is_not() {
        let mut counters = Instructions::of(Software::TASK_CLOCK);
        let mut gone = 0;
        with_thread(|thread| {
            let mut count = || counters.count(&[(thread, NOW)]).map_or(u64::MAX, |counts| counts[&thread]);
            let first = count();
            while count() < first + 1_000_000 {}
            counters.are_others();
            assert!(counters.count(&[(thread, NOW)]).is_some_and(|counts| counts[&thread] < first + 1_000_000));
            gone = thread;
        });
        counters.are_others();
        // SAFETY: it only answers.
        let own = unsafe { libc::gettid() };
        let counts = counters.count(&[(gone, NOW), (own, NOW)]).expect("the other one");
        assert_eq!(counts.into_keys().collect::<Vec<_>>(), [own]);
        assert_eq!((counters.news().as_deref(), counters.news()), (Some("instructions are counted"), None));
    }

    #[test]
    fn a_number_that_another_thread_has_now_is_counted_anew() {
        let mut counters = Instructions::of(Software::TASK_CLOCK);
        with_thread(|thread| {
            let mut count =
                |ms| counters.count(&[(thread, Duration::from_millis(ms))]).map_or(u64::MAX, |counts| counts[&thread]);
            while count(7) < 10_000_000 {}
            assert!(count(6) < 10_000_000);
        });
    }

    #[test]
    fn where_there_is_no_counter_that_is_said_and_not_asked_again() {
        let mut counters = Instructions::of(perf_event::events::Raw::new(u64::MAX));
        // SAFETY: it only answers.
        let threads = [(unsafe { libc::gettid() }, NOW)];
        assert_eq!((counters.count(&threads), counters.count(&threads)), (None, None));
        assert!(counters.news().is_some_and(|news| news.starts_with("processor time is counted")));
    }
}
