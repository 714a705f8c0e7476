//! A program whose threads have bases of their own in GS.

use super::moments::Moments;
use super::program::{compile, try_to_attach, Program};
use super::support::{kill, said, until, Home};
use std::process::Command;

#[test]
fn threads_find_by_gs_what_they_have_put_there() {
    const ROUNDS: &str = "6000";
    let home = Home::new();
    let to = compile(&home, "../../../cases/programs/segment.c");
    let expected = Command::new(&to).arg(ROUNDS).output().unwrap().stdout;
    let mut moments = Moments::new();
    for _ in 0..4 {
        let home = Home::new();
        let mut program = Program::start(Command::new(&to).arg(ROUNDS));
        assert_eq!(program.line(), "0 100 1 1");
        moments.pause(50_000);
        until("an attempt that is not to be made again", || {
            let attached = try_to_attach(&home, program.pid, &[]);
            // Of a wait that a signal for another thread has met nobody can tell how long it still lasts; and on a busy machine there may be
            // no moment between two signals.
            let comes_again =
                ["stopped before", "one signal after the other"].iter().any(|why| said(&attached).contains(why));
            assert!(comes_again || attached.status.success(), "{}", said(&attached));
            !comes_again
        });
        moments.pause(20_000);
        program.kill_first();
        home.await_event("it", "recovered", 1);
        moments.pause(20_000);
        kill(&home.await_protected("it")["pid"], libc::SIGKILL);
        let printed = format!("0 100 1 1\n{}", program.rest());
        assert!(printed.as_bytes() == expected, "{printed}");
        home.await_event("it", "recovered", 2);
    }
}
