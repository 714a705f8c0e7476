//! A python that does what it is told, and the generations it keeps.

use super::{finish, said, until, Home};
use serde_json::Value;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Output, Stdio};

/// Does what it is told, line by line.
const OBEYS: &str = "import sys, os, ctypes
bad, x = False, 0
for line in sys.stdin:
    if bad: ctypes.string_at(0)
    exec(line)
";

/// A program that obeys, and what it says.
pub struct Obedient<'h> {
    pub home: &'h Home,
    name: String,
    child: Child,
    input: Option<ChildStdin>,
    /// What it says.
    pub out: PathBuf,
    /// How often it was asked: copies count from elsewhere.
    pub told: usize,
}

impl<'h> Obedient<'h> {
    pub fn start(home: &'h Home, name: &str, options: &[&str]) -> Self {
        let mut command = home.outlast(["run", "--name", name]);
        command.args(options).args(["--", "/usr/bin/python3", "-u", "-c", OBEYS]);
        Self::begin(home, name, &mut command)
    }

    pub fn fork(home: &'h Home, of: &str, name: &str, options: &[&str]) -> Self {
        let mut command = home.outlast(["fork", of, "--name", name]);
        command.args(options);
        Self::begin(home, name, &mut command)
    }

    /// What a command brings up or back.
    pub fn begin(home: &'h Home, name: &str, command: &mut Command) -> Self {
        let out = home.file(&format!("{name}.out"));
        // Appended to: a file whose end was given up would hide what is written again.
        let file = OpenOptions::new().append(true).create(true).open(&out).unwrap();
        let mut child = command.stdin(Stdio::piped()).stdout(file).stderr(Stdio::piped()).spawn().unwrap();
        let input = child.stdin.take();
        let this = Self { home, name: name.into(), child, input, out, told: 0 };
        home.await_status(name, |status| status["protected"] == true && status["state"] == "protected");
        this
    }

    pub fn say(&mut self, line: &str) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    /// What it answers to a question that nobody asked before.
    pub fn ask(&mut self, what: &str) -> String {
        self.told += 1;
        let (n, out) = (self.told, self.out.clone());
        self.say(&format!("print('answer {n}:', {what}, '.')"));
        let (from, mut answer) = (format!("answer {n}: "), String::new());
        until(&format!("the answer {n} of {} to {what}", self.name), || {
            let text = std::fs::read_to_string(&out).unwrap();
            let found = text.lines().rfind(|line| line.starts_with(&from) && line.ends_with(" ."));
            answer = found.map(|line| line[from.len()..line.len() - 2].into()).unwrap_or_default();
            found.is_some()
        });
        answer
    }

    /// The number of a generation that was begun after this was called.
    pub fn keeps(&mut self) -> u64 {
        // The one that is being made just now may have begun before.
        for _ in 0..2 {
            let before = self.generations().last().map_or(0, |last| last["seq"].as_u64().unwrap());
            let output = self.home.outlast(["commit", &self.name]).output().unwrap();
            assert!(output.status.success(), "{}", said(&output));
            until("a generation", || {
                self.generations().last().is_some_and(|last| last["seq"].as_u64().unwrap() > before)
            });
        }
        self.generations().last().unwrap()["generation"].as_u64().unwrap()
    }

    pub fn generations(&self) -> Vec<Value> {
        let output = self.home.outlast(["generations", &self.name, "--json"]).output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    pub fn numbers(&self) -> Vec<u64> {
        self.generations().iter().map(|kept| kept["generation"].as_u64().unwrap()).collect()
    }

    pub fn rewind(&self, to: &str) -> Output {
        self.home.outlast(["rewind", &self.name, to]).output().unwrap()
    }

    pub fn events(&self, event: &str) -> usize {
        self.home.events(&self.name).iter().filter(|e| *e == event).count()
    }

    pub fn end(mut self) -> Output {
        drop(self.input.take());
        finish(self.child)
    }
}

/// Options that keep many.
pub const OFTEN: [&str; 2] = ["--generations", "50ms:1h:64MiB"];
