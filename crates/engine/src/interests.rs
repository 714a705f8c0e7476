//! What the program's epolls watch. That is part of every commit, so that a cold resume, which makes the epolls anew, has them watch
//! the same.
//!
//! With EPOLLONESHOT it is needed by every recovery. The kernel reports an event of such an interest and forgets what it was looking for, so
//! that an event that a dead process took would never come again: a restored program gets those armed again that were armed at the commit.
//!
//! An interest is known by the numbers of epoll and file; to whom an event belongs is told by the word that comes with it. Where
//! several have the same word the kernel is asked.

use crate::calls::epoll::{self, interests, is_spent, EPOLLONESHOT};
use crate::descriptors::HIGHEST;
use crate::dispatch;
use crate::scratch;
use crate::state::{object, Engine};
use crate::user;
use bytemuck::{Pod, Zeroable};
use outlast_image::kernel::{interests as any_of, one_shot};
use outlast_store::{MappedRegion, Store};

/// As many are kept. In a program that has more, and some that come once, every read is preceded by a commit.
const MOST: usize = 1 << 14;
const CHAINS: usize = 1 << 12;
const TOUCHED: usize = 256;
/// The packed `struct epoll_event`: four bytes of events, then the word.
const EVENT_LEN: u64 = 12;
/// EPOLLERR and EPOLLHUP: the kernel looks for them whatever it is told.
const ALWAYS: u32 = 0x18;

/// An interest, as a commit keeps it; key: its place.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
pub struct Interest {
    pub epoll: i32,
    pub fd: i32,
    /// As the program set it, and [`ALWAYS`]. 0: the place is free.
    pub events: u32,
    /// 1: it looks for events still, which one that comes once does until it was reported.
    pub armed: u32,
    pub word: u64,
}

/// A place of the table. Places are counted from 1 in chains, 0 ends one.
#[derive(Clone, Copy)]
struct Place {
    interest: Interest,
    next_of_fd: u16,
    next_of_word: u16,
}

/// The table.
struct Table {
    places: [Place; MOST],
    by_fd: [u16; CHAINS],
    by_word: [u16; CHAINS],
    /// How many come once.
    once: usize,
    /// Numbers that were an epoll's.
    epolls: [u64; HIGHEST / 64],
    /// Places that were ever used.
    end: usize,
    /// Those of them that are free, chained as if they were of one file.
    free: u16,
    used: usize,
    /// Changed since the last commit; if there are more, all are saved.
    touched: [u16; TOUCHED],
    touched_count: usize,
}

const FREE: Place =
    Place { interest: Interest { epoll: 0, fd: 0, events: 0, armed: 0, word: 0 }, next_of_fd: 0, next_of_word: 0 };

static mut TABLE: Table = Table {
    places: [FREE; MOST],
    by_fd: [0; CHAINS],
    by_word: [0; CHAINS],
    once: 0,
    epolls: [0; HIGHEST / 64],
    end: 0,
    free: 0,
    used: 0,
    touched: [0; TOUCHED],
    touched_count: 0,
};

fn table() -> &'static mut Table {
    // SAFETY: only whoever holds the engine's lock comes here, and never while another reference is in use.
    unsafe {
        let this = &raw mut TABLE;
        &mut *this
    }
}

impl Interest {
    fn comes_once(&self) -> bool {
        self.events & EPOLLONESHOT != 0
    }

    /// As the kernel has it: of one that was reported it keeps the manner.
    pub fn kept(&self) -> epoll::Interest {
        let events = if self.armed == 0 { self.events & epoll::MANNER } else { self.events };
        epoll::Interest { fd: self.fd, events, data: self.word }
    }
}

fn chain_of_fd(fd: i32) -> usize {
    fd as usize % CHAINS
}

fn chain_of_word(word: u64) -> usize {
    // Addresses and numbers alike: Fibonacci hashing.
    (word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52) as usize % CHAINS
}

impl Table {
    fn find(&self, epoll: i32, fd: i32) -> Option<usize> {
        self.find_by(fd, |interest| interest.epoll == epoll)
    }

    fn find_file(&self, fd: i32) -> Option<usize> {
        self.find_by(fd, |_| true)
    }

    fn find_by(&self, fd: i32, is_wanted: impl Fn(&Interest) -> bool) -> Option<usize> {
        let mut at = self.by_fd[chain_of_fd(fd)];
        while at != 0 {
            let place = &self.places[at as usize - 1];
            if place.interest.fd == fd && is_wanted(&place.interest) {
                return Some(at as usize - 1);
            }
            at = place.next_of_fd;
        }
        None
    }

    fn touch(&mut self, i: usize) {
        if let Some(slot) = self.touched.get_mut(self.touched_count) {
            *slot = i as u16;
        }
        self.touched_count += 1;
    }

    /// False: there is no room.
    fn add(&mut self, interest: Interest) -> bool {
        let i = match self.free {
            0 if self.end == MOST => return false,
            0 => self.end,
            free => free as usize - 1,
        };
        if i == self.end {
            self.end += 1;
        } else {
            self.free = self.places[i].next_of_fd;
        }
        self.put(i, interest);
        true
    }

    fn put(&mut self, i: usize, interest: Interest) {
        let of_fd = chain_of_fd(interest.fd);
        let next_of_fd = core::mem::replace(&mut self.by_fd[of_fd], i as u16 + 1);
        // Only of these it is asked by the word.
        let next_of_word = if interest.comes_once() {
            self.once += 1;
            core::mem::replace(&mut self.by_word[chain_of_word(interest.word)], i as u16 + 1)
        } else {
            0
        };
        self.places[i] = Place { interest, next_of_fd, next_of_word };
        if let Some(word) = self.epolls.get_mut(interest.epoll as usize / 64) {
            *word |= 1 << (interest.epoll % 64);
        }
        self.used += 1;
        self.touch(i);
    }

    fn remove(&mut self, i: usize) {
        let Place { interest, next_of_fd, next_of_word } = self.places[i];
        let wanted = i as u16 + 1;
        let mut at = &mut self.by_fd[chain_of_fd(interest.fd)];
        while *at != wanted && *at != 0 {
            at = &mut self.places[*at as usize - 1].next_of_fd;
        }
        *at = next_of_fd;
        if interest.comes_once() {
            let mut at = &mut self.by_word[chain_of_word(interest.word)];
            while *at != wanted && *at != 0 {
                at = &mut self.places[*at as usize - 1].next_of_word;
            }
            *at = next_of_word;
            self.once -= 1;
        }
        self.places[i] = Place { next_of_fd: self.free, ..FREE };
        self.free = wanted;
        self.used -= 1;
        self.touch(i);
    }

    fn spend(&mut self, i: usize) {
        self.places[i].interest.armed = 0;
        self.touch(i);
    }

    /// To whom may an event of `epoll` with `word` belong? The first place, and whether there is another.
    fn owner(&self, epoll: i32, word: u64) -> Option<(usize, bool)> {
        let mut owner = None;
        let mut at = self.by_word[chain_of_word(word)];
        while at != 0 {
            let place = &self.places[at as usize - 1];
            if (place.interest.epoll, place.interest.word) == (epoll, word) {
                match owner {
                    None => owner = Some((at as usize - 1, false)),
                    Some((first, _)) => return Some((first, true)),
                }
            }
            at = place.next_of_word;
        }
        owner
    }
}

/// The program has armed an interest. False: there is no room for it.
pub fn armed(epoll: i32, fd: i32, events: u32, word: u64) -> bool {
    forgotten(epoll, fd);
    found(epoll, fd, events, word, true)
}

/// The same, of an interest that was there before the engine.
pub fn found(epoll: i32, fd: i32, events: u32, word: u64, is_armed: bool) -> bool {
    table().add(Interest { epoll, fd, events: events | ALWAYS, armed: is_armed as u32, word })
}

/// The interest is gone.
pub fn forgotten(epoll: i32, fd: i32) {
    let table = table();
    if let Some(i) = table.find(epoll, fd) {
        table.remove(i);
    }
}

/// The program has closed `fd`: no interest in it, or of it, is left under this number.
pub fn closed(fd: i32) {
    let table = table();
    if table.used == 0 {
        return;
    }
    let was_epoll = table.epolls.get(fd as usize / 64).is_some_and(|word| word >> (fd % 64) & 1 != 0);
    for i in 0..if was_epoll { table.end } else { 0 } {
        let interest = table.places[i].interest;
        if interest.events != 0 && interest.epoll == fd {
            table.remove(i);
        }
    }
    while let Some(i) = table.find_file(fd) {
        table.remove(i);
    }
}

/// What the commit says of an interest that comes once.
pub fn find_once(epoll: i32, fd: i32) -> Option<Interest> {
    let table = table();
    let interest = table.find(epoll, fd).map(|i| table.places[i].interest);
    interest.filter(Interest::comes_once)
}

/// Calls `f` with every interest.
pub fn each(mut f: impl FnMut(&Interest)) {
    let table = table();
    table.places[..table.end].iter().map(|place| place.interest).filter(|one| one.events != 0).for_each(|one| f(&one));
}

/// The kernel, or the log of inputs, has reported the `count` events at `at`. Returns how many of them the program is to get: one of an
/// interest that is not armed is left out.
pub fn reported(epoll: i32, at: u64, count: i64) -> i64 {
    let table = table();
    if table.once == 0 {
        return count;
    }
    let (mut kept, mut is_unclear) = (0, false);
    for n in 0..count.max(0) as u64 {
        let Some(event) = user::read::<[u8; EVENT_LEN as usize]>(at + n * EVENT_LEN) else { break };
        let word =
            u64::from_le_bytes([event[4], event[5], event[6], event[7], event[8], event[9], event[10], event[11]]);
        match table.owner(epoll, word) {
            Some((_, true)) => is_unclear = true,
            Some((i, false)) if table.places[i].interest.armed == 0 => continue,
            Some((i, false)) => table.spend(i),
            None => {}
        }
        if kept < n {
            user::write(at + kept * EVENT_LEN, &event);
        }
        kept += 1;
    }
    if is_unclear {
        for now in interests(epoll, scratch::maps_text()) {
            match table.find(epoll, now.fd) {
                Some(i) if is_spent(now.events) && table.places[i].interest.armed != 0 => table.spend(i),
                _ => {}
            }
        }
    }
    kept as i64
}

/// Puts what changed into the commit that is being made.
pub fn save(store: &mut Store<'static, MappedRegion>) {
    let table = table();
    if table.touched_count > TOUCHED {
        for i in 0..table.end {
            table.save(store, i);
        }
    } else {
        for n in 0..table.touched_count {
            table.save(store, table.touched[n] as usize);
        }
    }
    table.touched_count = 0;
}

impl Table {
    fn save(&self, store: &mut Store<'static, MappedRegion>, i: usize) {
        let interest = &self.places[i].interest;
        if interest.events != 0 {
            store.put(object::INTEREST, i as u64, bytemuck::bytes_of(interest));
        } else if store.object(object::INTEREST, i as u64, &mut []).is_some() {
            store.delete(object::INTEREST, i as u64);
        }
    }
}

/// Fills the table of a restored program.
pub fn load(e: &mut Engine) {
    if e.kernel.one_shot != one_shot::NONE {
        dispatch::slow_down_waits(false);
    }
    let table = table();
    if e.kernel.interests == any_of::NONE && table.end == 0 {
        return;
    }
    table.epolls = [0; HIGHEST / 64];
    table.places[..table.end].fill(FREE);
    (table.by_fd, table.by_word) = ([0; CHAINS], [0; CHAINS]);
    (table.end, table.free, table.used, table.once, table.touched_count) = (0, 0, 0, 0, 0);
    if e.kernel.interests == any_of::NONE {
        return;
    }
    let store = e.store();
    store.objects(&mut |kind, key, _| {
        if kind == object::INTEREST && (key as usize) < MOST {
            table.end = table.end.max(key as usize + 1);
        }
    });
    for i in 0..table.end {
        let mut interest = FREE.interest;
        let n = store.object(object::INTEREST, i as u64, bytemuck::bytes_of_mut(&mut interest));
        if n == Some(size_of::<Interest>()) && interest.events != 0 {
            table.put(i, interest);
        } else {
            table.places[i].next_of_fd = table.free;
            table.free = i as u16 + 1;
        }
    }
    table.touched_count = 0;
}
