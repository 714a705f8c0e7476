//! Where who looks at processors runs. A look that runs on the processor of a real-time thread is a switch of that processor, so that another
//! daemon, which looks at the same moment from elsewhere, takes it for one that switches; the kernel has it run there only where the
//! other processors look as well. Hence it keeps off such processors where there are others.

use rustix::thread::{sched_getaffinity, sched_setaffinity, CpuSet};

pub struct Place {
    /// Where this thread may run by itself; none: the kernel does not say, and it stays where it is.
    usual: Option<CpuSet>,
    now: Option<CpuSet>,
}

impl Place {
    /// Of the thread that calls.
    pub fn here() -> Self {
        let usual = sched_getaffinity(None).ok();
        Self { usual, now: usual }
    }

    pub fn keep_off(&mut self, taken: &[u32]) {
        let Some(usual) = self.usual else { return };
        let wanted = without(usual, taken);
        // Whoever is refused, since what is left went off meanwhile, is not on a worse place than before.
        if self.now != Some(wanted) && sched_setaffinity(None, &wanted).is_ok() {
            self.now = Some(wanted);
        }
    }
}

/// All of them where nothing would be left.
fn without(usual: CpuSet, taken: &[u32]) -> CpuSet {
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
