//! Signals and job control work as if the program were there in outlast's place.

mod support;

use std::os::unix::process::ExitStatusExt;
use std::process::Child;
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
    let child = home.start_script("traps", script);
    home.await_protected("traps");
    // The traps are set before "ready" is committed and written.
    home.await_status("traps", |status| status["commits"].as_u64() > Some(1));
    signal(&child, libc::SIGUSR1);
    std::thread::sleep(std::time::Duration::from_millis(100));
    signal(&child, libc::SIGTERM);
    let output = finish(child);
    assert_eq!((output.status.code(), &*output.stdout), (Some(8), &b"ready\nusr1\nterm\n"[..]), "{}", said(&output));
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
