//! The campaign of faults in components, in short: what it counts is what was done.

use std::process::{Command, Output};

use serde_json::Value;

fn campaign(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_glue-campaign")).args(arguments).output().expect("the command")
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// One object a service.
fn counted(arguments: &[&str]) -> Vec<Value> {
    let output = campaign(arguments);
    assert!(output.status.success(), "{}", said(&output));
    let text = String::from_utf8(output.stdout).expect("text");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn list(faults: &str) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), faults).expect("written");
    file
}

#[test]
fn deaths_of_every_service_are_recovered_from_and_counted() {
    let kills = list("[[fault]]\nkind = 'signal'\nsignal = 'SIGKILL'\n");
    let path = kills.path().to_str().expect("text");
    let services = counted(&["--faults", "5", "--json", "--list", path]);
    assert_eq!(services.len(), 6);
    for service in services {
        assert_eq!((&service["injected"], &service["recovered"]), (&5.into(), &5.into()), "{service}");
    }
}

#[test]
fn bits_of_registers_are_counted_once_each_and_failures_by_cause() {
    let services = counted(&["--faults", "20", "--json", "lock"]);
    let outcomes = ["no effect", "recovered", "error", "wrong", "client crashed", "stuck"];
    let [lock] = services.as_slice() else { panic!("{services:?}") };
    let count = |name: &str| lock[name].as_u64().expect("a number");
    assert_eq!(outcomes.iter().map(|name| count(name)).sum::<u64>(), 20, "{lock}");
    assert!(count("recovered") > 0, "{lock}");
    let failed = lock["failed"].as_array().expect("causes").iter();
    let failed: usize = failed.map(|cause| cause["faults"].as_array().expect("faults").len()).sum();
    assert_eq!(failed as u64, outcomes[2..].iter().map(|name| count(name)).sum::<u64>(), "{lock}");
}

#[test]
fn what_is_no_list_and_no_service_is_said_to_be_none() {
    let bad = list("[[fault]]\nkind = 'loop'\nsymbol = 'main'\n");
    for arguments in [&["--list", bad.path().to_str().expect("text")][..], &["--list", "/nowhere"], &["nothing"]] {
        let output = campaign(arguments);
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        assert!(!output.stderr.is_empty() && !said(&output).contains("panicked"), "{}", said(&output));
    }
}

#[test]
fn a_steady_run_ends_and_says_the_same_whenever_all_was_right() {
    let run = || said(&campaign(&["steady", "timer", "3", "40"]));
    let (first, second) = (run(), run());
    assert_eq!(first, second);
    assert!(first.starts_with("timer: ") && first.ends_with(" steps right\n"), "{first}");
}
