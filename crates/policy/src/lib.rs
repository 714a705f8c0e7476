//! Which programs an administrator wants protected, and how.
//!
//! A policy file is TOML: a list of entries, the first that fits a program counts (Shimos2, §2: designation by the administrator).
//!
//! ```toml
//! [[protect]]
//! executable = "/usr/lib/postgresql/*/bin/postgres"   # which programs: all that is given must fit
//! user = "postgres"
//! commit = "visible"                                   # and how: options of `outlast run`, without the dashes
//! retries = 5
//!
//! [[leave]]                                            # or not at all
//! unit = "backup-*.service"
//! ```
//!
//! | key | fits |
//! |---|---|
//! | `executable` | the file that is executed, of a script the script and not its interpreter; a path, `*`, `?` and `[…]` within a folder, `**` across folders |
//! | `user` | the effective user: a name or a number |
//! | `cgroup` | the control group's path from the root of the hierarchy; with `*` as above |
//! | `unit` | the innermost service or scope of systemd that the control group belongs to; with `*` as above |
//!
//! A user's own file is about that user's programs only, and must not hold others up: an entry names executables of one folder, and
//! patterns have two wildcards.
//!
//! Parsing and matching only; nothing here watches or acts.

mod entry;
mod files;
mod parse;
mod refusal;
mod subject;

pub use entry::{Check, Policy, Setting, Verdict};
pub use files::{Content, Folder, Policies};
pub use parse::parse;
pub use refusal::Refusal;
pub use subject::{unit_of, Subject};
