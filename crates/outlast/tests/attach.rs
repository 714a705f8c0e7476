//! A program that runs already is attached to, and outlasts its death from then on.

mod support;

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::sync::atomic::{AtomicI32, Ordering::SeqCst};
use std::time::{Duration, Instant};
use support::{counter, kill, said, trace, traced, until, Home};

const PYTHON: &str = "/usr/bin/python3";
const NOBODY: u32 = 65534;

/// A program that outlast has not started, ended with the value, whatever process it is then.
struct Program {
    child: Child,
    input: Option<ChildStdin>,
    /// What it prints.
    out: BufReader<ChildStdout>,
    pid: i32,
}

impl Program {
    fn start(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        // Kept here: to wait for a child closes its input.
        let input = child.stdin.take();
        Self { pid: child.id() as i32, child, input, out }
    }

    fn script(script: &str) -> Self {
        Self::start(Command::new("sh").args(["-c", script]))
    }

    fn python(script: &str) -> Self {
        Self::start(Command::new(PYTHON).args(["-u", "-c", script]))
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        line.trim_end().into()
    }

    fn tell(&mut self, line: &str) {
        self.input.as_mut().unwrap().write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// Everything that it prints from now on, until it has ended.
    fn rest(&mut self) -> String {
        drop(self.input.take());
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).unwrap();
        rest
    }

    /// Kills it, as its parent, which sees that.
    fn kill_first(&mut self) {
        kill(&self.pid.into(), libc::SIGKILL);
        assert_eq!(self.child.wait().unwrap().signal(), Some(libc::SIGKILL));
    }

    /// Waits until its only thread waits in a system call.
    fn await_sleep(&self) {
        until("it waits", || {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid)).unwrap();
            stat.rsplit(')').next().unwrap().trim_start().starts_with('S')
        });
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It is not waited for only as long as its number is its own.
        if self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

fn compile(home: &Home, source: &str) -> PathBuf {
    let to = home.file("program");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(source);
    let mut gcc = Command::new("gcc");
    let built = gcc.args(["-O2", "-Wall", "-Wextra", "-pthread", "-o"]).arg(&to).arg(source).output().unwrap();
    assert!(built.status.success(), "{}", said(&built));
    to
}

fn try_to_attach(home: &Home, pid: i32, options: &[&str]) -> Output {
    let pid = pid.to_string();
    home.outlast(["attach", &pid, "--name", "it", "--json"].iter().chain(options)).output().unwrap()
}

fn attach(home: &Home, pid: i32, options: &[&str]) -> Value {
    let output = try_to_attach(home, pid, options);
    assert!(output.status.success(), "{}", said(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["name"], &report["pid"]), (&"it".into(), &pid.into()));
    assert!(report["pause_us"].as_f64().unwrap() > 0.0, "{report}");
    report
}

/// Kills it as often, each time once it is back.
fn kill_again(home: &Home, times: usize) {
    for _ in 0..times {
        let recovered = home.events("it").iter().filter(|event| *event == "recovered").count();
        kill(&home.await_protected("it")["pid"], libc::SIGKILL);
        home.await_event("it", "recovered", recovered + 1);
    }
}

/// Moments for the hammer, the same ones for the same seed.
struct Moments(u64);

impl Moments {
    fn new() -> Self {
        let given = std::env::var("OUTLAST_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = given.unwrap_or_else(|| std::time::UNIX_EPOCH.elapsed().unwrap().subsec_nanos().into());
        println!("OUTLAST_SEED={seed}");
        Self(seed)
    }

    fn pause(&mut self, at_most_us: u64) {
        // Numerical Recipes' generator.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        std::thread::sleep(Duration::from_micros((self.0 >> 33) % at_most_us));
    }
}

/// A program that prints without pause is attached to and killed at any moment: what it prints is what it always prints.
fn prints_the_same(options: &[&str], rounds: usize) {
    let mut moments = Moments::new();
    for _ in 0..rounds {
        let home = Home::new();
        let (script, expected) = counter(60_000);
        let mut program = Program::script(&script);
        moments.pause(60_000);
        attach(&home, program.pid, options);
        let printed = std::thread::scope(|scope| {
            let printed = scope.spawn(|| {
                let mut printed = String::new();
                program.out.read_to_string(&mut printed).unwrap();
                printed
            });
            moments.pause(60_000);
            kill(&program.pid.into(), libc::SIGKILL);
            assert_eq!(program.child.wait().unwrap().signal(), Some(libc::SIGKILL));
            for _ in 0..3 {
                if home.status("it")["protected"] != true {
                    continue;
                }
                let status = home.status("it");
                if status["pid"].is_i64() {
                    kill(&status["pid"], libc::SIGKILL);
                }
                moments.pause(60_000);
            }
            printed.join().unwrap()
        });
        assert!(printed == expected, "lost or repeated: {} of {} bytes", printed.len(), expected.len());
        let events = home.events("it");
        assert!(events.contains(&"attached".into()) && events.contains(&"recovered".into()), "{events:?}");
        // Its own end is in the log, with its own status.
        until("its end", || home.status("it")["ended"] == "exit 3");
    }
}

/// The same, of several threads.
#[test]
fn threads_that_are_attached_to_anywhere_print_what_they_always_print() {
    let home = Home::new();
    let to = compile(&home, "attach/threads.c");
    let start = || {
        let mut program = Command::new(&to);
        program.args(["4000", "1"]);
        Program::start(&mut program)
    };
    let expected = start().rest();
    assert!(expected.ends_with("0 0\n"), "{expected}");
    let mut moments = Moments::new();
    for _ in 0..6 {
        let home = Home::new();
        let mut program = start();
        moments.pause(60_000);
        attach(&home, program.pid, &[]);
        moments.pause(100_000);
        program.kill_first();
        for _ in 0..2 {
            moments.pause(100_000);
            if let Value::Number(pid) = &home.status("it")["pid"] {
                kill(&Value::Number(pid.clone()), libc::SIGKILL);
            }
        }
        let printed = program.rest();
        assert!(printed == expected, "lost, repeated or late: {} of {} bytes", printed.len(), expected.len());
        until("its end", || home.status("it")["ended"] == "exit 5");
    }
}

#[test]
fn waits_of_threads_end_when_they_would_have_ended() {
    let home = Home::new();
    let to = compile(&home, "attach/threads.c");
    let mut program = Program::start(Command::new(&to).args(["10", "6"]).env("PUNCTUAL", "1"));
    std::thread::sleep(Duration::from_secs(4));
    attach(&home, program.pid, &[]);
    let printed = program.rest();
    assert!(printed.ends_with("0 0\n"), "{printed}");
    assert_eq!(program.child.wait().unwrap().code(), Some(5));
}

#[test]
fn threads_run_on_as_they_were_where_they_cannot_be_protected() {
    let home = Home::new();
    let to = compile(&home, "attach/threads.c");
    let mut program = Program::start(Command::new(&to).args(["4000", "3"]).env("PUNCTUAL", "1"));
    std::thread::sleep(Duration::from_secs(2));
    let refused = try_to_attach(&home, program.pid, &["--tracker", "mprotect"]);
    assert_eq!(refused.status.code(), Some(1), "{}", said(&refused));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("threads"), "{}", said(&refused));
    assert_eq!(home.status("it"), Value::Null);
    let printed = program.rest();
    assert!(printed.ends_with("0 0\n"), "{printed}");
    assert_eq!(program.child.wait().unwrap().code(), Some(5));
}

#[test]
fn a_program_that_is_attached_to_anywhere_prints_what_it_always_prints() {
    prints_the_same(&[], 8);
}

#[test]
fn so_it_does_where_written_pages_are_found_by_faults() {
    prints_the_same(&["--tracker", "mprotect"], 3);
}

#[test]
fn so_it_does_without_io_uring() {
    prints_the_same(&["--no-io-uring"], 3);
}

#[test]
fn no_page_is_missed_of_what_was_there_before() {
    prints_the_same(&["--check-commits"], 2);
}

#[test]
fn memory_and_state_of_before_are_there_after_a_death() {
    let home = Home::new();
    let mut program = Program::python(
        "import sys, os, random, hashlib
os.umask(0o27)
os.chdir('/usr')
before = random.Random(7).randbytes(20_000_000)
print('ready')
sys.stdin.readline()
print(hashlib.sha256(before).hexdigest(), os.getcwd(), oct(os.umask(0)), os.getpid())
sys.exit(9)",
    );
    assert_eq!(program.line(), "ready");
    attach(&home, program.pid, &[]);
    let before = program.pid;
    let hidden = std::process::id();
    program.kill_first();
    home.await_event("it", "recovered", 1);
    // SAFETY: plain system call.
    if unsafe { libc::geteuid() } == 0 {
        assert_eq!(home.await_protected("it")["pid"], before, "seen from {hidden}");
    }
    program.tell("go");
    let expected = Command::new(PYTHON)
        .args([
            "-c",
            "import random, hashlib; print(hashlib.sha256(random.Random(7).randbytes(20_000_000)).hexdigest())",
        ])
        .output()
        .unwrap();
    let digest = String::from_utf8(expected.stdout).unwrap();
    assert_eq!(program.rest(), format!("{} /usr 0o27 {before}\n", digest.trim_end()));
    until("its end", || home.status("it")["ended"] == "exit 9");
}

#[test]
fn a_program_that_waits_for_input_gets_it_after_a_death() {
    let home = Home::new();
    let mut program = Program::start(&mut Command::new("cat"));
    program.await_sleep();
    attach(&home, program.pid, &[]);
    program.tell("one");
    assert_eq!(program.line(), "one");
    program.kill_first();
    program.tell("two");
    assert_eq!(program.line(), "two");
    kill_again(&home, 2);
    program.tell("three");
    assert_eq!(program.rest(), "three\n");
}

#[test]
fn a_shell_that_reads_a_line_goes_on_with_its_variables() {
    let home = Home::new();
    let mut program = Program::start(Command::new("dash").arg("-s"));
    program.tell("kept=before; echo $kept");
    assert_eq!(program.line(), "before");
    program.await_sleep();
    attach(&home, program.pid, &[]);
    program.kill_first();
    program.tell("echo $kept; kept=after");
    assert_eq!(program.line(), "before");
    kill_again(&home, 2);
    program.tell("echo $kept; exit 4");
    assert_eq!(program.rest(), "after\n");
    until("its end", || home.status("it")["ended"] == "exit 4");
}

#[test]
fn a_sleep_that_is_attached_to_ends_when_it_would_have_ended() {
    for options in [&[][..], &["--tracker", "mprotect"]] {
        let home = Home::new();
        let begun = Instant::now();
        let mut program = Program::start(Command::new("sleep").arg("8"));
        std::thread::sleep(Duration::from_secs(6));
        program.await_sleep();
        attach(&home, program.pid, options);
        assert_eq!(program.child.wait().unwrap().code(), Some(0));
        let took = begun.elapsed();
        assert!(took >= Duration::from_secs(8) && took < Duration::from_secs(13), "{took:?}");
        until("its end", || home.status("it")["ended"] == "exit 0");
    }
}

#[test]
fn waits_of_all_kinds_end_by_their_time_and_by_nothing_else() {
    let home = Home::new();
    let to = compile(&home, "waits/program.c");
    let mut moments = Moments::new();
    for _ in 0..4 {
        let home = Home::new();
        let mut program = Program::start(Command::new(&to).args(["alone", "200"]));
        moments.pause(3_000_000);
        attach(&home, program.pid, &[]);
        let text = program.rest();
        // For these the kernel itself answers EINTR whoever stops the process; for raw ones since it cannot write what is left.
        let excused = |line: &str| {
            ["epoll", "raw", "semtimedop", "sigtimedwait", "io_getevents"].iter().any(|n| line.contains(n))
        };
        let not_over: Vec<_> = text.lines().filter(|line| !line.ends_with(": over") && !excused(line)).collect();
        assert!(not_over.is_empty() && text.lines().count() > 20, "{text}");
    }
}

#[test]
fn handlers_timers_and_masks_of_before_are_there_after_a_death() {
    let home = Home::new();
    let mut program = Program::python(
        "import signal, sys, time
ticks = 0
def tick(*_):
    global ticks
    ticks += 1
signal.signal(signal.SIGALRM, tick)
signal.signal(signal.SIGUSR1, lambda *_: print('usr1'))
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002) # shorter than the program stands still
print('ready')
while True:
    line = sys.stdin.readline()
    if not line: break
    had = ticks
    while ticks < had + 5: pass
    print('ticks', signal.SIGUSR2 in signal.pthread_sigmask(signal.SIG_BLOCK, []))",
    );
    assert_eq!(program.line(), "ready");
    attach(&home, program.pid, &[]);
    program.tell("");
    assert_eq!(program.line(), "ticks True");
    program.kill_first();
    let status = home.await_protected("it");
    for signal in [libc::SIGTERM, libc::SIGUSR2, libc::SIGUSR1] {
        kill(&status["pid"], signal);
    }
    assert_eq!(program.line(), "usr1");
    program.tell("");
    assert_eq!(program.line(), "ticks True");
    kill_again(&home, 1);
    program.tell("");
    assert_eq!(program.line(), "ticks True");
    assert_eq!(program.rest(), "");
}

#[test]
fn a_crash_after_attaching_is_rolled_back_and_nobody_sees_it() {
    let home = Home::new();
    let mut program = Program::python(
        "import sys
seen = 'before'
for line in sys.stdin:
    print(seen, line.strip())
    seen = line.strip()",
    );
    program.tell("one");
    assert_eq!(program.line(), "before one");
    attach(&home, program.pid, &[]);
    kill(&program.pid.into(), libc::SIGSEGV);
    home.await_event("it", "rollback", 1);
    program.tell("two");
    assert_eq!(program.line(), "one two");
    // It is still the child that it was.
    assert!(program.child.try_wait().unwrap().is_none());
    assert_eq!(program.rest(), "");
    assert_eq!(program.child.wait().unwrap().code(), Some(0));
}

#[test]
fn its_anchor_is_none_of_its_parents_children_and_its_end_is_its_own() {
    let home = Home::new();
    let mut program = Program::start(&mut Command::new("cat"));
    attach(&home, program.pid, &[]);
    let anchor = home.status("it")["anchor"].as_i64().unwrap();
    let stat = std::fs::read_to_string(format!("/proc/{anchor}/stat")).unwrap();
    let parent: u32 = stat.rsplit(')').next().unwrap().split_ascii_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(parent != std::process::id() && parent != program.pid as u32, "child of {parent}");
    assert_eq!(program.rest(), "");
    assert_eq!(program.child.wait().unwrap().code(), Some(0));
    until("the end of the anchor", || !Path::new(&format!("/proc/{anchor}/fd")).exists());
    until("its end", || home.status("it")["ended"] == "exit 0");
}

#[test]
fn an_attached_program_outlasts_the_deaths_of_anchor_and_supervisor_too() {
    let home = Home::new();
    let mut program = Program::start(&mut Command::new("cat"));
    attach(&home, program.pid, &[]);
    let first = home.status("it");
    kill(&first["anchor"], libc::SIGKILL);
    let second = home.await_status("it", |s| s["anchor"].is_i64() && s["anchor"] != first["anchor"]);
    kill(&second["supervisor"], libc::SIGKILL);
    home.await_status("it", |s| {
        s["supervisor"].is_i64() && s["supervisor"] != second["supervisor"] && s["protected"] == true
    });
    program.kill_first();
    home.await_event("it", "recovered", 1);
    program.tell("still here");
    assert_eq!(program.rest(), "still here\n");
}

#[test]
fn a_program_that_executes_another_one_stays_protected() {
    let home = Home::new();
    let mut program = Program::script("read line; exec cat");
    program.await_sleep();
    attach(&home, program.pid, &[]);
    program.tell("");
    home.await_event("it", "exec", 1);
    program.tell("one");
    assert_eq!(program.line(), "one");
    program.kill_first();
    program.tell("two");
    assert_eq!(program.rest(), "two\n");
}

#[test]
fn a_program_that_forbids_itself_a_call_afterwards_is_killed_by_nothing_that_the_engine_does() {
    let home = Home::new();
    // Everything is allowed but wait4, for which the process would be killed.
    let mut program = Program::python(
        "import sys, ctypes, struct
sys.stdin.readline()
code = ctypes.create_string_buffer(b''.join(struct.pack('HBBI', *step) for step in
    [(0x20, 0, 0, 0), (0x15, 0, 1, 61), (6, 0, 0, 0x80000000), (6, 0, 0, 0x7fff0000)]))
filter = ctypes.create_string_buffer(struct.pack('HxxxxxxQ', 4, ctypes.addressof(code)))
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, filter) == 0
print('closed in')
for line in sys.stdin: print(line.strip())",
    );
    program.await_sleep();
    attach(&home, program.pid, &[]);
    program.tell("");
    assert_eq!(program.line(), "closed in");
    program.tell("alive");
    assert_eq!(program.line(), "alive");
    assert_eq!(home.status("it")["degradations"], serde_json::json!(["call-filter"]));
    assert_eq!(program.rest(), "");
    assert_eq!(program.child.wait().unwrap().code(), Some(0));
}

#[test]
fn an_ordinary_user_attaches_to_programs_of_its_own_and_to_no_others() {
    // SAFETY: plain system call.
    if unsafe { libc::geteuid() } != 0 {
        println!("skipped: only root can be another user");
        return;
    }
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    let is_forbidden = !matches!(scope.trim(), "" | "0");
    let home = Home::new();
    let state = home.file("theirs");
    std::os::unix::fs::chown(home.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    let as_nobody = |args: &[&str]| {
        let mut command = home.outlast(args);
        command.env("OUTLAST_STATE_DIR", &state).uid(NOBODY).gid(NOBODY);
        command.output().unwrap()
    };
    let mut foreign = Program::start(&mut Command::new("cat"));
    let refused = as_nobody(&["attach", &foreign.pid.to_string()]);
    assert_eq!(refused.status.code(), Some(1), "{}", said(&refused));
    foreign.tell("untouched");
    assert_eq!(foreign.rest(), "untouched\n");

    let mut own = Program::start(Command::new("cat").uid(NOBODY).gid(NOBODY));
    own.await_sleep();
    let attached = as_nobody(&["attach", &own.pid.to_string(), "--name", "it"]);
    assert_eq!(attached.status.success(), !is_forbidden, "{}", said(&attached));
    if is_forbidden {
        println!("skipped: ptrace_scope is {scope}");
        return;
    }
    own.tell("one");
    assert_eq!(own.line(), "one");
    own.kill_first();
    own.tell("two");
    assert_eq!(own.line(), "two");
    assert_eq!(own.rest(), "");
    until("its end", || {
        let output = as_nobody(&["ps", "--all", "--json"]);
        let programs: Value = serde_json::from_slice(&output.stdout).unwrap();
        programs[0]["ended"] == "exit 0"
    });
}

#[test]
fn what_root_attaches_to_keeps_the_user_that_it_has() {
    // SAFETY: plain system call.
    if unsafe { libc::geteuid() } != 0 {
        println!("skipped: only root may attach to others' programs");
        return;
    }
    let home = Home::new();
    let script = "import sys, os
for line in sys.stdin: print(os.getresuid(), os.getresgid())";
    let mut program = Program::start(Command::new(PYTHON).args(["-u", "-c", script]).uid(NOBODY).gid(NOBODY));
    program.tell("");
    let before = program.line();
    attach(&home, program.pid, &[]);
    program.kill_first();
    program.tell("");
    assert_eq!(program.line(), before);
    let status = home.await_protected("it");
    kill(&status["anchor"], libc::SIGKILL);
    kill(&status["pid"], libc::SIGKILL);
    program.tell("");
    assert_eq!(program.line(), before);
    assert_eq!(program.rest(), "");
}

/// A process that cannot be attached to is refused with these words, and goes on as if nothing had been.
fn assert_refused(program: &mut Program, words: &str) {
    let home = Home::new();
    let output = try_to_attach(&home, program.pid, &[]);
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(told.contains(words) && told.lines().count() == 1, "{told}");
    assert_eq!(home.status("it"), Value::Null);
    let maps = std::fs::read_to_string(format!("/proc/{}/maps", program.pid)).unwrap();
    assert!(!maps.contains("outlast"), "{maps}");
}

#[test]
fn what_cannot_be_attached_to_is_refused_and_runs_on() {
    let echo = "\nfor line in sys.stdin: print(line.strip())";
    let cases = [
        (
            "import sys, ctypes
sigevent = (ctypes.c_int * 16)(0, 0, 34, 1)
timer = ctypes.c_int()
assert ctypes.CDLL(None).timer_create(1, sigevent, ctypes.byref(timer)) == 0",
            "timers of its own",
        ),
        ("import sys, ctypes\nassert ctypes.CDLL(None).mlock(ctypes.create_string_buffer(9), 9) == 0", "locked"),
        (
            "import sys, ctypes\ncontext = ctypes.c_ulong()
assert ctypes.CDLL(None).syscall(206, 9, ctypes.byref(context)) == 0",
            "asynchronous",
        ),
        (
            "import sys, mmap, os\nshared = mmap.mmap(-1, 4096)\nshared[0] = 7
if os.fork() == 0:
    sys.stdin.close()
    os.execvp('sh', ['sh', '-c', 'exit']) if False else os.read(os.pipe()[0], 1)",
            "shares with other",
        ),
        (
            "import sys, ctypes, struct
code = ctypes.create_string_buffer(struct.pack('HBBI', 6, 0, 0, 0x7fff0000))
filter = ctypes.create_string_buffer(struct.pack('HxxxxxxQ', 1, ctypes.addressof(code)))
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, filter) == 0",
            "filters",
        ),
    ];
    for (setting, words) in cases {
        let mut program = Program::python(&format!("{setting}\nprint('ready', flush=True){echo}"));
        assert_eq!(program.line(), "ready", "{setting}");
        assert_refused(&mut program, words);
        program.tell("as before");
        assert_eq!(program.line(), "as before");
        for child in children_of(program.pid) {
            kill(&child.into(), libc::SIGKILL);
        }
        assert_eq!(program.rest(), "", "{setting}");
        assert_eq!(program.child.wait().unwrap().code(), Some(0), "{setting}");
    }
}

fn children_of(pid: i32) -> Vec<i32> {
    let list = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    list.split_ascii_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

#[test]
fn what_is_stopped_traced_protected_or_no_program_is_refused() {
    let mut program = Program::start(&mut Command::new("cat"));
    program.await_sleep();
    kill(&program.pid.into(), libc::SIGSTOP);
    until("it is stopped", || {
        std::fs::read_to_string(format!("/proc/{}/status", program.pid)).unwrap().contains("T (stopped)")
    });
    assert_refused(&mut program, "it is stopped");
    kill(&program.pid.into(), libc::SIGCONT);
    until("it goes on", || {
        !std::fs::read_to_string(format!("/proc/{}/status", program.pid)).unwrap().contains("T (stopped)")
    });
    trace(libc::PTRACE_SEIZE, program.pid, 0);
    assert_refused(&mut program, "traces it");
    trace(libc::PTRACE_INTERRUPT, program.pid, 0);
    traced(program.pid);
    trace(libc::PTRACE_DETACH, program.pid, 0);

    let home = Home::new();
    attach(&home, program.pid, &[]);
    let again = home.outlast(["attach", &program.pid.to_string(), "--name", "again"]).output().unwrap();
    assert_eq!(again.status.code(), Some(1), "{}", said(&again));
    assert!(String::from_utf8_lossy(&again.stderr).contains("protected already"), "{}", said(&again));
    let taken = home.outlast(["attach", &std::process::id().to_string(), "--name", "own"]).output().unwrap();
    assert!(String::from_utf8_lossy(&taken.stderr).contains("this command itself"), "{}", said(&taken));
    program.tell("as before");
    assert_eq!(program.rest(), "as before\n");
    for nobody in ["999999999", "2"] {
        let none = home.outlast(["attach", nobody]).output().unwrap();
        assert_eq!(none.status.code(), Some(1), "{}", said(&none));
    }
    let bad = home.outlast(["attach", "cat"]).output().unwrap();
    assert_eq!(bad.status.code(), Some(2), "{}", said(&bad));
}

#[test]
fn attaching_that_dies_itself_in_the_middle_leaves_the_program_running_or_protected() {
    let mut moments = Moments::new();
    let begun = AtomicI32::new(0);
    for _ in 0..6 {
        let home = Home::new();
        let mut program = Program::start(&mut Command::new("cat"));
        program.await_sleep();
        let mut attach = home.outlast(["attach", &program.pid.to_string(), "--name", "it"]).spawn().unwrap();
        begun.store(attach.id() as i32, SeqCst);
        // The command that was typed, not the process that it has begun.
        moments.pause(20_000);
        let _ = attach.kill();
        let _ = attach.wait();
        program.tell("here");
        assert_eq!(program.line(), "here");
        assert_eq!(program.rest(), "");
        let end = program.child.wait().unwrap();
        assert_eq!(end.code(), Some(0), "{end}: {:?}", home.log("it"));
    }
}
