//! Supervisors of trees (`--tree`) that die: others take over, at any moment, and nobody notices.

mod support;

use outlast_image::control::{state, Control};
use std::mem::offset_of;
use std::os::unix::fs::FileExt;
use std::time::Duration;
use support::tree::{kill, native, programs, start, PIPELINE};
use support::{said, until, Home};

#[test]
fn another_supervisor_takes_a_tree_over() {
    let home = Home::new();
    let door = home.door();
    let file = home.file("out");
    let script = format!(
        "({}; exit 7) & wait $!; echo $? >> {out}; (exit 8); echo $? >> {out}",
        door.wait(),
        out = file.display()
    );
    let mut child = start(&home, "orphaned", &["sh", "-c", &script]);
    until("two programs", || programs(&home, "orphaned").len() == 2);
    home.await_protected("orphaned");
    child.kill().unwrap();
    child.wait().unwrap();
    home.await_event("orphaned", "supervisor-restarted", 1);
    // One of each is killed under the new one.
    for n in 0..2 {
        assert!(kill(programs(&home, "orphaned")[n]));
        home.await_event("orphaned", "recovered", n + 1);
    }
    door.open();
    until("both statuses", || std::fs::read_to_string(&file).is_ok_and(|text| text == "7\n8\n"));
}

/// The processes that have one of the folder's files mapped.
fn users_of(home: &Home) -> Vec<String> {
    let folder = home.path().to_str().unwrap();
    let maps = |pid: &String| std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().into_string().ok());
    pids.filter(|pid| pid.bytes().all(|byte| byte.is_ascii_digit()) && maps(pid).contains(folder)).collect()
}

#[test]
fn a_process_is_taken_up_as_the_program_that_it_has_become() {
    let home = Home::new();
    let (door, file) = (home.door(), home.file("out"));
    let out = file.display();
    let inner = format!("echo begun >> {out}; {}; echo going >> {out}", door.wait());
    let mut child = start(&home, "it", &["sh", "-c", &format!("(exec sh -c '{inner}') & wait $!; echo over >> {out}")]);
    let read = || std::fs::read_to_string(&file).unwrap_or_default();
    until("what it has become", || read() == "begun\n");
    home.await_event("it", "exec", 1);
    let folder = home.state().join("it/child.1");
    let became = programs(&home, "it")[1];
    // What its supervisor leaves if it dies after it has described the new program, and before that one's session has got the name that counts.
    support::kill(&home.await_protected("it")["supervisor"], libc::SIGSTOP);
    std::fs::rename(folder.join("session"), folder.join("session.1")).unwrap();
    std::fs::copy(folder.join("session.1"), folder.join("session")).unwrap();
    let old = std::fs::OpenOptions::new().write(true).open(folder.join("session")).unwrap();
    for (offset, value) in [
        (offset_of!(Control, program_pid), 0),
        (offset_of!(Control, anchor_pid), 0),
        (offset_of!(Control, state), state::EXECING),
    ] {
        old.write_all_at(&value.to_ne_bytes(), offset as u64).unwrap();
    }
    support::kill(&home.status("it")["supervisor"], libc::SIGKILL);
    child.wait().unwrap();
    home.await_event("it", "supervisor-restarted", 1);
    home.await_protected("it");
    assert_eq!(programs(&home, "it")[1], became);
    assert!(kill(became));
    home.await_event("it", "recovered", 1);
    door.open();
    until("the end", || read().ends_with("over\n"));
    assert_eq!(read(), "begun\ngoing\nover\n");
    let events = home.events("it");
    assert_eq!(events.iter().filter(|event| *event == "killed").count(), 1, "{events:?}");
}

/// Its supervisor is killed again and again; who looks after it then has another one take over.
fn outlasts_its_supervisors(seed: u64) {
    let home = Home::new();
    let file = home.file("out");
    let script = format!("{{ {PIPELINE}\n}} > {out}; echo over >> {out}", out = file.display());
    let mut child = start(&home, "it", &["sh", "-c", &script]);
    let read = || std::fs::read_to_string(&file).unwrap_or_default();
    let (mut random, mut kills) = (fastrand::Rng::with_seed(seed), 0);
    until(&format!("the end, seed {seed}"), || {
        std::thread::sleep(Duration::from_millis(random.u64(1..60)));
        let status = home.status("it");
        // Before that nothing has begun, and dies with it.
        if kills < 25 && status["state"] == "protected" && status["supervisor"].is_i64() {
            support::kill(&status["supervisor"], libc::SIGKILL);
            kills += 1;
        }
        read().ends_with("over\n")
    });
    child.wait().unwrap();
    until(&format!("nothing that is left, seed {seed}"), || users_of(&home).is_empty());
    let wanted = native(&["sh", "-c", PIPELINE]);
    assert_eq!(
        read(),
        format!("{}over\n", String::from_utf8_lossy(&wanted.stdout)),
        "seed {seed}, {kills} kills\n{}",
        said(&home.outlast(["log", "it"]).output().unwrap())
    );
}

#[test]
fn the_supervisor_of_a_tree_may_be_killed_at_any_moment() {
    (0..6).for_each(outlasts_its_supervisors);
}
