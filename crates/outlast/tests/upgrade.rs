//! Another outlast takes over from the one that watches a program, and the program and who started it notice nothing.

mod support;

use serde_json::Value;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use support::obedient::{Obedient, OFTEN};
use support::{kill, said, until, Home};

/// Another outlast, at another place: of the build that OUTLAST_OTHER names, or else of this one. By another process, so that no test has it open
/// for writing.
fn another(home: &Home) -> PathBuf {
    let path = home.file("outlast");
    let build = std::env::var_os("OUTLAST_OTHER").unwrap_or(env!("CARGO_BIN_EXE_outlast").into());
    let copied = Command::new("/usr/bin/cp").arg(build).arg(&path).status().unwrap();
    assert!(copied.success());
    path
}

/// A program that says this when it is asked anything.
fn says(home: &Home, name: &str, what: &str) -> PathBuf {
    let path = home.file(name);
    let mut tee = Command::new("/usr/bin/tee").arg(&path).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    write!(tee.stdin.take().unwrap(), "#!/bin/sh\necho {what}\n").unwrap();
    assert!(tee.wait().unwrap().success());
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn upgrade(home: &Home, binary: &Path, name: &str) -> Output {
    home.outlast(["upgrade", name, "--binary"]).arg(binary).output().unwrap()
}

fn is_watched_by(status: &Value, binary: &Path) -> bool {
    let identity = |path: &Path| std::fs::metadata(path).map(|meta| (meta.dev(), meta.ino())).ok();
    identity(format!("/proc/{}/exe", status["supervisor"]).as_ref()) == identity(binary)
}

#[test]
fn another_outlast_takes_over_and_nobody_notices() {
    let home = Home::new();
    let mut program = Obedient::start(&home, "it", &[]);
    program.say("import os; x = 40");
    let before = (program.ask("os.getpid(), os.getppid()"), home.status("it")["supervisor"].clone());
    let new = another(&home);
    // Asked by the new one itself, about all that run.
    let output = Command::new(&new).arg("upgrade").env("OUTLAST_STATE_DIR", home.state()).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{}", said(&output));
    home.await_event("it", "supervisor-upgraded", 1);
    let status = home.await_protected("it");
    assert!(is_watched_by(&status, &new), "{status}");
    assert_eq!((program.ask("os.getpid(), os.getppid()"), status["supervisor"].clone()), before);
    for n in 1..4 {
        program.say("x += 1");
        kill(&home.await_protected("it")["pid"], libc::SIGKILL);
        home.await_event("it", "recovered", n);
        assert_eq!(program.ask("x"), format!("{}", 40 + n));
    }
    // Whatever becomes of the supervisor now, the new outlast comes after it.
    program.say("import sys; sys.stdout.flush(); os._exit(7)");
    assert_eq!(program.end().status.code(), Some(7), "who waits for it hears how the program ended");
}

#[test]
fn one_that_dies_right_after_an_upgrade_is_recovered() {
    let home = Home::new();
    let mut program = Obedient::start(&home, "it", &OFTEN);
    let new = another(&home);
    let mut wait = 1u64;
    for round in 0..6 {
        let binary = if round % 2 == 0 { new.as_path() } else { Path::new(env!("CARGO_BIN_EXE_outlast")) };
        let mut command = home.outlast(["upgrade", "it", "--binary"]);
        let child = command.arg(binary).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // At moments spread over all that happens meanwhile.
        wait = wait * 37 % 101;
        std::thread::sleep(std::time::Duration::from_micros(wait * 300));
        program.say("x += 1");
        let recoveries = home.events("it").iter().filter(|event| *event == "recovered").count();
        kill(&home.status("it")["pid"], libc::SIGKILL);
        home.await_event("it", "recovered", recoveries + 1);
        let output = support::finish(child);
        assert!(output.status.success(), "{}", said(&output));
        assert_eq!(program.ask("x"), (round + 1).to_string());
        assert!(is_watched_by(&home.await_protected("it"), binary));
    }
    assert_eq!(program.end().status.code(), Some(0));
}

#[test]
fn what_cannot_take_over_is_refused_and_the_one_before_goes_on() {
    let home = Home::new();
    let mut program = Obedient::start(&home, "it", &[]);
    let open = another(&home);
    std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o777)).unwrap();
    let cases = [
        (says(&home, "newer", "outlast layout 999999"), "speaks layout 999999"),
        (says(&home, "other", "hello"), "does not say which layout"),
        ("/usr/bin/true".into(), "does not say which layout"),
        (home.path().into(), "is no file"),
        (open, "others may write"),
    ];
    for (binary, why) in cases {
        let output = upgrade(&home, &binary, "it");
        assert!(output.status.code() == Some(1) && said(&output).contains(why), "{}", said(&output));
        let status = home.await_protected("it");
        assert!(is_watched_by(&status, env!("CARGO_BIN_EXE_outlast").as_ref()), "{status}");
    }
    let output = upgrade(&home, Path::new("/no/such/file"), "it");
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    kill(&home.await_protected("it")["pid"], libc::SIGKILL);
    home.await_event("it", "recovered", 1);
    assert_eq!(program.ask("x"), "0");
    assert_eq!(program.end().status.code(), Some(0));
    let output = upgrade(&home, env!("CARGO_BIN_EXE_outlast").as_ref(), "it");
    assert!(said(&output).contains("it"), "{}", said(&output));
}

#[test]
fn one_that_says_the_right_thing_and_cannot_supervise_costs_no_program_its_life() {
    let home = Home::new();
    let mut program = Obedient::start(&home, "it", &[]);
    let layout = home.outlast(["layout"]).output().unwrap();
    let liar = says(&home, "liar", &format!("{}; exit 1", String::from_utf8_lossy(&layout.stdout).trim()));
    let supervisor = home.await_protected("it")["supervisor"].clone();
    let _ = upgrade(&home, &liar, "it");
    // The anchor starts the one that was there before.
    until("another supervisor", || {
        let status = home.status("it");
        status["protected"] == true && status["supervisor"] != supervisor
    });
    kill(&home.await_protected("it")["pid"], libc::SIGKILL);
    home.await_event("it", "recovered", 1);
    assert_eq!(program.ask("x"), "0");
}
