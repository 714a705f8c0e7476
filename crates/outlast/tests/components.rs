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
    drop(log);
    assert_eq!(run(&["rm", "shop"]).status.code(), Some(0));
    assert_eq!(run(&["log", "shop"]).status.code(), Some(2));
}

#[test]
fn systems_of_components_are_listed_while_they_run_and_with_all_afterwards() {
    let home = Home::new();
    let ps = |args: &[&str]| {
        let output = home.outlast(args).output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        String::from_utf8(output.stdout).unwrap()
    };
    let mut log = system(&home);
    for component in ["lock", "event"] {
        log.tell(component, &Happened::Begun(component.into()));
    }
    log.tell("lock", &died());
    log.tell("lock", &Happened::Serves(Serves { process: 4712, took: Duration::from_nanos(340_100), is_first: false }));
    log.tell("event", &Happened::GivenUp("too often".into()));
    let words = |text: &str| text.split_whitespace().map(String::from).collect::<Vec<_>>();
    let pid = std::process::id().to_string();
    assert_eq!(words(ps(&["ps"]).lines().last().unwrap()), ["shop", &pid, "2", "components", "-", "1", "event"]);
    let all: Vec<Value> = serde_json::from_str(&ps(&["ps", "--json"])).unwrap();
    let of = |all: &[Value]| ["name", "state", "recoveries"].map(|key| all[0][key].to_string());
    assert_eq!((all.len(), of(&all)), (1, ["\"shop\"", "\"running\"", "1"].map(String::from)));
    let component =
        |at: usize| ["name", "state", "recoveries", "hangs"].map(|key| all[0]["components"][at][key].to_string());
    assert_eq!(component(0), ["\"event\"", "\"given up\"", "0", "0"]);
    assert_eq!(component(1), ["\"lock\"", "\"serving\"", "1", "0"]);
    // A program of that name is none of it; this process goes on without the system.
    drop(log);
    assert!(ps(&["ps"]).is_empty());
    assert_eq!(words(ps(&["ps", "-a"]).lines().last().unwrap()), ["shop", "-", "ended", "-", "1", "event"]);
    let run = home.outlast(["run", "--name", "shop", "--", "true"]).output().unwrap();
    assert_eq!(run.status.code(), Some(0));
    let all: Vec<Value> = serde_json::from_str(&ps(&["ps", "-a", "--json"])).unwrap();
    assert!(all.len() == 1 && all[0]["components"].is_null(), "{all:?}");
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
