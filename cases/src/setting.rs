//! Under which circumstances a case runs: tracker, ring, user.

use std::fmt;

use outlast_image::degradation::Degradation;

/// How dirty pages are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tracker {
    /// userfaultfd's asynchronous write protection and PAGEMAP_SCAN.
    Async,
    /// mprotect and SIGSEGV: works on any kernel.
    Mprotect,
}

/// Who runs `outlast`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum User {
    Root,
    /// A user id with no capabilities and no name.
    Ordinary,
    /// Root with the capabilities and the system call filter of a Docker container.
    Docker,
}

/// One combination; the suite runs its cases under several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    pub tracker: Tracker,
    /// Whether io_uring may be used.
    pub ring: bool,
    pub user: User,
}

/// User and group id of [`User::Ordinary`]: one that no package claims.
pub const ORDINARY_ID: u32 = 20_471;

impl Setting {
    pub const fn new(tracker: Tracker, ring: bool, user: User) -> Setting {
        Setting { tracker, ring, user }
    }

    /// The plainest: everything the kernel offers, as root.
    pub const PLAIN: Setting = Setting::new(Tracker::Async, true, User::Root);

    /// The same without root's rights.
    pub const PLAIN_FOR_USERS: Setting = Setting::new(Tracker::Async, true, User::Ordinary);

    /// The same with the tracker by mprotect.
    pub const PLAIN_ON_ANY_KERNEL: Setting = Setting::new(Tracker::Mprotect, true, User::Root);

    pub const PLAIN_WITHOUT_RING: Setting = Setting::new(Tracker::Async, false, User::Root);

    /// Every combination that makes sense: a Docker-like filter forbids userfaultfd and io_uring.
    pub fn all() -> Vec<Setting> {
        let mut all = Vec::new();
        for user in [User::Root, User::Ordinary] {
            for tracker in [Tracker::Async, Tracker::Mprotect] {
                for ring in [true, false] {
                    all.push(Setting::new(tracker, ring, user));
                }
            }
        }
        all.push(Setting::new(Tracker::Mprotect, false, User::Docker));
        all
    }

    /// Options of `outlast run`.
    pub fn options(&self) -> Vec<&'static str> {
        // Inside the container outlast must find out for itself what is forbidden.
        if self.user == User::Docker {
            return Vec::new();
        }
        let tracker = match self.tracker {
            Tracker::Async => "async",
            Tracker::Mprotect => "mprotect",
        };
        let mut options = vec!["--tracker", tracker];
        if !self.ring {
            options.push("--no-io-uring");
        }
        options
    }

    /// Degradations that the setting itself brings, whatever the program.
    pub fn degradations(&self) -> Vec<Degradation> {
        let mut allowed = Vec::new();
        if !self.ring {
            allowed.push(Degradation::NoRing);
        }
        // Choosing a process id needs CAP_CHECKPOINT_RESTORE.
        if self.user != User::Root {
            allowed.push(Degradation::PidChanged);
        }
        allowed
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tracker = match self.tracker {
            Tracker::Async => "async",
            Tracker::Mprotect => "mprotect",
        };
        let user = match self.user {
            User::Root => "root",
            User::Ordinary => "user",
            User::Docker => "docker",
        };
        write!(f, "{tracker}::{}::{user}", if self.ring { "ring" } else { "no-ring" })
    }
}
