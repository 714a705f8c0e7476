//! The kernel's own list: /proc/self/fd.

use crate::proc;
use crate::sys::{nr, syscall};

/// The descriptor that an entry of /proc/self/fd is named after.
pub fn number_of(name: &[u8]) -> Option<i32> {
    let digits = name.iter().map(|c| (*c as char).to_digit(10));
    let add = |n: i32, digit: Option<u32>| n.checked_mul(10)?.checked_add(digit? as i32);
    (!name.is_empty()).then_some(0).and_then(|zero| digits.into_iter().try_fold(zero, add))
}

/// Calls `f` for every open descriptor of the process.
pub fn for_each_open(mut f: impl FnMut(i32)) {
    let mut buf = [0u8; 4096];
    // SAFETY: getdents64 writes into the buffer; records are checked against its length.
    unsafe {
        let Ok(dir) = proc::open(c"/proc/self/fd", 0o200000) else { return };
        loop {
            let n = syscall!(nr::GETDENTS64, dir.fd, buf.as_mut_ptr(), buf.len());
            if n <= 0 {
                break;
            }
            let mut at = 0usize;
            while at + 19 < n as usize {
                let len = u16::from_le_bytes([buf[at + 16], buf[at + 17]]) as usize;
                let name = buf[at + 19..n as usize].split(|&b| b == 0).next().unwrap_or(&[]);
                if let Some(fd) = number_of(name).filter(|&fd| fd as i64 != dir.fd) {
                    f(fd);
                }
                at += len.max(1);
            }
        }
    }
}
