//! Who may attach to what, and what is left as it was.

use super::moments::Moments;
use super::program::{attach, try_to_attach, Program, NOBODY, PYTHON};
use super::support::{kill, said, trace, traced, until, Home};
use serde_json::Value;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicI32, Ordering::SeqCst};

#[test]
fn an_ordinary_user_attaches_to_programs_of_its_own_and_to_no_others() {
    // SAFETY: plain system call.
    if unsafe { libc::geteuid() } != 0 {
        println!("skipped: only root can be another user");
        return;
    }
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    let is_forbidden = !matches!(scope.trim(), "" | "0");
    let home = Home::new();
    let state = home.file("theirs");
    std::os::unix::fs::chown(home.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    let as_nobody = |args: &[&str]| home.outlast_by(NOBODY, args).env("OUTLAST_STATE_DIR", &state).output().unwrap();
    let mut foreign = Program::start(&mut Command::new("cat"));
    let refused = as_nobody(&["attach", &foreign.pid.to_string()]);
    assert_eq!(refused.status.code(), Some(1), "{}", said(&refused));
    foreign.tell("untouched");
    assert_eq!(foreign.rest(), "untouched\n");

    let mut own = Program::start(Command::new("cat").uid(NOBODY).gid(NOBODY));
    own.await_sleep();
    let attached = as_nobody(&["attach", &own.pid.to_string(), "--name", "it"]);
    assert_eq!(attached.status.success(), !is_forbidden, "{}", said(&attached));
    if is_forbidden {
        println!("skipped: ptrace_scope is {scope}");
        return;
    }
    own.tell("one");
    assert_eq!(own.line(), "one");
    own.kill_first();
    own.tell("two");
    assert_eq!(own.line(), "two");
    assert_eq!(own.rest(), "");
    until("its end", || {
        let output = as_nobody(&["ps", "--all", "--json"]);
        let programs: Value = serde_json::from_slice(&output.stdout).unwrap();
        programs[0]["ended"] == "exit 0"
    });
}

#[test]
fn what_root_attaches_to_keeps_the_user_that_it_has() {
    // SAFETY: plain system call.
    if unsafe { libc::geteuid() } != 0 {
        println!("skipped: only root may attach to others' programs");
        return;
    }
    let home = Home::new();
    let script = "import sys, os
for line in sys.stdin: print(os.getresuid(), os.getresgid())";
    let mut program = Program::start(Command::new(PYTHON).args(["-u", "-c", script]).uid(NOBODY).gid(NOBODY));
    program.tell("");
    let before = program.line();
    attach(&home, program.pid, &[]);
    program.kill_first();
    program.tell("");
    assert_eq!(program.line(), before);
    let status = home.await_protected("it");
    kill(&status["anchor"], libc::SIGKILL);
    kill(&status["pid"], libc::SIGKILL);
    program.tell("");
    assert_eq!(program.line(), before);
    assert_eq!(program.rest(), "");
}

/// A process that cannot be attached to is refused with these words, and goes on as if nothing had been.
fn assert_refused(program: &mut Program, words: &str) {
    let home = Home::new();
    let output = try_to_attach(&home, program.pid, &[]);
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(told.contains(words) && told.lines().count() == 1, "{told}");
    assert_eq!(home.status("it"), Value::Null);
    let maps = std::fs::read_to_string(format!("/proc/{}/maps", program.pid)).unwrap();
    assert!(!maps.contains("outlast"), "{maps}");
}

#[test]
fn what_cannot_be_attached_to_is_refused_and_runs_on() {
    let echo = "\nfor line in sys.stdin: print(line.strip())";
    let cases = [
        (
            "import sys, ctypes
sigevent = (ctypes.c_int * 16)(0, 0, 34, 1)
timer = ctypes.c_int()
assert ctypes.CDLL(None).timer_create(1, sigevent, ctypes.byref(timer)) == 0",
            "timers of its own",
        ),
        ("import sys, ctypes\nassert ctypes.CDLL(None).mlock(ctypes.create_string_buffer(9), 9) == 0", "locked"),
        (
            "import sys, ctypes\ncontext = ctypes.c_ulong()
assert ctypes.CDLL(None).syscall(206, 9, ctypes.byref(context)) == 0",
            "asynchronous",
        ),
        (
            "import sys, mmap, os\nshared = mmap.mmap(-1, 4096)\nshared[0] = 7
if os.fork() == 0:
    sys.stdin.close()
    os.execvp('sh', ['sh', '-c', 'exit']) if False else os.read(os.pipe()[0], 1)",
            "shares with other",
        ),
        (
            "import sys, ctypes, struct
code = ctypes.create_string_buffer(struct.pack('HBBI', 6, 0, 0, 0x7fff0000))
filter = ctypes.create_string_buffer(struct.pack('HxxxxxxQ', 1, ctypes.addressof(code)))
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, filter) == 0",
            "filters",
        ),
    ];
    for (setting, words) in cases {
        let mut program = Program::python(&format!("{setting}\nprint('ready', flush=True){echo}"));
        assert_eq!(program.line(), "ready", "{setting}");
        assert_refused(&mut program, words);
        program.tell("as before");
        assert_eq!(program.line(), "as before");
        for child in children_of(program.pid) {
            kill(&child.into(), libc::SIGKILL);
        }
        assert_eq!(program.rest(), "", "{setting}");
        assert_eq!(program.child.wait().unwrap().code(), Some(0), "{setting}");
    }
}

fn children_of(pid: i32) -> Vec<i32> {
    let list = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    list.split_ascii_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

#[test]
fn what_is_stopped_traced_protected_or_no_program_is_refused() {
    let mut program = Program::start(&mut Command::new("cat"));
    program.await_sleep();
    kill(&program.pid.into(), libc::SIGSTOP);
    until("it is stopped", || {
        std::fs::read_to_string(format!("/proc/{}/status", program.pid)).unwrap().contains("T (stopped)")
    });
    assert_refused(&mut program, "it is stopped");
    kill(&program.pid.into(), libc::SIGCONT);
    until("it goes on", || {
        !std::fs::read_to_string(format!("/proc/{}/status", program.pid)).unwrap().contains("T (stopped)")
    });
    trace(libc::PTRACE_SEIZE, program.pid, 0);
    assert_refused(&mut program, "traces it");
    trace(libc::PTRACE_INTERRUPT, program.pid, 0);
    traced(program.pid);
    trace(libc::PTRACE_DETACH, program.pid, 0);

    let home = Home::new();
    attach(&home, program.pid, &[]);
    let again = home.outlast(["attach", &program.pid.to_string(), "--name", "again"]).output().unwrap();
    assert_eq!(again.status.code(), Some(1), "{}", said(&again));
    assert!(String::from_utf8_lossy(&again.stderr).contains("protected already"), "{}", said(&again));
    let taken = home.outlast(["attach", &std::process::id().to_string(), "--name", "own"]).output().unwrap();
    assert!(String::from_utf8_lossy(&taken.stderr).contains("this command itself"), "{}", said(&taken));
    program.tell("as before");
    assert_eq!(program.rest(), "as before\n");
    for nobody in ["999999999", "2"] {
        let none = home.outlast(["attach", nobody]).output().unwrap();
        assert_eq!(none.status.code(), Some(1), "{}", said(&none));
    }
    let bad = home.outlast(["attach", "cat"]).output().unwrap();
    assert_eq!(bad.status.code(), Some(2), "{}", said(&bad));
}

#[test]
fn attaching_that_dies_itself_in_the_middle_leaves_the_program_running_or_protected() {
    let mut moments = Moments::new();
    let begun = AtomicI32::new(0);
    for _ in 0..6 {
        let home = Home::new();
        let mut program = Program::start(&mut Command::new("cat"));
        program.await_sleep();
        let mut attach = home.outlast(["attach", &program.pid.to_string(), "--name", "it"]).spawn().unwrap();
        begun.store(attach.id() as i32, SeqCst);
        // The command that was typed, not the process that it has begun.
        moments.pause(20_000);
        let _ = attach.kill();
        let _ = attach.wait();
        program.tell("here");
        assert_eq!(program.line(), "here");
        assert_eq!(program.rest(), "");
        let end = program.child.wait().unwrap();
        assert_eq!(end.code(), Some(0), "{end}: {:?}", home.log("it"));
    }
}
