//! A commit holds every page that was written, however the engine learns of writes, and whoever writes.

mod support;

use std::path::PathBuf;
use std::process::{Command, Stdio};
use support::{said, Home};

/// All the ways to learn of page faults, the best first.
const SOURCES: [&str; 3] = ["list", "samples", "count"];

/// The program in written_pages.c.
fn program(home: &Home) -> PathBuf {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../cases/programs/written_pages.c");
    let program = home.file("written_pages");
    let output = Command::new("cc").arg("-O1").arg("-o").arg(&program).arg(source).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    program
}

/// Which way is taken if this one is asked for.
fn taken(home: &Home, source: &str) -> String {
    let mut command = home.outlast(["run", "--name", source, "--faults", source, "--", "sleep", "60"]);
    let mut child = command.stdout(Stdio::null()).spawn().unwrap();
    let status = home.await_protected(source);
    assert!(home.outlast(["stop", source, "--timeout", "1ms"]).status().unwrap().success());
    child.wait().unwrap();
    status["fault_source"].as_str().unwrap().into()
}

/// Runs the program with every commit checked; what the log says then.
fn run(source: &str) -> Option<Vec<String>> {
    let home = Home::new();
    let taken = taken(&home, source);
    if taken != source {
        println!("skipped: asked for {source}, this kernel and user allow {taken}");
        return None;
    }
    let mut command = home.outlast(["run", "--name", "writer", "--check-commits", "--faults", source]);
    // A disk's file system has O_DIRECT.
    let disk = tempfile::tempdir_in("/var/tmp").unwrap();
    let output = command.arg("--").arg(program(&home)).args(["8", "all"]).current_dir(disk.path()).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    Some(home.events("writer"))
}

#[test]
fn no_written_page_is_missed() {
    for source in SOURCES {
        let Some(events) = run(source) else { continue };
        assert!(events.contains(&"injected".into()), "{source}: {events:?}");
        assert!(!events.contains(&"engine-error".into()), "{source}: {events:?}");
    }
}
