//! What a program finds when it starts is what it would find without outlast.

mod support;

use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use support::{finish, said, until, Home};

/// What a script prints by itself, and under outlast, started in the same way.
fn both(home: &Home, script: &str, prepare: impl Fn(&mut Command)) -> (String, String) {
    let mut native = Command::new("sh");
    native.args(["-c", script]).stdin(Stdio::null());
    let mut protected = home.outlast(["run", "--", "sh", "-c", script]);
    native.env("OUTLAST_STATE_DIR", home.state());
    prepare(&mut native);
    prepare(&mut protected);
    let (native, protected) = (native.output().unwrap(), protected.output().unwrap());
    assert!(native.status.success(), "{}", said(&native));
    assert_eq!(native.status, protected.status, "{}", said(&protected));
    (String::from_utf8(native.stdout).unwrap(), String::from_utf8(protected.stdout).unwrap())
}

fn same(script: &str, prepare: impl Fn(&mut Command)) {
    let (native, protected) = both(&Home::new(), script, prepare);
    assert_eq!(native, protected);
    assert!(!native.is_empty());
}

#[test]
fn arguments_environment_and_directory_are_the_callers() {
    same("echo \"$0\" $PWD; env | grep -v ^_= | sort", |command| {
        command.env_clear().env("PATH", "/usr/bin:/bin").env("WORD", "two words\nand a line").current_dir("/usr");
    });
}

#[test]
fn descriptors_are_the_callers() {
    // The engine's own are above them, and closed by every exec.
    same("ls -l /proc/$$/fd | awk '$9 ~ /^[0-9]+$/ && $9 < 900 {print $9, $11}' | grep -v pipe", |_| ());
    same("ls /proc/self/fd", |_| ());
}

#[test]
fn limits_and_signal_dispositions_are_the_callers() {
    same("ulimit -a; grep -E '^Sig(Ign|Blk)' /proc/self/status", |_| ());
    same("ulimit -n; grep -E '^Sig(Ign|Blk)' /proc/self/status", |command| {
        // SAFETY: the closure makes system calls only.
        unsafe {
            command.pre_exec(|| {
                libc::signal(libc::SIGHUP, libc::SIG_IGN);
                libc::signal(libc::SIGPIPE, libc::SIG_DFL);
                let limit = libc::rlimit { rlim_cur: 256, rlim_max: 256 };
                libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
                Ok(())
            });
        }
    });
}

#[test]
fn a_closed_standard_input_stays_closed() {
    same("if { true <&0; } 2>/dev/null; then echo open; else echo closed; fi", |command| {
        // SAFETY: the closure makes one system call.
        unsafe {
            command.pre_exec(|| {
                libc::close(0);
                Ok(())
            });
        }
    });
}

#[test]
fn input_and_output_flow_through() {
    let home = Home::new();
    let mut child = home.outlast(["run", "--", "cat"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut to, mut from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    for word in ["one\n", "two\n"] {
        to.write_all(word.as_bytes()).unwrap();
        let mut back = [0; 4];
        from.read_exact(&mut back).unwrap();
        assert_eq!(back, word.as_bytes());
    }
    drop(to);
    let mut rest = Vec::new();
    from.read_to_end(&mut rest).unwrap();
    assert_eq!((child.wait().unwrap().code(), &*rest), (Some(0), &b""[..]));
}

#[test]
fn a_reader_that_goes_away_ends_the_program() {
    let home = Home::new();
    let outlast = env!("CARGO_BIN_EXE_outlast");
    let script = format!("{{ '{outlast}' run --name yes -- yes; echo $? >&2; }} | head -1");
    let output = Command::new("sh").args(["-c", &script]).env("OUTLAST_STATE_DIR", home.state()).output().unwrap();
    assert_eq!((&*output.stdout, &*output.stderr), (&b"y\n"[..], &b"141\n"[..]), "{}", said(&output));
}

#[test]
fn nothing_stays_attached() {
    let home = Home::new();
    let child = home.start_script("free", "while :; do read x < /dev/null; done");
    let status = home.await_protected("free");
    let text = std::fs::read_to_string(format!("/proc/{}/status", status["pid"])).unwrap();
    assert!(text.contains("TracerPid:\t0\n"), "{text}");
    drop(home);
    support::finish(child);
}

/// Whoever waits for a lock must not wait for a commit of the program that had it.
#[test]
fn a_close_ends_a_lock_at_once() {
    const LOCKS: [&str; 2] = ["fcntl.flock(f, fcntl.LOCK_EX)", "fcntl.fcntl(f, 37, bytes([1]) + bytes(31))"];
    for take in LOCKS {
        let home = Home::new();
        let (lock, taken) = (home.file("lock"), home.file("taken"));
        let script = format!(
            "import fcntl, sys, time\nf = open(sys.argv[1], 'w')\n{take}\nopen(sys.argv[2], 'w').close()\nf.close()\ntime.sleep(1000)"
        );
        let mut run = home.outlast(["run", "--name", "locker", "--", "python3", "-c", &script]);
        let child = run.arg(&lock).arg(&taken).spawn().unwrap();
        until("the lock", || taken.exists());
        let file = std::fs::File::options().write(true).open(&lock).unwrap();
        let free = || {
            // SAFETY: plain integers.
            let mut wanted: libc::flock = unsafe { std::mem::zeroed() };
            wanted.l_type = libc::F_WRLCK as i16;
            // SAFETY: asks for locks on a file that is open.
            unsafe {
                libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) == 0
                    && libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &wanted) == 0
            }
        };
        until("the end of the lock", free);
        assert!(home.outlast(["stop", "locker"]).status().unwrap().success());
        finish(child);
    }
}

#[test]
fn sockets_that_are_handed_over_are_for_the_program() {
    let home = Home::new();
    let script =
        "LISTEN_FDS=1 LISTEN_PID=$$ exec $OUTLAST run --name it -- sh -c 'echo $LISTEN_PID $$ $LISTEN_FDS; exit 3'";
    let run = |script: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", script]).env("OUTLAST", env!("CARGO_BIN_EXE_outlast"));
        command.env("OUTLAST_STATE_DIR", home.state()).output().unwrap()
    };
    let output = run(script);
    let text = String::from_utf8_lossy(&output.stdout);
    let words: Vec<_> = text.split_whitespace().collect();
    assert!(words.len() == 3 && words[0] == words[1] && output.status.code() == Some(3), "{}", said(&output));
    // Those of others stay others'.
    let output = run(&script.replace("LISTEN_PID=$$", "LISTEN_PID=1"));
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("1 "), "{}", said(&output));
}
