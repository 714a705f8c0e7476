//! What the daemon has done about a program that runs already when a policy comes to designate it.

use clap::Args;
use outlast_supervisor::attach::stand_beside;
use outlast_supervisor::Error;
use rustix::io::Errno;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

/// Attach to a program as its user
#[derive(Args)]
pub struct Designate {
    pid: i32,
    /// When it began, which tells it from a later process of this number
    start_time: u64,
    /// The file that policies were asked about
    executable: PathBuf,
    /// The file of the policy
    policy: PathBuf,
    /// Options of `outlast run`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    settings: Vec<String>,
}

impl Designate {
    pub fn execute(self) -> Result<i32, Error> {
        stand_beside(self.pid, self.start_time)?;
        let mut attach = Command::new("/proc/self/exe");
        // The execution takes the last of what this process had from the daemon.
        attach.arg0("outlast").arg("attach").arg(self.pid.to_string()).args(&self.settings);
        let e = attach.arg("--designated").arg(self.executable).arg(self.policy).exec();
        Err(Error::Kernel("execute outlast as its user", Errno::from_io_error(&e).unwrap_or(Errno::IO)))
    }
}
