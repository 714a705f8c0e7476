//! Modules are added, removed and told otherwise while a program runs, which notices nothing.

#[path = "modules/meanwhile.rs"]
mod meanwhile;
#[path = "modules/outputs.rs"]
mod outputs;
#[path = "modules/pins.rs"]
mod pins;
#[path = "modules/streams.rs"]
mod streams;
mod support;

use serde_json::Value;
use std::process::{Child, Output, Stdio};
use std::time::Duration;
use streams::Streams;
use support::obedient::Obedient;
use support::{finish, kill, kill_everything, said, until, Home};

fn module(home: &Home, words: &str) -> Output {
    home.outlast(["module"].into_iter().chain(words.split(' '))).output().unwrap()
}

/// Is done, and nothing is said.
fn done(home: &Home, words: &str) {
    let output = module(home, words);
    assert!(
        output.status.success() && output.stdout.is_empty() && output.stderr.is_empty(),
        "{words}: {}",
        said(&output)
    );
}

fn begin(home: &Home, words: &str) -> Child {
    let mut command = home.outlast(["module"].into_iter().chain(words.split(' ')));
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn settings(home: &Home, name: &str) -> Vec<String> {
    let mut rows = Value::Null;
    // What is loaded is said soon after the program has begun.
    until("what is loaded", || {
        let output = module(home, &format!("list {name} --json"));
        rows = serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", said(&output)));
        rows.as_array().unwrap().iter().all(|row| !row["loaded"].is_null())
    });
    let row = |row: &Value| {
        assert_eq!(row["loaded"], true, "{row}");
        format!("{} {}", row["name"].as_str().unwrap(), row["settings"].as_str().unwrap())
    };
    rows.as_array().unwrap().iter().map(row).collect()
}

fn changes(home: &Home, name: &str) -> Vec<String> {
    let log = home.log(name);
    let changes = log.iter().filter(|entry| entry["event"] == "module-changed");
    changes.map(|entry| entry["cause"].as_str().unwrap().into()).collect()
}

fn count(home: &Home, event: &str) -> usize {
    home.events("it").iter().filter(|e| *e == event).count()
}

/// A pause that differs each time, up to some 30 ms.
fn pause(seed: &mut u64) {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    std::thread::sleep(Duration::from_micros((*seed >> 33) % 30_000));
}

#[test]
fn each_module_is_added_told_otherwise_and_removed() {
    let home = Home::new();
    let mut it = Obedient::start(&home, "it", &[]);
    let usual = ["crash --retries 3", "visible --commit visible", "checkpoint --every auto", "storm --storm 5:1m"];
    assert_eq!(settings(&home, "it"), usual);
    for words in [
        "add crash it --retries 7",
        "add visible it --commit each",
        "add checkpoint it --every 30ms",
        "remove checkpoint it",
        "add hang it --hang=20s",
        "add hang it",
        "remove hang it",
        "add hang it --hang=30s",
        "add storm it --storm 3:10m --alert /bin/true --alert=-x",
        "add storm it --storm 4:1h",
        "remove visible it",
        "add visible it",
        "add server it",
        "add server it",
        "remove server it",
        "remove storm it",
        "add leaks it",
        "add leaks it --leaks 20m:70",
        "remove leaks it",
    ] {
        done(&home, words);
        it.say("x += 1");
    }
    assert_eq!(settings(&home, "it"), ["crash --retries 7", "visible --commit visible", "hang --hang=30s"]);
    assert_eq!(it.ask("x"), "19");
    let expected = [
        "crash: --retries 7, --retries 3 before",
        "visible: --commit each, --commit visible before",
        "checkpoint: --every 30ms, --every auto before",
        "checkpoint protects it no longer: --every 30ms before",
        "hang protects it: --hang=20s",
        "hang protects it no longer: --hang=20s before",
        "hang protects it: --hang=30s",
        "storm: --storm 3:10m --alert=/bin/true --alert=-x, --storm 5:1m before",
        "storm: --storm 4:1h --alert=/bin/true --alert=-x, --storm 3:10m --alert=/bin/true --alert=-x before",
        "visible protects it no longer: --commit each before",
        "visible protects it: --commit visible",
        "server protects it: --server",
        "server protects it no longer: --server before",
        "storm protects it no longer: --storm 4:1h --alert=/bin/true --alert=-x before",
        "leaks protects it: --leaks 10m:50",
        "leaks: --leaks 20m:70, --leaks 10m:50 before",
        "leaks protects it no longer: --leaks 20m:70 before",
    ];
    assert_eq!(changes(&home, "it"), expected);
    let list = said(&module(&home, "list"));
    assert!(list.contains("hang         built-in  it") && list.contains("storm        built-in  - "), "{list}");
    let pins: Value =
        serde_json::from_slice(&home.outlast(["pin", "list", "--json"]).output().unwrap().stdout).unwrap();
    let pins = pins.as_array().unwrap().iter().filter(|pin| pin["programs"] == serde_json::json!(["it"]));
    assert_eq!(
        pins.map(|pin| pin["name"].as_str().unwrap()).collect::<Vec<_>>(),
        ["proc", "sysc", "peri", "pmc", "sect", "mem", "file"]
    );
    assert_eq!(it.end().status.code(), Some(0));
}

#[test]
fn what_cannot_be_is_refused_and_all_stays() {
    let home = Home::new();
    let it = Obedient::start(&home, "it", &["--server"]);
    let before = settings(&home, "it");
    for (words, status, what) in [
        ("remove hang it", 1, "hang does not protect it"),
        ("remove nonsense it", 1, "there is no module nonsense"),
        ("remove crash other", 2, "other"),
        ("remove visible it", 1, "without visible"),
        ("add checkpoint it --every never", 2, "module remove checkpoint"),
        ("add storm it --storm never", 2, "module remove storm"),
        ("add storm it --alert mail", 2, "absolute path"),
        ("add visible it --commit manual", 2, "manual"),
        ("add crash it --retries many", 2, "many"),
    ] {
        let output = module(&home, words);
        assert!(output.status.code() == Some(status) && said(&output).contains(what), "{words}: {}", said(&output));
    }
    assert_eq!(settings(&home, "it"), before);
    assert_eq!(changes(&home, "it"), [] as [String; 0]);
    assert_eq!(it.end().status.code(), Some(0));
    let output = module(&home, "add crash it --retries 7");
    assert!(output.status.code() == Some(1) && said(&output).contains("does not run"), "{}", said(&output));
}

#[test]
fn a_program_begins_with_the_modules_that_are_named() {
    let home = Home::new();
    for (options, expected) in [
        ("--modules crash", "crash --retries 3"),
        ("--modules crash,hang --retries 5", "crash --retries 5, hang --hang"),
        ("--modules=visible --modules=checkpoint --commit each", "visible --commit each, checkpoint --every auto"),
        ("--modules hang --hang=9s", "hang --hang=9s"),
        ("--modules server,visible", "visible --commit visible, server --server"),
        ("--modules storm --alert /bin/true", "storm --storm 5:1m --alert=/bin/true"),
        ("--modules checkpoint --commit manual", "checkpoint --every auto"),
    ] {
        let options: Vec<&str> = options.split(' ').collect();
        let it = Obedient::start(&home, "it", &options);
        assert_eq!(settings(&home, "it").join(", "), expected);
        assert_eq!(it.end().status.code(), Some(0));
    }
    for options in [
        "--modules nonsense",
        "--modules crash --hang",
        "--modules visible --server",
        "--modules crash,server",
        "--server --commit manual",
        "--modules visible --commit manual",
        "--modules crash --every 5ms",
        "--modules checkpoint --every never",
        "--modules crash --alert /bin/true",
        "--modules crash --durable 200ms",
    ] {
        let output =
            home.outlast(["run"].into_iter().chain(options.split(' ')).chain(["--", "true"])).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{options}: {}", said(&output));
    }
}

#[test]
fn more_and_fewer_tries_count_at_once() {
    for (from, to) in [("1", "5"), ("9", "2")] {
        let home = Home::new();
        let mut it = Obedient::start(&home, "it", &["--retries", from]);
        done(&home, &format!("add crash it --retries {to}"));
        it.say("ctypes.string_at(0)");
        home.await_event("it", "exit", 1);
        assert_eq!(count(&home, "rollback").to_string(), to, "{:?}", home.events("it"));
    }
}

#[test]
fn without_crash_a_death_is_final_and_a_person_may_resume() {
    let home = Home::new();
    let mut it = Obedient::start(&home, "it", &[]);
    it.say("x = 41");
    done(&home, "remove crash it");
    assert_eq!(it.ask("x"), "41");
    kill(&home.await_protected("it")["pid"], libc::SIGKILL);
    home.await_event("it", "gave-up", 1);
    assert_eq!(count(&home, "recovered"), 0);
    drop(it.end());
    let mut resume = home.outlast(["resume", "it"]);
    let mut it = Obedient::begin(&home, "it", &mut resume);
    it.told = 1;
    assert_eq!(it.ask("x"), "41");
    done(&home, "add crash it");
    kill(&home.await_protected("it")["pid"], libc::SIGKILL);
    home.await_event("it", "recovered", 1);
    assert_eq!(it.ask("x"), "41");
    done(&home, "remove crash it");
    it.say("ctypes.string_at(0)");
    home.await_event("it", "exit", 1);
    assert_eq!(count(&home, "rollback"), 0);
}

#[test]
fn changes_stay_whoever_watches_and_whatever_the_program_becomes() {
    let home = Home::new();
    let mut it = Obedient::start(&home, "it", &[]);
    done(&home, "add crash it --retries 6");
    done(&home, "add checkpoint it --every 20ms");
    done(&home, "add visible it --commit each");
    let wanted = ["crash --retries 6", "visible --commit each", "checkpoint --every 20ms", "storm --storm 5:1m"];
    kill(&home.await_protected("it")["supervisor"], libc::SIGKILL);
    home.await_event("it", "supervisor-restarted", 1);
    assert_eq!(settings(&home, "it"), wanted);
    let output = home.outlast(["upgrade", "it"]).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(settings(&home, "it"), wanted);
    kill_everything(&home.await_protected("it"));
    let _ = it.end();
    let mut resume = home.outlast(["resume", "it"]);
    it = Obedient::begin(&home, "it", &mut resume);
    assert_eq!(settings(&home, "it"), wanted);
    // What the engine was told shows in what it does: commits while it computes, and attempts.
    let commits = || home.status("it")["commits"].as_u64().unwrap();
    it.say("os.execv('/usr/bin/python3', ['python3', '-u', '-c', 'import ctypes\\nwhile True:\\n for i in range(10**6): pass'])");
    home.await_event("it", "exec", 1);
    let before = commits();
    until("commits at intervals", || commits() > before + 20);
    assert_eq!(settings(&home, "it"), wanted);
    for process in ["pid", "anchor", "pid"] {
        kill(&home.await_protected("it")[process], libc::SIGKILL);
    }
    until("life", || home.status("it")["protected"] == true);
    done(&home, "remove checkpoint it");
    // What was killed last may be on its way back still.
    until("no commits at intervals any more", || {
        let before = commits();
        std::thread::sleep(Duration::from_millis(500));
        commits() == before
    });
}

#[test]
fn older_states_are_kept_from_now_on_otherwise_and_no_more() {
    let home = Home::new();
    let mut it = Obedient::start(&home, "it", &[]);
    let output = home.outlast(["generations", "it"]).output().unwrap();
    assert!(said(&output).contains("module add generations it"), "{}", said(&output));
    it.say("x = 'before'");
    // So that no state is kept from before that.
    assert_eq!(it.ask("x"), "before");
    done(&home, "add generations it --generations 50ms");
    assert!(settings(&home, "it").contains(&"generations --generations 50ms:1h:256MiB".into()));
    let number = it.keeps();
    done(&home, "add generations it --generations 40ms:10m:64MiB");
    it.say("x = 'after'");
    assert_eq!(it.ask("x"), "after");
    assert!(it.numbers().contains(&number), "those that there are stay");
    it.keeps();
    let output = it.rewind(&number.to_string());
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(it.ask("x"), "before");
    // Who takes over goes on with it.
    let status = home.await_protected("it");
    kill(&status["supervisor"], libc::SIGKILL);
    home.await_event("it", "supervisor-restarted", 1);
    it.keeps();
    done(&home, "remove generations it");
    let output = it.rewind("1s");
    assert!(output.status.code() == Some(1) && said(&output).contains("keeps no generations"), "{}", said(&output));
    kill(&home.await_protected("it")["pid"], libc::SIGKILL);
    home.await_event("it", "recovered", 1);
    assert_eq!(it.ask("x"), "before");
}
