//! fork and exec of the program, traced from its first instruction or not at all.

use crate::credentials::Credentials;
use crate::end::End;
use crate::error::Error;
use crate::listening::Listening;
use crate::signals::Inherited;
use crate::trace::{self, Fault};
use libc::{c_char, pid_t};
use rustix::io::{fcntl_dupfd_cloexec, Errno};
use rustix::pipe::{pipe_with, PipeFlags};
use std::ffi::{CStr, CString, OsStr, OsString};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// A command in the form execve wants, prepared before the fork.
pub struct Command {
    path: CString,
    argv: Vec<CString>,
    /// What to execute when the kernel knows no format for the file: a shell, as execvp does.
    shell: Vec<CString>,
    /// What a traced process has open besides, and under which numbers.
    given: Vec<(OwnedFd, RawFd)>,
    /// The only file that may be behind the path: device and inode; none: any.
    only: Option<(u64, u64)>,
    /// What its process is called; none: what the kernel calls it.
    comm: Option<CString>,
}

impl Command {
    /// `argv` includes the name the program shall be called by.
    pub fn new(path: &Path, argv: &[OsString]) -> Result<Self, Error> {
        let c = |bytes: &[u8]| CString::new(bytes).map_err(|_| Error::NulByte(String::from_utf8_lossy(bytes).into()));
        let path = c(path.as_os_str().as_bytes())?;
        let argv = argv.iter().map(|arg| c(arg.as_bytes())).collect::<Result<Vec<_>, _>>()?;
        let shell = [c"/bin/sh".to_owned(), path.clone()].into_iter().chain(argv.iter().skip(1).cloned()).collect();
        Ok(Self { path, argv, shell, given: Vec::new(), only: None, comm: None })
    }

    /// Only this file may be executed: device and inode.
    ///
    /// # Errors
    /// Another one is there now.
    pub fn only(&mut self, identity: (u64, u64)) -> Result<(), Error> {
        self.only = Some(identity);
        let path = Path::new(OsStr::from_bytes(self.path.as_bytes()));
        if self.may_be(path) {
            Ok(())
        } else {
            Err(Error::NotExecutable(self.name(), Errno::STALE))
        }
    }

    /// Has its process called so.
    pub fn call(&mut self, comm: &OsStr) -> Result<(), Error> {
        let comm = CString::new(comm.as_bytes()).map_err(|_| Error::NulByte(comm.to_string_lossy().into()))?;
        self.comm = Some(comm);
        Ok(())
    }

    pub fn comm(&self) -> Option<&CStr> {
        self.comm.as_deref()
    }

    /// Whether a process of this command may run what is behind this path.
    pub fn may_be(&self, path: &Path) -> bool {
        let there = || rustix::fs::stat(path).map(|stat| (stat.st_dev, stat.st_ino)).ok();
        self.only.is_none_or(|only| there() == Some(only))
    }

    /// Has it executed from another path: its own is gone.
    pub fn through(&mut self, path: &Path) -> Result<(), Error> {
        let path = CString::new(path.as_os_str().as_bytes());
        self.path = path.map_err(|e| Error::NulByte(String::from_utf8_lossy(&e.into_vec()).into()))?;
        Ok(())
    }

    /// Traced processes get these descriptors, under these numbers.
    pub fn give(&mut self, descriptors: Vec<(OwnedFd, RawFd)>) -> Result<(), Errno> {
        let above = descriptors.iter().map(|(_, number)| number + 1).max().unwrap_or(0);
        // None of them lies where another one is to be.
        let moved = descriptors.into_iter().map(|(fd, number)| Ok((fcntl_dupfd_cloexec(fd, above)?, number)));
        self.given = moved.collect::<Result<_, Errno>>()?;
        Ok(())
    }

    /// They get no more: what nobody else has open is closed.
    pub fn give_nothing(&mut self) {
        self.given.clear();
    }

    /// A number above all that are given.
    pub fn above_given(&self) -> RawFd {
        self.given.iter().map(|(_, number)| number + 1).max().unwrap_or(0)
    }

    /// How the command is called in messages.
    pub fn name(&self) -> String {
        let name = self.argv.first().unwrap_or(&self.path);
        OsString::from_vec(name.as_bytes().to_vec()).to_string_lossy().into_owned()
    }
}

/// The exit status by which a child says that it could not be traced; no error number is that large.
const NOT_TRACED: i32 = 255;

/// How the new process begins, in system calls.
#[derive(Clone, Copy)]
enum Begin<'a> {
    /// Stopped at its exec and traced by us. A failure is its exit status.
    Traced(Traced<'a>),
    /// As if outlast were not there. A failure is written here.
    Free(RawFd),
}

/// What a process that is to be traced has.
#[derive(Clone, Copy)]
struct Traced<'a> {
    /// The descriptor that stays open in it.
    channel: RawFd,
    /// What ends when we die, or says that we trace it; and our end of that.
    traced: RawFd,
    ours: RawFd,
    credentials: Option<&'a Credentials>,
}

/// Starts a process that is on its way to its exec stop; `channel` will be open in it. It gives up what the credentials
/// have not. It goes nowhere before we trace it: if we die it must end, and not begin the program a second time.
pub fn start_traced(
    command: &Command,
    channel: BorrowedFd<'_>,
    signals: &Inherited,
    credentials: Option<&Credentials>,
) -> Result<pid_t, Errno> {
    let (traced, ours) = pipe_with(PipeFlags::CLOEXEC)?;
    let begin =
        Traced { channel: channel.as_raw_fd(), traced: traced.as_raw_fd(), ours: ours.as_raw_fd(), credentials };
    let pid = start(command, Begin::Traced(begin), signals)?;
    drop(traced);
    if trace::seize(pid).is_ok() {
        // One that has ended already is met by whoever waits for it.
        let _ = rustix::io::write(&ours, &[1]);
    }
    Ok(pid)
}

/// Starts a process as if outlast were not there.
///
/// # Errors
/// The inner one is that of execve.
pub fn start_free(command: &Command, signals: &Inherited) -> Result<Result<pid_t, Errno>, Errno> {
    let (failure, report) = pipe_with(PipeFlags::CLOEXEC)?;
    let pid = start(command, Begin::Free(report.as_raw_fd()), signals)?;
    drop(report);
    let mut errno = [0; 4];
    // The exec closes the pipe; a process that could not make it writes first, and ends.
    match rustix::io::read(&failure, &mut errno) {
        Ok(4) => {
            // SAFETY: plain system call; the process is our child and ends by itself.
            unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
            Ok(Err(Errno::from_raw_os_error(i32::from_ne_bytes(errno))))
        }
        _ => Ok(Ok(pid)),
    }
}

/// Becomes the program, as if outlast had never been there. Returns only if that fails.
pub fn become_free(command: &Command, signals: &Inherited) -> Errno {
    let (argv, shell) = (pointers(&command.argv), pointers(&command.shell));
    // A limit to the size of files that we met is not the program's fault: to ignore a signal forgets it.
    // SAFETY: plain system calls.
    unsafe { libc::signal(libc::SIGXFSZ, libc::signal(libc::SIGXFSZ, libc::SIG_IGN)) };
    signals.restore();
    Errno::from_raw_os_error(execute(command, &argv, &shell))
}

/// Becomes the program before anything of this process was changed. Returns only if that fails.
pub fn become_at_once(command: &Command) -> Errno {
    let (argv, shell) = (pointers(&command.argv), pointers(&command.shell));
    Errno::from_raw_os_error(execute(command, &argv, &shell))
}

/// The same for what a shell would find under this name, looked for by trying alone.
pub fn become_found(argv: &[OsString]) -> Result<Errno, Error> {
    let command = Command::new(Path::new(&argv[0]), argv)?;
    let argv = pointers(&command.argv);
    // SAFETY: NUL-terminated strings, and an array of them that a null pointer ends.
    unsafe { libc::execvp(command.path.as_ptr(), argv.as_ptr()) };
    Ok(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::NOENT))
}

fn start(command: &Command, begin: Begin<'_>, signals: &Inherited) -> Result<pid_t, Errno> {
    let argv = pointers(&command.argv);
    let shell = pointers(&command.shell);
    let mut listening = Listening::prepare();
    // SAFETY: the child makes system calls only, on memory prepared here, until it has become another program.
    match unsafe { libc::fork() } {
        -1 => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::NOMEM)),
        0 => {
            if let Some(listening) = &mut listening {
                // SAFETY: the child has one thread, and becomes another program before `listening` is gone.
                unsafe { libc::environ = listening.environment().cast_mut().cast() };
            }
            become_program(command, &argv, &shell, begin, signals)
        }
        pid => Ok(pid),
    }
}

/// Waits for the exec stop of a process that [`start`] began traced.
pub fn wait_exec(pid: pid_t) -> Result<(), Refusal> {
    match trace::wait_stop(pid) {
        Ok(stop) if stop.event == libc::PTRACE_EVENT_EXEC => Ok(()),
        // A signal overtook the exec: the process has it delivered, and is waited for again.
        Ok(stop) => {
            let signal = if stop.event == 0 { stop.signal } else { 0 };
            let failed = |e| Refusal::Fault(Fault::Kernel("let it run", e).explained(pid));
            trace::resume(pid, signal).map_err(failed)?;
            wait_exec(pid)
        }
        Err(Fault::Gone(End::Exited(NOT_TRACED))) => Err(Refusal::Trace),
        Err(Fault::Gone(End::Exited(errno))) => Err(Refusal::Exec(Errno::from_raw_os_error(errno))),
        Err(fault) => Err(Refusal::Fault(fault)),
    }
}

/// Why a process did not get to its exec stop.
#[derive(Debug)]
pub enum Refusal {
    /// execve failed.
    Exec(Errno),
    /// The kernel forbids tracing.
    Trace,
    Fault(Fault),
}

fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    strings.iter().map(|s| s.as_ptr()).chain([std::ptr::null()]).collect()
}

/// In the child: system calls only.
fn become_program(
    command: &Command,
    argv: &[*const c_char],
    shell: &[*const c_char],
    begin: Begin<'_>,
    signals: &Inherited,
) -> ! {
    // SAFETY: all pointers lead to NUL-terminated strings and arrays ended by a null pointer, made before the fork;
    // nothing here allocates or takes a lock.
    unsafe {
        if let Begin::Traced(Traced { channel, traced, ours, credentials }) = begin {
            libc::close(ours);
            if !is_told(traced) || libc::fcntl(channel, libc::F_SETFD, 0) < 0 {
                libc::_exit(NOT_TRACED);
            }
            for (from, to) in &command.given {
                if libc::dup2(from.as_raw_fd(), *to) < 0 {
                    libc::_exit(NOT_TRACED);
                }
            }
            if let Some(credentials) = credentials {
                credentials.assume();
            }
        }
        signals.restore();
        let errno = execute(command, argv, shell);
        if let Begin::Free(report) = begin {
            libc::write(report, std::ptr::from_ref(&errno).cast(), 4);
        }
        libc::_exit(errno)
    }
}

/// Waits for a byte. False: nobody is left who could write one.
fn is_told(by: RawFd) -> bool {
    let mut byte = 0u8;
    loop {
        // SAFETY: reads a byte into a variable; the error number is this thread's.
        unsafe {
            match libc::read(by, (&raw mut byte).cast(), 1) {
                -1 if *libc::__errno_location() == libc::EINTR => (),
                n => return n == 1,
            }
        }
    }
}

/// execve, as execvp does it; the error number.
fn execute(command: &Command, argv: &[*const c_char], shell: &[*const c_char]) -> i32 {
    // SAFETY: as in `become_program`.
    unsafe {
        libc::execve(command.path.as_ptr(), argv.as_ptr(), libc::environ.cast());
        if *libc::__errno_location() == libc::ENOEXEC {
            libc::execve(shell[0], shell.as_ptr(), libc::environ.cast());
        }
        *libc::__errno_location()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signals::Signals;
    use std::io::Read;
    use std::os::fd::AsFd;

    /// It would be the program once more, from its beginning and without protection.
    #[test]
    fn who_was_to_be_traced_ends_with_us() {
        for _ in 0..50 {
            let folder = tempfile::tempdir().unwrap();
            let made = folder.path().join("made");
            let argv = ["touch".into(), made.clone().into_os_string()];
            let command = Command::new(Path::new("/usr/bin/touch"), &argv).unwrap();
            // Whoever has the other end open lives.
            let (left, held) = pipe_with(PipeFlags::CLOEXEC).unwrap();
            // SAFETY: the child starts a process, and ends.
            let starter = unsafe { libc::fork() };
            if starter == 0 {
                let signals = Signals::block().unwrap();
                let _ = start_traced(&command, held.as_fd(), signals.inherited(), None);
                // SAFETY: as above.
                unsafe { libc::_exit(0) };
            }
            drop(held);
            std::fs::File::from(left).read_to_end(&mut Vec::new()).unwrap();
            // SAFETY: our own child.
            unsafe { libc::waitpid(starter, std::ptr::null_mut(), 0) };
            assert!(!made.exists());
        }
    }
}
