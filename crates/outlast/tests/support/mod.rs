//! A state folder of a test's own, and the outlast that was built for it.
#![allow(dead_code, reason = "no test uses all of it")]

pub mod obedient;
pub mod talk;
pub mod terminal;
pub mod tree;

use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long anything may take before a test fails: for a machine that is busy with other things.
const PATIENCE: Duration = Duration::from_secs(120);

/// Holds a program up until it is opened: a file for which the program looks.
pub struct Door(PathBuf);

impl Door {
    pub fn open(&self) {
        std::fs::write(&self.0, "").unwrap();
    }

    /// What a shell does before a closed door, without a child.
    pub fn wait(&self) -> String {
        format!("until [ -e {} ]; do read x < /dev/null; done", self.0.display())
    }
}

/// A folder that is gone with the value; programs that are still in it are stopped.
pub struct Home {
    folder: TempDir,
    /// Whose the state folder is, and by whom outlast is called, if not by who runs the tests.
    user: Option<u32>,
}

impl Home {
    pub fn new() -> Self {
        // Who runs the tests under nohup, or in the background of a script, has every program ignore what keys send.
        for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT] {
            // SAFETY: nothing here handles them.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        let folder = tempfile::Builder::new().prefix("outlast-test.").tempdir_in("/dev/shm").unwrap();
        Self { folder, user: None }
    }

    /// One of another user's, who calls outlast there.
    pub fn of(user: u32) -> Self {
        let mut home = Self::new();
        home.user = Some(user);
        std::fs::create_dir(home.state()).unwrap();
        std::os::unix::fs::chown(home.state(), Some(user), Some(user)).unwrap();
        std::fs::set_permissions(home.state(), std::fs::Permissions::from_mode(0o700)).unwrap();
        home
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn state(&self) -> PathBuf {
        self.path().join("state")
    }

    /// A file for the program to find.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// A door that is closed.
    pub fn door(&self) -> Door {
        Door(self.file("door"))
    }

    /// `outlast` with these arguments.
    pub fn outlast<S: AsRef<std::ffi::OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        if let Some(user) = self.user {
            return self.outlast_by(user, args);
        }
        let mut command = Command::new(env!("CARGO_BIN_EXE_outlast"));
        command.args(args).env("OUTLAST_STATE_DIR", self.state()).stdin(Stdio::null());
        command
    }

    /// A file that may be executed, with this content. By another process: what this one has open for writing a child that another test
    /// is about to start may still have open, and then it cannot be executed.
    pub fn executable(&self, name: &str, content: &[u8]) -> PathBuf {
        use std::io::Write;
        let path = self.file(name);
        let mut tee = Command::new("tee").arg(&path).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        tee.stdin.take().unwrap().write_all(content).unwrap();
        assert!(tee.wait().unwrap().success());
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        path
    }

    /// The same by this user, from a copy: the one that was built may lie where others have no business.
    pub fn outlast_by<S: AsRef<std::ffi::OsStr>>(&self, user: u32, args: impl IntoIterator<Item = S>) -> Command {
        let own = self.file("outlast");
        if !own.exists() {
            // What this process writes itself might be open for writing in a child of another test.
            let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_outlast")).arg(&own).status().unwrap();
            assert!(copied.success());
            std::fs::set_permissions(self.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        let mut command = Command::new(own);
        command.args(args).env("OUTLAST_STATE_DIR", self.state()).stdin(Stdio::null()).uid(user).gid(user);
        command
    }

    /// `outlast run --name NAME -- sh -c SCRIPT`
    pub fn run_script(&self, name: &str, script: &str) -> Command {
        self.outlast(["run", "--name", name, "--", "sh", "-c", script])
    }

    /// The same, started, its output kept for later.
    pub fn start_script(&self, name: &str, script: &str) -> Child {
        self.run_script(name, script).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// What `ps --json` says about a program; null if nothing.
    pub fn status(&self, name: &str) -> Value {
        let output = self.outlast(["ps", "--all", "--json"]).output().unwrap();
        let programs: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", said(&output)));
        let mut programs = programs.as_array().unwrap().iter();
        programs.find(|program| program["name"] == name).cloned().unwrap_or(Value::Null)
    }

    /// Waits until a program's status is as wanted.
    pub fn await_status(&self, name: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        until(&format!("status of {name}"), || {
            last = self.status(name);
            wanted(&last)
        });
        last
    }

    /// Waits until a program is protected, and has all that belongs to it: what was just resumed has not, and of what was replaced there
    /// is none for a moment. Its status then. After a kill it may still be the dead one's.
    pub fn await_protected(&self, name: &str) -> Value {
        self.await_status(name, |status| {
            status["protected"] == true
                && ["supervisor", "anchor", "pid"].iter().all(|process| status[process].is_i64())
        })
    }

    /// The program's log.
    pub fn log(&self, name: &str) -> Vec<Value> {
        let output = self.outlast(["log", name, "--json"]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Names of the events in the program's log.
    pub fn events(&self, name: &str) -> Vec<String> {
        self.log(name).iter().map(|entry| entry["event"].as_str().unwrap().into()).collect()
    }

    /// Waits until an event is in the log that many times.
    pub fn await_event(&self, name: &str, event: &str, times: usize) {
        let begun = Instant::now();
        while self.events(name).iter().filter(|e| *e == event).count() < times {
            assert!(begun.elapsed() < PATIENCE, "not {times} times {event} after {PATIENCE:?}: {:#?}", self.log(name));
            std::thread::sleep(Duration::from_millis(3));
        }
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let Ok(output) = self.outlast(["ps", "--json"]).output() else { return };
        let Ok(Value::Array(programs)) = serde_json::from_slice(&output.stdout) else { return };
        for program in programs {
            let _ = self.outlast(["stop", program["name"].as_str().unwrap_or_default(), "--timeout", "1ms"]).output();
        }
    }
}

/// Waits until something is so.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "not so after {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(3));
    }
}

/// Sends a signal to one process, known by its number.
pub fn kill(pid: &Value, signal: i32) {
    let pid = pid.as_i64().filter(|pid| *pid > 1).unwrap_or_else(|| panic!("{pid} is no process"));
    // SAFETY: plain system call.
    unsafe { libc::kill(pid as i32, signal) };
}

/// Kills supervisor, anchor and program of what a status shows; returns when they are dead.
pub fn kill_everything(status: &Value) {
    // Stopped, the supervisor can bring back neither of the others before it is killed itself.
    kill(&status["supervisor"], libc::SIGSTOP);
    for process in ["anchor", "pid", "supervisor"] {
        kill(&status[process], libc::SIGKILL);
        until(&format!("the death of the {process}"), || {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", status[process])).unwrap_or_default();
            stat.rsplit(')')
                .next()
                .is_none_or(|rest| matches!(rest.trim_start().chars().next(), None | Some('Z' | 'X')))
        });
    }
}

/// Waits for a child, but not for ever.
pub fn finish(mut child: Child) -> Output {
    let mut status = None;
    let reader = std::thread::spawn({
        let (out, err) = (child.stdout.take(), child.stderr.take());
        move || (read(out), read(err))
    });
    until("the end of outlast run", || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    let (stdout, stderr) = reader.join().unwrap();
    Output { status: status.unwrap(), stdout, stderr }
}

fn read(from: Option<impl std::io::Read>) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(mut from) = from {
        from.read_to_end(&mut bytes).unwrap();
    }
    bytes
}

/// Everything a command said.
pub fn said(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{} | {} | {}", output.status, text(&output.stdout), text(&output.stderr))
}

/// A script that counts on standard output and exits with 3, and what it prints.
pub fn counter(to: u32) -> (String, String) {
    let script = format!("i=0; while [ $i -lt {to} ]; do echo $i; i=$((i+1)); done; exit 3");
    (script, (0..to).map(|i| format!("{i}\n")).collect())
}

/// What a process that this one traces does next.
pub fn traced(pid: i32) -> i32 {
    let mut status = 0;
    // SAFETY: waits for a process.
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, libc::__WALL) }, pid);
    status
}

/// A request to trace, with an argument.
pub fn trace(request: libc::c_uint, pid: i32, argument: u64) {
    // SAFETY: writes at most where the argument points to.
    assert_eq!(unsafe { libc::ptrace(request, pid, 0, argument) }, 0, "{}", std::io::Error::last_os_error());
}
