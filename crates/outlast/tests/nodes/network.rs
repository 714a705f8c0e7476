//! Two network namespaces with a cable between them, and a daemon in each.

use crate::support::{kill, said, until, Home};
use serde_json::{json, Value};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What a node that is silent for so long has.
pub const PATIENCE: &str = "500ms";
const PORT: u16 = 7607;

/// Taken apart with the value.
pub struct Network {
    names: [String; 2],
    pub home: Home,
    _alone: MutexGuard<'static, ()>,
}

/// Their daemons look at the same processors, with precedence, and are what keeps others' from switching or has them switch.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

impl Network {
    /// None: it cannot be here, as the test then says.
    pub fn lay() -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Relaxed);
        let name = |end: &str| format!("o{}n{number}{end}", std::process::id());
        let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let this = Self { _alone: alone, names: [name("a"), name("b")], home: Home::new() };
        if !this.try_lay() {
            println!("skipped: needs root, and `ip netns`");
            return None;
        }
        Some(this)
    }

    fn try_lay(&self) -> bool {
        let [a, b] = &self.names;
        let added = self.names.iter().all(|name| ip(&["netns", "add", name]));
        added
            && ip(&["link", "add", a, "netns", a, "type", "veth", "peer", "name", b, "netns", b])
            && [(a, "10.76.7.1/24"), (b, "10.76.7.2/24")].into_iter().all(|(name, address)| {
                ip(&["-n", name, "addr", "add", address, "dev", name])
                    && ip(&["-n", name, "link", "set", "lo", "up"])
                    && ip(&["-n", name, "link", "set", name, "up"])
            })
    }

    /// Whether anything goes over the cable.
    pub fn cable(&self, is_in: bool) {
        let [_, b] = &self.names;
        assert!(ip(&["-n", b, "link", "set", b, if is_in { "up" } else { "down" }]));
    }

    /// A command in one of the two.
    pub fn at(&self, node: usize, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.names[node]]).arg(program).stdin(Stdio::null());
        command
    }

    pub fn node(&self, number: usize) -> Node<'_> {
        let folder = self.home.file(&format!("node{number}"));
        fs::create_dir_all(folder.join("policies")).unwrap();
        let key = self.home.outlast(["node", "key", "--file"]).arg(folder.join("key")).output().unwrap();
        assert!(key.status.success(), "{}", said(&key));
        let key = String::from_utf8(key.stdout).unwrap().trim().into();
        Node { network: self, number, folder, key, daemon: None }
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.names.iter().for_each(|name| assert!(ip(&["netns", "del", name]) || std::thread::panicking()));
    }
}

fn ip(args: &[&str]) -> bool {
    Command::new("ip").args(args).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// One of the two; its daemon is ended with the value.
pub struct Node<'a> {
    network: &'a Network,
    number: usize,
    folder: PathBuf,
    pub key: String,
    pub daemon: Option<Child>,
}

impl Node<'_> {
    pub fn address(&self) -> String {
        format!("10.76.7.{}:{PORT}", self.number + 1)
    }

    /// What it is to know of others.
    pub fn knows(&self, rest: &str) {
        let listen = format!("listen = \"{}\"\npatience = \"{PATIENCE}\"\n", self.address());
        fs::write(self.folder.join("nodes.toml"), listen + rest).unwrap();
    }

    pub fn begin(&mut self, how: &[&str]) {
        let mut command = self.network.at(self.number, env!("CARGO_BIN_EXE_outlast"));
        command.args(["daemon", "--policies"]).arg(self.folder.join("policies")).args(how);
        for (option, file) in [("--lock", "lock"), ("--nodes", "nodes.toml"), ("--node-key", "key")] {
            command.arg(option).arg(self.folder.join(file));
        }
        let log = fs::File::options().create(true).append(true).open(self.folder.join("log")).unwrap();
        self.daemon = Some(command.stderr(log).spawn().unwrap());
    }

    pub fn pid(&self) -> Value {
        json!(self.daemon.as_ref().map(Child::id))
    }

    pub fn signal(&self, signal: i32) {
        kill(&self.pid(), signal);
    }

    /// As a machine that loses power.
    pub fn kill(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    pub fn count(&self, words: &str) -> usize {
        self.log().matches(words).count()
    }

    /// Waits until its log has this so often.
    pub fn await_said(&self, words: &str, times: usize) {
        let what = format!("{words} ({times})");
        until(&what, || {
            let is_so = self.count(words) >= times;
            is_so || {
                let ended =
                    self.daemon.as_ref().is_some_and(|daemon| !Path::new(&format!("/proc/{}", daemon.id())).exists());
                assert!(!ended, "{}", self.log());
                false
            }
        });
    }

    fn listed(&self, what: &[&str]) -> Vec<Value> {
        let mut command = self.network.home.outlast(what);
        let output = command.arg("--json").arg("--daemon").arg(self.folder.join("lock.nodes")).output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap_or_default()
    }

    /// What `node list` says of the other one.
    pub fn other(&self) -> Value {
        self.listed(&["node", "list"]).into_iter().next().unwrap_or_default()
    }

    pub fn pins_of(&self, node: &str) -> Vec<Value> {
        self.listed(&["pin", "list", "--node", node])
    }

    pub fn await_why(&self, why: &str) {
        until(why, || self.other()["why"] == why);
    }

    pub fn await_other(&self, state: &str) -> Value {
        until(&format!("{state}: {}", self.log()), || self.other()["state"] == state);
        self.other()
    }
}

impl Drop for Node<'_> {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            println!("node {}:\n{}", self.number, self.log());
        }
    }
}
