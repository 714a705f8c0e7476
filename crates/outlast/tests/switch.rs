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
$OUTLAST off; $OUTLAST ps; $OUTLAST run -- sh -c 'echo root'; user $HOME/outlast run -- sh -c 'echo user'
user $HOME/outlast on
$OUTLAST on; $OUTLAST run --name it -- sh -c 'echo again'; $OUTLAST log it";
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", script]).env("OUTLAST", env!("CARGO_BIN_EXE_outlast")).env("HOME", home.path());
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
