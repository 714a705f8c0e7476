//! Programs in a root that has no /proc: jails of daemons, and what `chroot` executes.

mod support;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use support::{finish, kill, said, Home};

const NOBODY: &str = "65534";
const KILLS: usize = 12;

/// A folder with nothing in it but the program.
fn jail(home: &Home) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/chroot/jailed.c");
    std::fs::create_dir(home.file("jail")).unwrap();
    let program = home.file("jail/jailed");
    let built = Command::new("gcc").args(["-O1", "-Wall", "-static", "-o"]).args([&program, &source]).output().unwrap();
    assert!(built.status.success(), "{}", said(&built));
}

/// Has the program repeat lines, kills it after each, and returns what it is said not to preserve.
fn survive(home: &Home, options: &[&str], command: &[&str]) -> Vec<String> {
    let mut run = home.outlast(["run", "--name", "jailed", "--retries", "100"]);
    run.args(options).arg("--").args(command).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = run.spawn().unwrap();
    let (mut input, mut output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    let mut missing = Vec::new();
    for i in 1..=KILLS {
        writeln!(input, "line").unwrap();
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        assert_eq!(line, format!("{i} line\n"), "{:#?}", home.log("jailed"));
        let status = home.status("jailed");
        let words = status["degradations"].as_array().unwrap().iter().map(|word| word.as_str().unwrap().to_string());
        // Who gave up root has another number afterwards.
        missing = words.filter(|word| word != "pid-changed").collect();
        if missing.is_empty() {
            kill(&status["pid"], libc::SIGKILL);
        }
    }
    drop(input);
    let output = finish(child);
    assert!(output.status.success(), "{} {:#?}", said(&output), home.log("jailed"));
    let recoveries = home.events("jailed").iter().filter(|event| *event == "recovered").count();
    assert_eq!(recoveries, if missing.is_empty() { KILLS } else { 0 }, "{:#?}", home.log("jailed"));
    missing
}

#[test]
fn who_gives_itself_a_root_without_proc_outlasts_kills() {
    for (user, options, children) in [("0", &[][..], "0"), (NOBODY, &[], "0"), (NOBODY, &["--tree"], "1")] {
        let home = Home::new();
        jail(&home);
        let (program, root) = (home.file("jail/jailed"), home.file("jail"));
        let command = [program.to_str().unwrap(), root.to_str().unwrap(), user, children];
        assert_eq!(survive(&home, options, &command), [""; 0], "{user} {options:?}");
    }
}

#[test]
fn what_is_executed_in_a_root_without_proc_outlasts_kills() {
    for (options, before, children) in
        [(&[][..], &[][..], "0"), (&[], &["--userspec", "65534:65534"], "0"), (&["--tree"], &[], "1")]
    {
        let home = Home::new();
        jail(&home);
        let root = home.file("jail");
        let command = [&["chroot"], before, &[root.to_str().unwrap(), "/jailed", "-", "0", children]].concat();
        assert_eq!(survive(&home, options, &command), [""; 0], "{options:?} {before:?}");
    }
}

/// Without the right to mount there is no other /proc; then the program is told of, and runs on.
#[test]
fn who_may_not_mount_runs_on_in_its_root() {
    let home = Home::new();
    jail(&home);
    let (program, root) = (home.file("jail/jailed"), home.file("jail"));
    let rights = ["setpriv", "--bounding-set", "-sys_admin", "--inh-caps", "-sys_admin"];
    let command = [&rights[..], &[program.to_str().unwrap(), root.to_str().unwrap(), "0", "0"]].concat();
    assert_eq!(survive(&home, &[], &command), ["proc-hidden"]);
}
