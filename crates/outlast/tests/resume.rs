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

/// Between two commits: more descriptors than are remembered one by one, some moved, closed, marked, or opened through a link.
const OPENS: &str = "import os, fcntl, sys
numbers = []
for n in range(300):
    numbers.append(os.open('files/link' if n % 7 == 0 else 'files/%d' % (n % 10), os.O_RDONLY))
path = os.path.abspath('files/3')
direct = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
other = os.open(os.path.abspath('files/link'), os.O_RDONLY)
os.read(other, 2)
marked = os.open(path, os.O_RDONLY)
os.set_inheritable(marked, True)
for n in range(0, 300, 11):
    os.close(numbers[n])
print('ready', flush=True)
while not os.path.exists('door'):
    pass
gone = set(range(0, 300, 11))
texts = [os.read(fd, 9) for n, fd in enumerate(numbers) if n not in gone]
print(len(texts), b''.join(texts).decode(), flush=True)
print(os.read(direct, 9), fcntl.fcntl(direct, fcntl.F_GETFL) & os.O_NONBLOCK, os.read(other, 9), os.read(marked, 9))
print(os.get_inheritable(marked), os.get_inheritable(direct))";

#[test]
fn resumes_with_all_that_was_opened_since_the_commit_before() {
    let home = Home::new();
    std::fs::create_dir(home.file("files")).unwrap();
    for n in 0..10 {
        std::fs::write(home.file(&format!("files/{n}")), format!("{n} content\n")).unwrap();
    }
    std::os::unix::fs::symlink("8", home.file("files/link")).unwrap();
    let out = home.file("out");
    let mut run = home.outlast(["run", "--name", "opens", "--", "python3", "-c", OPENS]);
    run.current_dir(home.path());
    let child = run.stdout(std::fs::File::create(&out).unwrap()).stderr(Stdio::null()).spawn().unwrap();
    until("the first line", || std::fs::read(&out).unwrap() == b"ready\n");
    kill_everything(&home.await_protected("opens"));
    finish(child);
    home.await_status("opens", |status| status["state"] == "resumable");
    std::fs::write(home.file("door"), "").unwrap();
    let output = home.outlast(["resume", "opens"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let native = std::process::Command::new("python3").args(["-c", OPENS]).current_dir(home.path()).output().unwrap();
    assert_eq!(std::fs::read_to_string(&out).unwrap(), String::from_utf8_lossy(&native.stdout));
}

/// Two timers that go on for ever, of setitimer and of timer_create, and a wait for each of them.
const TICKS: &str = "import ctypes, os, signal, struct
libc = ctypes.CDLL(None, use_errno=True)
ticks = {signal.SIGALRM: 0, signal.SIGUSR1: 0}
def tick(number, frame):
    ticks[number] += 1
for number in ticks:
    signal.signal(number, tick)
signal.setitimer(signal.ITIMER_REAL, 0.3, 0.3)
event, timer = struct.pack('Qii48x', 0, signal.SIGUSR1, 0), ctypes.c_void_p()
assert libc.timer_create(1, event, ctypes.byref(timer)) == 0
assert libc.timer_settime(timer, 0, struct.pack('qqqq', 0, 300000000, 0, 300000000), None) == 0
print('ready', flush=True)
while not os.path.exists('door'):
    pass
before = dict(ticks)
while any(ticks[number] == before[number] for number in ticks):
    signal.pause()
print('ticked', flush=True)";

/// Whole seconds of CLOCK_MONOTONIC.
fn uptime() -> i64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes the time.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec
}

/// A command that finds another boot: its id, in a file, and clocks that count from there, which are behind by as long as the machine ran.
fn after_a_boot(id: &std::path::Path) -> std::process::Command {
    let behind = (5 - uptime()).min(0).to_string();
    let mut command = std::process::Command::new("unshare");
    command.args(["--mount", "--time", "--monotonic", &behind, "--boottime", &behind, "--fork", "sh", "-c"]);
    command.arg("mount --bind \"$0\" /proc/sys/kernel/random/boot_id && exec \"$@\"").arg(id).stdin(Stdio::null());
    command
}

#[test]
fn timers_go_on_after_a_boot() {
    let home = Home::new();
    let (out, boot) = (home.file("out"), home.file("boot"));
    std::fs::write(&boot, "5f0c5b7e-6e2f-4d0c-9a3e-0f8a4c1b7d92\n").unwrap();
    if !after_a_boot(&boot).arg("true").output().is_ok_and(|output| output.status.success()) {
        return eprintln!("needs root, and namespaces of mounts and time");
    }
    let mut run = home.outlast(["run", "--name", "ticks", "--", "/usr/bin/python3", "-c", TICKS]);
    let child = run.current_dir(home.path()).stdout(std::fs::File::create(&out).unwrap()).spawn().unwrap();
    until("the first line", || std::fs::read(&out).unwrap() == b"ready\n");
    kill_everything(&home.await_protected("ticks"));
    finish(child);
    home.await_status("ticks", |status| status["state"] == "resumable");
    std::fs::write(home.file("door"), "").unwrap();
    let mut resume = after_a_boot(&boot);
    resume.arg(env!("CARGO_BIN_EXE_outlast")).args(["resume", "ticks"]).env("OUTLAST_STATE_DIR", home.state());
    let resumed = resume.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until("a tick of each", || std::fs::read(&out).unwrap() == b"ready\nticked\n");
    finish(resumed);
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
