//! `run --durable`: what a program tells of is on the medium. That a loss of power loses nothing is shown by `make power`.

mod support;

use std::fs::File;
use std::path::Path;
use std::process::Stdio;
use support::{finish, kill, said, until, Home};

/// Bytes that this process has kept from being written to a medium, by cutting files off.
fn cancelled() -> u64 {
    let counts = std::fs::read_to_string("/proc/self/io").unwrap();
    let count = counts.lines().find_map(|line| line.strip_prefix("cancelled_write_bytes: "));
    count.unwrap().parse().unwrap()
}

/// How many bytes of a file are not on its medium yet. The file is empty afterwards.
fn unwritten(file: &Path) -> u64 {
    let before = cancelled();
    File::options().write(true).open(file).unwrap().set_len(0).unwrap();
    cancelled() - before
}

/// What is not on the medium of a file when a program that wrote to it says so.
fn left_behind(options: &[&str]) -> u64 {
    let (home, disk) = (Home::new(), tempfile::tempdir_in("/var/tmp").unwrap());
    let (file, out, store) = (disk.path().join("file"), home.file("out"), disk.path().join("stores"));
    let script = format!("echo written >{}; echo said; {}; exit 0", file.display(), home.door().wait());
    let mut run = home.outlast(["run", "--name", "it", "--store"]);
    run.arg(&store).args(options).args(["--", "bash", "-c", &script]).stderr(Stdio::piped());
    let child = run.stdout(File::create(&out).unwrap()).spawn().unwrap();
    until("a line", || std::fs::read(&out).unwrap() == b"said\n");
    let left = unwritten(&file);
    home.door().open();
    let output = finish(child);
    assert!(output.status.success(), "{}", said(&output));
    left
}

/// A program that counts on its standard output and in a file, killed in between.
fn killed_while_it_counts(options: &[&str], program: &[&str]) -> (String, String) {
    let (home, disk) = (Home::new(), tempfile::tempdir_in("/var/tmp").unwrap());
    let (file, out, store) = (disk.path().join("file"), home.file("out"), disk.path().join("stores"));
    let mut run = home.outlast(["run", "--name", "it", "--store"]);
    run.arg(&store).args(options).arg("--").args(program).arg(&file).stderr(Stdio::piped());
    let child = run.stdout(File::create(&out).unwrap()).spawn().unwrap();
    for (before, line) in [20, 300, 900].into_iter().enumerate() {
        until("a line", || std::fs::read_to_string(&out).unwrap().lines().count() > line);
        // Until then it may be the dead one's number.
        home.await_event("it", "recovered", before);
        kill(&home.await_protected("it")["pid"], 9);
    }
    let output = finish(child);
    assert!(output.status.success(), "{}", said(&output));
    home.await_event("it", "recovered", 3);
    (std::fs::read_to_string(&out).unwrap(), std::fs::read_to_string(&file).unwrap())
}

/// Appends, writes over what is there, and tells.
const COUNTING: &str = "\
import os, sys
out = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT | os.O_APPEND)
place = os.open(sys.argv[1], os.O_RDWR)
for n in range(6000):
    line = b'%05d\\n' % n
    os.write(out, line)
    if n % 200 == 0:
        os.pwrite(place, b'x', n * 6)
    os.write(1, line)
";

#[test]
fn a_death_loses_nothing_while_commits_lag() {
    let (told, written) = killed_while_it_counts(&["--durable", "50ms"], &["python3", "-c", COUNTING]);
    let line = |n: usize| format!("{n:05}\n");
    assert_eq!(told, (0..6000).map(line).collect::<String>());
    let marked = |n: usize| if n.is_multiple_of(200) { line(n).replacen('0', "x", 1) } else { line(n) };
    assert_eq!(written, (0..6000).map(marked).collect::<String>());
}

#[test]
fn what_is_asked_for_in_vain_is_refused() {
    let home = Home::new();
    for options in [&["--durable", "0s"][..], &["--durable=soon"], &["--durable", "1s", "--commit", "manual"]] {
        let output = home.outlast(["run"]).args(options).args(["--", "true"]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{options:?}");
    }
}

#[test]
fn files_are_on_the_medium_before_anything_is_told_of_them() {
    assert!(left_behind(&[]) > 0, "is the folder for temporary files on a disk?");
    assert_eq!(left_behind(&["--durable"]), 0);
    assert_eq!(left_behind(&["--durable", "visible"]), 0);
}
