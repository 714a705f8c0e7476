//! ps, log, commit, stop, rm, completions and the manual.

mod support;

use std::os::unix::process::ExitStatusExt;
use std::time::Duration;
use support::{finish, kill_everything, said, trace, traced, Home};

const WAITS: &str = "while :; do read x < /dev/null; done";

#[test]
fn names_are_made_from_the_program_and_numbered() {
    let home = Home::new();
    let children: Vec<_> = (0..3).map(|_| home.outlast(["run", "--", "sh", "-c", WAITS]).spawn().unwrap()).collect();
    for name in ["sh", "sh-2", "sh-3"] {
        home.await_protected(name);
    }
    let taken = home.run_script("sh-2", "exit 0").output().unwrap();
    assert_eq!(taken.status.code(), Some(2), "{}", said(&taken));
    assert!(home.outlast(["stop", "sh-2"]).status().unwrap().success());
    // A name is free again once its program has ended.
    assert!(home.run_script("sh-2", "exit 0").status().unwrap().success());
    drop(home);
    for child in children {
        finish(child);
    }
}

#[test]
fn stop_returns_when_the_name_is_free() {
    let home = Home::new();
    let child = home.start_script("held", WAITS);
    home.await_protected("held");
    let supervisor = child.id() as i32;
    trace(libc::PTRACE_SEIZE, supervisor, 0);
    let mut stop = home.outlast(["stop", "held"]).spawn().unwrap();
    // It has cleared everything away, is about to end as its program did, and still holds the name.
    assert_eq!(libc::WSTOPSIG(traced(supervisor)), libc::SIGTERM);
    assert!(!home.state().join("held/session").exists());
    std::thread::sleep(Duration::from_millis(50));
    assert!(stop.try_wait().unwrap().is_none());
    trace(libc::PTRACE_DETACH, supervisor, libc::SIGTERM as u64);
    assert!(stop.wait().unwrap().success());
    assert_eq!(finish(child).status.signal(), Some(libc::SIGTERM));
}

#[test]
fn ps_tells_what_runs() {
    let home = Home::new();
    let child = home.start_script("shown", WAITS);
    let status = home.await_protected("shown");
    assert_eq!(status["pids"], serde_json::json!([status["pid"]]));
    assert_eq!((&status["state"], &status["recoveries"]), (&"protected".into(), &0.into()));
    assert_eq!(status["supervisor"], child.id());
    assert!(status["commits"].as_u64() >= Some(1) && status["dirty_pages"].is_u64(), "{status}");
    assert!(status["last_commit_age_us"].as_f64() > Some(0.0), "{status}");
    let [all, largest] = ["log_bytes", "log_largest_bytes"].map(|field| status[field].as_u64().unwrap());
    // The first commit has all pages of python3.
    assert!(largest > 4096 && all >= largest && all < 1 << 32, "{status}");
    assert_eq!(status["store"], home.state().join("shown/store").to_str().unwrap());
    assert_eq!(status["degradations"], serde_json::json!([]));
    let table = String::from_utf8(home.outlast(["ps"]).output().unwrap().stdout).unwrap();
    let row = table.lines().find(|line| line.starts_with("shown ")).unwrap();
    assert!(row.contains("protected"), "{table}");
    drop(home);
    finish(child);
}

#[test]
fn modules_are_listed_with_the_programs_that_they_protect_and_pins_with_what_they_can_do() {
    let home = Home::new();
    let door = home.door();
    let child = home.start_script("listed", &door.wait());
    home.await_protected("listed");
    let list = |words: [&str; 3]| -> serde_json::Value {
        serde_json::from_slice(&home.outlast(words).output().unwrap().stdout).unwrap()
    };
    let modules = list(["module", "list", "--json"]);
    let protects =
        |name: &str| modules.as_array().unwrap().iter().find(|m| m["name"] == name).unwrap()["programs"].clone();
    for name in ["crash", "visible", "checkpoint", "storm"] {
        assert_eq!(protects(name), serde_json::json!(["listed"]), "{name}");
    }
    let pins = list(["pin", "list", "--json"]);
    let names: Vec<_> = pins.as_array().unwrap().iter().map(|pin| pin["name"].as_str().unwrap()).collect();
    // RMK's Table 3, and what is between nodes.
    let of_table = ["pmc", "apic", "dbr", "intr", "sig", "mem", "schl", "peri", "net", "sysc", "file", "ipc"];
    for name in of_table.into_iter().chain(["node", "channel"]) {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    for pin in pins.as_array().unwrap() {
        let does_something = pin["operations"].as_array().unwrap().len() + pin["events"].as_array().unwrap().len() > 0;
        assert!(does_something, "{pin}");
        // Those of the kernel say so until there is one.
        let waits = pin["missing"].as_str().is_some_and(|why| why.contains("kernel side"));
        assert_eq!(waits, ["intr", "apic"].contains(&pin["name"].as_str().unwrap()), "{pin}");
    }
    let table = home.outlast(["pin", "list"]).output().unwrap();
    let table = String::from_utf8(table.stdout).unwrap();
    let nmi = table.lines().find(|line| line.starts_with("apic ")).unwrap();
    assert!(nmi.contains("route send") && nmi.contains(" nmi ") && nmi.contains("needs the kernel side"), "{table}");
    door.open();
    finish(child);
    let after = list(["module", "list", "--json"]);
    assert!(after.as_array().unwrap().iter().all(|m| m["programs"] == serde_json::json!([])), "{after}");
}

/// RMK's Table 4, which is about the kernel as well.
#[test]
fn classes_of_outcomes_are_listed_beside_those_of_the_paper() {
    let home = Home::new();
    let output = home.outlast(["report", "--classes", "--json"]).output().unwrap();
    let rows: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}"));
    let rows = rows.as_array().unwrap();
    let row = |name: &str| rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("{name}: {rows:?}"));
    assert_eq!(row("correct output")["classes"], serde_json::json!(["not activated", "correct"]));
    assert_eq!(row("fail-silence violation")["classes"], serde_json::json!(["fail-silence violation", "went back"]));
    for name in ["kernel exception", "silent hang"] {
        assert!(row(name)["missing"].as_str().unwrap().contains("kernel side"), "{rows:?}");
    }
    let text = home.outlast(["report", "--classes"]).output().unwrap();
    assert!(text.status.success() && text.stdout.starts_with(b"CATEGORY"), "{}", support::said(&text));
    assert_eq!(home.outlast(["report"]).output().unwrap().status.code(), Some(2));
}

/// Whoever reads `ps --json` and `log --json` relies on these words: they may be added to, never changed.
#[test]
fn words_that_others_rely_on_stay() {
    use outlast_image::{control::state, degradation::Degradation};
    assert_eq!(state::NAMES, ["starting", "protected", "suspended", "exiting", "given-up", "exec"]);
    let degradations: Vec<_> = Degradation::ALL.iter().map(|degradation| degradation.key()).collect();
    let promised = [
        "threads",
        "children",
        "shared-mapping",
        "no-io-uring",
        "pid-changed",
        "store-full",
        "vector-state",
        "unknown-call",
        "privileged-program",
        "unreadable-program",
        "trace-forbidden",
        "no-tracker",
        "descriptor-lost",
        "mapping-lost",
        "address-taken",
        "kernel-object",
        "foreign-abi",
        "engine-error",
        "signal-lost",
    ];
    assert_eq!(degradations[..promised.len()], promised);

    let home = Home::new();
    let door = home.door();
    let script = door.wait();
    let child = home.start_script("words", &script);
    let status = home.await_protected("words");
    let mut fields = vec!["name", "pid", "pids", "anchor", "supervisor", "state", "store", "commits", "recoveries"];
    fields.extend(["last_commit_age_us", "dirty_pages", "protected", "degradations", "generation", "command"]);
    fields.extend([
        "started",
        "ended",
        "log_bytes",
        "log_largest_bytes",
        "commit_us",
        "calls",
        "rollbacks",
        "store_bytes",
    ]);
    for field in fields {
        assert!(status.get(field).is_some(), "{field} is missing: {status}");
    }
    // The engine is ready a moment before the log says so.
    home.await_event("words", "injected", 1);
    kill_everything(&status);
    home.await_status("words", |status| status["state"] == "resumable");
    finish(child);
    let resumed = home.outlast(["resume", "words"]).spawn().unwrap();
    home.await_protected("words");
    door.open();
    finish(resumed);
    assert_eq!(home.status("words")["state"], "exited");
    let log = home.log("words");
    for entry in &log {
        for field in ["time", "event", "cause", "rung", "duration_us"] {
            assert!(entry.get(field).is_some(), "{field} is missing: {entry}");
        }
    }
    let events: Vec<_> = log.iter().map(|entry| entry["event"].as_str().unwrap()).collect();
    for event in ["start", "injected", "resumed", "exit"] {
        assert!(events.contains(&event), "{event}: {events:?}");
    }
}

#[test]
fn ps_of_nothing_is_an_empty_array() {
    let output = Home::new().outlast(["ps", "--json"]).output().unwrap();
    assert_eq!((output.status.code(), &*output.stdout), (Some(0), &b"[]\n"[..]));
}

#[test]
fn commit_commits() {
    let home = Home::new();
    let mut run = home.outlast(["run", "--name", "manual", "--", "sh", "-c", WAITS]);
    let child = run.spawn().unwrap();
    let before = home.await_protected("manual");
    let output = home.outlast(["commit", "manual"]).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert!(home.status("manual")["commits"].as_u64() > before["commits"].as_u64());
    drop(home);
    finish(child);
}

#[test]
fn stop_ends_a_program_for_good() {
    let home = Home::new();
    let child = home.start_script("mild", WAITS);
    home.await_protected("mild");
    assert!(home.outlast(["stop", "mild"]).status().unwrap().success());
    assert_eq!(finish(child).status.signal(), Some(libc::SIGTERM));
    assert_eq!(home.status("mild")["ended"], "SIGTERM");
}

#[test]
fn stop_kills_what_does_not_end_by_itself() {
    let home = Home::new();
    let mut child = home.start_script("stubborn", "trap '' TERM; echo; while :; do read x < /dev/null; done");
    // The trap is set before that.
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut [0]).unwrap();
    assert!(home.outlast(["stop", "stubborn", "--timeout", "100ms"]).status().unwrap().success());
    assert_eq!(finish(child).status.signal(), Some(libc::SIGKILL));
    assert_eq!(home.events("stubborn").last().map(String::as_str), Some("exit"));
}

#[test]
fn rm_forgets_what_does_not_run_and_only_that() {
    let home = Home::new();
    let child = home.start_script("kept", WAITS);
    home.await_protected("kept");
    assert_eq!(home.outlast(["rm", "kept"]).output().unwrap().status.code(), Some(1));
    assert!(home.outlast(["stop", "kept"]).status().unwrap().success());
    finish(child);
    assert!(home.outlast(["rm", "kept"]).status().unwrap().success());
    assert!(!home.state().join("kept").exists());
    assert_eq!(home.outlast(["log", "kept"]).output().unwrap().status.code(), Some(2));
}

#[test]
fn log_follows_until_the_end() {
    let home = Home::new();
    let child = home.start_script("told", WAITS);
    home.await_protected("told");
    let follower = home.outlast(["log", "told", "-f"]).stdout(std::process::Stdio::piped()).spawn().unwrap();
    home.outlast(["stop", "told"]).status().unwrap();
    finish(child);
    let text = String::from_utf8(finish(follower).stdout).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].ends_with("started: sh") && lines.last().unwrap().ends_with("ended: SIGTERM"), "{text}");
}

#[test]
fn every_log_line_has_the_promised_keys() {
    let home = Home::new();
    home.run_script("keys", "exit 0").status().unwrap();
    let log = home.log("keys");
    assert_eq!(home.events("keys"), ["start", "injected", "exit"]);
    for entry in log {
        for key in ["time", "event", "cause", "rung", "duration_us"] {
            assert!(entry.get(key).is_some(), "{key} is missing in {entry}");
        }
        let time = entry["time"].as_str().unwrap();
        assert!(time.len() == "2026-01-01T00:00:00.000000Z".len() && time.ends_with('Z'), "{time}");
    }
}

#[test]
fn completions_and_manual_pages_are_written() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish"] {
        let text = String::from_utf8(home.outlast(["completions", shell]).output().unwrap().stdout).unwrap();
        assert!(text.contains("resume"), "{shell}: {text}");
    }
    assert!(home.outlast(["manual".as_ref(), home.path().as_os_str()]).status().unwrap().success());
    assert!(std::fs::read_to_string(home.file("outlast-run.1")).unwrap().contains("io\\-uring"));
    assert!(home.file("outlast.h.3").exists());
    assert!(home.outlast(["headers".as_ref(), home.path().as_os_str()]).status().unwrap().success());
    assert!(home.file("outlast.h").exists() && home.file("outlast_sections.h").exists());
}
