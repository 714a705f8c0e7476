//! Programs for which io_uring stops being available while they run.

mod support;

use std::io::Read;
use std::os::fd::AsRawFd;
use std::process::{ChildStdout, Command, Stdio};
use std::time::Duration;
use support::{finish, kill, said, until, Home};

/// Whoever may not lock memory gets no ring, and threads need another than the program alone had.
const THREADS: &str = "import resource, threading, sys
_, most = resource.getrlimit(resource.RLIMIT_MEMLOCK)
resource.setrlimit(resource.RLIMIT_MEMLOCK, (0, min(most, int(sys.argv[1]))))
for n in range(400):
    thread = threading.Thread(target=lambda: print(n, flush=True))
    thread.start()
    thread.join()
    sys.stdin.readline()
";

/// What is lost of the protection of a program with threads that may lock no memory, or as many bytes if it raises its limit.
fn lost_with_limit(most: &str) -> Vec<serde_json::Value> {
    let home = Home::new();
    let outlast = home.outlast(["run", "--name", "threads", "--", "/usr/bin/python3", "-c", THREADS, most]);
    // The superuser's limit counts only without this right.
    let limited = if unsafe { libc::geteuid() } == 0 { &["--bounding-set", "-ipc_lock"][..] } else { &[] };
    let mut command = Command::new("setpriv");
    command.args(limited).arg(outlast.get_program()).args(outlast.get_args());
    command.env("OUTLAST_STATE_DIR", home.state());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let finishing = std::thread::spawn(move || finish(child));
    for n in 0..400 {
        if n % 40 == 20 {
            kill(&home.await_protected("threads")["pid"], libc::SIGKILL);
            until("the program is back", || home.status("threads")["recoveries"] == n / 40 + 1);
        }
        std::io::Write::write_all(&mut input, b"\n").unwrap();
    }
    let output = finishing.join().unwrap();
    let expected: String = (0..400).map(|n| format!("{n}\n")).collect();
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{}", said(&output));
    let kept = home.log("threads");
    let degraded = kept.iter().filter(|entry| entry["event"] == "degradation");
    degraded.map(|entry| entry["cause"].clone()).collect()
}

#[test]
fn threads_begin_where_no_other_ring_can_be_had() {
    assert_eq!(lost_with_limit("0"), ["no-io-uring"]);
}

#[test]
fn a_soft_limit_on_locked_memory_takes_nobody_a_ring() {
    assert_eq!(lost_with_limit("8388608"), [] as [&str; 0]);
}

/// Lines of a hundred bytes, each in a call of its own: more than the pipe can be emptied of before the last kill, twice for each.
const LINES: &str = "import os
for n in range(80000):
    os.write(1, b'%099d\\n' % n)
";

/// Everything that can be read now.
fn drain(out: &mut ChildStdout, text: &mut Vec<u8>) {
    let mut n = 0i32;
    // SAFETY: FIONREAD writes four bytes.
    assert_eq!(unsafe { libc::ioctl(out.as_raw_fd(), libc::FIONREAD, &raw mut n) }, 0);
    let before = text.len();
    text.resize(before + n as usize, 0);
    out.read_exact(&mut text[before..]).unwrap();
}

#[test]
fn what_a_reader_finds_that_wakes_up_as_the_writer_dies_is_there_once() {
    let (home, mut random) = (Home::new(), fastrand::Rng::with_seed(5));
    let mut outlast = home.outlast(["run", "--no-io-uring", "--name", "it", "--", "/usr/bin/python3", "-c", LINES]);
    let mut child = outlast.stdout(Stdio::piped()).spawn().unwrap();
    let (mut out, mut text) = (child.stdout.take().unwrap(), Vec::new());
    for n in 1..=60 {
        let pid = home.await_protected("it")["pid"].clone();
        // The pipe has room, and the writer writes until it is full again.
        drain(&mut out, &mut text);
        std::thread::sleep(Duration::from_micros(random.u64(2_000..9_000)));
        kill(&pid, libc::SIGKILL);
        drain(&mut out, &mut text);
        home.await_status("it", |status| status["protected"] == true && status["recoveries"] == n);
    }
    out.read_to_end(&mut text).unwrap();
    assert!(finish(child).status.success());
    let text = String::from_utf8(text).unwrap();
    let wrong = text.lines().enumerate().find(|(n, line)| **line != format!("{n:099}"));
    assert_eq!((wrong, text.len()), (None, 80_000 * 100));
}
