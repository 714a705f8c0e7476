//! Signals and job control work as if the program were there in outlast's place.

mod support;

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Stdio};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;
use support::{finish, kill, said, until, Home};

fn signal(child: &Child, signal: i32) {
    kill(&child.id().into(), signal);
}

/// State letter of a process.
fn state_of(pid: &serde_json::Value) -> char {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().and_then(|rest| rest.trim().chars().next()).unwrap_or('-')
}

#[test]
fn passes_on_signals_sent_to_it() {
    let home = Home::new();
    let script =
        "trap 'echo usr1' USR1; trap 'echo term; exit 8' TERM; echo ready; while :; do read x < /dev/null; done";
    let out = home.file("out");
    let mut run = home.run_script("traps", script);
    let child = run.stdout(std::fs::File::create(&out).unwrap()).stderr(Stdio::piped()).spawn().unwrap();
    let seen = || std::fs::read_to_string(&out).unwrap();
    until("the traps", || seen() == "ready\n");
    signal(&child, libc::SIGUSR1);
    until("the first trap", || seen() == "ready\nusr1\n");
    signal(&child, libc::SIGTERM);
    let output = finish(child);
    assert_eq!((output.status.code(), &*seen()), (Some(8), "ready\nusr1\nterm\n"), "{}", said(&output));
}

#[test]
fn a_signal_that_ends_the_program_ends_outlast_by_the_same() {
    let home = Home::new();
    for number in [libc::SIGTERM, libc::SIGHUP, libc::SIGUSR2] {
        let child = home.start_script("ended", "while :; do read x < /dev/null; done");
        home.await_protected("ended");
        signal(&child, number);
        let output = finish(child);
        assert_eq!(output.status.signal(), Some(number), "{}", said(&output));
    }
}

#[test]
fn stops_and_continues_with_the_program() {
    let home = Home::new();
    let child = home.start_script("stops", "while :; do read x < /dev/null; done");
    let status = home.await_protected("stops");
    let (program, supervisor) = (&status["pid"], &status["supervisor"]);
    kill(program, libc::SIGSTOP);
    until("outlast to stop", || state_of(supervisor) == 'T');
    kill(supervisor, libc::SIGCONT);
    until("both to go on", || state_of(program) != 'T' && state_of(supervisor) != 'T');

    // Whoever continues the program alone continues outlast, too.
    kill(program, libc::SIGSTOP);
    until("outlast to stop again", || state_of(supervisor) == 'T');
    kill(program, libc::SIGCONT);
    until("outlast to go on", || state_of(supervisor) != 'T');
    kill(program, libc::SIGKILL);
    home.await_event("stops", "recovered", 1);
    signal(&child, libc::SIGTERM);
    assert_eq!(finish(child).status.signal(), Some(libc::SIGTERM));
}

#[test]
fn is_recovered_when_killed_while_stopped() {
    let home = Home::new();
    let child = home.start_script("frozen", "while :; do read x < /dev/null; done");
    let status = home.await_protected("frozen");
    kill(&status["pid"], libc::SIGSTOP);
    until("outlast to stop", || state_of(&status["supervisor"]) == 'T');
    kill(&status["pid"], libc::SIGKILL);
    home.await_event("frozen", "recovered", 1);
    signal(&child, libc::SIGTERM);
    assert_eq!(finish(child).status.signal(), Some(libc::SIGTERM));
}

/// Goes through the engine all the time, and tells how often a handler was called.
const COUNTS_SIGNALS: &str = "
import os, signal
n, told = 0, -1
def taken(signal, frame):
    global n
    n += 1
for s in (signal.SIGUSR1, signal.SIGUSR2):
    signal.signal(s, taken)
r, w = os.pipe()
while True:
    os.write(w, b'x')
    os.read(r, 1)
    if n != told:
        told = n
        print(n, flush=True)
";

/// Killed just when it has taken a signal, a program gets that again, and once only.
#[test]
fn a_signal_that_a_dying_program_has_in_hand_comes_again() {
    let home = Home::new();
    let out = home.file("out");
    let mut run = home.outlast(["run", "--name", "counts", "--", "python3", "-c", COUNTS_SIGNALS]);
    let child = run.stdout(std::fs::File::create(&out).unwrap()).spawn().unwrap();
    let told = || std::fs::read_to_string(&out).unwrap().lines().last().and_then(|line| line.parse().ok());
    until("its beginning", || told() == Some(0));
    let session = std::fs::File::options().read(true).write(true).open(home.state().join("counts/session")).unwrap();
    let session = outlast_supervisor::session::Session::map(session.into()).unwrap();
    let control = session.control();
    let mut seed = 1u32;
    for round in 1..=120 {
        let signal = if round % 2 == 0 { libc::SIGUSR2 } else { libc::SIGUSR1 };
        let pid = serde_json::Value::from(control.program_pid.load(Relaxed));
        let count = || control.taken[signal as usize].load(Relaxed);
        let (before, restored) = (count(), control.restored.load(Relaxed));
        kill(&pid, signal);
        let sent = Instant::now();
        while count() == before {
            assert!(sent.elapsed().as_secs() < 30, "signal {round} was not taken");
        }
        seed = seed.wrapping_mul(1_103_515_245).wrapping_add(12345);
        let moment = Instant::now();
        while moment.elapsed().as_nanos() < u128::from(seed >> 16) % 15_000 {}
        kill(&pid, libc::SIGKILL);
        until("the recovery", || control.restored.load(Relaxed) != restored);
        until(&format!("signal {round}"), || told() >= Some(round));
        assert_eq!(told(), Some(round));
    }
    assert!(home.outlast(["stop", "counts"]).status().unwrap().success());
    finish(child);
}
