//! `run --commit manual`: a program that goes back to the commit that was asked for.

mod support;

use std::io::Write;
use std::process::Stdio;
use support::{finish, kill, said, until, Home};

/// Counts for ever into its standard output.
const COUNTS: &str = "i=0; while :; do i=$((i+1)); echo $i; done";

/// What the program has taken since the commit is there to be taken again.
#[test]
fn reads_again_what_it_has_read() {
    let home = Home::new();
    let script = "while read -r line; do echo \"got $line\"; done; echo the end";
    let mut run = home.outlast(["run", "--name", "reader", "--commit", "manual", "--", "sh", "-c", script]);
    let out = home.file("out");
    let file = std::fs::File::create(&out).unwrap();
    let mut child = run.stdin(Stdio::piped()).stdout(file).stderr(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let seen = || std::fs::read_to_string(&out).unwrap();
    let mut tell = |lines: &str| input.write_all(lines.as_bytes()).unwrap();
    home.await_protected("reader");
    tell("one\ntwo\n");
    until("the first lines", || seen().ends_with("got two\n"));
    let output = home.outlast(["commit", "reader"]).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    tell("three\nfour\nfi");
    until("more lines", || seen().ends_with("got four\n"));
    kill(&home.status("reader")["pid"], libc::SIGKILL);
    home.await_event("reader", "recovered", 1);
    tell("ve\nsix\n");
    drop(input);
    let output = finish(child);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(seen(), "got one\ngot two\ngot three\ngot four\ngot five\ngot six\nthe end\n");
}

#[test]
fn goes_back_to_the_commit_that_was_asked_for() {
    let home = Home::new();
    let out = home.file("out");
    let numbers = || {
        let text = std::fs::read_to_string(&out).unwrap();
        // The last line may be one that is being written.
        let complete = text.rsplit_once('\n').map_or("", |(lines, _)| lines);
        complete.lines().map(|line| line.parse::<u64>().unwrap()).collect::<Vec<_>>()
    };
    let mut run = home.outlast(["run", "--name", "slow", "--commit", "manual", "--", "sh", "-c", COUNTS]);
    // Appended to: a file whose end is undone would hide what was written again.
    let file = std::fs::File::options().append(true).create(true).open(&out).unwrap();
    let child = run.stdout(file).stderr(Stdio::piped()).spawn().unwrap();
    let begun = home.await_protected("slow");
    until("some lines", || numbers().len() > 100);
    let before = numbers().len() as u64;
    let output = home.outlast(["commit", "slow"]).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let committed = numbers().len() as u64;
    until("more lines", || numbers().len() as u64 > committed + 100);
    let status = home.status("slow");
    let commits = status["commits"].as_u64().unwrap() - begun["commits"].as_u64().unwrap();
    assert!(commits < 10, "{commits} commits for {} lines", numbers().len());
    kill(&status["pid"], libc::SIGKILL);
    home.await_event("slow", "recovered", 1);
    let written = numbers().len();
    until("lines after the recovery", || numbers().len() > written + 100);
    let numbers = numbers();
    let back: Vec<_> = numbers.windows(2).filter(|pair| pair[1] != pair[0] + 1).collect();
    assert_eq!(back.len(), 1, "{back:?}");
    assert!(back[0][1] > before && back[0][1] <= committed + 1, "{back:?}, committed between {before} and {committed}");
    assert!(home.outlast(["stop", "slow"]).status().unwrap().success());
    finish(child);
}
