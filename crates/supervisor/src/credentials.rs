//! What a program may do, as the kernel tells it. A resume never gives more, and never asks the store.

use crate::error::Error;
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
    /// Whether a process that this one starts may become the program.
    ///
    /// # Errors
    /// What the program had is unknown, or is not exactly what this process has: it would gain or lack something.
    pub fn permits_resume(&self) -> Result<(), Error> {
        let refused = |what: &str| Err(Error::Unresumable(what.into()));
        match self {
            Self::Inherited => Ok(()),
            Self::Changing => refused("it was changing its credentials when it died"),
            Self::Changed(had) => match Credentials::of(std::process::id() as pid_t) {
                Some(have) if have == *had && had.seccomp == 0 => Ok(()),
                Some(_) => refused("it ran with other credentials than this process has; it has to be started anew"),
                None => refused("/proc does not tell what this process may do; mount it"),
            },
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
        self.meta.credentials = record;
        if self.meta.write(&self.folder).is_err() {
            // Without a description nobody can resume it with the credentials it no longer has.
            self.folder.remove(meta::FILE);
        }
        let word = &self.generation.control().credential_request;
        let _ = word.compare_exchange(seen, answer, AcqRel, Acquire);
        futex::wake(word);
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
    fn only_the_same_credentials_may_resume() {
        let same = Credentials { seccomp: 0, ..own() };
        let other = Credentials { uid: [12345; 3], ..same.clone() };
        let bound = Credentials { no_new_privs: !same.no_new_privs, ..same.clone() };
        let filtered = Credentials { seccomp: 2, ..same.clone() };
        if own().seccomp == 0 {
            assert!(Record::Changed(same).permits_resume().is_ok());
        }
        for different in [other, bound, filtered] {
            assert!(Record::Changed(different).permits_resume().is_err());
        }
        assert!(Record::Changing.permits_resume().is_err());
    }
}
