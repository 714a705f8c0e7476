//! Threads that end while their program is attached to.

use super::program::{compile, try_to_attach, Program};
use super::support::{said, Home};
use std::process::Command;

#[test]
fn threads_that_end_all_the_time_hinder_nobody() {
    let home = Home::new();
    let to = compile(&home, "attach/ending.c");
    for _ in 0..12 {
        let home = Home::new();
        let mut program = Program::start(&mut Command::new(&to));
        assert_eq!(program.line(), "begun");
        let attached = try_to_attach(&home, program.pid, &[]);
        assert!(attached.status.success(), "{}; the program: {:?}", said(&attached), program.child.try_wait());
        assert_eq!(program.rest(), "0 wrong\n");
        assert_eq!(program.child.wait().unwrap().code(), Some(7));
    }
}
