//! State that many hold at once: a thread's control block and the engine's own state are reached by reference, and by way of `thread::current`
//! and `engine` from within what is called. One thread at a time uses them, but the compiler would take an exclusive reference for the only way, keep
//! what it has read through it in registers, and not see what a called function has changed.

use core::cell::UnsafeCell;
use core::marker::PhantomPinned;

/// A structure with this in it is reached in other ways, too, while there is a reference to it: the compiler reads it anew after every call. It
/// takes no room.
#[repr(C)]
pub struct Aliased {
    /// References to what is not `Unpin` are not told to be the only ones.
    _exclusive: PhantomPinned,
    /// What can change behind a shared reference is not told to stay the same.
    _shared: UnsafeCell<()>,
}

impl Aliased {
    pub const fn new() -> Aliased {
        Aliased { _exclusive: PhantomPinned, _shared: UnsafeCell::new(()) }
    }
}
