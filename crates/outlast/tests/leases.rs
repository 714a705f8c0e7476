//! A program that dies while the kernel is asked, by a lease, whether a file is its alone.

mod support;

use std::fs;
use std::os::unix::fs::OpenOptionsExt;
use std::process::Stdio;
use support::{finish, said, trace, traced, until, Home};

/// Cuts off a file, and again when it has changed so many others that the engine has to ask anew; the number with which it asked first is
/// another file's by then.
const PROGRAM: &str = r#"
import os, sys
folder, door = sys.argv[1:]
os.chdir(folder)
def wait(name):
    while not os.path.exists(door + name):
        pass
others = [f'other{n}' for n in range(20)]
for name in ['it'] + others:
    with open(name, 'x') as f:
        f.write('old')
os.mkdir('begun')
wait('1')
os.truncate('it', 2)
taken = os.open('/dev/null', os.O_RDONLY)
for name in others:
    os.truncate(name, 2)
os.mkdir('changed')
wait('2')
os.truncate('it', 1)
"#;

const F_SETLEASE: u64 = 1024;
const F_WRLCK: u64 = 1;

/// Lets a process that is stopped go on until the kernel has given it a lease for writing.
fn until_it_has_a_lease(pid: i32, mut status: i32) {
    let mut asks = false;
    loop {
        assert!(libc::WIFSTOPPED(status), "{status:#x}");
        let stopped_by = libc::WSTOPSIG(status);
        if stopped_by == libc::SIGTRAP | 0x80 {
            // SAFETY: plain data.
            let mut info: libc::ptrace_syscall_info = unsafe { std::mem::zeroed() };
            let (address, len) = (&raw mut info, size_of_val(&info));
            // SAFETY: writes to `info`, which has what its `op` says.
            let (entry, exit) = unsafe {
                assert!(libc::ptrace(libc::PTRACE_GET_SYSCALL_INFO, pid, len, address) > 0);
                (info.u.entry, info.u.exit)
            };
            if info.op == libc::PTRACE_SYSCALL_INFO_ENTRY {
                let [_, command, lease, ..] = entry.args;
                asks = entry.nr == libc::SYS_fcntl as u64 && command == F_SETLEASE && lease == F_WRLCK;
            } else if asks && exit.sval == 0 {
                return;
            }
        }
        let is_signal = status >> 16 == 0 && stopped_by & 0x80 == 0;
        trace(libc::PTRACE_SYSCALL, pid, if is_signal { stopped_by as u64 } else { 0 });
        status = traced(pid);
    }
}

#[test]
fn a_lease_that_was_only_asked_for_ends_with_who_asked() {
    let home = Home::new();
    let folder = home.file("folder");
    fs::create_dir(&folder).unwrap();
    let mut run = home.outlast(["run", "--name", "asks", "--commit", "manual", "--", "python3", "-c", PROGRAM]);
    run.arg(&folder).arg(home.file("door"));
    let child = run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let pid = home.await_protected("asks")["pid"].as_i64().unwrap() as i32;
    until("the first content", || folder.join("begun").exists());
    let output = home.outlast(["commit", "asks"]).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    fs::write(home.file("door1"), "").unwrap();
    until("the next content", || folder.join("changed").exists());
    trace(libc::PTRACE_SEIZE, pid, libc::PTRACE_O_TRACESYSGOOD as u64);
    trace(libc::PTRACE_INTERRUPT, pid, 0);
    let stopped = traced(pid);
    fs::remove_file(home.file("door1")).unwrap();
    fs::write(home.file("door2"), "").unwrap();
    until_it_has_a_lease(pid, stopped);
    // SAFETY: the process that is traced.
    unsafe { libc::kill(pid, libc::SIGKILL) };
    assert!(libc::WIFSIGNALED(traced(pid)));
    home.await_event("asks", "recovered", 1);
    assert_eq!(fs::read(folder.join("it")).unwrap(), b"old");
    assert!(!folder.join("changed").exists());
    assert_eq!(home.status("asks")["degradations"], serde_json::json!([]));
    // Nobody has to wait for it.
    fs::OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open(folder.join("it")).unwrap();
    fs::write(home.file("door1"), "").unwrap();
    let output = finish(child);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(fs::read(folder.join("it")).unwrap(), b"o");
}
