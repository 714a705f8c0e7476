//! Where who looks at processors runs. A look that runs on the processor of a real-time thread is a switch of that processor, so that another
//! daemon, which looks at the same moment from elsewhere, takes it for one that switches; the kernel has it run there only where the
//! other processors look as well. Hence it keeps off such processors where there are others.

use super::stand_by::StandBy;
use rustix::thread::{sched_getaffinity, sched_setaffinity, CpuSet};

use std::io;
use std::time::Duration;

pub struct Place {
    /// Where this thread may run by itself; none: the kernel does not say, and it stays where it is.
    usual: Option<CpuSet>,
    /// None: another thread has had it go elsewhere.
    now: Option<CpuSet>,
    stand_by: Option<StandBy>,
}

impl Place {
    /// Of the thread that calls.
    pub fn here() -> Self {
        let usual = sched_getaffinity(None).ok();
        Self { usual, now: usual, stand_by: None }
    }

    /// Has another thread see to it that this one is not kept from looking. `prepare` is called there first, `wake` when this thread is to
    /// look although it may not have woken by itself.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub fn have_stand_by(
        &mut self,
        prepare: impl FnOnce() + Send + 'static,
        wake: impl Fn() + Send + 'static,
    ) -> io::Result<()> {
        self.stand_by = Some(StandBy::begin(prepare, wake)?);
        Ok(())
    }

    /// This thread has looked, will do so again after `every`, and has seen real-time threads on the processors that are `taken`.
    pub fn looked(&mut self, every: Option<Duration>, taken: &[u32]) {
        if self.stand_by.as_ref().is_some_and(|stand_by| stand_by.looked(every)) {
            self.now = None;
        }
        self.keep_off(taken);
    }

    fn keep_off(&mut self, taken: &[u32]) {
        let Some(usual) = self.usual else { return };
        let wanted = without(usual, taken);
        // Whoever is refused, since what is left went off meanwhile, is not on a worse place than before.
        if self.now != Some(wanted) && sched_setaffinity(None, &wanted).is_ok() {
            self.now = Some(wanted);
        }
    }
}

/// All of them where nothing would be left.
pub(super) fn without(usual: CpuSet, taken: &[u32]) -> CpuSet {
    let mut rest = usual;
    for number in taken.iter().map(|number| *number as usize).filter(|number| *number < CpuSet::MAX_CPU) {
        rest.unset(number);
    }
    if rest.count() == 0 {
        return usual;
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(numbers: &[usize]) -> CpuSet {
        let mut set = CpuSet::new();
        numbers.iter().for_each(|number| set.set(*number));
        set
    }

    #[test]
    fn it_keeps_off_what_is_taken_while_something_is_left() {
        assert!(without(set(&[0, 1, 2]), &[1, 70_000]) == set(&[0, 2]));
        assert!(without(set(&[0, 1]), &[0, 1]) == set(&[0, 1]));
        assert!(without(set(&[0]), &[]) == set(&[0]));
    }

    #[test]
    fn where_it_runs_follows_what_is_taken() {
        let before = sched_getaffinity(None).unwrap();
        let mut place = Place::here();
        let numbers: Vec<u32> = (0..CpuSet::MAX_CPU as u32).filter(|number| before.is_set(*number as usize)).collect();
        if numbers.len() < 2 {
            return println!("skipped: needs two processors");
        }
        place.keep_off(&numbers[..1]);
        let now = sched_getaffinity(None).unwrap();
        assert_eq!((now.count() as usize, now.is_set(numbers[0] as usize)), (numbers.len() - 1, false));
        place.keep_off(&[]);
        assert!(sched_getaffinity(None).unwrap() == before);
    }
}
