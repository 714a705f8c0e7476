//! Ranges of addresses that do not overlap, in ascending order, in an array that has room for so many.

/// One range, with whatever is known of it.
pub trait Ranged: Copy {
    fn start(&self) -> u64;
    fn end(&self) -> u64;
    /// The part from `start` to `end`, which lie in it.
    fn part(&self, start: u64, end: u64) -> Self;
}

/// A struct with the fields `start` and `end`, of which nothing else depends on where they are.
macro_rules! ranged {
    ($type:ident) => {
        impl $crate::sorted::Ranged for $type {
            fn start(&self) -> u64 {
                self.start
            }

            fn end(&self) -> u64 {
                self.end
            }

            #[allow(clippy::needless_update, reason = "there may be no other field")]
            fn part(&self, start: u64, end: u64) -> $type {
                $type { start, end, ..*self }
            }
        }
    };
}
pub(crate) use ranged;

/// All ranges: those at the beginning of the room.
pub struct Sorted<'a, T> {
    room: &'a mut [T],
    count: &'a mut usize,
}

impl<'a, T: Ranged> Sorted<'a, T> {
    pub fn new(room: &'a mut [T], count: &'a mut usize) -> Self {
        Sorted { room, count }
    }

    pub fn all(&self) -> &[T] {
        &self.room[..*self.count]
    }

    /// Index of the first one that ends behind `address`.
    pub fn index(&self, address: u64) -> usize {
        self.all().partition_point(|range| range.end() <= address)
    }

    /// Replaces those from `first` on, up to `last`, by others. False: there is no room.
    pub fn splice(&mut self, first: usize, last: usize, new: &[T]) -> bool {
        let count = *self.count - (last - first) + new.len();
        if count > self.room.len() {
            return false;
        }
        self.room.copy_within(last..*self.count, first + new.len());
        self.room[first..first + new.len()].copy_from_slice(new);
        *self.count = count;
        true
    }

    /// Takes `start..end` out. False: there is no room for the pieces that are left over.
    pub fn remove(&mut self, start: u64, end: u64) -> bool {
        let first = self.index(start);
        let last = self.all().partition_point(|range| range.start() < end);
        if first >= last {
            return true;
        }
        let (head, tail) = (self.all()[first], self.all()[last - 1]);
        let (mut pieces, mut count) = ([head; 2], 0);
        if head.start() < start {
            pieces[count] = head.part(head.start(), start);
            count += 1;
        }
        if end < tail.end() {
            pieces[count] = tail.part(end, tail.end());
            count += 1;
        }
        self.splice(first, last, &pieces[..count])
    }
}
