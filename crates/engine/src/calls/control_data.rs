//! What a message over a socket carries besides its bytes (cmsg(3)).

use core::ops::Range;

/// `struct cmsghdr`: length with it, level, kind; the parts begin at multiples of eight.
const HEAD: usize = 16;

/// SCM_RIGHTS and SCM_CREDENTIALS of SOL_SOCKET, as the two words lie there.
pub const RIGHTS: u64 = 1 << 32 | 1;
pub const CREDENTIALS: u64 = 2 << 32 | 1;

/// The parts: what kind each is of, and where its data lie. A mad length ends them.
pub struct Parts<'a> {
    control: &'a [u8],
    at: usize,
}

pub fn parts(control: &[u8]) -> Parts<'_> {
    Parts { control, at: 0 }
}

impl Parts<'_> {
    fn word(&self, at: usize) -> Option<u64> {
        self.control.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes)
    }
}

impl Iterator for Parts<'_> {
    type Item = (u64, Range<usize>);

    fn next(&mut self) -> Option<Self::Item> {
        let (len, kind) = (self.word(self.at)?, self.word(self.at + 8)?);
        let left = self.control.len() - self.at;
        if len < HEAD as u64 || len > left as u64 {
            self.at = self.control.len();
            return None;
        }
        let (from, end) = (self.at + HEAD, self.at + len as usize);
        self.at = ((end + 7) & !7).min(self.control.len());
        Some((kind, from..end))
    }
}
