//! Programs that take part: `outlast.h` and the crate.

mod support;

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use support::{finish, kill, said, until, Home};

/// Builds a C program against the header.
fn compile(home: &Home, source: &str) -> PathBuf {
    let (here, to) = (Path::new(env!("CARGO_MANIFEST_DIR")), home.file("program"));
    let mut gcc = Command::new("gcc");
    gcc.args(["-O2", "-Wall", "-Wextra", "-Werror", "-I"]).arg(here.join("../api")).arg("-o").arg(&to);
    let output = gcc.arg(here.join(source)).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    to
}

/// Runs the test program; its output goes to a file.
struct Run {
    home: Home,
    child: Child,
}

impl Run {
    fn start(what: &str, options: &[&str]) -> Run {
        let home = Home::new();
        let program = compile(&home, "tests/taking_part/program.c");
        let door = home.file("door");
        let mut run = home.outlast(["run", "--name", "part"].iter().chain(options).chain(&["--"]));
        run.arg(program).arg(what).arg(door).stdin(Stdio::piped()).stderr(Stdio::piped());
        let out = std::fs::File::options().append(true).create(true).open(home.file("out")).unwrap();
        let child = run.stdout(out).spawn().unwrap();
        Run { home, child }
    }

    fn seen(&self) -> String {
        std::fs::read_to_string(self.home.file("out")).unwrap()
    }

    fn await_output(&self, wanted: &str) {
        until(wanted, || self.seen() == wanted);
    }

    fn kill(&self, times: usize) {
        kill(&self.home.status("part")["pid"], libc::SIGKILL);
        self.home.await_event("part", "recovered", times);
    }

    /// Exit status and output.
    fn end(mut self) -> (Option<i32>, String) {
        drop(self.child.stdin.take());
        self.home.door().open();
        let output = finish(self.child);
        (output.status.code(), std::fs::read_to_string(self.home.file("out")).unwrap())
    }
}

#[test]
fn a_program_killed_in_its_function_before_a_commit_goes_on_in_it() {
    let run = Run::start("slow", &[]);
    run.await_output("before 1\n");
    run.kill(1);
    run.kill(2);
    assert_eq!(run.end(), (Some(5), "before 1\ncommitted\n".into()));
}

#[test]
fn one_killed_in_its_function_after_a_recovery_goes_on_in_it_and_calls_it_again() {
    let run = Run::start("recovered", &[]);
    run.await_output("begin\n");
    run.home.await_protected("part");
    run.kill(1);
    run.await_output("begin\nafter 1 (2)\n");
    run.kill(2);
    run.kill(3);
    run.home.door().open();
    run.await_output("begin\nafter 1 (2)\nafter 2 (2)\n");
    assert_eq!(run.end().0, Some(2));
}

#[test]
fn it_is_called_before_a_wait_goes_on() {
    let run = Run::start("recovered", &[]);
    run.await_output("begin\n");
    run.home.door().open();
    run.kill(1);
    run.await_output("begin\nafter 1 (2)\n");
    assert_eq!(run.end().0, Some(1));
}

#[test]
fn a_commit_that_a_person_asks_for_has_the_function_before_it() {
    for options in [&["--commit", "manual"][..], &[]] {
        let run = Run::start("asked", options);
        run.await_output("begin\n");
        for n in 1..=3 {
            let before = run.home.status("part")["commits"].as_u64();
            let output = run.home.outlast(["commit", "part"]).output().unwrap();
            assert!(output.status.success(), "{}", said(&output));
            assert!(run.seen().contains(&format!("before {n}\n")), "{}", run.seen());
            assert!(run.home.status("part")["commits"].as_u64() > before);
        }
        run.kill(1);
        assert!(run.end().0 >= Some(3));
    }
}

/// Left by a jump the function counts as running: commits are made without it until it is registered again.
#[test]
fn a_function_that_does_not_return_holds_no_commit_back() {
    let run = Run::start("jump", &[]);
    assert_eq!(run.end(), (Some(5), "before 1\njumped\ncommitted\nbefore 2\ncommitted\n".into()));
}

#[test]
fn a_child_made_in_the_function_is_a_copy_that_is_not_protected() {
    let run = Run::start("fork", &[]);
    assert_eq!(run.end(), (Some(5), "before 1\ncommitted\n".into()));
}

#[test]
fn a_crash_in_the_function_is_the_programs_own() {
    let run = Run::start("crash", &[]);
    let output = finish(run.child);
    assert_eq!(output.status.signal(), Some(libc::SIGSEGV), "{}", said(&output));
}

/// Runs an example by itself, and protected.
fn example_is_right(home: &Home, program: &Path) {
    let alone = Command::new(program).output().unwrap();
    let text = String::from_utf8(alone.stdout).unwrap();
    let (first, rest) = text.split_once('\n').unwrap();
    assert_eq!((alone.status.code(), first), (Some(0), "not protected, and just as right"));
    let output = home.outlast(["run", "--"]).arg(program).output().unwrap();
    assert_eq!((output.status.code(), &*output.stdout), (Some(0), rest.as_bytes()), "{}", said(&output));
    let told = String::from_utf8(output.stderr).unwrap();
    let numbers: Vec<u64> = told.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok()).collect();
    let [commits, called, 0, 0] = numbers[..] else { panic!("{told}") };
    assert!(commits > called && called >= 20, "{told}");
}

#[test]
fn the_example_in_c_is_right() {
    let home = Home::new();
    example_is_right(&home, &compile(&home, "../api/examples/taking_part.c"));
}

#[test]
fn the_example_in_rust_is_right() {
    let home = Home::new();
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .args(["build", "--quiet", "--offline", "--manifest-path"])
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../api/Cargo.toml"));
    let output = cargo.args(["--example", "taking_part", "--target-dir"]).arg(home.file("target")).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    example_is_right(&home, &home.file("target/debug/examples/taking_part"));
}
