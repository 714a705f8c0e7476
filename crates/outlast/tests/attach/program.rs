//! A program that outlast has not started, and what is done to it.

use super::support::{kill, said, until, Home};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
pub const PYTHON: &str = "/usr/bin/python3";
pub const NOBODY: u32 = 65534;

/// A program that outlast has not started, ended with the value, whatever process it is then.
pub struct Program {
    pub child: Child,
    pub input: Option<ChildStdin>,
    /// What it prints.
    pub out: BufReader<ChildStdout>,
    pub pid: i32,
}

impl Program {
    pub fn start(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        // Kept here: to wait for a child closes its input.
        let input = child.stdin.take();
        Self { pid: child.id() as i32, child, input, out }
    }

    pub fn script(script: &str) -> Self {
        Self::start(Command::new("sh").args(["-c", script]))
    }

    pub fn python(script: &str) -> Self {
        Self::start(Command::new(PYTHON).args(["-u", "-c", script]))
    }

    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        line.trim_end().into()
    }

    pub fn tell(&mut self, line: &str) {
        self.input.as_mut().unwrap().write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// Everything that it prints from now on, until it has ended.
    pub fn rest(&mut self) -> String {
        drop(self.input.take());
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).unwrap();
        rest
    }

    /// Kills it, as its parent, which sees that.
    pub fn kill_first(&mut self) {
        kill(&self.pid.into(), libc::SIGKILL);
        assert_eq!(self.child.wait().unwrap().signal(), Some(libc::SIGKILL));
    }

    /// Waits until its only thread waits in a system call.
    pub fn await_sleep(&self) {
        until("it waits", || {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid)).unwrap();
            stat.rsplit(')').next().unwrap().trim_start().starts_with('S')
        });
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It is not waited for only as long as its number is its own.
        if self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

pub fn compile(home: &Home, source: &str) -> PathBuf {
    let to = home.file("program");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(source);
    let mut gcc = Command::new("gcc");
    let built = gcc.args(["-O2", "-Wall", "-Wextra", "-pthread", "-o"]).arg(&to).arg(source).output().unwrap();
    assert!(built.status.success(), "{}", said(&built));
    to
}

pub fn try_to_attach(home: &Home, pid: i32, options: &[&str]) -> Output {
    let pid = pid.to_string();
    home.outlast(["attach", &pid, "--name", "it", "--json"].iter().chain(options)).output().unwrap()
}

pub fn attach(home: &Home, pid: i32, options: &[&str]) -> Value {
    let output = try_to_attach(home, pid, options);
    assert!(output.status.success(), "{}", said(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["name"], &report["pid"]), (&"it".into(), &pid.into()));
    assert!(report["pause_us"].as_f64().unwrap() > 0.0, "{report}");
    report
}

/// Kills it as often, each time once it is back.
pub fn kill_again(home: &Home, times: usize) {
    for _ in 0..times {
        let recovered = home.events("it").iter().filter(|event| *event == "recovered").count();
        kill(&home.await_protected("it")["pid"], libc::SIGKILL);
        home.await_event("it", "recovered", recovered + 1);
    }
}
