//! Files without a name that a program gives to others: what those write there stays, whatever becomes of the program.

mod support;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use support::{finish, kill, said, until, Home};

const KILLS: usize = 12;

fn survive(way: &str, options: &[&str]) {
    let home = Home::new();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/own_files/given.c");
    let program = home.file("given");
    let built = Command::new("gcc").args(["-O1", "-Wall", "-o"]).args([&program, &source]).output().unwrap();
    assert!(built.status.success(), "{}", said(&built));
    let mut run = home.outlast(["run", "--name", "given", "--retries", "100"]);
    run.args(options).arg("--").arg(&program).arg(way);
    let mut child = run
        .current_dir(home.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut input, mut output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    for i in 1..=KILLS {
        if way == "named" {
            until("the file has a name", || home.file("count").exists());
            std::fs::OpenOptions::new()
                .write(true)
                .open(home.file("count"))
                .unwrap()
                .write_all(&(100 + i as u64).to_le_bytes())
                .unwrap();
        }
        writeln!(input, "line").unwrap();
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        assert_eq!(line, format!("{} line\n", 100 + i), "{way} {options:?} {:#?}", home.log("given"));
        kill(&home.status("given")["pid"], libc::SIGKILL);
    }
    drop(input);
    let output = finish(child);
    assert!(output.status.success(), "{way} {options:?} {} {:#?}", said(&output), home.log("given"));
    let recoveries = home.events("given").iter().filter(|event| *event == "recovered").count();
    assert_eq!(recoveries, KILLS, "{way} {options:?} {:#?}", home.log("given"));
}

#[test]
fn what_a_child_writes_to_a_copy_of_the_mapping_stays() {
    survive("fork", &[]);
    survive("fork", &["--tracker", "mprotect"]);
}

#[test]
fn what_another_process_writes_stays_whose_descriptor_came_with_a_message() {
    survive("send", &[]);
    survive("send", &["--tracker", "mprotect"]);
    survive("first", &[]);
}

/// The same with a child that is protected as well.
#[test]
fn what_a_child_of_a_tree_writes_stays() {
    survive("fork", &["--tree"]);
    survive("send", &["--tree"]);
}

/// What others write to a file that has got a name.
#[test]
fn what_others_write_to_a_file_that_was_given_a_name_stays() {
    survive("named", &[]);
}
