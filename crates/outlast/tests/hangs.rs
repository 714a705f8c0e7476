//! Programs that hang go on from their last commit; programs that only take their time are left alone.

mod support;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::Duration;
use support::{said, until, Home};

/// A conversation with the program in answers.c, under `outlast run` and named `it`.
struct Talk {
    home: Home,
    child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
    asked: u32,
}

impl Talk {
    fn begin(options: &[&str]) -> Self {
        let home = Home::new();
        let program = compile(&home);
        fs::write(home.file("word"), [1; 4096]).unwrap();
        let mut command = home.outlast(["run", "--name", "it"]);
        command.args(options).arg("--").arg(program).arg(home.file("word"));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (to, from) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        Self { home, child, to, from, asked: 0 }
    }

    fn say(&mut self, line: &str) {
        self.asked += 1;
        writeln!(self.to.as_ref().unwrap(), "{line}").unwrap();
    }

    /// Reads the answer to what was said last.
    fn hear(&mut self, line: &str) {
        let mut answer = String::new();
        self.from.read_line(&mut answer).unwrap();
        assert_eq!(answer, format!("{} {line}\n", self.asked), "{:#?}", self.home.log("it"));
    }

    fn ask(&mut self, line: &str) {
        self.say(line);
        self.hear(line);
    }

    /// Asks for as long as it takes to know the program's usual sections.
    fn train(&mut self) {
        for _ in 0..80 {
            self.ask("usual");
            std::thread::sleep(Duration::from_millis(260));
        }
    }

    /// What hangs hangs no more, once it has been recovered.
    fn end_hang(&self) {
        fs::write(self.home.file("word"), [0; 4096]).unwrap();
    }

    fn hangs(&self) -> usize {
        self.home.events("it").iter().filter(|event| *event == "hung").count()
    }

    fn end(mut self) -> ExitStatus {
        drop(self.to.take());
        self.child.wait().unwrap()
    }
}

fn compile(home: &Home) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hangs/answers.c");
    let program = home.file("answers");
    let output = Command::new("gcc").args(["-O2", "-Wall", "-pthread", "-o"]).arg(&program).arg(source).output();
    assert!(output.as_ref().unwrap().status.success(), "{}", said(&output.unwrap()));
    program
}

#[test]
fn what_computes_beyond_the_limit_is_ended_and_goes_on_from_its_last_commit() {
    let mut talk = Talk::begin(&["--hang=300ms", "--retries", "1000"]);
    talk.ask("one");
    for line in ["hang", "thread"] {
        let hangs = talk.hangs();
        talk.say(line);
        if line == "thread" {
            talk.hear(line);
        }
        talk.home.await_event("it", "hung", hangs + 1);
        let log = talk.home.log("it");
        let stacks = log.iter().rfind(|e| e["event"] == "hung").unwrap()["stacks"].to_string();
        assert!(stacks.contains("hang+0x") || stacks.contains("main+0x"), "{stacks}");
        talk.end_hang();
        if line == "hang" {
            talk.hear(line);
        }
        talk.ask("more");
        fs::write(talk.home.file("word"), [1; 4096]).unwrap();
    }
    talk.end_hang();
    talk.ask("and more");
    assert_eq!(talk.end().code(), Some(3));
}

#[test]
fn what_stays_in_a_section_that_was_always_short_is_found_without_a_limit() {
    let mut talk = Talk::begin(&["--hang", "--retries", "1000"]);
    talk.train();
    talk.say("hang");
    talk.home.await_event("it", "hung", 1);
    talk.end_hang();
    talk.hear("hang");
    talk.ask("more");
    assert_eq!(talk.end().code(), Some(3));
}

#[test]
fn nothing_is_concluded_of_what_is_not_known_and_what_waits_does_not_hang() {
    let mut talk = Talk::begin(&["--hang"]);
    for _ in 0..3 {
        talk.ask("compute 1500");
        std::thread::sleep(Duration::from_millis(1500));
    }
    assert_eq!(talk.hangs(), 0);
    assert_eq!(talk.end().code(), Some(3));
}

#[test]
fn who_is_stopped_does_not_hang_however_long_and_goes_on() {
    let mut talk = Talk::begin(&["--hang=1s"]);
    talk.ask("one");
    for _ in 0..3 {
        // Between two calls: there the time-stamp would expire.
        talk.say("compute 700");
        std::thread::sleep(Duration::from_millis(200));
        let pid = talk.home.status("it")["pid"].clone();
        support::kill(&pid, libc::SIGSTOP);
        std::thread::sleep(Duration::from_millis(2500));
        support::kill(&pid, libc::SIGCONT);
        talk.hear("compute 700");
    }
    let events = talk.home.events("it");
    assert!(!events.iter().any(|event| ["hung", "starved", "recovered"].contains(&event.as_str())), "{events:?}");
    assert_eq!(talk.end().code(), Some(3));
}

#[test]
fn threads_that_wait_for_each_other_are_found_told_of_and_go_on_from_their_last_commit() {
    let mut talk = Talk::begin(&["--hang", "--retries", "1000"]);
    talk.ask("one");
    for line in ["mutexes", "locks", "twice"] {
        // On a busy machine it hangs again before it learns that it need not any more.
        let hangs = talk.hangs();
        talk.say(line);
        talk.home.await_event("it", "hung", hangs + 1);
        talk.end_hang();
        talk.hear(line);
        talk.ask("more");
        let log = talk.home.log("it");
        let told: Vec<&str> = log.iter().filter(|e| e["event"] == "hung").filter_map(|e| e["cause"].as_str()).collect();
        let last = told.last().unwrap();
        let [what, threads] = if line == "locks" { ["read-write lock", "; "] } else { ["mutex", "thread "] };
        assert!(last.contains("deadlock") && last.contains(what) && last.contains(threads), "{told:?}");
        let stacks = log.iter().rfind(|e| e["event"] == "hung").unwrap()["stacks"].as_array().unwrap();
        let function = match line {
            "mutexes" => "take_mutexes+",
            "locks" => "take_locks+",
            _ => "main+",
        };
        assert!(stacks.iter().all(|stack| stack.as_str().unwrap().contains(function)), "{stacks:#?}");
        assert_eq!(last.matches("waits for").count(), if line == "twice" { 1 } else { 2 }, "{told:?}");
        fs::write(talk.home.file("word"), [1; 4096]).unwrap();
    }
    talk.end_hang();
    assert_eq!(talk.end().code(), Some(3));
}

#[test]
fn a_hang_that_comes_again_is_tried_a_bounded_number_of_times_and_its_state_stays() {
    let mut talk = Talk::begin(&["--hang=200ms", "--retries", "2"]);
    talk.ask("one");
    talk.say("hang");
    let mut status = None;
    until("the end of what hangs again and again", || {
        status = talk.child.try_wait().unwrap();
        status.is_some()
    });
    // Two tries after the first hang.
    assert_eq!(talk.hangs(), 3);
    let log = talk.home.log("it");
    let gave_up = log.iter().find(|entry| entry["event"] == "gave-up").unwrap_or_else(|| panic!("{log:#?}"));
    assert!(gave_up["cause"].as_str().unwrap().contains("a hang"), "{gave_up}");
    talk.end_hang();
    let resumed = talk.home.outlast(["resume", "it"]).output().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&resumed.stdout),
        "",
        "what it had read is gone with the pipe: {}",
        said(&resumed)
    );
    assert_eq!(resumed.status.code(), Some(3), "{}", said(&resumed));
}
