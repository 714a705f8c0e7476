//! Program, anchor and supervisor can each be killed, and nobody sees it.

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use support::{finish, kill, said, until, Home};

/// Kills what `victims` names in the status, again and again, while a program counts, which goes on until that is over.
fn count_under(victims: &[&str], rounds: u32) -> Home {
    let home = Home::new();
    let door = home.file("door");
    let script = format!("i=0; until [ -e {} ]; do echo $i; i=$((i+1)); done; exit 3", door.display());
    let mut child = home.start_script("counter", &script);
    let mut out = child.stdout.take().unwrap();
    let counting = std::thread::spawn(move || {
        let mut text = String::new();
        out.read_to_string(&mut text).map(|_| text)
    });
    let mut recovered = serde_json::Value::Null;
    for _ in 0..rounds {
        // A busy machine takes its time for a recovery: each is waited for, or the program could not get ahead.
        let before = home.await_status("counter", |status| {
            status["protected"] == true && (!victims.contains(&"pid") || status["recoveries"] != recovered)
        });
        recovered = before["recoveries"].clone();
        // Looked at after that: what was looked at together may be the number of who was dead by then.
        let status = home.await_status("counter", |status| victims.iter().all(|victim| status[victim].is_i64()));
        for victim in victims {
            kill(&status[victim], libc::SIGKILL);
        }
    }
    std::fs::write(door, "").unwrap();
    let output = finish(child);
    let text = counting.join().unwrap().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    let wrong = text.lines().enumerate().find(|(n, line)| *line != n.to_string());
    assert!(wrong.is_none() && text.ends_with('\n'), "lost or repeated: {wrong:?} of {} bytes", text.len());
    home
}

#[test]
fn survives_kills_of_the_program() {
    let home = count_under(&["pid"], 30);
    let events = home.events("counter");
    assert!(events.iter().filter(|event| *event == "recovered").count() > 10, "{events:?}");
    let recovered = home.log("counter").into_iter().find(|entry| entry["event"] == "recovered").unwrap();
    assert_eq!((&recovered["cause"], &recovered["rung"]), (&"SIGKILL".into(), &2.into()));
    assert!(recovered["duration_us"].as_f64().unwrap() > 0.0 && recovered["phase"].is_string(), "{recovered}");
}

#[test]
fn survives_kills_of_the_anchor() {
    let home = count_under(&["anchor"], 30);
    assert!(home.events("counter").contains(&"anchor-renewed".into()), "{:?}", home.events("counter"));
}

#[test]
fn survives_kills_of_program_and_anchor_together() {
    let home = count_under(&["anchor", "pid"], 30);
    assert!(home.events("counter").contains(&"resumed".into()), "{:?}", home.events("counter"));
}

#[test]
fn the_program_goes_on_when_the_supervisor_is_killed_and_the_next_command_replaces_it() {
    let home = Home::new();
    let door = home.door();
    let script = format!("echo one; {}; echo two; exit 4", door.wait());
    let child = home.start_script("orphan", &script);
    let first = home.await_protected("orphan");
    kill(&first["supervisor"], libc::SIGKILL);
    let second = home.await_status("orphan", |status| {
        status["supervisor"].is_i64() && status["supervisor"] != first["supervisor"] && status["protected"] == true
    });
    assert_eq!(second["pid"], first["pid"]);
    kill(&second["pid"], libc::SIGKILL);
    home.await_event("orphan", "recovered", 1);
    door.open();
    // Its first supervisor, our child, was killed; its output ends when the program, and its anchor, have ended.
    let output = finish(child);
    assert_eq!(
        (output.status.signal(), &*output.stdout),
        (Some(libc::SIGKILL), &b"one\ntwo\n"[..]),
        "{}",
        said(&output)
    );
    until("the end in the log", || home.events("orphan").contains(&"exit".into()));
    assert!(home.events("orphan").contains(&"supervisor-restarted".into()));
    // The log says so first.
    home.await_status("orphan", |status| status["ended"] == "exit 4");
}

#[test]
fn another_supervisor_comes_by_itself() {
    let home = Home::new();
    let door = home.door();
    let script = format!("exec sh -c 'echo one; {}; exec sh -c \"echo two; exit 4\"'", door.wait());
    let child = home.start_script("orphan", &script);
    let first = home.await_status("orphan", |status| status["generation"] == 1 && status["protected"] == true);
    // No command is given from here on: any of them would start a supervisor, too.
    let log = home.state().join("orphan").join("log.jsonl");
    let says = |event: &str| std::fs::read_to_string(&log).is_ok_and(|log| log.contains(&format!("\"{event}\"")));
    kill(&first["supervisor"], libc::SIGKILL);
    until("another supervisor", || says("supervisor-restarted"));
    kill(&first["pid"], libc::SIGKILL);
    until("a recovery", || says("recovered"));
    door.open();
    let output = finish(child);
    assert_eq!(&*output.stdout, b"one\ntwo\n", "{}", said(&output));
    until("the end", || says("exit"));
    // The log says so first.
    let status = home.await_status("orphan", |status| status["ended"] == "exit 4");
    assert_eq!(status["generation"], 2, "{:#?}", home.log("orphan"));
    assert_eq!(home.events("orphan").iter().filter(|event| *event == "injected").count(), 1);
}

#[test]
fn a_supervisor_and_its_program_may_die_together() {
    let home = Home::new();
    let door = home.door();
    let script = format!("echo one; {}; echo two", door.wait());
    let child = home.start_script("both", &script);
    let first = home.await_protected("both");
    kill(&first["supervisor"], libc::SIGKILL);
    kill(&first["pid"], libc::SIGKILL);
    let log = home.state().join("both").join("log.jsonl");
    until("a recovery", || std::fs::read_to_string(&log).is_ok_and(|log| log.contains("recovered")));
    door.open();
    let output = finish(child);
    assert_eq!(&*output.stdout, b"one\ntwo\n", "{}", said(&output));
}

#[test]
fn keeps_its_process_id_where_the_kernel_allows_it() {
    let home = Home::new();
    let door = home.door();
    let script = format!("echo $$; {}; echo $$", door.wait());
    let child = home.start_script("same", &script);
    let status = home.await_protected("same");
    kill(&status["pid"], libc::SIGKILL);
    home.await_event("same", "recovered", 1);
    let again = home.await_protected("same");
    door.open();
    let output = String::from_utf8(finish(child).stdout).unwrap();
    let lines: Vec<&str> = output.lines().collect();
    assert_eq!(lines[0], lines[1], "the program sees another id");
    let changed = again["degradations"].as_array().unwrap().contains(&"pid-changed".into());
    assert_eq!(again["pid"] != status["pid"], changed, "{again}");
}

#[test]
fn what_only_computes_is_committed_now_and_then() {
    let home = Home::new();
    // What starts it may be seen; from then on it does nothing that anybody could see.
    let child = home.start_script("busy", "echo begun; i=0; while :; do i=$((i+1)); done");
    until("the start is committed", || home.status("busy")["commits"].as_u64() >= Some(2));
    let before = home.status("busy")["commits"].as_u64();
    until("two more commits", || home.status("busy")["commits"].as_u64() >= before.map(|n| n + 2));
    home.outlast(["stop", "busy"]).output().unwrap();
    finish(child);
}

#[test]
fn a_fault_that_repeats_is_given_up_and_is_the_programs_end() {
    let home = Home::new();
    let mut run = home.outlast(["run", "--name", "faulty", "--retries", "2", "--", "sh", "-c", "kill -SEGV $$"]);
    let output = run.output().unwrap();
    assert_eq!(output.status.signal(), Some(libc::SIGSEGV), "{}", said(&output));
    let log = home.log("faulty");
    let rollbacks: Vec<_> = log.iter().filter(|entry| entry["event"] == "rollback").collect();
    assert_eq!(rollbacks.len(), 2, "{log:?}");
    assert!(
        rollbacks.iter().all(|entry| entry["cause"] == "SIGSEGV" && entry["duration_us"].as_f64() > Some(0.0)),
        "{log:?}"
    );
    assert!(log.iter().any(|entry| entry["event"] == "gave-up" && entry["rung"] == 7), "{log:?}");
    assert_eq!(home.status("faulty")["ended"], "SIGSEGV");
}

#[test]
fn the_share_of_rewritten_calls_is_told() {
    let home = Home::new();
    let child = home.start_script("busy", "i=0; while :; do i=$((i+1)); echo $i > /dev/null; umask > /dev/null; done");
    until("sites are rewritten", || home.status("busy")["rewritten_sites"].as_u64() > Some(0));
    until("most calls come from them", || home.status("busy")["rewritten_share"].as_f64() > Some(0.5));
    home.outlast(["stop", "busy"]).output().unwrap();
    finish(child);
}

/// A kill ends a long write early: what is left of it follows, and the program hears of the whole. False: on a busy machine the kill came
/// too late for that.
fn is_cut_short_and_completed() -> bool {
    const LEN: u64 = 200 << 20;
    let home = Home::new();
    let file = home.file("long");
    let script = format!(
        "import os, sys\nfd = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY | os.O_APPEND)\nwhile not os.path.exists(sys.argv[2]): pass\nprint(os.write(fd, bytes({LEN})))"
    );
    let mut run = home.outlast(["run", "--name", "long", "--", "python3", "-c", &script]);
    let child = run
        .arg(&file)
        .arg(home.file("door"))
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    until("its beginning", || file.exists());
    let pid = home.await_protected("long")["pid"].clone();
    home.door().open();
    let len = || std::fs::metadata(&file).map_or(0, |file| file.len());
    while len() == 0 {
        std::hint::spin_loop();
    }
    let is_in_time = len() < LEN;
    kill(&pid, libc::SIGKILL);
    let output = finish(child);
    assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{LEN}\n"), "{}", said(&output));
    assert_eq!(len(), LEN);
    is_in_time
}

#[test]
fn an_append_that_a_death_cut_short_is_completed() {
    assert!((0..20).any(|_| is_cut_short_and_completed()), "it was written before it could be killed");
}

/// Computes, in which it takes signals, until one of them says that it is enough and for a moment more, then waits for less than a second.
const WAITS: &str = "import select, signal, time
enough = []
signal.signal(signal.SIGUSR1, lambda *_: None)
signal.signal(signal.SIGUSR2, lambda *_: enough.append(1))
print('begins', flush=True)
while not enough: pass
end = time.monotonic() + 0.5
while time.monotonic() < end: pass
select.poll().poll(300)
print('done', flush=True)
";

#[test]
fn a_wait_ends_though_a_rollback_came_while_signals_were_held_from_another() {
    let home = Home::new();
    let out = home.file("out");
    let mut run = home.outlast(["run", "--name", "waits", "--", "/usr/bin/python3", "-c", WAITS]);
    let child = run.stdout(std::fs::File::create(&out).unwrap()).stderr(Stdio::piped()).spawn().unwrap();
    // By then it handles signals.
    until("its beginning", || std::fs::read(&out).unwrap() == b"begins\n");
    let pid = home.await_protected("waits")["pid"].clone();
    let rollbacks = || home.events("waits").iter().filter(|event| *event == "rollback").count();
    // All that comes while a busy machine lets it do nothing may be met by one.
    until("two rollbacks", || {
        // Two of a kind at one place would be a failure that repeats.
        for fatal in [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL].repeat(3) {
            for signal in [libc::SIGUSR1, fatal] {
                kill(&pid, signal);
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        rollbacks() > 1
    });
    kill(&pid, libc::SIGUSR2);
    let output = finish(child);
    assert_eq!(std::fs::read_to_string(&out).unwrap(), "begins\ndone\n", "{}", said(&output));
}

/// A group that limits processes; removed with the value.
struct Crowd(PathBuf);

impl Crowd {
    /// None, and a line that says so, where this user may make none.
    fn new() -> Option<Crowd> {
        for top in ["/sys/fs/cgroup/pids", "/sys/fs/cgroup"] {
            let crowd = Crowd(Path::new(top).join(format!("outlast-test.crowd.{}", std::process::id())));
            if std::fs::create_dir(&crowd.0).is_ok() && crowd.0.join("pids.max").exists() {
                return Some(crowd);
            }
        }
        println!("skipped: no control group that limits processes can be made here");
        None
    }

    fn write(&self, file: &str, value: &str) {
        std::fs::write(self.0.join(file), value).unwrap();
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        until("an empty group", || std::fs::remove_dir(&self.0).is_ok() || !self.0.exists());
    }
}

#[test]
fn what_the_kernel_refuses_a_process_is_recovered_from_its_anchor_when_it_gets_one() {
    let Some(crowd) = Crowd::new() else { return };
    let home = Home::new();
    let (door, mut command) = (home.door(), home.outlast(["run", "--name", "crowded", "--", "sh", "-c"]));
    // A pipe that only the anchor keeps open: from its store alone the program would find it closed.
    command.arg(format!("{}; read line; echo $line; exit 5", door.wait()));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let status = home.await_protected("crowded");
    for who in ["supervisor", "anchor", "pid"] {
        crowd.write("cgroup.procs", &status[who].to_string());
    }
    crowd.write("pids.max", "1");
    kill(&status["pid"], libc::SIGKILL);
    // Longer than the first tries take.
    std::thread::sleep(Duration::from_millis(500));
    assert!(!home.events("crowded").contains(&"gave-up".into()), "{:?}", home.events("crowded"));
    crowd.write("pids.max", "max");
    home.await_event("crowded", "recovered", 1);
    child.stdin.take().unwrap().write_all(b"said\n").unwrap();
    door.open();
    let output = finish(child);
    assert_eq!((output.status.code(), &*output.stdout), (Some(5), &b"said\n"[..]), "{}", said(&output));
    let rungs: Vec<_> = home.log("crowded").into_iter().filter(|entry| entry["event"] == "recovered").collect();
    assert!(rungs.len() == 1 && rungs[0]["rung"] == 2, "{rungs:?}");
}

#[test]
fn what_outlast_cannot_say_is_no_reason_to_end() {
    let home = Home::new();
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let mut command = home.run_script("unheard", "kill -SEGV $$");
    let status = command.stdout(Stdio::null()).stderr(full).status().unwrap();
    assert_eq!(status.signal(), Some(libc::SIGSEGV), "{status}");
    assert_eq!(home.status("unheard")["state"], "exited");
    let status = home
        .outlast(["log", "nobody"])
        .stderr(std::fs::File::options().write(true).open("/dev/full").unwrap())
        .status();
    assert_eq!(status.unwrap().code(), Some(2));
}

/// The other side of a terminal comes from an ioctl (TIOCGPTPEER), as a library opens it.
#[test]
fn a_terminal_of_its_own_has_both_its_sides_after_a_death() {
    const ECHOES: &str = "import os, pty, sys
ours, theirs = pty.openpty()
for line in sys.stdin:
    os.write(theirs, line.encode())
    print(os.isatty(theirs), os.read(ours, 100), flush=True)";
    let home = Home::new();
    let mut run = home.outlast(["run", "--name", "echoes", "--", "python3", "-c", ECHOES]);
    let mut child = run.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut input, mut output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    for _ in 0..4 {
        input.write_all(b"on\n").unwrap();
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        assert_eq!(line, "True b'on\\r\\n'\n", "{:#?}", home.log("echoes"));
        kill(&home.status("echoes")["pid"], libc::SIGKILL);
    }
    drop(input);
    let output = finish(child);
    assert!(output.status.success(), "{} {:#?}", said(&output), home.log("echoes"));
}
