//! What a program prints is what it always prints, wherever it is attached to and killed.

use super::moments::Moments;
use super::program::{attach, compile, try_to_attach, Program};
use super::support::{counter, kill, said, until, Home};
use serde_json::Value;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

/// A program that prints without pause is attached to and killed at any moment: what it prints is what it always prints.
fn prints_the_same(options: &[&str], rounds: usize) {
    let mut moments = Moments::new();
    for _ in 0..rounds {
        let home = Home::new();
        let (script, expected) = counter(400_000);
        let mut program = Program::script(&script);
        moments.pause(60_000);
        attach(&home, program.pid, options);
        let is_killed = AtomicBool::new(false);
        let printed = std::thread::scope(|scope| {
            let printed = scope.spawn(|| {
                let mut printed = String::new();
                program.out.by_ref().take(expected.len() as u64 / 2).read_to_string(&mut printed).unwrap();
                // However late it is killed on a busy machine, it has not come to its end before.
                until("its death", || is_killed.load(SeqCst));
                program.out.read_to_string(&mut printed).unwrap();
                printed
            });
            moments.pause(60_000);
            kill(&program.pid.into(), libc::SIGKILL);
            assert_eq!(program.child.wait().unwrap().signal(), Some(libc::SIGKILL));
            is_killed.store(true, SeqCst);
            for _ in 0..3 {
                if home.status("it")["protected"] != true {
                    continue;
                }
                let status = home.status("it");
                if status["pid"].is_i64() {
                    kill(&status["pid"], libc::SIGKILL);
                }
                moments.pause(60_000);
            }
            printed.join().unwrap()
        });
        assert!(printed == expected, "lost or repeated: {} of {} bytes", printed.len(), expected.len());
        let events = home.events("it");
        assert!(events.contains(&"attached".into()) && events.contains(&"recovered".into()), "{events:?}");
        // Its own end is in the log, with its own status.
        until("its end", || home.status("it")["ended"] == "exit 3");
    }
}

/// The same, of several threads.
#[test]
fn threads_that_are_attached_to_anywhere_print_what_they_always_print() {
    let home = Home::new();
    let to = compile(&home, "attach/threads.c");
    let start = || {
        let mut program = Command::new(&to);
        // More than a pipe holds: it is not over before somebody reads.
        program.args(["20000", "1"]);
        Program::start(&mut program)
    };
    let expected = start().rest();
    assert!(expected.ends_with("0 0\n"), "{expected}");
    let mut moments = Moments::new();
    for round in 0..8 {
        let home = Home::new();
        let mut program = start();
        moments.pause(60_000);
        let options: &[&str] = if round % 4 == 3 { &["--tracker", "mprotect"] } else { &[] };
        attach(&home, program.pid, options);
        moments.pause(100_000);
        program.kill_first();
        for _ in 0..2 {
            moments.pause(100_000);
            if let Value::Number(pid) = &home.status("it")["pid"] {
                kill(&Value::Number(pid.clone()), libc::SIGKILL);
            }
        }
        let printed = program.rest();
        assert!(printed == expected, "lost, repeated or late: {} of {} bytes", printed.len(), expected.len());
        until("its end", || home.status("it")["ended"] == "exit 5");
    }
}

/// Waits in more threads than there is room for, each for a byte of its own.
const MANY: &str = r#"
import os, sys, threading
threading.stack_size(64 << 10)
messages, end = os.pipe()
threads = [threading.Thread(target=lambda: os.read(messages, 1)) for _ in range(1100)]
for thread in threads: thread.start()
print('ready', flush=True)
sys.stdin.readline()
os.write(end, b'.' * 1100)
for thread in threads: thread.join()
print('done', flush=True)
"#;

#[test]
fn threads_run_on_as_they_were_where_they_cannot_be_protected() {
    let home = Home::new();
    let mut program = Program::python(MANY);
    assert_eq!(program.line(), "ready");
    let refused = try_to_attach(&home, program.pid, &[]);
    assert_eq!(refused.status.code(), Some(1), "{}", said(&refused));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("threads"), "{}", said(&refused));
    assert_eq!(home.status("it"), Value::Null);
    program.tell("on");
    assert_eq!(program.rest(), "done\n");
    assert_eq!(program.child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_program_that_is_attached_to_anywhere_prints_what_it_always_prints() {
    prints_the_same(&[], 8);
}

#[test]
fn so_it_does_where_written_pages_are_found_by_faults() {
    prints_the_same(&["--tracker", "mprotect"], 3);
}

#[test]
fn so_it_does_without_io_uring() {
    prints_the_same(&["--no-io-uring"], 3);
}

#[test]
fn no_page_is_missed_of_what_was_there_before() {
    prints_the_same(&["--check-commits"], 2);
}
