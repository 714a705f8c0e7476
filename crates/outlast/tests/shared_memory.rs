//! Memory that the processes of a tree share: locks, counters and turns that lie there stay right whoever is killed, and whenever.

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;
use support::tree::{any, assert_no_error, assert_same, native, outlasts, start, Harassment, NOBODY};
use support::{finish, Home};

/// The program, which `shared_memory/sharers.c` describes.
fn sharers(home: &Home) -> PathBuf {
    program(home, "sharers")
}

/// One of those in `shared_memory`.
fn program(home: &Home, name: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/shared_memory/{name}.c"));
    let program = home.file(name);
    let built =
        Command::new("gcc").args(["-O2", "-Wall", "-pthread", "-o"]).arg(&program).arg(source).output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    program
}

/// Any of the four processes is killed again and again, by so many seeds.
fn outlasts_kills(arguments: &[&str], seeds: u64) {
    program_outlasts_kills("sharers", arguments, seeds);
}

fn program_outlasts_kills(name: &str, arguments: &[&str], seeds: u64) {
    let home = Home::new();
    let program = program(&home, name);
    let command: Vec<&str> = [program.to_str().unwrap()].into_iter().chain(arguments.iter().copied()).collect();
    outlasts(&home, &command, &Harassment { seeds, kills: 9, pause_us: 30_000, choose: any });
}

#[test]
fn anonymous_memory_may_lose_any_of_its_sharers() {
    outlasts_kills(&["anonymous"], 3);
}

#[test]
fn a_removed_segment_may_lose_any_of_its_sharers() {
    outlasts_kills(&["segment"], 3);
}

#[test]
fn a_file_under_another_name_than_it_was_mapped_by_may_lose_any_of_its_sharers() {
    outlasts_kills(&["file"], 3);
}

#[test]
fn whatever_instruction_writes_there_is_made_once() {
    program_outlasts_kills("stores", &[], 3);
}

#[test]
fn sharers_with_threads_may_be_killed_as_well() {
    outlasts_kills(&["anonymous", "3"], 2);
}

#[test]
fn the_same_by_a_user_whose_recovered_processes_have_other_numbers() {
    let home = Home::of(NOBODY);
    let program = sharers(&home);
    let command = [program.to_str().unwrap(), "anonymous"];
    outlasts(&home, &command, &Harassment { seeds: 1, kills: 3, pause_us: 30_000, choose: any });
}

#[test]
fn nothing_of_it_shows_to_those_that_share() {
    let script = "import mmap, os, signal
one = mmap.mmap(-1, 8192)
if os.fork() == 0:
    one[0] = 7
    line = next(line for line in open('/proc/self/maps') if '/dev/zero' in line)
    print(line.split()[1], line.split()[5:], flush=True)
    os._exit(0)
os.wait()
print(one[0])
second = mmap.mmap(-1, 4096)
if os.fork() == 0:
    one[1], second[0] = 8, 9
    os._exit(0)
os.wait()
print(one[1], second[0])
one.madvise(mmap.MADV_REMOVE)
print(one[0], one[1])
one.close()
second.close()
print(any('/dev/zero' in line for line in open('/proc/self/maps')))";
    let home = Home::new();
    let command = ["python3", "-c", script];
    let output = finish(start(&home, "shown", &command));
    assert_same(&output, &native(&command), script);
    let log = home.log("shown");
    assert!(!log.iter().any(|entry| entry["event"] == "degradation"), "{log:#?}");
    assert_no_error(&home, "shown");
}
