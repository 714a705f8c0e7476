//! What becomes of a program that was attached to: its deaths, its end, what it does itself.

use super::program::{attach, Program};
use super::support::{kill, until, Home};
use std::path::Path;
use std::process::Command;

#[test]
fn a_crash_after_attaching_is_rolled_back_and_nobody_sees_it() {
    let home = Home::new();
    let mut program = Program::python(
        "import sys
seen = 'before'
for line in sys.stdin:
    print(seen, line.strip())
    seen = line.strip()",
    );
    program.tell("one");
    assert_eq!(program.line(), "before one");
    attach(&home, program.pid, &[]);
    kill(&program.pid.into(), libc::SIGSEGV);
    home.await_event("it", "rollback", 1);
    program.tell("two");
    assert_eq!(program.line(), "one two");
    // It is still the child that it was.
    assert!(program.child.try_wait().unwrap().is_none());
    assert_eq!(program.rest(), "");
    assert_eq!(program.child.wait().unwrap().code(), Some(0));
}

#[test]
fn its_anchor_is_none_of_its_parents_children_and_its_end_is_its_own() {
    let home = Home::new();
    let mut program = Program::start(&mut Command::new("cat"));
    attach(&home, program.pid, &[]);
    let anchor = home.status("it")["anchor"].as_i64().unwrap();
    let stat = std::fs::read_to_string(format!("/proc/{anchor}/stat")).unwrap();
    let parent: u32 = stat.rsplit(')').next().unwrap().split_ascii_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(parent != std::process::id() && parent != program.pid as u32, "child of {parent}");
    assert_eq!(program.rest(), "");
    assert_eq!(program.child.wait().unwrap().code(), Some(0));
    until("the end of the anchor", || !Path::new(&format!("/proc/{anchor}/fd")).exists());
    until("its end", || home.status("it")["ended"] == "exit 0");
}

#[test]
fn an_attached_program_outlasts_the_deaths_of_anchor_and_supervisor_too() {
    let home = Home::new();
    let mut program = Program::start(&mut Command::new("cat"));
    attach(&home, program.pid, &[]);
    let first = home.status("it");
    kill(&first["anchor"], libc::SIGKILL);
    let second = home.await_status("it", |s| s["anchor"].is_i64() && s["anchor"] != first["anchor"]);
    kill(&second["supervisor"], libc::SIGKILL);
    home.await_status("it", |s| {
        s["supervisor"].is_i64() && s["supervisor"] != second["supervisor"] && s["protected"] == true
    });
    program.kill_first();
    home.await_event("it", "recovered", 1);
    program.tell("still here");
    assert_eq!(program.rest(), "still here\n");
}

#[test]
fn a_program_that_executes_another_one_stays_protected() {
    let home = Home::new();
    let mut program = Program::script("read line; exec cat");
    program.await_sleep();
    attach(&home, program.pid, &[]);
    program.tell("");
    home.await_event("it", "exec", 1);
    program.tell("one");
    assert_eq!(program.line(), "one");
    program.kill_first();
    program.tell("two");
    assert_eq!(program.rest(), "two\n");
}

#[test]
fn a_program_that_forbids_itself_a_call_afterwards_is_killed_by_nothing_that_the_engine_does() {
    let home = Home::new();
    // Everything is allowed but wait4, for which the process would be killed.
    let mut program = Program::python(
        "import sys, ctypes, struct
sys.stdin.readline()
code = ctypes.create_string_buffer(b''.join(struct.pack('HBBI', *step) for step in
    [(0x20, 0, 0, 0), (0x15, 0, 1, 61), (6, 0, 0, 0x80000000), (6, 0, 0, 0x7fff0000)]))
filter = ctypes.create_string_buffer(struct.pack('HxxxxxxQ', 4, ctypes.addressof(code)))
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, filter) == 0
print('closed in')
for line in sys.stdin: print(line.strip())",
    );
    program.await_sleep();
    attach(&home, program.pid, &[]);
    program.tell("");
    assert_eq!(program.line(), "closed in");
    program.tell("alive");
    assert_eq!(program.line(), "alive");
    assert_eq!(home.status("it")["degradations"], serde_json::json!(["call-filter"]));
    assert_eq!(program.rest(), "");
    assert_eq!(program.child.wait().unwrap().code(), Some(0));
}
