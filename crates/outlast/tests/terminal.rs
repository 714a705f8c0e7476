//! At a terminal, the shell sees the job it would see without outlast.

mod support;

use std::process::Command;
use support::terminal::Terminal;
use support::Home;

/// A shell with job control at a terminal of its own.
fn start(home: &Home, script: &str) -> Terminal {
    let mut shell = Command::new("bash");
    shell.args(["--norc", "-m", "-c", script]).env("OUTLAST_STATE_DIR", home.state());
    Terminal::start(shell)
}

#[test]
fn a_job_stops_continues_and_ends() {
    let home = Home::new();
    let outlast = env!("CARGO_BIN_EXE_outlast");
    let script = format!("'{outlast}' run --name job -- cat; echo stopped $?; fg >/dev/null; echo ended $?");
    let mut terminal = start(&home, &script);
    home.await_protected("job");
    terminal.type_in("first\n");
    terminal.await_text("first\r\nfirst\r\n");
    terminal.type_in("\x1a");
    // 128 + SIGTSTP
    terminal.await_text("stopped 148");
    terminal.type_in("second\n");
    terminal.await_text("second\r\nsecond\r\n");
    terminal.type_in("\x04");
    terminal.await_text("ended 0");
}

#[test]
fn keys_that_signal_reach_the_program_once() {
    let home = Home::new();
    let outlast = env!("CARGO_BIN_EXE_outlast");
    let program = "trap 'echo caught' INT; echo ready; while :; do read x && echo got $x; done";
    let script = format!("'{outlast}' run --name keys -- sh -c \"{}\"; echo ended $?", program.replace('$', "\\$"));
    let mut terminal = start(&home, &script);
    terminal.await_text("ready");
    terminal.type_in("\x03");
    terminal.await_text("caught");
    terminal.type_in("word\n");
    terminal.await_text("got word");
    assert!(!terminal.rest().contains("caught"), "it was interrupted twice");
    terminal.type_in("\x1c");
    // 128 + SIGQUIT
    terminal.await_text("ended 131");
}

#[test]
fn a_program_at_a_terminal_is_recovered_in_the_foreground() {
    let home = Home::new();
    let outlast = env!("CARGO_BIN_EXE_outlast");
    let script = format!("'{outlast}' run --name front -- cat; echo ended $?");
    let mut terminal = start(&home, &script);
    terminal.type_in("one\n");
    terminal.await_text("one\r\none\r\n");
    for round in 1..=5 {
        support::kill(&home.await_protected("front")["pid"], libc::SIGKILL);
        home.await_event("front", "recovered", round);
        terminal.type_in(&format!("again {round}\n"));
        terminal.await_text(&format!("again {round}\r\nagain {round}\r\n"));
    }
    terminal.type_in("\x04");
    terminal.await_text("ended 0");
}
