//! Processors that do not switch while others wait, and protected programs that get none, are told of; a busy machine is not.
//!
//! What keeps a processor here does so for less than two seconds, ends by itself, and leaves the other processors alone.

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use support::{kill_everything, said, until, Home};

/// Daemons that do nothing but watch the scheduler; ended with the value.
struct Watch {
    home: Home,
    hog: PathBuf,
    daemons: Vec<Child>,
    /// They share a processor, and each is about who has it and who has not.
    _alone: MutexGuard<'static, ()>,
}

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

impl Drop for Watch {
    fn drop(&mut self) {
        for daemon in &mut self.daemons {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

impl Watch {
    /// None: it cannot be here, as the test then says.
    fn begin(threshold: &str) -> Option<Self> {
        Self::begin_several(threshold, 1)
    }

    fn begin_several(threshold: &str, count: usize) -> Option<Self> {
        // SAFETY: plain system calls.
        let (user, processors) = unsafe { (libc::geteuid(), libc::sysconf(libc::_SC_NPROCESSORS_ONLN)) };
        if user != 0 || processors < 2 {
            println!("skipped: needs root, and a processor that nobody starves");
            return None;
        }
        let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let home = Home::new();
        let hog = compile(&home);
        let told = home.file("told");
        let script = format!("#!/bin/sh\necho $OUTLAST_EVENT: $OUTLAST_CAUSE >> {}\n", told.display());
        let alert = home.executable("alert", script.as_bytes());
        let daemons = (0..count).map(|n| {
            let name = |what: &str| if n == 0 { what.into() } else { format!("{n}.{what}") };
            let mut command = home.outlast(["daemon", "--oshang", "only", "--oshang-threshold", threshold]);
            command.arg("--lock").arg(home.file(&name("daemon.lock")));
            command.arg("--alert").arg(&alert).stderr(fs::File::create(home.file(&name("log"))).unwrap());
            command.stdin(Stdio::null()).spawn().unwrap()
        });
        let daemons = daemons.collect();
        let watch = Self { home, hog, daemons, _alone: alone };
        until("the daemons to watch", || (0..count).all(|n| watch.log_of(n).contains("oshang: watches")));
        if watch.log().contains("not processors") {
            println!("skipped: {}", watch.log());
            return None;
        }
        Some(watch)
    }

    fn log(&self) -> String {
        self.log_of(0)
    }

    fn log_of(&self, daemon: usize) -> String {
        let name = if daemon == 0 { "log".into() } else { format!("{daemon}.log") };
        fs::read_to_string(self.home.file(&name)).unwrap_or_default()
    }

    /// Computes on the last processor.
    fn hog(&self, ms: u64, how: &str) -> Child {
        Command::new(&self.hog).args([last_processor(), ms.to_string(), how.into()]).spawn().unwrap()
    }

    /// What was told of this process.
    fn told_of(&self, pid: u32) -> Vec<String> {
        let thread = format!("thread {pid} (");
        self.log().lines().filter(|line| line.contains(&thread)).map(String::from).collect()
    }
}

fn compile(home: &Home) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oshang/hog.c");
    let program = home.file("hog");
    let output = Command::new("gcc").args(["-O2", "-Wall", "-o"]).arg(&program).arg(source).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    program
}

/// Others pin themselves to the first, if to any.
fn last_processor() -> String {
    // SAFETY: plain system call.
    (unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) } - 1).to_string()
}

#[test]
fn a_real_time_thread_that_keeps_others_waiting_is_told_of_and_a_usual_one_is_not() {
    let Some(watch) = Watch::begin("150ms") else { return };
    let mut usual = watch.hog(2500, "usual");
    std::thread::sleep(Duration::from_millis(600));
    let mut hog = watch.hog(800, "fifo");
    assert!(hog.wait().unwrap().success() && usual.wait().unwrap().success());
    until("what was told of it", || {
        if watch.told_of(hog.id()).is_empty() {
            // Whatever else ran there may have been owed some time.
            let mut other = watch.hog(1100, "usual");
            hog = watch.hog(800, "fifo");
            assert!(hog.wait().unwrap().success() && other.wait().unwrap().success());
        }
        watch.home.file("told").exists()
    });
    let told = watch.told_of(hog.id());
    let [line] = &told[..] else { panic!("{told:?}: {}", watch.log()) };
    let begins = format!("outlast: processor {} does not switch: real-time thread {}", last_processor(), hog.id());
    assert!(line.starts_with(&begins) && line.contains("(hog)") && line.contains(" s are enough"), "{line}");
    assert!(!line.contains("waiting: 0"), "{line}");
    assert_eq!(watch.told_of(usual.id()), [""; 0]);
    let alert = fs::read_to_string(watch.home.file("told")).unwrap();
    assert!(alert.contains("processor-starved: processor"), "{alert}");
    let metrics = watch.home.outlast(["metrics", "--daemon"]).arg(watch.home.file("daemon.json")).output().unwrap();
    let counted = said(&metrics);
    assert!(counted.contains("outlast_machine_events_total{event=\"thread-starved\"} 0"), "{counted}");
    let starved = "outlast_machine_events_total{event=\"processor-starved\"} ";
    let count = counted.lines().find_map(|line| line.strip_prefix(starved)).and_then(|count| count.parse::<u32>().ok());
    assert!(count.is_some_and(|count| count >= 1), "{counted}");
}

#[test]
fn several_daemons_do_not_take_each_others_looks_for_switches() {
    const DAEMONS: usize = 5;
    const HOGS: usize = 10;
    // Such a hog is longer than any check value that may be learnt, the fourfold of this.
    let Some(watch) = Watch::begin_several("150ms", DAEMONS) else { return };
    let hogs: Vec<u32> = (0..HOGS)
        .map(|_| {
            let mut usual = watch.hog(1300, "usual");
            std::thread::sleep(Duration::from_millis(200));
            let mut hog = watch.hog(900, "fifo");
            assert!(hog.wait().unwrap().success() && usual.wait().unwrap().success());
            hog.id()
        })
        .collect();
    let tells = |daemon| {
        let log = watch.log_of(daemon);
        hogs.iter().filter(|hog| log.contains(&format!("thread {hog} ("))).count()
    };
    let told: Vec<usize> = (0..DAEMONS).map(tells).collect();
    // On a busy machine one of them may come too late for a look, or end too early.
    let logs: Vec<String> = (0..DAEMONS).map(|daemon| watch.log_of(daemon)).collect();
    assert!(told.iter().all(|told| *told >= HOGS - 2), "{told:?} of {HOGS}: {}", logs.join("\n"));
}

#[test]
fn a_machine_that_is_merely_busy_is_not_told_of() {
    let Some(watch) = Watch::begin("500ms") else { return };
    let mut busy: Vec<Child> = (0..10).map(|_| watch.hog(7000, "usual")).collect();
    let sleeper = || Command::new("sh").args(["-c", "for i in 1 2 3 4 5 6 7 8 9; do sleep 0.5; done"]).spawn().unwrap();
    busy.extend((0..20).map(|_| sleeper()));
    busy.iter_mut().for_each(|child| drop(child.wait()));
    for child in &busy {
        assert_eq!(watch.told_of(child.id()), [""; 0], "{}", watch.log());
    }
}

#[test]
fn a_protected_program_that_gets_no_processor_is_told_of_and_is_left_alone() {
    let Some(watch) = Watch::begin("120ms") else { return };
    let mut command = watch.home.outlast(["run", "--name", "it", "--hang=1s", "--every", "never", "--"]);
    command.arg(&watch.hog).args([&last_processor(), "600000", "idle"]);
    let mut child = command.stdin(Stdio::null()).spawn().unwrap();
    let status = watch.home.await_protected("it");
    // It is looked for every five seconds.
    std::thread::sleep(Duration::from_secs(6));
    let told = || watch.log().lines().find(|line| line.contains("hog: thread ")).map(String::from);
    // The scheduler owes it a slice now and then.
    until("the daemon to tell of it", || {
        assert!(watch.hog(1900, "first").wait().unwrap().success());
        told().is_some()
    });
    assert!(told().unwrap().contains("has got no processor for"), "{:?}", told());
    watch.home.await_event("it", "starved", 1);
    let after = watch.home.status("it");
    assert_eq!(
        (&after["pid"], &after["recoveries"]),
        (&status["pid"], &serde_json::json!(0)),
        "{:#?}",
        watch.home.log("it")
    );
    kill_everything(&after);
    let _ = child.wait();
}
