//! Files that a program maps shared: what it writes there goes back with it, as long as nobody else has them.

mod support;

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use support::{finish, kill, said, Home};

const PYTHON: &str = "/usr/bin/python3";
const PAGES: u64 = 5;

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mapped_files").join(name)
}

fn start(home: &Home, options: &[&str], arguments: &[&str]) -> Child {
    let mut run = home.outlast(["run", "--name", "it", "--retries", "1000"]);
    run.args(options).args(["--", PYTHON]).args(arguments);
    run.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn degradations(home: &Home) -> Vec<String> {
    let of = home.status("it")["degradations"].clone();
    of.as_array().into_iter().flatten().map(|name| name.as_str().unwrap().to_string()).collect()
}

/// A file of a few pages in the folder.
fn pages(folder: &Path) -> PathBuf {
    let path = folder.join("counts");
    File::create(&path).unwrap().set_len(PAGES * 4096).unwrap();
    path
}

/// Kills the counter while it counts, some time after each line.
fn count(folder: &Path, options: &[&str]) {
    const LAST: u64 = 40;
    let home = Home::new();
    let path = pages(folder);
    let mut child = start(&home, options, &[&script("counter.py"), &path].map(|path| path.to_str().unwrap()));
    let (mut input, mut output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    for n in 1..=LAST {
        writeln!(input, "line").unwrap();
        std::thread::sleep(Duration::from_micros(n * 137));
        kill(&home.await_protected("it")["pid"], libc::SIGKILL);
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        assert_eq!(line, format!("{n}\n"), "{options:?} {:#?}", home.log("it"));
        assert_eq!(degradations(&home), Vec::<String>::new(), "{options:?}");
    }
    drop(input);
    let output = finish(child);
    assert!(output.status.success(), "{options:?} {} {:#?}", said(&output), home.log("it"));
    let mut word = [0; 8];
    for page in 0..PAGES {
        File::open(&path).unwrap().read_exact_at(&mut word, page * 4096).unwrap();
        assert_eq!(u64::from_le_bytes(word), LAST, "{options:?}");
    }
}

#[test]
fn what_is_written_to_a_file_on_a_disk_through_a_mapping_goes_back() {
    let disk = tempfile::tempdir_in("/var/tmp").unwrap();
    count(disk.path(), &[]);
    count(disk.path(), &["--tracker", "mprotect"]);
}

#[test]
fn what_is_written_to_a_file_in_memory_through_a_mapping_goes_back() {
    let memory = tempfile::tempdir_in("/dev/shm").unwrap();
    count(memory.path(), &[]);
    count(memory.path(), &["--every", "5ms"]);
}

/// Somebody else has the file open: nothing of it is taken back, which is said, and what others write there stays.
#[test]
fn what_is_written_to_a_file_that_others_have_open_stays() {
    let home = Home::new();
    let path = pages(home.path());
    let program = "import mmap, sys\n\
                   f = open(sys.argv[1], 'r+b')\n\
                   m = mmap.mmap(f.fileno(), 0)\n\
                   for n, line in enumerate(sys.stdin, 1):\n\
                   \tm[0] = n\n\
                   \tprint(n, m[1], flush=True)";
    let mut child = start(&home, &[], &["-c", program, path.to_str().unwrap()]);
    let (mut input, mut output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    let mut ask = || {
        writeln!(input, "line").unwrap();
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        line
    };
    assert_eq!(ask(), "1 0\n");
    assert_eq!(degradations(&home), Vec::<String>::new());
    let other = File::options().read(true).write(true).open(&path).unwrap();
    assert_eq!(ask(), "2 0\n");
    assert_eq!(degradations(&home), ["shared-mapping"]);
    other.write_at(&[7], 1).unwrap();
    for n in 3..10 {
        kill(&home.await_protected("it")["pid"], libc::SIGKILL);
        assert_eq!(ask(), format!("{n} 7\n"));
    }
    drop(input);
    assert!(finish(child).status.success());
}

/// What calls read into such memory, from files, pipes and sockets.
#[test]
fn what_calls_write_into_a_mapping_goes_back() {
    let home = Home::new();
    let path = pages(home.path());
    let data = home.file("data");
    fs::write(&data, (0..=255u8).collect::<Vec<_>>()).unwrap();
    let program = script("receiver.py");
    let mut child = start(&home, &[], &[&program, &path, &data].map(|path| path.to_str().unwrap()));
    let (mut input, mut output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    for n in 10..60u8 {
        writeln!(input, "{n}").unwrap();
        std::thread::sleep(Duration::from_micros(u64::from(n) * 97));
        kill(&home.await_protected("it")["pid"], libc::SIGKILL);
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        assert_eq!(line, format!("{n} {n} {n}\n"), "{:#?}", home.log("it"));
        assert_eq!(degradations(&home), Vec::<String>::new());
    }
    drop(input);
    let output = finish(child);
    assert!(output.status.success(), "{}", said(&output));
}

#[test]
fn a_database_that_maps_its_index_survives() {
    const LINES: u64 = 60;
    let (home, disk) = (Home::new(), tempfile::tempdir_in("/var/tmp").unwrap());
    let db = disk.path().join("db");
    let arguments = [script("database.py"), db];
    let arguments = arguments.each_ref().map(|path| path.to_str().unwrap());
    let mut expected = Command::new(PYTHON)
        .arg(arguments[0])
        .arg(disk.path().join("expected"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = expected.stdin.take().unwrap();
    for n in 0..LINES {
        writeln!(lines, "{n}").unwrap();
    }
    drop(lines);
    let expected = String::from_utf8(expected.wait_with_output().unwrap().stdout).unwrap();
    let mut child = start(&home, &[], &arguments);
    let (mut input, mut output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    let mut seen = String::new();
    for n in 0..LINES {
        writeln!(input, "{n}").unwrap();
        std::thread::sleep(Duration::from_micros(n * 41));
        kill(&home.await_protected("it")["pid"], libc::SIGKILL);
        output.read_line(&mut seen).unwrap();
        assert_eq!(degradations(&home), Vec::<String>::new());
    }
    drop(input);
    output.read_to_string(&mut seen).unwrap();
    assert!(finish(child).status.success());
    assert_eq!(seen, expected, "{:#?}", home.log("it"));
}
