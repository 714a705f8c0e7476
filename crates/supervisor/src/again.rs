//! A supervisor that cannot go on as it is begins anew in the same process: it executes itself, keeps its number, its children, its
//! terminal and the program's lock, and takes the program over as another supervisor would.
//!
//! That is how a module is left that has run wild: it may hold the allocator's lock, say. So everything is prepared beforehand, and
//! [`execute`] makes system calls only.

use crate::end::End;
use crate::orphans::COMMAND;
use rustix::io::Errno;
use std::ffi::{c_char, CString};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::ptr::null;
use std::sync::atomic::{AtomicI64, AtomicPtr, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// Room for the words of the command line.
const WORDS: usize = 128;
/// Room for the word about a failure.
const WORD: usize = 64;
/// No end.
const NONE: i64 = i64::MAX;

struct Plan {
    words: Vec<CString>,
    lock: RawFd,
}

/// Null: there is none yet. Never freed, since whoever begins anew may be reading it.
static PLAN: AtomicPtr<Plan> = AtomicPtr::new(std::ptr::null_mut());
/// How the program's process ended that is being decided about: its exit status, or less than 0: a signal.
static END: AtomicI64 = AtomicI64::new(NONE);

/// Prepares for it. `failures`: what led to this process beginning anew before, as `--failed` had it.
pub fn prepare(name: &str, lock: BorrowedFd<'_>, failures: &[String]) {
    let lock = lock.as_raw_fd();
    let mut words: Vec<String> =
        ["outlast", COMMAND, name, "--lock", &lock.to_string(), "--again"].map(String::from).into();
    let recent = failures.len().saturating_sub(MOST);
    words.extend(failures[recent..].iter().map(|failure| format!("--failed={failure}")));
    let words = words.into_iter().filter_map(|word| CString::new(word).ok()).collect();
    PLAN.store(Box::into_raw(Box::new(Plan { words, lock })), Release);
}

fn plan() -> Option<&'static Plan> {
    // SAFETY: null, or from a box that is never freed.
    unsafe { PLAN.load(Acquire).as_ref() }
}

/// So many failures are remembered: each module is loaded again less often.
const MOST: usize = WORDS - 16;

/// Notes which end is being decided about.
pub fn note_end(end: Option<End>) {
    let value = match end {
        Some(End::Exited(status)) => i64::from(status),
        Some(End::Killed(signal)) => -i64::from(signal),
        None => NONE,
    };
    END.store(value, Relaxed);
}

/// Reads [`note_end`]'s word.
pub fn end_of(value: i64) -> End {
    match i32::try_from(value).unwrap_or(-libc::SIGKILL) {
        status @ 0.. => End::Exited(status),
        signal => End::Killed(-signal),
    }
}

/// Begins anew because `module` failed in the way `why`, a number of the caller's. Makes system calls only.
pub fn execute(module: &str, why: i64) -> ! {
    let mut words = [null::<c_char>(); WORDS + 1];
    let (mut failed, mut ended) = ([0u8; WORD], [0u8; WORD]);
    if let Some(plan) = plan() {
        for (word, to) in plan.words.iter().zip(&mut words) {
            *to = word.as_ptr();
        }
        let mut at = plan.words.len().min(WORDS - 2);
        if write(&mut failed, &[b"--failed=", module.as_bytes(), b"="], why) {
            words[at] = failed.as_ptr().cast();
            at += 1;
        }
        let end = END.load(Relaxed);
        if end != NONE && write(&mut ended, &[b"--ended="], end) {
            words[at] = ended.as_ptr().cast();
        }
        // SAFETY: all words are terminated, the list ends with a null pointer; the path is that of this very file.
        unsafe {
            libc::fcntl(plan.lock, libc::F_SETFD, 0);
            libc::execve(c"/proc/self/exe".as_ptr(), words.as_ptr(), environ.cast());
        }
    }
    // The anchor starts another supervisor.
    // SAFETY: plain system call.
    unsafe { libc::_exit(1) }
}

/// Becomes another outlast, in an open file, which takes the program over in the same way. Returns only if that fails: then everything
/// is as it was.
pub fn upgrade(file: &OwnedFd) -> Errno {
    let Some(plan) = plan() else { return Errno::AGAIN };
    let Ok(path) = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd())) else { return Errno::INVAL };
    // What modules of this one have done the other's need not answer for.
    let words =
        plan.words.iter().take_while(|word| !word.as_bytes().starts_with(b"--failed")).map(|word| word.as_ptr());
    let words: Vec<_> = words.chain([c"--upgraded".as_ptr(), null()]).collect();
    // SAFETY: all words are terminated, the list ends with a null pointer.
    unsafe {
        libc::fcntl(plan.lock, libc::F_SETFD, 0);
        libc::execve(path.as_ptr(), words.as_ptr(), environ.cast());
        let error = std::io::Error::last_os_error();
        libc::fcntl(plan.lock, libc::F_SETFD, libc::FD_CLOEXEC);
        Errno::from_io_error(&error).unwrap_or(Errno::IO)
    }
}

extern "C" {
    static environ: *const *const c_char;
}

/// Writes the pieces and a number, with a NUL behind them. False: there is no room.
fn write(to: &mut [u8; WORD], pieces: &[&[u8]], number: i64) -> bool {
    let mut digits = [0u8; 20];
    let mut first = digits.len();
    let mut left = number.unsigned_abs();
    loop {
        first -= 1;
        digits[first] = b'0' + (left % 10) as u8;
        left /= 10;
        if left == 0 {
            break;
        }
    }
    let sign: &[u8] = if number < 0 { b"-" } else { b"" };
    let mut at = 0;
    for piece in pieces.iter().copied().chain([sign, &digits[first..], b"\0"]) {
        let Some(room) = to.get_mut(at..at + piece.len()) else { return false };
        room.copy_from_slice(piece);
        at += piece.len();
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_written_whole_or_not() {
        let text = |pieces: &[&[u8]], number| {
            let mut word = [0xff; WORD];
            write(&mut word, pieces, number)
                .then(|| CString::from_vec_with_nul(word[..=word.iter().position(|b| *b == 0)?].into()).ok())?
        };
        assert_eq!(text(&[b"a=", b"b="], -120).unwrap().to_str().unwrap(), "a=b=-120");
        assert_eq!(text(&[], 0).unwrap().to_str().unwrap(), "0");
        assert!(text(&[&[b'x'; WORD - 2]], 7).is_some());
        assert!(text(&[&[b'x'; WORD - 1]], 7).is_none());
    }

    #[test]
    fn an_end_is_read_as_it_was_noted() {
        for end in [End::Exited(0), End::Exited(255), End::Killed(9), End::Killed(64)] {
            note_end(Some(end));
            assert_eq!(end_of(END.load(Relaxed)), end);
        }
        note_end(None);
        assert_eq!(END.load(Relaxed), NONE);
    }
}
