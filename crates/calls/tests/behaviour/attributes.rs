//! Extended attributes of a file of our own, where the file system has them.

use crate::arena::{bytes, unique_path, Arena};
use crate::probe::probes;
use crate::raw::{make, must};

const AT_FDCWD: u64 = -100_i64 as u64;

/// A file with an attribute: its path and the attribute's name.
fn file(arena: &mut Arena, test: &str) -> (u64, u64) {
    let path = unique_path(test);
    std::fs::write(&path, "contents").expect("a writable directory for tests");
    let (at, name, value) = (arena.text(&path), arena.text("user.outlast"), arena.text("some value"));
    // Where the file system refuses, the probes are skipped.
    make("setxattr", [at, name, value, 10, 0]);
    arena.finally(move || std::fs::remove_file(path).expect("our own file"));
    (at, name)
}

fn open(arena: &mut Arena, path: u64) -> u64 {
    let fd = must("open", [path, 0, 0]);
    arena.finally(move || must("close", [fd]));
    fd
}

probes! {
    getxattr Support arena => {
        let (path, name) = file(arena, "getxattr");
        vec![(0, path), (1, name), (3, 200)]
    };
    lgetxattr Support arena => {
        let (path, name) = file(arena, "lgetxattr");
        vec![(0, path), (1, name), (3, 200)]
    };
    fgetxattr Support arena => {
        let (path, name) = file(arena, "fgetxattr");
        vec![(0, open(arena, path)), (1, name), (3, 200)]
    };
    listxattr Support arena => vec![(0, file(arena, "listxattr").0), (2, 200)];
    llistxattr Support arena => vec![(0, file(arena, "llistxattr").0), (2, 200)];
    flistxattr Support arena => {
        let path = file(arena, "flistxattr").0;
        vec![(0, open(arena, path)), (2, 200)]
    };
    getxattrat Support arena => {
        let (path, name) = file(arena, "getxattrat");
        let value = arena.room(200);
        let args = arena.put(4, &bytes(&[value, 200]));
        vec![(0, AT_FDCWD), (1, path), (2, 0), (3, name), (4, args), (5, 16)]
    };
    listxattrat Support arena => {
        let path = file(arena, "listxattrat").0;
        vec![(0, AT_FDCWD), (1, path), (2, 0), (4, 200)]
    };
}
