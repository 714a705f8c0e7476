//! An execve that nobody takes hold of: the program that it makes runs without protection, and whatever becomes of it, it runs once.

mod support;

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use support::{finish, kill, said, until, Home};

/// Waits at a door and becomes another program: itself, as a child of fork's, or as one of posix_spawn's. That one says so in a file, and
/// ends as it is told to.
const BECOMES: &str = "import os, sys, time
folder, how, end = sys.argv[1:]
script = f'echo ran >> {folder}/ran; echo $$ > {folder}/pid; {end}'
command = ['/bin/sh', '-c', script]
while not os.path.exists(f'{folder}/door'):
    time.sleep(0.002)
if how == 'exec':
    os.execv(command[0], command)
if how == 'spawn':
    child = os.posix_spawn(command[0], command, os.environ)
else:
    child = os.fork()
    if child == 0:
        os.execv(command[0], command)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))";

/// It ends before its supervisor, which is stopped all the while, has looked at it again.
fn runs_once(how: &str, end: &str) {
    let home = Home::new();
    let folder = home.path().to_str().unwrap();
    let mut run = home.outlast(["run", "--tree", "--name", "it", "--", "/usr/bin/python3", "-c", BECOMES]);
    let child = run.args([folder, how, end]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let supervisor = home.await_protected("it")["supervisor"].clone();
    kill(&supervisor, libc::SIGSTOP);
    std::fs::write(home.file("door"), "").unwrap();
    let read = |name: &str| std::fs::read_to_string(home.file(name)).unwrap_or_default();
    until("what it becomes", || read("pid").ends_with('\n'));
    let stat = || std::fs::read_to_string(format!("/proc/{}/stat", read("pid").trim())).unwrap_or_default();
    until("its end", || !stat().contains(") ") || stat().contains(") Z"));
    kill(&supervisor, libc::SIGCONT);
    let output = finish(child);

    let native = Home::new();
    std::fs::write(native.file("door"), "").unwrap();
    let folder = native.path().to_str().unwrap();
    let wanted = Command::new("/usr/bin/python3").args(["-c", BECOMES, folder, how, end]).output().unwrap();
    assert_eq!(read("ran"), "ran\n", "{how}, {end}: {:#?}", home.log("it"));
    assert_eq!(output.stdout, wanted.stdout, "{how}, {end}: {}: {:#?}", said(&output), home.log("it"));
    // What a signal ends is told of by the status that a shell has for it.
    let status = wanted.status.code().or(wanted.status.signal().map(|signal| 128 + signal));
    let ended = output.status.code().or(output.status.signal().map(|signal| 128 + signal));
    assert_eq!(ended, status, "{how}, {end}: {}", said(&output));
}

#[test]
fn it_runs_once_if_it_is_killed() {
    ["exec", "fork", "spawn"].iter().for_each(|how| runs_once(how, "kill -9 $$"));
}

#[test]
fn it_runs_once_if_it_exits() {
    ["exec", "fork", "spawn"].iter().for_each(|how| runs_once(how, "exit 6"));
}
