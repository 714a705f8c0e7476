//! Modules from files while the program runs, and beside others that are told of the same.

use super::*;

fn module<'a>(home: &Home, words: impl IntoIterator<Item = &'a str>) -> Output {
    outlast(home, ["module"].into_iter().chain(words)).output().unwrap()
}

fn done(output: &Output) {
    assert!(output.status.success() && output.stdout.is_empty() && output.stderr.is_empty(), "{}", said(output));
}

fn refused(output: &Output, why: &str) {
    assert!(!output.status.success() && said(output).contains(why), "{why}: {}", said(output));
}

fn of_program(home: &Home) -> Vec<String> {
    let rows: Value = serde_json::from_slice(&module(home, ["list", "it", "--json"]).stdout).unwrap();
    rows.as_array().unwrap().iter().map(|row| row["settings"].as_str().unwrap().into()).collect()
}

#[test]
#[cfg_attr(not(wasm_target), ignore = "needs the Rust target wasm32-unknown-unknown")]
fn a_module_is_added_told_otherwise_and_removed_while_the_program_runs() {
    let home = Home::new();
    loaded(&home, "ceiling", "ceiling");
    let mut talk = begin(&home, &[]);
    talk.ask("one");
    home.await_protected("it");
    refused(&module(&home, ["add", "cieling", "it", "1"]), "module cieling: it is not loaded");
    refused(&module(&home, ["add", "ceiling", "it", "many"]), "settings: a number of threads");
    refused(&module(&home, ["add", "ceiling"]), "outlast module add NAME PROGRAM");
    refused(&module(&home, ["remove", "ceiling", "it"]), "there is no module ceiling");
    let before = of_program(&home);
    done(&module(&home, ["add", "ceiling", "it", "9"]));
    assert_eq!(of_program(&home), [before.clone(), vec!["--module ceiling=9".into()]].concat());
    talk.ask("two");
    done(&module(&home, ["add", "ceiling", "it", "1"]));
    assert_eq!(row(&home, "ceiling").unwrap()["programs"], serde_json::json!(["it"]));
    // Also by whoever takes over.
    let supervisor = home.await_protected("it")["supervisor"].clone();
    kill(&supervisor, libc::SIGKILL);
    home.await_status("it", |status| status["protected"] == true && status["supervisor"] != supervisor);
    talk.ask("thread");
    home.await_event("it", "hung", 1);
    talk.may_hang(false);
    talk.ask("more");
    assert!(talk.causes("hung")[0].ends_with("2 threads, and 1 is the most"), "{:#?}", talk.causes("hung"));
    done(&module(&home, ["remove", "ceiling", "it"]));
    assert_eq!(of_program(&home), before);
    // What is in the file by then is what is loaded the next time.
    loaded(&home, "hang", "ceiling");
    done(&module(&home, ["add", "ceiling", "it", "{\"limit_ms\": 300}"]));
    assert!(talk.hang("hang").contains("0.30 s are enough"), "{:#?}", talk.causes("hung"));
    let changes = talk.causes("module-changed");
    let expected = [
        "ceiling protects it: --module ceiling=9",
        "ceiling: --module ceiling=1, --module ceiling=9 before",
        "ceiling protects it no longer: --module ceiling=1 before",
        "ceiling protects it: --module ceiling={\"limit_ms\": 300}",
    ];
    assert_eq!(changes, expected);
    assert_eq!(talk.causes("module-failed"), [""; 0]);
}

#[test]
#[cfg_attr(not(wasm_target), ignore = "needs the Rust target wasm32-unknown-unknown")]
fn a_module_that_failed_too_often_is_added_again() {
    let home = Home::new();
    loaded(&home, "faulty", "faulty");
    let mut talk = begin(&home, &["--module=faulty=looks third trap"]);
    talk.ask("one");
    home.await_event("it", "module-failed", 4);
    done(&module(&home, ["add", "faulty", "it"]));
    home.await_event("it", "module-failed", 8);
    talk.ask("two");
    assert_eq!(talk.end().code(), Some(3));
}

/// RMK, §3: detectors of hangs that want to know of the same event conflict where each takes it for itself. Whichever of them is there, each
/// finds what is its own.
#[test]
#[cfg_attr(not(wasm_target), ignore = "needs the Rust target wasm32-unknown-unknown")]
fn two_detectors_share_an_event_and_neither_takes_it_from_the_other() {
    let home = Home::new();
    loaded(&home, "ceiling", "ceiling");
    let mut talk = begin(&home, &["--hang=300ms", "--module=ceiling=1"]);
    talk.ask("one");
    // Which of them is first is a matter of chance, and a process that is recovered may be flagged once more: each finds its own.
    let finds = |talk: &Talk<&Home>, before: usize, what: &str| {
        until(what, || talk.causes("hung")[before..].iter().any(|cause| cause.contains(what)));
        talk.may_hang(false);
    };
    let hangs = |talk: &mut Talk<&Home>| {
        let before = talk.hangs();
        talk.may_hang(true);
        talk.say("hang");
        finds(talk, before, "0.30 s are enough");
        talk.hear("hang");
    };
    let crowds = |talk: &mut Talk<&Home>| {
        let before = talk.hangs();
        talk.may_hang(true);
        talk.ask("thread");
        finds(talk, before, "2 threads, and 1 is the most");
        // Until what is gone back to has one thread: with two, nothing would come to hang before it is flagged for that.
        let mut alone = 0;
        until("one thread", || {
            talk.ask("on");
            let pid = talk.home.status("it")["pid"].clone();
            let threads = fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
            alone = if threads == 1 { alone + 1 } else { 0 };
            alone == 3
        });
    };
    hangs(&mut talk);
    crowds(&mut talk);
    hangs(&mut talk);
    // The one that goes takes nothing along, in either order, and the one that comes takes nothing away.
    done(&module(&home, ["remove", "hang", "it"]));
    crowds(&mut talk);
    done(&module(&home, ["add", "hang", "it", "--hang=300ms"]));
    hangs(&mut talk);
    done(&module(&home, ["remove", "ceiling", "it"]));
    hangs(&mut talk);
    done(&module(&home, ["add", "ceiling", "it", "1"]));
    crowds(&mut talk);
    hangs(&mut talk);
    assert_eq!(talk.causes("module-failed"), [""; 0]);
}

#[test]
#[cfg_attr(not(wasm_target), ignore = "needs the Rust target wasm32-unknown-unknown")]
fn the_example_in_c_ends_what_computes_for_longer_than_it_may() {
    let home = Home::new();
    loaded(&home, "spender", "spender");
    let mut talk = begin(&home, &["--module=spender=400"]);
    talk.ask("one");
    let cause = talk.hang("hang");
    assert!(cause.ends_with("it has taken more processor time than it may"), "{cause}");
    talk.ask("two");
    assert_eq!(talk.causes("module-failed"), [""; 0]);
    assert_eq!(talk.end().code(), Some(3));
    let output =
        outlast(&home, ["run", "--name", "no", "--module", "spender=much", "--", "echo", "ran"]).output().unwrap();
    assert!(
        said(&output).contains("settings: a number of milliseconds") && output.stdout.is_empty(),
        "{}",
        said(&output)
    );
}
