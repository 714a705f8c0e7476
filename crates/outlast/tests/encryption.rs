//! Older generations that are encrypted: with the key they are as good as others, without it they are neither read nor lost.

mod support;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use support::obedient::{Obedient, OFTEN};
use support::{kill, kill_everything, said, until, Home};

/// Writes a key file of this content and mode.
fn write_key(path: &Path, content: &[u8], mode: u32) {
    let _ = std::fs::remove_file(path);
    std::fs::write(path, content).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

const KEY: &[u8] = b"a key of the tests, which nobody would think of";
const OTHER: &[u8] = b"another key of the tests, that opens nothing";

fn key(home: &Home) -> PathBuf {
    let path = home.file("key");
    write_key(&path, KEY, 0o600);
    path
}

/// Options of a program that keeps encrypted generations.
fn encrypted(key: &Path) -> Vec<&str> {
    [&OFTEN[..], &["--encrypt", key.to_str().unwrap()]].concat()
}

/// A program with one generation in which x is 1, and x being 2 now.
fn start<'h>(home: &'h Home, name: &str, key: &Path) -> (Obedient<'h>, u64) {
    let mut program = Obedient::start(home, name, &encrypted(key));
    program.say("x = 1");
    assert_eq!(program.ask("x"), "1");
    let first = program.keeps();
    program.say("x = 2");
    assert_eq!(program.ask("x"), "2");
    (program, first)
}

fn files_of(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files_of(&path) } else { vec![path] }).collect()
}

#[test]
fn goes_back_and_is_copied_as_if_it_were_not_encrypted() {
    let home = Home::new();
    let key = key(&home);
    let (mut program, first) = start(&home, "secret", &key);
    assert!(program.generations().iter().all(|kept| kept["encrypted"] == true), "{:?}", program.generations());
    // The supervisor has the key already.
    std::fs::remove_file(&key).unwrap();
    let output = program.rewind(&first.to_string());
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(program.ask("x"), "1");
    write_key(&key, KEY, 0o400);
    program.say("x = 3");
    assert_eq!(program.ask("x"), "3");
    let third = program.keeps();
    let mut older = Obedient::fork(&home, "secret", "older", &["--generation", &first.to_string()]);
    older.told = 100;
    assert_eq!(older.ask("x"), "1");
    let mut newer = Obedient::fork(&home, "secret", "newer", &[]);
    newer.told = 200;
    assert_eq!(newer.ask("x"), "3");
    newer.keeps();
    assert!(newer.generations().iter().all(|kept| kept["encrypted"] == true), "{:?}", newer.generations());
    kill(&home.status("secret")["pid"], libc::SIGKILL);
    assert_eq!(program.ask("x"), "3");
    assert!(program.rewind(&third.to_string()).status.success());
    // The key is in no file of theirs.
    for path in files_of(&home.state()).into_iter().filter(|path| path.file_name().unwrap() != "store") {
        // The file of a generation that is given up meanwhile is gone.
        let bytes = std::fs::read(&path).unwrap_or_default();
        assert!(!bytes.windows(16).any(|bytes| bytes == &KEY[..16]), "{path:?}");
    }
    for program in [program, older, newer] {
        assert_eq!(program.end().status.code(), Some(0));
    }
}

#[test]
fn a_key_that_is_none_is_refused_before_there_is_a_program() {
    let home = Home::new();
    let (key, ran) = (home.file("key"), home.file("ran"));
    let run = |options: &[&str]| {
        let mut command = home.outlast(["run", "--name", "never"]);
        command.args(options).arg("--encrypt").arg(&key).args(["--", "touch"]).arg(&ran).output().unwrap()
    };
    let refused = |options: &[&str], status: i32, what: &str| {
        let output = run(options);
        assert!(output.status.code() == Some(status) && said(&output).contains(what), "{what}: {}", said(&output));
        assert!(!ran.exists() && !home.state().join("never").exists());
    };
    refused(&OFTEN, 1, "No such file");
    write_key(&key, KEY, 0o644);
    refused(&OFTEN, 1, "others may read it");
    write_key(&key, b"too short", 0o600);
    refused(&OFTEN, 1, "head -c 32 /dev/urandom");
    write_key(&key, KEY, 0o600);
    refused(&[], 2, "--generations");
    assert_eq!(run(&OFTEN).status.code(), Some(0));
    assert!(ran.exists());
}

/// With nothing left of it but files on a disk.
#[test]
fn with_another_key_or_none_nothing_is_read_and_nothing_is_lost() {
    let home = Home::new();
    let (key, disk) = (key(&home), home.file("disk"));
    let options = [&encrypted(&key)[..], &["--store", disk.to_str().unwrap()]].concat();
    let mut program = Obedient::start(&home, "rest", &options);
    program.say("x = 1");
    program.ask("x");
    let first = program.keeps().to_string();
    program.say("x = 2");
    program.ask("x");
    program.keeps();
    kill_everything(&home.status("rest"));
    let numbers = program.numbers();
    let refused = |args: &[&str], what: &str| {
        let output = home.outlast(args).output().unwrap();
        assert!(output.status.code() == Some(1) && said(&output).contains(what), "{args:?}: {}", said(&output));
    };
    write_key(&key, OTHER, 0o600);
    refused(&["rewind", "rest", &first], "encrypted with another key");
    refused(&["fork", "rest", "--generation", &first, "--name", "copy"], "encrypted with another key");
    std::fs::remove_file(&key).unwrap();
    refused(&["rewind", "rest", &first], "key: No such file");
    refused(&["fork", "rest", "--name", "copy"], "key: No such file");
    let moved = home.file("moved");
    write_key(&moved, OTHER, 0o600);
    refused(&["resume", "rest", "--key", moved.to_str().unwrap()], "encrypted with another key");
    assert_eq!(program.numbers(), numbers);
    assert!(home.status("copy").is_null());
    write_key(&moved, KEY, 0o600);
    let output = home.outlast(["rewind", "rest", &first, "--key", moved.to_str().unwrap()]).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    // The machine was started again since.
    std::fs::remove_dir_all(home.state().join("rest")).unwrap();
    let mut command = home.outlast(["resume", "rest", "--store", disk.to_str().unwrap()]);
    let mut program = Obedient::begin(&home, "rest", command.arg("--key").arg(&moved));
    program.told = 100;
    assert_eq!(program.ask("x"), "1");
    let kept = program.keeps();
    program.say("x = 5");
    program.ask("x");
    assert!(program.rewind(&kept.to_string()).status.success());
    assert_eq!(program.ask("x"), "1");
    assert_eq!(program.end().status.code(), Some(0));
}

/// Rung 6 without the key: the program is not lost, and goes further back once the key is there again.
#[test]
fn a_failure_that_repeats_waits_for_the_key() {
    let home = Home::new();
    let key = key(&home);
    let (mut program, _) = start(&home, "sick", &key);
    std::fs::remove_file(&key).unwrap();
    // Another supervisor, which has never seen the key.
    let before = home.status("sick")["supervisor"].clone();
    kill(&before, libc::SIGKILL);
    home.await_status("sick", |status| status["supervisor"].is_number() && status["supervisor"] != before);
    until("a word of it", || home.log("sick").iter().any(|entry| entry["event"] == "not-kept"));
    let output = program.rewind("1");
    assert!(output.status.code() == Some(1) && said(&output).contains("lacks the key"), "{}", said(&output));
    assert_eq!(program.ask("x"), "2");
    program.say("bad = True; print('spoilt')");
    program.say("x = 0");
    home.await_event("sick", "gave-up", 1);
    home.await_status("sick", |status| status["supervisor"].is_null());
    let log = home.log("sick");
    let gave_up = log.iter().rfind(|entry| entry["event"] == "gave-up").unwrap();
    assert!(gave_up["cause"].as_str().unwrap().contains("key: No such file"), "{gave_up}");
    assert!(!program.numbers().is_empty());
    write_key(&key, KEY, 0o600);
    let mut program = Obedient::begin(&home, "sick", &mut home.outlast(["resume", "sick"]));
    program.told = 100;
    home.await_event("sick", "went-back", 1);
    until("a state without the damage", || {
        program.say("print('damaged', bad)");
        std::fs::read_to_string(&program.out).unwrap().contains("damaged False")
    });
    assert_eq!(program.ask("bad"), "False");
    assert_eq!(program.end().status.code(), Some(0));
}

/// All files of two programs, with one key, swapped.
#[test]
fn the_states_of_another_program_are_none_of_this_one() {
    let home = Home::new();
    let key = key(&home);
    let (one, first) = start(&home, "one", &key);
    let (other, _) = start(&home, "other", &key);
    for name in ["one", "other"] {
        kill_everything(&home.status(name));
    }
    let folder = |name: &str| home.state().join(name);
    let archive =
        |name: &str| files_of(&folder(name)).into_iter().filter(|path| path.to_str().unwrap().contains(".gen."));
    archive("one").for_each(|path| std::fs::remove_file(path).unwrap());
    for path in archive("other") {
        std::fs::copy(&path, folder("one").join(path.file_name().unwrap())).unwrap();
    }
    let numbers = one.numbers();
    let output = one.rewind(&numbers[0].to_string());
    assert!(output.status.code() == Some(1) && said(&output).contains("for another program"), "{}", said(&output));
    assert_eq!(one.numbers(), numbers);
    let output = other.rewind(&other.numbers()[0].to_string());
    assert!(output.status.success(), "{}", said(&output));
    assert!(first > 0);
    for name in ["one", "other"] {
        assert!(home.outlast(["rm", name]).status().unwrap().success());
        assert!(files_of(&home.state()).iter().all(|path| !path.starts_with(folder(name))));
    }
}

#[test]
fn altered_files_are_damaged_generations() {
    let home = Home::new();
    let key = key(&home);
    let (mut program, first) = start(&home, "altered", &key);
    for path in files_of(&home.state()).into_iter().filter(|path| path.extension().is_some_and(|end| end == "pages")) {
        let mut bytes = std::fs::read(&path).unwrap();
        bytes.iter_mut().step_by(500).for_each(|byte| *byte ^= 0x40);
        // In place: it is open elsewhere.
        std::os::unix::fs::FileExt::write_all_at(
            &std::fs::OpenOptions::new().write(true).open(&path).unwrap(),
            &bytes,
            0,
        )
        .unwrap();
    }
    let output = program.rewind(&first.to_string());
    assert!(output.status.code() == Some(1) && said(&output).contains("damaged or was altered"), "{}", said(&output));
    assert_eq!(program.ask("x"), "2");
    assert_eq!(program.events("went-back"), 0);
}
