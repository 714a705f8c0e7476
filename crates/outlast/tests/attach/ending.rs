//! Threads that end while their program is attached to.

use super::program::{attach, compile, Program};
use super::support::Home;
use std::process::Command;

#[test]
fn threads_that_end_all_the_time_hinder_nobody() {
    let home = Home::new();
    let to = compile(&home, "attach/ending.c");
    for _ in 0..12 {
        let home = Home::new();
        let mut program = Program::start(&mut Command::new(&to));
        assert_eq!(program.line(), "begun");
        attach(&home, program.pid, &[]);
        assert_eq!(program.rest(), "0 wrong\n");
        assert_eq!(program.child.wait().unwrap().code(), Some(7));
    }
}
