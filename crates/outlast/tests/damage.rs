//! What a command does with files that were damaged: an older state or a clear error, never a wrong result.

mod support;

use outlast_store::{FileRegion, Superblock};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use support::{finish, kill_everything, said, until, Home};

/// A small generator, so that a round can be repeated from its number.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

/// A program of which only files are left, and a copy of those.
struct Dead {
    home: Home,
    copy: PathBuf,
    out: PathBuf,
}

impl Dead {
    fn new() -> Self {
        let home = Home::new();
        let (out, copy) = (home.file("out"), home.file("copy"));
        let script = format!("n=1; echo $n; {}; n=$((n+1)); echo $n; exit $((n+9))", home.door().wait());
        let mut run = home.run_script("dead", &script);
        let child = run.stdout(std::fs::File::create(&out).unwrap()).stderr(Stdio::null()).spawn().unwrap();
        until("the first line", || std::fs::read(&out).unwrap() == b"1\n");
        kill_everything(&home.await_protected("dead"));
        finish(child);
        home.await_status("dead", |status| status["state"] == "resumable");
        home.door().open();
        assert!(Command::new("cp").arg("-a").arg(home.state()).arg(&copy).status().unwrap().success());
        Self { home, copy, out }
    }

    /// Everything as it was when the program died.
    fn rewind(&self) {
        std::fs::remove_dir_all(self.home.state()).unwrap();
        assert!(Command::new("cp").arg("-a").arg(&self.copy).arg(self.home.state()).status().unwrap().success());
        std::fs::write(&self.out, "1\n").unwrap();
    }

    /// A file of the program whose name starts like this.
    fn file(&self, start: &str) -> PathBuf {
        let folder = self.home.state().join("dead");
        let mut files = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
        let is_it = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with(start);
        files.find(is_it).unwrap_or_else(|| panic!("no {start} in {}", folder.display()))
    }

    fn resume(&self) -> Output {
        let mut resume = self.home.outlast(["resume", "dead"]);
        finish(resume.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
    }

    /// What a resume may come to: the right end, or an error with nothing done.
    fn judge(&self, output: &Output, what: &str) {
        let text = said(output);
        let written = std::fs::read_to_string(&self.out).unwrap();
        match output.status.code() {
            Some(11) if is_older(&self.home) => (),
            Some(11) => assert_eq!(written, "1\n2\n", "{what}: {text}"),
            Some(1 | 2) => {
                let error = String::from_utf8_lossy(&output.stderr);
                assert!(error.starts_with("outlast: ") && error.lines().count() <= 2, "{what}: {text}");
                assert_eq!(written, "1\n", "{what}: {text}");
            }
            _ => panic!("{what}: {text} {:#?}", self.home.log("dead")),
        }
        assert!(!text.contains("panicked"), "{what}: {text}");
    }
}

/// Whether the program says that it went back to an older state.
fn is_older(home: &Home) -> bool {
    home.log("dead").iter().any(|entry| entry["cause"] == "older-state")
}

/// Where a store's frames begin: they carry no checksum, all before them does.
fn frames(store: &Path) -> u64 {
    let file = File::options().read(true).write(true).open(store).unwrap();
    Superblock::read(&FileRegion::open(file.into()).unwrap()).unwrap().areas.base.off
}

/// Where a file that is mostly holes has bytes that are not zero, before `end`.
fn used(file: &File, end: u64) -> Vec<u64> {
    let (mut used, mut at) = (Vec::new(), 0);
    while at < end {
        let mut bytes = vec![0; (end - at).min(1 << 20) as usize];
        file.read_exact_at(&mut bytes, at).unwrap();
        used.extend(bytes.iter().zip(at..).filter(|(byte, _)| **byte != 0).map(|(_, at)| at));
        // SAFETY: plain system call; the test reads and writes by position.
        let next = unsafe { libc::lseek(file.as_raw_fd(), (at + bytes.len() as u64) as i64, libc::SEEK_DATA) };
        at = u64::try_from(next).unwrap_or(end);
    }
    used
}

/// Changes some bytes that are not all zero, or cuts the file off; says what it did.
fn damage(path: &Path, end: u64, random: &mut Random) -> String {
    let file = File::options().read(true).write(true).open(path).unwrap();
    let used = used(&file, end);
    let at = used[random.below(used.len())];
    let what = if random.below(8) == 0 {
        file.set_len(at).unwrap();
        format!("cut off at {at:#x}")
    } else {
        let mut bytes = vec![0; 1 + random.below(16)];
        let len = file.read_at(&mut bytes, at).unwrap();
        bytes.iter_mut().for_each(|byte| *byte ^= 1 << random.below(8));
        file.write_all_at(&bytes[..len], at).unwrap();
        format!("{len} bytes from {at:#x}")
    };
    format!("{} {what}", path.display())
}

#[test]
fn a_damaged_store_gives_an_older_state_or_a_clear_error() {
    let dead = Dead::new();
    let mut errors = 0;
    for round in 1..=30 {
        dead.rewind();
        let store = dead.file("store");
        let what = format!("round {round}: {}", damage(&store, frames(&store), &mut Random(round)));
        let output = dead.resume();
        dead.judge(&output, &what);
        errors += usize::from(output.status.code() != Some(11));
    }
    assert!(errors > 0, "the damage proves nothing");
}

#[test]
fn a_program_that_could_not_be_resumed_is_kept() {
    let dead = Dead::new();
    let store = dead.file("store");
    let whole = std::fs::File::options().read(true).write(true).open(&store).unwrap();
    let mut magic = [0; 8];
    whole.read_exact_at(&mut magic, 0).unwrap();
    for (bytes, word) in [(*b"NOTASTOR", "not one of outlast's"), (magic, "")] {
        whole.write_all_at(&bytes, 0).unwrap();
        let output = dead.resume();
        dead.judge(&output, word);
        assert!(said(&output).contains(word), "{}", said(&output));
        assert_eq!(output.status.code() == Some(11), word.is_empty(), "{}", said(&output));
        if !word.is_empty() {
            assert_eq!(dead.home.status("dead")["state"], "resumable");
        }
    }
}

#[test]
fn damaged_descriptions_end_no_command_in_a_panic() {
    let dead = Dead::new();
    let commands: [&[&str]; 7] = [
        &["ps"],
        &["ps", "--all", "--json"],
        &["log", "dead"],
        &["commit", "dead"],
        &["stop", "dead", "--timeout", "1ms"],
        &["resume", "dead"],
        &["rm", "dead"],
    ];
    for round in 1..=20 {
        for file in ["meta.json", "log.jsonl"] {
            dead.rewind();
            let path = dead.file(file);
            let what = format!("round {round}: {}", damage(&path, path.metadata().unwrap().len(), &mut Random(round)));
            for command in commands {
                let mut run = dead.home.outlast(command);
                let output = finish(run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
                let text = said(&output);
                assert!(matches!(output.status.code(), Some(0 | 1 | 2 | 11)), "{what}: {command:?}: {text}");
                assert!(!text.contains("panicked"), "{what}: {command:?}: {text}");
            }
        }
    }
}
