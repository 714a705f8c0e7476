//! `outlast daemon`: programs that policies designate are protected when they begin, and the scheduler is watched.

use crate::{designation, duration, node};
use clap::{Args, ValueEnum};
use outlast_daemon::{Executions, Network, Request, Watch};
use outlast_interfaces::oshang::Settings;
use outlast_supervisor::Error;
use std::path::PathBuf;
use std::time::Duration;

/// Protect the programs that policies designate, whoever starts them
///
/// Reads /etc/outlast/policy.d/*.toml, and of each user ~/.config/outlast/policy.d/*.toml, which is about that user's programs only.
/// SIGHUP reads them again: a file with an error is refused as a whole, and what it said before still counts. Programs that
/// run because of a policy follow what it says then, and those that run and are designated now are attached to, as by `outlast attach`. An
/// outlast that was installed since in place of this one takes over then. SIGTERM ends it, and
/// leaves protected what is.
///
/// Besides it tells, on standard error and to systemd's journal, of processors that do not switch although threads wait for them, and of
/// threads of protected programs that could run and get no processor for five seconds. Nothing is ended for that. The same of other
/// nodes, and that they vanish and return, where /etc/outlast/nodes.toml says so.
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
    /// Where it says which other nodes there are, if any (see `outlast node --help`)
    #[arg(long, value_name = "FILE", default_value = node::NODES)]
    nodes: PathBuf,
    /// This node's own key; made if there are other nodes and there is none
    #[arg(long, value_name = "FILE", default_value = node::KEY)]
    node_key: PathBuf,
    /// Tell of processors and programs that are starved
    #[arg(long, value_enum, value_name = "WHEN", default_value = "yes")]
    oshang: OsHang,
    /// Who computes for so long on a processor while others wait for it starves them; more where such long slices are usual
    ///
    /// Counted is processor time, without what a hypervisor gave to others.
    #[arg(long, value_name = "DURATION", default_value = "500ms", value_parser = duration::parse)]
    oshang_threshold: Duration,
    /// Run this command when something is starved, or another node vanishes or returns; once for each of its words, the first being an absolute path
    ///
    /// It runs without a shell, nobody waits for it, and it finds OUTLAST_EVENT (processor-starved, thread-starved, node-vanished, node-returned), OUTLAST_CAUSE,
    /// OUTLAST_NODE, OUTLAST_PROCESSOR, OUTLAST_PID and OUTLAST_THREAD in its environment, as far as they are known.
    #[arg(long, value_name = "WORD", allow_hyphen_values = true)]
    alert: Vec<String>,
}

/// Where `outlast metrics` finds what the daemon has told of: beside its lock.
pub const COUNTS: &str = "/run/outlast-daemon.json";

/// Whether the scheduler is watched.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OsHang {
    Yes,
    No,
    /// And policies are not looked at
    Only,
}

impl Daemon {
    pub fn execute(self) -> Result<i32, Error> {
        if self.alert.first().is_some_and(|program| !program.starts_with('/')) {
            return Err(Error::Daemon("--alert begins with the absolute path of a program".into()));
        }
        let folders = Box::new(move || designation::folders_or(self.policies.clone()));
        let executions = Executions { folders, check: &designation::check, switch: self.switch };
        let modules = Some(outlast_modules::of_machine().to_vec());
        let network = Network {
            nodes: self.nodes,
            key: self.node_key,
            modules: modules.clone().unwrap_or_default(),
            shown: self.lock.with_extension("nodes"),
        };
        let scheduler = Watch {
            settings: Settings::with_threshold(self.oshang_threshold),
            modules: modules.filter(|_| self.oshang != OsHang::No).unwrap_or_default(),
            for_other_nodes: outlast_modules::for_other_nodes().to_vec(),
            alert: self.alert,
            counts: self.lock.with_extension("json"),
        };
        let request = Request {
            lock: self.lock,
            executions: (self.oshang != OsHang::Only).then_some(executions),
            scheduler,
            network,
        };
        outlast_daemon::run(request).map(|()| 0).map_err(|e| Error::Daemon(e.to_string()))
    }
}
