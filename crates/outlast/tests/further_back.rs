//! Rung 6: a failure that comes again is met with an older state.

mod support;

use serde_json::Value;
use std::fs::File;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use support::obedient::{Obedient, OFTEN};
use support::{finish, kill, said, until, Home};

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
    assert!(
        gave_up["cause"].as_str().unwrap().contains("also from all older generations and in other surroundings"),
        "{log:#?}"
    );
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

/// Writes beyond the end of a mapping, into the one above, and notices: always, unless there is room in between.
const OVERRUNS: &str = "import ctypes, mmap, os, sys, time
go, print_now = sys.argv[1], lambda text: os.write(1, text.encode() + b'\\n')
print_now('ready')
while not os.path.exists(go):
    time.sleep(0.02)
size, kind = 64 << 10, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
maps = [mmap.mmap(-1, size, flags=kind) for _ in range(8)]
places = [ctypes.addressof(ctypes.c_char.from_buffer(each)) for each in maps]
for place in places:
    ctypes.memset(place, 7, size)
for place in places:
    ctypes.memset(place + size, 9, 8)
if any(each[0] != 7 for each in maps):
    os.abort()
print_now('alive')
";

#[test]
fn what_fails_in_one_placement_lives_in_another() {
    let home = Home::new();
    let (go, out) = (home.file("go"), home.file("out"));
    let mut run = home.outlast(["run", "--name", "overruns"]);
    run.args(OFTEN).args(["--", "/usr/bin/python3", "-c", OVERRUNS]).arg(&go);
    let child = run.stdout(File::create(&out).unwrap()).stderr(Stdio::piped()).spawn().unwrap();
    until("a generation", || {
        let listed = home.outlast(["generations", "overruns", "--json"]).output().unwrap();
        let text = std::fs::read_to_string(&out).unwrap_or_default();
        serde_json::from_slice::<Value>(&listed.stdout)
            .is_ok_and(|all| all.as_array().is_some_and(|all| !all.is_empty()))
            && text.contains("ready")
    });
    File::create(&go).unwrap();
    let output = finish(child);
    let log = home.log("overruns");
    assert!(output.status.success(), "{}: {log:#?}", said(&output));
    assert!(std::fs::read_to_string(&out).unwrap().ends_with("alive\n"));
    let went_back: Vec<_> = log.iter().filter(|entry| entry["event"] == "went-back").collect();
    assert!(went_back.len() >= 2, "it failed in its own surroundings first: {log:#?}");
    assert!(went_back.last().unwrap()["cause"].as_str().unwrap().contains("room between new mappings"), "{log:#?}");
}

/// Makes calls that nobody can see, and that the engine does nothing for, and gives up if a signal has not come by then: always,
/// unless these calls are delayed.
const HASTY: &str = "import os, signal, sys, time
go, came = sys.argv[1], []
os.write(1, b'ready\\n')
while not os.path.exists(go):
    time.sleep(0.02)
signal.signal(signal.SIGALRM, lambda *_: came.append(1))
signal.setitimer(signal.ITIMER_REAL, 0.3)
for _ in range(40000):
    if came:
        break
    os.getppid()
if not came:
    os.abort()
os.write(1, b'alive\\n')
";

#[test]
fn what_fails_in_haste_lives_when_calls_that_nobody_sees_are_delayed() {
    let home = Home::new();
    let (go, out) = (home.file("go"), home.file("out"));
    let mut run = home.outlast(["run", "--name", "hasty"]);
    run.args(OFTEN).args(["--retries", "1", "--", "/usr/bin/python3", "-c", HASTY]).arg(&go);
    let child = run.stdout(File::create(&out).unwrap()).stderr(Stdio::piped()).spawn().unwrap();
    until("a generation", || {
        let listed = home.outlast(["generations", "hasty", "--json"]).output().unwrap();
        let text = std::fs::read_to_string(&out).unwrap_or_default();
        serde_json::from_slice::<Value>(&listed.stdout)
            .is_ok_and(|all| all.as_array().is_some_and(|all| !all.is_empty()))
            && text.contains("ready")
    });
    File::create(&go).unwrap();
    let output = finish(child);
    let log = home.log("hasty");
    assert!(output.status.success(), "{}: {log:#?}", said(&output));
    assert!(std::fs::read_to_string(&out).unwrap().ends_with("alive\n"));
}

/// Says each line that it reads, with its number, but for what is to be done quietly. A line `spoil` damages it while there is a file, and `use` shows that. What it says it says on a
/// pipe, where nothing can be taken back.
const SPOILT: &str = "import ctypes, os, sys
file, bad, rest, n = sys.argv[1], False, b'', 0
while True:
    part = os.read(0, 4096)
    if not part:
        break
    *lines, rest = (rest + part).split(b'\\n')
    for line in lines:
        n += 1
        if line == b'spoil':
            bad = os.path.exists(file)
        if line in (b'use', b'use it quietly') and bad:
            ctypes.string_at(0)
        if line.endswith(b'quietly'):
            continue
        os.write(1, b'%d %s\\n' % (n, line))
        if line == b'differ':
            os.write(1, b'%d\\n' % os.path.exists(file))
";

/// One of these under outlast, which keeps a state from its beginning and no later one.
struct Spoilt<'h> {
    home: &'h Home,
    file: std::path::PathBuf,
    child: std::process::Child,
    input: std::process::ChildStdin,
    output: std::io::BufReader<std::process::ChildStdout>,
    said: Vec<String>,
}

impl<'h> Spoilt<'h> {
    fn start(home: &'h Home) -> Self {
        let file = home.file("spoils");
        File::create(&file).unwrap();
        let mut run = home.outlast(["run", "--name", "spoilt", "--generations", "50ms", "--retries", "1"]);
        run.args(["--", "/usr/bin/python3", "-c", SPOILT]).arg(&file);
        let mut child = run.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let output = std::io::BufReader::new(output);
        home.await_status("spoilt", |status| status["protected"] == true && status["state"] == "protected");
        until("a generation", || {
            let listed = home.outlast(["generations", "spoilt", "--json"]).output().unwrap();
            serde_json::from_slice::<Value>(&listed.stdout)
                .is_ok_and(|all| all.as_array().is_some_and(|all| !all.is_empty()))
        });
        let add = home.outlast(["module", "add", "generations", "spoilt", "--generations", "1h"]).output().unwrap();
        assert!(add.status.success(), "{}", said(&add));
        Self { home, file, child, input, output, said: Vec::new() }
    }

    fn say(&mut self, line: &str) {
        writeln!(self.input, "{line}").unwrap();
    }

    fn hear(&mut self) {
        let mut line = String::new();
        std::io::BufRead::read_line(&mut self.output, &mut line).unwrap();
        self.said.push(line.trim_end().into());
    }

    fn end(mut self) -> (Vec<String>, Vec<Value>) {
        drop(self.input);
        let mut rest = String::new();
        std::io::Read::read_to_string(&mut self.output, &mut rest).unwrap();
        self.said.extend(rest.lines().map(String::from));
        let output = finish(self.child);
        let log = self.home.log("spoilt");
        assert!(output.status.success(), "{}: {log:#?}", said(&output));
        (self.said, log)
    }
}

fn went_back(log: &[Value]) -> Vec<&str> {
    let all = log.iter().filter(|entry| entry["event"] == "went-back");
    all.filter_map(|entry| entry["cause"].as_str()).collect()
}

#[test]
fn what_was_read_since_is_read_again_and_what_was_sent_is_not_sent_twice() {
    let home = Home::new();
    let mut program = Spoilt::start(&home);
    for line in ["one", "two", "spoil", "three"] {
        program.say(line);
        program.hear();
    }
    std::fs::remove_file(&program.file).unwrap();
    for line in ["use", "four", "spoil", "use", "five"] {
        program.say(line);
        program.hear();
    }
    let (said, log) = program.end();
    assert_eq!(
        said,
        ["1 one", "2 two", "3 spoil", "4 three", "5 use", "6 four", "7 spoil", "8 use", "9 five"],
        "{log:#?}"
    );
    let causes = went_back(&log);
    assert!(causes.len() == 1 && causes[0].contains("gets what it has read since"), "{log:#?}");
    assert!(!log.iter().any(|entry| entry["cause"] == "output-differs"), "{log:#?}");
}

/// It may die again while it reads that, and has begun to say something new.
#[test]
fn who_is_killed_on_the_way_back_comes_to_the_same_point() {
    for seed in 0..4 {
        let home = Home::new();
        let mut program = Spoilt::start(&home);
        let mut expected = Vec::new();
        for (n, line) in ["one", "spoil", "two", "three"].into_iter().enumerate() {
            program.say(line);
            program.hear();
            expected.push(format!("{} {line}", n + 1));
        }
        std::fs::remove_file(&program.file).unwrap();
        program.say("use");
        let mut random = fastrand::Rng::with_seed(seed);
        for _ in 0..3 {
            std::thread::sleep(std::time::Duration::from_millis(random.u64(0..30)));
            let pid = &home.status("spoilt")["pid"];
            if pid.is_i64() {
                kill(pid, libc::SIGKILL);
            }
        }
        program.hear();
        program.say("four");
        let (said, log) = program.end();
        expected.extend(["5 use", "6 four"].map(String::from));
        assert_eq!(said, expected, "seed {seed}: {log:#?}");
        assert_eq!(went_back(&log).len(), 1, "seed {seed}: {log:#?}");
    }
}

/// Nothing was committed on the way back, so that all of it is met again, before what was read there for the first time.
#[test]
fn what_is_new_comes_behind_what_was_read_before_also_after_another_death() {
    let home = Home::new();
    let mut program = Spoilt::start(&home);
    for line in ["one", "spoil"] {
        program.say(line);
        program.hear();
    }
    std::fs::remove_file(&program.file).unwrap();
    program.say("use it quietly");
    home.await_event("spoilt", "went-back", 1);
    program.say("wait quietly");
    // It is read at once, and nothing tells when.
    std::thread::sleep(std::time::Duration::from_millis(50));
    kill(&home.status("spoilt")["pid"], libc::SIGKILL);
    home.await_event("spoilt", "recovered", 1);
    program.say("five");
    let (said, log) = program.end();
    assert_eq!(said, ["1 one", "2 spoil", "5 five"], "{log:#?}");
    assert!(!log.iter().any(|entry| entry["cause"] == "output-differs"), "{log:#?}");
}

#[test]
fn who_sends_something_else_than_before_is_said_to() {
    let home = Home::new();
    let mut program = Spoilt::start(&home);
    for (line, answers) in [("one", 1), ("spoil", 1), ("differ", 2), ("two", 1)] {
        program.say(line);
        (0..answers).for_each(|_| program.hear());
    }
    std::fs::remove_file(&program.file).unwrap();
    program.say("use");
    let (said, log) = program.end();
    // Up to the difference nothing comes twice; from there on everything does.
    assert_eq!(said, ["1 one", "2 spoil", "3 differ", "1", "4 two", "0", "4 two", "5 use"], "{log:#?}");
    assert!(log.iter().any(|entry| entry["cause"] == "output-differs"), "{log:#?}");
}
