//! The live view, at a terminal of its own.

mod support;

use serde_json::Value;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ExitStatus};
use std::sync::{Arc, Mutex};
use support::{kill, said, until, Home};

/// `outlast top` at a terminal.
struct Top {
    master: Option<File>,
    /// Kept open, so that the terminal outlives who uses it.
    slave: OwnedFd,
    before: String,
    seen: Arc<Mutex<(vt100::Parser, Vec<u8>)>>,
    child: Child,
}

fn size(rows: u16, cols: u16) -> libc::winsize {
    libc::winsize { ws_row: rows, ws_col: cols, ws_xpixel: 0, ws_ypixel: 0 }
}

/// How a terminal is set up.
fn setup(terminal: &OwnedFd) -> String {
    // SAFETY: filled by the call.
    let mut termios: libc::termios = unsafe { std::mem::zeroed() };
    // SAFETY: writes one such structure.
    assert_eq!(unsafe { libc::tcgetattr(terminal.as_raw_fd(), &raw mut termios) }, 0);
    format!("{:?}", (termios.c_iflag, termios.c_oflag, termios.c_cflag, termios.c_lflag, termios.c_cc))
}

impl Top {
    fn start(home: &Home, args: &[&str], (rows, cols): (u16, u16), no_color: bool) -> Self {
        let (mut master, mut slave) = (0, 0);
        let null = std::ptr::null_mut();
        let size = size(rows, cols);
        // SAFETY: the two descriptors are ours to fill; no name and no settings are given.
        let r = unsafe { libc::openpty(&mut master, &mut slave, null, null.cast(), &size) };
        assert_eq!(r, 0, "openpty");
        // What other tests begin meanwhile must not have it open: it would not end before that does.
        // SAFETY: plain system calls.
        let _ = [master, slave].map(|fd| unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) });
        // SAFETY: both were just opened, and nothing else owns them.
        let (master, slave) = unsafe { (File::from_raw_fd(master), OwnedFd::from_raw_fd(slave)) };
        let before = setup(&slave);
        let mut command = home.outlast(["top", "-d", "0.1"].iter().chain(args));
        command.env_remove("NO_COLOR").env("TERM", "xterm-256color");
        if no_color {
            command.env("NO_COLOR", "1");
        }
        let copy = || slave.try_clone().unwrap();
        command.stdin(copy()).stdout(copy()).stderr(copy());
        // SAFETY: the closure makes system calls only.
        unsafe {
            command.pre_exec(|| {
                libc::setsid();
                match libc::ioctl(0, libc::TIOCSCTTY, 0) {
                    0 => Ok(()),
                    _ => Err(std::io::Error::last_os_error()),
                }
            });
        }
        let child = command.spawn().unwrap();
        let seen = Arc::new(Mutex::new((vt100::Parser::new(rows, cols, 0), Vec::new())));
        let (mut reader, shared) = (master.try_clone().unwrap(), seen.clone());
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(n @ 1..) = reader.read(&mut bytes) {
                let mut seen = shared.lock().unwrap();
                seen.0.process(&bytes[..n]);
                seen.1.extend(&bytes[..n]);
            }
        });
        Self { master: Some(master), slave, before, seen, child }
    }

    fn type_in(&mut self, keys: &str) {
        self.master.as_mut().unwrap().write_all(keys.as_bytes()).unwrap();
    }

    fn text(&self) -> String {
        self.seen.lock().unwrap().0.screen().contents()
    }

    /// Waits until the screen is as wanted.
    fn await_screen(&self, what: &str, wanted: impl Fn(&str) -> bool) {
        let mut last = String::new();
        let begun = std::time::Instant::now();
        while !wanted(&last) {
            assert!(begun.elapsed().as_secs() < 60, "no {what} on the screen:\n{last}");
            std::thread::sleep(std::time::Duration::from_millis(5));
            last = self.text();
        }
    }

    fn shows(&self, text: &str) {
        self.await_screen(text, |screen| screen.contains(text));
    }

    /// The cell of a program under a head.
    fn cell(screen: &str, name: &str, head: &str) -> Option<String> {
        let heads = screen.lines().find(|line| line.starts_with("NAME"))?;
        let at = heads.split_whitespace().position(|cell| cell.trim_end_matches(['v', '^']) == head)?;
        let row = screen.lines().find(|line| line.split_whitespace().next() == Some(name))?;
        row.split_whitespace().nth(at).map(String::from)
    }

    fn resize(&self, rows: u16, cols: u16) {
        self.seen.lock().unwrap().0.screen_mut().set_size(rows, cols);
        let size = size(rows, cols);
        // SAFETY: reads one such structure.
        assert_eq!(unsafe { libc::ioctl(self.slave.as_raw_fd(), libc::TIOCSWINSZ, &raw const size) }, 0);
    }

    fn signal(&self, signal: i32) {
        kill(&Value::from(self.child.id()), signal);
    }

    /// Waits for its end; the terminal must be as it was.
    fn end(mut self) -> ExitStatus {
        let mut status = None;
        until("the end of outlast top", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        self.is_given_back();
        status.unwrap()
    }

    fn is_given_back(&self) {
        until("the terminal given back", || {
            let seen = self.seen.lock().unwrap();
            !seen.0.screen().alternate_screen() && !seen.0.screen().hide_cursor()
        });
        assert_eq!(setup(&self.slave), self.before);
    }
}

impl Drop for Top {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn it_shows_what_happens_and_acts_only_when_told_twice() {
    let home = Home::new();
    let door = home.door();
    let child = home.start_script("it", &format!("echo begun; {}; exit 3", door.wait()));
    home.await_protected("it");
    let mut top = Top::start(&home, &[], (24, 80), false);
    top.shows("1 program, 1 protected");
    top.shows("0 recoveries  0 storms");
    for n in 1..=3 {
        kill(&home.await_protected("it")["pid"], libc::SIGKILL);
        home.await_event("it", "recovered", n);
    }
    top.await_screen("3 recoveries", |screen| Top::cell(screen, "it", "RECOV").as_deref() == Some("3"));
    top.await_screen("the state", |screen| Top::cell(screen, "it", "STATE").as_deref() == Some("protected"));
    let pid = home.await_protected("it")["pid"].to_string();
    top.await_screen("the process", |screen| Top::cell(screen, "it", "PID").as_ref() == Some(&pid));
    top.type_in("k");
    top.shows("Kill it with SIGKILL");
    top.type_in("n");
    top.shows("q quit");
    assert_eq!(home.status("it")["recoveries"], 3);
    top.type_in("ky");
    home.await_event("it", "recovered", 4);
    top.await_screen("4 recoveries", |screen| Top::cell(screen, "it", "RECOV").as_deref() == Some("4"));
    let commits = home.await_protected("it")["commits"].as_u64();
    top.type_in("cy");
    top.shows("it has committed");
    assert!(home.status("it")["commits"].as_u64() > commits);
    top.type_in("h");
    top.shows("rewind to an older state");
    top.shows("LAST EVENT");
    top.type_in("q\r");
    top.shows("started: sh");
    top.shows("recovered from SIGKILL");
    top.type_in("q");
    top.shows("q quit");
    top.type_in("S");
    top.shows("End it for good?");
    top.type_in("y");
    assert_eq!(support::finish(child).status.signal(), Some(libc::SIGTERM));
    top.shows("nothing is protected");
    top.type_in("q");
    assert_eq!(top.end().code(), Some(0));
}

#[test]
fn the_terminal_is_given_back_whatever_ends_it() {
    let home = Home::new();
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
        let top = Top::start(&home, &[], (24, 80), false);
        top.shows("0 programs");
        assert_ne!(setup(&top.slave), top.before, "it takes keys as they come");
        top.signal(signal);
        assert_eq!(top.end().signal(), Some(signal));
    }
    let mut top = Top::start(&home, &[], (24, 80), false);
    top.shows("0 programs");
    top.type_in("\x03");
    assert_eq!(top.end().code(), Some(0));
    let top = Top::start(&home, &["-n", "2"], (24, 80), false);
    assert_eq!(top.end().code(), Some(0));
}

#[test]
fn stopped_it_leaves_the_terminal_to_others_and_comes_back() {
    let home = Home::new();
    let mut top = Top::start(&home, &[], (24, 80), false);
    for how in ["\x1a", "signal", "\x1a", "signal"] {
        top.shows("0 programs");
        match how {
            "signal" => top.signal(libc::SIGTSTP),
            key => top.type_in(key),
        }
        let mut status = 0;
        // SAFETY: writes one number.
        let pid = unsafe { libc::waitpid(top.child.id() as i32, &raw mut status, libc::WUNTRACED) };
        assert!(pid > 0 && libc::WIFSTOPPED(status), "{how:?}: {status:#x}");
        top.is_given_back();
        top.signal(libc::SIGCONT);
        until("the screen taken again", || top.seen.lock().unwrap().0.screen().alternate_screen());
    }
    top.type_in("q");
    assert_eq!(top.end().code(), Some(0));
}

#[test]
fn a_terminal_that_is_gone_ends_it() {
    let home = Home::new();
    let mut top = Top::start(&home, &[], (24, 80), false);
    top.shows("0 programs");
    let (mut status, null) = (None, File::open("/dev/null").unwrap());
    top.slave = null.into();
    // The reader has the other copy, and ends with the last user of the slave.
    top.master = None;
    top.signal(libc::SIGHUP);
    until("the end of outlast top", || {
        status = top.child.try_wait().unwrap();
        status.is_some()
    });
}

#[test]
fn it_follows_the_size_of_its_terminal() {
    let home = Home::new();
    let door = home.door();
    let child = home.start_script("it", &format!("{}; exit 3", door.wait()));
    home.await_protected("it");
    let mut top = Top::start(&home, &[], (24, 80), false);
    top.await_screen("a row", |screen| Top::cell(screen, "it", "P99").is_some());
    assert!(!top.text().contains("CALL/S"), "{}", top.text());
    top.resize(50, 160);
    top.await_screen("more columns", |screen| Top::cell(screen, "it", "CALL/S").is_some());
    for (rows, cols) in [(1, 1), (2, 5), (3, 200), (10, 40)] {
        top.resize(rows, cols);
        for keys in ["h", "q", "\r", "q", "k", "n"] {
            top.type_in(keys);
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
    top.shows("it");
    top.resize(24, 80);
    top.await_screen("a row", |screen| Top::cell(screen, "it", "RECOV").as_deref() == Some("0"));
    top.type_in("q");
    assert_eq!(top.end().code(), Some(0));
    door.open();
    assert_eq!(support::finish(child).status.code(), Some(3));
}

#[test]
fn it_filters_sorts_and_has_a_program_go_back() {
    let home = Home::new();
    let door = home.door();
    let wait = door.wait();
    let quiet = home.start_script("quiet", &format!("{wait}; exit 3"));
    let mut keeps = home.outlast(["run", "--name", "keeps", "--generations", "100ms", "--", "sh", "-c", &wait]);
    let keeps = keeps.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    home.await_protected("quiet");
    home.await_protected("keeps");
    let mut top = Top::start(&home, &[], (24, 120), false);
    top.shows("2 programs, 2 protected");
    let order = |screen: &str| {
        let names = screen.lines().filter_map(|line| line.split_whitespace().next().map(String::from));
        names.filter(|name| name == "quiet" || name == "keeps").collect::<Vec<_>>()
    };
    top.await_screen("both", |screen| order(screen) == ["keeps", "quiet"]);
    top.type_in("r");
    top.await_screen("them the other way round", |screen| order(screen) == ["quiet", "keeps"]);
    top.type_in("r/kee\r");
    top.await_screen("one", |screen| order(screen) == ["keeps"]);
    until("a generation", || {
        let output = home.outlast(["generations", "keeps", "--json"]).output().unwrap();
        serde_json::from_slice::<Value>(&output.stdout)
            .is_ok_and(|kept| kept.as_array().is_some_and(|kept| !kept.is_empty()))
    });
    top.type_in("R1ms\r");
    top.shows("go back to");
    top.type_in("y");
    home.await_event("keeps", "went-back", 1);
    top.shows("keeps is in that state now");
    top.type_in("\x1b");
    top.await_screen("both again", |screen| order(screen) == ["keeps", "quiet"]);
    top.type_in("q");
    assert_eq!(top.end().code(), Some(0));
    door.open();
    for child in [quiet, keeps] {
        support::finish(child);
    }
}

#[test]
fn colours_are_left_away_where_nobody_wants_them() {
    let home = Home::new();
    let door = home.door();
    let child = home.start_script("it", &format!("{}; exit 3", door.wait()));
    home.await_protected("it");
    assert!(home.outlast(["detach", "it"]).status().unwrap().success());
    let has_colour = |no_color| {
        let mut top = Top::start(&home, &[], (24, 80), no_color);
        top.await_screen("a row", |screen| Top::cell(screen, "it", "STATE").as_deref() == Some("suspended"));
        let bytes = String::from_utf8_lossy(&top.seen.lock().unwrap().1).into_owned();
        top.type_in("q");
        assert_eq!(top.end().code(), Some(0));
        bytes.contains("[38;5;") || (1..8).any(|colour| bytes.contains(&format!("[3{colour}m")))
    };
    assert!(has_colour(false));
    assert!(!has_colour(true));
    door.open();
    assert_eq!(support::finish(child).status.code(), Some(3));
}

#[test]
fn without_a_terminal_it_prints_tables_or_json() {
    let home = Home::new();
    let script = "i=0; while [ $i -lt 100000000 ]; do echo $i; i=$((i+1)); done";
    let mut child = home.run_script("it", script).stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut output = child.stdout.take().unwrap();
    std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
    home.await_protected("it");
    kill(&home.await_protected("it")["pid"], libc::SIGKILL);
    home.await_event("it", "recovered", 1);
    let output = home.outlast(["top", "-b", "-n", "2", "-d", "0.2"]).output().unwrap();
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(output.status.success() && text.matches("NAME").count() == 2, "{}", said(&output));
    assert_eq!(Top::cell(&text, "it", "RECOV").as_deref(), Some("1"), "{text}");
    let output = home.outlast(["top", "--json", "-n", "3", "-d", "1"]).output().unwrap();
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    let looks: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(looks.len(), 3, "{}", said(&output));
    for look in &looks {
        let program = &look["programs"][0];
        assert!(program["name"] == "it" && program["commits_per_s"].as_f64() > Some(0.0), "{look}");
        let [median, p99] = ["median", "p99"].map(|which| program["recent_commit_us"][which].as_f64().unwrap());
        assert!(0.0 < median && median <= p99, "{look}");
    }
    assert!(home.outlast(["stop", "it", "--timeout", "1ms"]).status().unwrap().success());
    child.wait().unwrap();
    let output = home.outlast(["top", "-d", "0"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
}
