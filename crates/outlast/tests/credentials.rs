//! A recovered program has what the program had, never what its supervisor has.

mod support;

use std::io::{BufRead, BufReader};
use support::{finish, kill, said, until, Home};

const NOBODY: u32 = 65534;

/// Gives up root, waits for a file, and tells what it is.
const DROPS: &str = "import os, sys
os.setgroups([7]); os.setresgid(65534, 65534, 65534); os.setresuid(65534, 65534, 65534)
print('dropped', flush=True)
while not os.path.exists(sys.argv[1]):
    pass
print(os.getresuid(), os.getresgid(), os.getgroups(), flush=True)
try:
    os.setuid(0)
    print('root again')
except PermissionError:
    print('refused')
";

/// What the kernel says about a process, in one field of its status.
fn field(pid: &serde_json::Value, name: &str) -> String {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
    line.split_once(':').map(|(_, value)| value.trim().replace('\t', " ")).unwrap_or_default()
}

fn dropped_program_after(victims: &[&str], event: &str) {
    // SAFETY: plain system call.
    if unsafe { libc::geteuid() } != 0 {
        println!("skipped: only root has something to give up");
        return;
    }
    let home = Home::new();
    std::fs::set_permissions(home.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let go = home.file("go");
    let mut run = home.outlast(["run", "--name", "dropped", "--", "/usr/bin/python3", "-c", DROPS]);
    let run = run.arg(&go).stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut child = run.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "dropped");
    let dropped = format!("{NOBODY} {NOBODY} {NOBODY} {NOBODY}");
    until("its new user", || field(&home.await_protected("dropped")["pid"], "Uid") == dropped);
    let status = home.await_protected("dropped");
    // Stopped, the supervisor has no other anchor made between two kills.
    kill(&status["supervisor"], libc::SIGSTOP);
    for victim in victims {
        kill(&status[victim], libc::SIGKILL);
    }
    kill(&status["supervisor"], libc::SIGCONT);
    home.await_event("dropped", event, 1);
    let again = home.await_protected("dropped");
    assert_eq!(field(&again["pid"], "Uid"), dropped);
    assert_eq!(field(&again["pid"], "Groups"), "7");
    assert_eq!(field(&again["pid"], "CapPrm"), "0000000000000000");
    std::fs::write(&go, "").unwrap();
    let told: Vec<String> = lines.map(Result::unwrap).collect();
    let output = finish(child);
    assert_eq!(told, ["(65534, 65534, 65534) (65534, 65534, 65534) [7]", "refused"], "{}", said(&output));
}

#[test]
fn a_respawned_program_has_not_what_it_gave_up() {
    dropped_program_after(&["pid"], "recovered");
}

#[test]
fn a_program_resumed_from_the_store_has_not_what_it_gave_up() {
    dropped_program_after(&["anchor", "pid"], "resumed");
}
