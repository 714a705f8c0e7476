//! `outlast run` ends as the program ends.

mod support;

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::Stdio;
use support::{finish, said, Home};

#[test]
fn exits_with_the_status_of_the_program() {
    let home = Home::new();
    for status in [0, 1, 7, 126, 127, 255] {
        let output = home.run_script("exits", &format!("exit {status}")).output().unwrap();
        assert_eq!(output.status.code(), Some(status), "{}", said(&output));
        assert_eq!(output.stderr, b"");
    }
}

#[test]
fn dies_of_the_signal_that_the_program_died_of() {
    let home = Home::new();
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGPIPE, libc::SIGUSR1, libc::SIGALRM] {
        let output = home.run_script("dies", &format!("kill -{signal} $$")).output().unwrap();
        assert_eq!(output.status.signal(), Some(signal), "{}", said(&output));
        assert!(!output.status.core_dumped());
    }
}

#[test]
fn a_program_that_kills_itself_is_dead() {
    for script in ["kill -9 $$", "kill -9 0", "exec python3 -c 'import os; os.killpg(0, 9)'"] {
        let home = Home::new();
        let mut run = home.run_script("kills", &format!("echo once; {script}"));
        let child = run.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let output = finish(child);
        assert_eq!(output.status.signal(), Some(libc::SIGKILL), "{script}: {}", said(&output));
        assert_eq!(output.stdout, b"once\n", "{script}");
        assert!(!home.events("kills").iter().any(|event| event == "recovered"), "{script}: {:#?}", home.log("kills"));
    }
}

#[test]
fn a_command_that_is_not_found_is_127() {
    let home = Home::new();
    for command in ["no-such-command-here", "/no/such/file", "./no-such-file"] {
        let output = home.outlast(["run", "--", command]).output().unwrap();
        assert_eq!(output.status.code(), Some(127), "{}", said(&output));
        assert_eq!(String::from_utf8_lossy(&output.stderr).lines().count(), 1, "{}", said(&output));
    }
    assert!(!home.state().join("no-such-command-here").exists(), "a folder was left behind");
}

#[test]
fn a_file_that_is_not_executable_is_126() {
    let home = Home::new();
    let file = home.file("plain");
    std::fs::write(&file, "not a program").unwrap();
    let missing = home.executable("orphan", b"#!/no/such/interpreter\n");
    for path in [&file, &missing, &home.path().to_path_buf()] {
        let output = home.outlast(["run".as_ref(), "--".as_ref(), path.as_os_str()]).output().unwrap();
        assert_eq!(output.status.code(), Some(126), "{}", said(&output));
        assert_eq!(String::from_utf8_lossy(&output.stderr).lines().count(), 1, "{}", said(&output));
    }
}

#[test]
fn a_text_without_interpreter_is_a_shell_script() {
    let home = Home::new();
    let file = home.executable("script", b"echo $1; exit 9\n");
    let output = home.outlast(["run".as_ref(), "--".as_ref(), file.as_os_str(), "word".as_ref()]).output().unwrap();
    assert_eq!((output.status.code(), &*output.stdout), (Some(9), &b"word\n"[..]), "{}", said(&output));
}

#[test]
fn bad_usage_is_one_line_and_2() {
    let home = Home::new();
    let bad: [&[&str]; 8] = [
        &["run"],
        &["bogus"],
        &["run", "--name", "a/b", "--", "true"],
        &["run", "--name", "", "--", "true"],
        &["run", "--every", "soon", "--", "true"],
        &["run", "--tracker", "magic", "--", "true"],
        &["log", "nobody"],
        &["stop", "../nobody"],
    ];
    for args in bad {
        let output = home.outlast(args).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", said(&output));
        assert_eq!(String::from_utf8_lossy(&output.stderr).lines().count(), 1, "{args:?}: {}", said(&output));
        assert_eq!(output.stdout, b"", "{args:?}");
    }
}
