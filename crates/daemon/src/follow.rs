//! Programs that run already, because a policy designated them, are protected as policies say now: by their users' own hands, since it is they
//! who may.

use crate::command::{self, End, Stream};
use crate::process;
use libc::pid_t;
use outlast_policy::{Policies, Setting, Subject, Verdict};
use outlast_supervisor::say::say;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

/// The commands of `outlast module` by which a user's programs are asked for, and told.
pub const DESIGNATED: &str = "designated";
pub const FOLLOW: &str = "follow";
/// The one by which all of them are left alone.
pub const LEAVE: &str = "leave";

/// A program that runs because a policy designated it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Running {
    pub name: String,
    pub pid: pid_t,
    /// The file that policies were asked about.
    pub executable: PathBuf,
    /// The file of the policy; none: that was not noted yet when it began.
    pub policy: Option<PathBuf>,
}

/// How long a command may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// So much one may say, and so many state folders of one user are looked at.
const LONGEST: u64 = 1 << 20;
const MOST_FOLDERS: usize = 8;
/// This program, also for users who may not look into the folder where it lies.
const OURSELVES: &str = "/proc/self/exe";

/// A user's programs: whose, and what leads to their folder.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    user: u32,
    group: u32,
    environment: Vec<(&'static str, OsString)>,
}

/// Has all of them follow. Nobody waits for programs of others that do not answer.
pub fn follow(policies: &Policies) {
    std::thread::scope(|scope| {
        for place in places() {
            scope.spawn(move || follow_there(policies, &place));
        }
    });
}

fn follow_there(policies: &Policies, place: &Place) {
    let Some(said) = ask(place, &[DESIGNATED.into()]) else { return };
    let running: Vec<Running> = serde_json::from_slice(&said).unwrap_or_default();
    for program in running {
        let Some(settings) = settings(policies, place, &program) else { continue };
        let words = [FOLLOW.into(), program.name.clone(), "--".into()];
        let words: Vec<String> = words.into_iter().chain(settings.iter().map(Setting::argument)).collect();
        if ask(place, &words).is_none() {
            say(format_args!("daemon: {} of user {} is protected as before", program.name, place.user));
        }
    }
}

/// Has all programs of everybody left alone, by their users; what would not let go, and why.
pub fn leave_all() -> Vec<String> {
    let places = places();
    let leave = |place: &Place| match ask(place, &[LEAVE.into()]) {
        Some(said) => serde_json::from_slice(&said).unwrap_or_default(),
        None => vec![format!("programs of user {} may still be protected", place.user)],
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = places.iter().map(|place| scope.spawn(move || leave(place))).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).flatten().collect()
    })
}

/// What policies say of a program, if they want it protected: of one that runs nothing else is taken.
fn settings<'p>(policies: &'p Policies, place: &Place, program: &Running) -> Option<&'p [Setting]> {
    // Another daemon, which reads other policies, has it follow those.
    if program.policy.as_ref().is_some_and(|file| !policies.have(file)) {
        return None;
    }
    // What a user says of programs of others is not believed.
    let (uid, _) = process::user(program.pid).filter(|(uid, _)| place.user == 0 || *uid == place.user)?;
    let cgroup = process::control_group(program.pid)?;
    let subject = Subject { executable: &program.executable, uid, cgroup: &cgroup };
    match &policies.find(&subject)?.verdict {
        Verdict::Protect(settings) => Some(settings),
        Verdict::Leave => None,
    }
}

/// Where there are supervisors. Whoever only calls itself one has its user asked in vain.
fn places() -> Vec<Place> {
    let mut places: BTreeSet<Place> = BTreeSet::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let Some(place) = place_of(pid) else { continue };
        if places.iter().filter(|known| known.user == place.user).count() < MOST_FOLDERS {
            places.insert(place);
        }
    }
    places.into_iter().collect()
}

fn place_of(pid: pid_t) -> Option<Place> {
    if process::comm(pid)? != b"outlast" {
        return None;
    }
    let words = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    if ![&b"run"[..], b"attach", b"supervise"].contains(&words.split(|byte| *byte == 0).nth(1)?) {
        return None;
    }
    Some(Place { user: process::user(pid)?.0, group: process::group(pid)?, environment: process::places(pid) })
}

/// Has `outlast module` do something as that user; what it says, if it succeeds in time.
fn ask(place: &Place, words: &[String]) -> Option<Vec<u8>> {
    let mut command = Command::new(OURSELVES);
    command.arg("module").args(words).env_clear().current_dir("/");
    command.envs(place.environment.iter().map(|(name, value)| (name, value)));
    if rustix::process::geteuid().as_raw() != place.user {
        command.uid(place.user).gid(place.group);
    }
    match command::run(command.stdin(Stdio::null()), Stream::Output, LONGEST, PATIENCE) {
        Ok(End::With(status, said)) if status.success() => Some(said),
        // What it had begun is finished, or not, by the supervisor.
        _ => None,
    }
}
