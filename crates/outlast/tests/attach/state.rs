//! What a program had before it was attached to it has after its death.

use super::program::{attach, kill_again, Program, PYTHON};
use super::support::{kill, until, Home};
use std::process::Command;

#[test]
fn memory_and_state_of_before_are_there_after_a_death() {
    let home = Home::new();
    let mut program = Program::python(
        "import sys, os, random, hashlib
os.umask(0o27)
os.chdir('/usr')
before = random.Random(7).randbytes(20_000_000)
print('ready')
sys.stdin.readline()
print(hashlib.sha256(before).hexdigest(), os.getcwd(), oct(os.umask(0)), os.getpid())
sys.exit(9)",
    );
    assert_eq!(program.line(), "ready");
    attach(&home, program.pid, &[]);
    let before = program.pid;
    let hidden = std::process::id();
    program.kill_first();
    home.await_event("it", "recovered", 1);
    // SAFETY: plain system call.
    if unsafe { libc::geteuid() } == 0 {
        assert_eq!(home.await_protected("it")["pid"], before, "seen from {hidden}");
    }
    program.tell("go");
    let expected = Command::new(PYTHON)
        .args([
            "-c",
            "import random, hashlib; print(hashlib.sha256(random.Random(7).randbytes(20_000_000)).hexdigest())",
        ])
        .output()
        .unwrap();
    let digest = String::from_utf8(expected.stdout).unwrap();
    assert_eq!(program.rest(), format!("{} /usr 0o27 {before}\n", digest.trim_end()));
    until("its end", || home.status("it")["ended"] == "exit 9");
}

#[test]
fn a_program_that_waits_for_input_gets_it_after_a_death() {
    let home = Home::new();
    let mut program = Program::start(&mut Command::new("cat"));
    program.await_sleep();
    attach(&home, program.pid, &[]);
    program.tell("one");
    assert_eq!(program.line(), "one");
    program.kill_first();
    program.tell("two");
    assert_eq!(program.line(), "two");
    kill_again(&home, 2);
    program.tell("three");
    assert_eq!(program.rest(), "three\n");
}

#[test]
fn a_shell_that_reads_a_line_goes_on_with_its_variables() {
    let home = Home::new();
    let mut program = Program::start(Command::new("dash").arg("-s"));
    program.tell("kept=before; echo $kept");
    assert_eq!(program.line(), "before");
    program.await_sleep();
    attach(&home, program.pid, &[]);
    program.kill_first();
    program.tell("echo $kept; kept=after");
    assert_eq!(program.line(), "before");
    kill_again(&home, 2);
    program.tell("echo $kept; exit 4");
    assert_eq!(program.rest(), "after\n");
    until("its end", || home.status("it")["ended"] == "exit 4");
}

#[test]
fn handlers_timers_and_masks_of_before_are_there_after_a_death() {
    let home = Home::new();
    let mut program = Program::python(
        "import signal, sys, time
ticks = 0
def tick(*_):
    global ticks
    ticks += 1
signal.signal(signal.SIGALRM, tick)
signal.signal(signal.SIGUSR1, lambda *_: print('usr1'))
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002) # shorter than the program stands still
print('ready')
while True:
    line = sys.stdin.readline()
    if not line: break
    had = ticks
    while ticks < had + 5: pass
    print('ticks', signal.SIGUSR2 in signal.pthread_sigmask(signal.SIG_BLOCK, []))",
    );
    assert_eq!(program.line(), "ready");
    attach(&home, program.pid, &[]);
    program.tell("");
    assert_eq!(program.line(), "ticks True");
    program.kill_first();
    // Until then it may be the dead one's number.
    home.await_event("it", "recovered", 1);
    let status = home.await_protected("it");
    for signal in [libc::SIGTERM, libc::SIGUSR2, libc::SIGUSR1] {
        kill(&status["pid"], signal);
    }
    assert_eq!(program.line(), "usr1");
    program.tell("");
    assert_eq!(program.line(), "ticks True");
    kill_again(&home, 1);
    program.tell("");
    assert_eq!(program.line(), "ticks True");
    assert_eq!(program.rest(), "");
}
