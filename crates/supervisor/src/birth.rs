//! How the program's process comes to be: executed, and the engine put into it before its first instruction.

use crate::channel::{self, Channel};
use crate::credentials::Credentials;
use crate::end::End;
use crate::error::Error;
use crate::inject::{inject, Failure, Injection};
use crate::launch::{self, Command, Refusal};
use crate::signals::Inherited;
use crate::trace::{self, Fault};
use libc::pid_t;
use outlast_image::degradation::Degradation;
use outlast_image::inject::mode;
use rustix::io::Errno;
use std::os::fd::AsRawFd;

/// A process on its way to its exec stop. Meanwhile there is time to prepare what goes into it.
pub struct Birth {
    pub pid: pid_t,
    channel: Channel,
    /// What it must have when it gets to its exec stop; none: whatever it has.
    credentials: Option<Credentials>,
}

/// What became of it.
pub enum Born {
    /// The engine is in it and it runs.
    Protected,
    /// It runs without the engine, because of this; in words, what failed.
    Unprotected(Degradation, String),
    /// It could not be traced as needed, and is gone: it has to be started without.
    Untraceable(Degradation, String),
    /// It ended before the engine was in it.
    Gone(End),
}

impl Birth {
    /// Starts the process, with what it must have if that is given.
    pub fn begin(command: &Command, signals: &Inherited, credentials: Option<Credentials>) -> Result<Self, Errno> {
        let channel = Channel::new(command.above_given())?;
        // What it has anyway is not asked for, which might be forbidden.
        let own = Credentials::of(std::process::id() as pid_t);
        let lacking = credentials.as_ref().filter(|wanted| own.as_ref() != Some(*wanted));
        let pid = launch::start_traced(command, channel.theirs(), signals, lacking)?;
        Ok(Self { pid, channel, credentials })
    }

    /// Sends the descriptors that the process will receive.
    pub fn send(&self, what: &Injection<'_>) -> Result<(), Errno> {
        channel::send(self.channel.ours(), &what.descriptors())
    }

    /// Waits for the exec and injects.
    ///
    /// # Errors
    /// execve failed: the exit status is that of a shell.
    pub fn finish(self, command: &Command, what: &Injection<'_>) -> Result<Born, Error> {
        match launch::wait_exec(self.pid) {
            Err(Refusal::Exec(e)) => return Err(Error::NotExecutable(command.name(), e)),
            Err(Refusal::Trace) => {
                let what = "the kernel forbids ptrace to this user".into();
                return Ok(Born::Untraceable(Degradation::TraceForbidden, what));
            }
            Err(Refusal::Fault(Fault::Gone(end))) => return Ok(Born::Gone(end)),
            Err(Refusal::Fault(fault)) => return Ok(self.abandon(fault)),
            Ok(()) => (),
        }
        if !command.may_be(format!("/proc/{}/exe", self.pid).as_ref()) {
            self.end();
            return Err(Error::NotExecutable(command.name(), Errno::STALE));
        }
        // By the kernel's word, and before it could become anybody.
        if self.credentials.is_some() && Credentials::of(self.pid) != self.credentials {
            self.end();
            let what = "a fresh process cannot have the credentials that it had".into();
            return Ok(Born::Untraceable(Degradation::PrivilegedProgram, what));
        }
        match inject(self.pid, Some(self.channel.theirs().as_raw_fd()), what) {
            Ok(()) => Ok(Born::Protected),
            Err(Failure::Refused(degradation, done, e)) if what.mode == mode::RESUME => {
                self.end();
                Ok(Born::Untraceable(degradation, format!("{done}: {e}")))
            }
            Err(Failure::Refused(degradation, what, e)) => Ok(Born::Unprotected(degradation, format!("{what}: {e}"))),
            Err(Failure::Fault(Fault::Gone(end))) => Ok(Born::Gone(end)),
            Err(Failure::Fault(fault)) => Ok(self.abandon(fault)),
        }
    }

    /// Gets rid of a process that is neither as the kernel made it nor protected.
    fn abandon(self, fault: Fault) -> Born {
        self.end();
        Born::Untraceable(Degradation::TraceForbidden, fault.to_string())
    }

    /// Ends a process that will not be needed.
    pub fn end(&self) {
        trace::end(self.pid);
    }
}
