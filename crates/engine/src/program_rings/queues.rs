//! A ring in the engine's hands, and the queues of its requests.

use super::layout::{state, Head, Notes, Request};
use crate::state::Engine;

/// A ring whose head has been read, to be written back by [`Ring::save`].
pub struct Ring {
    pub notes: Notes,
    pub head: Head,
    /// The program's descriptor; negative once it is closed.
    pub fd: i32,
}

/// One of the queues in the head.
pub type Queue = fn(&mut Head) -> &mut [u32; 2];

pub const READY: Queue = |head| &mut head.ready;
pub const OVERFLOWN: Queue = |head| &mut head.overflown;

impl Ring {
    pub fn load(e: &Engine, notes: Notes) -> Option<Ring> {
        let fd = e.kernel.rings.iter().find(|ring| ring.notes == notes.at)?.fd;
        Some(Ring { notes, head: notes.head()?, fd })
    }

    pub fn save(&self) {
        self.notes.set_head(&self.head);
    }

    pub fn request(&self, i: u32) -> Option<Request> {
        if i < self.head.end {
            self.notes.request(i)
        } else {
            None
        }
    }

    pub fn set(&self, i: u32, request: &Request) {
        self.notes.set_request(i, request);
    }

    /// A request that nobody uses.
    pub fn allocate(&mut self) -> Option<u32> {
        let head = &mut self.head;
        let i = match head.free.checked_sub(1) {
            Some(i) if i < head.end => i,
            _ if head.end < head.requests => head.end,
            _ => return None,
        };
        if i == head.end {
            head.end += 1;
        } else {
            head.free = self.notes.request(i)?.next;
        }
        self.head.used += 1;
        Some(i)
    }

    pub fn release(&mut self, i: u32) {
        self.set(i, &Request { state: state::FREE, next: self.head.free, ..Request::default() });
        self.head.free = i + 1;
        self.head.used = self.head.used.wrapping_sub(1);
    }

    /// Puts request `i`, of which `request` is the content, at the end of a queue.
    pub fn push(&mut self, queue: Queue, i: u32, mut request: Request) {
        request.next = 0;
        self.set(i, &request);
        let [first, last] = *queue(&mut self.head);
        let before = if first == 0 { None } else { last.checked_sub(1).and_then(|i| Some((i, self.request(i)?))) };
        match before {
            Some((at, before)) => {
                self.set(at, &Request { next: i + 1, ..before });
                *queue(&mut self.head) = [first, i + 1];
            }
            None => *queue(&mut self.head) = [i + 1; 2],
        }
    }

    /// Takes the first of a queue.
    pub fn pop(&mut self, queue: Queue) -> Option<(u32, Request)> {
        let i = queue(&mut self.head)[0].checked_sub(1)?;
        let Some(request) = self.request(i) else {
            *queue(&mut self.head) = [0; 2];
            return None;
        };
        queue(&mut self.head)[0] = request.next;
        Some((i, request))
    }

    pub fn make_ready(&mut self, i: u32, request: Request) {
        self.push(READY, i, Request { state: state::READY, ..request });
    }

    /// From now on it waits for a descriptor or a time.
    pub fn make_wait(&mut self, i: u32, request: Request) {
        self.head.waiting += 1;
        self.set(i, &Request { state: state::WAITING, found: 0, ..request });
    }

    /// It waits no more; what becomes of it is the caller's business.
    pub fn end_wait(&mut self) {
        self.head.waiting = self.head.waiting.wrapping_sub(1);
    }

    /// Calls `f` for every request in use.
    pub fn each(&mut self, mut f: impl FnMut(&mut Ring, u32, Request)) {
        for i in 0..self.head.end {
            if let Some(request) = self.request(i).filter(|request| request.state != state::FREE) {
                f(self, i, request);
            }
        }
    }

    /// The first request in use that `is_it` fits.
    pub fn find(&self, mut is_it: impl FnMut(&Request) -> bool) -> Option<(u32, Request)> {
        (0..self.head.end).find_map(|i| {
            let request = self.request(i)?;
            (request.state != state::FREE && is_it(&request)).then_some((i, request))
        })
    }

    /// Lets go on what waits for all that was submitted before it. False: there is nothing.
    pub fn undrain(&mut self) -> bool {
        const IO_DRAIN: u8 = 1 << 1;
        if self.head.drained == 0 {
            return false;
        }
        let (mut first, mut oldest_running): (Option<(u32, Request)>, Option<u32>) = (None, None);
        self.each(|_, i, request| match request.state {
            state::DRAINED if first.is_none_or(|(_, f)| is_before(request.sequence, f.sequence)) => {
                first = Some((i, request));
            }
            state::READY | state::WAITING | state::MADE
                if oldest_running.is_none_or(|s| is_before(request.sequence, s)) =>
            {
                oldest_running = Some(request.sequence);
            }
            _ => {}
        });
        let Some((i, request)) = first else {
            self.head.drained = 0;
            return false;
        };
        let waits = request.entry.flags & IO_DRAIN != 0;
        if waits && oldest_running.is_some_and(|s| is_before(s, request.sequence)) {
            return false;
        }
        self.head.drained -= 1;
        self.make_ready(i, request);
        true
    }
}

fn is_before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}
