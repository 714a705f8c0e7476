//! A daemon of a test's own, which sees what is executed in one folder.

use crate::support::{until, Home};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

/// Gone with the value.
pub struct Daemon {
    pub home: Home,
    process: Process,
}

/// Killed, and gone, with the value.
pub struct Process(pub Child);

impl Daemon {
    /// With this policy; `$BIN` in it is the folder for programs. None: nobody may watch here, as the test then says.
    pub fn begin(policy: &str) -> Option<Self> {
        Self::begin_by(policy, &[])
    }

    /// The same, by these words and `daemon`.
    pub fn begin_by(policy: &str, words: &[String]) -> Option<Self> {
        // SAFETY: plain system call.
        if unsafe { libc::geteuid() } != 0 {
            println!("skipped: only root sees what is executed");
            return None;
        }
        let home = Home::new();
        fs::create_dir_all(home.file("policies")).unwrap();
        fs::create_dir_all(home.file("bin")).unwrap();
        // So that other users reach it.
        fs::set_permissions(home.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let command = match words {
            // What it tells of the scheduler is a matter of other tests.
            [] => home.outlast(["daemon", "--oshang", "no"]),
            [program, rest @ ..] => {
                let mut command = Command::new(program);
                command.args(rest).arg("daemon");
                command
            }
        };
        let daemon = Self { process: spawn_by(&home, command, &[]), home };
        daemon.said("0 policies");
        daemon.write("a.toml", policy);
        daemon.signal(libc::SIGHUP);
        daemon.said("1 policies");
        Some(daemon)
    }

    pub fn write(&self, name: &str, policy: &str) {
        let policy = policy.replace("$BIN", self.home.file("bin").to_str().unwrap());
        fs::write(self.home.file("policies").join(name), policy).unwrap();
    }

    pub fn signal(&self, signal: i32) {
        self.process.signal(signal);
    }

    /// Kills it, without a chance to do anything about it.
    pub fn kill(&mut self) {
        self.process.0.kill().unwrap();
        self.process.0.wait().unwrap();
    }

    /// Waits until it has said this.
    pub fn said(&self, what: &str) {
        until(&format!("{what:?} from the daemon: {}", self.log()), || self.log().contains(what));
    }

    /// The file that it runs.
    pub fn executable(&self) -> (u64, u64) {
        let file = fs::metadata(format!("/proc/{}/exe", self.process.0.id())).unwrap();
        (file.dev(), file.ino())
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.home.file("daemon.log")).unwrap_or_default()
    }

    /// A copy of a program in the folder that is watched.
    pub fn program(&self, of: &str, name: &str) -> PathBuf {
        let path = self.home.file("bin").join(name);
        if !path.exists() {
            // By another process: what a test's own process has open for writing its children would have open, too.
            let copied = Command::new("/usr/bin/cp").arg(of).arg(&path).status().unwrap();
            assert!(copied.success(), "{copied}");
        }
        path
    }

    /// A file of this text there, which may be executed; written by another process, too.
    pub fn script(&self, name: &str, text: &str) -> PathBuf {
        let path = self.home.file("bin").join(name);
        let mut tee = Command::new("/usr/bin/tee");
        let mut tee = tee.arg(&path).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        tee.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        assert!(tee.wait().unwrap().success());
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        path
    }

    /// How it ended, when it has.
    pub fn ended(&mut self) -> ExitStatus {
        let mut status = None;
        until("the end of the daemon", || {
            status = self.process.0.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }

    /// Starts something as anybody would who knows nothing of outlast.
    pub fn command(&self, program: &std::path::Path) -> Command {
        let mut command = Command::new(program);
        command.env("OUTLAST_STATE_DIR", self.home.state());
        command
    }
}

/// `outlast daemon` over the folder `policies`.
pub fn spawn(home: &Home, environment: &[(&str, &str)]) -> Process {
    spawn_by(home, home.outlast(["daemon"]), environment)
}

/// The same, by a command that ends with `outlast daemon`.
pub fn spawn_by(home: &Home, mut command: Command, environment: &[(&str, &str)]) -> Process {
    let log = fs::File::create(home.file("daemon.log")).unwrap();
    for (option, name) in [("--policies", "policies"), ("--lock", "lock"), ("--switch", "off")] {
        command.arg(option).arg(home.file(name));
    }
    Process(command.envs(environment.iter().copied()).stderr(log).spawn().unwrap())
}

impl Process {
    pub fn signal(&self, signal: i32) {
        // SAFETY: to a child of ours that was not waited for.
        unsafe { libc::kill(self.0.id() as i32, signal) };
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A program that answers lines.
pub struct Conversation {
    pub child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Conversation {
    pub fn with(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        Self { input: child.stdin.take().unwrap(), output: BufReader::new(child.stdout.take().unwrap()), child }
    }

    /// Says nothing more; how it ended.
    pub fn end(mut self) -> ExitStatus {
        drop(self.input);
        self.child.wait().unwrap()
    }

    /// Says something, and hears the answer.
    pub fn ask(&mut self, line: &str) -> String {
        writeln!(self.input, "{line}").unwrap();
        let mut answer = String::new();
        self.output.read_line(&mut answer).unwrap();
        answer.trim_end().into()
    }
}
