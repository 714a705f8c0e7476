//! Older generations: a program goes back to one on request.

mod support;

use serde_json::Value;
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::process::{Command, Stdio};
use support::obedient::{Obedient, OFTEN};
use support::{finish, kill, said, until, Home};

#[test]
fn goes_back_to_an_older_state_and_on_from_there() {
    let home = Home::new();
    let mut program = Obedient::start(&home, "back", &OFTEN);
    program.say("x = 1");
    assert_eq!(program.ask("x"), "1");
    let first = program.keeps();
    program.say("x = 2; more = [b'm' * 999] * 9999");
    assert_eq!(program.ask("x"), "2");
    let second = program.keeps();
    assert!(second > first);
    let output = program.rewind(&first.to_string());
    assert!(output.status.success() && output.stdout.is_empty(), "{}", said(&output));
    assert_eq!(program.ask("x, 'more' in globals()"), "1 False");
    assert!(!program.numbers().contains(&second), "{:?}", program.numbers());
    // What comes now can be gone back to as well, and is protected as before.
    program.say("x = 10");
    assert_eq!(program.ask("x"), "10");
    let third = program.keeps();
    assert!(third > second, "numbers are not given twice");
    kill(&home.status("back")["pid"], libc::SIGKILL);
    assert_eq!(program.ask("x"), "10");
    assert!(program.rewind(&first.to_string()).status.success());
    assert_eq!(program.ask("x"), "1");
    assert!(program.rewind(&first.to_string()).status.success());
    assert_eq!(program.ask("x"), "1");
    assert_eq!(program.events("went-back"), 3);
    let log = home.log("back");
    let entry = log.iter().find(|entry| entry["event"] == "went-back").unwrap();
    assert!(
        entry["rung"] == 6 && entry["cause"].as_str().unwrap().starts_with(&format!("generation {first} ")),
        "{entry}"
    );
    program.say("sys.exit(7)");
    let output = program.end();
    assert_eq!(output.status.code(), Some(7), "{}", said(&output));
    let left: Vec<_> = std::fs::read_dir(home.state().join("back")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_str().unwrap().contains("gen")), "{left:?}");
}

#[test]
fn connections_end_with_what_was_said_on_them_and_whatever_else_was_open_goes_on() {
    let home = Home::new();
    let mut program = Obedient::start(&home, "linked", &OFTEN);
    program.say("import socket; a, b = socket.socketpair(); u = socket.socket(type=socket.SOCK_DGRAM); u.bind(('127.0.0.1', 0))");
    program.say("v = socket.socket(type=socket.SOCK_DGRAM); v.connect(u.getsockname()); t = socket.create_server(('127.0.0.1', 0))");
    program.say("n = socket.socket(socket.AF_UNIX); n.bind('\\0' + str(t.getsockname())); n.listen()");
    let port: u16 = program.ask("t.getsockname()[1]").parse().unwrap();
    let abstract_name = format!("('127.0.0.1', {port})");
    let connect = || {
        let address = SocketAddr::from_abstract_name(&abstract_name).unwrap();
        (TcpStream::connect(("127.0.0.1", port)).unwrap(), UnixStream::connect_addr(&address).unwrap())
    };
    let (mut tcp, mut unix) = connect();
    program.say("c, d = t.accept()[0], n.accept()[0]");
    assert_eq!(program.ask("1"), "1");
    let number = program.keeps();
    // The older state knows nothing of this.
    tcp.write_all(b"what").unwrap();
    unix.write_all(b"else").unwrap();
    assert_eq!(program.ask("c.recv(9), d.recv(9)"), "b'what' b'else'");
    assert!(program.rewind(&number.to_string()).status.success());
    assert_eq!(program.ask("c.recv(9), d.recv(9)"), "b'' b''");
    for stream in [&mut tcp as &mut dyn Read, &mut unix] {
        assert_eq!(stream.read(&mut [0; 9]).unwrap(), 0);
    }
    assert_eq!(program.ask("a.send(b'pair'), b.recv(9), v.send(b'datagram'), u.recv(9)"), "4 b'pair' 8 b'datagram'");
    let (mut tcp, mut unix) = connect();
    program.say("c, d = t.accept()[0], n.accept()[0]");
    assert_eq!(program.ask("c.send(b'anew'), d.send(b'anew')"), "4 4");
    for stream in [&mut tcp as &mut dyn Read, &mut unix] {
        let mut bytes = [0; 4];
        stream.read_exact(&mut bytes).unwrap();
        assert_eq!(&bytes, b"anew");
    }
    // All other recoveries are invisible there.
    kill(&home.status("linked")["pid"], libc::SIGKILL);
    assert_eq!(program.ask("c.send(b'more')"), "4");
    tcp.read_exact(&mut [0; 4]).unwrap();
    program.say("sys.exit(0)");
    assert!(program.end().status.success());
}

#[test]
fn an_age_takes_the_newest_state_that_is_as_old() {
    let home = Home::new();
    let mut program = Obedient::start(&home, "aged", &OFTEN);
    program.say("x = 1");
    program.ask("x");
    program.keeps();
    let old = std::time::Instant::now();
    // Its age is counted from when the command has come so far: a busy machine takes its time for that.
    std::thread::sleep(std::time::Duration::from_secs(4));
    program.say("x = 2");
    program.ask("x");
    program.keeps();
    let age = format!("{}ms", old.elapsed().as_millis());
    let output = program.rewind(&age);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(program.ask("x"), "1");
    let output = program.rewind("30days");
    assert_eq!(output.status.code(), Some(1));
    let told = said(&output);
    assert!(told.contains("no such generation") && told.contains("not one that is 30days old"), "{told}");
    assert_eq!(program.ask("x"), "1");
}

#[test]
fn what_cannot_be_gone_back_to_is_said() {
    let home = Home::new();
    let mut program = Obedient::start(&home, "kept", &OFTEN);
    let plain = Obedient::start(&home, "plain", &[]);
    let number = program.keeps();
    let output = program.rewind("987654");
    let told = said(&output);
    assert!(
        output.status.code() == Some(1) && told.contains(&format!("to {number}")) && told.contains("not 987654"),
        "{told}"
    );
    for args in
        [["generations", "plain"].as_slice(), &["rewind", "plain", "1"], &["fork", "plain", "--generation", "1"]]
    {
        let output = home.outlast(args).output().unwrap();
        assert!(output.status.code() == Some(1) && said(&output).contains("--generations 10s"), "{}", said(&output));
    }
    for args in [
        ["rewind", "kept", "soon"].as_slice(),
        &["rewind", "nobody", "1"],
        &["run", "--generations", "1h:1s", "--", "true"],
    ] {
        assert_eq!(home.outlast(args).output().unwrap().status.code(), Some(2), "{args:?}");
    }
    drop(plain);
    assert_eq!(program.ask("6 * 7"), "42");
}

/// Counts for ever. Its lines never cross a page of the file, where a rewind could cut one short: what it sent stays sent.
const COUNTS: &str = "i=0; while :; do i=$((i+1)); printf '%07d\\n' $i; done";

#[test]
fn rewinds_and_kills_in_a_storm_of_commits_lose_nothing_in_between() {
    let home = Home::new();
    let out = home.file("out");
    let file = OpenOptions::new().append(true).create(true).open(&out).unwrap();
    let mut run = home.outlast(["run", "--name", "storm"]);
    run.args(OFTEN).args(["--", "sh", "-c", COUNTS]).stdout(file).stderr(Stdio::piped());
    let child = run.spawn().unwrap();
    home.await_protected("storm");
    let numbers = || {
        let text = std::fs::read_to_string(&out).unwrap();
        let complete = text.rsplit_once('\n').map_or("", |(lines, _)| lines).to_string();
        complete.lines().map(|line| line.parse::<u64>().unwrap()).collect::<Vec<_>>()
    };
    let mut rewinds = 0;
    for round in 0..12 {
        let written = numbers().len();
        until("more lines", || numbers().len() > written + 500);
        if round % 3 == 2 {
            kill(&home.status("storm")["pid"], libc::SIGKILL);
            home.await_event("storm", "recovered", 1 + round / 3);
        }
        let mut kept: Vec<Value> = Vec::new();
        until("a generation", || {
            let output = home.outlast(["generations", "storm", "--json"]).output().unwrap();
            kept = serde_json::from_slice(&output.stdout).unwrap();
            !kept.is_empty()
        });
        let to = &kept[kept.len() / 2];
        // Going back to what nothing came after could not be seen.
        let written = numbers().len();
        until("lines after it", || numbers().len() > written);
        // The one that was listed may be given up before it is asked for.
        let output = home.outlast(["rewind", "storm", &to["generation"].to_string()]).output().unwrap();
        rewinds += output.status.success() as usize;
    }
    let written = numbers().len();
    until("lines at the end", || numbers().len() > written + 500);
    let back = numbers().windows(2).filter(|pair| pair[1] != pair[0] + 1).copied_pairs();
    assert!(rewinds >= 6, "{rewinds} rewinds");
    assert_eq!(back.len(), rewinds, "{back:?}");
    assert!(back.iter().all(|(from, to)| to <= from), "{back:?}");
    assert!(home.outlast(["stop", "storm"]).status().unwrap().success());
    finish(child);
}

trait Pairs {
    fn copied_pairs(self) -> Vec<(u64, u64)>;
}

impl<'a, I: Iterator<Item = &'a [u64]>> Pairs for I {
    fn copied_pairs(self) -> Vec<(u64, u64)> {
        self.map(|pair| (pair[0], pair[1])).collect()
    }
}

#[test]
fn whoever_is_killed_while_a_program_goes_back_it_is_in_one_of_its_states() {
    kill_whoever_goes_back(&Home::new(), &OFTEN);
}

#[test]
fn whoever_is_killed_while_a_program_goes_back_encrypted_it_is_in_one_of_its_states() {
    let home = Home::new();
    let key = home.file("key");
    std::fs::write(&key, [7; 32]).unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    kill_whoever_goes_back(&home, &[&OFTEN[..], &["--encrypt", key.to_str().unwrap()]].concat());
}

fn kill_whoever_goes_back(home: &Home, options: &[&str]) {
    let mut program = Obedient::start(home, "hit", options);
    program.say("x = 1; ballast = [os.urandom(4096) for _ in range(500)]");
    program.ask("x");
    let mut kept = program.keeps();
    for round in 0..15u64 {
        program.say(&format!("x = {}", round + 2));
        assert_eq!(program.ask("x"), (round + 2).to_string());
        let status = home.status("hit");
        let mut rewind = home.outlast(["rewind", "hit", &kept.to_string()]);
        let rewind = rewind.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_micros(3000 * (round * 7 % 15)));
        let who = ["supervisor", "pid", "anchor"][round as usize % 3];
        if status[who].is_number() {
            kill(&status[who], libc::SIGKILL);
        }
        finish(rewind);
        home.await_status("hit", |status| status["state"] == "protected" && status["supervisor"].is_number());
        let x: u64 = program.ask("x").parse().unwrap();
        assert!(x == round + 2 || x == 1, "round {round}: {x}");
        program.say("x = 1");
        program.ask("x");
        kept = program.keeps();
    }
    assert!(program.events("went-back") > 3);
}

/// With `--commit manual` files are first taken back to the last commit, whatever was read and changed since.
#[test]
fn files_that_are_taken_back_to_the_last_commit_are_so_before_it_goes_back_further() {
    let home = Home::new();
    let folder = home.file("files");
    std::fs::create_dir(&folder).unwrap();
    let options = [&OFTEN[..], &["--commit", "manual"]].concat();
    let mut program = Obedient::start(&home, "files", &options);
    program.say(&format!(
        "os.chdir({folder:?}); open('keep', 'w').write('kept'); open('gone', 'w').write('was here'); x = 1"
    ));
    assert_eq!(program.ask("x"), "1");
    let first = program.keeps();
    program.say("x = 2");
    assert_eq!(program.ask("x"), "2");
    program.say("os.unlink('gone'); open('new', 'w').write('new')");
    program.say("f = open('keep', 'w'); f.write('something else'); f.flush()");
    assert_eq!(program.ask("sorted(f for f in os.listdir() if f[0] != '.')"), "['keep', 'new']");
    assert!(program.rewind(&first.to_string()).status.success());
    assert_eq!(program.ask("x, sorted(os.listdir())"), "1 ['gone', 'keep']");
    assert_eq!(program.ask("open('keep').read(), open('gone').read()"), "kept was here");
    let output = program.end();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), 2);
}

/// Generations must leave the store its room.
#[test]
fn without_room_there_are_fewer_generations_and_the_program_goes_on() {
    let home = Home::new();
    let mut command = Command::new("unshare");
    // SAFETY: plain system call.
    command.args(if unsafe { libc::geteuid() } == 0 { &["--mount"][..] } else { &["--mount", "--map-root-user"] });
    command.args([
        "sh",
        "-c",
        "mkdir -p \"$0\" && mount -t tmpfs -o size=48m none \"$0\" && chmod 700 \"$0\" && exec \"$@\"",
    ]);
    command.arg(home.state()).arg(env!("CARGO_BIN_EXE_outlast")).args([
        "run",
        "--name",
        "tight",
        "--generations",
        "20ms:1h:1GiB",
    ]);
    let script = "import os, time
x = bytearray(os.urandom(4 << 20))
for n in range(40):
    x[:] = os.urandom(len(x)); print(n); time.sleep(0.04)
home = os.environ['OUTLAST_STATE_DIR'] + '/tight/'
while True:
    try:
        sizes = [os.stat(home + file).st_blocks * 512 for file in os.listdir(home) if 'gen' in file]
        break
    except FileNotFoundError: pass # given up just then
print(len(sizes), sum(sizes) >> 20, open(home + 'log.jsonl').read().count('suspended')); raise SystemExit(9)";
    command.args(["--", "/usr/bin/python3", "-u", "-c", script]).env("OUTLAST_STATE_DIR", home.state());
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(9), "{}", said(&output));
    let text = String::from_utf8_lossy(&output.stdout);
    let last: Vec<u32> = text.lines().last().unwrap().split(' ').map(|word| word.parse().unwrap()).collect();
    let [files, size, suspended] = last[..] else { panic!("{text}") };
    assert!(files >= 2 && (4..42).contains(&size) && suspended == 0, "{files} files, {size} MiB, {suspended}");
}
