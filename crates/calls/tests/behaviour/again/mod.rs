//! Calls made again: what Redo and Once claim.

mod once;
mod redo;

use crate::arena::{unique_path, Arena};
use crate::raw::must;

const O_RDWR: u64 = 2;

/// A file of our own with something in it: its path.
fn file(arena: &mut Arena) -> u64 {
    let path = unique_path("again");
    std::fs::write(&path, [7; 10_000]).expect("a directory for tests");
    let at = arena.text(&path);
    // A rename or an unlink may have taken it away.
    arena.finally(move || std::fs::remove_file(path));
    at
}

/// The same, open.
fn opened(arena: &mut Arena) -> u64 {
    let path = file(arena);
    let fd = must("open", [path, O_RDWR]);
    arena.finally(move || must("close", [fd]));
    fd
}

/// A path that nothing has.
fn free(arena: &mut Arena) -> u64 {
    let path = unique_path("again");
    let at = arena.text(&path);
    arena.finally(move || std::fs::remove_dir(&path).or_else(|_| std::fs::remove_file(&path)));
    at
}
