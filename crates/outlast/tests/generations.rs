//! Older generations: a program goes back to one, a copy goes on from one, and a failure that repeats is met with one.

mod support;

use serde_json::Value;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use support::{finish, kill, said, until, Home};

/// Does what it is told, line by line.
const OBEYS: &str = "import sys, os, ctypes
bad, x = False, 0
for line in sys.stdin:
    if bad: ctypes.string_at(0)
    exec(line)
";

/// A program that obeys, and what it says.
struct Obedient<'h> {
    home: &'h Home,
    name: String,
    child: Child,
    input: Option<ChildStdin>,
    out: PathBuf,
    told: usize,
}

impl<'h> Obedient<'h> {
    fn start(home: &'h Home, name: &str, options: &[&str]) -> Self {
        let mut command = home.outlast(["run", "--name", name]);
        command.args(options).args(["--", "/usr/bin/python3", "-u", "-c", OBEYS]);
        Self::begin(home, name, command)
    }

    fn fork(home: &'h Home, of: &str, name: &str, options: &[&str]) -> Self {
        let mut command = home.outlast(["fork", of, "--name", name]);
        command.args(options);
        Self::begin(home, name, command)
    }

    fn begin(home: &'h Home, name: &str, mut command: Command) -> Self {
        let out = home.file(&format!("{name}.out"));
        // Appended to: a file whose end was given up would hide what is written again.
        let file = OpenOptions::new().append(true).create(true).open(&out).unwrap();
        let mut child = command.stdin(Stdio::piped()).stdout(file).stderr(Stdio::piped()).spawn().unwrap();
        let input = child.stdin.take();
        let this = Self { home, name: name.into(), child, input, out, told: 0 };
        home.await_status(name, |status| status["protected"] == true && status["state"] == "protected");
        this
    }

    fn say(&mut self, line: &str) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    /// What it answers to a question that nobody asked before.
    fn ask(&mut self, what: &str) -> String {
        self.told += 1;
        let (n, out) = (self.told, self.out.clone());
        self.say(&format!("print('answer {n}:', {what}, '.')"));
        let (from, mut answer) = (format!("answer {n}: "), String::new());
        until(&format!("the answer {n} of {} to {what}", self.name), || {
            let text = std::fs::read_to_string(&out).unwrap();
            let found = text.lines().rfind(|line| line.starts_with(&from) && line.ends_with(" ."));
            answer = found.map(|line| line[from.len()..line.len() - 2].into()).unwrap_or_default();
            found.is_some()
        });
        answer
    }

    /// The number of a generation that was begun after this was called.
    fn keeps(&mut self) -> u64 {
        // The one that is being made just now may have begun before.
        for _ in 0..2 {
            let before = self.generations().last().map_or(0, |last| last["seq"].as_u64().unwrap());
            let output = self.home.outlast(["commit", &self.name]).output().unwrap();
            assert!(output.status.success(), "{}", said(&output));
            until("a generation", || {
                self.generations().last().is_some_and(|last| last["seq"].as_u64().unwrap() > before)
            });
        }
        self.generations().last().unwrap()["generation"].as_u64().unwrap()
    }

    fn generations(&self) -> Vec<Value> {
        let output = self.home.outlast(["generations", &self.name, "--json"]).output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    fn numbers(&self) -> Vec<u64> {
        self.generations().iter().map(|kept| kept["generation"].as_u64().unwrap()).collect()
    }

    fn rewind(&self, to: &str) -> Output {
        self.home.outlast(["rewind", &self.name, to]).output().unwrap()
    }

    fn events(&self, event: &str) -> usize {
        self.home.events(&self.name).iter().filter(|e| *e == event).count()
    }

    fn end(mut self) -> Output {
        drop(self.input.take());
        finish(self.child)
    }
}

const OFTEN: [&str; 2] = ["--generations", "50ms:1h:64MiB"];

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
fn an_age_takes_the_newest_state_that_is_as_old() {
    let home = Home::new();
    let mut program = Obedient::start(&home, "aged", &OFTEN);
    program.say("x = 1");
    program.ask("x");
    program.keeps();
    let old = std::time::Instant::now();
    std::thread::sleep(std::time::Duration::from_millis(300));
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

#[test]
fn a_copy_and_its_copy_and_the_original_all_go_on() {
    let home = Home::new();
    let mut program = Obedient::start(&home, "one", &OFTEN);
    program.say("x = 1");
    program.ask("x");
    let first = program.keeps();
    program.say("x = 2");
    program.ask("x");
    let mut older = Obedient::fork(&home, "one", "older", &["--generation", &first.to_string()]);
    let mut newer = Obedient::fork(&home, "one", "newer", &[]);
    older.told = 100;
    newer.told = 200;
    assert_eq!(older.ask("x"), "1");
    assert_eq!(newer.ask("x"), "2");
    newer.say("x = 30");
    assert_eq!(newer.ask("x"), "30");
    let mut again = Obedient::fork(&home, "newer", "again", &[]);
    again.told = 300;
    assert_eq!(again.ask("x"), "30");
    // A copy keeps generations of its own, and is protected like any other program.
    let kept = again.keeps();
    again.say("x = 31");
    assert_eq!(again.ask("x"), "31");
    kill(&home.status("again")["pid"], libc::SIGKILL);
    assert_eq!(again.ask("x"), "31");
    assert!(again.rewind(&kept.to_string()).status.success());
    assert_eq!(again.ask("x"), "30");
    assert_eq!(program.ask("x"), "2");
    assert_eq!(older.ask("x"), "1");
    let mut pids: Vec<_> = ["one", "older", "newer", "again"].map(|name| home.status(name)["pid"].to_string()).to_vec();
    pids.sort();
    pids.dedup();
    assert_eq!(pids.len(), 4);
    let output = home.outlast(["fork", "one", "--name", "newer"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    for program in [program, older, newer, again] {
        let output = program.end();
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    }
}

/// Counts for ever.
const COUNTS: &str = "i=0; while :; do i=$((i+1)); echo $i; done";

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
    let home = Home::new();
    let mut program = Obedient::start(&home, "hit", &OFTEN);
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

/// Connections that were there then and still are go on; those of a copy are closed.
#[test]
fn connections_go_on_in_the_program_that_went_back_and_not_in_a_copy() {
    let home = Home::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut program = Obedient::start(&home, "client", &OFTEN);
    program.say(&format!(
        "import socket; s = socket.create_connection(('127.0.0.1', {})); x = 1",
        listener.local_addr().unwrap().port()
    ));
    let (mut peer, _) = listener.accept().unwrap();
    assert_eq!(program.ask("s.send(b'one')"), "3");
    let first = program.keeps();
    program.say("x = 2");
    assert_eq!(program.ask("s.send(b'two')"), "3");
    assert!(program.rewind(&first.to_string()).status.success());
    assert_eq!(program.ask("x, s.send(b'three')"), "1 5");
    let mut heard = [0; 11];
    peer.read_exact(&mut heard).unwrap();
    assert_eq!(&heard, b"onetwothree");
    let mut copy = Obedient::fork(&home, "client", "copy", &[]);
    copy.told = 100;
    assert_eq!(copy.ask("x, s.recv(9)"), "1 b''");
    assert!(copy.home.status("copy")["degradations"].to_string().contains("descriptor-lost"));
    peer.write_all(b"still here").unwrap();
    assert_eq!(program.ask("s.recv(10)"), "b'still here'");
    let mut heir = Obedient::fork(&home, "client", "heir", &["--connections", "given"]);
    heir.told = 200;
    assert_eq!(heir.ask("x, s.send(b'heir')"), "1 4");
    assert_eq!(program.ask("s.send(b'both')"), "4");
    let mut heard = [0; 8];
    peer.read_exact(&mut heard).unwrap();
    assert_eq!(&heard, b"heirboth");
    // Nobody else keeps it open.
    for program in [program, heir] {
        assert_eq!(program.end().status.code(), Some(0));
    }
    assert_eq!(peer.read(&mut heard).unwrap(), 0);
}

/// The damage was committed before the crash: going back to the last commit meets the same crash again and again.
#[test]
fn a_failure_that_repeats_is_met_with_an_older_state() {
    let home = Home::new();
    let mut program = Obedient::start(&home, "sick", &OFTEN);
    program.say("x = 5");
    assert_eq!(program.ask("x"), "5");
    program.keeps();
    program.say("bad = True; print('spoilt')");
    until("the damage", || std::fs::read_to_string(&program.out).unwrap().contains("spoilt"));
    // Kept as well, so that the newest generation does not help either.
    program.keeps();
    program.say("print('never said')");
    home.await_event("sick", "went-back", 1);
    // The newest states are damaged as well; what it was told in them is not told it again.
    until("a state without the damage", || {
        program.say("print('damaged', bad)");
        std::fs::read_to_string(&program.out).unwrap().contains("damaged False")
    });
    assert!(program.events("went-back") >= 2);
    assert_eq!(program.ask("x, bad"), "5 False");
    let log = home.log("sick");
    assert!(log.iter().filter(|entry| entry["event"] == "rollback").count() >= 6, "{log:#?}");
    assert!(
        log.iter().any(|e| e["event"] == "went-back" && e["cause"].as_str().unwrap().contains("SIGSEGV")),
        "{log:#?}"
    );
    assert!(!std::fs::read_to_string(&program.out).unwrap().contains("never said"));
    let output = program.end();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(String::from_utf8_lossy(&output.stderr).contains("it goes on from generation"), "{}", said(&output));
}

/// A store that cannot be read is no end where there is an older state.
#[test]
fn a_damaged_store_is_met_with_an_older_state() {
    let home = Home::new();
    let mut program = Obedient::start(&home, "torn", &OFTEN);
    program.say("x = 4");
    assert_eq!(program.ask("x"), "4");
    program.keeps();
    let status = home.status("torn");
    let mut store = File::options().write(true).open(status["store"].as_str().unwrap()).unwrap();
    store.write_all(&[0x55; 12 << 10]).unwrap();
    kill(&status["pid"], libc::SIGKILL);
    home.await_event("torn", "went-back", 1);
    assert_eq!(program.ask("x"), "4");
    kill(&home.status("torn")["pid"], libc::SIGKILL);
    assert_eq!(program.ask("x"), "4");
    program.say("sys.exit(6)");
    let output = program.end();
    assert_eq!(output.status.code(), Some(6), "{}", said(&output));
    assert!(!home.state().join("torn/store").exists());
}

/// What fails in every state ends, and says that everything was tried.
#[test]
fn a_failure_in_every_state_is_the_end() {
    let home = Home::new();
    let script = "import ctypes, os, time
home, n = os.environ['OUTLAST_STATE_DIR'] + '/doomed', 0
while not any(file[-1].isdigit() and 'gen' in file for file in os.listdir(home)): n += 1; print(n); time.sleep(0.01)
ctypes.string_at(0)";
    let mut run = home.outlast(["run", "--name", "doomed"]);
    run.args(OFTEN).args(["--retries", "1", "--", "/usr/bin/python3", "-u", "-c", script]);
    let child = run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let output = finish(child);
    assert_eq!(output.status.signal(), Some(libc::SIGSEGV), "{}", said(&output));
    let log = home.log("doomed");
    assert!(log.iter().any(|entry| entry["event"] == "went-back"), "{log:#?}");
    let gave_up = log.iter().rfind(|entry| entry["event"] == "gave-up").unwrap();
    assert!(gave_up["cause"].as_str().unwrap().contains("also from all older generations"), "{log:#?}");
}

#[test]
fn damaged_generations_harm_nobody() {
    let home = Home::new();
    let mut program = Obedient::start(&home, "rotten", &OFTEN);
    program.say("x = 3");
    program.ask("x");
    let number = program.keeps();
    for entry in std::fs::read_dir(home.state().join("rotten")).unwrap() {
        let path = entry.unwrap().path();
        if path.to_str().unwrap().ends_with(".pages") {
            let mut bytes = std::fs::read(&path).unwrap();
            bytes.iter_mut().step_by(500).for_each(|byte| *byte ^= 0x40);
            File::options().write(true).open(&path).unwrap().write_all(&bytes).unwrap();
        }
    }
    let output = program.rewind(&number.to_string());
    assert!(output.status.code() == Some(1) && said(&output).contains("damaged"), "{}", said(&output));
    let output = home.outlast(["fork", "rotten", "--generation", &number.to_string(), "--name", "b"]).output().unwrap();
    assert!(output.status.code() == Some(1) && said(&output).contains("damaged"), "{}", said(&output));
    assert!(home.status("b").is_null());
    assert_eq!(program.ask("x"), "3");
    assert_eq!(program.events("went-back"), 0);
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
sizes = [os.stat(home + file).st_blocks * 512 for file in os.listdir(home) if 'gen' in file]
print(len(sizes), sum(sizes) >> 20, open(home + 'log.jsonl').read().count('suspended')); raise SystemExit(9)";
    command.args(["--", "/usr/bin/python3", "-u", "-c", script]).env("OUTLAST_STATE_DIR", home.state());
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(9), "{}", said(&output));
    let text = String::from_utf8_lossy(&output.stdout);
    let last: Vec<u32> = text.lines().last().unwrap().split(' ').map(|word| word.parse().unwrap()).collect();
    let [files, size, suspended] = last[..] else { panic!("{text}") };
    assert!(files >= 2 && (4..42).contains(&size) && suspended == 0, "{files} files, {size} MiB, {suspended}");
}
