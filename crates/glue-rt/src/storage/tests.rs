//! Stops a writer after every single write, and looks what its successor finds.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

use super::entry::place;
use super::recent::{self, apply, RECORDS};
use super::resources::{ResourceError, Resources as OfMedium, LARGEST, NAME};
use super::{Medium, BLOCK, DATA, USED};
use crate::memory::Shared;

/// Pages that were written to, and how many writes still arrive.
#[derive(Default)]
struct Memory {
    pages: RefCell<BTreeMap<u64, Vec<u8>>>,
    left: Cell<usize>,
}

impl Medium for &Memory {
    fn read(&self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        let pages = self.pages.borrow();
        for (page, from, to) in pieces(at, bytes.len()) {
            let part = &mut bytes[to..];
            let length = part.len().min(PAGE - from);
            match pages.get(&page) {
                Some(page) => part[..length].copy_from_slice(&page[from..from + length]),
                None => part[..length].fill(0),
            }
        }
        Ok(())
    }

    fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        // The dead write no more.
        if self.left.get() > 0 {
            self.left.set(self.left.get() - 1);
            let mut pages = self.pages.borrow_mut();
            for (page, to, from) in pieces(at, bytes.len()) {
                let part = &bytes[from..];
                let length = part.len().min(PAGE - to);
                pages.entry(page).or_insert_with(|| vec![0; PAGE])[to..to + length].copy_from_slice(&part[..length]);
            }
        }
        Ok(())
    }
}

/// What is not yet in the table, behind all else.
#[derive(Clone, Copy)]
struct Recent<'a>(&'a Memory);

const RECENT: u64 = 1 << 40;

impl Medium for Recent<'_> {
    fn read(&self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.0.read(RECENT + at, bytes)
    }

    fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write(RECENT + at, bytes)
    }
}

type Resources<'a> = OfMedium<&'a Memory, Recent<'a>>;

const PAGE: usize = 4096;

/// Page, where in it, and where in the bytes.
fn pieces(at: u64, length: usize) -> impl Iterator<Item = (u64, usize, usize)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let here = at + done as u64;
        let piece = (here / PAGE as u64, (here % PAGE as u64) as usize, done);
        let more = done < length;
        done += PAGE - piece.1;
        more.then_some(piece)
    })
}

impl Memory {
    fn new() -> Self {
        Self { left: Cell::new(usize::MAX), ..Self::default() }
    }

    fn resources(&self) -> Resources<'_> {
        let mut resources = OfMedium::new(self, Recent(self));
        resources.load();
        resources
    }

    fn apply(&self, unpublished: impl FnOnce(u64, u64) -> bool) {
        apply(&self, &Recent(self), unpublished).expect("a medium without errors");
    }
}

/// Names with contents: what there is to be seen.
fn seen(resources: &mut Resources<'_>) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let all: Vec<(u64, Vec<u8>)> = resources.all().map(|(key, name)| (key, name.to_vec())).collect();
    let read = |(key, name)| (name, resources.read(key, 0, LARGEST as usize).expect("undamaged"));
    all.into_iter().map(read).collect()
}

type Step = fn(&mut Resources<'_>) -> Result<(), ResourceError>;

/// A call each.
const STEPS: [Step; 11] = [
    |all| all.create(1, b"one"),
    |all| all.write(1, 0, &[7; 3 * BLOCK]),
    |all| all.create(2, b"two").and_then(|()| all.write(2, 100, b"hello")),
    |all| all.write(1, BLOCK as u64 - 3, b"across"),
    // From one index to the next.
    |all| all.write(2, 512 * BLOCK as u64 - 3, b"across"),
    |all| all.rename(1, b"other").and_then(|()| all.remove(2)),
    |all| all.create(3, b"two").and_then(|()| all.write(3, 3, &[9; BLOCK])),
    |all| all.truncate(1, BLOCK as u64 + 10),
    |all| all.truncate(1, 3 * BLOCK as u64),
    |all| all.write(3, 2, b"x").and_then(|()| all.write(3, 4, b"y")).and_then(|()| all.write(1, 5, b"z")),
    |all| all.remove(1).and_then(|()| all.remove(3)),
];

/// As many calls as have room before the table is written, but for `left`; the last of them is STEPS[..at].
fn make(resources: &mut Resources<'_>, at: usize, left: usize) -> u64 {
    let mut sequence = 0;
    let mut call = |step: &dyn Fn(&mut Resources<'_>) -> Result<(), ResourceError>| {
        step(resources).expect("done");
        sequence += 1;
        resources.commit(sequence, 0);
    };
    call(&|all| all.create(99, b"of all calls before"));
    for number in 0..RECORDS.saturating_sub(at + 1 + left) {
        call(&|all| all.rename(99, &number.to_le_bytes()));
    }
    STEPS[..at].iter().for_each(|step| call(step));
    sequence
}

#[test]
fn a_call_that_is_stopped_at_any_write_has_happened_or_not_as_its_reply_was_published_or_not() {
    let mut stops = 0;
    // It is the one for which the table is written, or the last before.
    for ((at, step), room) in STEPS.iter().enumerate().flat_map(|step| [(step, 0), (step, 1)]) {
        for left in 0.. {
            let memory = Memory::new();
            let mut resources = memory.resources();
            let sequence = make(&mut resources, at, room) + 1;
            let before = seen(&mut resources);
            memory.left.set(left);
            // It does not know that it is dead, and may stumble over what it did not write.
            let done = step(&mut resources);
            if done.is_ok() {
                resources.commit(sequence, 5);
            }
            let whole = memory.left.get() > 0;
            assert!(!whole || done.is_ok());
            assert!(!whole || seen(&mut resources) != before);
            drop(resources);
            memory.left.set(usize::MAX);
            // Twice, as if the first one had been interrupted at its end.
            for _ in 0..2 {
                memory.apply(|number, place| (number, place) == (sequence, 5));
                assert_eq!(seen(&mut memory.resources()), before, "step {at}, room {room}, {left} writes");
            }
            stops += 1;
            if whole {
                break;
            }
        }
        // Published: it is there.
        let memory = Memory::new();
        let mut resources = memory.resources();
        let sequence = make(&mut resources, at, room) + 1;
        step(&mut resources).expect("done");
        resources.commit(sequence, 5);
        memory.apply(|_, _| false);
        let after = seen(&mut resources);
        assert_eq!(seen(&mut memory.resources()), after);
        // And that once and for all.
        memory.apply(|_, _| true);
        assert_eq!(seen(&mut memory.resources()), after);
    }
    assert!(stops > 100, "{stops} stops");
}

#[test]
fn what_was_put_down_and_is_not_what_was_written_is_not_believed() {
    let memory = Memory::new();
    let mut resources = memory.resources();
    make(&mut resources, 3, 0);
    let after = seen(&mut resources);
    for at in (0..RECORDS as u64).map(|record| recent::at(record as usize) + 8 + record % 40) {
        let mut byte = [0];
        Recent(&memory).read(at, &mut byte).expect("there");
        Recent(&memory).write(at, &[byte[0] ^ 0x10]).expect("there");
    }
    memory.apply(|_, _| false);
    assert!(seen(&mut memory.resources()).is_empty() && !after.is_empty());
}

#[test]
fn what_is_written_to_the_table_and_stopped_is_written_again() {
    for left in 0..10 {
        let memory = Memory::new();
        let mut resources = memory.resources();
        for (number, step) in STEPS[..5].iter().enumerate() {
            step(&mut resources).expect("done");
            resources.commit(number as u64 + 1, 0);
        }
        let before = seen(&mut resources);
        STEPS[5](&mut resources).expect("done");
        resources.commit(6, 0);
        drop(resources);
        memory.left.set(left);
        memory.apply(|number, _| number == 6);
        memory.left.set(usize::MAX);
        memory.apply(|number, _| number == 6);
        assert_eq!(seen(&mut memory.resources()), before);
    }
}

#[test]
fn what_a_refused_call_changed_is_as_before_and_its_blocks_are_free() {
    let memory = Memory::new();
    let mut resources = memory.resources();
    resources.create(1, b"one").expect("room");
    resources.write(1, 0, b"kept").expect("room");
    resources.commit(1, 0);
    for _ in 0..10_000 {
        resources.create(2, b"two").expect("room");
        resources.write(2, 0, &[1; 100 * BLOCK]).expect("room again");
        resources.write(1, 1, b"lost").expect("room");
        resources.remove(1).expect("there");
        resources.rollback();
    }
    assert_eq!(seen(&mut resources), BTreeMap::from([(b"one".to_vec(), b"kept".to_vec())]));
    assert_eq!(resources.write(2, 0, b"?"), Err(ResourceError::Unknown));
}

#[test]
fn a_full_storage_says_so_and_loses_nothing() {
    let file = File::from(super::create().expect("a file in memory"));
    let beside = Shared::<recent::Area>::create(c"test").expect("memory");
    let beside = Arc::new(Shared::<recent::Area>::map(beside.as_fd()).expect("a mapping"));
    let mut resources = OfMedium::new(file.try_clone().expect("a descriptor"), beside.clone());
    resources.load();
    let piece = vec![5; 256 * BLOCK];
    let mut sequence = 0;
    let mut full = 0;
    for key in 1..=20 {
        resources.create(key, key.to_string().as_bytes()).expect("an entry");
        for at in 0..LARGEST / piece.len() as u64 {
            full += match resources.write(key, at * piece.len() as u64, &piece) {
                Ok(()) => 0,
                Err(error) => {
                    assert_eq!(error, ResourceError::Full);
                    1
                }
            };
            sequence += 1;
            resources.commit(sequence, 0);
        }
        if full > 0 {
            break;
        }
    }
    assert!(full > 0);
    apply(&file, &beside, |_, _| false).expect("a table");
    let mut again = OfMedium::new(file, beside);
    again.load();
    assert_eq!(again.write(1, 0, &piece), Err(ResourceError::Full), "found out anew");
    assert_eq!(again.read(1, 0, piece.len()), Ok(piece.clone()));
    again.remove(2).expect("there");
    again.commit(sequence + 1, 0);
    again.write(1, 0, &piece).expect("room");
    assert_eq!(again.write(1, LARGEST - 1, b"ab"), Err(ResourceError::TooLarge));
    assert_eq!(again.create(99, &[0; NAME + 1]), Err(ResourceError::NameTooLong));
}

#[test]
fn damage_is_found_wherever_it_is() {
    let memory = Memory::new();
    let mut resources = memory.resources();
    resources.create(1, b"one").expect("room");
    resources.write(1, 0, &[3; 2 * BLOCK]).expect("room");
    resources.create(2, b"two").expect("room");
    resources.write(2, 0, b"unharmed").expect("room");
    resources.commit(1, 0);
    memory.apply(|_, _| false);
    // Entry, first and second block, index.
    for (turn, at) in
        [place(0) + 20, DATA + BLOCK as u64 + 7, DATA + 2 * BLOCK as u64 + 4095, DATA + 3 * BLOCK as u64 + 1]
            .into_iter()
            .enumerate()
    {
        let mut byte = [0];
        (&memory).read(at, &mut byte).expect("there");
        (&memory).write(at, &[byte[0] ^ 0x10]).expect("there");
        let mut again = memory.resources();
        let read = again.read(1, 0, 2 * BLOCK);
        assert!(matches!(read, Err(ResourceError::Damaged | ResourceError::Unknown)), "at {at}");
        assert_eq!(again.read(2, 0, 100).as_deref(), Ok(&b"unharmed"[..]));
        // Nor is a new one put in its place.
        let key = 10 + turn as u64;
        again.create(key, b"more").expect("room");
        again.commit(key, 0);
        memory.apply(|_, _| false);
        assert!(memory.resources().read(key, 0, 1).is_ok());
        (&memory).write(at, &byte).expect("there");
    }
    assert_eq!(memory.resources().read(1, 0, 2 * BLOCK), Ok(vec![3; 2 * BLOCK]));
    // Nonsense beside it and in the header harms nobody.
    Recent(&memory).write(8, &[0xff; 300_000]).expect("there");
    (&memory).write(USED, &[0xff; 8]).expect("there");
    memory.apply(|_, _| true);
    memory.resources();
}
