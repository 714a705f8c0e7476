//! A file system without room for the store ends the protection, and nothing else.

mod support;

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output, Stdio};
use support::{finish, kill, said, Home};

/// Doubles a string until it has 8 MiB, and says how long it was each time.
const GROWS: &str = "x=aaaaaaaa; i=0; while [ $i -lt 20 ]; do x=$x$x; i=$((i+1)); echo ${#x}; done";

/// `outlast run --name full`, its store on a tmpfs of 3 MiB that only it sees.
fn run_in_little_room(home: &Home, script: &str) -> Command {
    let room = home.file("room");
    std::fs::create_dir_all(&room).unwrap();
    let mut command = Command::new("unshare");
    // SAFETY: plain system call.
    command.args(if unsafe { libc::geteuid() } == 0 { &["--mount"][..] } else { &["--mount", "--map-root-user"] });
    command.args(["sh", "-c", "mount -t tmpfs -o size=3m none \"$0\" && chmod 700 \"$0\" && exec \"$@\""]);
    command.arg(&room).arg(env!("CARGO_BIN_EXE_outlast")).args(["run", "--name", "full", "--store"]).arg(&room);
    command.args(["--", "sh", "-c", script]).env("OUTLAST_STATE_DIR", home.state());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn expected() -> String {
    (1..=20).map(|i| format!("{}\n", 8u32 << i)).collect()
}

fn assert_is_whole(output: &Output) {
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected(), "{}", said(output));
}

#[test]
fn the_program_goes_on_to_its_own_end() {
    let home = Home::new();
    let output = run_in_little_room(&home, &format!("{GROWS}; exit 3")).output().unwrap();
    assert_is_whole(&output);
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    let log = home.log("full");
    assert!(log.iter().any(|e| e["event"] == "suspended" && e["cause"] == "store-full"), "{log:#?}");
    assert_eq!(home.status("full")["ended"], "exit 3");
}

#[test]
fn ps_says_why_it_is_suspended_and_a_kill_is_its_end() {
    let home = Home::new();
    let child = run_in_little_room(&home, &format!("{GROWS}; while :; do read x < /dev/null; done")).spawn().unwrap();
    let status = home.await_status("full", |status| status["state"] == "suspended");
    assert_eq!((&status["protected"], &status["degradations"]), (&false.into(), &serde_json::json!(["store-full"])));
    kill(&status["pid"], libc::SIGKILL);
    let output = finish(child);
    assert_eq!(output.status.signal(), Some(libc::SIGKILL), "{}", said(&output));
}
