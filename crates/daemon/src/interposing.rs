//! Puts `outlast run` in front of a program that has just begun, if a policy wants it protected.

use crate::process::{self, identity, Identity, Ours};
use libc::pid_t;
use outlast_policy::{Policies, Policy, Setting, Subject, Verdict};
use outlast_supervisor::remote::Remote;
use outlast_supervisor::trace::{self, Fault};
use rustix::io::Errno;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// A file that was executed, as it was when that was held.
pub struct Executed {
    /// Without links; of a script the script.
    pub path: PathBuf,
    pub identity: Identity,
}

/// What became of a program that a policy might have been about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The process runs `outlast run` now, because of the policy that stands there.
    Protected(String),
    /// No policy wants it protected.
    NotMeant,
    /// The policy that stands there does, and it runs without: why.
    Unprotected(String, String),
}

/// For a process of ours that stands at the beginning of a program: decides, acts, and lets it go. `outlast`: the file of this program.
pub fn interpose(pid: pid_t, executed: &Executed, policies: &Policies, outlast: &Ours) -> Outcome {
    let Some((policy, settings, user)) = wish(pid, executed, policies) else {
        // If this fails it is gone.
        let _ = trace::detach(pid, 0);
        return Outcome::NotMeant;
    };
    let place = policy.place();
    let unprotected = |why: String| Outcome::Unprotected(place.clone(), why);
    let (file, words) = match command(pid, executed, (policy, settings), user, outlast) {
        Ok(command) => command,
        Err(why) => {
            let _ = trace::detach(pid, 0);
            return unprotected(why.into());
        }
    };
    match execute(pid, &file, &words) {
        Ok(Ok(())) => Outcome::Protected(place),
        Ok(Err(e)) => unprotected(format!("it cannot execute {}: {e}", outlast.path.display())),
        Err(Fault::Gone(_)) => Outcome::NotMeant,
        Err(fault) => unprotected(fault.to_string()),
    }
}

/// The file that it was told to execute: a script, if it was one.
fn told_to_execute(pid: pid_t) -> Option<Identity> {
    identity(process::seen_by(pid, &process::told_to_execute(pid)?))
}

/// Whether its user is all it is.
struct IsPlain(bool);

/// The policy that wants it protected, and how.
fn wish<'p>(pid: pid_t, executed: &Executed, policies: &'p Policies) -> Option<(&'p Policy, &'p [Setting], IsPlain)> {
    // It may have gone on to execute something else.
    if ![process::executable(pid), told_to_execute(pid)].contains(&Some(executed.identity)) {
        return None;
    }
    let (uid, is_plain) = process::user(pid)?;
    let cgroup = process::control_group(pid)?;
    let subject = Subject { executable: &executed.path, uid, cgroup: &cgroup };
    let policy = policies.find(&subject)?;
    match &policy.verdict {
        Verdict::Protect(settings) => Some((policy, settings, IsPlain(is_plain))),
        Verdict::Leave => None,
    }
}

type Command = (CString, Vec<CString>);

/// What is executed instead, and the words that come before the program's own; or why that cannot be.
fn command(
    pid: pid_t,
    executed: &Executed,
    (policy, settings): (&Policy, &[Setting]),
    IsPlain(is_plain): IsPlain,
    outlast: &Ours,
) -> Result<Command, &'static str> {
    if !is_plain {
        return Err("it has privileges of its file (set-user-ID, capabilities), which would be lost");
    }
    if process::is_filtered(pid) {
        // They may end the process for what outlast does.
        return Err("it is under filters of system calls (seccomp)");
    }
    if outlast.is_replaced() {
        // It may want to be told otherwise what to do.
        return Err("another outlast was installed since the daemon began; send that SIGHUP");
    }
    if identity(process::seen_by(pid, &outlast.path)) != outlast.identity {
        return Err("there is no outlast where it runs, in another root");
    }
    // Of a script this is the interpreter, with which the arguments begin by now. Another file could take its name before that is
    // executed, which outlast is therefore told as well.
    let runs = process::executable(pid);
    // It may look at the name by which it was executed; one of a descriptor means another file to whoever asks.
    let is_lasting = |path: &PathBuf| !path.starts_with("/proc") && !path.starts_with("/dev/fd");
    let names = [process::told_to_execute(pid).filter(is_lasting), process::executable_path(pid)];
    let is_there = |path: &PathBuf| identity(process::seen_by(pid, path)).is_some_and(|there| Some(there) == runs);
    let file = names.into_iter().flatten().find(is_there);
    let (file, runs) = file.zip(runs).ok_or("its file is not there any more")?;
    let comm = process::comm(pid).ok_or("it has no name")?;
    let (device, inode) = (runs.0.to_string(), runs.1.to_string());
    let c = |bytes: &[u8]| CString::new(bytes).map_err(|_| "an argument contains a NUL byte");
    let options = settings.iter().map(Setting::argument);
    let mut words = vec![c(b"outlast")?, c(b"run")?];
    words.extend(options.map(|word| c(word.as_bytes())).collect::<Result<Vec<_>, _>>()?);
    words.extend([c(b"--policy")?, c(policy.file.as_os_str().as_bytes())?]);
    let called = executed.path.as_os_str().as_bytes();
    let file = file.as_os_str().as_bytes();
    for word in [b"--begun", file, device.as_bytes(), inode.as_bytes(), called, &comm, b"--"] {
        words.push(c(word)?);
    }
    Ok((c(outlast.path.as_os_str().as_bytes())?, words))
}

/// The inner error is execve's: then it goes on as what it was.
fn execute(pid: pid_t, file: &CString, words: &[CString]) -> Result<Result<(), Errno>, Fault> {
    // What follows is a few instructions of ours: it must not go on in the middle of them, should we die.
    trace::set_options(pid).map_err(|e| Fault::Kernel("set trace options", e))?;
    match Remote::enter(pid)? {
        Some(remote) => remote.execute(file, words),
        None => Ok(Err(Errno::NOEXEC)),
    }
}
