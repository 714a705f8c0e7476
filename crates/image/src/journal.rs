//! Kinds of entry in the store's journal: what a restored process undoes, or gets again.

/// Nothing any more: an entry that keeps others at their places, which entries name.
pub const NOTHING: u16 = 0;
/// Descriptor, offset: the offset before the first change since the commit.
pub const OFFSET: u16 = 1;
/// Hidden number, number, flags: a delayed close.
pub const CLOSE: u16 = 2;
/// `siginfo`: a signal that was delivered since the commit.
pub const SIGNAL: u16 = 3;
/// Descriptor, flags before: `fcntl(F_SETFD)`.
pub const FD_FLAGS: u16 = 4;
/// All entries before this one were undone.
pub const UNDONE: u16 = 5;
/// What a file was before its content changed: see the engine's `undo`, as for the next five.
pub const FILE: u16 = 6;
/// Bytes of a file before they were overwritten or cut off.
pub const BYTES: u16 = 7;
/// A name that is being made.
pub const MADE: u16 = 8;
/// What the name in the entry before was made for.
pub const MADE_AS: u16 = 9;
/// A name that is being removed.
pub const GONE: u16 = 10;
/// A name that is being moved.
pub const MOVED: u16 = 11;
/// What a read took, with the source: see the engine's `inputs`.
pub const INPUT: u16 = 12;
/// What had been sent on a connection before the first reply since the commit: see the engine's `replies`.
pub const REPLY: u16 = 13;
/// A sum over what was replied on a connection since then.
pub const REPLY_SUM: u16 = 14;
/// Descriptors are others from here on: what was read before was read from those of the dead.
pub const RESUMED: u16 = 15;
