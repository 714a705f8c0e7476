//! Huge pages: those that the program has reserved (MAP_HUGETLB), and those that the kernel makes by itself.

mod support;

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use support::{finish, kill, said, Home};

const POOL: &str = "/proc/sys/vm/nr_hugepages";

/// Huge pages for a test, given back with the value.
struct Pages(i64);

impl Pages {
    fn add(count: i64) -> bool {
        let now: i64 = fs::read_to_string(POOL).unwrap().trim().parse().unwrap();
        fs::write(POOL, (now + count).to_string()).is_ok()
            && fs::read_to_string(POOL).unwrap().trim() == (now + count).to_string()
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        Self::add(-self.0);
    }
}

fn build(home: &Home, source: &str) -> PathBuf {
    let (source, program) =
        (Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/huge_pages").join(source), home.file("huge"));
    let built = Command::new("gcc").args(["-O2", "-Wall", "-o"]).arg(&program).arg(source).output().unwrap();
    assert!(built.status.success(), "{}", said(&built));
    program
}

/// What the kernel itself made of huge pages is taken apart by tracking, and put together where the program goes on writing.
#[test]
fn transparent_huge_pages_come_back() {
    come_back("100ms", "4", "1000");
}

/// Also where a commit takes most of an interval, since so much is written.
#[test]
fn transparent_huge_pages_come_back_where_memory_is_large() {
    come_back("200ms", "64", "1");
}

fn come_back(interval: &str, spans: &str, passes: &str) {
    let home = Home::new();
    let mut command = home.outlast(["run", "--name", "huge", "--every", interval, "--"]);
    command.arg(build(&home, "transparent.c")).args([spans, passes]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = finish(command.spawn().unwrap());
    if output.status.code() == Some(4) {
        println!("skipped: no transparent huge pages can be had here");
        return;
    }
    assert_eq!(output.status.code(), Some(0), "{} {:#?}", said(&output), home.log("huge"));
}

#[test]
fn huge_pages_stay_huge() {
    // Twice what it has: what dies gives its pages back only when it is gone.
    if !Pages::add(4) {
        println!("skipped: no huge pages can be had here");
        return;
    }
    let _pages = Pages(4);
    let home = Home::new();
    let program = build(&home, "program.c");
    let mut command = home.outlast(["run", "--name", "huge", "--"]);
    command.arg(program).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdout.as_mut().unwrap().read_exact(&mut [0; 6]).unwrap();
    kill(&home.await_protected("huge")["pid"], libc::SIGKILL);
    home.await_event("huge", "recovered", 1);
    assert_eq!(home.status("huge")["degradations"], serde_json::json!([]));
    drop(child.stdin.take());
    let output = finish(child);
    assert_eq!((output.status.code(), &*output.stdout), (Some(0), &b"4096 KiB\n"[..]), "{}", said(&output));
}
