//! Code sections: which of them threads are in is written down in memory of the program's, where `outlast run --hang` reads it.
//! `outlast_sections.h` does the same, and says more of how.

extern crate std;

use crate::ask::{ask, question};
use core::arch::asm;
use core::cell::Cell;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ptr;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

const SLOTS: usize = 128;
const DEPTH: usize = 32;
const LEFT: usize = 16;
const MAGIC: u64 = u64::from_le_bytes(*b"OUTLsec1");
/// So many entries go by until a thread looks again whether the program has become protected.
const AGAIN: u64 = 4096;

#[repr(C)]
struct Frame {
    section: AtomicU64,
    run: AtomicU64,
    stack: AtomicU64,
    caller: AtomicU64,
}

#[repr(C)]
struct Left {
    section: AtomicU64,
    run: AtomicU64,
    exit: AtomicU64,
}

/// One thread's.
#[repr(C)]
struct Slot {
    owner: AtomicU64,
    runs: AtomicU64,
    len: AtomicU64,
    exits: AtomicU64,
    reserved: [AtomicU64; 4],
    frames: [Frame; DEPTH],
    left: [Left; LEFT],
}

#[repr(C, align(64))]
struct Registry {
    magic: AtomicU64,
    used: AtomicU64,
    reserved: [AtomicU64; 6],
    slots: [Slot; SLOTS],
}

impl Slot {
    const fn new() -> Self {
        Self {
            owner: AtomicU64::new(0),
            runs: AtomicU64::new(0),
            len: AtomicU64::new(0),
            exits: AtomicU64::new(0),
            reserved: [const { AtomicU64::new(0) }; 4],
            frames: [const {
                Frame {
                    section: AtomicU64::new(0),
                    run: AtomicU64::new(0),
                    stack: AtomicU64::new(0),
                    caller: AtomicU64::new(0),
                }
            }; DEPTH],
            left: [const { Left { section: AtomicU64::new(0), run: AtomicU64::new(0), exit: AtomicU64::new(0) } };
                LEFT],
        }
    }

    fn len(&self) -> usize {
        (self.len.load(Relaxed) as usize).min(DEPTH)
    }

    fn position(&self, section: u64) -> Option<usize> {
        self.frames[..self.len()].iter().rposition(|frame| frame.section.load(Relaxed) == section)
    }

    fn take_away(&self, at: usize) {
        let len = self.len();
        // Of the one slot that threads share another one may have taken it.
        let Some(last) = len.checked_sub(1) else { return };
        for to in at..last {
            let [here, next] = [&self.frames[to], &self.frames[to + 1]];
            here.section.store(next.section.load(Relaxed), Relaxed);
            here.run.store(next.run.load(Relaxed), Relaxed);
        }
        self.frames[last].run.store(0, Relaxed);
        self.len.store(last as u64, Relaxed);
    }

    fn enter(&self, section: u64) {
        if let Some(at) = self.position(section) {
            self.take_away(at);
        }
        let len = self.len();
        if let Some(frame) = self.frames.get(len) {
            // First the room, so that a handler takes its own.
            self.len.store(len as u64 + 1, Relaxed);
            frame.run.store(0, Relaxed);
            frame.section.store(section, Relaxed);
            frame.stack.store(u64::MAX, Relaxed);
            frame.run.store(count(&self.runs) + 1, Relaxed);
        } else {
            count(&self.runs);
        }
    }

    fn leave(&self, section: u64, exit: u32) {
        let Some(at) = self.position(section) else { return };
        let left = &self.left[count(&self.exits) as usize % LEFT];
        left.run.store(0, Relaxed);
        left.section.store(section, Relaxed);
        left.exit.store(exit.into(), Relaxed);
        left.run.store(self.frames[at].run.load(Relaxed), Relaxed);
        self.take_away(at);
    }
}

/// Adds one, whatever a handler does meanwhile, and returns what was there. Only one thread counts.
fn count(word: &AtomicU64) -> u64 {
    let mut by = 1u64;
    // SAFETY: adds to a word that is borrowed, and that only this thread writes to.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        asm!("xadd qword ptr [{}], {}", in(reg) word.as_ptr(), inout(reg) by, options(nostack));
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        by = word.fetch_add(by, Relaxed);
    }
    by
}

static REGISTRY: Registry = Registry {
    magic: AtomicU64::new(0),
    used: AtomicU64::new(0),
    reserved: [const { AtomicU64::new(0) }; 6],
    slots: [const { Slot::new() }; SLOTS],
};
/// Of threads for which there is no room.
static SPARE: Slot = Slot::new();

std::thread_local! {
    static MINE: Cell<*const Slot> = const { Cell::new(ptr::null()) };
}

fn mine() -> &'static Slot {
    let slot = MINE.get();
    // SAFETY: only slots of the statics are put there.
    match unsafe { slot.as_ref() } {
        Some(slot) if slot.runs.load(Relaxed) % AGAIN != 0 => slot,
        slot => take(slot),
    }
}

/// A slot for this thread: one that it, or another of its number, had before; a free one; one whose thread has ended.
#[cold]
fn take(mine: Option<&'static Slot>) -> &'static Slot {
    const GETPID: i64 = 39;
    const GETTID: i64 = 186;
    const TGKILL: i64 = 234;
    let own = call(GETTID, [0; 3]) as u64;
    let claim = |slot: &Slot, from| slot.owner.compare_exchange(from, own, AcqRel, Relaxed).is_ok();
    let has_ended = |owner: u64| call(TGKILL, [call(GETPID, [0; 3]), owner as i64, 0]) == -3;
    let find = || {
        let mut slots = REGISTRY.slots.iter().enumerate();
        let owner = |slot: &Slot| slot.owner.load(Acquire);
        let found = slots
            .clone()
            .find(|(_, slot)| owner(slot) == own)
            .or_else(|| slots.clone().find(|(_, slot)| owner(slot) == 0 && claim(slot, 0)))
            .or_else(|| slots.find(|(_, slot)| has_ended(owner(slot)) && claim(slot, owner(slot))));
        let Some((at, slot)) = found else { return &SPARE };
        slot.len.store(0, Relaxed);
        REGISTRY.used.fetch_max(at as u64 + 1, AcqRel);
        slot
    };
    let slot = mine.unwrap_or_else(find);
    MINE.set(slot);
    if !ptr::eq(slot, &SPARE) {
        // A child has another number.
        slot.owner.store(own, Relaxed);
    }
    REGISTRY.magic.store(MAGIC, Relaxed);
    ask(question::SECTIONS, ptr::from_ref(&REGISTRY) as usize, 0);
    slot
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn call(number: i64, arguments: [i64; 3]) -> i64 {
    let [a, b, c] = arguments;
    let result;
    // SAFETY: these calls read and write no memory.
    unsafe {
        asm!("syscall", inlateout("rax") number => result, in("rdi") a, in("rsi") b, in("rdx") c,
            lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    result
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn call(_number: i64, _arguments: [i64; 3]) -> i64 {
    -38
}

/// A code section: what a thread that is in it for much longer than it has been before does not leave any more.
///
/// ```
/// use outlast_api::Section;
/// static PARSING: Section = Section::new("parsing");
///
/// fn parse(text: &str) -> Option<u32> {
///     let inside = PARSING.enter();
///     let Ok(number) = text.parse() else {
///         inside.leave(1);
///         return None;
///     };
///     Some(number)
/// }
/// assert_eq!(parse("7"), Some(7));
/// assert_eq!(parse("x"), None);
/// ```
#[repr(C)]
pub struct Section {
    name: *const u8,
    len: u64,
}

// SAFETY: the name is a string that nobody changes.
unsafe impl Sync for Section {}
// SAFETY: the same.
unsafe impl Send for Section {}

impl Section {
    /// # Panics
    /// Without a name.
    pub const fn new(name: &'static str) -> Self {
        assert!(!name.is_empty(), "a section has a name");
        Self { name: name.as_ptr(), len: name.len() as u64 }
    }

    /// What it is called.
    pub fn name(&self) -> &'static str {
        // SAFETY: `new` took it from a string of this length.
        unsafe { core::str::from_utf8_unchecked(core::slice::from_raw_parts(self.name, self.len as usize)) }
    }

    /// The thread enters it, and leaves it with what is returned, by exit 0. One that enters it again has left it. No system call is made but for one
    /// entry in 4096.
    pub fn enter(&'static self) -> Inside {
        mine().enter(self.address());
        Inside { section: self, of_thread: PhantomData }
    }

    fn address(&'static self) -> u64 {
        ptr::from_ref(self) as u64
    }
}

/// The thread is in a section.
#[must_use = "the section is left with it"]
pub struct Inside {
    section: &'static Section,
    of_thread: PhantomData<*const ()>,
}

impl Inside {
    /// Leaves the section by one of its other exits: histories are kept for each.
    pub fn leave(self, exit: u32) {
        ManuallyDrop::new(self).exit(exit);
    }

    fn exit(&self, exit: u32) {
        // SAFETY: only slots of the statics are put there.
        if let Some(slot) = unsafe { MINE.get().as_ref() } {
            slot.leave(self.section.address(), exit);
        }
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.exit(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_image::sections as image;
    use std::mem::{offset_of, size_of};
    use std::sync::{Mutex, MutexGuard};
    use std::vec::Vec;

    /// All tests have one registry.
    static REGISTRY_IS_USED: Mutex<()> = Mutex::new(());

    fn alone() -> MutexGuard<'static, ()> {
        REGISTRY_IS_USED.lock().unwrap_or_else(|e| e.into_inner())
    }

    static ONE: Section = Section::new("one");
    static OTHER: Section = Section::new("other");

    fn inside() -> Vec<u64> {
        let slot = mine();
        slot.frames[..slot.len()].iter().map(|frame| frame.section.load(Relaxed)).collect()
    }

    #[test]
    fn it_lies_as_whoever_reads_it_believes() {
        assert_eq!((SLOTS, DEPTH, LEFT, MAGIC), (image::SLOTS, image::DEPTH, image::LEFT, image::MAGIC));
        assert_eq!(size_of::<Slot>(), size_of::<image::Slot>());
        assert_eq!(offset_of!(Slot, frames), offset_of!(image::Slot, frames));
        assert_eq!(offset_of!(Slot, left), offset_of!(image::Slot, left));
        assert_eq!(offset_of!(Registry, slots), size_of::<image::Registry>());
        assert_eq!(size_of::<Section>(), size_of::<image::Named>());
    }

    #[test]
    fn sections_overlap_and_are_left_when_they_are_entered_again() {
        let _alone = alone();
        let (one, other) = (ONE.enter(), OTHER.enter());
        assert_eq!(inside(), [ONE.address(), OTHER.address()]);
        one.leave(3);
        assert_eq!(inside(), [OTHER.address()]);
        let again = OTHER.enter();
        assert_eq!(inside(), [OTHER.address()]);
        drop((again, other));
        assert!(inside().is_empty());
        assert_eq!((ONE.name(), OTHER.name()), ("one", "other"));
    }

    #[test]
    fn more_threads_than_there_are_slots_share_one_and_come_to_no_harm() {
        let _alone = alone();
        let enough = std::sync::Barrier::new(SLOTS + 40);
        std::thread::scope(|scope| {
            for _ in 0..SLOTS + 40 {
                scope.spawn(|| {
                    drop(ONE.enter());
                    enough.wait();
                    for _ in 0..20_000 {
                        let _inside = (ONE.enter(), OTHER.enter());
                    }
                    enough.wait();
                });
            }
        });
    }

    #[test]
    fn threads_have_slots_of_their_own_and_leave_them_to_others() {
        let _alone = alone();
        for _ in 0..3 * SLOTS {
            std::thread::spawn(|| {
                let _inside = ONE.enter();
                assert_eq!(inside(), [ONE.address()]);
            })
            .join()
            .unwrap();
        }
    }
}
