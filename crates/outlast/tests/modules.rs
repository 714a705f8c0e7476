//! Modules are added, removed and told otherwise while a program runs, which notices nothing.

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
    let output = module(home, &format!("list {name} --json"));
    let rows: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", said(&output)));
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
        "add storm it --storm 3:10m --alert /bin/true --alert=-x",
        "add storm it --storm 4:1h",
        "remove visible it",
        "add visible it",
        "remove storm it",
        "add leaks it",
        "add leaks it --leaks 20m:70",
        "remove leaks it",
    ] {
        done(&home, words);
        it.say("x += 1");
    }
    assert_eq!(settings(&home, "it"), ["crash --retries 7", "visible --commit visible", "hang --hang=20s"]);
    assert_eq!(it.ask("x"), "14");
    let expected = [
        "crash: --retries 7, --retries 3 before",
        "visible: --commit each, --commit visible before",
        "checkpoint: --every 30ms, --every auto before",
        "checkpoint protects it no longer: --every 30ms before",
        "hang protects it: --hang=20s",
        "storm: --storm 3:10m --alert=/bin/true --alert=-x, --storm 5:1m before",
        "storm: --storm 4:1h --alert=/bin/true --alert=-x, --storm 3:10m --alert=/bin/true --alert=-x before",
        "visible protects it no longer: --commit each before",
        "visible protects it: --commit visible",
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
        ["proc", "sysc", "peri", "pmc", "mem", "file"]
    );
    assert_eq!(it.end().status.code(), Some(0));
}

#[test]
fn what_cannot_be_is_refused_and_all_stays() {
    let home = Home::new();
    let it = Obedient::start(&home, "it", &[]);
    let before = settings(&home, "it");
    for (words, status, what) in [
        ("remove hang it", 1, "hang does not protect it"),
        ("remove nonsense it", 1, "there is no module nonsense"),
        ("remove crash other", 2, "other"),
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
    std::thread::sleep(Duration::from_millis(100));
    let before = commits();
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(commits(), before, "nobody wants commits at intervals any more");
}

#[test]
fn older_states_are_kept_from_now_on_otherwise_and_no_more() {
    let home = Home::new();
    let mut it = Obedient::start(&home, "it", &[]);
    let output = home.outlast(["generations", "it"]).output().unwrap();
    assert!(said(&output).contains("module add generations it"), "{}", said(&output));
    it.say("x = 'before'");
    done(&home, "add generations it --generations 50ms");
    assert!(settings(&home, "it").contains(&"generations --generations 50ms:1h:256MiB".into()));
    let number = it.keeps();
    done(&home, "add generations it --generations 40ms:10m:64MiB");
    it.say("x = 'after'");
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

#[test]
fn a_supervisor_that_dies_meanwhile_leaves_the_old_or_the_new() {
    let home = Home::new();
    let mut it = Obedient::start(&home, "it", &[]);
    let mut seed = 71;
    for n in 1..=25 {
        let child = begin(&home, &format!("add crash it --retries {n}"));
        pause(&mut seed);
        let status = home.status("it");
        if status["supervisor"].as_i64().is_some() {
            kill(&status["supervisor"], libc::SIGKILL);
        }
        let output = finish(child);
        assert!(output.status.success(), "round {n}: {}", said(&output));
        until("a supervisor", || home.status("it")["supervisor"].as_i64().is_some());
        assert_eq!(settings(&home, "it")[0], format!("crash --retries {n}"));
        it.say("x += 1");
    }
    assert_eq!(it.ask("x"), "25");
    let expected: Vec<_> = (1..=25)
        .map(|n| format!("crash: --retries {n}, --retries {} before", if n == 1 { 3 } else { n - 1 }))
        .collect();
    assert_eq!(changes(&home, "it"), expected);
}

#[test]
fn a_program_that_dies_meanwhile_is_recovered_and_the_change_is_made() {
    let home = Home::new();
    let mut it = Obedient::start(&home, "it", &[]);
    let mut seed = 73;
    for n in 1..=40 {
        let words = match n % 4 {
            0 => "add visible it --commit each".to_string(),
            1 => format!("add checkpoint it --every {}ms", n + 5),
            2 => "remove visible it".into(),
            _ => "add visible it --commit visible".into(),
        };
        it.say("x += 1");
        let pid = home.await_protected("it")["pid"].clone();
        let child = begin(&home, &words);
        pause(&mut seed);
        kill(&pid, libc::SIGKILL);
        let output = finish(child);
        assert!(output.status.success() && output.stderr.is_empty(), "round {n}, {words}: {}", said(&output));
        home.await_event("it", "recovered", n);
        assert_eq!(it.ask("x"), n.to_string(), "round {n}");
    }
}

#[test]
fn whoever_dies_meanwhile_and_whatever_else_goes_on_the_change_is_made_or_not() {
    let home = Home::new();
    let mut it = Obedient::start(&home, "it", &[]);
    let mut seed = 79;
    for n in 1..=24 {
        it.say("x += 1");
        let status = home.await_protected("it");
        let words = format!("add crash it --retries {}", n + 10);
        let mut commands =
            vec![begin(&home, &words), begin(&home, "add visible it"), begin(&home, "remove visible it")];
        if n % 4 == 0 {
            let mut upgrade = home.outlast(["upgrade", "it"]);
            commands.push(upgrade.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
        }
        pause(&mut seed);
        for process in [&["pid", "supervisor"][..], &["supervisor", "pid"], &["anchor", "pid"], &["pid"]][n % 4] {
            kill(&status[*process], libc::SIGKILL);
        }
        let outputs: Vec<Output> = commands.into_iter().map(finish).collect();
        assert!(outputs[0].status.success(), "round {n}: {}", said(&outputs[0]));
        assert_eq!(it.ask("x"), n.to_string(), "round {n}");
        until("a supervisor", || home.status("it")["supervisor"].as_i64().is_some());
        assert_eq!(settings(&home, "it")[0], format!("crash --retries {}", n + 10), "round {n}");
        done(&home, "add visible it");
    }
}

#[test]
fn whoever_resumes_after_everything_died_meanwhile_finds_the_old_or_the_new() {
    let home = Home::new();
    let mut it = Obedient::start(&home, "it", &["--every", "never"]);
    let (mut seed, mut found) = (83, [0, 0]);
    for n in 1..=24 {
        it.say("x += 1");
        assert_eq!(it.ask("x"), n.to_string(), "round {n}");
        let status = home.await_protected("it");
        let had = settings(&home, "it").iter().any(|module| module.starts_with("visible"));
        let child = begin(&home, if had { "remove visible it" } else { "add visible it" });
        pause(&mut seed);
        kill_everything(&status);
        // It may say either, or that nobody was there any more.
        let output = finish(child);
        let _ = it.end();
        let mut resume = home.outlast(["resume", "it"]);
        it = Obedient::begin(&home, "it", &mut resume);
        it.told = 100 * n;
        until("life", || home.status("it")["protected"] == true);
        let has = settings(&home, "it").iter().any(|module| module.starts_with("visible"));
        assert!(!output.status.success() || has != had, "round {n}: {} and has it: {has}", said(&output));
        found[usize::from(has == had)] += 1;
        // What the engine does is what it is said to do, from the first moment on that it is asked.
        let commits = || home.status("it")["commits"].as_u64().unwrap();
        it.ask("0");
        let before = commits();
        for _ in 0..5 {
            it.ask("0");
        }
        let made = commits() - before;
        assert!(if has { made >= 5 } else { made == 0 }, "round {n}: {made} commits, has it: {has}");
        // Without commits before outputs the state is the last commit's.
        let output = home.outlast(["commit", "it"]).output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
    }
    assert!(found[0] > 0, "the change was made {} times of 24", found[0]);
}

#[test]
fn what_was_wished_of_a_program_that_is_over_is_none_of_the_next_one_of_its_name() {
    let home = Home::new();
    let mut it = Obedient::start(&home, "it", &[]);
    // The supervisor stands still, and whoever wished something of it has gone before there is an answer.
    let status = home.await_protected("it");
    kill(&status["supervisor"], libc::SIGSTOP);
    let mut child = begin(&home, "add crash it --retries 9");
    until("the wish", || home.state().join("it/change").exists());
    child.kill().unwrap();
    child.wait().unwrap();
    let wish = std::fs::read(home.state().join("it/change")).unwrap();
    kill(&status["supervisor"], libc::SIGCONT);
    until("the change", || settings(&home, "it")[0] == "crash --retries 9");
    it.say("x = 1");
    assert_eq!(it.end().status.code(), Some(0));
    std::fs::write(home.state().join("it/change"), wish).unwrap();
    let mut it = Obedient::start(&home, "it", &[]);
    it.say("x = 2");
    assert_eq!((it.ask("x"), settings(&home, "it")[0].as_str()), ("2".into(), "crash --retries 3"));
    assert_eq!(changes(&home, "it"), [] as [String; 0]);
    assert_eq!(it.end().status.code(), Some(0));
}

#[test]
fn a_program_that_becomes_others_meanwhile_stays_protected_as_is_wished() {
    let home = Home::new();
    let script = "import os, sys, time
n = int(sys.argv[1])
print(n, flush=True)
time.sleep(0.02)
if n < 120: os.execv('/usr/bin/python3', ['python3', '-S', '-E', '-c', os.environ['SCRIPT'], str(n + 1)])
";
    let mut run = home.outlast(["run", "--name", "it", "--", "/usr/bin/python3", "-c", script, "0"]);
    let child = run.env("SCRIPT", script).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    home.await_status("it", |status| status["pid"].as_i64().is_some());
    let mut made = 0;
    for n in 1..=40 {
        let output = module(&home, &format!("add crash it --retries {n}"));
        if output.status.success() {
            made += 1;
            let list = module(&home, "list it --json");
            assert!(said(&list).contains(&format!("--retries {n}\"")), "{}", said(&list));
        } else {
            // It has come to its end, or is just not to be had.
            assert!(
                said(&output).contains("does not run") || said(&output).contains("not protected"),
                "{}",
                said(&output)
            );
        }
    }
    assert!(made >= 10, "{made} changes were made");
    let output = finish(child);
    let expected: String = (0..=120).map(|n| format!("{n}\n")).collect();
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{:?}", home.events("it"));
}

#[test]
fn a_program_that_is_stopped_is_to_be_continued_first() {
    let home = Home::new();
    let mut it = Obedient::start(&home, "it", &[]);
    let status = home.await_protected("it");
    kill(&status["pid"], libc::SIGSTOP);
    until("the supervisor's stop", || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", status["supervisor"])).unwrap();
        stat.rsplit(')').next().unwrap().trim_start().starts_with('T')
    });
    let output = module(&home, "add crash it --retries 1");
    assert!(output.status.code() == Some(1) && said(&output).contains("is stopped"), "{}", said(&output));
    kill(&status["pid"], libc::SIGCONT);
    done(&home, "add crash it --retries 1");
    it.say("ctypes.string_at(0)");
    home.await_event("it", "exit", 1);
    assert_eq!(count(&home, "rollback"), 1);
}

/// Nothing that was seen while commits stood before outputs is lost or repeated, whenever they are switched off and on and whatever dies
/// meanwhile; and files are at all times as one that never died would have left them.
fn outputs_are_exact(threads: bool, options: &[&str], seed: u64, rounds: usize) {
    let home = Home::new();
    let streams = Streams::begin(&home, threads, options);
    let mut seed = seed;
    for n in 0..rounds {
        let recovered = |times| home.await_event("it", "recovered", times);
        let pid = || home.await_protected("it")["pid"].clone();
        // On.
        pause(&mut seed);
        kill(&pid(), libc::SIGKILL);
        recovered(3 * n + 1);
        // From here on what comes out may come again.
        streams.may_repeat();
        let victim = pid();
        let child = begin(&home, "remove visible it");
        pause(&mut seed);
        kill(&victim, libc::SIGKILL);
        let output = finish(child);
        assert!(output.status.success(), "round {n}: {}", said(&output));
        recovered(3 * n + 2);
        pause(&mut seed);
        let victim = pid();
        let child = begin(&home, "add visible it");
        pause(&mut seed);
        kill(&victim, libc::SIGKILL);
        let output = finish(child);
        assert!(output.status.success(), "round {n}: {}", said(&output));
        recovered(3 * n + 3);
        // And from here on no more.
        streams.may_not_repeat();
        streams.check(n);
    }
    pause(&mut seed);
    streams.end();
}

#[test]
fn outputs_are_neither_lost_nor_repeated_when_commits_are_switched_off_and_on() {
    outputs_are_exact(false, &[], 5, 12);
}

#[test]
fn nor_are_those_of_threads_that_wait_for_room() {
    outputs_are_exact(true, &[], 7, 12);
}

#[test]
fn nor_where_pages_are_found_by_faults_and_commits_come_at_intervals() {
    outputs_are_exact(false, &["--tracker", "mprotect", "--every", "2ms"], 11, 8);
    outputs_are_exact(true, &["--every", "2ms"], 17, 8);
}

#[test]
fn nor_without_a_ring() {
    outputs_are_exact(false, &["--no-io-uring"], 19, 8);
}

#[test]
fn nor_where_they_are_on_the_medium_or_alone() {
    outputs_are_exact(true, &["--commit", "each", "--durable=visible"], 13, 8);
}
