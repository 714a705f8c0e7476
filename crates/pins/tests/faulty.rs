//! Modules that fail while they are asked about a death: the program they protect is recovered, and nobody outside can tell.
//!
//! This program is the host as well: `faulty run PROGRAM ...` is `outlast run` with a module in place of `checkpoint` or `crash` that
//! fails in the way that the environment says.
#![no_main]

use libtest_mimic::{Arguments, Trial};
use outlast_core::confine::Counting;
use outlast_core::{Budget, Calls, Event, Failure, Manifest, Module, Payload};
use outlast_interfaces::change::{Added, Change, Every};
use outlast_interfaces::{checkpoint, crash, proc, visible};
use outlast_pins::{Protection, Wishes};
use outlast_supervisor::adopt::{begin_again, Again};
use outlast_supervisor::decision::Decides;
use outlast_supervisor::options::Options;
use outlast_supervisor::start::{run, Request};
use outlast_supervisor::state_folder::StateFolder;
use outlast_supervisor::{again, departure, wishing, Error};
use std::hint::black_box;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// In which way the module fails.
const FAULT: &str = "FAULTY_MODULE";

#[no_mangle]
pub extern "C" fn main() -> libc::c_int {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.first().map(String::as_str) {
        Some("run") => host(words[1..].to_vec()),
        Some("supervise") => go_on(&words[1..]),
        Some("add") => add(&words[1]),
        _ => libtest_mimic::run(&Arguments::from_args(), trials()).exit(),
    }
}

/// Intervals that the module cannot bear to be told.
const WILD: Duration = Duration::from_millis(666);
const PANIC: Duration = Duration::from_millis(667);

/// Fails at every death, or at every third one.
struct Faulty {
    deaths: u32,
}

impl Module for Faulty {
    fn start(&mut self, calls: &mut Calls) -> Result<(), Failure> {
        let proc = calls.use_pin(proc::NAME)?;
        calls.subscr_event(proc, proc::DIED)
    }

    fn protect(&mut self, _: &mut Calls, _: &str, settings: &Payload) -> Result<(), Failure> {
        match settings.read::<checkpoint::Settings>() {
            // SAFETY: none; that is what is tried.
            Ok(settings) if settings.every == WILD => unsafe { black_box(16 as *mut u8).write_volatile(1) },
            Ok(settings) if settings.every == PANIC => panic!("on purpose"),
            _ => (),
        }
        Ok(())
    }

    fn on_event(&mut self, _: &mut Calls, _: &Event) -> Result<(), Failure> {
        self.deaths += 1;
        match std::env::var(FAULT).as_deref() {
            Ok("panic") => panic!("on purpose"),
            Ok("third") => assert!(self.deaths % 3 != 0, "on purpose"),
            Ok("loop") => loop {
                black_box(0);
            },
            Ok("sleep") => std::thread::sleep(Duration::from_secs(3600)),
            Ok("flood") => {
                let mut all = Vec::new();
                loop {
                    all.push(black_box(vec![1u8; 4096]));
                }
            }
            // SAFETY: none; that is what is tried.
            Ok("wild") => unsafe { black_box(16 as *mut u8).write_volatile(1) },
            Ok("abort") => std::process::abort(),
            _ => (),
        }
        Ok(())
    }
}

/// The modules that are compiled in, one of them replaced.
fn modules() -> Vec<Manifest> {
    // Only what does not end is to come to its end: others may take longer than that on a busy machine.
    let is_endless = std::env::var(FAULT).is_ok_and(|fault| ["loop", "sleep"].contains(&fault.as_str()));
    let time = Duration::from_millis(if is_endless { 100 } else { 20_000 });
    let budget = Budget { time, memory: 1 << 20 };
    let replaced = if std::env::var(FAULT).as_deref() == Ok("undecided") { crash::NAME } else { checkpoint::NAME };
    let faulty = |name| Manifest { name, what: "", make: &|| Box::new(Faulty { deaths: 0 }), budget, reloads: 2 };
    let all = outlast_modules::all();
    all.map(|manifest| if manifest.name == replaced { faulty(replaced) } else { manifest }).to_vec()
}

fn load(failures: &[String]) -> impl Fn(&str, &mut Options) -> Result<Box<dyn Decides>, Error> + '_ {
    move |program, options| {
        let wishes = Wishes {
            crash: Some(crash::Settings { retries: 3 }),
            visible: Some(visible::Settings { outputs: outlast_interfaces::sysc::Visible::Each }),
            checkpoint: Some(checkpoint::Settings { every: Duration::from_secs(1), sparing: true }),
            storm: None,
            has_begun: false,
            ..Wishes::of(&Options::default())
        };
        let protection = Protection::new(program, &wishes, options, &modules(), failures);
        Ok(Box::new(protection.map_err(|failure| Error::Module(failure.to_string()))?))
    }
}

fn host(argv: Vec<String>) -> ! {
    let argv = argv.into_iter().map(Into::into).collect();
    let (options, load) = (Options::default(), load(&[]));
    let request =
        Request { argv, begun: None, name: Some("it".into()), store: None, options, encrypt: None, load: &load };
    match run(&request, None) {
        Ok(end) => departure::depart(end),
        Err(e) => panic!("{e}"),
    }
}

/// Has the module protect the program so often; says what became of that.
fn add(every: &str) -> i32 {
    let every = Duration::from_millis(every.parse().expect("milliseconds"));
    let change = Change::Add(Added::Checkpoint { every: Some(Every::At(every)) });
    let folder = StateFolder::open().and_then(|state| state.program("it")).expect("a program");
    match wishing::ask(&folder, &change) {
        Ok(_) => 0,
        Err(e) => {
            println!("{e}");
            1
        }
    }
}

fn go_on(words: &[String]) -> ! {
    let (mut failures, mut ended, mut lock) = (Vec::new(), None, None);
    let mut rest = words[1..].iter();
    while let Some(word) = rest.next() {
        match word.split_once('=') {
            Some(("--failed", failure)) => failures.push(failure.to_string()),
            Some(("--ended", end)) => ended = end.parse().ok().map(again::end_of),
            _ if word == "--lock" => lock = rest.next().and_then(|fd| fd.parse().ok()),
            _ => (),
        }
    }
    let again = Again { failures: failures.clone(), ended, is_upgraded: false };
    let load = load(&failures);
    match begin_again(&words[0], lock.expect("a lock"), again, &load) {
        Ok(end) => departure::depart(end),
        Err(e) => panic!("{e}"),
    }
}

fn trials() -> Vec<Trial> {
    // How it fails, how often that happens in five deaths and the program's end, and what the log says of it.
    let all = [
        ("panic", 3, "it panicked: on purpose"),
        ("third", 2, "it panicked: on purpose"),
        ("loop", 3, "it took longer than it may"),
        ("sleep", 3, "it took longer than it may"),
        ("flood", 3, "it took more memory than it may"),
        ("wild", 3, "signal 11 met it"),
        ("abort", 3, "signal 6 met it"),
    ];
    let disturb = all.into_iter().map(|(fault, times, what)| {
        Trial::test(format!("a_module_disturbs_nobody::{fault}"), move || {
            disturbs_nobody(fault, times, what);
            Ok(())
        })
    });
    let undecided = Trial::test("a_death_that_nobody_decides_about_leaves_everything_for_a_resume", || {
        leaves_everything();
        Ok(())
    });
    let by_hand = Trial::test("a_module_that_failed_too_often_is_loaded_again_by_hand", || {
        is_loaded_again();
        Ok(())
    });
    let told = Trial::test("a_module_that_fails_when_it_is_told_disturbs_nobody", || {
        fails_when_told();
        Ok(())
    });
    disturb.chain([undecided, by_hand, told]).collect()
}

/// A program that answers lines, under a host.
struct Run {
    host: Child,
    state: tempfile::TempDir,
    answers: BufReader<std::process::ChildStdout>,
}

impl Run {
    fn start(fault: &str) -> Self {
        let state = tempfile::Builder::new().prefix("outlast-faulty.").tempdir_in("/dev/shm").expect("a folder");
        let script = "while read -r x; do echo \"got $x\"; done; exit 7";
        let mut host = Command::new(std::env::current_exe().expect("this program"));
        host.args(["run", "sh", "-c", script]).env(FAULT, fault).env("OUTLAST_STATE_DIR", state.path());
        let mut host = host.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a host");
        let answers = BufReader::new(host.stdout.take().expect("a pipe"));
        Self { host, state, answers }
    }

    /// Sends a line, and demands its answer.
    fn ask(&mut self, line: &str) {
        writeln!(self.host.stdin.as_ref().expect("a pipe"), "{line}").expect("it reads");
        let mut answer = String::new();
        self.answers.read_line(&mut answer).expect("it answers");
        assert_eq!(answer, format!("got {line}\n"));
    }

    /// Adds the module by hand; what is said if that fails.
    fn add(&self, every: Duration) -> Result<(), String> {
        let mut add = Command::new(std::env::current_exe().expect("this program"));
        add.args(["add", &every.as_millis().to_string()]).env("OUTLAST_STATE_DIR", self.state.path());
        let output = add.output().expect("an answer");
        output.status.success().then_some(()).ok_or_else(|| String::from_utf8_lossy(&output.stdout).into())
    }

    /// Failures of the module that the log tells of, and whether it is loaded, by the supervisor's word.
    fn failures(&self) -> (usize, bool) {
        let file = self.state.path().join("it/modules");
        // A program may have answered before its supervisor has written that down.
        let begun = Instant::now();
        while !file.exists() && begun.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(2));
        }
        let parts = std::fs::read_to_string(file).expect("the supervisor's word");
        (self.count("module-failed"), parts.contains("checkpoint"))
    }

    fn log(&self) -> Vec<serde_json::Value> {
        let log = std::fs::read_to_string(self.state.path().join("it/log.jsonl")).unwrap_or_default();
        log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    fn count(&self, event: &str) -> usize {
        self.log().iter().filter(|entry| entry["event"] == event).count()
    }

    /// The program's process, once it is protected.
    fn pid(&self) -> i32 {
        self.await_until("protection", || self.count("injected") == 1);
        let log = self.log();
        let pid = log.iter().rev().find_map(|entry| match entry["event"].as_str() {
            Some("injected" | "recovered") => entry["pid"].as_i64(),
            _ => None,
        });
        pid.filter(|pid| *pid > 1).expect("a process") as i32
    }

    /// Kills the program's process and waits for its recovery.
    fn kill(&self) {
        let recovered = self.count("recovered");
        // SAFETY: plain system call, on a process of this test's host.
        unsafe { libc::kill(self.pid(), libc::SIGKILL) };
        self.await_until("a recovery", || self.count("recovered") > recovered);
    }

    fn await_until(&self, what: &str, done: impl Fn() -> bool) {
        let asked = Instant::now();
        while !done() {
            assert!(asked.elapsed() < Duration::from_secs(60), "{what} does not come: {:#?}", self.log());
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

fn disturbs_nobody(fault: &str, times: usize, what: &str) {
    let mut run = Run::start(fault);
    let host = run.host.id();
    for n in 0..5 {
        run.ask(&format!("{n} before"));
        run.kill();
        run.ask(&format!("{n} after"));
    }
    drop(run.host.stdin.take());
    let status = run.host.wait().expect("an end");
    assert_eq!((status.code(), run.host.id()), (Some(7), host));
    let failures: Vec<_> = run.log().into_iter().filter(|entry| entry["event"] == "module-failed").collect();
    let cause = |entry: &serde_json::Value| entry["cause"].as_str().unwrap_or_default().to_string();
    assert_eq!(failures.len(), times, "{:#?}", run.log());
    assert!(failures.iter().all(|entry| cause(entry).starts_with(&format!("checkpoint: {what}"))), "{failures:#?}");
    let is_last = |entry: &serde_json::Value| cause(entry).ends_with("; it is not loaded any more");
    assert_eq!(failures.iter().filter(|entry| is_last(entry)).count(), usize::from(times == 3), "{failures:#?}");
}

fn leaves_everything() {
    let mut run = Run::start("undecided");
    run.ask("once");
    // SAFETY: plain system call, on a process of this test's host.
    unsafe { libc::kill(run.pid(), libc::SIGKILL) };
    let status = run.host.wait().expect("an end");
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(libc::SIGKILL));
    let gave_up = run.log().into_iter().find(|entry| entry["event"] == "gave-up").expect("it says so");
    assert!(gave_up["cause"].as_str().unwrap_or_default().contains("no module decides"), "{gave_up}");
    assert!(run.state.path().join("it/session").exists() && run.state.path().join("it/store").exists());
}

fn is_loaded_again() {
    for fault in ["panic", "wild"] {
        let mut run = Run::start(fault);
        run.ask("once");
        assert_eq!(run.failures(), (0, true));
        for round in 1..=3 {
            for _ in 0..3 {
                run.kill();
            }
            run.ask("again");
            // What was killed may answer before its supervisor has written that down.
            run.await_until("the word of its failures", || run.failures() == (3 * round, false));
            assert_eq!(run.add(Duration::from_millis(20)), Ok(()));
            run.await_until("the word of the one that was added", || run.failures() == (3 * round, true));
        }
        // The engine has done so all the time, whoever had told it.
        assert_eq!(run.count("module-changed"), 1, "{fault}");
        drop(run.host.stdin.take());
        assert_eq!(run.host.wait().expect("an end").code(), Some(7));
    }
}

fn fails_when_told() {
    let mut run = Run::start("nothing");
    run.ask("once");
    for (every, why) in [(WILD, "fails at it"), (PANIC, "the module checkpoint failed")] {
        let said = run.add(every).expect_err("it cannot");
        assert!(said.contains("protected as before") && said.contains(why), "{said}");
        run.ask("on");
        run.kill();
        run.ask("still on");
        // It had failed too often, and is as good as new.
        assert_eq!(run.add(Duration::from_millis(20)), Ok(()));
        assert!(run.failures().1, "{:#?}", run.log());
    }
    assert_eq!(run.count("module-changed"), 1);
    drop(run.host.stdin.take());
    assert_eq!(run.host.wait().expect("an end").code(), Some(7));
}
