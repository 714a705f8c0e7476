//! Descriptors that were just opened: the call that did so says most of what a commit has to say of them.
//!
//! Many programs open a file, read it and close it, for each request that they serve. Asking the kernel for its name alone costs more
//! than the commit. So the next commits describe such a descriptor by the path that the program has given; the kernel is asked for
//! everything once it has lived for a while.

use crate::sys::syscall;
use crate::user;

const STATX: u64 = 332;
const AT_EMPTY_PATH: u64 = 0x1000;
const AT_STATX_DONT_SYNC: u64 = 0x4000;
const STATX_TYPE_INO: u32 = 0x101;
const STATX_MNT_ID_UNIQUE: u32 = 0x4000;
const S_IFMT: u16 = 0o170000;
const S_IFREG: u16 = 0o100000;
const O_CLOEXEC: u64 = 0o2000000;
/// O_CREAT, O_EXCL, O_NOCTTY, O_TRUNC, O_CLOEXEC: the kernel does not keep them with the open file.
const NOT_KEPT: u64 = 0o100 | 0o200 | 0o400 | 0o1000 | O_CLOEXEC;
/// The kernel adds it.
const O_LARGEFILE: u64 = 0o100000;
const O_ACCMODE: u64 = 3;
const O_NONBLOCK: u64 = 0o4000;
/// Others are rare, and the kernel changes some of them.
const PLAIN: u64 = O_ACCMODE | O_NONBLOCK | O_CLOEXEC | O_LARGEFILE;

/// How many are remembered.
const ROOM: usize = 4;
/// How many commits describe it by what the call has said.
const YOUTH: u8 = 100;
/// Longest path that is.
const PATH: usize = 256;
/// File systems whose kind is remembered.
const MOUNTS: usize = 4;

/// One of them: always a regular file, its path absolute.
#[derive(Clone, Copy)]
pub struct Fresh {
    fd: i32,
    /// As F_GETFL tells them.
    pub flags: u32,
    /// As F_GETFD tells them.
    pub fd_flags: u32,
    pub dev: u64,
    pub inode: u64,
    /// The mount's number, never given again; 0: the kernel does not tell.
    pub mount: u64,
    path: [u8; PATH],
    path_len: usize,
    /// Commits that are left to it.
    youth: u8,
}

impl Fresh {
    const NONE: Fresh =
        Fresh { fd: -1, flags: 0, fd_flags: 0, dev: 0, inode: 0, mount: 0, path: [0; PATH], path_len: 0, youth: 0 };

    pub fn path(&self) -> &[u8] {
        &self.path[..self.path_len]
    }
}

/// Those of the last while.
pub struct Table {
    all: [Fresh; ROOM],
    next: usize,
    /// There may be some.
    any: bool,
    /// Mounts that copy what is read.
    copying: [u64; MOUNTS],
    next_mount: usize,
}

impl Table {
    pub const NONE: Table =
        Table { all: [Fresh::NONE; ROOM], next: 0, any: false, copying: [0; MOUNTS], next_mount: 0 };

    /// The call that opened `fd` named this path, and these flags. What it says does not suffice: nothing is remembered. Returns what
    /// is none any more, to make room.
    pub fn opened(&mut self, fd: i32, path: u64, flags: u64) -> Option<i32> {
        let old = Some(self.all[self.next].fd).filter(|old| *old >= 0);
        self.remember(fd, path, flags);
        old.filter(|old| self.get(*old).is_none())
    }

    fn remember(&mut self, fd: i32, path: u64, flags: u64) {
        if flags & !PLAIN != 0 || fd < 0 {
            return;
        }
        let one = &mut self.all[self.next];
        one.fd = -1;
        let Some(len) = user::read_path(path, &mut one.path) else { return };
        if one.path[0] != b'/' {
            return;
        }
        let mut st = [0u8; 256];
        let mask = STATX_TYPE_INO | STATX_MNT_ID_UNIQUE;
        let empty = c"".as_ptr();
        // SAFETY: statx writes 256 bytes.
        if unsafe { syscall!(STATX, fd, empty, AT_EMPTY_PATH | AT_STATX_DONT_SYNC, mask, st.as_mut_ptr()) } != 0 {
            return;
        }
        let half = |at: usize| u32::from_ne_bytes([st[at], st[at + 1], st[at + 2], st[at + 3]]);
        let word = |at: usize| half(at) as u64 | (half(at + 4) as u64) << 32;
        if half(0) & STATX_TYPE_INO != STATX_TYPE_INO || half(28) as u16 & S_IFMT != S_IFREG {
            return;
        }
        one.path_len = len;
        one.flags = (flags & !NOT_KEPT | O_LARGEFILE) as u32;
        one.fd_flags = (flags & O_CLOEXEC != 0) as u32;
        one.inode = word(32);
        one.dev = device(half(136), half(140));
        one.mount = if half(0) & STATX_MNT_ID_UNIQUE != 0 { word(144) } else { 0 };
        (one.fd, one.youth, self.any) = (fd, YOUTH, true);
        self.next = (self.next + 1) % ROOM;
    }

    pub fn get(&self, fd: i32) -> Option<&Fresh> {
        self.all.iter().find(|one| one.fd == fd && fd >= 0)
    }

    /// The number stands for something else, or for the same with other flags.
    pub fn forget(&mut self, fd: i32) {
        self.all.iter_mut().filter(|one| one.fd == fd).for_each(|one| one.fd = -1);
    }

    /// One of those that are left, until there is none: each is none any more.
    pub fn take(&mut self) -> Option<i32> {
        let one = self.all.iter_mut().find(|one| one.fd >= 0);
        self.any = one.is_some();
        one.map(|one| core::mem::replace(&mut one.fd, -1))
    }

    /// Commits that have described them: one that has lived for so long, until there is none.
    pub fn grow_up(&mut self) -> Option<i32> {
        if !self.any {
            return None;
        }
        self.any = false;
        for one in self.all.iter_mut().filter(|one| one.fd >= 0) {
            self.any = true;
            if one.youth == 0 {
                return Some(core::mem::replace(&mut one.fd, -1));
            }
        }
        self.all.iter_mut().for_each(|one| one.youth = one.youth.saturating_sub(1));
        None
    }

    /// Is what is read from files of this mount copied, as far as known?
    pub fn copies(&self, mount: u64) -> bool {
        mount != 0 && self.copying.contains(&mount)
    }

    /// It is.
    pub fn note_copying(&mut self, mount: u64) {
        self.copying[self.next_mount] = mount;
        self.next_mount = (self.next_mount + 1) % MOUNTS;
    }
}

/// A device's number as fstat tells it.
fn device(major: u32, minor: u32) -> u64 {
    (minor & 0xff | (major & 0xfff) << 8 | (minor & !0xff) << 12) as u64
}
