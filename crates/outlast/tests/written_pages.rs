//! A commit holds every page that was written, however the engine learns of writes, and whoever writes.

mod support;

use std::path::PathBuf;
use std::process::{Command, Stdio};
use support::{said, Home};

/// All the ways to learn of page faults, the best first.
const SOURCES: [&str; 3] = ["list", "samples", "count"];

/// The program in written_pages.c.
fn program(home: &Home) -> PathBuf {
    compiled(home, concat!(env!("CARGO_MANIFEST_DIR"), "/../../cases/programs/written_pages.c"), &[])
}

fn compiled(home: &Home, source: &str, options: &[&str]) -> PathBuf {
    let program = home.file("program");
    let output = Command::new("cc").arg("-O1").args(options).arg("-o").arg(&program).arg(source).output().unwrap();
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

/// Asks for more addresses than there are, and goes on.
const ASKS_FOR_TOO_MUCH: &str = "import mmap
try:
    mmap.mmap(-1, 1 << 47)
except OSError as e:
    print(e.errno, flush=True)
print('on', flush=True)
";

/// A mapping that is refused may be one too many: the protections of others are then joined, but not of what the kernel writes
/// by itself (rseq), which would end the program.
#[test]
fn a_mapping_that_is_refused_does_no_harm() {
    let home = Home::new();
    let run = ["run", "--name", "it", "--tracker", "mprotect", "--", "/usr/bin/python3", "-c", ASKS_FOR_TOO_MUCH];
    let output = home.outlast(run).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "12\non\n");
    assert_eq!(home.events("it"), ["start", "injected", "exit"]);
}

#[test]
fn a_heap_that_becomes_executable_stays_writable_for_the_kernel() {
    let home = Home::new();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/written_pages/executable_heap.c");
    let program = compiled(&home, source, &["-static"]);
    let run = home.outlast(["run", "--name", "it", "--tracker", "mprotect", "--"]).arg(program).output().unwrap();
    assert!(run.status.success(), "{}", said(&run));
    assert!(run.stdout.ends_with(b"\n999\n"), "{}", said(&run));
    assert_eq!(home.events("it"), ["start", "injected", "exit"]);
}
