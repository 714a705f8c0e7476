//! What a program may do, as the kernel tells it. A resume never gives more, and never asks the store.

use crate::error::Error;
use crate::kin::Legacy;
use crate::supervisor::Supervisor;
use crate::{futex, meta};
use libc::pid_t;
use outlast_image::control::credential_request;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::atomic::Ordering::{AcqRel, Acquire};

/// The security state of a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Credentials {
    /// Real, effective, saved.
    pub uid: [u32; 3],
    pub gid: [u32; 3],
    /// Supplementary groups, sorted.
    pub groups: Vec<u32>,
    /// Permitted, effective, inheritable, bounding, ambient.
    pub capabilities: [u64; 5],
    pub no_new_privs: bool,
    /// 0 none, 1 strict, 2 filters.
    pub seccomp: u32,
}

/// What is known about a program's credentials.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Record {
    /// Those of the supervisor that started it.
    #[default]
    Inherited,
    /// A change was announced and not yet seen through: anything may be true.
    Changing,
    /// It has these, by the kernel's word.
    Changed(Credentials),
}

impl Credentials {
    /// Asks the kernel about a process.
    pub fn of(pid: pid_t) -> Option<Self> {
        Self::parse(&std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?)
    }

    /// Gives up in this process what these credentials have not, so that the next exec starts with them. What cannot
    /// be had is not had: whoever needs to know asks the kernel afterwards. Makes system calls only.
    pub fn assume(&self) {
        const LAST_CAPABILITY: u64 = 63;
        let [uid, gid] = [self.uid, self.gid];
        let bounding = self.capabilities[3];
        // SAFETY: plain system calls; the groups are read for the length of theirs. libc's own wrappers would look for
        // other threads, which a child after fork has not.
        unsafe {
            for capability in (0..=LAST_CAPABILITY).filter(|capability| bounding >> capability & 1 == 0) {
                libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0);
            }
            libc::syscall(libc::SYS_setgroups, self.groups.len(), self.groups.as_ptr());
            libc::syscall(libc::SYS_setresgid, gid[0], gid[1], gid[2]);
            libc::syscall(libc::SYS_setresuid, uid[0], uid[1], uid[2]);
            if self.no_new_privs {
                libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
            }
        }
    }

    fn parse(status: &str) -> Option<Self> {
        let fields: HashMap<&str, &str> = status.lines().filter_map(|line| line.split_once(':')).collect();
        let numbers = |name| -> Option<Vec<u32>> {
            fields.get(name)?.split_ascii_whitespace().map(|word| word.parse().ok()).collect()
        };
        let three = |name| -> Option<[u32; 3]> { numbers(name)?.get(..3)?.try_into().ok() };
        let set = |name: &str| u64::from_str_radix(fields.get(name)?.trim(), 16).ok();
        let mut groups = numbers("Groups")?;
        groups.sort_unstable();
        Some(Self {
            uid: three("Uid")?,
            gid: three("Gid")?,
            groups,
            capabilities: [set("CapPrm")?, set("CapEff")?, set("CapInh")?, set("CapBnd")?, set("CapAmb")?],
            no_new_privs: *numbers("NoNewPrivs")?.first()? != 0,
            seccomp: *numbers("Seccomp")?.first()?,
        })
    }
}

impl Record {
    /// What a process must have, so that it may become the program.
    ///
    /// # Errors
    /// It is not known, or no fresh process can have it.
    pub fn required(&self) -> Result<Credentials, Error> {
        let own = || Credentials::of(std::process::id() as pid_t);
        let required = match self {
            Self::Inherited => own().ok_or("/proc does not tell what this process may do; mount it"),
            Self::Changing => Err("it was changing its credentials when it died"),
            Self::Changed(had) => Ok(had.clone()),
        };
        match required {
            // A filter cannot be told from another, nor set again.
            Ok(had) if had.seccomp != own().map_or(0, |own| own.seccomp) => {
                Err(Error::Unresumable("it had a seccomp filter, which a fresh process has not".into()))
            }
            Ok(had) => Ok(had),
            Err(why) => Err(Error::Unresumable(why.into())),
        }
    }
}

impl Supervisor {
    /// Notes changes of credentials before they are made, and what the program has afterwards.
    pub(crate) fn on_credential_request(&mut self) {
        let word = &self.generation.control().credential_request;
        let (seen, answer, record) = match word.load(Acquire) {
            credential_request::ASKED => (credential_request::ASKED, credential_request::NOTED, Record::Changing),
            credential_request::CHANGED => {
                let record = Credentials::of(self.pid).map_or(Record::Changing, Record::Changed);
                (credential_request::CHANGED, credential_request::NONE, record)
            }
            _ => return,
        };
        self.record(record);
        let word = &self.generation.control().credential_request;
        let _ = word.compare_exchange(seen, answer, AcqRel, Acquire);
        futex::wake(word);
    }

    /// The engine changes anchors with the program's credentials: the end of one is a reason to look.
    pub(crate) fn look_at_credentials(&mut self) {
        if let Some(has) = Credentials::of(self.pid) {
            self.note(has);
        }
    }

    /// Learns from the dead what it had: whatever it did to its store, it did with that.
    pub(crate) fn inherit(&mut self, legacy: Legacy) {
        if let Some(had) = legacy.credentials {
            self.note(had);
        }
    }

    fn note(&mut self, has: Credentials) {
        let record = match Record::Inherited.required() {
            Ok(own) if own == has => Record::Inherited,
            _ => Record::Changed(has),
        };
        if record != self.meta.credentials {
            self.record(record);
        }
    }

    fn record(&mut self, record: Record) {
        self.meta.credentials = record;
        if self.meta.write(&self.folder, &self.stores).is_err() {
            // Without a description nobody can resume it with the credentials it no longer has.
            self.folder.remove(meta::FILE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> Credentials {
        Credentials::of(std::process::id() as pid_t).unwrap()
    }

    #[test]
    fn the_kernel_tells_what_this_process_has() {
        // SAFETY: plain system calls.
        let (uid, gid) = unsafe { (libc::getuid(), libc::getgid()) };
        assert_eq!((own().uid[0], own().gid[0]), (uid, gid));
    }

    #[test]
    fn what_is_not_known_is_not_guessed() {
        assert!(Record::Changing.required().is_err());
        assert_eq!(Record::Inherited.required().unwrap(), own());
    }

    #[test]
    fn a_filter_is_not_made_up() {
        let filtered = Credentials { seccomp: own().seccomp + 1, ..own() };
        assert!(Record::Changed(filtered).required().is_err());
    }

    #[test]
    fn what_another_process_had_is_required_as_it_was() {
        let other = Credentials { uid: [12345; 3], no_new_privs: true, ..own() };
        assert_eq!(Record::Changed(other.clone()).required().unwrap(), other);
    }
}
