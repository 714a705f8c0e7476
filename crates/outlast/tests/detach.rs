//! A protected program is left alone, and runs on as if outlast had never been there.

mod support;

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use support::{counter, finish, kill, said, until, Home};

const PYTHON: &str = "/usr/bin/python3";

/// Handles signals on a stack of its own, in the middle of a computation, and tells what it has.
const ANSWERS: &str = "import sys, signal, faulthandler
faulthandler.enable()
signal.signal(signal.SIGUSR1, lambda *_: print('usr1', flush=True))
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print('ready', flush=True)
for line in sys.stdin:
    signal.raise_signal(signal.SIGUSR1)
    print(line.strip(), sum(range(1000)), flush=True)
sys.exit(6)";

fn detach(home: &Home, name: &str) {
    let output = home.outlast(["detach", name]).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
}

/// Nothing of the program's protection is left but the engine's text and data.
fn assert_left_alone(pid: u32) {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    // What a recovered program has not written since still lies in the store's pages, privately.
    assert!(!maps.lines().any(|line| line.contains(" rw-s ") && line.contains("/store")), "{maps}");
    for entry in std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten() {
        let target = std::fs::read_link(entry.path()).unwrap_or_default();
        let target = target.to_string_lossy().into_owned();
        assert!(!["io_uring", "userfaultfd", "/store", "/session"].iter().any(|own| target.contains(own)), "{target}");
    }
}

struct Answering {
    child: Child,
    out: BufReader<std::process::ChildStdout>,
}

impl Answering {
    fn start(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let mut program = Self { child, out };
        assert_eq!(program.line(), "ready");
        program
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        line.trim_end().into()
    }

    fn answers(&mut self, word: &str) {
        self.child.stdin.as_mut().unwrap().write_all(format!("{word}\n").as_bytes()).unwrap();
        assert_eq!((self.line(), self.line()), ("usr1".into(), format!("{word} 499500")));
    }
}

#[test]
fn a_program_that_was_attached_to_is_left_alone_and_its_supervisor_ends() {
    let home = Home::new();
    let mut program = Answering::start(Command::new(PYTHON).args(["-u", "-c", ANSWERS]));
    let pid = program.child.id();
    let attached = home.outlast(["attach", &pid.to_string(), "--name", "it"]).output().unwrap();
    assert!(attached.status.success(), "{}", said(&attached));
    program.answers("one");
    let status = home.status("it");
    detach(&home, "it");
    for process in ["anchor", "supervisor"] {
        until("its end", || !Path::new(&format!("/proc/{}/fd", status[process])).exists());
    }
    assert_left_alone(pid);
    assert_eq!(home.events("it"), ["attached", "detached"]);
    program.answers("two");
    // A handler in Python runs only when the call ends that it came before.
    let call = || std::fs::read_to_string(format!("/proc/{pid}/syscall")).unwrap_or_default();
    until("it to read", || call().starts_with("0 0x0 "));
    kill(&pid.into(), libc::SIGTERM);
    kill(&pid.into(), libc::SIGUSR1);
    assert_eq!(program.line(), "usr1");
    // Its death is its death.
    kill(&pid.into(), libc::SIGKILL);
    assert_eq!(program.child.wait().unwrap().signal(), Some(libc::SIGKILL));
    assert_eq!(program.line(), "");
}

#[test]
fn a_program_that_outlast_has_started_is_left_alone_and_keeps_its_exit_status() {
    let home = Home::new();
    let mut run = home.outlast(["run", "--name", "it", "--", PYTHON, "-u", "-c", ANSWERS]);
    let mut program = Answering::start(&mut run);
    let status = home.await_protected("it");
    program.answers("one");
    kill(&status["pid"], libc::SIGKILL);
    program.answers("two");
    detach(&home, "it");
    let status = home.await_status("it", |status| status["state"] == "suspended");
    assert_left_alone(status["pid"].as_u64().unwrap() as u32);
    program.answers("three");
    drop(program.child.stdin.take());
    assert_eq!(program.child.wait().unwrap().code(), Some(6));
    let refused = home.outlast(["detach", "it"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(1), "{}", said(&refused));
}

#[test]
fn what_prints_without_pause_prints_the_same_when_it_is_left_alone_anywhere() {
    for n in 0..6 {
        let home = Home::new();
        let (script, expected) = counter(30_000);
        let child = home.start_script("it", &script);
        home.await_protected("it");
        std::thread::sleep(Duration::from_millis(7 * n));
        let _ = home.outlast(["detach", "it"]).output().unwrap();
        let output = finish(child);
        assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(output.stdout == expected.as_bytes(), "lost or repeated: {} bytes", output.stdout.len());
    }
}

#[test]
fn threads_with_bases_of_their_own_keep_them_when_they_are_left_alone() {
    let home = Home::new();
    let to = home.file("program");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cases/programs/segment.c");
    let built = Command::new("gcc").args(["-O2", "-pthread", "-o"]).arg(&to).arg(source).output().unwrap();
    assert!(built.status.success(), "{}", said(&built));
    let expected = finish(Command::new(&to).arg("6000").stdout(Stdio::piped()).spawn().unwrap());
    for n in 0..6 {
        let home = Home::new();
        let mut run = home.outlast(["run", "--name", "it", "--"]);
        let child = run.arg(&to).arg("6000").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        home.await_protected("it");
        std::thread::sleep(Duration::from_millis(11 * n));
        detach(&home, "it");
        let output = finish(child);
        assert!(output.status.success(), "{}", said(&output));
        assert!(output.stdout == expected.stdout, "{}", String::from_utf8_lossy(&output.stdout));
    }
}

/// What their waits take, in seconds: so long that nobody comes too late for them, however busy the machine.
const WAITS: &str = "10";

#[test]
fn threads_are_left_alone_in_computation_and_in_any_wait() {
    let home = Home::new();
    let to = home.file("program");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/attach/threads.c");
    let built = Command::new("gcc").args(["-O2", "-pthread", "-o"]).arg(&to).arg(source).output().unwrap();
    assert!(built.status.success(), "{}", said(&built));
    let start = || Command::new(&to).args(["3000", WAITS]).stdout(Stdio::piped()).spawn().unwrap();
    let alone = start();
    let runs: Vec<_> = (0..6)
        .map(|n| {
            let (home, mut program) = (Home::new(), start());
            let tracker = if n % 3 == 2 { "mprotect" } else { "async" };
            let id = program.id().to_string();
            let attached = home.outlast(["attach", &id, "--name", "it", "--tracker", tracker]).output().unwrap();
            assert!(attached.status.success(), "{}; the program: {:?}", said(&attached), program.try_wait());
            std::thread::sleep(Duration::from_millis(9 * n));
            detach(&home, "it");
            assert_left_alone(program.id());
            (home, program)
        })
        .collect();
    let expected = finish(alone);
    for (_home, program) in runs {
        let output = finish(program);
        assert_eq!(String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&expected.stdout));
        assert_eq!(output.status.code(), expected.status.code());
    }
}
