//! What a file is: its identity, its size, its mode.

use crate::sys::syscall;
use bytemuck::{Pod, Zeroable};

const STATX: u64 = 332;
const AT_SYMLINK_NOFOLLOW: u64 = 0x100;
const AT_EMPTY_PATH: u64 = 0x1000;
const STATX_BASIC_AND_BTIME: u64 = 0xfff;
const S_IFMT: u32 = 0o170000;
const S_IFREG: u32 = 0o100000;
const S_IFDIR: u32 = 0o040000;
const S_IFLNK: u32 = 0o120000;

/// Which file it is. The time of its birth, where the file system knows it, tells it from an earlier one whose inode it got.
#[derive(Clone, Copy, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Identity {
    device: u64,
    inode: u64,
    born: [u64; 2],
}

impl Identity {
    /// No file's.
    pub const NONE: Identity = Identity { device: 0, inode: 0, born: [0; 2] };

    /// Its numbers, the major one in the lower half.
    pub fn device(&self) -> u64 {
        self.device
    }

    pub fn inode(&self) -> u64 {
        self.inode
    }

    /// Is it the same but for the device, which has another number in another boot?
    pub fn is_same_inode(&self, other: &Identity) -> bool {
        (self.inode, self.born) == (other.inode, other.born)
    }
}

/// What is to be seen of a file.
#[derive(Clone, Copy)]
pub struct Look {
    pub identity: Identity,
    pub size: u64,
    /// How many names it has.
    pub links: u32,
    mode: u32,
}

impl Look {
    pub fn is_regular(&self) -> bool {
        self.mode & S_IFMT == S_IFREG
    }

    pub fn is_folder(&self) -> bool {
        self.mode & S_IFMT == S_IFDIR
    }

    pub fn is_link(&self) -> bool {
        self.mode & S_IFMT == S_IFLNK
    }
}

/// Looks at `path` from the folder `dir`; a symbolic link itself is looked at. The program's own pointer will do.
pub fn at(dir: i64, path: *const u8) -> Result<Look, i64> {
    statx(dir, path, AT_SYMLINK_NOFOLLOW)
}

/// Looks at what `path` leads to from the working directory or from the folder `dir`.
pub fn through(dir: i64, path: *const u8) -> Result<Look, i64> {
    statx(dir, path, 0)
}

/// Looks at what is open as `fd`.
pub fn of(fd: i32) -> Result<Look, i64> {
    statx(fd as i64, c"".as_ptr().cast(), AT_EMPTY_PATH)
}

fn statx(dir: i64, path: *const u8, flags: u64) -> Result<Look, i64> {
    let mut st = [0u64; 32];
    // SAFETY: statx writes 256 bytes; the kernel checks the path.
    let r = unsafe { syscall!(STATX, dir, path, flags, STATX_BASIC_AND_BTIME, st.as_mut_ptr()) };
    if r != 0 {
        return Err(r);
    }
    Ok(Look {
        identity: Identity { device: st[17], inode: st[4], born: [st[10], st[11] & 0xffff_ffff] },
        size: st[5],
        links: st[2] as u32,
        mode: (st[3] >> 32) as u32 & 0xffff,
    })
}
