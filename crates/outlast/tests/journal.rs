//! systemd's journal is told what is in the log; here a socket stands in its place.

mod support;

use std::collections::BTreeMap;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;
use support::{kill, until, Home};

struct Journal {
    socket: UnixDatagram,
    path: PathBuf,
}

impl Journal {
    fn open(home: &Home) -> Self {
        let path = home.file("journal");
        let socket = UnixDatagram::bind(&path).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        Self { socket, path }
    }

    fn tell<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        command.env("OUTLAST_JOURNAL_SOCKET", &self.path)
    }

    /// The fields of the next entry.
    fn next(&self) -> BTreeMap<String, String> {
        let mut bytes = [0; 65_536];
        let read = loop {
            match self.socket.recv(&mut bytes) {
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => (),
                read => break read.expect("an entry"),
            }
        };
        let text = std::str::from_utf8(&bytes[..read]).unwrap();
        text.lines().map(|line| line.split_once('=').unwrap_or_else(|| panic!("{text}"))).map(owned).collect()
    }

    /// The next entry about this kind of event.
    fn next_of(&self, event: &str) -> BTreeMap<String, String> {
        loop {
            let entry = self.next();
            if entry["OUTLAST_EVENT"] == event {
                return entry;
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.socket.set_nonblocking(true).unwrap();
        let is_empty = self.socket.recv(&mut [0; 16]).is_err();
        self.socket.set_nonblocking(false).unwrap();
        is_empty
    }
}

fn owned((name, value): (&str, &str)) -> (String, String) {
    (name.into(), value.into())
}

#[test]
fn what_happens_is_told_with_fields() {
    let home = Home::new();
    let (door, journal) = (home.door(), Journal::open(&home));
    let mut command = home.outlast(["run", "--name", "it", "--journal", "--storm", "2:60s", "--", "sh", "-c"]);
    command.arg(format!("{}; exit 3", door.wait())).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = journal.tell(&mut command).spawn().unwrap();
    assert_eq!(journal.next_of("injected")["OUTLAST_NAME"], "it");
    let mut ids = std::collections::BTreeSet::new();
    for n in 1..=3 {
        kill(&home.await_protected("it")["pid"], libc::SIGKILL);
        home.await_event("it", "recovered", n);
        let entry = journal.next_of("recovered");
        assert_eq!((&*entry["OUTLAST_CAUSE"], &*entry["OUTLAST_RUNG"], &*entry["PRIORITY"]), ("SIGKILL", "2", "5"));
        assert!(entry["MESSAGE"].starts_with("it: recovered from SIGKILL"), "{entry:?}");
        assert_eq!(entry["SYSLOG_IDENTIFIER"], "outlast");
        ids.insert(entry["MESSAGE_ID"].clone());
    }
    let storm = journal.next_of("storm");
    assert_eq!((&*storm["PRIORITY"], &*storm["OUTLAST_CAUSE"]), ("2", "3 recoveries within 1m"));
    assert!(ids.len() == 1 && !ids.contains(&storm["MESSAGE_ID"]), "one number for each kind: {ids:?}");
    door.open();
    assert_eq!(support::finish(child).status.code(), Some(3));
    assert_eq!(journal.next_of("exit")["OUTLAST_CAUSE"], "exit 3");
}

#[test]
fn another_supervisor_goes_on_telling() {
    let home = Home::new();
    let (door, journal) = (home.door(), Journal::open(&home));
    let mut command = home.outlast(["run", "--name", "it", "--journal", "--", "sh", "-c"]);
    command.arg(door.wait()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = journal.tell(&mut command).spawn().unwrap();
    let before = home.await_protected("it")["supervisor"].clone();
    kill(&before, libc::SIGKILL);
    child.wait().unwrap();
    journal.next_of("supervisor-restarted");
    home.await_status("it", |status| status["supervisor"].is_i64() && status["supervisor"] != before);
    kill(&home.await_protected("it")["pid"], libc::SIGKILL);
    journal.next_of("recovered");
    door.open();
    journal.next_of("exit");
}

#[test]
fn a_journal_that_takes_nothing_holds_nobody_up() {
    let home = Home::new();
    let (door, journal) = (home.door(), Journal::open(&home));
    let other = UnixDatagram::unbound().unwrap();
    other.set_nonblocking(true).unwrap();
    while other.send_to(b"full", &journal.path).is_ok() {}
    let mut command = home.outlast(["run", "--name", "it", "--journal=yes", "--", "sh", "-c"]);
    command.arg(format!("{}; exit 3", door.wait())).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = journal.tell(&mut command).spawn().unwrap();
    for n in 1..=5 {
        kill(&home.await_protected("it")["pid"], libc::SIGKILL);
        home.await_event("it", "recovered", n);
    }
    std::fs::remove_file(&journal.path).unwrap();
    kill(&home.await_protected("it")["pid"], libc::SIGKILL);
    home.await_event("it", "recovered", 6);
    door.open();
    assert_eq!(support::finish(child).status.code(), Some(3));
}

#[test]
fn a_person_at_a_terminal_has_no_journal() {
    let home = Home::new();
    let journal = Journal::open(&home);
    for options in [&[][..], &["--journal=no"], &["--journal=auto"]] {
        let mut command = home.outlast(["run", "--name", "it"].iter().chain(options).chain(&["--", "true"]));
        assert!(journal.tell(&mut command).status().unwrap().success());
        until("the end in the log", || home.events("it").contains(&"exit".to_string()));
        assert!(journal.is_empty());
    }
}
