//! `run --durable`: what a program tells of is on the medium. That a loss of power loses nothing is shown by `make power`.

mod support;

use std::fs::File;
use std::path::Path;
use std::process::Stdio;
use support::{finish, said, until, Home};

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

#[test]
fn files_are_on_the_medium_before_anything_is_told_of_them() {
    assert!(left_behind(&[]) > 0, "is the folder for temporary files on a disk?");
    assert_eq!(left_behind(&["--durable"]), 0);
}
