//! Programs that run already when a policy comes to designate them: they are attached to, by a process that is no more than their user.
//!
//! Who is protected, or was and is left alone now, is nobody's to attach to once more, so that several daemons, or a person and a daemon, do not fight over a program.

use crate::command::{self, End, Stream};
use crate::process::{self, Ours};
use crate::tell::{tell, PROTECTED, UNPROTECTED};
use libc::pid_t;
use outlast_policy::{Policies, Policy, Setting, Subject, Verdict};
use outlast_supervisor::attach::has_engine;
use outlast_supervisor::processes::start_time;
use outlast_supervisor::say::say;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The command of `outlast module` that attaches.
pub const DESIGNATE: &str = "designate";

/// How long attaching to one program may take.
const PATIENCE: Duration = Duration::from_secs(90);
/// And to all of one user's, who are not to keep others waiting.
const OF_USER: Duration = Duration::from_secs(120);
/// So much is read of why it could not.
const LONGEST: u64 = 4096;
/// Settings that only a program has that begins.
const ONLY_FROM_THE_BEGINNING: [&str; 2] = ["durable", "tree"];

/// A process, whatever else has had its number.
type Process = (pid_t, u64);

/// What was said of processes that could not be attached to.
#[derive(Default)]
pub struct Said(BTreeMap<Process, String>);

/// A program that runs and is to be protected.
struct Found<'p> {
    process: Process,
    user: u32,
    /// The file that policies were asked about.
    executable: PathBuf,
    policy: &'p Policy,
    settings: &'p [Setting],
}

/// Attaches to all that a policy wants protected and nobody protects.
pub fn attach(policies: &Policies, outlast: &Ours, said: &mut Said) {
    if policies.all().next().is_none() {
        return;
    }
    let found: Vec<_> = processes().filter_map(|pid| found(pid, policies, outlast)).collect();
    let all: BTreeSet<Process> = found.iter().map(|found| found.process).collect();
    said.0.retain(|process, _| all.contains(process));
    let mut taken: BTreeMap<u32, Duration> = BTreeMap::new();
    for found in found {
        let taken = taken.entry(found.user).or_default();
        if *taken > OF_USER {
            say(format_args!("daemon: user {} has too many programs that run already; the rest wait", found.user));
            continue;
        }
        let began = Instant::now();
        let why = found.attach(outlast);
        *taken += began.elapsed();
        found.tell(why, said);
    }
}

/// Whether a process is a program to attach to.
fn found<'p>(pid: pid_t, policies: &'p Policies, outlast: &Ours) -> Option<Found<'p>> {
    let began = start_time(pid)?;
    let runs = process::executable(pid)?;
    if Some(runs) == outlast.identity || is_outlast(pid, outlast) {
        return None;
    }
    // One that is traced is about to be protected, or somebody else's for now.
    let user = process::user_of_untraced(pid)?;
    let (executable, cgroup) = (asked_about(pid)?, process::control_group(pid)?);
    let policy = policies.find(&Subject { executable: &executable, uid: user, cgroup: &cgroup })?;
    let Verdict::Protect(settings) = &policy.verdict else { return None };
    (!has_engine(pid)).then_some(Found { process: (pid, began), user, executable, policy, settings })
}

/// Those that watch others may be of a file that was replaced since.
fn is_outlast(pid: pid_t, outlast: &Ours) -> bool {
    let runs = process::executable_path(pid).unwrap_or_default();
    let named = runs.to_str().map(|name| name.strip_suffix(" (deleted)").unwrap_or(name));
    process::comm(pid).is_some_and(|name| name == b"outlast")
        || named.is_some_and(|name| Path::new(name) == outlast.path)
}

/// The file that a policy would have been asked about when it began: of a script the script.
fn asked_about(pid: pid_t) -> Option<PathBuf> {
    let (runs, path) = (process::executable(pid)?, process::executable_path(pid)?);
    let told = process::told_to_execute(pid)?;
    let seen = process::seen_by(pid, &told);
    match process::identity(&seen) {
        Some(there) if there == runs => Some(path),
        // The interpreter runs it.
        Some(_) => seen.canonicalize().ok().filter(|script| is_script(script)),
        // A name by which nobody finds it any more says at least whether it was the program's own.
        None => (told.file_name() == path.file_name() || told.starts_with("/proc")).then_some(path),
    }
}

fn is_script(file: &Path) -> bool {
    let mut head = [0; 2];
    // Something else than a file by now might have us wait.
    let is_file = std::fs::metadata(file).is_ok_and(|file| file.is_file());
    is_file && std::fs::File::open(file).and_then(|mut file| file.read_exact(&mut head)).is_ok() && head == *b"#!"
}

impl Found<'_> {
    /// Why it could not be attached to, if so.
    fn attach(&self, outlast: &Ours) -> Option<String> {
        let names = self.settings.iter().map(|setting| &*setting.name);
        if let Some(name) = names.into_iter().find(|name| ONLY_FROM_THE_BEGINNING.contains(name)) {
            return Some(format!("{name} is only for programs that begin; it is protected when it begins anew"));
        }
        let (pid, began) = self.process;
        let mut command = Command::new(&outlast.path);
        command.args(["module", DESIGNATE, &pid.to_string(), &began.to_string()]);
        command.arg(&self.executable).arg(&self.policy.file).arg("--");
        command.args(self.settings.iter().map(Setting::argument));
        command.env_clear().envs(process::places(pid)).current_dir("/");
        command.stdin(Stdio::null()).stdout(Stdio::null());
        run(command)
    }

    /// Each thing once.
    fn tell(&self, why: Option<String>, said: &mut Said) {
        let ((pid, _), place, path) = (self.process, self.policy.place(), self.executable.display());
        let fields = vec![
            ("OUTLAST_EXE", path.to_string()),
            ("OUTLAST_PID", pid.to_string()),
            ("OUTLAST_POLICY", place.clone()),
        ];
        let Some(why) = why else {
            tell(
                &PROTECTED,
                fields,
                format_args!("{path}: process {pid}, which ran already, is protected, by {place}"),
            );
            return;
        };
        // It has ended meanwhile, or somebody else was there first.
        let is_settled = start_time(pid) != Some(self.process.1) || has_engine(pid);
        if is_settled || said.0.insert(self.process, why.clone()).as_ref() == Some(&why) {
            return;
        }
        let fields = fields.into_iter().chain([("OUTLAST_CAUSE", why.clone())]).collect();
        let line = format_args!("{path}: process {pid} runs unprotected, although {place} wants it protected: {why}");
        tell(&UNPROTECTED, fields, line);
    }
}

/// Has a command do it; why it failed, if so.
fn run(mut command: Command) -> Option<String> {
    match command::run(&mut command, Stream::Error, LONGEST, PATIENCE) {
        Ok(End::With(status, _)) if status.success() => None,
        Ok(End::With(_, said)) => {
            let said = String::from_utf8_lossy(&said);
            let line = said.lines().next().unwrap_or("outlast does not say why");
            Some(line.trim_start_matches("outlast: ").into())
        }
        // What it had begun is finished, or not, by the supervisor.
        Ok(End::Late) => Some("it takes too long".into()),
        Err(e) => Some(format!("cannot execute outlast: {e}")),
    }
}

fn processes() -> impl Iterator<Item = pid_t> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}
