//! `outlast off` is quick and plain: what begins afterwards runs as if outlast were not there, until `outlast on`.

mod support;

use std::process::Command;
use support::{kill, said, Home};

#[test]
fn off_has_programs_run_natively_and_on_has_them_protected_again() {
    let home = Home::new();
    let off = home.outlast(["off"]).output().unwrap();
    assert!(off.status.success() && off.stdout.is_empty(), "{}", said(&off));
    let output = home.outlast(["run", "--", "sh", "-c", "echo $PPID; exit 3"]).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), std::process::id().to_string(), "nothing lies between");
    assert!(said(&output).contains("runs unprotected: outlast is off"), "{}", said(&output));
    let listed = home.outlast(["ps"]).output().unwrap();
    assert!(said(&listed).contains("it is off"), "{}", said(&listed));
    let listed = home.outlast(["policy", "list", "--json"]).output().unwrap();
    assert!(said(&listed).contains("it is off"), "{}", said(&listed));
    assert!(home.outlast(["on"]).output().unwrap().status.success());
    // Twice is as good.
    assert!(home.outlast(["on"]).output().unwrap().status.success());
    let output = home.run_script("it", "exit 3").output().unwrap();
    assert!(output.status.code() == Some(3) && output.stderr.is_empty(), "{}", said(&output));
    assert!(home.events("it").contains(&"injected".to_string()), "{:?}", home.events("it"));
    assert!(home.outlast(["ps"]).output().unwrap().stderr.is_empty());
}

#[test]
fn what_runs_stays_protected() {
    let home = Home::new();
    let door = home.door();
    let child = home.start_script("it", &format!("{}; exit 3", door.wait()));
    let status = home.await_protected("it");
    let off = home.outlast(["off"]).output().unwrap();
    assert!(said(&off).contains("1 of your programs that run stay protected"), "{}", said(&off));
    kill(&status["pid"], libc::SIGKILL);
    home.await_event("it", "recovered", 1);
    door.open();
    assert_eq!(support::finish(child).status.code(), Some(3));
}

#[test]
fn what_runs_is_left_alone_when_that_is_asked_for() {
    let home = Home::new();
    let doors: Vec<_> = (0..3).map(|n| home.file(&format!("door-{n}"))).collect();
    let script = |door: &std::path::Path| {
        format!("until [ -e {} ]; do read x < /dev/null; done; echo here; exit 3", door.display())
    };
    let children: Vec<_> =
        doors.iter().enumerate().map(|(n, door)| home.start_script(&format!("it-{n}"), &script(door))).collect();
    for n in 0..doors.len() {
        home.await_protected(&format!("it-{n}"));
    }
    let off = home.outlast(["off", "--detach"]).output().unwrap();
    assert!(off.status.success() && off.stdout.is_empty() && off.stderr.is_empty(), "{}", said(&off));
    for n in 0..doors.len() {
        let status = home.status(&format!("it-{n}"));
        assert!(status["protected"] == false && status["ended"].is_null(), "{status}");
        assert!(home.events(&format!("it-{n}")).contains(&"detached".to_string()), "{:?}", home.log("it-0"));
    }
    // One by one, and a death is final again.
    kill(&home.status("it-0")["pid"], libc::SIGKILL);
    for door in &doors[1..] {
        std::fs::write(door, "").unwrap();
    }
    let ends: Vec<_> = children.into_iter().map(support::finish).collect();
    assert!(!ends[0].status.success() && ends[0].stdout.is_empty(), "{}", said(&ends[0]));
    for end in &ends[1..] {
        assert!(end.status.code() == Some(3) && end.stdout == b"here\n", "{}", said(end));
    }
    // Nobody is left to be asked.
    let again = home.outlast(["off", "--detach"]).output().unwrap();
    assert!(again.status.success() && again.stderr.is_empty(), "{}", said(&again));
}

#[test]
fn root_switches_it_off_for_everybody() {
    // SAFETY: plain system call.
    if unsafe { libc::geteuid() } != 0 {
        println!("skipped: only root does that");
        return;
    }
    let home = Home::new();
    std::fs::set_permissions(home.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    // In a /run of its own, so that nobody else's outlast is off.
    let script = "set -e; mount -t tmpfs none /run; cp $OUTLAST $HOME/outlast; unset OUTLAST_STATE_DIR
mkdir $HOME/user; chown 65534 $HOME/user
user() { setpriv --reuid 65534 --regid 65534 --clear-groups env OUTLAST_STATE_DIR=$HOME/user \"$@\"; }
user $HOME/outlast run --name kept -- sh -c 'until [ -e $HOME/door ]; do read x < /dev/null; done; exit 3' &
until user $HOME/outlast ps --json | grep -q '\"protected\": *true'; do sleep 0.02; done
$OUTLAST off --detach; user $HOME/outlast ps --json | grep -q '\"protected\": *false'; touch $HOME/door; if wait $!; then exit 9; fi
$OUTLAST off; $OUTLAST ps; $OUTLAST run -- sh -c 'echo root'; user $HOME/outlast run -- sh -c 'echo user'
user $HOME/outlast on
$OUTLAST on; $OUTLAST run --name it -- sh -c 'echo again'; $OUTLAST log it";
    let mut command = Command::new("unshare");
    // Of everybody are those that are seen: in a namespace of its own, these.
    command
        .args(["-m", "-p", "-f", "--mount-proc", "sh", "-c", script])
        .env("OUTLAST", env!("CARGO_BIN_EXE_outlast"))
        .env("HOME", home.path());
    let output = command.output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}", said(&output));
    assert!(
        out.starts_with("root\nuser\n") && out.contains("again\n") && out.contains("protected"),
        "{}",
        said(&output)
    );
    assert_eq!(err.matches("runs unprotected: outlast is off").count(), 2, "{err}");
    assert!(err.contains("still off for all users"), "{err}");
}
