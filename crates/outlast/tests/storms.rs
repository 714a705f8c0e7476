//! A program that is recovered again and again is told of, once a window, and the administrator's command is run.

mod support;

use std::path::PathBuf;
use std::process::{Child, Stdio};
use support::obedient::Obedient;
use support::{kill, said, until, Home};

fn storms(home: &Home) -> usize {
    home.events("it").iter().filter(|event| *event == "storm").count()
}

fn start(home: &Home, options: &[&str], script: &str) -> Child {
    let mut command = home.outlast(["run", "--name", "it"].iter().chain(options).chain(&["--", "sh", "-c", script]));
    command.env("SECRET", "of the program").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn strike(home: &Home, times: std::ops::RangeInclusive<usize>) {
    for n in times {
        kill(&home.await_protected("it")["pid"], libc::SIGKILL);
        home.await_event("it", "recovered", n);
    }
}

/// A command that writes down how it was run, then does this. What signals it blocks is what those that it begins do: while it begins one, it blocks all.
fn command(home: &Home, then: &str) -> (PathBuf, PathBuf) {
    let told = home.file("told");
    let told_as = told.display();
    let text = format!(
        "#!/bin/sh\n{{ echo pid $$; echo \"args $*\"; env; ls -l /proc/$$/fd; grep SigBlk /proc/self/status; }} > {told_as}.new\n\
         echo once >> {told_as}.times\nmv {told_as}.new {told_as}\n{then}\n"
    );
    (home.executable("alert", text.as_bytes()), told)
}

#[test]
fn a_storm_is_told_of_once_and_the_command_has_nothing_of_the_programs() {
    let home = Home::new();
    let door = home.door();
    let (script, told) = command(&home, "");
    let script = script.to_str().unwrap();
    let options = ["--storm", "3:10m", "--alert", script, "--alert=-s", "--alert", "two words; $HOME"];
    let child = start(&home, &options, &format!("{}; exit 3", door.wait()));
    strike(&home, 1..=3);
    assert!(storms(&home) == 0 && !told.exists());
    strike(&home, 4..=4);
    home.await_event("it", "storm", 1);
    until("the command", || told.exists());
    strike(&home, 5..=12);
    assert_eq!(storms(&home), 1);
    let text = std::fs::read_to_string(&told).unwrap();
    let has = |line: &str| text.lines().any(|other| other == line);
    assert!(has("args -s two words; $HOME"), "{text}");
    for line in ["OUTLAST_NAME=it", "OUTLAST_EVENT=storm", "OUTLAST_RECOVERIES=4", "OUTLAST_WINDOW=600"] {
        assert!(has(line), "{text}");
    }
    assert!(has("SigBlk:\t0000000000000000") && !text.contains("SECRET"), "{text}");
    let kinds = ["pipe:", "socket:", "/session", "memfd"];
    assert!(!kinds.iter().any(|kind| text.contains(kind)), "a descriptor of somebody else's: {text}");
    assert_eq!(std::fs::read_to_string(home.file("told.times")).unwrap(), "once\n");
    let metrics = home.outlast(["metrics"]).output().unwrap();
    assert!(said(&metrics).contains("outlast_events_total{name=\"it\",event=\"storm\"} 1"), "{}", said(&metrics));
    door.open();
    assert_eq!(support::finish(child).status.code(), Some(3));
}

#[test]
fn a_command_that_hangs_or_is_not_there_holds_nobody_up() {
    let home = Home::new();
    let (script, told) = command(&home, "exec sleep 600");
    for program in [script.to_str().unwrap(), "/nowhere/at/all"] {
        let _ = std::fs::remove_file(home.file("door"));
        let door = home.door();
        let options = ["--storm", "1:10m", "--alert", program];
        let child = start(&home, &options, &format!("{}; exit 3", door.wait()));
        strike(&home, 1..=6);
        assert_eq!(storms(&home), 1);
        door.open();
        assert_eq!(support::finish(child).status.code(), Some(3));
    }
    until("the command", || told.exists());
    let text = std::fs::read_to_string(&told).unwrap();
    let pid = text.lines().find_map(|line| line.strip_prefix("pid ")?.parse::<i64>().ok()).unwrap();
    kill(&pid.into(), libc::SIGKILL);
}

#[test]
fn crashes_that_are_met_in_place_count_and_never_means_never() {
    for (storm, expected) in [("2:10m", 1), ("never", 0)] {
        let home = Home::new();
        let mut it = Obedient::start(&home, "it", &["--retries", "9", "--storm", storm]);
        it.say("ctypes.string_at(0)");
        until("the end", || home.events("it").contains(&"exit".to_string()));
        let rollbacks = home.events("it").iter().filter(|event| *event == "rollback").count();
        assert!(rollbacks >= 3, "{:?}", home.events("it"));
        assert_eq!(storms(&home), expected, "{:?}", home.events("it"));
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let home = Home::new();
    for options in [["--storm", "0:1s"], ["--storm", "5"], ["--storm", "5:0s"], ["--alert", "mail"]] {
        let output = home.outlast(["run"].iter().chain(&options).chain(&["--", "true"])).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{options:?}: {}", said(&output));
    }
    let file = home.file("a.toml");
    let check = |settings: &str| {
        std::fs::write(&file, format!("[[protect]]\nexecutable = \"/bin/true\"\n{settings}\n")).unwrap();
        let output = home.outlast(["policy", "check"]).arg(&file).output().unwrap();
        (output.status.code(), said(&output))
    };
    for settings in
        ["alert = [\"/bin/mail\", \"-s\", \"a b\", \"root\"]\nstorm = \"5:60s\"\njournal = false", "journal = true"]
    {
        let (status, said) = check(settings);
        assert_eq!(status, Some(0), "{said}");
    }
    for (settings, what) in [
        ("alert = [\"mail\"]", "absolute path"),
        ("alert = [7]", "text in quotes"),
        ("storm = \"x\"", "5:60s"),
        ("retries = [\"5\"]", "text in quotes"),
    ] {
        let (status, said) = check(settings);
        assert!(status == Some(1) && said.contains(what), "{settings}: {said}");
    }
}
