//! `run --commit manual`: files go back to the commit together with the program.

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use support::{finish, kill, kill_everything, said, until, Home};

/// Makes some files, waits for a commit, and changes them once the door is open. Nobody but the engine may notice the names that
/// keep removed files.
const PROGRAM: &str = r#"
import os, sys
folder, door = sys.argv[1:]
os.chdir(folder)
def wait(seen):
    while os.path.exists(door) != seen:
        pass
for name in 'kept', 'gone', 'old', 'target', 'emptied':
    with open(name, 'w') as f:
        f.write(f'the old {name}\n' * 1000)
os.symlink('kept', 'link')
log = open('log', 'a', buffering=1)
log.write('begun\n')
wait(True)
log.write('changed\n')
with open('kept', 'r+') as f:
    f.write('new')
os.unlink('gone')
os.rename('old', 'target')
open('emptied', 'w').close()
os.truncate('kept', 5000)
os.mkdir('drawer')
with open('drawer/made', 'x') as f:
    f.write('made\n')
os.unlink('link')
os.rename('drawer', 'chest')
os.chdir('chest')
os.link('made', 'twice')
names = sorted(os.listdir('..') + os.listdir('.'))
assert names == ['chest', 'emptied', 'kept', 'log', 'made', 'target', 'twice'], names
with open('../done', 'x'):
    pass
wait(False)
"#;

/// How the names begin.
const HIDDEN: &str = ".outlast-undo-";

/// What lies in a folder: names, and what tells one content from another.
fn tree(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.symlink_metadata().unwrap().file_type() {
            kind if kind.is_dir() => found.extend(tree(&path)),
            kind if kind.is_symlink() => drop(found.insert(path.clone(), "a link".into())),
            _ => drop(found.insert(path.clone(), told(&fs::read(&path).unwrap()))),
        }
    }
    found
}

fn told(content: &[u8]) -> String {
    format!("{} bytes with CRC {:08x}", content.len(), outlast_store::crc32c(outlast_store::Cpu::detect(), 0, content))
}

struct Scene {
    home: Home,
    folder: PathBuf,
    child: Child,
    /// The folder at the commit.
    then: BTreeMap<PathBuf, String>,
}

impl Scene {
    /// A program that has been committed and has changed its files since.
    fn new(between: impl FnOnce(&Path)) -> Scene {
        let home = Home::new();
        let folder = home.file("folder");
        fs::create_dir(&folder).unwrap();
        let door = home.file("door");
        let mut run = home.outlast(["run", "--name", "files", "--commit", "manual", "--", "python3", "-c", PROGRAM]);
        run.arg(&folder).arg(&door);
        let child = run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        home.await_protected("files");
        until("the first line of the log", || fs::read(folder.join("log")).is_ok_and(|text| text == b"begun\n"));
        let output = home.outlast(["commit", "files"]).output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        let then = tree(&folder);
        between(&folder);
        fs::write(&door, "").unwrap();
        until("all changes", || folder.join("done").exists());
        Scene { home, folder, child, then }
    }

    /// Whoever comes back waits before the closed door, its files as they were.
    fn close_door(&self) {
        fs::remove_file(self.home.file("door")).unwrap();
    }

    fn is_as_then(&self) {
        assert_eq!(tree(&self.folder), self.then);
    }

    /// Lets the program do it all again, to its end.
    fn end(self) {
        fs::write(self.home.file("door"), "").unwrap();
        until("all changes", || self.folder.join("done").exists());
        fs::remove_file(self.home.file("door")).unwrap();
        let output = finish(self.child);
        assert!(output.status.success(), "{}", said(&output));
        let left = tree(&self.folder);
        assert!(!left.keys().any(|path| path.to_string_lossy().contains(HIDDEN)), "{left:?}");
        assert_eq!(left[&self.folder.join("log")], told(b"begun\nchanged\n"));
    }
}

/// The program, stopped before it can end, so that the door can be closed without its noticing.
fn stopped(scene: &Scene) -> serde_json::Value {
    let status = scene.home.status("files");
    kill(&status["pid"], libc::SIGSTOP);
    scene.close_door();
    status
}

#[test]
fn a_recovered_program_finds_its_files_as_they_were() {
    let scene = Scene::new(|_| ());
    let status = stopped(&scene);
    kill(&status["pid"], libc::SIGKILL);
    scene.home.await_event("files", "recovered", 1);
    scene.is_as_then();
    assert_eq!(scene.home.status("files")["degradations"], serde_json::json!([]));
    scene.end();
}

#[test]
fn a_cold_resume_sets_files_back() {
    let mut scene = Scene::new(|_| ());
    let status = stopped(&scene);
    kill_everything(&status);
    finish(scene.child);
    let mut resume = scene.home.outlast(["resume", "files"]);
    scene.child = resume.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    scene.home.await_protected("files");
    scene.is_as_then();
    scene.end();
}

#[test]
fn a_file_that_somebody_else_has_open_is_left_alone() {
    let mut reader = None;
    let scene = Scene::new(|folder| reader = fs::File::open(folder.join("log")).ok());
    let status = stopped(&scene);
    kill(&status["pid"], libc::SIGKILL);
    scene.home.await_event("files", "recovered", 1);
    let mut wanted = scene.then.clone();
    wanted.insert(scene.folder.join("log"), told(b"begun\nchanged\n"));
    assert_eq!(tree(&scene.folder), wanted);
    assert_eq!(scene.home.status("files")["degradations"], serde_json::json!(["file-kept"]));
}

#[test]
fn a_program_that_is_ended_leaves_nothing_of_the_engine_behind() {
    let scene = Scene::new(|_| ());
    let now = tree(&scene.folder);
    assert!(now.keys().any(|path| path.to_string_lossy().contains(HIDDEN)), "{:?}", now.keys());
    kill(&scene.home.status("files")["pid"], libc::SIGTERM);
    finish(scene.child);
    let left = tree(&scene.folder);
    let names: Vec<_> = left.keys().map(|path| path.strip_prefix(&scene.folder).unwrap().to_str().unwrap()).collect();
    assert_eq!(names, ["chest/made", "chest/twice", "done", "emptied", "kept", "log", "target"]);
}
