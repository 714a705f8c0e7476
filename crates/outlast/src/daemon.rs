//! `outlast daemon`: programs that policies designate are protected when they begin.

use crate::designation;
use clap::Args;
use outlast_daemon::Request;
use outlast_supervisor::Error;
use std::path::PathBuf;

/// Protect the programs that policies designate, whoever starts them
///
/// Reads /etc/outlast/policy.d/*.toml, and of each user ~/.config/outlast/policy.d/*.toml, which is about that user's programs only.
/// SIGHUP reads them again: a file with an error is refused as a whole, and what it said before still counts. Programs that
/// run because of a policy follow what it says then. An outlast
/// that was installed since in place of this one takes over then. SIGTERM ends it, and
/// leaves protected what is.
#[derive(Args)]
pub struct Daemon {
    /// Read the policies of this folder instead; may be given more than once
    #[arg(long, value_name = "DIR")]
    policies: Vec<PathBuf>,
    /// Held while it runs, so that there is one
    #[arg(long, value_name = "FILE", default_value = "/run/outlast-daemon.lock")]
    lock: PathBuf,
    /// While this file is there it protects nothing
    #[arg(long, hide = true, value_name = "FILE", default_value = outlast_supervisor::switch::OF_ALL)]
    switch: PathBuf,
}

impl Daemon {
    pub fn execute(self) -> Result<i32, Error> {
        let folders = Box::new(move || designation::folders_or(self.policies.clone()));
        let request = Request { folders, check: &designation::check, lock: self.lock, switch: self.switch };
        outlast_daemon::run(request).map(|()| 0).map_err(|e| Error::Daemon(e.to_string()))
    }
}
