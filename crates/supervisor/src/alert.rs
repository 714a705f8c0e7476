//! The command that an administrator wants to have run. It is nobody's child and has nothing of the program's: neither its descriptors nor
//! its environment. It is begun without waiting for anything of it, not even for its file to be found.

use rustix::io::Errno;
use std::ffi::{c_char, CString};
use std::ptr::null;

/// What it has of the environment, beside what it is told.
const KEPT: [&str; 4] = ["HOME", "USER", "LOGNAME", "LANG"];
const PATH: &str = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Begins the command of these words; none: there is nothing to begin. `variables` have OUTLAST_ before their names there.
///
/// # Errors
/// There is no process to be had, or a word has a NUL byte.
pub fn alert(words: &[String], variables: &[(&str, String)], oom_score: i32) -> Result<(), Errno> {
    if words.is_empty() {
        return Ok(());
    }
    let kept = KEPT.iter().filter_map(|name| Some(format!("{name}={}", std::env::var(name).ok()?)));
    let told = variables.iter().map(|(name, value)| format!("OUTLAST_{name}={value}"));
    let words = strings(words.iter().cloned())?;
    let environment = strings(kept.chain([PATH.into()]).chain(told))?;
    let (words, environment) = (pointers(&words), pointers(&environment));
    let score = oom_score.to_string();
    // SAFETY: what the child does until it is another program is system calls on memory that is there already, so that threads of this
    // process may hold any lock meanwhile.
    match unsafe { libc::fork() } {
        0 => match unsafe { libc::fork() } {
            // SAFETY: both lists end with a null pointer, and what they point to lives.
            0 => unsafe { become_it(&words, &environment, score.as_bytes()) },
            // SAFETY: plain system call. Its child belongs to whoever takes in orphans.
            _ => unsafe { libc::_exit(0) },
        },
        child @ 1.. => {
            // It ends at once.
            // SAFETY: nothing is written anywhere.
            while unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) } < 0 && Errno::INTR == last_error() {}
            Ok(())
        }
        _ => Err(last_error()),
    }
}

/// # Safety
/// In a forked process, where nothing but system calls may be made; both lists end with a null pointer.
unsafe fn become_it(words: &[*const c_char], environment: &[*const c_char], score: &[u8]) -> ! {
    // SAFETY: as the caller says; what fails leaves the command with less than it should have, and it is begun all the same.
    unsafe {
        libc::setsid();
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
        for descriptor in 0..3 {
            libc::dup2(null, descriptor);
        }
        let adjusted = libc::open(c"/proc/self/oom_score_adj".as_ptr(), libc::O_WRONLY);
        libc::write(adjusted, score.as_ptr().cast(), score.len());
        libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0);
        for signal in 1..=64 {
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut none = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
        libc::chdir(c"/".as_ptr());
        libc::execve(words[0], words.as_ptr(), environment.as_ptr());
        libc::_exit(127)
    }
}

fn strings(from: impl Iterator<Item = String>) -> Result<Vec<CString>, Errno> {
    from.map(|text| CString::new(text).map_err(|_| Errno::INVAL)).collect()
}

fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    strings.iter().map(|string| string.as_ptr()).chain([null()]).collect()
}

fn last_error() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}
