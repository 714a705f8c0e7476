//! A system of components has a log as a program has, under a name of its own.

mod support;

use outlast_glue_log::SystemLog;
use outlast_glue_rt::{Happened, Tell};
use outlast_interfaces::comp::{Death, Serves};
use outlast_interfaces::proc::End;
use outlast_supervisor::state_folder::StateFolder;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Duration;
use support::Home;

fn system(home: &Home) -> SystemLog {
    let state = StateFolder::open_at(home.state()).unwrap();
    SystemLog::create_in(&state, "shop").unwrap()
}

fn died() -> Happened {
    Happened::Died(Death {
        process: 4711,
        end: Some(End::Killed(libc::SIGSEGV)),
        hung: false,
        completed: 90,
        started: true,
        wanted: true,
        lived: Duration::from_secs(1),
        descriptors: 12,
        recovered: 11,
    })
}

#[test]
fn the_log_of_a_system_of_components_is_shown_and_followed_until_that_has_ended() {
    let home = Home::new();
    let mut log = system(&home);
    log.tell("lock", &Happened::Begun("locks".into()));
    let mut child = home.outlast(["log", "-f", "shop"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.next().unwrap().ends_with("  started: lock, as locks"));
    log.tell("lock", &died());
    assert!(lines.next().unwrap().ends_with("  died of SIGSEGV in lock; it had 12 descriptors, 11 recovered"));
    log.tell("lock", &Happened::Serves(Serves { process: 4712, took: Duration::from_nanos(340_100), is_first: false }));
    assert!(lines.next().unwrap().ends_with("  recovered from SIGSEGV in lock (340.1 µs)"));
    drop(log);
    assert_eq!((lines.next(), child.wait().unwrap().code()), (None, Some(0)));

    let output = home.outlast(["log", "--json", "shop"]).output().unwrap();
    let lines: Vec<Value> =
        String::from_utf8(output.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |line: &Value| ["event", "component", "descriptors", "recovered", "pid"].map(|key| line[key].to_string());
    assert_eq!(of(&lines[1]), ["\"killed\"", "\"lock\"", "12", "11", "4711"]);
    assert_eq!(of(&lines[2])[..2], ["\"recovered\"", "\"lock\""]);
    assert_eq!(lines[2]["duration_us"], 340.1);
}

#[test]
fn a_system_of_components_that_runs_keeps_its_name() {
    let home = Home::new();
    let log = system(&home);
    let run = |args: &[&str]| home.outlast(args).output().unwrap();
    assert_eq!(run(&["rm", "shop"]).status.code(), Some(1));
    assert_eq!(run(&["run", "--name", "shop", "--", "true"]).status.code(), Some(2));
    assert!(run(&["ps", "-a"]).stdout.is_empty());
    drop(log);
    assert_eq!(run(&["rm", "shop"]).status.code(), Some(0));
    assert_eq!(run(&["log", "shop"]).status.code(), Some(2));
}

#[test]
fn pin_and_module_of_components_are_listed() {
    let home = Home::new();
    let row = |what: &str, name: &str| {
        let output = home.outlast([what, "list", "--json"]).output().unwrap();
        let rows: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
        rows.into_iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("{what} {name}"))
    };
    assert_eq!(row("pin", "comp")["events"][0], "died");
    assert_eq!(row("module", "reboot")["kind"], "built-in");
}
