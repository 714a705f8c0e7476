//! `outlast attach`: protect a program that runs already.
//!
//! Who watches it must outlast this command: it is another process, in a session of its own, which tells by a socket what became of it.

use crate::how::How;
use crate::{output, protection};
use clap::Args;
use outlast_supervisor::attach::{attach, may_attach, Attached, Request};
use outlast_supervisor::say::say;
use outlast_supervisor::Error;
use rustix::net::{send, SendFlags};
use serde::{Deserialize, Serialize};
use std::io::Read;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Protect a program that runs already
///
/// It is not restarted, and stands still for a moment only; from then on it outlasts its death like one that `outlast run` has
/// started. Its parent stays its parent until its first death, which that sees (SIGCHLD, a wait that returns); the recovered process is a
/// child of whoever takes in orphans. Refused, with exit status 1 and the program untouched, is what cannot be attached to.
#[derive(Args)]
pub struct Attach {
    /// The process
    #[arg(value_parser = clap::value_parser!(i32).range(1..))]
    pid: i32,
    /// Name for ps, log, resume …  [default: the program's, with a number if that is taken]
    #[arg(long)]
    name: Option<String>,
    /// One JSON object: name, pid, pause_us, degradations
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    how: How,
    /// A policy designates it: the file that this is about, and the policy's
    #[arg(long, hide = true, num_args = 2, value_names = ["EXECUTABLE", "POLICY"])]
    designated: Option<Vec<PathBuf>>,
    /// Stay, and report here
    #[arg(long, hide = true, value_name = "DESCRIPTOR")]
    report: Option<RawFd>,
}

/// The descriptor by which the other process reports.
const REPORT: RawFd = 3;

/// What is reported.
#[derive(Serialize, Deserialize)]
enum Report {
    Attached(Attached),
    Refused { line: String, status: i32 },
}

impl Attach {
    pub fn execute(self) -> Result<i32, Error> {
        if let Some(why) = self.how.is_impossible() {
            say(format_args!("{why}"));
            return Ok(2);
        }
        match self.report {
            // SAFETY: the number was given to us by the process that started us, for this one use.
            Some(report) => self.stay(unsafe { OwnedFd::from_raw_fd(report) }),
            None => self.start(),
        }
    }

    /// Starts the process that will watch, and waits for its report.
    fn start(&self) -> Result<i32, Error> {
        may_attach(self.pid)?;
        let failed = |what| move |e: std::io::Error| Error::Kernel(what, errno(&e));
        let (mut reader, writer) = UnixStream::pair().map_err(failed("make a pair of sockets"))?;
        let writing = writer.as_raw_fd();
        let mut command = Command::new("/proc/self/exe");
        // What this command was told, the other one is told as well.
        command.arg0("outlast").arg("attach").arg(format!("--report={REPORT}")).args(std::env::args_os().skip(2));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // SAFETY: the closure makes system calls and touches no memory.
        unsafe {
            command.pre_exec(move || {
                libc::setsid();
                // Whatever this command has inherited is none of the supervisor's, which stays for long.
                libc::syscall(libc::SYS_close_range, REPORT, u32::MAX, libc::CLOSE_RANGE_CLOEXEC);
                let placed = if writing == REPORT { 0 } else { libc::dup2(writing, REPORT) };
                match (placed, libc::fcntl(REPORT, libc::F_SETFD, 0)) {
                    (0.., 0) => Ok(()),
                    _ => Err(std::io::Error::last_os_error()),
                }
            });
        }
        let mut child = command.spawn().map_err(failed("start a supervisor"))?;
        drop(writer);
        let mut text = Vec::new();
        reader.read_to_end(&mut text).map_err(failed("hear from the supervisor"))?;
        match serde_json::from_slice(&text) {
            Ok(Report::Attached(attached)) => self.print(&attached),
            Ok(Report::Refused { line, status }) => {
                // It ends now.
                let _ = child.wait();
                say(format_args!("{line}"));
                Ok(status)
            }
            Err(_) => {
                let _ = child.kill();
                let _ = child.wait();
                say(format_args!(
                    "the supervisor of process {} ended before it could report; see `outlast ps`",
                    self.pid
                ));
                Ok(1)
            }
        }
    }

    fn print(&self, attached: &Attached) -> Result<i32, Error> {
        if self.json {
            return output::json(attached);
        }
        let Attached { name, pid, pause_us, degradations } = attached;
        let lacks = match degradations.as_slice() {
            [] => String::new(),
            some => format!("; not preserved: {}", some.join(", ")),
        };
        output::text(&format!("{name}: process {pid} is protected; it stood still for {pause_us} µs{lacks}\n"))
    }

    /// Attaches, reports, and watches.
    fn stay(self, report: OwnedFd) -> Result<i32, Error> {
        // It was executed by another name; by this one others find the supervisors that there are.
        let _ = rustix::thread::set_name(c"outlast");
        let designated = self.designated.as_deref().and_then(|words| match words {
            [executable, policy] => Some((executable.clone(), policy.clone())),
            _ => None,
        });
        let (options, wishes) = (self.how.options(designated.is_some()), self.how.wishes());
        let load = protection::start(&wishes);
        let (store, encrypt) = (self.how.store.clone(), self.how.encrypt.clone());
        let request =
            Request { pid: self.pid, name: self.name.clone(), store, options, encrypt, load: &load, designated };
        let attached = attach(&request);
        let told = match &attached {
            Ok((attached, _)) => Report::Attached(attached.clone()),
            Err(e) => Report::Refused { line: e.to_string(), status: e.exit_status() },
        };
        let status = if attached.is_ok() { 0 } else { 1 };
        if let Ok(text) = serde_json::to_vec(&told) {
            // Who asked may be gone, which must not become a signal: those that come here are passed on to the program.
            let _ = send(&report, &text, SendFlags::NOSIGNAL);
        }
        drop(report);
        if let Ok((_, watch)) = attached {
            watch.watch();
        }
        Ok(status)
    }
}

fn errno(e: &std::io::Error) -> rustix::io::Errno {
    rustix::io::Errno::from_io_error(e).unwrap_or(rustix::io::Errno::IO)
}
