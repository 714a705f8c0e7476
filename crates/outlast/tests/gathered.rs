//! Outputs in quick succession, which leave together.

mod support;

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use support::{finish, kill, until, Home};

const LINES: usize = 2000;
/// Prints without a pause, then computes without a call.
const PRINTS: &str = "import os
for n in range(2000): os.write(1, b'%d\\n' % n)
while True: pass
";
/// Prints for ever, and has the usual end when nobody reads.
const PRINTS_ON: &str = "import os, signal
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
while True: os.write(1, b'line\\n')
";

fn python(home: &Home, name: &str, options: &[&str], script: &str) -> Command {
    let own = [options, &["--", "/usr/bin/python3", "-c", script]].concat();
    let mut command = home.outlast([&["run", "--name", name], &own[..]].concat());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Has it print, then sees it killed once; returns its commits by then.
fn commits_of_lines(options: &[&str]) -> usize {
    let home = Home::new();
    let mut child = python(&home, "prints", options, PRINTS).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().take(LINES);
    let lines: Vec<String> = lines.map(Result::unwrap).collect();
    assert_eq!(lines, (0..LINES).map(|n| n.to_string()).collect::<Vec<_>>());
    let status = home.await_protected("prints");
    let commits = status["commits"].as_u64().unwrap() as usize;
    kill(&status["pid"], libc::SIGKILL);
    until("the program is back", || home.status("prints")["recoveries"] == 1);
    let stopped = home.outlast(["stop", "prints", "--timeout", "10s"]).output().unwrap();
    assert!(stopped.status.success(), "{}", support::said(&stopped));
    finish(child);
    commits
}

#[test]
fn quick_outputs_share_commits_and_all_leave_while_the_program_computes() {
    let (together, each) = (commits_of_lines(&[]), commits_of_lines(&["--commit", "each"]));
    assert!(together < LINES / 2, "{together} commits");
    assert!(each >= LINES, "{each} commits");
}

#[test]
fn who_prints_for_nobody_is_ended_by_sigpipe() {
    let home = Home::new();
    let mut child = python(&home, "prints", &[], PRINTS_ON).spawn().unwrap();
    let mut some = [0; 4096];
    child.stdout.take().unwrap().read_exact(&mut some).unwrap();
    let output = finish(child);
    assert_eq!(output.status.signal(), Some(libc::SIGPIPE), "{}", support::said(&output));
}
