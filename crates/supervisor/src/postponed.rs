//! Recoveries that wait: what the OOM killer kills again and again is tried again later, when there may be more memory.

use crate::end::End;
use crate::kin::Legacy;
use crate::log::{Entry, Kind};
use crate::processes;
use crate::shortage::Count;
use crate::supervisor::Supervisor;
use libc::pid_t;
use std::sync::atomic::Ordering::Acquire;
use std::time::{Duration, Instant};

/// How long the supervisor sleeps at most meanwhile: nobody wakes it for `outlast stop`.
const PULSE: Duration = Duration::from_millis(100);
/// How long it is believed that the program is in the control group in which it was, where the kernel does not tell afterwards.
const OLD: Duration = Duration::from_secs(5);

/// A recovery that is yet to be begun.
#[derive(Debug)]
pub struct Postponed {
    due: Instant,
    signal: i32,
    /// Monotonic nanoseconds.
    died: u64,
}

impl Postponed {
    pub fn until(patience: Duration, signal: i32, died: u64) -> Self {
        Self { due: Instant::now() + patience, signal, died }
    }

    /// How long the supervisor may sleep.
    pub fn patience(&self) -> Duration {
        self.due.saturating_duration_since(Instant::now()).min(PULSE)
    }

    /// Has it begin at once.
    pub fn hurry(&mut self) {
        self.due = Instant::now();
    }
}

impl Supervisor {
    /// Begins a recovery that has waited long enough; how the program ended, if that is not possible or not wanted any more.
    pub(crate) fn on_postponed(&mut self) -> Option<End> {
        let stopping = self.generation.control().stopping.load(Acquire) != 0;
        let postponed = self.postponed.take_if(|p| stopping || p.due <= Instant::now())?;
        match stopping {
            true => Some(End::Killed(postponed.signal)),
            false => self.recover(postponed.signal, postponed.died),
        }
    }

    /// Takes note of whom the OOM killer has killed before the program can be among them.
    pub(crate) fn count_kills(&mut self) {
        let is_old = self.count.as_ref().is_none_or(|(count, at)| count.grows_old() && at.elapsed() >= OLD);
        if is_old && self.postponed.is_none() {
            let count = Count::of(self.pid);
            // Of one that is dead or dying by now the kernel may have told other groups.
            if !processes::is_ending(self.pid) {
                self.count = Some((count, Instant::now()));
            }
        }
    }

    /// The same for a program that nobody watched when it died, and that was where this process of it is.
    pub(crate) fn count_at(&mut self, pid: pid_t) {
        let count = Count::of(pid);
        if pid > 0 && !processes::is_ending(pid) {
            self.count = Some((count, Instant::now()));
        }
    }

    /// How long the supervisor may sleep.
    pub(crate) fn patience(&self) -> Option<Duration> {
        let counting = self.count.as_ref().is_some_and(|(count, _)| count.grows_old()).then_some(OLD);
        let waiting = self.postponed.as_ref().map(Postponed::patience);
        let looks = [self.until_next_look(), self.decides.until_look()];
        [self.handover.patience(), waiting, counting].into_iter().chain(looks).flatten().min()
    }

    /// Whether it was the OOM killer that killed the program.
    pub(crate) fn look_for_shortage(&mut self, end: Option<End>, legacy: &Legacy) {
        if self.recovering.is_none() {
            // What it was given last, or has set itself.
            self.meta.oom_score = legacy.oom_score.unwrap_or(self.meta.oom_score);
        }
        let Some((before, _)) = self.count.take() else { return };
        let count = before.at_end(legacy.groups.clone());
        let was_killed = end.is_none_or(|end| end == End::Killed(libc::SIGKILL));
        self.shortage = count.shortage_since(&before).filter(|_| was_killed);
        self.count = Some((count, Instant::now()));
        if let Some(shortage) = &self.shortage {
            self.log.add(&Entry::new(Kind::OomKilled).cause(shortage.to_string()).pid(self.pid));
        }
    }
}
