//! Work that takes its time shows how far it is, to a person at a terminal and to nobody else.

mod support;

use std::fs::File;
use std::io::Read;
use std::os::fd::{FromRawFd, OwnedFd};
use std::process::{Command, Stdio};
use support::obedient::{Obedient, OFTEN};
use support::{finish, kill_everything, said, until, Home};

/// A terminal: what reads from it, and what is given to a program.
fn terminal() -> (File, OwnedFd) {
    let (mut master, mut slave) = (0, 0);
    let null = std::ptr::null_mut();
    let size = libc::winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the two descriptors are ours to fill, the size is one; no name and settings are given.
    let r = unsafe { libc::openpty(&mut master, &mut slave, null, null.cast(), &size) };
    assert_eq!(r, 0, "openpty");
    // What other tests begin meanwhile must not have it open: it would not end before that does.
    // SAFETY: plain system calls.
    let _ = [master, slave].map(|fd| unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) });
    // SAFETY: both were just opened, and nothing else owns them.
    unsafe { (File::from_raw_fd(master), OwnedFd::from_raw_fd(slave)) }
}

/// What a command shows on standard error, that being a terminal; it must succeed.
fn shown_by(command: &mut Command) -> String {
    let (mut master, slave) = terminal();
    let child = command.env("TERM", "xterm").stdout(Stdio::piped()).stderr(slave).spawn().unwrap();
    // The command's copy is the only one from now on: what reads comes to an end.
    command.stderr(Stdio::null());
    let reader = std::thread::spawn(move || {
        let (mut text, mut bytes) = (String::new(), [0; 1024]);
        while let Ok(n @ 1..) = master.read(&mut bytes) {
            text.push_str(&String::from_utf8_lossy(&bytes[..n]));
        }
        text
    });
    let output = finish(child);
    assert!(output.status.success(), "{}", said(&output));
    reader.join().unwrap()
}

/// A program of so many megabytes, and a generation of it.
fn start<'h>(home: &'h Home, name: &str, megabytes: u32) -> (Obedient<'h>, String) {
    let mut program = Obedient::start(home, name, &["--generations", "50ms:1h:1GiB"]);
    program.say(&format!("x = 1; ballast = os.urandom({megabytes} << 20)"));
    assert_eq!(program.ask("x"), "1");
    let first = program.keeps().to_string();
    program.say("x = 2");
    assert_eq!(program.ask("x"), "2");
    (program, first)
}

/// It was there, and nothing of it stays.
fn was_a_bar(shown: &str, what: &str) {
    assert!(shown.contains(what) && shown.contains('%'), "{shown:?}");
    let (_, after) = shown.rsplit_once("\x1b[2K").unwrap_or_else(|| panic!("it stays: {shown:?}"));
    assert!(!after.contains(what), "{shown:?}");
}

#[test]
fn a_rewind_of_much_shows_how_far_it_is() {
    let home = Home::new();
    let (mut program, first) = start(&home, "large", 80);
    was_a_bar(&shown_by(&mut home.outlast(["rewind", "large", &first])), "going back");
    assert_eq!(program.ask("x"), "1");
    // Nobody looks.
    let output = program.rewind(&first);
    assert!(output.status.success() && output.stderr.is_empty(), "{}", said(&output));
    assert_eq!(program.ask("x"), "1");
    // At rest the command does it itself.
    kill_everything(&home.status("large"));
    let shown = shown_by(&mut home.outlast(["rewind", "large", &first]));
    assert!(shown.contains("going back") && shown.contains("go on with `outlast resume large`"), "{shown:?}");
    let output = program.rewind(&first);
    assert!(!said(&output).contains("going back"), "{}", said(&output));
}

#[test]
fn a_rewind_of_little_shows_nothing() {
    let home = Home::new();
    let mut program = Obedient::start(&home, "small", &OFTEN);
    program.say("x = 1");
    assert_eq!(program.ask("x"), "1");
    let first = program.keeps().to_string();
    assert_eq!(shown_by(&mut home.outlast(["rewind", "small", &first])), "");
}

#[test]
fn a_copy_of_much_shows_how_far_it_is_before_the_program_is_there() {
    let home = Home::new();
    let (_program, first) = start(&home, "large", 80);
    let (mut master, slave) = terminal();
    let mut command = home.outlast(["fork", "large", "--name", "copy", "--generation", &first]);
    command.env("TERM", "xterm").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(slave);
    let mut child = command.spawn().unwrap();
    drop(command);
    home.await_protected("copy");
    // At the end of its input the program ends.
    drop(child.stdin.take());
    let output = finish(child);
    assert!(output.status.success(), "{}", said(&output));
    let (mut text, mut bytes) = (String::new(), [0; 1024]);
    while let Ok(n @ 1..) = master.read(&mut bytes) {
        text.push_str(&String::from_utf8_lossy(&bytes[..n]));
    }
    was_a_bar(&text, "copying");
    until("the end of the copy", || home.status("copy")["pid"].is_null());
}
