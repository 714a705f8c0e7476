//! Memory shared with the child: a slot for each argument, room for inputs, all filled with a canary.

use crate::raw::{call, must};
use outlast_calls::Memory;
use std::sync::atomic::{AtomicU32, Ordering};

/// A slot's address lies in the middle of so many bytes.
const SLOT: usize = 64 << 10;
const FRONT: usize = 16 << 10;
const INPUTS: usize = 6 * SLOT;
/// The child reports here; not compared.
const REPORT: usize = INPUTS + SLOT;
const SIZE: usize = REPORT + (4 << 10);

const PROT_READ_WRITE: u64 = 3;
const MAP_SHARED_ANONYMOUS: u64 = 0x21;

/// Stands for the child's own process id among the arguments.
pub const OWN_PID: u64 = 0x0777_7777_7777_7777;
/// Stands for the word at [`Arena::loaded`], which an earlier call of the child has written.
pub const LOADED: u64 = 0x0777_7777_7777_7778;

/// Whether the child makes a child of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grandchild {
    None,
    /// It ends at once.
    Exits,
    /// It waits for its end; its process id is left at [`Arena::loaded`].
    Stays,
}

/// The memory of one probe, and what must be done in the child before and in the parent after it.
pub struct Arena {
    base: *mut u8,
    used: usize,
    /// Calls that the child makes before the one that is looked at.
    pub before: Vec<(u64, [u64; 6])>,
    /// A child of the child's own.
    pub grandchild: Grandchild,
    /// The call that the handler makes from the second alarm on, so that a call which is issued again comes to an end.
    pub feed: Option<(u64, [u64; 6])>,
    /// Where [`LOADED`] is found.
    pub loaded: u64,
    scratched: usize,
    cleanup: Vec<Box<dyn FnOnce()>>,
}

impl Arena {
    pub fn new(canary: u8) -> Arena {
        let base = must("mmap", [0, SIZE as u64, PROT_READ_WRITE, MAP_SHARED_ANONYMOUS, u64::MAX, 0]) as *mut u8;
        // SAFETY: the mapping is SIZE bytes, new and our own.
        unsafe { base.write_bytes(canary, SIZE) };
        Arena {
            base,
            used: 0,
            before: Vec::new(),
            grandchild: Grandchild::None,
            feed: None,
            loaded: 0,
            scratched: 64,
            cleanup: Vec::new(),
        }
    }

    /// The address of an argument's slot.
    pub fn slot(&self, arg: usize) -> u64 {
        self.base as u64 + (arg * SLOT + FRONT) as u64
    }

    /// Writes into an argument's slot.
    pub fn put(&mut self, arg: usize, bytes: &[u8]) -> u64 {
        let at = self.slot(arg);
        self.write(at, bytes);
        at
    }

    /// Writes into the room for inputs, aligned to 64 bytes with some canary behind it.
    pub fn input(&mut self, bytes: &[u8]) -> u64 {
        let at = self.base as u64 + (INPUTS + self.used) as u64;
        self.used += (bytes.len() + 64).next_multiple_of(64);
        assert!(self.used <= SLOT);
        self.write(at, bytes);
        at
    }

    /// A C string in the room for inputs.
    pub fn text(&mut self, text: &str) -> u64 {
        let mut bytes = text.as_bytes().to_vec();
        bytes.push(0);
        self.input(&bytes)
    }

    /// 64-bit words in the room for inputs.
    pub fn words(&mut self, words: &[u64]) -> u64 {
        self.input(&bytes(words))
    }

    /// Empty room for `len` bytes of output, still canary, in the room for inputs.
    pub fn room(&mut self, len: usize) -> u64 {
        let at = self.base as u64 + (INPUTS + self.used) as u64;
        self.used += (len + 64).next_multiple_of(64);
        assert!(self.used <= SLOT);
        at
    }

    /// Memory that is not compared, for what earlier calls of the child write.
    pub fn scratch(&mut self, bytes: &[u8]) -> u64 {
        let offset = REPORT + self.scratched;
        self.scratched += bytes.len().next_multiple_of(64);
        assert!(offset + bytes.len() <= SIZE);
        // SAFETY: just checked to lie inside the mapping; `bytes` is memory of Rust's own, outside it.
        unsafe {
            self.base.add(offset).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            self.base.add(offset) as u64
        }
    }

    /// Keeps something until the probe is over.
    pub fn keep(&mut self, thing: impl Sized + 'static) {
        self.finally(move || drop(thing));
    }

    /// Lets the child make a call first.
    pub fn first(&mut self, name: &str, args: &[u64]) {
        self.before.push(call(name, args));
    }

    /// Lets the handler make a call from the second alarm on.
    pub fn feed(&mut self, name: &str, args: &[u64]) {
        self.feed = Some(call(name, args));
    }

    /// Does something in the parent when the probe is over.
    pub fn finally<T>(&mut self, work: impl FnOnce() -> T + 'static) {
        self.cleanup.push(Box::new(|| drop(work())));
    }

    /// A copy of everything that is compared.
    pub fn snapshot(&self) -> Vec<u8> {
        // SAFETY: REPORT bytes of the mapping; no child is running.
        unsafe { std::slice::from_raw_parts(self.base, REPORT) }.to_vec()
    }

    /// Offset in a snapshot of an address.
    pub fn offset(&self, at: u64) -> usize {
        at.wrapping_sub(self.base as u64) as usize
    }

    /// Where the child leaves its result.
    pub fn report(&self) -> *mut i64 {
        // SAFETY: inside the mapping, aligned to a page.
        unsafe { self.base.add(REPORT) }.cast()
    }

    fn write(&mut self, at: u64, bytes: &[u8]) {
        let offset = self.offset(at);
        assert!(offset + bytes.len() <= REPORT);
        // SAFETY: just checked to lie inside the mapping; `bytes` is memory of Rust's own, outside it.
        unsafe { self.base.add(offset).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }
}

impl Memory for Arena {
    fn read(&self, at: u64, into: &mut [u8]) -> bool {
        let offset = self.offset(at);
        if offset >= REPORT || offset + into.len() > REPORT {
            return false;
        }
        // SAFETY: just checked to lie inside the mapping.
        unsafe { self.base.add(offset).copy_to_nonoverlapping(into.as_mut_ptr(), into.len()) };
        true
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        for work in self.cleanup.drain(..) {
            work();
        }
        must("munmap", [self.base as u64, SIZE as u64]);
    }
}

/// A name that no other probe has: children of other probes may still hold what was named before.
pub fn unique(test: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("outlast-{test}-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// A path for a file of a test's own.
pub fn unique_path(test: &str) -> String {
    format!("{}/{}", env!("CARGO_TARGET_TMPDIR"), unique(test))
}

/// 64-bit words as the bytes of memory.
pub fn bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}
