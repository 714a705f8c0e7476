//! A program that becomes another one keeps its protection.

mod support;

use std::io::{BufRead, BufReader};
use support::{finish, kill, said, Home};

#[test]
fn wrappers_keep_protection() {
    let home = Home::new();
    let wrappers: [&[&str]; 4] = [&["env", "WORD=x"], &["nice"], &["nohup"], &["sh", "-c", "exec \"$@\"", "sh"]];
    for wrapper in wrappers {
        let command = ["run", "--name", "wrapped", "--"].iter().chain(wrapper).chain(&["sh", "-c", "read x; exit 6"]);
        let mut run = home.outlast(command);
        let mut child = run.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).spawn().unwrap();
        let status = home.await_status("wrapped", |s| s["protected"] == true && s["generation"].as_u64() >= Some(1));
        kill(&status["pid"], libc::SIGKILL);
        home.await_event("wrapped", "recovered", 1);
        drop(child.stdin.take());
        let output = finish(child);
        assert_eq!(output.status.code(), Some(6), "{wrapper:?}: {}", said(&output));
        assert!(home.events("wrapped").contains(&"exec".into()), "{wrapper:?}");
    }
}

#[test]
fn survives_kills_around_every_exec() {
    let home = Home::new();
    // Sixty programs one after the other, each counting one.
    let script = r#"[ "$1" -lt 60 ] || exit 5; echo "$1"; exec sh -c "$2" sh "$(($1+1))" "$2""#;
    let mut run = home.outlast(["run", "--name", "chain", "--", "sh", "-c", script, "sh", "0", script]);
    let child = run.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    // Before that a kill is the end.
    home.await_protected("chain");
    for _ in 0..60 {
        let status = home.status("chain");
        if status["pid"].is_i64() && status["ended"].is_null() {
            kill(&status["pid"], libc::SIGKILL);
        }
    }
    let output = finish(child);
    let expected: String = (0..60).map(|i| format!("{i}\n")).collect();
    assert_eq!((output.status.code(), &*output.stdout), (Some(5), expected.as_bytes()), "{}", said(&output));
    assert_eq!(home.events("chain").iter().filter(|event| *event == "exec").count(), 60, "{:#?}", home.log("chain"));
    let left: Vec<_> = std::fs::read_dir(home.state().join("chain")).unwrap().flatten().collect();
    assert!(left.iter().all(|entry| !entry.file_name().to_string_lossy().starts_with("store")), "{left:?}");
}

#[test]
fn a_failed_exec_returns_and_protection_goes_on() {
    let home = Home::new();
    // That the interpreter is missing is found only by the kernel.
    let bad = home.executable("bad", b"#!/no/such/interpreter\n");
    let mut run = home.outlast(["run", "--name", "tries", "--", "/usr/bin/python3", "-c", PYTHON]);
    let run = run.arg(&bad).stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut child = run.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    for _ in 0..3 {
        // ENOENT, of the interpreter.
        assert_eq!(lines.next().unwrap(), "2");
    }
    let status = home.await_protected("tries");
    kill(&status["pid"], libc::SIGKILL);
    home.await_event("tries", "recovered", 1);
    std::fs::remove_file(&bad).unwrap();
    assert_eq!(lines.collect::<Vec<_>>(), ["done"]);
    let output = finish(child);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert_eq!(home.status("tries")["degradations"], serde_json::json!([]));
}

/// Tries three times to become a program that cannot be executed.
const PYTHON: &str = "import os, sys
for i in range(3):
    try:
        os.execv(sys.argv[1], ['x'])
    except OSError as e:
        print(e.errno, flush=True)
while os.path.exists(sys.argv[1]):
    pass
print('done')
";

/// A supervisor that dies while it makes the new program the one that counts leaves some files with their old names.
#[test]
fn what_a_dead_supervisor_has_left_half_renamed_is_finished() {
    for has_store in [false, true] {
        let home = Home::new();
        let door = home.door();
        let script = format!(r#"{}; exec sh -c 'read y; echo "$y"; exit 6'"#, door.wait());
        let mut run = home.run_script("it", &script);
        run.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        let mut child = run.spawn().unwrap();
        home.await_protected("it");
        let file = |name: &str| home.state().join("it").join(name);
        std::fs::copy(file("session"), home.file("before")).unwrap();
        door.open();
        let status = home.await_status("it", |s| s["protected"] == true && s["generation"] == 1);
        home.await_event("it", "exec", 1);
        std::fs::rename(file("session"), file("session.1")).unwrap();
        std::fs::rename(home.file("before"), file("session")).unwrap();
        if has_store {
            std::fs::rename(file("store"), file("store.1")).unwrap();
        }
        kill(&status["supervisor"], libc::SIGKILL);
        home.await_event("it", "supervisor-restarted", 1);
        kill(&status["pid"], libc::SIGKILL);
        home.await_event("it", "recovered", 1);
        use std::io::{Read, Write};
        child.stdin.take().unwrap().write_all(b"word\n").unwrap();
        let mut printed = String::new();
        child.stdout.take().unwrap().read_to_string(&mut printed).unwrap();
        assert_eq!(printed, "word\n");
        home.await_status("it", |status| status["ended"] == "exit 6");
        child.wait().unwrap();
        assert!(file("store").exists() || !file("store.1").exists(), "nothing is left over");
    }
}
