//! What cannot be protected runs all the same, and outlast says why.

mod support;

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use support::{finish, kill, said, Home};

/// A copy of `true`'s sibling that exits with 1.
fn copy_of_false(home: &Home, mode: u32) -> std::path::PathBuf {
    let path = home.executable("program", &std::fs::read("/bin/false").unwrap());
    std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
    path
}

fn runs_without(home: &Home, path: &std::path::Path, degradation: &str, status: i32, user: Option<u32>) {
    let outlast = |args: &[&OsStr]| match user {
        None => home.outlast(args),
        Some(user) => home.outlast_by(user, args),
    };
    let mut run = outlast(&["run".as_ref(), "--name".as_ref(), "bare".as_ref(), "--".as_ref(), path.as_os_str()]);
    let output = run.output().unwrap();
    assert_eq!(output.status.code(), Some(status), "{}", said(&output));
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert_eq!(complaint.lines().count(), 1, "{complaint}");
    let mut log = outlast(&["log".as_ref(), "bare".as_ref(), "--json".as_ref()]);
    let log = String::from_utf8(log.output().unwrap().stdout).unwrap();
    let suspended = log.lines().find(|line| line.contains("suspended")).unwrap_or_else(|| panic!("{log}"));
    assert!(suspended.contains(degradation), "{suspended}");
}

#[test]
fn a_set_user_id_program() {
    let home = Home::new();
    let path = copy_of_false(&home, 0o4755);
    runs_without(&home, &path, "privileged-program", 1, None);
}

#[test]
fn a_set_group_id_program() {
    let home = Home::new();
    let path = copy_of_false(&home, 0o2755);
    runs_without(&home, &path, "privileged-program", 1, None);
}

#[test]
fn an_unreadable_program_of_an_ordinary_user() {
    const NOBODY: u32 = 65534;
    let home = Home::new();
    let path = copy_of_false(&home, 0o711);
    // SAFETY: plain system call.
    let root = unsafe { libc::geteuid() } == 0;
    let user = if root {
        std::fs::create_dir(home.state()).unwrap();
        std::os::unix::fs::chown(home.state(), Some(NOBODY), Some(NOBODY)).unwrap();
        std::fs::set_permissions(home.state(), PermissionsExt::from_mode(0o700)).unwrap();
        std::fs::set_permissions(home.path(), PermissionsExt::from_mode(0o755)).unwrap();
        Some(NOBODY)
    } else {
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o111)).unwrap();
        None
    };
    runs_without(&home, &path, "unreadable-program", 1, user);
}

#[test]
fn a_32_bit_program() {
    let home = Home::new();
    let path = home.executable("old", &elf32_that_exits_with(42));
    // A kernel without 32-bit emulation refuses it, with and without outlast.
    match Command::new(&path).status() {
        Ok(status) => assert_eq!(status.code(), Some(42)),
        Err(_) => return runs_not_at_all(&home, &path),
    }
    runs_without(&home, &path, "foreign-abi", 42, None);
}

fn runs_not_at_all(home: &Home, path: &std::path::Path) {
    let output = home.outlast(["run".as_ref(), "--".as_ref(), path.as_os_str()]).output().unwrap();
    assert_ne!(output.status.code(), Some(0), "{}", said(&output));
}

#[test]
fn a_program_that_lies_where_the_engine_would() {
    let home = Home::new();
    let path = home.executable("there", &elf64_in_the_engines_place(9));
    assert_eq!(Command::new(&path).status().unwrap().code(), Some(9));
    runs_without(&home, &path, "address-taken", 9, None);
}

/// Runs a script within a limit; it sees what it would see without outlast. Returns the log's events and their causes.
fn runs_within(limit: &str) -> Vec<(String, String)> {
    let home = Home::new();
    let outlast = env!("CARGO_BIN_EXE_outlast");
    let inner = "ls /proc/self/fd | tr '\\n' ' '; grep -c outlast-engine /proc/self/maps; exit 6";
    let run = |launcher: &str| {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("ulimit {limit}; exec {launcher} sh -c \"{inner}\"")]);
        let shell = shell.env("OUTLAST_STATE_DIR", home.state()).stdin(Stdio::null());
        let output = shell.output().unwrap();
        assert_eq!(output.status.code(), Some(6), "{}", said(&output));
        output
    };
    let (native, under) = (run(""), run(&format!("'{outlast}' run --name bare --")));
    assert_eq!(String::from_utf8_lossy(&under.stdout), String::from_utf8_lossy(&native.stdout), "{}", said(&under));
    let words = |e: &serde_json::Value, key: &str| e[key].as_str().unwrap_or_default().to_owned();
    home.log("bare").iter().map(|e| (words(e, "event"), words(e, "cause"))).collect()
}

#[test]
fn a_program_with_few_descriptor_numbers() {
    // The engine takes eight, and finds room below the limit.
    let log = runs_within("-n 40");
    assert!(log.iter().any(|(event, _)| event == "injected"), "{log:?}");
    assert!(!log.iter().any(|(event, cause)| event == "degradation" && cause != "children"), "{log:?}");
}

#[test]
fn a_program_with_little_address_space() {
    let log = runs_within("-v 4000000");
    assert!(log.iter().any(|(_, cause)| cause.starts_with("address-taken")), "{log:?}");
}

/// One header, one segment at the engine's address, and: mov $status, %edi; mov $60, %eax; syscall.
fn elf64_in_the_engines_place(status: u8) -> Vec<u8> {
    const BASE: u64 = outlast_image::layout::ENGINE_BASE;
    let code = [0xbf, status, 0, 0, 0, 0xb8, 60, 0, 0, 0, 0x0f, 0x05];
    // The bootstrap is longer than this program: room for it.
    let (header, length) = (64 + 56u64, 4096u64);
    let mut elf = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0x3e, 0, 1, 0, 0, 0];
    for word in [BASE + header, 64, 0] {
        elf.extend(u64::to_le_bytes(word));
    }
    elf.extend([0; 4]);
    for half in [64u16, 56, 1, 0, 0, 0] {
        elf.extend(half.to_le_bytes());
    }
    elf.extend([1, 0, 0, 0, 5, 0, 0, 0]);
    for word in [0, BASE, BASE, length, length, 0x1000] {
        elf.extend(u64::to_le_bytes(word));
    }
    elf.extend(code);
    elf.resize(length as usize, 0);
    elf
}

/// One header, one segment, and: mov $1, %eax; mov $status, %ebx; int $0x80.
fn elf32_that_exits_with(status: u8) -> Vec<u8> {
    const BASE: u32 = 0x0804_8000;
    let code = [0xb8, 1, 0, 0, 0, 0xbb, status, 0, 0, 0, 0xcd, 0x80];
    let (header, length) = (52 + 32u32, 52 + 32 + code.len() as u32);
    let mut elf = vec![0x7f, b'E', b'L', b'F', 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 3, 0];
    for word in [1, BASE + header, 52, 0, 0] {
        elf.extend(u32::to_le_bytes(word));
    }
    for half in [52u16, 32, 1, 0, 0, 0] {
        elf.extend(half.to_le_bytes());
    }
    for word in [1, 0, BASE, BASE, length, length, 5, 0x1000] {
        elf.extend(u32::to_le_bytes(word));
    }
    elf.extend(code);
    elf
}

#[test]
fn a_program_that_somebody_traces_already() {
    let home = Home::new();
    // strace traces outlast and its children: nobody else can trace those.
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-e", "trace=none", "-e", "signal=none", "--", env!("CARGO_BIN_EXE_outlast"), "run"]);
    strace.args(["--name", "bare", "--", "false"]).env("OUTLAST_STATE_DIR", home.state());
    let Ok(output) = strace.output() else {
        println!("skipped: strace is not installed");
        return;
    };
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(home.log("bare").iter().any(|e| e["event"] == "suspended"), "{:?}", home.log("bare"));
    assert!(home.log("bare").iter().any(|e| e["cause"].as_str().is_some_and(|c| c.starts_with("trace-forbidden"))));
}

const PYTHON: &str = "/usr/bin/python3";
/// With this tracker GS is the engine's alone.
const WITHOUT_GS: [&str; 2] = ["--tracker", "mprotect"];

/// Gives up its protection, then computes for longer than any timer of the engine's waits.
const GIVES_UP: &str = "import ctypes, os, sys, time
base = ctypes.create_string_buffer(4096)
ARCH_SET_GS = 0x1001
ctypes.CDLL(None).syscall(158, ARCH_SET_GS, ctypes.c_void_p(ctypes.addressof(base)))
end = time.process_time() + 0.3
while time.process_time() < end or not os.path.exists(sys.argv[1]): pass
print('done')
";

#[test]
fn a_program_that_gave_up_its_protection_is_left_alone_by_timers_and_knocks() {
    for options in [&["--every", "20ms"][..], &["--durable", "20ms"]] {
        let home = Home::new();
        let mut run = home
            .outlast(["run", "--name", "bare"].iter().chain(&WITHOUT_GS).chain(options).chain(&["--", PYTHON, "-c"]));
        run.arg(GIVES_UP).arg(home.file("door")).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = run.spawn().unwrap();
        let status = home.await_status("bare", |status| status["state"] == "suspended");
        // As of somebody who has not heard of it yet.
        const KNOCK: i32 = 64;
        kill(&status["pid"], KNOCK);
        home.door().open();
        let output = finish(child);
        assert!(output.status.success() && output.stdout == b"done\n", "{options:?}: {}", said(&output));
    }
}
