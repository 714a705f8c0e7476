//! What can be wrong with a file that is to be a module.

use rustix::io::Errno;
use std::path::PathBuf;

/// Why a module cannot be had from a file.
#[derive(Debug, thiserror::Error, displaydoc::Display)]
pub enum Error {
    /// {0}: {1}
    File(PathBuf, Errno),
    /// {0}: {1}
    Refused(PathBuf, &'static str),
    /// no component: {0}
    NotAComponent(String),
    /// a core module and no component yet: outlast-plugin component makes one of it
    CoreModule,
    /// it needs what modules are not given, or lacks what they are asked for: {0}
    OtherWorld(String),
    /// {0}
    Here(String),
}
