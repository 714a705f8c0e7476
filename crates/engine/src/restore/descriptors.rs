//! The descriptor table goes back to the commit: what was closed is opened again, offsets are set back, what was opened
//! since is closed.

use crate::calls::epoll;
use crate::descriptors::{for_each_open, HIGHEST, RESERVED};
use crate::scratch;
use crate::state::{journal, object, Engine, OwnFd};
use crate::sys::{err, nr, syscall};
use outlast_image::descriptor::descriptor_kind as kind;
use outlast_image::inject::mutant;

const MOST: usize = 65536;
const F_GETFD: u64 = 1;

/// Undoes the journal, newest entry first, and fills the table with what was open at the commit.
pub fn undo(e: &mut Engine) {
    // The journal runs forwards, undoing runs backwards: entries pass through the scratch buffer.
    let buf = scratch::maps_text();
    let mut n = 0;
    e.store().journal_for_each(&mut |kind, bytes| {
        if bytes.len() <= 16 && n < MOST {
            let mut entry = [0u8; 24];
            entry[..2].copy_from_slice(&kind.to_le_bytes());
            entry[8..8 + bytes.len()].copy_from_slice(bytes);
            buf[n * 24..n * 24 + 24].copy_from_slice(&entry);
            n += 1;
        }
    });
    let mutants = e.args.mutants;
    for i in (0..n).rev() {
        let entry = &buf[i * 24..i * 24 + 24];
        let kind = u16::from_le_bytes([entry[0], entry[1]]);
        let a = i64::from_le_bytes(entry[8..16].try_into().unwrap_or([0; 8]));
        let b = i64::from_le_bytes(entry[16..24].try_into().unwrap_or([0; 8]));
        // SAFETY: descriptor calls on the program's table; numbers that are not open give EBADF.
        unsafe {
            match kind {
                journal::OFFSET if mutants & mutant::SKIP_OFFSET_UNDO == 0 => {
                    syscall!(nr::LSEEK, a, b, 0);
                }
                journal::CLOSE if mutants & mutant::SKIP_CLOSE_UNDO == 0 => reopen(e, a as i32, (a >> 32) as i32),
                journal::FD_FLAGS => {
                    syscall!(nr::FCNTL, a, 2, b);
                }
                _ => {}
            }
        }
    }
    load_table(e);
}

/// Gives the hidden descriptor its number back.
fn reopen(e: &Engine, hidden: i32, fd: i32) {
    if !e.fds.is_own(hidden) || e.fds.is_own(fd) {
        return;
    }
    // SAFETY: both numbers are checked; a close that had not happened yet is simply repeated.
    unsafe {
        let flags = syscall!(nr::FCNTL, hidden, F_GETFD);
        if !err::is(flags) {
            syscall!(nr::DUP3, hidden, fd, 0);
            syscall!(nr::CLOSE, hidden);
        }
    }
}

fn load_table(e: &mut Engine) {
    let buf = scratch::object_buffer();
    let n = e.store().object(object::DESCRIPTORS, 0, buf).unwrap_or(0);
    e.fds.clear();
    for (i, byte) in buf[..n.min(HIGHEST / 8)].iter().enumerate() {
        for bit in 0..8 {
            if byte >> bit & 1 != 0 {
                e.fds.opened((i * 8 + bit) as i64);
            }
        }
    }
    e.fds.dirty = false;
    while e.fds.next_touched().is_some() {}
}

/// Lets every epoll of the program report again what is ready.
pub fn rearm(e: &mut Engine) {
    for fd in 0..HIGHEST as i32 {
        if e.fds.is_open(fd) && e.fds.kind(fd) == kind::ANONYMOUS {
            epoll::rearm(fd, scratch::maps_text());
        }
    }
}

/// Is more open than what was at the commit? The kernel counts (Linux 6.2; before, it cannot be told), which takes a twentieth
/// of the time of listing them.
pub fn has_extra(e: &Engine) -> bool {
    let mut st = [0u64; 18];
    let (own, store, session) = (e.fds.own, e.args.store_fd, e.args.session_fd);
    // SAFETY: stat writes 144 bytes; F_GETFD changes nothing.
    unsafe {
        let told = syscall!(nr::STAT, c"/proc/self/fd".as_ptr(), st.as_mut_ptr()) == 0;
        let is_open = |fd: i32| !err::is(syscall!(nr::FCNTL, fd, F_GETFD));
        let ours = (own.0..own.0 + RESERVED).filter(|&fd| is_open(fd)).count();
        let beside = [store, session].iter().filter(|fd| !(own.0..own.0 + RESERVED).contains(*fd)).count();
        !told || st[6] != (e.fds.count() + ours + beside) as u64
    }
}

/// Closes what is open but was not at the commit, and is not the result of the call the commit stands before.
pub fn close_extra(e: &mut Engine) {
    if e.args.mutants & mutant::SKIP_EXTRA_DESCRIPTORS != 0 {
        return;
    }
    let (own, keep) = (e.fds.own, [OwnFd::Ring, OwnFd::Userfault, OwnFd::Pagemap].map(|f| e.own_fd(f)));
    let (store, session) = (e.args.store_fd, e.args.session_fd);
    let mut extra = [0i32; 256];
    loop {
        let mut n = 0;
        for_each_open(|fd| {
            let ours = fd == store || fd == session || keep.contains(&fd) || (fd >= own.0 && fd < own.0 + RESERVED);
            if !ours && !e.fds.is_open(fd) && (fd as usize) < HIGHEST && n < extra.len() {
                extra[n] = fd;
                n += 1;
            }
        });
        for &fd in &extra[..n] {
            // SAFETY: not in the committed table and not the engine's.
            unsafe { syscall!(nr::CLOSE, fd) };
        }
        if n < extra.len() {
            return;
        }
    }
}
