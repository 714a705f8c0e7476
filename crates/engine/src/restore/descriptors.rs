//! The descriptor table goes back to the commit: what was closed is opened again, offsets are set back, what was opened
//! since is closed.

use crate::calls::epoll;
use crate::control::fail;
use crate::descriptors::{for_each_open, HIGHEST};
use crate::mutant::without;
use crate::proc;
use crate::scratch;
use crate::state::{journal, object, Engine};
use crate::sys::{err, nr, syscall};
use crate::undo::{self, rollback::Rollback};
use outlast_image::descriptor::descriptor_kind as kind;
use outlast_image::layout::{session, ENGINE_FDS, HIDING_FDS, SESSION_BASE};
use outlast_image::mutant::Mutant;
use outlast_store::ENTRIES_MAX;

const F_GETFD: u64 = 1;
const FD_CLOEXEC: i64 = 1;
const O_CLOEXEC: u64 = 0o2000000;

/// Where the undo of a journal has come to: it is not the same to undo something twice, since numbers are given again. One
/// word of the session, so that a successor goes on where this process dies; a single step may be repeated.
const UNDO_PROGRESS: *mut u64 = (SESSION_BASE + session::PENDING + 3072) as *mut u64;

/// Of a number of entries: as many bits as it takes.
const COUNT: u64 = ENTRIES_MAX as u64;

/// The word for commit `seq`, `entries` in the journal and the first `left` of them still to be undone.
fn progress(seq: u64, entries: usize, left: usize) -> u64 {
    seq << 34 | (entries as u64 & COUNT) << 17 | left as u64 & COUNT
}

/// Undoes the journal, newest entry first, and fills the table with what was open at the commit.
pub fn undo(e: &mut Engine) {
    // The journal runs forwards, undoing runs backwards.
    let entries: &mut [u64] = bytemuck::cast_slice_mut(scratch::maps_text());
    let (mut n, mut undone) = (0, 0);
    e.store().journal_for_each(&mut |at, kind, _| {
        if n < ENTRIES_MAX as usize {
            entries[n] = at;
            n += 1;
            if kind == journal::UNDONE {
                undone = n;
            }
        }
    });
    let seq = e.store().seq();
    // SAFETY: a word of the session that nobody else uses.
    let reached = unsafe { UNDO_PROGRESS.read_volatile() };
    let left = (reached & COUNT) as usize;
    let from = if reached == progress(seq, n, left) { left.min(n) } else { n };
    undo::set_lease_back();
    let mut files = Rollback::new();
    for i in (undone..from).rev() {
        files.undo(e, entries[i]);
        undo_entry(e, entries[i]);
        // SAFETY: as above.
        unsafe { UNDO_PROGRESS.write_volatile(progress(seq, n, i)) };
    }
    if undone < n && e.store().journal_append(journal::UNDONE, &[]).is_err() && e.store().journal_clear().is_err() {
        fail!(0);
    }
    load_table(e);
    close_hidden(e);
    undo::rolled_back(e);
}

/// Closes what a predecessor had closed for good before its last commit, and could not close any more: numbers that the
/// program had not open at the commit, and that nothing is hidden under any more.
fn close_hidden(e: &Engine) {
    let first = e.fds.own + ENGINE_FDS;
    let mut from = first;
    for end in (first..first + HIDING_FDS).filter(|&fd| e.fds.is_open(fd)).chain([first + HIDING_FDS]) {
        if from < end {
            // SAFETY: the numbers lie between the program's.
            unsafe { syscall!(nr::CLOSE_RANGE, from, end - 1, 0) };
        }
        from = end + 1;
    }
}

fn undo_entry(e: &mut Engine, at: u64) {
    let Some((kind, bytes, _)) = e.store().journal_read(at) else { return };
    let Ok([a, b]) = bytemuck::try_pod_read_unaligned::<[i64; 2]>(bytes) else { return };
    // SAFETY: descriptor calls on the program's table; numbers that are not open give EBADF.
    unsafe {
        match kind {
            journal::OFFSET if !without(Mutant::OffsetUndo) => {
                syscall!(nr::LSEEK, a, b, 0);
            }
            journal::CLOSE if !without(Mutant::CloseUndo) => reopen(e, a as i32, (a >> 32) as i32, b),
            journal::FD_FLAGS if !without(Mutant::FlagsUndo) => {
                syscall!(nr::FCNTL, a, 2, b);
            }
            _ => {}
        }
    }
}

/// Gives the hidden descriptor its number back, with the flags it had there.
fn reopen(e: &Engine, hidden: i32, fd: i32, flags: i64) {
    if !e.fds.may_hide(hidden) || e.fds.is_engine(fd) {
        return;
    }
    // SAFETY: both numbers are checked; a close that had not happened yet is simply repeated.
    unsafe {
        if !err::is(syscall!(nr::FCNTL, hidden, F_GETFD)) {
            syscall!(nr::DUP3, hidden, fd, if flags & FD_CLOEXEC != 0 { O_CLOEXEC } else { 0 });
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
    for fd in 0..e.fds.end() {
        if e.fds.is_open(fd) && e.fds.kind(fd) == kind::ANONYMOUS && !without(Mutant::EpollRearm) {
            epoll::rearm(fd, scratch::maps_text());
        }
    }
}

/// Is more open than what was at the commit? The kernel counts (Linux 6.2; before, it cannot be told), which takes a twentieth
/// of the time of listing them.
pub fn has_extra(e: &Engine) -> bool {
    let mut st = [0u64; 18];
    // SAFETY: stat writes 144 bytes; F_GETFD changes nothing.
    unsafe {
        let (dir, path) = proc::place(c"/proc/self/fd".as_ptr().cast());
        let told = syscall!(nr::NEWFSTATAT, dir, path, st.as_mut_ptr(), 0) == 0;
        let is_open = |fd: i32| !err::is(syscall!(nr::FCNTL, fd, F_GETFD));
        let ours = (e.fds.own..e.fds.own + ENGINE_FDS).filter(|&fd| is_open(fd)).count();
        !told || st[6] != (e.fds.count() + ours) as u64
    }
}

/// Closes what is open but was not at the commit, and is not the result of the call the commit stands before.
pub fn close_extra(e: &mut Engine) {
    if without(Mutant::ExtraDescriptors) {
        return;
    }
    let mut extra = [0i32; 256];
    loop {
        let mut n = 0;
        for_each_open(|fd| {
            if !e.fds.is_engine(fd) && !e.fds.is_open(fd) && (fd as usize) < HIGHEST && n < extra.len() {
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
