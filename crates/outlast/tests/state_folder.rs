//! What outlast keeps is the user's alone.

mod support;

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use support::{finish, said, Home};

#[test]
fn folders_and_files_are_private() {
    let home = Home::new();
    let child = home.start_script("private", "while :; do read x < /dev/null; done");
    home.await_protected("private");
    let folder = home.state().join("private");
    let mode = |path: &std::path::Path| path.symlink_metadata().unwrap().mode() & 0o777;
    assert_eq!((mode(&home.state()), mode(&folder)), (0o700, 0o700));
    for file in ["session", "store", "meta.json", "log.jsonl", "lock"] {
        assert_eq!(mode(&folder.join(file)), 0o600, "{file}");
    }
    drop(home);
    finish(child);
}

#[test]
fn a_store_elsewhere_is_private_too() {
    let home = Home::new();
    let stores = home.file("stores");
    let mut run = home.outlast(["run", "--name", "private", "--store"]);
    run.arg(&stores).args(["--", "sh", "-c", "while :; do read x < /dev/null; done"]);
    let child = run.spawn().unwrap();
    home.await_protected("private");
    let mode = |path: &std::path::Path| path.symlink_metadata().unwrap().mode() & 0o777;
    assert_eq!(mode(&stores), 0o700);
    let files: Vec<_> = std::fs::read_dir(&stores).unwrap().flatten().map(|entry| entry.path()).collect();
    assert!(files.len() >= 2, "{files:?}");
    for file in files {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
    drop(home);
    finish(child);
}

/// The folders that another user may have made before: state and store. Each is refused, and left alone.
#[test]
fn what_another_user_planted_is_refused() {
    const NOBODY: u32 = 65534;
    // SAFETY: plain system call.
    if unsafe { libc::geteuid() } != 0 {
        eprintln!("skipped: only root can make files of another user");
        return;
    }
    let home = Home::new();
    let planted = home.file("planted");
    std::fs::create_dir(&planted).unwrap();
    std::fs::set_permissions(&planted, PermissionsExt::from_mode(0o700)).unwrap();
    std::os::unix::fs::chown(&planted, Some(NOBODY), Some(NOBODY)).unwrap();
    let linked = home.file("linked");
    std::os::unix::fs::symlink(&planted, &linked).unwrap();
    std::os::unix::fs::lchown(&linked, Some(NOBODY), Some(NOBODY)).unwrap();
    for folder in [&planted, &linked] {
        let as_state = home.outlast(["run", "--", "true"]).env("OUTLAST_STATE_DIR", folder).output().unwrap();
        let as_store = home.outlast(["run", "--store"]).arg(folder).args(["--", "true"]).output().unwrap();
        for output in [as_state, as_store] {
            assert_eq!(output.status.code(), Some(1), "{}", said(&output));
            let complaint = String::from_utf8_lossy(&output.stderr);
            assert_eq!(complaint.lines().count(), 1, "{complaint}");
            assert!(complaint.contains("another user") || complaint.contains("a link"), "{complaint}");
        }
        assert_eq!(std::fs::read_dir(&planted).unwrap().count(), 0, "something was written there");
    }
}

#[test]
fn a_folder_that_others_may_write_to_is_refused() {
    let home = Home::new();
    std::fs::create_dir(home.state()).unwrap();
    std::fs::set_permissions(home.state(), PermissionsExt::from_mode(0o777)).unwrap();
    let output = home.outlast(["run", "--", "true"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(String::from_utf8_lossy(&output.stderr).contains("others may write"), "{}", said(&output));
}

#[test]
fn a_link_is_not_followed() {
    let home = Home::new();
    let target = home.file("target");
    std::fs::create_dir(&target).unwrap();
    std::os::unix::fs::symlink(&target, home.state()).unwrap();
    let output = home.outlast(["run", "--", "true"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert_eq!(std::fs::read_dir(&target).unwrap().count(), 0, "something was written through the link");
}

#[test]
fn a_folder_on_a_disk_is_refused() {
    let home = Home::new();
    let disk = tempfile::tempdir_in("/var/tmp").unwrap();
    let output =
        home.outlast(["run", "--", "true"]).env("OUTLAST_STATE_DIR", disk.path().join("state")).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(String::from_utf8_lossy(&output.stderr).contains("tmpfs"), "{}", said(&output));
}

#[test]
fn links_planted_in_a_programs_folder_are_not_followed() {
    let home = Home::new();
    let victim = home.file("victim");
    std::fs::write(&victim, "precious").unwrap();
    let folder = home.state().join("trap");
    std::fs::create_dir_all(&folder).unwrap();
    for path in [&home.state(), &folder] {
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o700)).unwrap();
    }
    for file in ["store", "meta.json", "log.jsonl", "session.1", "meta.json.new"] {
        std::os::unix::fs::symlink(&victim, folder.join(file)).unwrap();
    }
    home.run_script("trap", "exit 0").output().unwrap();
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious");
}

#[test]
fn the_end_of_a_program_leaves_its_log_and_no_memory() {
    let home = Home::new();
    assert!(home.run_script("done", "exit 0").status().unwrap().success());
    let folder = home.state().join("done");
    assert!(folder.join("log.jsonl").exists() && !folder.join("store").exists() && !folder.join("session").exists());
}
