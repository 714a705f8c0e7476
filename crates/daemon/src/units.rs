//! What systemd is to do otherwise for services whose programs are protected, by drop-ins for their units.
//!
//! It stops a service of which the OOM killer has ended a process, which may be back by then; and it takes what a service says of itself
//! (`Type=notify`) from its main process alone, which is the supervisor. A unit that a policy names has its drop-in when policies are
//! read; one that does not gets it when a program of its begins. Under /run: a boot forgets them all.

use crate::command::{self, End, Stream};
use outlast_policy::{Policy, Verdict};
use outlast_supervisor::say::say;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::thread;
use std::time::Duration;

/// Where drop-ins lie that do not outlive a boot; only where systemd manages services.
const FOLDER: &str = "/run/systemd/system";
const FILE: &str = "50-outlast.conf";
/// Where services of the system are, in the hierarchy of control groups.
const SERVICES: &str = "/system.slice/";
/// How a drop-in names the file for which it is there; a unit that a policy names has it for any.
const FOR: &str = "# Written by outlast, for ";
const ANY: &str = "any program";
/// How long systemd may take to answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// Bytes that systemctl says at most.
const LONGEST: u64 = 1 << 20;

enum News {
    /// The administrator's policies are these now; who waits until systemd knows.
    Policies(Vec<Policy>, Sender<()>),
    /// This file's program is protected, in this control group.
    Protected(PathBuf, String),
}

/// Tells the thread that writes them.
#[derive(Clone, Default)]
pub struct Units(Option<Sender<News>>);

impl Units {
    /// Does nothing where there is no systemd, or no thread.
    pub fn begin() -> Self {
        if !Path::new(FOLDER).is_dir() {
            return Self(None);
        }
        let (news, inbox) = channel();
        let writer = Writer { policies: Vec::new(), seen: BTreeSet::new() };
        let begun = thread::Builder::new().name("units".into()).spawn(move || writer.write(&inbox));
        Self(begun.is_ok().then_some(news))
    }

    /// Returns when systemd knows: services wait for the daemon, and what they say at their start is to be heard.
    pub fn follow<'p>(&self, policies: impl Iterator<Item = &'p Policy>) {
        let (done, is_done) = channel();
        self.tell(|| News::Policies(policies.cloned().collect(), done));
        let _ = is_done.recv_timeout(PATIENCE);
    }

    pub fn protected(&self, executable: &Path, cgroup: &str) {
        self.tell(|| News::Protected(executable.into(), cgroup.into()));
    }

    fn tell(&self, news: impl FnOnce() -> News) {
        if let Some(writer) = &self.0 {
            let _ = writer.send(news());
        }
    }
}

struct Writer {
    policies: Vec<Policy>,
    /// Units that were seen to since policies were read.
    seen: BTreeSet<String>,
}

impl Writer {
    fn write(mut self, inbox: &Receiver<News>) {
        while let Ok(first) = inbox.recv() {
            let (mut is_changed, mut waiting) = (false, Vec::new());
            // What has come meanwhile systemd need hear only once.
            for news in std::iter::once(first).chain(inbox.try_iter()) {
                is_changed |= self.see_to(news, &mut waiting);
            }
            if is_changed && systemctl(&["daemon-reload"]).is_none() {
                say(format_args!(
                    "daemon: systemd does not read again what units are to say (systemctl daemon-reload)"
                ));
            }
            for waiting in waiting {
                // Who has waited long enough has gone.
                let _ = waiting.send(());
            }
        }
    }

    /// Whether there is something new for systemd.
    fn see_to(&mut self, news: News, waiting: &mut Vec<Sender<()>>) -> bool {
        match news {
            News::Policies(policies, done) => {
                waiting.push(done);
                // They are read again and again.
                if words(&policies) == words(&self.policies) {
                    return false;
                }
                self.policies = policies;
                self.seen.clear();
                let is_less = self.remove_unwanted();
                let named: Vec<String> = self.policies.iter().filter_map(Policy::names_unit).map(Into::into).collect();
                let wanted: Vec<_> = named.iter().filter(|unit| self.is_wanted(unit, None)).collect();
                wanted.into_iter().fold(is_less, |is_changed, unit| self.add(unit, None) || is_changed)
            }
            News::Protected(executable, cgroup) => match service_of(&cgroup) {
                Some(unit) if self.is_wanted(unit, Some(&executable)) => self.add(unit, Some(&executable)),
                _ => false,
            },
        }
    }

    /// Does a policy of the administrator's want programs of this unit protected?
    fn is_wanted(&self, unit: &str, executable: Option<&Path>) -> bool {
        let cgroup = format!("{SERVICES}{unit}");
        let wants = |policy: &&Policy| matches!(policy.verdict, Verdict::Protect(_)) && policy.is_of(&cgroup);
        self.policies.iter().filter(wants).any(|policy| match executable {
            Some(executable) => policy.may_fit(executable),
            None => policy.names_unit() == Some(unit),
        })
    }

    fn add(&mut self, unit: &str, executable: Option<&Path>) -> bool {
        if !self.seen.insert(unit.into()) {
            return false;
        }
        let file = drop_in(unit);
        let reason = executable.map_or(Some(ANY), Path::to_str).filter(|reason| !reason.contains(char::is_control));
        let (Some(reason), false) = (reason, file.exists()) else { return false };
        let lines = lacking(unit);
        if lines.is_empty() {
            return false;
        }
        let text = format!("{FOR}{reason}\n[Service]\n{}", lines.concat());
        let folder = file.with_file_name("");
        let written = fs::create_dir_all(&folder).and_then(|()| fs::write(&file, text));
        written.inspect_err(|e| say(format_args!("daemon: {}: {e}", file.display()))).is_ok()
    }

    /// Removes those that no policy has any use of.
    fn remove_unwanted(&self) -> bool {
        let folders = fs::read_dir(FOLDER).into_iter().flatten().flatten();
        let units = folders.filter_map(|folder| Some(folder.file_name().to_str()?.strip_suffix(".d")?.to_string()));
        let mut is_changed = false;
        for unit in units {
            let file = drop_in(&unit);
            let Some(reason) = fs::read_to_string(&file).ok().and_then(|text| {
                let first = text.lines().next()?;
                first.strip_prefix(FOR).map(ToString::to_string)
            }) else {
                continue;
            };
            let executable = (reason != ANY).then(|| PathBuf::from(reason));
            if !self.is_wanted(&unit, executable.as_deref()) {
                is_changed |= fs::remove_file(&file).is_ok();
                // Others may have something there.
                let _ = fs::remove_dir(file.with_file_name(""));
            }
        }
        is_changed
    }
}

/// What policies say, to be compared; which files there are that one is about does not count.
fn words(policies: &[Policy]) -> Vec<String> {
    policies.iter().map(|policy| format!("{} {:?} {:?}", policy.place(), policy.conditions(), policy.verdict)).collect()
}

/// The service of the system's to which the control group belongs.
fn service_of(cgroup: &str) -> Option<&str> {
    let unit = outlast_policy::unit_of(cgroup.starts_with(SERVICES).then_some(cgroup)?)?;
    let is_plain = unit.chars().all(|c| c.is_ascii_alphanumeric() || ":-_.\\@".contains(c));
    (is_plain && unit.ends_with(".service")).then_some(unit)
}

fn drop_in(unit: &str) -> PathBuf {
    Path::new(FOLDER).join(format!("{unit}.d")).join(FILE)
}

/// What the unit does not say and should.
fn lacking(unit: &str) -> Vec<&'static str> {
    let said = systemctl(&["show", "--property=LoadState,NotifyAccess,OOMPolicy", "--", unit]).unwrap_or_default();
    let is = |line: &str| said.lines().any(|other| other == line);
    if !is("LoadState=loaded") {
        return Vec::new();
    }
    let to_notify = (is("NotifyAccess=main") || is("NotifyAccess=exec")).then_some("NotifyAccess=all\n");
    let to_go_on = is("OOMPolicy=stop").then_some("OOMPolicy=continue\n");
    to_notify.into_iter().chain(to_go_on).collect()
}

/// What it says; none: it could not.
fn systemctl(words: &[&str]) -> Option<String> {
    let mut command = Command::new("systemctl");
    command.args(words).stdin(Stdio::null()).stderr(Stdio::null());
    match command::run(&mut command, Stream::Output, LONGEST, PATIENCE) {
        Ok(End::With(status, said)) if status.success() => String::from_utf8(said).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::service_of;

    #[test]
    fn only_plain_services_of_the_system_have_a_drop_in() {
        assert_eq!(service_of("/system.slice/nginx.service"), Some("nginx.service"));
        assert_eq!(service_of("/system.slice/system-a.slice/a@15-main.service"), Some("a@15-main.service"));
        let others =
            ["/user.slice/user@0.service/a.service", "/system.slice/a b.service", "/system.slice/x.scope", "/"];
        assert!(others.iter().all(|cgroup| service_of(cgroup).is_none()));
    }
}
