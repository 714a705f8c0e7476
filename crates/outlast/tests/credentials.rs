//! Who a program says it is, over sockets of the machine's own, where the kernel knows it by another number since its recovery.

mod support;

use support::obedient::Obedient;
use support::tree::NOBODY;
use support::{kill, Home};

/// Sends and receives its own credentials, and looks who is at the other end of sockets.
const NAMES_ITSELF: &str = "import socket, struct
import os
SO_PASSCRED, SO_PEERCRED = 16, 17
a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
b.setsockopt(socket.SOL_SOCKET, SO_PASSCRED, 1)
me = lambda: struct.pack('iII', os.getpid(), os.getuid(), os.getgid())
told = lambda: a.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_CREDENTIALS, me())]) and b.recvmsg(1, 64)[1][0][2] == me()
left = lambda: a.send(b'x') and b.recvmsg(1, 64)[1][0][2] == me()
peer = lambda: socket.socketpair()[0].getsockopt(socket.SOL_SOCKET, SO_PEERCRED, 12) == me()";

#[test]
fn who_was_recovered_without_root_is_who_it_was() {
    let home = Home::of(NOBODY);
    let mut program = Obedient::start(&home, "it", &[]);
    NAMES_ITSELF.lines().for_each(|line| program.say(line));
    for n in 1..4 {
        assert_eq!(program.ask("told(), left(), peer()"), "True True True", "after {} recoveries", n - 1);
        kill(&home.await_protected("it")["pid"], libc::SIGKILL);
        home.await_event("it", "recovered", n);
    }
    assert_eq!(program.ask("told(), left(), peer()"), "True True True");
    assert_ne!(program.ask("os.getpid()"), home.await_protected("it")["pid"].to_string(), "it has its number still");
}
