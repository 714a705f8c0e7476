//! Figures for Prometheus agree with what the other commands say.

mod support;

use std::fs;
use support::{kill, said, Home};

/// The figure with these labels in the text.
fn figure(text: &str, what: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix(what)?.trim().parse().ok())
}

#[test]
fn figures_agree_with_what_happened() {
    let home = Home::new();
    let door = home.door();
    let child = home.start_script("it", &format!("echo begun; {}; exit 3", door.wait()));
    for n in 1..=3 {
        kill(&home.await_protected("it")["pid"], libc::SIGKILL);
        home.await_event("it", "recovered", n);
    }
    let status = home.await_protected("it");
    let file = home.file("outlast.prom");
    let output = home.outlast(["metrics", "--output"]).arg(&file).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let text = fs::read_to_string(&file).unwrap();
    assert_eq!(figure(&text, "outlast_recoveries_total{name=\"it\"}"), Some(3.0), "{text}");
    assert_eq!(figure(&text, "outlast_events_total{name=\"it\",event=\"recovered\"}"), Some(3.0), "{text}");
    assert_eq!(figure(&text, "outlast_protected{name=\"it\"}"), Some(1.0), "{text}");
    assert!(figure(&text, "outlast_commits_total{name=\"it\"}") >= status["commits"].as_f64(), "{text}");
    assert!(figure(&text, "outlast_last_commit_age_seconds{name=\"it\"}").is_some(), "{text}");
    let [median, p99] =
        ["median", "p99"].map(|which| figure(&text, &format!("outlast_commit_{which}_seconds{{name=\"it\"}}")));
    assert!(median > Some(0.0) && median <= p99, "{text}");
    assert!(figure(&text, "outlast_store_bytes{name=\"it\"}") > Some(0.0), "{text}");
    assert!(text.ends_with("# EOF\n"), "{text}");
    door.open();
    assert_eq!(support::finish(child).status.code(), Some(3));
    let output = home.outlast(["metrics"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(figure(&text, "outlast_protected{name=\"it\"}"), Some(0.0), "{text}");
    assert_eq!(figure(&text, "outlast_events_total{name=\"it\",event=\"exit\"}"), Some(1.0), "{text}");
}

#[test]
fn what_cannot_be_written_leaves_nothing_behind() {
    let home = Home::new();
    let folder = home.file("folder");
    fs::create_dir_all(folder.join("taken")).unwrap();
    for name in ["taken", "none/a"] {
        let output = home.outlast(["metrics", "--output"]).arg(folder.join(name)).output().unwrap();
        assert!(output.status.code() == Some(1) && said(&output).contains("cannot write"), "{}", said(&output));
    }
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
}
