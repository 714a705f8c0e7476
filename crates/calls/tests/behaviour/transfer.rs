//! Bytes from descriptors into memory, and offsets in memory.

use crate::arena::{unique_path, Arena};
use crate::descriptors::new_pipe;
use crate::probe::probes;
use crate::raw::must;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::fd::AsRawFd;

/// A pipe with some bytes in it: its ends.
fn filled(arena: &mut Arena) -> (u64, u64) {
    let (reader, writer) = new_pipe(arena);
    let text = arena.text("these are 23 characters");
    must("write", [writer, text, 23]);
    (reader, writer)
}

fn passwd(arena: &mut Arena) -> u64 {
    let file = File::open("/etc/passwd").expect("a readable file");
    let fd = file.as_raw_fd() as u64;
    arena.keep(file);
    fd
}

/// A file of our own, with something in it; it has no name any more.
fn scratch(arena: &mut Arena, test: &str) -> u64 {
    let path = unique_path(test);
    let mut file =
        OpenOptions::new().read(true).write(true).create_new(true).open(&path).expect("a directory for tests");
    std::fs::remove_file(&path).expect("our own file");
    file.write_all(&[7; 500]).expect("room on the disk");
    let fd = file.as_raw_fd() as u64;
    arena.keep(file);
    fd
}

/// Two buffers, and the array that names them.
fn buffers(arena: &mut Arena) -> u64 {
    let (one, two) = (arena.room(3), arena.room(90));
    arena.words(&[one, 3, two, 90])
}

fn offset(arena: &mut Arena, arg: usize) -> (usize, u64) {
    (arg, arena.put(arg, &2_u64.to_ne_bytes()))
}

probes! {
    read Success arena => vec![(0, filled(arena).0), (2, 100)];
    pread64 Success arena => vec![(0, passwd(arena)), (2, 50), (3, 1)];
    readv Success arena => vec![(0, filled(arena).0), (1, buffers(arena)), (2, 2)];
    preadv Success arena => vec![(0, passwd(arena)), (1, buffers(arena)), (2, 2), (3, 1), (4, 0)];
    preadv2 Success arena => vec![(0, passwd(arena)), (1, buffers(arena)), (2, 2), (3, 1), (4, 0), (5, 0)];
    vmsplice Success arena => vec![(0, filled(arena).0), (1, buffers(arena)), (2, 2), (3, 0)];
    sendfile Success arena => {
        vec![(0, filled(arena).1), (1, passwd(arena)), offset(arena, 2), (3, 20)]
    };
    splice_from_a_file(splice) Success[3] arena => {
        vec![(0, passwd(arena)), offset(arena, 1), (2, filled(arena).1), (3, 0), (4, 20), (5, 0)]
    };
    splice_to_a_file(splice) Success[1] arena => {
        vec![(0, filled(arena).0), (1, 0), (2, scratch(arena, "splice")), offset(arena, 3), (4, 20), (5, 0)]
    };
    copy_file_range Success arena => {
        let (from, to) = (scratch(arena, "from"), scratch(arena, "to"));
        vec![(0, from), offset(arena, 1), (2, to), offset(arena, 3), (4, 20), (5, 0)]
    };
}
