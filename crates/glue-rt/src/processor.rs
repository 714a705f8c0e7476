//! On which processor a call is served: the client's. While one of the two works the other waits, and to wake somebody on another
//! processor, which may be asleep, takes much longer than all the rest of a call.

/// The one this thread runs on, from 1; 0: nobody knows.
pub fn here() -> u32 {
    // SAFETY: asks for a number.
    unsafe { libc::sched_getcpu() }.wrapping_add(1).max(0) as u32
}

/// Where a thread runs that goes where its clients are.
pub struct Place {
    /// Where it may run, as it was when it began.
    allowed: libc::cpu_set_t,
    /// From 1; 0: anywhere.
    at: u32,
}

impl Default for Place {
    fn default() -> Self {
        // SAFETY: a zeroed set is valid, and filled in by the call; if it fails the thread may go nowhere.
        let allowed = unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set);
            set
        };
        Self { allowed, at: 0 }
    }
}

impl Place {
    /// Has the thread go to that processor (from 1), or be free to go anywhere (0). Clients may say anything: it does not leave where it
    /// may run.
    pub fn follow(&mut self, processor: u32) {
        if processor == self.at {
            return;
        }
        self.at = processor;
        let one = processor.checked_sub(1).map(|one| one as usize).filter(|one| *one < libc::CPU_SETSIZE as usize);
        // SAFETY: the number is one of the set, a zeroed set is valid.
        unsafe {
            let mut set = self.allowed;
            if let Some(one) = one.filter(|one| libc::CPU_ISSET(*one, &self.allowed)) {
                set = std::mem::zeroed();
                libc::CPU_SET(one, &mut set);
            }
            libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{here, Place};

    fn allowed() -> Vec<usize> {
        let set = Place::default().allowed;
        // SAFETY: numbers of the set.
        (0..libc::CPU_SETSIZE as usize).filter(|at| unsafe { libc::CPU_ISSET(*at, &set) }).collect()
    }

    #[test]
    fn a_thread_goes_to_its_clients_processor_and_nowhere_where_it_may_not() {
        let everywhere = allowed();
        let mut place = Place::default();
        for one in &everywhere {
            place.follow(*one as u32 + 1);
            assert_eq!((allowed(), here()), (vec![*one], *one as u32 + 1));
        }
        for nonsense in [0, 1025, u32::MAX] {
            place.follow(everywhere[0] as u32 + 1);
            place.follow(nonsense);
            assert_eq!(allowed(), everywhere, "{nonsense}");
        }
        // One that may run on the first only stays there.
        place.follow(everywhere[0] as u32 + 1);
        let mut bound = Place::default();
        bound.follow(everywhere.last().map_or(0, |last| *last as u32 + 1));
        assert_eq!(allowed(), everywhere[..1]);
        place.follow(0);
    }
}
