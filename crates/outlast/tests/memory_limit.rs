//! Programs in control groups that limit memory: what the OOM killer kills comes back as soon as there is memory.

#[path = "memory_limit/group.rs"]
mod group;
mod support;

use group::Group;
use serde_json::Value;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use support::{finish, kill, said, until, Home};

const MIB: u64 = 1 << 20;

/// The program in hungry.c.
fn hungry(home: &Home) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/memory_limit/hungry.c");
    let program = home.file("hungry");
    let output = Command::new("gcc").args(["-O2", "-Wall", "-o"]).arg(&program).arg(source).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    program
}

/// `outlast run` in the group, of a program that wants `mib` and that the OOM killer prefers.
fn start(home: &Home, group: &Group, program: &Path, mib: u64) -> Child {
    let outlast = home.outlast(["run", "--name", "hungry", "--"]);
    let mut command = Command::new("sh");
    command.args(["-c", "echo 300 > /proc/self/oom_score_adj; exec \"$@\"", "sh"]);
    command.arg(outlast.get_program()).args(outlast.get_args()).arg(program).arg(mib.to_string());
    command.env("OUTLAST_STATE_DIR", home.state()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    group.starts(&mut command);
    command.spawn().unwrap()
}

/// A neighbour in the group that holds memory.
struct Neighbour(Child);

impl Neighbour {
    fn new(group: &Group, program: &Path, mib: u64) -> Neighbour {
        let mut command = Command::new(program);
        command.arg("hold").arg(mib.to_string()).stdout(Stdio::piped());
        group.starts(&mut command);
        let mut child = command.spawn().unwrap();
        let mut told = [0; 11];
        child.stdout.take().unwrap().read_exact(&mut told).unwrap();
        assert_eq!(&told, b"begun\nfull\n");
        Neighbour(child)
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn what_lacks_memory_because_of_others_goes_on_when_they_are_gone() {
    let Some(group) = Group::new(300 * MIB) else { return };
    let home = Home::new();
    let program = hungry(&home);
    // Each holds less than the program will when there is no more: the OOM killer spares them.
    let neighbours = [100, 100].map(|mib| Neighbour::new(&group, &program, mib));
    let child = start(&home, &group, &program, 96);
    home.await_event("hungry", "oom-killed", 2);
    drop(neighbours);
    let output = finish(child);
    assert_eq!((output.status.code(), &*output.stdout), (Some(0), &b"begun\nfull\nright\n"[..]), "{}", said(&output));
    let log = home.log("hungry");
    let killed = log.iter().find(|entry| entry["event"] == "oom-killed").unwrap();
    let cause = killed["cause"].as_str().unwrap();
    assert!(cause.contains("outlast-test.") && cause.contains(&(300 * MIB).to_string()), "{cause}");
}

#[test]
fn what_always_lacks_memory_is_given_up_and_goes_on_with_more() {
    let Some(group) = Group::new(100 * MIB) else { return };
    let home = Home::new();
    let program = hungry(&home);
    let output = finish(start(&home, &group, &program, 150));
    assert_eq!((output.status.signal(), &*output.stdout), (Some(libc::SIGKILL), &b"begun\n"[..]), "{}", said(&output));
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(message.contains("lack of memory") && message.contains("outlast-test."), "{message}");
    let log = home.log("hungry");
    let times = |event: &str| log.iter().filter(|entry| entry["event"] == event).count();
    assert_eq!((times("oom-killed"), times("gave-up")), (9, 1), "{log:#?}");
    assert_eq!(home.status("hungry")["state"], "resumable");

    group.allow(600 * MIB);
    let mut resume = home.outlast(["resume", "hungry"]);
    group.starts(&mut resume);
    let output = finish(resume.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    assert_eq!((output.status.code(), &*output.stdout), (Some(0), &b"full\nright\n"[..]), "{}", said(&output));
}

#[test]
fn what_waits_for_memory_can_be_stopped() {
    let Some(group) = Group::new(100 * MIB) else { return };
    let home = Home::new();
    let child = start(&home, &group, &hungry(&home), 150);
    home.await_event("hungry", "oom-killed", 4);
    let stopped = home.outlast(["stop", "hungry"]).output().unwrap();
    assert!(stopped.status.success(), "{}", said(&stopped));
    assert!(finish(child).status.signal().is_some());
    assert_eq!(home.status("hungry")["state"], "exited");
}

#[test]
fn a_recovered_program_is_where_the_dead_one_was() {
    let (Some(first), Some(second)) = (Group::new(300 * MIB), Group::new(300 * MIB)) else { return };
    let home = Home::new();
    let door = home.door();
    let mut command =
        home.run_script("moved", &format!("echo 700 > /proc/self/oom_score_adj; {}; exit 4", door.wait()));
    first.starts(&mut command);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let status = home.await_protected("moved");
    let score = |status: &Value| std::fs::read_to_string(format!("/proc/{}/oom_score_adj", status["pid"])).unwrap();
    until("a score", || score(&status) == "700\n");
    second.take(&status["pid"]);
    // Only groups of the second version outlive their members: that it has moved is seen when it is looked next, which is every five
    // seconds, and later on a busy machine.
    std::thread::sleep(Duration::from_secs(15));
    for victims in [&["pid"][..], &["anchor", "pid"]] {
        let recoveries = home.status("moved")["recoveries"].as_u64();
        victims.iter().for_each(|victim| kill(&home.status("moved")[victim], libc::SIGKILL));
        let again = home.await_status("moved", |status| {
            status["protected"] == true && status["recoveries"].as_u64() > recoveries && status["anchor"].is_i64()
        });
        // It runs before it is put in its place.
        until("the place of the dead one", || second.has(&again["pid"]) && !first.has(&again["pid"]));
        until("the dead one's score", || score(&again) == "700\n");
        assert_eq!(again["degradations"], Value::Array(vec![]));
    }
    door.open();
    assert_eq!(finish(child).status.code(), Some(4));
}

#[test]
fn what_another_supervisor_starts_is_not_in_its_group_but_where_the_dead_one_was() {
    let (Some(theirs), Some(ours)) = (Group::new(300 * MIB), Group::new(300 * MIB)) else { return };
    let home = Home::new();
    let door = home.door();
    // Once it is gone no anchor can start it.
    let outlast = home.executable("outlast", &std::fs::read(env!("CARGO_BIN_EXE_outlast")).unwrap());
    let mut command = Command::new(&outlast);
    let script = format!("{}; exit 4", door.wait());
    command.args(["run", "--name", "strayed", "--", "sh", "-c", &script]).env("OUTLAST_STATE_DIR", home.state());
    theirs.starts(&mut command);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let status = home.await_protected("strayed");
    std::fs::remove_file(&outlast).unwrap();
    ["pid", "supervisor"].iter().for_each(|victim| kill(&status[victim], libc::SIGKILL));
    child.wait().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    // An anchor that does not answer: who comes now starts a process from the store.
    kill(&status["anchor"], libc::SIGSTOP);
    let mut ps = home.outlast(["ps"]);
    ours.starts(&mut ps);
    assert!(ps.output().unwrap().status.success());
    let again = home.await_status("strayed", |again| {
        again["protected"] == true && again["anchor"].is_i64() && again["anchor"] != status["anchor"]
    });
    assert!(ours.has(&again["supervisor"]), "{again}");
    until("the place of the dead one", || theirs.has(&again["pid"]) && !ours.has(&again["pid"]));
    door.open();
    home.await_status("strayed", |status| status["state"] == "exited");
}

#[test]
fn check_tells_of_a_limit() {
    let Some(group) = Group::new(200 * MIB) else { return };
    let home = Home::new();
    let mut check = home.outlast(["check", "--json"]);
    group.starts(&mut check);
    let report: Value = serde_json::from_slice(&check.output().unwrap().stdout).unwrap();
    let findings = report["findings"].as_array().unwrap();
    let limit = findings.iter().find(|finding| finding["what"] == "memory-limit").unwrap_or_else(|| panic!("{report}"));
    assert!(limit["bearing"] == "note" && limit["text"].as_str().unwrap().contains("200 MiB"), "{limit}");
}

#[test]
fn an_anchor_holds_none_of_the_programs_memory() {
    let home = Home::new();
    // A limit is inherited: there is a new anchor afterwards, a copy of the program as it is then.
    let script =
        "import resource, sys; x = bytearray(b'x') * (96 << 20); resource.setrlimit(resource.RLIMIT_CORE, (0, 0)); \
                  print(1, flush=True); sys.stdin.read(); print(len(x), flush=True)";
    let mut command = home.outlast(["run", "--name", "late", "--", "/usr/bin/python3", "-c", script]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdout.as_mut().unwrap().read_exact(&mut [0; 2]).unwrap();
    let status = home.await_status("late", |status| status["anchor"].is_i64());
    let memory = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", status["anchor"])).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap()
    };
    until("an anchor with little memory", || memory() < 32 << 10);
    kill(&status["pid"], libc::SIGKILL);
    home.await_event("late", "recovered", 1);
    drop(child.stdin.take());
    let output = finish(child);
    assert_eq!(&*output.stdout, format!("{}\n", 96 << 20).as_bytes(), "{}", said(&output));
}
