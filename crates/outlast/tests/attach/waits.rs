//! Waits that are under way when a program is attached to end when they would have ended.

use super::moments::Moments;
use super::program::{attach, compile, Program};
use super::support::{until, Home};
use std::process::Command;
use std::time::{Duration, Instant};

#[test]
fn waits_of_threads_end_when_they_would_have_ended() {
    let home = Home::new();
    let to = compile(&home, "attach/threads.c");
    let mut program = Program::start(Command::new(&to).args(["10", "12"]).env("PUNCTUAL", "1"));
    // Long before they end, and late enough for those that began anew not to be punctual.
    std::thread::sleep(Duration::from_secs(8));
    attach(&home, program.pid, &[]);
    let printed = program.rest();
    assert!(printed.ends_with("0 0\n"), "{printed}");
    assert_eq!(program.child.wait().unwrap().code(), Some(5));
}

#[test]
fn a_sleep_that_is_attached_to_ends_when_it_would_have_ended() {
    let ends_in_time = |options: &[&str]| {
        let home = Home::new();
        let begun = Instant::now();
        let mut program = Program::start(Command::new("sleep").arg("16"));
        // Long before it ends; one that began anew would end after 26 seconds.
        std::thread::sleep(Duration::from_secs(10));
        program.await_sleep();
        attach(&home, program.pid, options);
        assert_eq!(program.child.wait().unwrap().code(), Some(0));
        let took = begun.elapsed();
        assert!(took >= Duration::from_secs(16) && took < Duration::from_secs(25), "{took:?}");
        until("its end", || home.status("it")["ended"] == "exit 0");
    };
    std::thread::scope(|scope| {
        scope.spawn(|| ends_in_time(&[]));
        scope.spawn(|| ends_in_time(&["--tracker", "mprotect"]));
    });
}

#[test]
fn waits_of_all_kinds_end_by_their_time_and_by_nothing_else() {
    let home = Home::new();
    let to = compile(&home, "waits/program.c");
    let mut moments = Moments::new();
    for _ in 0..4 {
        let home = Home::new();
        let mut program = Program::start(Command::new(&to).args(["alone", "200"]));
        moments.pause(3_000_000);
        attach(&home, program.pid, &[]);
        let text = program.rest();
        // For these the kernel itself answers EINTR whoever stops the process; for raw ones since it cannot write what is left.
        let excused = |line: &str| {
            ["epoll", "raw", "semtimedop", "sigtimedwait", "io_getevents"].iter().any(|n| line.contains(n))
        };
        let not_over: Vec<_> = text.lines().filter(|line| !line.ends_with(": over") && !excused(line)).collect();
        assert!(not_over.is_empty() && text.lines().count() > 20, "{text}");
    }
}
