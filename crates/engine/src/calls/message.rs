//! Arguments of scattered transfers, copied out of the program's memory once and checked.

use crate::user;
use outlast_image::layout::{session, SESSION_BASE};

/// Start of the bounce buffer's data part: inputs land here, in memory that outlives the process.
pub const DATA: u64 = SESSION_BASE + session::BOUNCE + (64 << 10);
/// Bytes that one input operation takes at most.
pub const DATA_LEN: u64 = session::BOUNCE_LEN - (128 << 10);
/// Start of the part for headers: message header, vectors, addresses, control data.
pub const HEAD: u64 = SESSION_BASE + session::BOUNCE;
const VECTORS: u64 = HEAD + 4096;
/// Address of the bounce buffer for socket addresses.
pub const NAME: u64 = HEAD + 1024;
pub const NAME_LEN: u64 = 256;
/// Control data.
pub const CONTROL: u64 = HEAD + (40 << 10);
pub const CONTROL_LEN: u64 = 16 << 10;
const MOST: usize = 1024;

/// `struct msghdr`.
#[repr(C)]
#[derive(Clone, Copy, Default, bytemuck::Pod, bytemuck::Zeroable)]
pub struct Header {
    pub name: u64,
    pub name_len: u64,
    pub vectors: u64,
    pub count: u64,
    pub control: u64,
    pub control_len: u64,
    pub flags: u64,
}

/// A list of `(address, length)` of the program's.
#[derive(Clone, Copy)]
pub struct Vectors {
    at: u64,
    count: usize,
    /// Sum of the lengths.
    pub total: u64,
}

impl Vectors {
    /// Reads the list's lengths; `None` for a bad pointer or too many.
    pub fn new(at: u64, count: u64) -> Option<Vectors> {
        if count > MOST as u64 {
            return None;
        }
        let mut v = Vectors { at, count: count as usize, total: 0 };
        for i in 0..v.count {
            v.total = v.total.checked_add(v.get(i)?[1])?;
        }
        Some(v)
    }

    fn get(&self, i: usize) -> Option<[u64; 2]> {
        user::read(self.at + i as u64 * 16)
    }

    /// Writes the list without its first `skip` bytes into the bounce buffer; its address and count there.
    pub fn place(&self, skip: u64) -> Option<(u64, u64)> {
        let (mut skip, mut n) = (skip, 0);
        for i in 0..self.count {
            let [mut base, mut len] = self.get(i)?;
            if skip >= len {
                skip -= len;
                continue;
            }
            base += skip;
            len -= skip;
            skip = 0;
            // SAFETY: at most MOST entries of 16 bytes: 16 KiB in the bounce buffer.
            unsafe { ((VECTORS + n * 16) as *mut [u64; 2]).write([base, len]) };
            n += 1;
        }
        Some((VECTORS, n))
    }

    /// Spreads `len` bytes from the bounce buffer over the program's buffers.
    pub fn spread(&self, from: u64, len: u64) -> bool {
        let mut done = 0;
        for i in 0..self.count {
            let Some([base, room]) = self.get(i) else { return false };
            let n = room.min(len - done);
            // SAFETY: `from + done + n` lies in the data part of the bounce buffer.
            let bytes = unsafe { core::slice::from_raw_parts((from + done) as *const u8, n as usize) };
            if n > 0 && !user::write_bytes(base, bytes) {
                return false;
            }
            done += n;
            if done == len {
                return true;
            }
        }
        done == len
    }

    /// Writes a single vector over the bounce buffer's data part; its address.
    pub fn bounce(len: u64) -> u64 {
        single(DATA, len)
    }
}

/// Writes a single vector into the bounce buffer; its address.
pub fn single(addr: u64, len: u64) -> u64 {
    // SAFETY: one entry in the bounce buffer.
    unsafe { (VECTORS as *mut [u64; 2]).write([addr, len]) };
    VECTORS
}
