//! A file system without room for the store ends the protection, and nothing else.

mod support;

use std::io::{BufRead, BufReader, Write};
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

/// Fills 30 MiB between two commits.
const FILLS: &str =
    "x = bytearray(30 << 20); x[::4] = b'\\1' * (len(x) // 4); print(sum(x), flush=True); raise SystemExit(5)";

/// Says its number, then adds up what it reads.
const COUNTS: &str = "import os, sys; print(os.getpid(), flush=True); total = 0
for line in sys.stdin: total += int(line); print(total, flush=True)";

/// `outlast run --name full`, its state folder a tmpfs that only it sees.
fn run_in_full_state(home: &Home, size: &str, argv: &[&str]) -> Command {
    let mut command = Command::new("unshare");
    // SAFETY: plain system call.
    command.args(if unsafe { libc::geteuid() } == 0 { &["--mount"][..] } else { &["--mount", "--map-root-user"] });
    let mount =
        format!("mkdir -p \"$0\" && mount -t tmpfs -o size={size} none \"$0\" && chmod 700 \"$0\" && exec \"$@\"");
    command.args(["sh", "-c", &mount]).arg(home.state());
    command.arg(env!("CARGO_BIN_EXE_outlast")).args(["run", "--name", "full", "--"]).args(argv);
    command.env("OUTLAST_STATE_DIR", home.state());
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
fn a_folder_without_room_for_anything_more_ends_only_the_protection() {
    let home = Home::new();
    // In memory, as by default: session and store share the room, which one commit uses up.
    let output = run_in_full_state(&home, "10m", &["python3", "-c", FILLS]).output().unwrap();
    assert_eq!(
        (output.status.code(), String::from_utf8_lossy(&output.stdout)),
        (Some(5), "7864320\n".into()),
        "{}",
        said(&output)
    );
}

#[test]
fn a_program_that_dies_when_others_have_used_up_the_room_is_recovered() {
    let home = Home::new();
    let mut child = run_in_full_state(&home, "48m", &["python3", "-c", COUNTS]).stdin(Stdio::piped()).spawn().unwrap();
    let (mut input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut lines = BufReader::new(output).lines().map(Result::unwrap);
    let pid: i32 = lines.next().unwrap().parse().unwrap();
    input.write_all(b"1000\n").unwrap();
    assert_eq!(lines.next().unwrap(), "1000");
    let seen_by_it = format!("/proc/{}/root{}", child.id(), home.state().join("fill").display());
    let full = std::io::copy(&mut std::io::repeat(1), &mut std::fs::File::create(seen_by_it).unwrap()).unwrap_err();
    assert_eq!(full.raw_os_error(), Some(libc::ENOSPC));
    // SAFETY: plain system call.
    unsafe { libc::kill(pid, libc::SIGKILL) };
    input.write_all(b"337\n").unwrap();
    assert_eq!(lines.next().unwrap_or_default(), "1337", "{}", said(&finish(child)));
    drop(input);
    assert_eq!(finish(child).status.code(), Some(0));
}

#[test]
fn without_room_to_begin_with_a_program_runs_as_if_outlast_were_not_there() {
    let home = Home::new();
    let output = run_in_full_state(&home, "64k", &["sh", "-c", "echo here; kill -15 $$"]).output().unwrap();
    assert_runs_unprotected(&output, "No space left on device");
    assert_eq!(output.status.signal(), Some(libc::SIGTERM), "{}", said(&output));
}

#[test]
fn a_limit_to_the_size_of_files_is_no_reason_not_to_run() {
    let home = Home::new();
    let limited = r#"ulimit -f 100; exec "$0" run --name limited -- sh -c 'echo here; exit 4'"#;
    let mut command = Command::new("sh");
    command.args(["-c", limited, env!("CARGO_BIN_EXE_outlast")]).env("OUTLAST_STATE_DIR", home.state());
    let output = command.output().unwrap();
    assert_runs_unprotected(&output, "File too large");
    assert_eq!(output.status.code(), Some(4), "{}", said(&output));
    assert!(home.status("limited").is_null(), "nothing is left of it");
}

fn assert_runs_unprotected(output: &Output, why: &str) {
    assert_eq!(String::from_utf8_lossy(&output.stdout), "here\n", "{}", said(output));
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("it runs unprotected") && told.contains(why) && told.lines().count() == 1, "{told}");
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
