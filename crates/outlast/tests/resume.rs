//! When everything died but the store, `outlast resume` goes on.

mod support;

use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use support::{finish, kill_everything, said, until, Home};

/// Counts into a file, so that it needs no stream that dies with its reader.
fn script(home: &Home) -> String {
    let door = home.door();
    format!("n=1; echo $n; {}; n=$((n+1)); echo $n; exit $((n+9))", door.wait())
}

#[test]
fn resumes_after_everything_was_killed() {
    let home = Home::new();
    let out = home.file("out");
    let mut run = home.run_script("again", &script(&home));
    let child = run.stdout(std::fs::File::create(&out).unwrap()).stderr(Stdio::null()).spawn().unwrap();
    until("the first line", || std::fs::read(&out).unwrap() == b"1\n");
    kill_everything(&home.await_protected("again"));
    finish(child);
    home.await_status("again", |status| status["state"] == "resumable");
    assert_eq!(home.outlast(["stop", "again"]).output().unwrap().status.code(), Some(1));
    home.door().open();
    let output = home.outlast(["resume", "again"]).output().unwrap();
    assert_eq!(output.status.code(), Some(11), "{}", said(&output));
    assert_eq!(std::fs::read_to_string(&out).unwrap(), "1\n2\n");
    assert!(home.events("again").contains(&"resumed".into()), "{:?}", home.events("again"));
}

#[test]
fn resumes_in_the_directory_and_with_the_mask_it_had() {
    let home = Home::new();
    let out = home.file("out");
    let door = home.door();
    let script = format!(
        "cd {home}; mkdir inner; cd inner; umask 0137; echo go; {}; pwd; umask; : > new; exit 5",
        door.wait(),
        home = home.path().display()
    );
    let mut run = home.outlast(["run", "--name", "inside", "--", "bash", "-c", &script]);
    let child = run.stdout(std::fs::File::create(&out).unwrap()).stderr(Stdio::null()).spawn().unwrap();
    until("the first line", || std::fs::read(&out).unwrap() == b"go\n");
    kill_everything(&home.await_protected("inside"));
    finish(child);
    home.await_status("inside", |status| status["state"] == "resumable");
    door.open();
    let output = home.outlast(["resume", "inside"]).output().unwrap();
    assert_eq!(output.status.code(), Some(5), "{}", said(&output));
    let inner = home.file("inner");
    assert_eq!(std::fs::read_to_string(&out).unwrap(), format!("go\n{}\n0137\n", inner.display()));
    let mode = std::fs::metadata(inner.join("new")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
}

#[test]
fn resumes_from_a_store_on_a_disk_when_the_state_folder_is_gone() {
    let home = Home::new();
    let out = home.file("out");
    let disk = tempfile::tempdir_in("/var/tmp").unwrap();
    let store = disk.path().join("stores");
    let store_arg = store.to_str().unwrap();
    let mut run = home.outlast(["run", "--name", "db", "--store", store_arg, "--", "sh", "-c", &script(&home)]);
    let child = run.stdout(std::fs::File::create(&out).unwrap()).stderr(Stdio::null()).spawn().unwrap();
    until("the first line", || std::fs::read(&out).unwrap() == b"1\n");
    let status = home.await_protected("db");
    assert_eq!(status["store"], store.join("db.store").to_str().unwrap());
    kill_everything(&status);
    finish(child);
    home.await_status("db", |status| status["state"] == "resumable");
    std::fs::remove_dir_all(home.state()).unwrap();
    home.door().open();
    let output = home.outlast(["resume", "db", "--store", store_arg]).output().unwrap();
    assert_eq!(output.status.code(), Some(11), "{}", said(&output));
    assert_eq!(std::fs::read_to_string(&out).unwrap(), "1\n2\n");
    assert!(!store.join("db.store").exists(), "the store is left behind after the program's end");
}

#[test]
fn what_runs_or_has_ended_is_not_resumed() {
    let home = Home::new();
    let child = home.start_script("alive", "while :; do read x < /dev/null; done");
    home.await_protected("alive");
    assert_eq!(home.outlast(["resume", "alive"]).output().unwrap().status.code(), Some(1));
    assert!(home.outlast(["stop", "alive"]).status().unwrap().success());
    finish(child);
    let output = home.outlast(["resume", "alive"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert_eq!(home.outlast(["resume", "nobody"]).output().unwrap().status.code(), Some(2));
}
