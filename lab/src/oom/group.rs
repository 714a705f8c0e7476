//! A control group of the guest.

use super::MIB;
use crate::shell::Shell;
use std::error::Error;

/// Removed at the machine's end only.
pub struct Group(String);

impl Group {
    /// `name` may be a path; `whole`: the OOM killer ends the whole of it (`memory.oom.group`).
    pub fn new(shell: &mut Shell, name: &str, whole: bool) -> Result<Group, Box<dyn Error>> {
        let group = Group(format!("/sys/fs/cgroup/{name}"));
        shell.ask(&format!("mkdir {}", group.0))?;
        group.set(shell, "memory.oom.group", if whole { "1" } else { "0" })?;
        // A machine with swap would swap; a kernel without it has no such file.
        shell.ask(&format!("! [ -e {0}/memory.swap.max ] || echo 0 >{0}/memory.swap.max", group.0))?;
        Ok(group)
    }

    /// With a limit in MiB.
    pub fn limited(shell: &mut Shell, name: &str, whole: bool, limit: u64) -> Result<Group, Box<dyn Error>> {
        let group = Self::new(shell, name, whole)?;
        group.allow(shell, limit)?;
        Ok(group)
    }

    pub fn path(&self) -> &str {
        &self.0
    }

    /// Sets the limit, in MiB.
    pub fn allow(&self, shell: &mut Shell, limit: u64) -> Result<(), Box<dyn Error>> {
        self.set(shell, "memory.max", &(limit * MIB).to_string())
    }

    pub fn set(&self, shell: &mut Shell, file: &str, value: &str) -> Result<(), Box<dyn Error>> {
        shell.ask(&format!("echo {value} >{}/{file}", self.0)).map(drop)
    }

    /// A line of `memory.stat`, in MiB.
    pub fn stat(&self, shell: &mut Shell, name: &str) -> Result<u64, Box<dyn Error>> {
        Ok(self.figure(shell, "memory.stat", name)? / MIB)
    }

    /// A line of `memory.events`.
    pub fn events(&self, shell: &mut Shell, name: &str) -> Result<u64, Box<dyn Error>> {
        self.figure(shell, "memory.events", name)
    }

    /// Who is in it.
    pub fn members(&self, shell: &mut Shell) -> Result<Vec<i64>, Box<dyn Error>> {
        let said = shell.ask(&format!("cat {}/cgroup.procs", self.0))?;
        Ok(said.split_whitespace().map(str::parse).collect::<Result<_, _>>()?)
    }

    /// Begins a program there that is not protected, in the background; its process.
    pub fn begin(&self, shell: &mut Shell, program: &str) -> Result<i64, Box<dyn Error>> {
        let begun = format!("(echo 0 >{}/cgroup.procs; exec {program}) >/dev/null 2>&1 & echo $!", self.0);
        Ok(shell.ask(&begun)?.trim().parse()?)
    }

    fn figure(&self, shell: &mut Shell, file: &str, name: &str) -> Result<u64, Box<dyn Error>> {
        let said = shell.ask(&format!("cat {}/{file}", self.0))?;
        let figure = said.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok());
        figure.ok_or_else(|| format!("no {name} in {said}").into())
    }
}
