//! A program that does what it is told, under a host with the probe.

use crate::probe::FOLDER;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

const OBEYS: &str = "import sys, os, ctypes, socket, signal, threading, time
for line in sys.stdin: exec(line)
";

pub struct Run {
    host: Child,
    state: tempfile::TempDir,
    answers: BufReader<ChildStdout>,
}

impl Run {
    pub fn start() -> Self {
        let state = tempfile::Builder::new().prefix("outlast-looks.").tempdir_in("/dev/shm").expect("a folder");
        let mut host = Command::new(std::env::current_exe().expect("this program"));
        host.args(["run", "/usr/bin/python3", "-u", "-c", OBEYS]).env(FOLDER, state.path());
        host.env("OUTLAST_STATE_DIR", state.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut host = host.spawn().expect("a host");
        let answers = BufReader::new(host.stdout.take().expect("a pipe"));
        let mut run = Self { host, state, answers };
        assert_eq!(run.ask("6 * 7"), "42");
        run
    }

    pub fn say(&self, line: &str) {
        writeln!(self.host.stdin.as_ref().expect("a pipe"), "{line}").expect("it reads");
    }

    /// What the program says a value is.
    pub fn ask(&mut self, what: &str) -> String {
        self.say(&format!("print({what})"));
        self.hear()
    }

    pub fn hear(&mut self) -> String {
        let mut answer = String::new();
        self.answers.read_line(&mut answer).expect("it answers");
        answer.trim_end().into()
    }

    /// What a pin answers.
    pub fn probe(&self, question: &Value) -> Value {
        let place = |name| self.state.path().join(name);
        std::fs::write(place("question"), question.to_string()).expect("room");
        std::fs::rename(place("question"), place("ask")).expect("room");
        self.until(&format!("an answer to {question}"), || place("answer").exists());
        let answer = std::fs::read(place("answer")).expect("an answer");
        std::fs::remove_file(place("answer")).expect("it was there");
        serde_json::from_slice(&answer).expect("an answer")
    }

    /// What a pin saw last.
    pub fn seen(&self, pin: &str) -> Value {
        let text = std::fs::read(self.state.path().join(pin)).unwrap_or_default();
        serde_json::from_slice::<Value>(&text).map_or(Value::Null, |event| event["told"].clone())
    }

    /// All that was told of an event.
    pub fn told(&self, event: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(self.state.path().join("events")).unwrap_or_default();
        let events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        events.filter(|told| told["event"] == event).map(|told| told["told"].clone()).collect()
    }

    pub fn host(&self) -> i32 {
        self.host.id() as i32
    }

    pub fn log(&self) -> Vec<Value> {
        let log = std::fs::read_to_string(self.state.path().join("it/log.jsonl")).unwrap_or_default();
        log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    fn count(&self, event: &str) -> usize {
        self.log().iter().filter(|entry| entry["event"] == event).count()
    }

    pub fn pid(&self) -> i32 {
        let log = self.log();
        let pid = log.iter().rev().find(|entry| ["injected", "recovered"].iter().any(|event| entry["event"] == *event));
        pid.and_then(|entry| entry["pid"].as_i64()).filter(|pid| *pid > 1).expect("a process") as i32
    }

    /// Kills the program's process, and waits until it goes on.
    pub fn kill(&self) {
        let recovered = self.count("recovered");
        send(self.pid(), libc::SIGKILL);
        self.until("a recovery", || self.count("recovered") > recovered);
    }

    pub fn until(&self, what: &str, done: impl Fn() -> bool) {
        let asked = Instant::now();
        while !done() {
            let seen = || ["file", "mem", "net", "ipc"].map(|pin| self.seen(pin).to_string());
            assert!(asked.elapsed() < Duration::from_secs(60), "{what} does not come: {:#?} {:#?}", self.log(), seen());
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// The program ends by itself, nothing of the probe having failed.
    pub fn end(mut self) {
        drop(self.host.stdin.take());
        let status = self.host.wait().expect("an end");
        assert_eq!(status.code(), Some(0), "{:#?}", self.log());
        assert_eq!(self.count("module-failed"), 0, "{:#?}", self.log());
    }
}

/// A signal for a process of this test's own.
pub fn send(pid: i32, signal: i32) {
    // SAFETY: plain system call.
    unsafe { libc::kill(pid, signal) };
}
