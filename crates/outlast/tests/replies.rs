//! Servers whose replies have no commit before them.

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use support::{finish, kill, said, Home};

/// The signal by which the engine is knocked at.
const KNOCK: i32 = 64;

/// Answers each request with ten bytes.
const SERVER: &str = "import os, socket, time
listener = socket.create_server(('127.0.0.1', 0))
print(listener.getsockname()[1], flush=True)
count = 0
while True:
    client = listener.accept()[0]
    if FORKS and os.fork() == 0:
        while not os.path.exists(DOOR):
            time.sleep(0.01)
        os._exit(client.send(b'of a child'))
    while client.recv(100):
        count += 1
        client.sendall(REPLY)
";
/// Answers with as many bytes of a file as a call is made to send while there is room for them, and ends when one sends less.
const SENDER: &str = "import ctypes, select, socket, sys, tempfile
send = ctypes.CDLL(None, use_errno=True).sendfile
file = tempfile.TemporaryFile()
file.write(b'0' * LENGTH)
file.flush()
listener = socket.create_server(('127.0.0.1', 0))
print(listener.getsockname()[1], flush=True)
client = listener.accept()[0]
client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 * LENGTH)
client.setblocking(False)
while select.select([client], [], []) and client.recv(100):
    sent = send(client.fileno(), file.fileno(), ctypes.byref(ctypes.c_long(0)), LENGTH)
    if sent != LENGTH:
        sys.exit(f'sent {sent}, error {ctypes.get_errno()}')
";
const COUNTS: &str = "b'%9d\\n' % count";
const AT_RANDOM: &str = "os.urandom(5).hex().encode()";

struct Server<'h> {
    home: &'h Home,
    child: Child,
    client: TcpStream,
}

impl<'h> Server<'h> {
    fn start(home: &'h Home, options: &[&str], reply: &str) -> Self {
        Self::start_it(home, options, &SERVER.replace("REPLY", reply).replace("FORKS", "False").replace("DOOR", "''"))
    }

    fn start_it(home: &'h Home, options: &[&str], script: &str) -> Self {
        let mut server = Self::start_alone(home, options, script);
        // From the second reply on all is as it will be.
        server.ask();
        server.ask();
        server
    }

    fn start_alone(home: &'h Home, options: &[&str], script: &str) -> Self {
        let command = ["run", "--name", "web", "--every", "never"];
        let own = [&command[..], options, &["--", "/usr/bin/python3", "-c", script]].concat();
        let mut child = home.outlast(own).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut port = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut port).unwrap();
        let client = TcpStream::connect(("127.0.0.1", port.trim().parse().unwrap())).unwrap();
        client.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let server = Self { home, child, client };
        home.await_protected("web");
        server
    }

    fn ask(&mut self) -> String {
        self.client.write_all(b"request").unwrap();
        self.hear()
    }

    fn hear(&mut self) -> String {
        let mut reply = [0; 10];
        self.client.read_exact(&mut reply).unwrap();
        String::from_utf8(reply.into()).unwrap()
    }

    /// Commits that so many replies take.
    fn commits(&mut self, replies: u64) -> u64 {
        let now = || self.home.status("web")["commits"].as_u64().unwrap();
        let before = now();
        (0..replies).for_each(|_| drop(self.ask()));
        self.home.status("web")["commits"].as_u64().unwrap() - before
    }

    fn die(&mut self, times: usize) {
        kill(&self.home.await_protected("web")["pid"], libc::SIGKILL);
        self.home.await_event("web", "recovered", times);
    }

    fn tells_of_differences(&self) -> bool {
        self.home.log("web").iter().any(|entry| entry["cause"] == "reply-differs")
    }

    fn end(self) {
        let stopped = self.home.outlast(["stop", "web", "--timeout", "10s"]).output().unwrap();
        assert!(stopped.status.success(), "{}", said(&stopped));
        drop(finish(self.child));
    }
}

#[test]
fn replies_have_no_commit_each_and_their_log_is_bounded() {
    let home = Home::new();
    let mut server = Server::start(&home, &["--server"], COUNTS);
    let commits = server.commits(300);
    assert!((2..30).contains(&commits), "{commits}");
    server.end();
    let home = Home::new();
    let mut server = Server::start(&home, &[], COUNTS);
    let commits = server.commits(300);
    assert!(commits >= 300, "{commits}");
    server.end();
}

#[test]
fn the_module_is_added_and_removed_while_the_server_answers() {
    let home = Home::new();
    let mut server = Server::start(&home, &[], COUNTS);
    for times in 1..6 {
        for (what, few) in [("add", true), ("remove", false)] {
            let output = home.outlast(["module", what, "server", "web"]).output().unwrap();
            assert!(output.status.success(), "{}", said(&output));
            let commits = server.commits(50);
            assert_eq!(commits < 10, few, "{commits}");
        }
        server.die(times);
    }
    assert_eq!(server.ask().trim(), (2 + 500 + 1).to_string());
    server.end();
}

#[test]
fn a_recovered_server_goes_on_counting_and_one_that_replies_otherwise_is_told_of() {
    for (reply, differs) in [(COUNTS, false), (AT_RANDOM, true)] {
        let home = Home::new();
        let mut server = Server::start(&home, &["--server"], reply);
        for times in 1..=20 {
            let replies: Vec<String> = (0..times).map(|_| server.ask()).collect();
            if !differs {
                let first = 3 + times * (times - 1) / 2;
                let expected: Vec<String> = (first..first + times).map(|count| format!("{count:9}\n")).collect();
                assert_eq!(replies, expected);
            }
            server.die(times);
        }
        // Nothing is left over, nor missing.
        server.ask();
        server.client.set_nonblocking(true).unwrap();
        assert!(server.client.read(&mut [0]).is_err());
        assert_eq!(server.tells_of_differences(), differs);
        server.end();
    }
}

#[test]
fn what_a_child_sends_on_the_same_connection_is_not_taken_for_a_reply() {
    let home = Home::new();
    let door = format!("{:?}", home.file("door"));
    let script = SERVER.replace("REPLY", COUNTS).replace("FORKS", "True").replace("DOOR", &door);
    let mut server = Server::start_it(&home, &["--server"], &script);
    assert_eq!(server.ask().trim(), "3");
    home.door().open();
    assert_eq!(server.hear(), "of a child");
    for times in 1..=3 {
        server.die(times);
        assert_eq!(server.ask().trim(), (3 + times).to_string());
    }
    server.end();
}

#[test]
fn a_knock_does_not_cut_short_what_is_sent_of_a_file() {
    let (home, length) = (Home::new(), 2 << 16);
    let script = SENDER.replace("LENGTH", &length.to_string());
    let mut server = Server::start_alone(&home, &["--server"], &script);
    let pid = home.await_protected("web")["pid"].clone();
    let (over, mut reply) = (AtomicBool::new(false), vec![0; length]);
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Relaxed) {
                kill(&pid, KNOCK);
                std::thread::sleep(Duration::from_micros(50));
            }
        });
        let outcome = (0..3000).try_for_each(|_| {
            server.client.write_all(b"request")?;
            server.client.read_exact(&mut reply)
        });
        over.store(true, Relaxed);
        outcome
    });
    if let Err(error) = outcome {
        panic!("{error}: {}", said(&finish(server.child)));
    }
    server.end();
}
