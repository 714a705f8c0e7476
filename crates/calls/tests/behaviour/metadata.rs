//! What is known about files, names and file systems.

use crate::arena::Arena;
use crate::probe::probes;
use crate::raw::must;
use std::os::unix::fs::MetadataExt;

const AT_FDCWD: u64 = -100_i64 as u64;
const STATX_ALL: u64 = 0xffff_ffff >> 1;
const AT_HANDLE_MNT_ID_UNIQUE: u64 = 1;

fn passwd(arena: &mut Arena) -> u64 {
    arena.text("/etc/passwd")
}

fn opened(arena: &mut Arena, path: &str) -> u64 {
    let path = arena.text(path);
    let fd = must("open", [path, 0, 0]);
    arena.finally(move || must("close", [fd]));
    fd
}

/// A `struct mnt_id_req` that asks everything about a mount, by its unique id (-1: the root of the list).
fn mount(id: u64) -> [u64; 3] {
    [24, id, 0x3f]
}

/// The unique id of the mount of `/`: statx with STATX_MNT_ID_UNIQUE.
fn root(arena: &mut Arena) -> u64 {
    let (path, buffer) = (arena.text("/"), arena.room(256));
    must("statx", [AT_FDCWD, path, 0, 0x4000, buffer]);
    let snapshot = arena.snapshot();
    let at = arena.offset(buffer) + 0x90;
    u64::from_ne_bytes(snapshot[at..at + 8].try_into().expect("8 bytes"))
}

probes! {
    stat Success arena => vec![(0, passwd(arena))];
    lstat Success arena => vec![(0, passwd(arena))];
    fstat Success arena => vec![(0, opened(arena, "/etc/passwd"))];
    newfstatat Success arena => vec![(0, AT_FDCWD), (1, passwd(arena)), (3, 0)];
    statx Success arena => vec![(0, AT_FDCWD), (1, passwd(arena)), (2, 0), (3, STATX_ALL)];
    access Success arena => vec![(0, passwd(arena)), (1, 4)];
    faccessat Success arena => vec![(0, AT_FDCWD), (1, passwd(arena)), (2, 4)];
    faccessat2 Success arena => vec![(0, AT_FDCWD), (1, passwd(arena)), (2, 4), (3, 0)];
    ustat Support _arena => vec![(0, std::fs::metadata("/").expect("a root directory").dev())];
    statfs Success arena => vec![(0, passwd(arena))];
    fstatfs Success arena => vec![(0, opened(arena, "/etc/passwd"))];
    lookup_dcookie Answer _arena => vec![(2, 64)];
    statmount Support arena => {
        let id = root(arena);
        vec![(0, arena.words(&mount(id))), (2, 2048), (3, 0)]
    };
    listmount Support arena => {
        vec![(0, arena.words(&[24, u64::MAX, 0])), (2, 8), (3, 0)]
    };
    file_getattr Support arena => vec![(0, AT_FDCWD), (1, passwd(arena)), (3, 24), (4, 0)];
    name_to_handle_at Support[3] arena => {
        vec![(0, AT_FDCWD), (1, passwd(arena)), (2, arena.put(2, &128_u32.to_ne_bytes())), (4, 0)]
    };
    name_to_handle_at_of_unique_mount(name_to_handle_at) Support arena => {
        let handle = arena.put(2, &128_u32.to_ne_bytes());
        vec![(0, AT_FDCWD), (1, passwd(arena)), (2, handle), (4, AT_HANDLE_MNT_ID_UNIQUE)]
    };
    name_to_handle_at_of_small_room(name_to_handle_at) Answer arena => {
        vec![(0, AT_FDCWD), (1, passwd(arena)), (2, arena.put(2, &2_u32.to_ne_bytes())), (4, 0)]
    };
    // The upper half of an `int` argument means nothing.
    readlink Success arena => vec![(0, arena.text("/proc/self")), (2, 0x7777_0000_0000 + 64)];
    readlinkat Success arena => vec![(0, AT_FDCWD), (1, arena.text("/proc/self")), (3, 64)];
    getcwd Success _arena => vec![(1, 4096)];
    cachestat Support arena => vec![(0, opened(arena, "/etc/passwd")), (1, arena.words(&[0, 0])), (3, 0)];
    readahead Success arena => vec![(0, opened(arena, "/etc/passwd")), (1, 0), (2, 100)];
    fadvise64 Success arena => vec![(0, opened(arena, "/etc/passwd")), (1, 0), (2, 100), (3, 0)];
    getdents Success arena => vec![(0, opened(arena, "/etc")), (2, 600)];
    getdents64 Success arena => vec![(0, opened(arena, "/etc")), (2, 600)];
}
