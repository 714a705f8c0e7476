//! How many executions are seen to at once: nobody takes all the room.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// So many at once, in all and of one user.
const MOST: [usize; 2] = [256, 64];

/// Those that are taken, by user.
#[derive(Default)]
pub struct Seats(Mutex<BTreeMap<u32, usize>>);

/// Free again when this is dropped.
pub struct Seat {
    seats: Arc<Seats>,
    user: u32,
}

impl Seats {
    /// None: there is none for this user now.
    pub fn take(this: &Arc<Self>, user: u32) -> Option<Seat> {
        let mut taken = this.0.lock().unwrap_or_else(PoisonError::into_inner);
        let all: usize = taken.values().sum();
        let own = taken.entry(user).or_default();
        // Root needs no limit against itself.
        if all >= MOST[0] || (user != 0 && *own >= MOST[1]) {
            return None;
        }
        *own += 1;
        Some(Seat { seats: Arc::clone(this), user })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut taken = self.seats.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = taken.get_mut(&self.user) {
            *own -= 1;
        }
        taken.retain(|_, own| *own > 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_who_executes_without_end_leaves_room_for_others() {
        let seats = Arc::new(Seats::default());
        let taken: Vec<_> = (0..1000).map_while(|_| Seats::take(&seats, 1000)).collect();
        assert_eq!(taken.len(), MOST[1]);
        assert!(Seats::take(&seats, 1001).is_some() && Seats::take(&seats, 0).is_some());
        drop(taken);
        assert!(Seats::take(&seats, 1000).is_some());
    }

    #[test]
    fn there_is_an_end_for_all() {
        let seats = Arc::new(Seats::default());
        let taken: Vec<_> = (0..1000).map_while(|_| Seats::take(&seats, 0)).collect();
        assert_eq!(taken.len(), MOST[0]);
        assert!(Seats::take(&seats, 1000).is_none());
    }
}
