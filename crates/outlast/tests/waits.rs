//! Waits with a time-out, which the engine cuts short for purposes of its own and makes again: they end when they would have ended without it.

mod support;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use support::{finish, said, Home};

/// Longer than it takes to cut the wait short once more; the program waits in some twenty ways, one after the other.
const LENGTH_MS: &str = "200";

fn compile(home: &Home) -> PathBuf {
    let to = home.file("program");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/waits/program.c");
    let mut gcc = Command::new("gcc");
    let output =
        gcc.args(["-O2", "-Wall", "-Wextra", "-Werror", "-pthread", "-o"]).arg(&to).arg(source).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    to
}

fn start(home: &Home, options: &[&str], how: &str) -> Child {
    let program = compile(home);
    let mut run = home.outlast(["run", "--name", "waits"].iter().chain(options).chain(&["--"]));
    run.arg(program).args([how, LENGTH_MS]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Every wait was ended by its time, and by nothing else.
fn assert_over(child: Child) {
    let output = finish(child);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let not_over: Vec<_> = text.lines().filter(|line| !line.ends_with(": over")).collect();
    assert!(output.status.success() && not_over.is_empty() && text.lines().count() > 20, "{}", said(&output));
}

#[test]
fn waits_end_while_commits_are_asked_for_again_and_again() {
    let home = Home::new();
    let child = start(&home, &[], "alone");
    let (has_ended, mut commits) = (AtomicBool::new(false), 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !has_ended.load(SeqCst) {
                commits += home.outlast(["commit", "waits"]).output().unwrap().status.success() as u32;
            }
        });
        // Else a failure would leave the scope waiting.
        let result = std::panic::catch_unwind(|| assert_over(child));
        has_ended.store(true, SeqCst);
        result
    })
    .unwrap();
    assert!(commits > 5, "{commits} commits");
}

#[test]
fn waits_end_beside_a_thread_whose_commits_settle_and_no_call_is_ended_by_that() {
    let (home, disk) = (Home::new(), tempfile::tempdir_in("/var/tmp").unwrap());
    let store = disk.path().join("stores");
    let options = ["--durable", "20ms", "--every", "20ms", "--store", store.to_str().unwrap()];
    assert_over(start(&home, &options, "beside"));
}
